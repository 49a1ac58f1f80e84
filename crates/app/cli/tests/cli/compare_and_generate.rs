//! `compare` and `generate`, on what `simulate` writes and reads.

use crate::running::{hashes, names, run_in};
use serde_json::json;
use std::fs;

const WEEK: [&str; 7] =
    ["simulate", "-q", "--set", "generate.jobs=300", "--set", "generate.days=1", "--out"];

#[test]
fn two_runs_are_compared_policy_by_policy_or_file_by_file() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let policies = |names: &'static str| ["--set", names];
    run_in(here, &[&WEEK[..], &["a"], &policies("policy=fifo,srtf,sjf")].concat()).ok();
    let slow = ["--set", "restart.overhead_s=400"];
    run_in(here, &[&WEEK[..], &["b"], &policies("policy=srtf,fifo"), &slow].concat()).ok();
    let both = run_in(here, &["compare", "a", "b", "--json"]).json();
    let comparisons = both["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2);
    assert_eq!(comparisons[0]["policy"], json!("fifo"));
    assert_eq!(comparisons[0]["pairs"]["jct"]["equal_share"], json!(1.0), "fifo never restarts");
    assert!(comparisons[1]["pairs"]["jct"]["worse_share"].as_f64().unwrap() > 0.0);
    let table = run_in(here, &["compare", "a/fifo", "a/srtf/jobs.csv"]).ok();
    assert!(table.contains("queueing_delay_mean_s") && table.contains("300 jobs"), "{table}");
    let said = run_in(here, &["compare", "a", "a/fifo"]).fails(2);
    assert!(said.contains("have nothing in common to compare"), "{said}");
}

#[test]
fn quotas_and_classes_are_compared_with_the_way_they_should_go() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let rows = "1,vision,8,0,9000,best-effort\n2,speech,8,60,900,guaranteed\n\
                3,speech,1,90,900,best-effort\n4,vision,16,120,900,guaranteed\n";
    let trace = format!("job_id,tenant,gpus,submit_s,duration_s,class\n{rows}");
    fs::write(here.join("t.csv"), trace).unwrap();
    let tenants = "[[tenant]]\nname = \"vision\"\nquota = 16\n\n\
                   [[tenant]]\nname = \"speech\"\nquota = 8\n";
    let nodes = "[[node]]\nname = \"gpu\"\ncount = 3\ngpus = 8\n\n";
    fs::write(here.join("c.toml"), format!("{nodes}{tenants}")).unwrap();
    let files = ["simulate", "-q", "--trace", "t.csv", "--cluster", "c.toml", "--out", "a"];
    let policies = ["--set", "capacity=elastic", "--set", "policy=deepshare,elastic-quota"];
    run_in(here, &[&files[..], &policies].concat()).ok();
    let both = run_in(here, &["compare", "a/elastic-quota", "a/deepshare", "--json"]).json();
    let comparison = &both["comparisons"][0];
    let figures = comparison["figures"].as_array().unwrap();
    let compliance = figures.iter().find(|figure| figure["name"] == "qad_compliance").unwrap();
    assert_eq!(compliance["better"], json!("higher"));
    assert!(compliance["difference"].is_number(), "{compliance}");
    assert_eq!(comparison["by_class"][1]["class"], json!("best-effort"));
    let table = run_in(here, &["compare", "a/elastic-quota", "a/deepshare"]).ok();
    let row = table.lines().find(|line| line.starts_with("qad_compliance")).unwrap();
    assert!(row.ends_with("higher"), "{table}");
    assert!(table.contains("guaranteed jobs") && table.contains("best-effort jobs"), "{table}");
    fs::remove_file(here.join("a/deepshare/summary.json")).unwrap();
    let without = run_in(here, &["compare", "a/elastic-quota", "a/deepshare"]).ok();
    assert!(!without.contains("qad_compliance") && without.contains("jct_mean_s"), "{without}");
}

#[test]
fn other_jobs_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    run_in(here, &[&WEEK[..], &["a", "--policy", "fifo"]].concat()).ok();
    run_in(here, &[&WEEK[..], &["b", "--policy", "fifo", "--seed", "2"]].concat()).ok();
    let done = run_in(here, &["compare", "a", "b"]);
    assert_eq!(done.status, 0);
    assert!(done.err.contains("warning: fifo: not one trace"), "{}", done.err);
}

#[test]
fn a_damaged_file_of_results_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    run_in(here, &[&WEEK[..], &["a", "--policy", "fifo"]].concat()).ok();
    let text = fs::read_to_string(here.join("a/fifo/jobs.csv")).unwrap();
    fs::write(here.join("cut.csv"), &text[..text.len() / 2]).unwrap();
    let said = run_in(here, &["compare", "a/fifo", "cut.csv"]).fails(2);
    assert!(said.contains("cut.csv: line ") && said.contains("cut short"), "{said}");
}

#[test]
fn the_built_in_month_replays_from_its_files_as_from_memory() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let files = ["--out", "t.csv", "--cluster-out", "c.toml"];
    let generate = [&["generate", "--days", "2", "--seed", "3"][..], &files].concat();
    run_in(here, &generate).ok();
    assert_eq!(names(here), ["c.toml", "t.csv"]);
    // Profiles are drawn with the seed.
    let from_files =
        ["simulate", "--json", "--trace", "t.csv", "--cluster", "c.toml", "--seed", "3"];
    let built_in = ["simulate", "--json", "--set", "generate.days=2", "--seed", "3"];
    let hashes = |args: &[&str]| hashes(&run_in(here, args).json());
    assert_eq!(hashes(&from_files), hashes(&built_in));
    let said = run_in(here, &generate).fails(2);
    assert!(said.contains("t.csv is there already; replace it with --force"), "{said}");
    run_in(here, &[&generate[..], &["--force"]].concat()).ok();
}

#[test]
fn every_preset_replays_from_its_files_as_from_memory() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (preset, sizes) in [("testbed", &[][..]), ("scale", &["2000"])] {
        let jobs: Vec<&str> = sizes.iter().flat_map(|&jobs| ["--jobs", jobs]).collect();
        let files = ["--out", "t.csv", "--cluster-out", "c.toml", "--force"];
        let generate = [&["generate", "--preset", preset, "--seed", "3"][..], &jobs, &files];
        run_in(here, &generate.concat()).ok();
        let policies = ["--policy", "deepshare,fifo", "--set", "fifo.skip=true", "--json"];
        let trace = ["simulate", "--trace", "t.csv", "--cluster", "c.toml", "--seed", "3"];
        let set: Vec<String> = sizes.iter().map(|jobs| format!("generate.jobs={jobs}")).collect();
        let sets: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        let built_in = [&["simulate", "--preset", preset, "--seed", "3"][..], &sets];
        let hashes = |args: &[&str]| hashes(&run_in(here, &[args, &policies].concat()).json());
        assert_eq!(hashes(&trace), hashes(&built_in.concat()), "{preset}");
    }
}

#[test]
fn what_a_preset_does_not_have_is_refused() {
    let here = std::path::Path::new(".");
    let said = run_in(here, &["simulate", "--preset", "scale", "--set", "generate.days=2"]);
    assert!(said.fails(2).contains("generate.days: is for the month, not for `scale`"));
    let said = run_in(here, &["generate", "--preset", "testbed", "--jobs", "9", "--out", "no.csv"]);
    assert!(said.fails(2).contains("--jobs: `testbed` always has the same number of jobs"));
    let said = run_in(here, &["generate", "--preset", "mars", "--out", "no.csv"]).fails(2);
    assert!(said.contains("--preset mars: use `venus` or `scale` or `testbed`"), "{said}");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run_in(std::path::Path::new("."), &["completions", shell]).ok();
        assert!(script.contains("trace-order") && script.contains("reproduce"), "{shell}");
    }
}
