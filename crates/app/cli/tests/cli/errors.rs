//! What the program says when it cannot do what it is asked.

use crate::running::{names, run, run_in};
use std::fs;

const CLUSTER: [&str; 2] = ["--cluster", "examples/cluster.toml"];

#[test]
fn every_wrong_setting_is_named_at_once_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let text = "seed = 1\n[restart]\noverhead = 5\ncheckpoint_interval_s = \"often\"\n";
    fs::write(folder.path().join("s.toml"), text).unwrap();
    let args = [
        "simulate",
        "--settings",
        "s.toml",
        "--set",
        "cycle=1",
        "--set",
        "audit=si",
        "--policy",
        "f",
    ];
    let said = run_in(folder.path(), &args).fails(2);
    let expected = [
        "error: 5 problems with the settings:",
        "s.toml:3:1: unknown key `restart.overhead`; did you mean `restart.overhead_s`?",
        "--set #1: unknown key `cycle`; did you mean `cycle_s`?",
        "s.toml:4:1: restart.checkpoint_interval_s = \"often\": expected a number of seconds",
        "--set #2: audit = si: expected `true` or `false`",
        "--policy: policy = f: expected `all`, or one or more of fifo, sjf,",
    ];
    for part in expected {
        assert!(said.contains(part), "{part}\nis not in\n{said}");
    }
}

#[test]
fn a_bad_trace_is_refused_with_file_line_column_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    let text = "job_id,tenant,gpus,submit_s,duration_s\na,vision,1,0,5\nb,vision,two,1,5\n";
    fs::write(&file, text).unwrap();
    let args = [&["simulate", "--trace", file.to_str().unwrap()], &CLUSTER[..]].concat();
    let said = run(&args).fails(2);
    assert!(said.contains("t.csv: line 3, column 3 (gpus): \"two\" is not a number"), "{said}");
}

#[test]
fn a_bad_cluster_is_refused_with_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    fs::write(&file, "[[node]]\ngpus = 8\ncolour = 1\n").unwrap();
    let path = file.to_str().unwrap();
    let said = run(&["simulate", "--trace", "examples/trace.csv", "--cluster", path]).fails(2);
    assert!(said.contains("c.toml: line 3, column 1: unknown key \"colour\""), "{said}");
}

#[test]
fn half_of_the_input_is_refused_with_what_to_do() {
    let said = run(&["simulate", "--trace", "examples/trace.csv"]).fails(2);
    assert!(said.contains("give one with `--cluster FILE`"), "{said}");
    let said = run(&["simulate", "--cluster", "examples/cluster.toml"]).fails(2);
    assert!(said.contains("give the jobs too with `--trace FILE`"), "{said}");
    let said = run(&["simulate", "--trace-order", "examples/trace.csv"]).fails(2);
    assert!(said.contains("there is no trace to order"), "{said}");
}

#[test]
fn files_that_are_not_there_are_named() {
    for args in [
        &["simulate", "--trace", "no.csv", "--cluster", "examples/cluster.toml"][..],
        &["simulate", "--trace", "examples/trace.csv", "--cluster", "no.toml"],
        &["simulate", "--settings", "no.toml"],
        &["compare", "no", "examples"],
        &["reproduce", "venus", "--data", "no"],
    ] {
        let said = run(args).fails(2);
        assert!(said.starts_with("error: ") && said.contains("no"), "{args:?}: {said}");
    }
}

#[test]
fn jobs_that_can_never_run_stop_everything_or_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    let text = "job_id,tenant,gpus,submit_s,duration_s\na,vision,1,0,5\nb,vision,17,1,5\n";
    fs::write(&file, text).unwrap();
    let args = [&["simulate", "--trace", file.to_str().unwrap()], &CLUSTER[..]].concat();
    let said = run(&args).fails(2);
    assert!(said.contains("1 jobs can never run") && said.contains("b (line 3)"), "{said}");
    let skipping = [&args[..], &["--set", "oversize=skip"]].concat();
    let table = run(&skipping).ok();
    assert!(table.contains("left out 1 jobs that this cluster can never run"), "{table}");
}

#[test]
fn a_run_that_cannot_go_on_fails_with_another_status_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let livelock = ["--set", "max_idle_steps=3", "--out", out.to_str().unwrap()];
    let trace = ["simulate", "--trace", "examples/trace.csv"];
    let said = run(&[&trace[..], &CLUSTER[..], &livelock[..]].concat()).fails(1);
    assert!(said.contains("error: livelock at "), "{said}");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn results_are_not_replaced_unless_asked_and_only_results_are() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["simulate", "-q", "--set", "generate.jobs=50", "--policy", "fifo", "--out", "results"];
    let forced = [&args[..], &["--force"]].concat();
    run_in(folder.path(), &args).ok();
    let said = run_in(folder.path(), &args).fails(2);
    assert!(said.contains("is not empty; name another folder, or replace it"), "{said}");
    let with_srtf = [&forced[..], &["--policy", "srtf"]].concat();
    run_in(folder.path(), &with_srtf).ok();
    assert_eq!(
        names(&folder.path().join("results")),
        ["fifo", "run.json", "settings.toml", "srtf"]
    );
    run_in(folder.path(), &forced).ok();
    assert_eq!(names(&folder.path().join("results")), ["fifo", "run.json", "settings.toml"]);
    fs::write(folder.path().join("results/notes.txt"), "mine").unwrap();
    let said = run_in(folder.path(), &forced).fails(2);
    assert!(said.contains("holds \"notes.txt\", which is not a result"), "{said}");
    assert_eq!(names(folder.path()), ["results"]);
    let said = run_in(folder.path(), &[&args[..6], &["--out", "results/notes.txt"]].concat());
    assert!(said.fails(2).contains("is a file; name a folder"));
}

#[test]
fn an_empty_folder_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("results")).unwrap();
    let args =
        ["simulate", "-q", "--set", "generate.jobs=50", "--policy", "fifo", "--out", "results"];
    run_in(folder.path(), &args).ok();
    assert_eq!(names(&folder.path().join("results")), ["fifo", "run.json", "settings.toml"]);
}
