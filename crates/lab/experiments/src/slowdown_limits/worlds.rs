//! Tables of what jobs do to each other, and what a predictor says of them.

use super::queue::{cluster, stream};
use crate::ExperimentError;
use deepshare_interference::{
    Assignment, Catalogue, ConfigurationsFile, ContentionModel, Coverage, Mechanism, PairOptions,
    PairTable, PredictionQuality, Profile, ProfileSource, RetentionMatrix, SHIPPED_CONFIGURATIONS,
    SHIPPED_PAIRS, read_pairs, read_profiles,
};
use deepshare_model::ProfileClassId;
use deepshare_sim::{Interference, SharedInterference};
use deepshare_trace::{Cluster, Trace, TraceError};
use rand::RngExt;
use std::path::Path;
use std::sync::Arc;

/// Mean absolute error of predicted slowdowns, on pairs not seen before.
pub const ERROR: f64 = 0.08;
/// The pool of 29 configurations.
const POOL: &str = "pool-29";
/// GPU memory of the V100s and P100s that Gavel measured on, and of the RTX 3090 of Lucid, MiB.
const MEMORY_MIB: (u32, u32) = (16_384, 24_576);
/// Purpose of the stream from which Lucid's configurations are drawn.
const DRAW: u64 = 0x4c55_4349;

/// Where jobs draw what they run.
enum Source {
    Pool(ConfigurationsFile),
    Profiles(Vec<Profile>),
}

/// A table of pairs and the configurations that jobs draw.
pub struct World {
    /// What it is called.
    pub name: String,
    source: Source,
    catalogue: Catalogue,
    matrix: RetentionMatrix,
    coverage: Coverage,
    memory_mib: u32,
}

/// What a policy is told of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The truth.
    Truth,
    /// What a predictor with [`ERROR`] says, and percentiles of its errors.
    Predicted,
}

impl World {
    /// Every table.
    ///
    /// # Errors
    /// If a file of the data folder cannot be used.
    pub fn all(data: &Path) -> Result<Vec<World>, ExperimentError> {
        let gavel = data.join("gavel").join("simulation_throughputs.json.zst");
        let of_type = |name: &str| {
            let gpu_type = Some(name.to_owned());
            read_pairs(&gavel, &PairOptions { gpu_type, ..PairOptions::default() })
        };
        let own = SHIPPED_PAIRS.iter().find(|one| one.name == POOL).expect("it is shipped");
        let own = own.pairs()?;
        Ok(vec![
            World::of_pool("pool-29, V100", Some(&own), Mechanism::Mps)?,
            World::of_pool("Gavel, P100", Some(&of_type("p100")?), Mechanism::Mps)?,
            World::of_pool("Gavel, K80", Some(&of_type("k80")?), Mechanism::Mps)?,
            World::of_pool("contention model, MPS", None, Mechanism::Mps)?,
            World::of_pool("contention model, time slices", None, Mechanism::TimeSlicing)?,
            World::lucid(data)?,
        ])
    }

    /// How far the V100 figures of the data folder are from those of the pool's own table, as the
    /// largest difference of retentions.
    ///
    /// # Errors
    /// If a file of the data folder cannot be used.
    pub fn own_against_gavel(&self, data: &Path) -> Result<f64, ExperimentError> {
        let gavel = data.join("gavel").join("simulation_throughputs.json.zst");
        let options = PairOptions { gpu_type: Some("v100".to_owned()), ..PairOptions::default() };
        let pairs = read_pairs(&gavel, &options)?;
        let model = ContentionModel::default();
        let (theirs, _) =
            RetentionMatrix::truth(&self.catalogue, Some(&pairs), &model, Mechanism::Mps);
        let both = self.matrix.as_rows().flatten().zip(theirs.as_rows().flatten());
        Ok(both.map(|(a, b)| f64::from(a.abs_diff(*b)) * 1e-6).fold(0.0, f64::max))
    }

    fn of_pool(
        name: &str,
        pairs: Option<&PairTable>,
        mechanism: Mechanism,
    ) -> Result<World, TraceError> {
        let pool = SHIPPED_CONFIGURATIONS.iter().find(|one| one.name == POOL);
        let pool = pool.expect("it is shipped").configurations()?;
        let profiles = pool.configurations.iter().map(|one| one.profile.clone()).collect();
        let catalogue = Catalogue::new(profiles);
        Ok(World::new(name, Source::Pool(pool), catalogue, pairs, mechanism, MEMORY_MIB.0))
    }

    /// Lucid's pairs, of the configurations that it has measured beside any other.
    fn lucid(data: &Path) -> Result<World, TraceError> {
        let folder = data.join("lucid_venus");
        let pairs = read_pairs(&folder.join("colocate_info.csv"), &PairOptions::default())?;
        let profiles = read_profiles(&folder.join("venus_sept2020_profiles.csv.zst"))?;
        let all = Catalogue::new(profiles.of_job.into_values().collect());
        let measured = |profile: &&Profile| {
            let beside = |other: &Profile| pairs.find(&profile.workload, &other.workload);
            all.profiles().iter().any(|other| beside(other).is_some())
        };
        let profiles: Vec<Profile> = all.profiles().iter().filter(measured).cloned().collect();
        let catalogue = Catalogue::new(profiles.clone());
        let (source, mechanism) = (Source::Profiles(profiles), Mechanism::TimeSlicing);
        Ok(World::new("Lucid", source, catalogue, Some(&pairs), mechanism, MEMORY_MIB.1))
    }

    fn new(
        name: &str,
        source: Source,
        catalogue: Catalogue,
        pairs: Option<&PairTable>,
        mechanism: Mechanism,
        memory_mib: u32,
    ) -> World {
        let model = ContentionModel::default();
        let (matrix, coverage) = RetentionMatrix::truth(&catalogue, pairs, &model, mechanism);
        World { name: name.to_owned(), source, catalogue, matrix, coverage, memory_mib }
    }

    /// The machines that the pairs were measured on, as far as memory goes.
    pub fn cluster(&self) -> Cluster {
        cluster(self.memory_mib)
    }

    fn assignment(&self, trace: &Trace, seed: u64) -> Result<Assignment, TraceError> {
        match &self.source {
            Source::Pool(pool) => {
                Assignment::from_pool(pool, trace, &self.cluster(), self.memory_mib, seed)
            }
            Source::Profiles(profiles) => {
                let mut rng = stream(seed, DRAW);
                let mut draw = || ProfileClassId::from_index(rng.random_range(0..profiles.len()));
                Ok(Assignment {
                    catalogue: self.catalogue.clone(),
                    of_job: trace.jobs.iter().map(|_| draw()).collect(),
                    training: vec![None; trace.jobs.len()],
                    source: ProfileSource::Drawn { seed },
                    averaged: 0,
                })
            }
        }
    }

    /// What the jobs of a queue do to each other, and what is told of it.
    ///
    /// # Errors
    /// If the pool has nothing for a job.
    pub fn interference(
        &self,
        trace: &Trace,
        told: Told,
        seed: u64,
    ) -> Result<SharedInterference, ExperimentError> {
        let assignment = self.assignment(trace, seed)?;
        let quality = PredictionQuality::SlowdownError(ERROR);
        let mut interference = match told {
            Told::Truth => Interference::new(&assignment, &self.matrix, &self.matrix),
            Told::Predicted => {
                let (predicted, _) = self.matrix.predicted(quality, seed);
                let mut told = Interference::new(&assignment, &self.matrix, &predicted);
                told.predicted.errors_ppm = self.matrix.error_percentiles(quality, seed);
                told
            }
        };
        interference.device_memory_mib = self.memory_mib;
        Ok(Arc::new(interference))
    }

    /// The error that a predictor of a seed reaches, and the percentile of its held-out errors.
    pub fn errors(&self, percent: usize, seed: u64) -> (f64, f64) {
        let quality = PredictionQuality::SlowdownError(ERROR);
        let (_, reached) = self.matrix.predicted(quality, seed);
        let errors = self.matrix.error_percentiles(quality, seed);
        (reached, errors.get(percent).map_or(0.0, |&error| f64::from(error) * 1e-6))
    }

    /// Of each configuration, the most slowed over the least, over partners that fit into memory
    /// beside it: the largest of all, and the median.
    pub fn largest_and_median_spread(&self) -> (f64, f64) {
        let slowdown = |own, other| 1e6 / f64::from(self.matrix.get(own, other));
        let ids = || self.catalogue.ids();
        let of = |own: ProfileClassId| {
            let fits = |other: &ProfileClassId| self.catalogue.fits(own, *other, self.memory_mib);
            let beside = || ids().filter(fits).map(|other| slowdown(own, other));
            beside().fold(1.0, f64::max) / beside().fold(f64::MAX, f64::min)
        };
        let mut spreads: Vec<f64> = ids().map(of).collect();
        spreads.sort_by(f64::total_cmp);
        (
            spreads.last().copied().unwrap_or(1.0),
            spreads.get(spreads.len() / 2).copied().unwrap_or(1.0),
        )
    }

    /// Unordered pairs that fit into memory and in which neither is slowed beyond a limit, over all
    /// that fit, per cent.
    pub fn within(&self, limit: f64) -> f64 {
        let slowdown = |own, other| 1e6 / f64::from(self.matrix.get(own, other));
        let ids = || self.catalogue.ids();
        let pairs = ids().flat_map(|one| ids().filter(move |&o| o >= one).map(move |o| (one, o)));
        let fitting = pairs.filter(|&(one, o)| self.catalogue.fits(one, o, self.memory_mib));
        let all: Vec<_> = fitting.collect();
        let most = |&(one, o): &(_, _)| f64::max(slowdown(one, o), slowdown(o, one));
        let kept = all.iter().filter(|pair| most(pair) <= limit).count();
        100.0 * kept as f64 / all.len().max(1) as f64
    }

    /// How many configurations, and how many of their ordered pairs were measured, per cent.
    pub fn size(&self) -> (usize, f64) {
        (self.catalogue.len(), 100.0 * self.coverage.table_share())
    }
}
