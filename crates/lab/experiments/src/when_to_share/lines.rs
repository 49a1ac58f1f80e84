//! Which policies run, and what they know of run times.

use super::truth::{Pairs, TABLES};
use super::{JOBS, LOADS, SLOWDOWNS};
use deepshare_engine::{CapacityMode, Placer};
use deepshare_model::Span;
use deepshare_policies::{BsbfSettings, PairOrder, PolicyConfig};
use deepshare_sim::{Estimator, SimSettings};

/// Attained service at which Tiresias' jobs drop to the next of three queues, GPU-seconds.
const THRESHOLDS: [u64; 2] = [3_250, 7_200];

/// A policy; by default it knows run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    Fifo,
    Tiresias,
    Sjf,
    SjfSkip,
    /// With estimates that are the mean of what has ended, as those below.
    SjfSkipMean,
    Srtf,
    Ffs,
    FfsMean,
    Bsbf,
    BsbfMean,
    /// Ranked by what sharing gains.
    BsbfBenefit,
    /// Ranked by what it gains for each GPU.
    BsbfPerGpu,
}

use Line::{
    Bsbf, BsbfBenefit, BsbfMean, BsbfPerGpu, Ffs, FfsMean, Fifo, Sjf, SjfSkip, SjfSkipMean, Srtf,
    Tiresias,
};

/// Those that do not share.
pub(super) const ALONE: [Line; 6] = [Fifo, Tiresias, Sjf, SjfSkip, SjfSkipMean, Srtf];
const SHARING: [Line; 6] = [Ffs, FfsMean, Bsbf, BsbfMean, BsbfBenefit, BsbfPerGpu];
const SWEPT: [Line; 2] = [Ffs, Bsbf];

impl Line {
    pub(super) fn shares(self) -> bool {
        SHARING.contains(&self)
    }

    fn policy(self) -> PolicyConfig {
        let bsbf = |order| PolicyConfig::SjfBsbf(BsbfSettings { order, ..BsbfSettings::default() });
        let named = |name| PolicyConfig::by_name(name).expect("the policy's own name");
        match self {
            Fifo => named("fifo"),
            Sjf => named("sjf"),
            SjfSkip | SjfSkipMean => PolicyConfig::Sjf { skip: true },
            Srtf => named("srtf"),
            Ffs | FfsMean => named("sjf-ffs"),
            Bsbf | BsbfMean => bsbf(PairOrder::Completion),
            BsbfBenefit => bsbf(PairOrder::Benefit),
            BsbfPerGpu => bsbf(PairOrder::BenefitPerGpu),
            Tiresias => {
                let mut tiresias = named("tiresias");
                if let PolicyConfig::Tiresias { thresholds, .. } = &mut tiresias {
                    *thresholds = THRESHOLDS.map(|secs| Span::from_secs(secs).on(1)).to_vec();
                }
                tiresias
            }
        }
    }

    /// One pool, any GPUs do, as in the source.
    pub(super) fn settings(self, seed: u64) -> SimSettings {
        let mut settings = SimSettings::new(self.policy());
        settings.engine.capacity = CapacityMode::Pool;
        settings.engine.placer = Placer::NodeOrder;
        settings.seed = seed;
        if matches!(self, SjfSkipMean | FfsMean | BsbfMean) {
            settings.estimates = Estimator::RunningMean;
        }
        settings
    }
}

/// One line of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) jobs: usize,
    pub(super) load_milli: u32,
    pub(super) pairs: Pairs,
    pub(super) line: Line,
}

/// What runs on the same jobs at the same load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) jobs: usize,
    pub(super) load_milli: u32,
}

impl Cell {
    /// All of them.
    pub(super) fn all() -> impl Iterator<Item = Cell> {
        JOBS.into_iter()
            .flat_map(|jobs| LOADS.into_iter().map(move |load_milli| Cell { jobs, load_milli }))
    }

    pub(super) fn key(self, pairs: Pairs, line: Line) -> Key {
        let pairs = if line.shares() { pairs } else { Pairs::None };
        Key { jobs: self.jobs, load_milli: self.load_milli, pairs, line }
    }

    /// Its load.
    pub(super) fn load(self) -> f64 {
        f64::from(self.load_milli) / 1_000.0
    }

    /// Every run of it.
    pub(super) fn keys(self) -> Vec<Key> {
        let mut keys: Vec<Key> = ALONE.map(|line| self.key(Pairs::None, line)).to_vec();
        for table in 0..TABLES.len() {
            keys.extend(SHARING.map(|line| self.key(Pairs::Table(table), line)));
        }
        for slowdown in SLOWDOWNS {
            keys.extend(SWEPT.map(|line| self.key(Pairs::Constant(slowdown), line)));
        }
        keys
    }
}
