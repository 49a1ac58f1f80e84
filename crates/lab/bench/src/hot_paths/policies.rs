//! Rounds of single policies in a state that is hard on them.

use super::stage::Stage;
use deepshare_model::JobId;
use deepshare_policies::PolicyConfig;

const NODES: u32 = 125;
/// Longer than any of these stories.
const LONG_S: u64 = 1_000_000;

fn stage(policy: &str, gpus_per_node: u32) -> Stage {
    let policy = PolicyConfig::by_name(policy).expect("a known policy").build();
    Stage::new(policy, NODES, gpus_per_node)
}

/// A job comes, starts and ends, beside 60 others that run.
pub(super) fn engine_job(units: u32) {
    let mut stage = stage("fifo", 8);
    for _ in 0..60 {
        stage.submit(5, LONG_S);
    }
    stage.wake();
    stage.expect_started(60);
    for index in 0..units {
        stage.submit(1 + index % 8, 100);
        stage.wake();
        let last = *stage.started.last().expect("a job that fits starts");
        stage.advance_s(100);
        stage.finish(last);
    }
    stage.expect_started(60 + units as usize);
}

/// Fills all but one GPU of each node with jobs that end one after another.
fn one_gpu_free_everywhere(policy: &str) -> (Stage, JobId, u64) {
    let mut stage = stage(policy, 8);
    for index in 0..NODES {
        stage.submit(7, LONG_S + u64::from(index) * 1_000);
    }
    stage.wake();
    stage.expect_started(NODES as usize);
    (stage, JobId(0), LONG_S)
}

pub(super) fn fifo_blocked(units: u32) {
    let (mut stage, running, run_time_s) = one_gpu_free_everywhere("fifo");
    for index in 0..1_000 {
        stage.submit(8 - index % 7, LONG_S);
    }
    stage.wake();
    for _ in 0..units {
        stage.round(running, run_time_s);
    }
    stage.expect_started(NODES as usize);
}

/// 500 GPUs, each with a job; longer jobs of several sizes wait.
fn nobody_moves(policy: &str, units: u32) {
    let mut stage = stage(policy, 4);
    for index in 0..500 {
        stage.submit(1, LONG_S / 2 + index);
    }
    stage.wake();
    stage.expect_started(500);
    for index in 0..1_000 {
        stage.submit(1 + index % 8, LONG_S + u64::from(index));
    }
    stage.wake();
    for _ in 0..units {
        stage.round(JobId(0), LONG_S / 2);
    }
    stage.expect_started(500);
}

pub(super) fn srtf_nobody_moves(units: u32) {
    nobody_moves("srtf", units);
}

pub(super) fn tiresias_nobody_moves(units: u32) {
    nobody_moves("tiresias", units);
}

/// The head wants the whole cluster; whoever fits would delay it.
pub(super) fn easy_blocked(units: u32) {
    let (mut stage, running, run_time_s) = one_gpu_free_everywhere("easy-backfill");
    stage.submit(NODES * 8, LONG_S);
    for index in 0..199 {
        stage.submit(1 + index % 8, 2 * LONG_S);
    }
    stage.wake();
    for _ in 0..units {
        stage.round(running, run_time_s);
    }
    stage.expect_started(NODES as usize);
}

pub(super) fn conservative_plan(units: u32) {
    let (mut stage, ..) = one_gpu_free_everywhere("conservative-backfill");
    for index in 0..100 {
        stage.submit(2 + index % 7, 2_000 + u64::from(index % 10) * 500);
    }
    stage.wake();
    for index in 0..units {
        stage.submit(2 + index % 7, 2_000 + u64::from(index % 10) * 500);
        stage.wake();
    }
    stage.expect_started(NODES as usize);
    assert_eq!(stage.waiting(), 100 + units);
}
