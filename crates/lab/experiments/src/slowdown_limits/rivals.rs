//! Which schedulers a cell has.

use super::worlds::Told;
use deepshare_policies::{PolicyConfig, SharingMode, TensorShareSettings};

/// A scheduler, what it is told, and what it knows of run times.
#[derive(Clone, Debug)]
pub struct Rival {
    /// What its line is called.
    pub name: &'static str,
    /// What it is told of pairs.
    pub told: Told,
    /// Deviation of the logarithm of guessed run times; `None`: it knows them.
    pub size_error: Option<f64>,
    /// It acts on limits; others are run once and judged by each.
    pub limited: bool,
    config: Config,
}

#[derive(Clone, Debug)]
enum Config {
    TensorShare(TensorShareSettings),
    Other(PolicyConfig),
}

pub const PREDICTED: &str = "predicted";
pub const CAUTIOUS: &str = "predicted, 90 %, no guard";
pub const GUESSED: &str = "predicted, σ = 0.3";
pub const TIME_AWARE: &str = "time-aware, σ = 0.3";
pub const WEIGHED: &str = "μ = 1";
pub const TRUTH: &str = "true slowdowns";
pub const ORDINARY: &str = "ordinary";
pub const REACTIVE: &str = "reactive";
pub const NEVER: &str = "never";
pub const ALWAYS: &str = "always";
pub const GANDIVA: &str = "gandiva";
pub const BSBF: &str = "sjf-bsbf";

/// Deviation of the logarithm of a guessed run time.
const SIZE_ERROR: f64 = 0.3;

impl Rival {
    /// The policy under a limit.
    pub fn policy(&self, limit_milli: u32) -> PolicyConfig {
        match &self.config {
            Config::TensorShare(settings) => {
                PolicyConfig::TensorShare(TensorShareSettings { limit_milli, ..*settings })
            }
            Config::Other(policy) => policy.clone(),
        }
    }
}

fn tensorshare(name: &'static str, turn: impl FnOnce(&mut TensorShareSettings)) -> Rival {
    let mut settings = TensorShareSettings::default();
    turn(&mut settings);
    let limited = matches!(settings.mode, SharingMode::Predicted | SharingMode::Reactive);
    let config = Config::TensorShare(settings);
    Rival { name, told: Told::Predicted, size_error: None, limited, config }
}

fn other(name: &'static str) -> Rival {
    let policy = PolicyConfig::by_name(name).expect("the policy's own name");
    let config = Config::Other(policy);
    Rival { name, told: Told::Predicted, size_error: None, limited: false, config }
}

/// Every line, in the order of the tables.
pub fn all() -> Vec<Rival> {
    use deepshare_policies::SlowdownCheck::TimeAware;
    let guessed = |rival: Rival| Rival { size_error: Some(SIZE_ERROR), ..rival };
    let exact = |settings: &mut TensorShareSettings| {
        (settings.chance, settings.guard) = (50, false);
    };
    let cautious = |settings: &mut TensorShareSettings| {
        (settings.chance, settings.guard) = (90, false);
    };
    vec![
        tensorshare(NEVER, |settings| settings.mode = SharingMode::Never),
        tensorshare(ALWAYS, |settings| settings.mode = SharingMode::Always),
        tensorshare(ORDINARY, |settings| settings.mode = SharingMode::Ordinary),
        tensorshare(REACTIVE, |settings| settings.mode = SharingMode::Reactive),
        Rival { told: Told::Truth, ..tensorshare(TRUTH, exact) },
        tensorshare(PREDICTED, |_| {}),
        tensorshare(CAUTIOUS, cautious),
        guessed(tensorshare(GUESSED, |_| {})),
        guessed(tensorshare(TIME_AWARE, |settings| settings.check = TimeAware)),
        tensorshare(WEIGHED, |settings| settings.mu_milli = 1_000),
        other(GANDIVA),
        other(BSBF),
    ]
}
