//! Guaranteed or best-effort, for traces that do not say (reading D1 of the specification).

use crate::world::stream;
use deepshare_model::{Class, JobSpec};
use rand::RngExt;

/// Where the classes of jobs come from. A class that the trace states is kept, except by `Coin`
/// and `Overflow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classes {
    /// From the trace; guaranteed where it does not say.
    #[default]
    AsGiven,
    /// Best-effort with this chance, in thousandths, drawn with the class seed, job by job.
    Coin {
        /// Chance of best-effort, thousandths.
        best_effort_milli: u32,
    },
    /// Best-effort if the tenant's guaranteed demand has reached its quota when the job arrives.
    Overflow,
}

impl Classes {
    /// The word used in results.
    pub fn name(self) -> String {
        match self {
            Classes::AsGiven => "trace".to_owned(),
            Classes::Coin { best_effort_milli } => {
                format!("coin {}", f64::from(best_effort_milli) / 1_000.0)
            }
            Classes::Overflow => "overflow".to_owned(),
        }
    }

    /// Tosses the coin for every job; the other sources change nothing before the run.
    pub(crate) fn assign(self, jobs: &mut [JobSpec], seed: u64) {
        let Classes::Coin { best_effort_milli } = self else { return };
        let mut coin = stream(seed, 5);
        for job in jobs {
            let borrows = coin.random_range(0..1_000u32) < best_effort_milli;
            job.class = if borrows { Class::BestEffort } else { Class::Guaranteed };
        }
    }
}
