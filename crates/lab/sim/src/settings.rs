//! Everything that decides a run beside trace and cluster.

use crate::actuation::Actuation;
use crate::classes::Classes;
use crate::estimates::Estimator;
use crate::interference::SharedInterference;
use crate::outages::Outages;
use crate::restart::Restart;
use deepshare_engine::EngineSettings;
use deepshare_model::Span;
use deepshare_policies::PolicyConfig;

/// What to do about jobs that the cluster can never run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversize {
    /// Stop before the run and name them: the load cannot drain.
    #[default]
    Error,
    /// Leave them out, count them as refused, and run the rest.
    Skip,
}

/// Everything that decides a run beside trace and cluster.
#[derive(Clone, Debug)]
pub struct SimSettings {
    /// The engine's own settings.
    pub engine: EngineSettings,
    /// The policy.
    pub policy: PolicyConfig,
    /// Where the classes of jobs come from.
    pub classes: Classes,
    /// Seed of the coin that draws classes; that of the run if `None`.
    pub class_seed: Option<u64>,
    /// Where run-time estimates come from.
    pub estimates: Estimator,
    /// What stopping and starting again costs a job.
    pub restart: Restart,
    /// Time between the end of a job's work and the news of it.
    pub finish_lag: Span,
    /// How the world carries out commands.
    pub actuation: Actuation,
    /// What jobs on one device do to each other; without it nobody shares.
    pub interference: Option<SharedInterference>,
    /// CPU and memory that would be enough for a best-effort job, as shares of what it asks for: the
    /// least and the most, thousandths. Drawn, as no trace has recommendations.
    pub recommended_milli: (u32, u32),
    /// When nodes are away.
    pub outages: Outages,
    /// What to do about jobs that can never run.
    pub oversize: Oversize,
    /// Check every step with the independent auditor.
    pub audit: bool,
    /// Seed of every random stream.
    pub seed: u64,
    /// Steps without any job ending after which a run is given up as a livelock.
    pub max_idle_steps: u64,
}

impl SimSettings {
    /// The defaults for a policy: estimates from an oracle where it uses any, the usual restart
    /// costs, an ideal world.
    pub fn new(policy: PolicyConfig) -> SimSettings {
        SimSettings {
            engine: policy.engine_settings(),
            classes: Classes::AsGiven,
            class_seed: None,
            estimates: if policy.uses_estimates() { Estimator::Oracle } else { Estimator::None },
            policy,
            restart: Restart::default(),
            finish_lag: Span::ZERO,
            actuation: Actuation::default(),
            interference: None,
            recommended_milli: (400, 900),
            outages: Outages::None,
            oversize: Oversize::Error,
            audit: false,
            seed: 0,
            max_idle_steps: 20_000_000,
        }
    }
}
