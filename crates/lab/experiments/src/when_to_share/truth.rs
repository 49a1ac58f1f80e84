//! What jobs do to each other: measured pairs of six models, or the same slowdown for all.

use crate::ExperimentError;
use deepshare_interference::{
    Assignment, ConfigurationsFile, ContentionModel, Mechanism, PairTable, RetentionMatrix,
    SHIPPED_CONFIGURATIONS, SHIPPED_PAIRS, Shipped,
};
use deepshare_sim::{Interference, SharedInterference};
use deepshare_trace::{Cluster, Trace};
use std::sync::Arc;

/// The tables of measured pairs, and what the page calls them.
pub(super) const TABLES: [(&str, &str); 2] = [("six-models-p100", "P100"), ("six-models", "V100")];

/// Who is slowed by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pairs {
    /// Nobody shares.
    None,
    /// As a table of [`TABLES`] has it.
    Table(usize),
    /// Everybody takes so many thousandths of the time while sharing.
    Constant(u32),
}

/// The models that jobs draw, and the tables.
pub(super) struct Models {
    pool: ConfigurationsFile,
    tables: Vec<PairTable>,
}

fn shipped(all: &[Shipped], name: &str) -> Shipped {
    *all.iter().find(|one| one.name == name).expect("it comes with the program")
}

impl Models {
    pub(super) fn read() -> Result<Models, ExperimentError> {
        let tables: Result<Vec<PairTable>, _> =
            TABLES.iter().map(|(name, _)| shipped(&SHIPPED_PAIRS, name).pairs()).collect();
        let pool = shipped(&SHIPPED_CONFIGURATIONS, "six-models").configurations()?;
        Ok(Models { pool, tables: tables? })
    }

    /// Which job of a trace trains what.
    pub(super) fn drawn(
        &self,
        trace: &Trace,
        cluster: &Cluster,
        seed: u64,
    ) -> Result<Assignment, ExperimentError> {
        Ok(Assignment::from_pool(&self.pool, trace, cluster, 0, seed)?)
    }

    /// What those jobs do to each other. Policies know it, and samples have no noise: the source
    /// profiles its models before.
    pub(super) fn interference(
        &self,
        assignment: &Assignment,
        pairs: Pairs,
    ) -> Option<SharedInterference> {
        let truth = match pairs {
            Pairs::None => return None,
            Pairs::Table(table) => {
                let (table, model) = (&self.tables[table], ContentionModel::default());
                let catalogue = &assignment.catalogue;
                let (truth, coverage) =
                    RetentionMatrix::truth(catalogue, Some(table), &model, Mechanism::Mps);
                assert!(coverage.table_share() >= 1.0, "the table has every pair of the six");
                truth
            }
            Pairs::Constant(slowdown_milli) => {
                let classes = assignment.catalogue.len();
                let ppm = 1_000_000_000 / slowdown_milli;
                let rows = vec![vec![ppm; classes]; classes];
                RetentionMatrix::from_rows(&rows).expect("slowdowns are 1 and more")
            }
        };
        let mut interference = Interference::new(assignment, &truth, &truth);
        interference.sample_noise = 0.0;
        Some(Arc::new(interference))
    }
}
