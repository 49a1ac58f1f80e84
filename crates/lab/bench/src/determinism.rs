//! The same inputs give the same results, on any number of threads, in any process.

use crate::interference::drawn_interference;
use deepshare_engine::CapacityMode;
use deepshare_metrics::result_hash;
use deepshare_model::Span;
use deepshare_policies::PolicyConfig;
use deepshare_sim::{
    Actuation, Classes, Delay, Estimator, OutageModel, Outages, SimError, SimSettings, Watch,
    compat, simulate, simulate_all,
};
use deepshare_trace::generate::{GeneratorOptions, venus_like};
use std::fmt::Write;
use std::num::NonZeroUsize;

/// Why no results can be compared.
#[derive(Debug, thiserror::Error)]
pub enum DeterminismError {
    /// A replay failed.
    #[error("the replay {case:?} of the generated week failed: {why}")]
    Replay {
        /// Policy and world.
        case: String,
        /// What went wrong.
        why: SimError,
    },
    /// The machine refused threads.
    #[error("cannot start {threads} threads: {why}")]
    Threads {
        /// How many.
        threads: NonZeroUsize,
        /// What the machine said.
        why: rayon::ThreadPoolBuildError,
    },
}

/// A world in which a run may go wrong in every way the simulator knows.
fn faults(settings: &mut SimSettings) {
    let up_to = |seconds| Delay { min: Span::ZERO, max: Span::from_secs(seconds) };
    settings.actuation = Actuation {
        bind: up_to(3),
        start: up_to(20),
        stop: up_to(30),
        news: up_to(2),
        bind_failure_milli: 20,
        rejection_milli: 10,
        refusal_milli: 50,
        loss_milli: 10,
        doubling_milli: 20,
        resync: Span::from_secs(60),
    };
    settings.outages = Outages::Drawn(OutageModel {
        mean_up: Span::from_secs(30 * 86_400),
        mean_down: Span::from_secs(4 * 3_600),
    });
    settings.restart.checkpoint_interval = Span::from_secs(1_800);
    settings.seed = 7;
}

/// Idle quota is lent, and guaranteed jobs spill.
fn borrow(settings: &mut SimSettings) {
    settings.engine.capacity = CapacityMode::Elastic;
    settings.classes = Classes::Coin { best_effort_milli: 400 };
    if let PolicyConfig::DeepShare(deepshare) = &mut settings.policy {
        deepshare.spill = true;
    }
}

/// Every policy in an ideal world and in one with faults, as the Lucid artifact has it, and those
/// that lend with something to lend.
fn cases() -> Vec<(String, SimSettings)> {
    let mut cases = Vec::new();
    for name in PolicyConfig::NAMES {
        let policy = PolicyConfig::by_name(name).expect("its own list of names");
        let mut plain = SimSettings::new(policy);
        if name == "qssf" {
            plain.estimates = Estimator::RunningMean;
        }
        let mut faulty = plain.clone();
        faults(&mut faulty);
        let mut lucid = plain.clone();
        compat::lucid(&mut lucid);
        cases.push((format!("{name} plain"), plain.clone()));
        cases.push((format!("{name} faults"), faulty.clone()));
        match name {
            "elastic-quota" | "deepshare" => {
                for (world, mut elastic) in [("plain", plain), ("faults", faulty)] {
                    borrow(&mut elastic);
                    cases.push((format!("{name} elastic {world}"), elastic));
                }
            }
            "easy-backfill" | "conservative-backfill" => {}
            _ => cases.push((format!("{name} lucid"), lucid)),
        }
    }
    cases
}

/// Replays a generated week in every case on so many threads. One line for each case: its name,
/// the hash of its results, and counts that a hash of results may not show.
///
/// # Errors
/// If a replay fails or there are no threads.
pub fn hashes(threads: NonZeroUsize) -> Result<String, DeterminismError> {
    let (trace, cluster) = venus_like(11, &GeneratorOptions::days(7));
    let (names, mut settings): (Vec<String>, Vec<SimSettings>) = cases().into_iter().unzip();
    let shared = drawn_interference(&trace, 11);
    for settings in settings.iter_mut().filter(|settings| settings.policy.shares()) {
        settings.interference = Some(shared.clone());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build();
    let pool = pool.map_err(|why| DeterminismError::Threads { threads, why })?;
    let watch = Watch::default();
    let runs = pool.install(|| simulate_all(&trace, &cluster, &settings, &watch));
    let runs = runs.map_err(|why| {
        let fails = |settings: &&SimSettings| simulate(&trace, &cluster, settings, &watch).is_err();
        let at = settings.iter().position(|settings| fails(&settings));
        DeterminismError::Replay { case: at.map_or_else(String::new, |at| names[at].clone()), why }
    })?;
    let mut lines = String::new();
    for (name, run) in names.iter().zip(&runs) {
        let counters = run.counters;
        let (events, commands, rounds) = (counters.events, counters.commands, counters.rounds);
        writeln!(
            lines,
            "{} events={events} commands={commands} rounds={rounds} {name}",
            result_hash(&run.jobs)
        )
        .expect("writing to a string cannot fail");
    }
    Ok(lines)
}
