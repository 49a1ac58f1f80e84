//! The registry of figures: one table from which names, units, definitions, JSON and the
//! documentation come.

mod consistency;
mod job_figures;
mod limit_figures;
mod quota_figures;
mod run_figures;
mod shared_job_figures;
mod sharing_figures;

pub use consistency::Consistency;
pub use job_figures::JobFigures;
pub use limit_figures::{LimitFigures, Limited};
pub use quota_figures::QuotaFigures;
pub(crate) use quota_figures::assured_figures;
pub use run_figures::RunFigures;
pub use shared_job_figures::SharedJobFigures;
pub use sharing_figures::SharingFigures;

use crate::Distribution;
use crate::distribution::STATISTICS;
use deepshare_model::GpuTime;
use serde::{Serialize, Serializer};

/// Which way a figure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Tells about the input or the run; neither is better.
    Neither,
}

/// What a figure is computed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A set of jobs: given for the whole run and for every group.
    Jobs,
    /// The cluster: given for the whole run only.
    Run,
}

/// A figure as documented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name in JSON, unit last.
    pub name: String,
    /// Its unit: `s`, `GPU-s`, `jobs`, `1` for a ratio.
    pub unit: &'static str,
    /// What exactly it is.
    pub definition: String,
    /// Which way it should go.
    pub better: Better,
    /// What it is computed over.
    pub scope: Scope,
}

/// The value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A measured or derived number.
    Real(f64),
    /// There is nothing to compute it from, such as a mean over no jobs.
    Missing,
}

impl Value {
    /// The value as a float; `None` if missing.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Value::Count(count) => Some(count as f64),
            Value::Real(real) => Some(real),
            Value::Missing => None,
        }
    }

    fn of(real: Option<f64>) -> Value {
        real.filter(|real| real.is_finite()).map_or(Value::Missing, Value::Real)
    }
}

impl Serialize for Value {
    /// A JSON number, or `null` if missing.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Value::Count(count) => serializer.serialize_u64(count),
            Value::Real(real) => serializer.serialize_f64(real),
            Value::Missing => serializer.serialize_none(),
        }
    }
}

/// One row of the registry: a figure that is a single number of a `T`.
struct Scalar<T> {
    name: &'static str,
    unit: &'static str,
    better: Better,
    definition: &'static str,
    get: fn(&T) -> Value,
}

/// Rows of the registry that are a distribution of a `T`: one figure for each statistic.
struct Spread<T> {
    stem: &'static str,
    unit: &'static str,
    better: Better,
    definition: &'static str,
    get: fn(&T) -> &Option<Distribution>,
}

impl<T> Spread<T> {
    fn figures(&self, scope: Scope, of: &T) -> impl Iterator<Item = Valued> + use<'_, T> {
        let distribution = *(self.get)(of);
        let suffix = if self.unit == "s" { "_s" } else { "" };
        STATISTICS.iter().map(move |statistic| {
            let figure = Figure {
                name: format!("{}_{}{suffix}", self.stem, statistic.name),
                unit: self.unit,
                definition: format!("{} of {}", statistic.title, self.definition),
                better: self.better,
                scope,
            };
            (figure, Value::of(distribution.as_ref().map(statistic.get)))
        })
    }
}

/// A figure with its value.
pub type Valued = (Figure, Value);

/// Every figure, in the order tables list them.
pub fn registry() -> Vec<Figure> {
    let jobs = JobFigures::default().figures();
    let run = RunFigures::default().figures();
    let quota = QuotaFigures::default().figures();
    let sharing = SharingFigures::default().figures();
    jobs.into_iter().chain(run).chain(quota).chain(sharing).map(|(figure, _)| figure).collect()
}

fn ratio(part: GpuTime, whole: GpuTime) -> Value {
    Value::of((whole.0 > 0).then(|| part.0 as f64 / whole.0 as f64))
}

fn scalar_figures<T>(table: &[Scalar<T>], scope: Scope, of: &T) -> Vec<Valued> {
    let figure = |row: &Scalar<T>| Figure {
        name: row.name.to_owned(),
        unit: row.unit,
        definition: row.definition.to_owned(),
        better: row.better,
        scope,
    };
    table.iter().map(|row| (figure(row), (row.get)(of))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_end_in_their_unit() {
        let figures = registry();
        let names: BTreeSet<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names.len(), figures.len());
        for figure in &figures {
            let seconds = figure.name.ends_with("_s");
            let gpu_seconds = figure.name.ends_with("_gpu_s");
            assert_eq!(figure.unit == "GPU-s", gpu_seconds, "{}", figure.name);
            assert_eq!(figure.unit == "s", seconds && !gpu_seconds, "{}", figure.name);
        }
    }

    #[test]
    fn no_figure_passes_the_allocation_off_as_utilisation() {
        for figure in registry() {
            assert!(!figure.name.contains("utili"), "{}", figure.name);
        }
    }

    #[test]
    fn the_documentation_has_every_figure_with_its_unit_and_definition() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats/results.md");
        let document = std::fs::read_to_string(path).expect("docs/formats/results.md is there");
        for figure in registry() {
            let row = format!("| `{}` | {} | {} |", figure.name, figure.unit, figure.definition);
            assert!(document.contains(&row), "docs/formats/results.md lacks the row\n{row}");
        }
    }
}
