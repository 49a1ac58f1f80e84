//! Tenants and what they are promised.

use crate::{GpuTypeId, PoolId, Span, TenantId};
use serde::{Deserialize, Serialize};

/// Guaranteed GPUs by GPU type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quota(Vec<u32>);

impl Quota {
    /// The same number of GPUs for each of `types` GPU types.
    pub fn uniform(gpus: u32, types: usize) -> Quota {
        Quota(vec![gpus; types])
    }

    /// Sets the quota for one type.
    pub fn set(&mut self, gpu_type: GpuTypeId, gpus: u32) {
        if self.0.len() <= gpu_type.index() {
            self.0.resize(gpu_type.index() + 1, 0);
        }
        self.0[gpu_type.index()] = gpus;
    }

    /// GPUs of this type; 0 where nothing was promised.
    #[inline]
    pub fn of(&self, gpu_type: GpuTypeId) -> u32 {
        self.0.get(gpu_type.index()).copied().unwrap_or(0)
    }

    /// The type of which most was promised, the first of equals.
    pub fn largest(&self) -> GpuTypeId {
        let most = self.0.iter().enumerate().rev().max_by_key(|&(_, gpus)| gpus);
        most.map_or(GpuTypeId::default(), |(index, _)| GpuTypeId::from_index(index))
    }

    /// GPUs of all types.
    pub fn total(&self) -> u32 {
        self.0.iter().sum()
    }
}

/// A tenant as its operator describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantSpec {
    /// The pool its jobs wait for.
    pub pool: PoolId,
    /// A tenant whose quota caps the sum of its children's use.
    pub parent: Option<TenantId>,
    /// Guaranteed GPUs by type.
    pub quota: Quota,
    /// Best-effort use is capped at this many thousandths of the quota (spec §1, η; default 2000).
    pub best_effort_milli: u32,
    /// Most GPUs of its idle quota that others may borrow; `None` = all.
    pub lending_limit: Option<u32>,
    /// A job runs at least this long before it may be preempted.
    pub min_run_time: Span,
}

impl TenantSpec {
    /// A tenant of `pool` with `quota` and every other term at its default.
    pub fn new(pool: PoolId, quota: Quota) -> TenantSpec {
        TenantSpec {
            pool,
            parent: None,
            quota,
            best_effort_milli: 2_000,
            lending_limit: None,
            min_run_time: Span::ZERO,
        }
    }
}
