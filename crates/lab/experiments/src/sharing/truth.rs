//! Profiles and pairs of the published month, and what policies are told of them.

use crate::ExperimentError;
use crate::month::Month;
use crate::tables::{Load, Table, run};
use deepshare_interference::{
    Assignment, ContentionModel, Coverage, Mechanism, PairOptions, PredictionQuality,
    RetentionMatrix, read_pairs, read_profiles,
};
use deepshare_lucid::read_scores;
use deepshare_sim::{Classes, Interference, SharedInterference};
use deepshare_trace::Trace;
use std::path::Path;
use std::sync::Arc;

/// What jobs of the month do to each other on one GPU.
pub struct Truth {
    assignment: Assignment,
    matrix: RetentionMatrix,
    coverage: Coverage,
    scores: Vec<u8>,
    unmeasured: f64,
}

/// Drawn profiles of jobs that have none, and pairs by the contention model for MPS.
pub fn drawn(trace: &Trace, seed: u64) -> Interference {
    let assignment = Assignment::drawn(trace, seed);
    let model = ContentionModel::default();
    let (truth, _) = RetentionMatrix::truth(&assignment.catalogue, None, &model, Mechanism::Mps);
    let quality = PredictionQuality::RSquared(0.902);
    let (predicted, _) = truth.predicted(quality, seed);
    let mut interference = Interference::new(&assignment, &truth, &predicted);
    interference.predicted.errors_ppm = truth.error_percentiles(quality, seed);
    interference
}

impl Truth {
    /// The published profiles and pairs; pairs that were not measured by the contention model.
    ///
    /// # Errors
    /// If a file of the data folder cannot be used.
    pub fn venus(data: &Path, month: &Month) -> Result<Truth, ExperimentError> {
        let folder = data.join("lucid_venus");
        let profiles = read_profiles(&folder.join("venus_sept2020_profiles.csv.zst"))?;
        let assignment = Assignment::from_file(&profiles, &month.trace)?;
        let pairs = read_pairs(&folder.join("colocate_info.csv"), &PairOptions::default())?;
        let model = ContentionModel::default();
        let catalogue = &assignment.catalogue;
        let (matrix, coverage) =
            RetentionMatrix::truth(catalogue, Some(&pairs), &model, Mechanism::TimeSlicing);
        let scores = read_scores(&folder.join("single_data.csv"))?.by_class(catalogue)?;
        let (mut all, mut without) = (0.0, 0.0);
        for (job, &class) in month.trace.jobs.iter().zip(&assignment.of_job) {
            let gpu_time = job.duration.on(job.gpus).as_gpu_secs();
            all += gpu_time;
            without += if coverage.is_unmeasured(class) { gpu_time } else { 0.0 };
        }
        let unmeasured = without / f64::max(all, 1.0);
        Ok(Truth { assignment, matrix, coverage, scores, unmeasured })
    }

    fn told(&self, r_squared: f64, seed: u64) -> SharedInterference {
        let quality = PredictionQuality::RSquared(r_squared);
        let (predicted, _) = self.matrix.predicted(quality, seed);
        let mut told = Interference::new(&self.assignment, &self.matrix, &predicted);
        told.predicted.errors_ppm = self.matrix.error_percentiles(quality, seed);
        told.predicted.scores.clone_from(&self.scores);
        Arc::new(told)
    }

    /// What policies are told by a predictor of this R², one a seed.
    pub fn by_seed(&self, r_squared: f64, seeds: u64) -> Vec<SharedInterference> {
        (1..=seeds).map(|seed| self.told(r_squared, seed)).collect()
    }

    /// The same load under predictors of several qualities.
    ///
    /// # Errors
    /// If a run fails.
    pub fn predictors(
        &self,
        month: &Month,
        classes: Classes,
        seeds: u64,
    ) -> Result<Table, ExperimentError> {
        let mut table: Option<Table> = None;
        for r_squared in [1.0, 0.902, 0.7, 0.4] {
            let interference = self.by_seed(r_squared, seeds);
            let columns = super::COLUMNS;
            let interference = interference.as_slice();
            let load = Load { month, nodes: 100, classes, seeds, interference, columns };
            let mut case = super::lines::literal_on();
            case.name = format!("predictor with R² = {r_squared}");
            let one = run("100 nodes: how good the predictor is", &load, vec![case])?;
            match &mut table {
                None => table = Some(one),
                Some(table) => table.lines.extend(one.lines),
            }
        }
        Ok(table.expect("there are several qualities"))
    }

    /// Where the figures come from, in words.
    pub fn describe(&self) -> String {
        let share = 100.0 * self.coverage.table_share();
        let unmeasured = 100.0 * self.unmeasured;
        format!(
            "\n{} profiles; {share:.1} % of their ordered pairs as published, the others by the \
             contention model for time slicing. Models without any published pair hold \
             {unmeasured:.1} % of the GPU time.\n",
            self.matrix.classes()
        )
    }
}
