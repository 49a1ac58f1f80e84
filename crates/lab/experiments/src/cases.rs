//! Which runs an experiment has: policy, capacity mode and the switches that are turned.

use deepshare_engine::CapacityMode;
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
}

impl Case {
    fn new(name: &str, policy: PolicyConfig, capacity: CapacityMode) -> Case {
        Case {
            name: name.to_owned(),
            policy,
            capacity,
            estimates: Estimator::RunningMean,
            unlimited: false,
        }
    }

    /// DeepShare, with some switches turned.
    pub fn deepshare(name: &str, turn: impl FnOnce(&mut DeepShareSettings)) -> Case {
        let mut settings = DeepShareSettings::default();
        turn(&mut settings);
        Case::new(name, PolicyConfig::DeepShare(settings), CapacityMode::Elastic)
    }

    /// The same with GPUs for everybody.
    pub fn unlimited(self, name: &str) -> Case {
        Case { name: name.to_owned(), unlimited: true, ..self }
    }

    /// The same with true run times.
    pub fn oracle(self, name: &str) -> Case {
        Case { name: name.to_owned(), estimates: Estimator::Oracle, ..self }
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

/// The rule as the paper prints it, with our guard.
pub fn literal() -> Case {
    Case::deepshare("deepshare", |_| {})
}

/// With guaranteed jobs beyond quota starting as best-effort.
pub fn spill() -> Case {
    Case::deepshare("deepshare, spill", |s| s.spill = true)
}

/// Without QAD in the order: time order across tenants.
pub fn without_ord(spill: bool) -> Case {
    let name = if spill { "spill, -ord" } else { "-ord" };
    Case::deepshare(name, |s| {
        s.order_by_qad = false;
        s.spill = spill;
    })
}

/// Without eviction for guaranteed jobs.
pub fn without_rec(spill: bool) -> Case {
    let name = if spill { "spill, -rec" } else { "-rec" };
    Case::deepshare(name, |s| {
        s.reclaim = false;
        s.spill = spill;
    })
}

/// DeepShare's structure with FIFO order.
pub fn fifo_order(spill: bool) -> Case {
    let name = if spill { "spill, FIFO order" } else { "FIFO order" };
    Case::deepshare(name, |s| {
        s.order_by_qad = false;
        s.order_by_time = false;
        s.spill = spill;
    })
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
    vec![
        literal(),
        literal().unlimited("its limit: GPUs for everybody"),
        Case::deepshare("without the gang guard", |s| s.gang_guard = Default::default()),
        Case::deepshare("without the cap on preemptions", |s| s.preemption_cap = 0),
        without_ord(false),
        without_rec(false),
        Case::deepshare("-ord, -rec", |s| {
            s.order_by_qad = false;
            s.reclaim = false;
        }),
        fifo_order(false),
        literal().oracle("deepshare, oracle"),
        spill(),
        spill().unlimited("its limit, spill"),
        Case::deepshare("spill, without the gang guard", |s| {
            s.spill = true;
            s.gang_guard = Default::default();
        }),
        without_ord(true),
        without_rec(true),
        fifo_order(true),
        spill().oracle("spill, oracle"),
        elastic_quota(),
        hard("fifo, skips, hard", PolicyConfig::Fifo { skip: true }),
        hard("sjf, skips, hard", PolicyConfig::Sjf { skip: true }),
        hard("easy-backfill, hard", PolicyConfig::EasyBackfill {}),
        pooled_fifo(),
        pooled_sjf(),
        pooled_easy(),
    ]
}

/// The lines for other shares, loads and tenants.
pub fn few() -> Vec<Case> {
    vec![
        literal(),
        literal().unlimited("its limit: GPUs for everybody"),
        without_ord(false),
        without_rec(false),
        fifo_order(false),
        spill(),
        without_ord(true),
        without_rec(true),
        elastic_quota(),
        pooled_sjf(),
    ]
}
