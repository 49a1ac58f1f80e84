//! Jobs that draw what they train from a pool.

use crate::running::{hashes, run, run_in};
use std::fs;

const SIXTY_FOUR: [&str; 6] = [
    "simulate",
    "--trace",
    "examples/trace.csv",
    "--cluster",
    "examples/training/cluster-64.toml",
    "--audit",
];
const SIX: [&str; 6] =
    ["--configurations", "six-models", "--pairs", "six-models", "--policy", "deepshare"];

#[test]
fn pools_and_pairs_that_come_with_the_program_are_known_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let args = [&SIXTY_FOUR[..], &SIX[..]].concat();
    let done = run(&[&args[..], &["--out", out.to_str().unwrap()]].concat());
    let said = "sharing: 6 profiles, drawn from six-models with seed 1; slowdowns six-models, others \
                by the contention model";
    assert!(done.err.contains(said), "{}", done.err);
    let share =
        "100.0 % of ordered pairs of profiles are in examples/training/six-models-pairs.csv";
    assert!(done.err.contains(share), "{}", done.err);
    let first = hashes(&run(&[&args[..], &["--json"]].concat()).json());
    let settings = out.join("settings.toml");
    let again = run(&["simulate", "--settings", settings.to_str().unwrap(), "--json"]).json();
    assert_eq!(hashes(&again), first);
    // The file is the pool of that name.
    let path = "examples/training/six-models.csv";
    let by_path = ["--configurations", path, "--pairs", "six-models", "--policy", "deepshare"];
    let by_path = run(&[&SIXTY_FOUR[..], &by_path[..], &["--json"]].concat()).json();
    assert_eq!(hashes(&by_path), first);
}

#[test]
fn predictions_of_slowdown_are_as_wrong_as_asked_for() {
    let testbed = ["simulate", "--preset", "testbed", "--policy", "deepshare", "--json"];
    let pool = ["--configurations", "pool-29", "--pairs", "pool-29"];
    let with =
        |set: &str| hashes(&run(&[&testbed[..], &pool[..], &["--set", set]].concat()).json());
    let truth = run(&[&testbed[..], &pool[..], &["--set", "sharing.prediction_mae=0"]].concat());
    assert!(truth.json()["runs"][0]["pairs_formed"].as_u64() > Some(0));
    assert_eq!(with("sharing.prediction_mae=0"), with("sharing.prediction_r2=1"));
    assert_ne!(with("sharing.prediction_mae=0"), with("sharing.prediction_mae=1.5"));
    let both = ["--set", "sharing.prediction_mae=0.1", "--set", "sharing.prediction_r2=0.9"];
    let said = run(&[&testbed[..], &both[..]].concat()).fails(2);
    assert!(
        said.contains("--set #1: sharing.prediction_mae: sharing.prediction_r2 says"),
        "{said}"
    );
}

#[test]
fn what_jobs_run_is_said_once() {
    let twice = ["--profiles", "p.csv", "--configurations", "six-models"];
    let said = run(&[&["simulate"][..], &twice[..]].concat()).fails(2);
    let expected = "--configurations: configurations.file: profiles.file (--profiles) says already";
    assert!(said.contains(expected), "{said}");
    let none = run(&["simulate", "--configurations", "seven-models"]).fails(2);
    assert!(none.contains("seven-models") && none.contains("check the path"), "{none}");
}

#[test]
fn a_configuration_too_large_for_the_gpus_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let trace = "job_id,tenant,gpus,submit_s,duration_s,gpu_sla\na,t,8,0,600,1.2\n";
    fs::write(folder.path().join("t.csv"), trace).unwrap();
    let cluster = "[[node]]\ncount = 4\ngpus = 4\ngpu_memory_mib = 5000\n";
    fs::write(folder.path().join("c.toml"), cluster).unwrap();
    let args = ["simulate", "--trace", "t.csv", "--cluster", "c.toml", "--policy", "fifo"];
    let drawn = |more: &[&str]| {
        run_in(folder.path(), &[&args[..], &["--configurations", "six-models"], more].concat())
    };
    let said = drawn(&[]).fails(2);
    assert!(said.contains("examples/training/six-models.csv: line "), "{said}");
    assert!(said.contains("MiB of a GPU in one step, and the largest that job \"a\""), "{said}");
    assert!(said.contains("has 5000 MiB, on node \"node-0\" (GPU type \"gpu\")"), "{said}");
    let strict = trace.replace("1.2", "0.9");
    fs::write(folder.path().join("t.csv"), strict).unwrap();
    let said = drawn(&[]).fails(2);
    assert!(said.contains("line 2, column 6 (gpu_sla): \"0.9\" is below 1"), "{said}");
}
