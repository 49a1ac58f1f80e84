//! Sixteen GPUs and fifty jobs, after Fig. 12 of the paper: hard quotas and DeepShare, each without
//! and with sharing.

use crate::ExperimentError;
use crate::figures::Interval;
use crate::tables::say;
use deepshare_engine::CapacityMode;
use deepshare_model::Time;
use deepshare_policies::{DeepShareSettings, PolicyConfig};
use deepshare_sim::{SimSettings, Watch, simulate};
use deepshare_trace::generate::testbed;
use std::sync::Arc;

const SEEDS: u64 = 20;

/// Makespan, mean JCT and mean wait of one run, seconds.
type Outcome = [f64; 3];

/// The four set-ups and the paper's figures of them (those it prints).
const SETUPS: [(&str, bool, bool, [Option<f64>; 3]); 4] = [
    ("Hard", false, false, [Some(4_429.7), Some(1_479.5), Some(704.9)]),
    ("Hard + Colocate", false, true, [None, None, Some(690.9)]),
    ("DeepShare", true, false, [Some(3_368.8), Some(1_205.6), Some(444.2)]),
    ("DeepShare + Colocate", true, true, [Some(2_994.5), None, Some(232.8)]),
];

fn one(seed: u64, elastic: bool, shares: bool) -> Result<Outcome, ExperimentError> {
    let (trace, cluster) = testbed(seed);
    let mut interference = super::truth::drawn(&trace, seed);
    // A100s.
    interference.device_memory_mib = 40_960;
    let mut policy = DeepShareSettings::default();
    policy.colocation.residents = if shares { 2 } else { 1 };
    policy.order_by_qad = elastic;
    policy.order_by_time = elastic;
    policy.reclaim = elastic;
    let mut settings = SimSettings::new(PolicyConfig::DeepShare(policy));
    settings.engine.capacity = if elastic { CapacityMode::Elastic } else { CapacityMode::Hard };
    settings.seed = seed;
    settings.interference = Some(Arc::new(interference));
    let failed =
        |why| ExperimentError::Run { case: "the testbed".to_owned(), seed, why: Box::new(why) };
    let run = simulate(&trace, &cluster, &settings, &Watch::default()).map_err(failed)?;
    let count = run.jobs.len() as f64;
    let first = run.jobs.iter().map(|job| job.submit).min().unwrap_or(Time::ZERO);
    let last = run.jobs.iter().filter_map(|job| job.end).max().unwrap_or(first);
    let jct: f64 = run.jobs.iter().filter_map(|job| Some(job.jct()?.as_secs_f64())).sum();
    let wait: f64 = run.jobs.iter().map(|job| job.waited.as_secs_f64()).sum();
    Ok([last.saturating_since(first).as_secs_f64(), jct / count, wait / count])
}

/// The part of the page on the testbed.
pub(super) fn page() -> Result<String, ExperimentError> {
    let mut runs: Vec<Vec<Outcome>> = Vec::new();
    for (_, elastic, shares, _) in SETUPS {
        let outcomes: Result<Vec<Outcome>, ExperimentError> =
            (1..=SEEDS).map(|seed| one(seed, elastic, shares)).collect();
        runs.push(outcomes?);
    }
    let mut text = String::new();
    say(
        &mut text,
        "\n### The testbed: 16 GPUs, 50 jobs (preset `testbed`, seeds 1 to 20)\n\n\
         Fig. 12 of the paper; its jobs and their durations are not published, so ratios count. \
         Profiles are drawn, slowdowns are those of the contention model for MPS; estimates are the \
         true run times. Hard: first come, first served within hard quotas.\n\n\
         | | makespan, s | paper | mean JCT, s | paper | mean wait, s | paper |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let interval = |values: &mut dyn Iterator<Item = f64>, digits: usize| {
        let found = Interval::of(values.map(Some));
        found.map_or("–".to_owned(), |interval| interval.show(digits))
    };
    for ((name, .., paper), outcomes) in SETUPS.iter().zip(&runs) {
        say(&mut text, format!("| {name} |"));
        for (what, printed) in paper.iter().enumerate() {
            let ours = interval(&mut outcomes.iter().map(|outcome| outcome[what]), 0);
            let theirs = printed.map_or("–".to_owned(), |value| format!("{value:.0}"));
            say(&mut text, format!(" {ours} | {theirs} |"));
        }
        say(&mut text, "\n");
    }
    let ratios: [(&str, usize, usize, usize, &str); 5] = [
        ("makespan: DeepShare / Hard", 2, 0, 0, "0.761"),
        ("makespan: DeepShare + Colocate / Hard", 3, 0, 0, "0.676"),
        ("JCT: DeepShare / Hard", 2, 0, 1, "0.815"),
        ("JCT: DeepShare + Colocate / Hard + Colocate", 3, 1, 1, "0.66"),
        ("wait: DeepShare + Colocate / Hard + Colocate", 3, 1, 2, "0.337"),
    ];
    say(&mut text, "\n| ratio, paired by seed | ours | paper |\n| --- | ---: | ---: |\n");
    for (name, above, below, what, paper) in ratios {
        let pairs = runs[above].iter().zip(&runs[below]);
        let ours = interval(&mut pairs.map(|(a, b)| a[what] / b[what]), 3);
        say(&mut text, format!("| {name} | {ours} | {paper} |\n"));
    }
    Ok(text)
}
