//! Small worlds worked out by hand, one rule each, and where the two semantics part.

use deepshare_ticker::OraclePolicy::{Fifo, Qssf, Sjf, Srtf, Tiresias};
use deepshare_ticker::Semantics::{Artifact, Plain};
use deepshare_ticker::{
    OracleJob, OraclePolicy, OracleResult, OracleSettings, Semantics, simulate,
};

/// A job of virtual cluster 0 whose estimate is the truth.
fn job(gpus: u32, submit_s: u64, duration_s: u64) -> OracleJob {
    OracleJob { id: 0, vc: 0, gpus, submit_s, duration_s, estimate_s: duration_s as i64 }
}

/// Jobs of one virtual cluster with `nodes` 8-GPU nodes, clock from 0.
fn run(
    policy: OraclePolicy,
    semantics: Semantics,
    nodes: u32,
    jobs: &[OracleJob],
) -> Vec<OracleResult> {
    simulate(&OracleSettings::new(policy, semantics), &[nodes], jobs, 0)
}

fn starts(results: &[OracleResult]) -> Vec<u64> {
    results.iter().map(|r| r.start_s).collect()
}

fn result(start_s: u64, end_s: u64, queue_s: u64, preemptions: u32) -> OracleResult {
    OracleResult { start_s, end_s, queue_s, preemptions }
}

#[test]
fn fifo_lets_nothing_pass_a_head_that_does_not_fit() {
    let jobs = [job(6, 0, 10), job(4, 1, 5), job(2, 2, 1)];
    let ended = run(Fifo, Artifact, 1, &jobs);
    assert_eq!(ended, [result(0, 10, 0, 0), result(10, 15, 9, 0), result(10, 11, 8, 0)]);
}

#[test]
fn sjf_starts_a_shorter_later_job_but_waits_for_a_blocked_shortest_one() {
    let jobs = [job(6, 0, 10), job(4, 1, 5), job(2, 2, 1), job(1, 4, 6)];
    assert_eq!(starts(&run(Sjf, Artifact, 1, &jobs)), [0, 10, 2, 10]);
}

#[test]
fn qssf_serves_a_fresh_batch_by_width_in_the_artifact_and_by_estimate_in_plain() {
    let jobs = [job(8, 0, 1), job(7, 0, 100)];
    assert_eq!(starts(&run(Qssf, Artifact, 1, &jobs)), [100, 0]);
    assert_eq!(starts(&run(Qssf, Plain, 1, &jobs)), [0, 1]);
}

#[test]
fn qssf_turns_to_estimates_from_the_second_second_of_waiting() {
    let jobs = [job(2, 0, 10), job(8, 5, 1), job(7, 5, 100)];
    assert_eq!(starts(&run(Qssf, Artifact, 1, &jobs)), [0, 10, 11]);
}

#[test]
fn preemptable_jobs_hold_their_gpus_a_second_longer_in_the_artifact_only() {
    for policy in [Srtf, Tiresias] {
        assert_eq!(run(policy, Artifact, 1, &[job(1, 0, 7)]), [result(0, 8, 0, 0)]);
        assert_eq!(run(policy, Plain, 1, &[job(1, 0, 7)]), [result(0, 7, 0, 0)]);
    }
}

#[test]
fn srtf_displaces_on_a_tie_in_the_artifact_only() {
    let jobs = [job(8, 0, 100), job(8, 50, 50)];
    let artifact = run(Srtf, Artifact, 1, &jobs);
    assert_eq!(artifact, [result(0, 192, 51, 1), result(50, 101, 0, 0)]);
    let plain = run(Srtf, Plain, 1, &jobs);
    assert_eq!(plain, [result(0, 100, 0, 0), result(100, 150, 50, 0)]);
}

#[test]
fn a_job_wider_than_a_node_pays_the_larger_preemption_cost() {
    let jobs = [job(16, 0, 100), job(1, 20, 10)];
    let ended = run(Srtf, Plain, 2, &jobs);
    assert_eq!(ended, [result(0, 30 + 80 + 60, 10, 1), result(20, 30, 0, 0)]);
}

#[test]
fn a_job_chosen_by_count_waits_while_no_node_has_its_shape() {
    let jobs = [job(5, 0, 100), job(5, 0, 200), job(6, 1, 10)];
    let ended = run(Srtf, Plain, 2, &jobs);
    assert_eq!(ended, [result(0, 100, 0, 0), result(0, 200, 0, 0), result(100, 110, 99, 0)]);
}

#[test]
fn tiresias_decides_on_the_minute_in_the_artifact_also_after_an_idle_gap() {
    let jobs = [job(1, 1, 5), job(1, 1003, 5)];
    assert_eq!(starts(&run(Tiresias, Artifact, 1, &jobs)), [60, 1020]);
    assert_eq!(starts(&run(Tiresias, Plain, 1, &jobs)), [1, 1003]);
}

#[test]
fn tiresias_demotes_at_the_threshold_in_plain_and_above_it_in_the_artifact() {
    // Ten GPUs attain 18,000 GPU-seconds after 1,800 s, which is a minute mark.
    let jobs = [job(10, 0, 2000), job(10, 10, 5)];
    let with = |semantics| {
        let settings =
            OracleSettings { gpus_per_node: 10, ..OracleSettings::new(Tiresias, semantics) };
        simulate(&settings, &[1], &jobs, 0)
    };
    let plain = with(Plain);
    assert_eq!(plain, [result(0, 1805 + 200 + 40, 5, 1), result(1800, 1805, 1790, 0)]);
    let artifact = with(Artifact);
    assert_eq!(artifact, [result(0, 1920 + 140 + 40 + 1, 60, 1), result(1860, 1866, 1850, 0)]);
}

#[test]
fn virtual_clusters_share_nothing_and_results_keep_the_order_given() {
    let in_vc_1 = |job: OracleJob| OracleJob { vc: 1, ..job };
    let jobs = [in_vc_1(job(8, 9, 1)), job(8, 0, 20), in_vc_1(job(8, 3, 10)), job(8, 1, 5)];
    let settings = OracleSettings::new(Fifo, Artifact);
    assert_eq!(starts(&simulate(&settings, &[1, 1], &jobs, 0)), [13, 0, 3, 20]);
}

#[test]
#[should_panic(expected = "needs 9 gpus of 8, so it never starts")]
fn a_job_wider_than_its_cluster_is_refused_instead_of_running_for_ever() {
    run(Fifo, Artifact, 1, &[job(9, 0, 1)]);
}
