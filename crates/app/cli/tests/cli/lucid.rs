//! `compat=lucid` on a log small enough to work out by hand.
//!
//! One virtual cluster of one node has three jobs of 8 GPUs: 100 s, and 10 s and 20 s later 30 s and
//! 40 s. The log begins in September, so time zero is that of the real log, 2020-04-01 00:02:31,
//! and the first job comes at 13,219,203.

use crate::running::{Ran, run_in};
use std::fs;
use std::path::{Path, PathBuf};

const FIRST: u64 = 13_219_203;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lucid")
}

fn replay(policy: &str, more: &[&str]) -> Ran {
    let args = ["simulate", "--trace", "cluster_full_log.csv", "--cluster", "vc_config.csv"];
    run_in(&fixtures(), &[&args[..], &["--policy", policy], more].concat())
}

/// Start and end of jobs 1, 2, 3 in seconds since the first, and how often they were preempted.
fn fates(policy: &str, more: &[&str]) -> Vec<(u64, u64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    replay(policy, &[more, &["--audit", "--out", out.to_str().unwrap()]].concat()).ok();
    let text = fs::read_to_string(out.join(policy).join("jobs.csv")).unwrap();
    let number = |text: &str| text.parse::<u64>().unwrap();
    let fate = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (number(fields[4]) - FIRST, number(fields[5]) - FIRST, number(fields[8]))
    };
    text.lines().skip(1).take(3).map(fate).collect()
}

const LUCID: [&str; 2] = ["--set", "compat=lucid"];

#[test]
fn rows_that_the_artifact_drops_are_dropped_and_counted() {
    let done = replay("fifo", &LUCID);
    for line in ["4 of 6 rows are jobs", "1 dropped: ask for no GPU", "1 dropped: tenant not in"] {
        assert!(done.err.contains(line), "{line}: {}", done.err);
    }
    assert!(done.out.contains("compat lucid"), "{}", done.out);
}

#[test]
fn fifo_goes_one_after_the_other() {
    assert_eq!(fates("fifo", &LUCID), [(0, 100, 0), (100, 130, 0), (130, 170, 0)]);
}

#[test]
fn srtf_notices_ends_a_second_late_and_charges_restarts() {
    // Job 2 preempts job 1, which has 90 s left and will owe 40 s of restart. It ends at
    // 10 + 30 + 1, job 3 at 41 + 40 + 1, and job 1 at 82 + 90 + 40 + 1.
    assert_eq!(fates("srtf", &LUCID), [(0, 213, 1), (10, 41, 0), (41, 82, 0)]);
    // A key that is set itself wins over compat.
    let on_time = [&LUCID[..], &["--set", "finish_lag_s=0"]].concat();
    assert_eq!(fates("srtf", &on_time), [(0, 210, 1), (10, 40, 0), (40, 80, 0)]);
}

#[test]
fn tiresias_decides_at_whole_minutes() {
    // All jobs are young, so they go by submission. Minutes fall at 57, 117, 177, …
    assert_eq!(FIRST + 57, 220_321 * 60);
    assert_eq!(fates("tiresias", &LUCID), [(57, 158, 0), (177, 208, 0), (237, 278, 0)]);
}

#[test]
fn qssf_takes_negative_estimates_for_a_thousand_seconds() {
    let estimates = [&LUCID[..], &["--estimates", "estimates.csv"]].concat();
    // Job 2 is taken for 1000 s and job 3 for 999 s.
    assert_eq!(fates("qssf", &estimates), [(0, 100, 0), (140, 170, 0), (100, 140, 0)]);
    let said = replay("qssf", &["--estimates", "estimates.csv", "--set", "trace.format=helios"]);
    let said = said.fails(2);
    assert!(said.contains("estimates.csv: line 3, column 2 (priority)"), "{said}");
    assert!(said.contains("is a negative estimate"), "{said}");
}

const TABLES: [&str; 10] = [
    "--estimates",
    "estimates.csv",
    "--profiles",
    "cluster_full_log.csv",
    "--pairs",
    "pairs.csv",
    "--workloads",
    "workloads.csv",
    "--forecast",
    "forecast.csv",
];

#[test]
fn lucid_ends_short_jobs_in_its_profiler() {
    // Two nodes of the profiler take jobs 1 and 2. When job 2 ends at 40, job 5 of another virtual
    // cluster goes before job 3, as it is narrower, and job 3 waits for job 1.
    let expected = [(0, 100, 0), (10, 40, 0), (100, 140, 0)];
    assert_eq!(fates("lucid", &[&LUCID[..], &TABLES].concat()), expected);
    let off = ["--set", "lucid.sharing=off"];
    assert_eq!(fates("lucid", &[&LUCID[..], &TABLES, &off].concat()), expected);
    let object = replay("lucid", &[&LUCID[..], &TABLES, &["--json"]].concat()).json();
    let run = &object["runs"][0];
    assert_eq!(run["policy"], "lucid");
    assert_eq!(run["estimates"], "estimates.csv");
    // Jobs 1 and 2 wait for nothing, job 3 80 s; job 5 for 10 s, but it has run since it came.
    assert_eq!(run["queueing_delay_mean_s"], 22.5);
    assert_eq!(run["jct_mean_s"], f64::from(100 + 30 + 120 + 501) / 4.0);
    assert_eq!(run["cancelled"], 0, "the cancelled job ran to its end");
}

#[test]
fn lucid_runs_beside_other_policies_in_the_order_asked_for() {
    let both = ["--policy", "fifo", "--json"];
    let object = replay("lucid", &[&LUCID[..], &TABLES, &both].concat()).json();
    let names: Vec<_> =
        object["runs"].as_array().unwrap().iter().map(|run| &run["policy"]).collect();
    assert_eq!(names, ["lucid", "fifo"]);
}

#[test]
fn lucid_is_left_out_under_its_compat_unless_asked_for() {
    let object = replay("fifo", &[&LUCID[..], &["--json"]].concat()).json();
    assert_eq!(object["runs"].as_array().unwrap().len(), 1);
    let args = ["simulate", "--trace", "cluster_full_log.csv", "--cluster", "vc_config.csv"];
    let names = |more: &[&str]| -> Vec<String> {
        let object = run_in(&fixtures(), &[&args[..], &["--json"], more].concat()).json();
        let runs = object["runs"].as_array().unwrap().iter();
        runs.map(|run| run["policy"].as_str().unwrap().to_owned()).collect()
    };
    let (artifact, own) = (names(&LUCID), names(&["--set", "trace.format=helios"]));
    assert!(own.contains(&"lucid".to_owned()), "{own:?}");
    assert_eq!(artifact, own.into_iter().filter(|name| name != "lucid").collect::<Vec<_>>());
}

#[test]
fn without_compat_lucid_runs_in_the_engine_with_its_files() {
    // Scores of 1 and 1 may share, at 0.85, the mean of what was measured. Job 2 runs beside job 1
    // from 10 to 45.3, then job 3 until 92.4; job 1 has 20 s left and ends at 112.4.
    let own = ["--estimates", "oracle", "--set", "trace.format=helios", "--json", "--audit"];
    let with = |sharing: &str| {
        let set = format!("lucid.sharing={sharing}");
        let args = [&own[..], &TABLES[2..], &["--set", &set]].concat();
        replay("lucid", &args).json()["runs"][0].clone()
    };
    let shared = with("on");
    assert_eq!(shared["pairs_formed"], 2);
    assert_eq!(shared["slowdown_while_shared_weighted"], 1.1764706);
    let mean = shared["jct_mean_s"].as_f64().unwrap();
    assert!((mean - (112.353 + 35.294 + 72.353 + 500.0) / 4.0).abs() < 0.001, "{mean}");
    let alone = with("off");
    assert_eq!(
        (&alone["pairs_formed"], &alone["jct_mean_s"]),
        (&serde_json::Value::Null, &217.5.into())
    );
}

#[test]
fn lucid_says_what_it_needs() {
    let said = replay("lucid", &[&LUCID[..], &TABLES[..8]].concat()).fails(2);
    assert!(
        said.contains("forecast.file: lucid's artifact needs the forecast of arrivals"),
        "{said}"
    );
    let pool = ["--set", "capacity=pool", "--set", "outages.file=x.csv"];
    let said = replay("lucid", &[&LUCID[..], &TABLES, &pool].concat()).fails(2);
    assert!(said.contains("--set #2: capacity: lucid has virtual clusters"), "{said}");
    assert!(said.contains("--set #3: outages.file: nodes never fail"), "{said}");
    let (others, _) = TABLES.split_at(6);
    let wrong = ["--workloads", "pairs.csv", "--forecast", "forecast.csv"];
    let said = replay("lucid", &[&LUCID[..], others, &wrong].concat()).fails(2);
    assert!(said.contains("pairs.csv: line 1: the header lacks model and dataset"), "{said}");
}
