//! Which runs an experiment has: policy, capacity mode and the switches that are turned.

use deepshare_engine::CapacityMode;
use deepshare_model::Span;
use deepshare_policies::{DeepShareSettings, PolicyConfig};
use deepshare_sim::{Classes, Estimator, SimSettings};

/// One line of a table: a policy and how quotas bind under it.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the line is called.
    pub name: String,
    /// The policy.
    pub policy: PolicyConfig,
    /// How quotas bind.
    pub capacity: CapacityMode,
    /// Where estimates come from.
    pub estimates: Estimator,
    /// The same rule with GPUs for everybody: what no scheduler in that mode can beat by much.
    pub unlimited: bool,
    /// Nothing in it is drawn: one run says all.
    pub draws_nothing: bool,
}

impl Case {
    /// A line without estimates of its own.
    pub fn new(name: &str, policy: PolicyConfig, capacity: CapacityMode) -> Case {
        Case {
            name: name.to_owned(),
            policy,
            capacity,
            estimates: Estimator::RunningMean,
            unlimited: false,
            draws_nothing: false,
        }
    }

    /// DeepShare, with some switches turned. Without the gang guard, unless that is one of them:
    /// the paper has none.
    pub fn deepshare(name: &str, turn: impl FnOnce(&mut DeepShareSettings)) -> Case {
        let mut settings = DeepShareSettings { gang_guard: Span::ZERO, ..Default::default() };
        turn(&mut settings);
        Case::new(name, PolicyConfig::DeepShare(settings), CapacityMode::Elastic)
    }

    /// The simulator's settings for a seed of the classes.
    pub fn settings(&self, classes: Classes, seed: u64) -> SimSettings {
        let mut settings = SimSettings::new(self.policy.clone());
        settings.engine.capacity = self.capacity;
        settings.classes = classes;
        settings.seed = seed;
        if self.policy.uses_estimates() || matches!(self.policy, PolicyConfig::ElasticQuota {}) {
            settings.estimates = self.estimates.clone();
        }
        settings
    }
}

/// What guaranteed jobs beyond quota do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They wait, as the paper prints it.
    Literal,
    /// They start as best-effort.
    Spill,
}

impl Mode {
    /// Both, in the order of the tables.
    pub const BOTH: [Mode; 2] = [Mode::Literal, Mode::Spill];

    /// The lines that every table has.
    fn variants(self) -> [Case; 6] {
        [
            self.plain(),
            self.limit(),
            self.guarded(),
            self.without_ord(),
            self.without_rec(),
            self.fifo_order(),
        ]
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Literal => "literal",
            Mode::Spill => "spill",
        }
    }

    /// DeepShare in this mode with switches turned.
    pub fn case(self, variant: &str, turn: impl FnOnce(&mut DeepShareSettings)) -> Case {
        let name = format!("{}{variant}", self.name());
        Case::deepshare(&name, |settings| {
            settings.spill = self == Mode::Spill;
            turn(settings);
        })
    }

    /// The rule without the gang guard.
    pub fn plain(self) -> Case {
        self.case("", |_| {})
    }

    /// The same with GPUs for everybody.
    pub fn limit(self) -> Case {
        Case { unlimited: true, ..self.case(", GPUs for everybody", |_| {}) }
    }

    /// With the gang guard, which is the default.
    pub fn guarded(self) -> Case {
        let default = DeepShareSettings::default().gang_guard;
        self.case(", gang guard", |settings| settings.gang_guard = default)
    }

    /// Without QAD in the order: by time across tenants.
    pub fn without_ord(self) -> Case {
        self.case(", -ord", |settings| settings.order_by_qad = false)
    }

    /// Without eviction for guaranteed jobs.
    pub fn without_rec(self) -> Case {
        self.case(", -rec", |settings| settings.reclaim = false)
    }

    /// Without either.
    fn without_all(self) -> Case {
        self.case(", -ord -rec", |settings| {
            settings.order_by_qad = false;
            settings.reclaim = false;
        })
    }

    /// DeepShare's structure with FIFO order.
    pub fn fifo_order(self) -> Case {
        self.case(", FIFO order", |settings| {
            settings.order_by_qad = false;
            settings.order_by_time = false;
        })
    }

    fn uncapped(self) -> Case {
        self.case(", no cap on preemptions", |settings| settings.preemption_cap = 0)
    }

    fn oracle(self) -> Case {
        Case { estimates: Estimator::Oracle, ..self.case(", true run times", |_| {}) }
    }
}

/// In or out of quota, as a binary signal.
pub fn elastic_quota() -> Case {
    Case::new("elastic-quota", PolicyConfig::ElasticQuota {}, CapacityMode::Elastic)
}

/// SJF that passes over what does not fit, on one pool without quotas.
pub fn pooled_sjf() -> Case {
    let policy = PolicyConfig::Sjf { skip: true };
    Case::new("sjf, skips, pool", policy, CapacityMode::Pool)
}

/// FIFO that passes over what does not fit, on one pool without quotas.
pub fn pooled_fifo() -> Case {
    let policy = PolicyConfig::Fifo { skip: true };
    Case::new("fifo, skips, pool", policy, CapacityMode::Pool)
}

/// EASY backfilling on one pool without quotas.
pub fn pooled_easy() -> Case {
    Case::new("easy-backfill, pool", PolicyConfig::EasyBackfill {}, CapacityMode::Pool)
}

/// Everything on the published cluster.
pub fn all() -> Vec<Case> {
    let hard = |name: &str, policy| Case::new(name, policy, CapacityMode::Hard);
    let ours = Mode::BOTH.into_iter().flat_map(|mode| {
        let more = [mode.without_all(), mode.uncapped(), mode.oracle()];
        mode.variants().into_iter().chain(more)
    });
    let rivals = [
        elastic_quota(),
        hard("fifo, skips, hard", PolicyConfig::Fifo { skip: true }),
        hard("sjf, skips, hard", PolicyConfig::Sjf { skip: true }),
        hard("easy-backfill, hard", PolicyConfig::EasyBackfill {}),
        pooled_fifo(),
        pooled_sjf(),
        pooled_easy(),
    ];
    ours.chain(rivals).collect()
}

/// The lines for other shares, loads and tenants.
pub fn few() -> Vec<Case> {
    let ours = Mode::BOTH.into_iter().flat_map(Mode::variants);
    ours.chain([elastic_quota(), pooled_sjf()]).collect()
}
