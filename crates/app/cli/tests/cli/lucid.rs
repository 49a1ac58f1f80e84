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
