//! Whole replays of a generated three-day history.

use crate::interference::drawn_interference;
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Estimator, SimSettings, Watch, simulate};
use deepshare_trace::generate::{GeneratorOptions, venus_like};

/// Jobs of the history.
pub(super) const JOBS: u32 = 2_753;

pub(super) fn generate(units: u32) {
    for seed in 0..units {
        let (trace, _) = venus_like(u64::from(seed), &GeneratorOptions::days(3));
        assert_eq!(trace.jobs.len(), JOBS as usize);
    }
}

fn replay(policy: &str, units: u32) {
    let (trace, cluster) = venus_like(0, &GeneratorOptions::days(3));
    let policy = PolicyConfig::by_name(policy).expect("a known policy");
    let mut settings = SimSettings::new(policy);
    if settings.policy.name() == "qssf" {
        settings.estimates = Estimator::RunningMean;
    }
    if settings.policy.shares() && settings.policy.name() != "deepshare" {
        settings.interference = Some(drawn_interference(&trace, 0));
    }
    for _ in 0..units {
        let run = simulate(&trace, &cluster, &settings, &Watch::default());
        let run = run.expect("the generated history can be replayed");
        assert!(run.jobs.iter().all(|job| job.end.is_some()));
    }
}

pub(super) fn fifo(units: u32) {
    replay("fifo", units);
}

pub(super) fn sjf(units: u32) {
    replay("sjf", units);
}

pub(super) fn srtf(units: u32) {
    replay("srtf", units);
}

pub(super) fn qssf(units: u32) {
    replay("qssf", units);
}

pub(super) fn tiresias(units: u32) {
    replay("tiresias", units);
}

/// With drawn profiles, as the others that share.
pub(super) fn lucid(units: u32) {
    replay("lucid", units);
}

pub(super) fn sjf_bsbf(units: u32) {
    replay("sjf-bsbf", units);
}

pub(super) fn sjf_ffs(units: u32) {
    replay("sjf-ffs", units);
}

pub(super) fn tensorshare(units: u32) {
    replay("tensorshare", units);
}

pub(super) fn gandiva(units: u32) {
    replay("gandiva", units);
}

pub(super) fn easy_backfill(units: u32) {
    replay("easy-backfill", units);
}

pub(super) fn conservative_backfill(units: u32) {
    replay("conservative-backfill", units);
}

pub(super) fn elastic_quota(units: u32) {
    replay("elastic-quota", units);
}

pub(super) fn deepshare(units: u32) {
    replay("deepshare", units);
}
