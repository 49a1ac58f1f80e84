//! What each profile keeps of its speed beside each other one.

use crate::catalogue::Catalogue;
use crate::contention::{ContentionModel, Mechanism};
use crate::estimate::{PredictionQuality, WHOLE, r_squared, slowdown_error};
use crate::pairs::{Measured, PairTable};
use deepshare_model::ProfileClassId;

/// Retention of every ordered pair of profiles, in millionths of the solo speed: 1 to 1,000,000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionMatrix {
    classes: usize,
    values: Vec<u32>,
}

/// Where the retention of a pair comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairSource {
    /// The table.
    Table,
    /// The contention model: the table has no such pair, or there is no table.
    Model,
    /// The contention model, though the table says that both do not fit into memory.
    DoesNotFit,
}

/// Which pairs of a matrix come from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    classes: usize,
    sources: Vec<PairSource>,
}

impl RetentionMatrix {
    /// The truth of `catalogue`: as `table` has it, and where it has nothing, as `model` says for
    /// `mechanism`. What was measured above 1 is noise and becomes 1.
    ///
    /// A table is what it is, whatever its own mechanism: compare [`PairTable::mechanism`] first.
    pub fn truth(
        catalogue: &Catalogue,
        table: Option<&PairTable>,
        model: &ContentionModel,
        mechanism: Mechanism,
    ) -> (RetentionMatrix, Coverage) {
        let classes = catalogue.len();
        let mut values = Vec::with_capacity(classes * classes);
        let mut sources = Vec::with_capacity(classes * classes);
        for own in catalogue.profiles() {
            for other in catalogue.profiles() {
                let found = table.and_then(|table| table.find(&own.workload, &other.workload));
                let (value, source) = match found {
                    Some(Measured::Retention(value)) => (value, PairSource::Table),
                    Some(Measured::DoesNotFit) => {
                        (model.retention(own, other, mechanism), PairSource::DoesNotFit)
                    }
                    None => (model.retention(own, other, mechanism), PairSource::Model),
                };
                values.push(millionths(value));
                sources.push(source);
            }
        }
        (RetentionMatrix { classes, values }, Coverage { classes, sources })
    }

    /// A matrix from its rows: retention of each profile (outer) beside each (inner), millionths.
    ///
    /// # Errors
    /// If it is not square or a value is 0 or above 1,000,000.
    pub fn from_rows(rows: &[Vec<u32>]) -> Result<RetentionMatrix, NotRetention> {
        let classes = rows.len();
        for (own, row) in rows.iter().enumerate() {
            if row.len() != classes {
                return Err(NotRetention::NotSquare { row: own, values: row.len(), classes });
            }
            if let Some(other) = row.iter().position(|value| !(1..=WHOLE).contains(value)) {
                return Err(NotRetention::OutOfRange { own, other, value: row[other] });
            }
        }
        Ok(RetentionMatrix { classes, values: rows.concat() })
    }

    /// What `own` keeps of its solo speed beside `other`, in millionths.
    ///
    /// # Panics
    /// If an id is not of the matrix.
    pub fn get(&self, own: ProfileClassId, other: ProfileClassId) -> u32 {
        let (own, other) = (own.index(), other.index());
        assert!(own < self.classes && other < self.classes, "profile classes are of the matrix");
        self.values[own * self.classes + other]
    }

    /// How many profiles there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// One row for each profile: what it keeps beside each.
    pub fn as_rows(&self) -> impl Iterator<Item = &[u32]> {
        self.values.chunks(self.classes.max(1))
    }

    /// What a predictor with this R² would say instead, and the R² of what it says, over all
    /// ordered pairs. Errors are drawn independently for each from a normal distribution, scaled so
    /// that R² is as asked after clamping to 1 and a million; 1 gives the truth. If the truth does
    /// not vary, R² has no meaning, and the truth is given.
    pub fn estimated(&self, r_squared: f64, seed: u64) -> (RetentionMatrix, f64) {
        self.predicted(PredictionQuality::RSquared(r_squared), seed)
    }

    /// What a predictor with this mean absolute error of slowdowns (1/retention) would say instead,
    /// and the error of what it says, over all ordered pairs. Errors are drawn independently for each
    /// from a normal distribution, scaled so that their mean is as asked after clamping to slowdowns
    /// of 1 and more; 0 gives the truth. If clamping keeps it below what was asked, it stays below.
    pub fn estimated_slowdown(&self, mae: f64, seed: u64) -> (RetentionMatrix, f64) {
        self.predicted(PredictionQuality::SlowdownError(mae), seed)
    }

    /// [`RetentionMatrix::estimated`] or [`RetentionMatrix::estimated_slowdown`], and the quality that
    /// was reached.
    pub fn predicted(&self, quality: PredictionQuality, seed: u64) -> (RetentionMatrix, f64) {
        let (values, reached) = quality.predict(&self.values, seed);
        (RetentionMatrix { classes: self.classes, values }, reached)
    }

    /// How far slowdowns of the predictor with this quality and seed are from true ones on pairs that
    /// it has not seen: the percentiles 0 to 100 of true less predicted, millionths. They are of at
    /// least 10,000 errors with its noise, drawn apart from those in what it says. Empty if there is
    /// no pair, zeros if nothing is wrong.
    pub fn error_percentiles(&self, quality: PredictionQuality, seed: u64) -> Vec<i32> {
        quality.error_percentiles(&self.values, seed)
    }

    /// R² of this matrix as a prediction of `truth`, over all ordered pairs.
    ///
    /// # Panics
    /// If the two are not of the same profiles.
    pub fn r_squared(&self, truth: &RetentionMatrix) -> f64 {
        assert_eq!(self.classes, truth.classes, "both are of the same profiles");
        r_squared(&truth.values, &self.values)
    }

    /// Mean absolute error of the slowdowns of this matrix as a prediction of `truth`, over all ordered
    /// pairs.
    ///
    /// # Panics
    /// If the two are not of the same profiles.
    pub fn slowdown_error(&self, truth: &RetentionMatrix) -> f64 {
        assert_eq!(self.classes, truth.classes, "both are of the same profiles");
        slowdown_error(&truth.values, &self.values)
    }
}

impl Coverage {
    /// Where the retention of `own` beside `other` comes from.
    ///
    /// # Panics
    /// If an id is not of the matrix.
    pub fn of(&self, own: ProfileClassId, other: ProfileClassId) -> PairSource {
        let (own, other) = (own.index(), other.index());
        assert!(own < self.classes && other < self.classes, "profile classes are of the matrix");
        self.sources[own * self.classes + other]
    }

    /// Ordered pairs that come from this source.
    pub fn count(&self, source: PairSource) -> usize {
        self.sources.iter().filter(|s| **s == source).count()
    }

    /// Share of ordered pairs that come from the table, 0 to 1; 0 if there is no pair.
    pub fn table_share(&self) -> f64 {
        self.count(PairSource::Table) as f64 / self.sources.len().max(1) as f64
    }

    /// True if the table has no pair at all with this profile.
    ///
    /// # Panics
    /// If the id is not of the matrix.
    pub fn is_unmeasured(&self, class: ProfileClassId) -> bool {
        let row = &self.sources[class.index() * self.classes..][..self.classes];
        row.iter().all(|source| *source == PairSource::Model)
    }

    /// Unordered pairs that the table says do not fit into memory, each once.
    pub fn does_not_fit(&self) -> Vec<(ProfileClassId, ProfileClassId)> {
        let id = ProfileClassId::from_index;
        let pairs = (0..self.classes).flat_map(|one| (one..self.classes).map(move |o| (one, o)));
        let unfit = |&(one, other): &(usize, usize)| {
            self.sources[one * self.classes + other] == PairSource::DoesNotFit
        };
        pairs.filter(unfit).map(|(one, other)| (id(one), id(other))).collect()
    }
}

/// Why rows are no matrix of retentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRetention {
    /// A row is too short or too long.
    #[error("row {row} has {values} values for {classes} profiles; give one for each")]
    NotSquare {
        /// The row, from 0.
        row: usize,
        /// Its values.
        values: usize,
        /// How many it should have.
        classes: usize,
    },
    /// A value is no retention.
    #[error("{value} in row {own}, column {other} is no retention; give 1 to 1,000,000 millionths")]
    OutOfRange {
        /// The row, from 0.
        own: usize,
        /// The column, from 0.
        other: usize,
        /// The value.
        value: u32,
    },
}

/// A retention in millionths, at least 1 and at most 1,000,000.
fn millionths(retention: f64) -> u32 {
    libm::round((retention * 1e6).clamp(1.0, f64::from(WHOLE))) as u32
}
