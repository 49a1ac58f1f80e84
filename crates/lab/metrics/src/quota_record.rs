//! What a run leaves behind of quotas: assurance, violations and preemptions.

use crate::TenantAssurance;
use deepshare_model::{GpuTime, JobId, Span, Time};
use serde::{Deserialize, Serialize};

/// What a run leaves behind of quotas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaRecord {
    /// Quotas were guarantees in this run, and not caps or only numbers.
    pub guarantees: bool,
    /// By tenant; empty if no tenant has a quota, or quotas mean nothing in this run.
    pub tenants: Vec<TenantAssurance>,
    /// How long each fall of a tenant's Q̃ below 0.95 lasted.
    pub recoveries: Vec<Span>,
    /// Waiting that could have been avoided; `None` if it was not looked for.
    pub avoidable: Option<Avoidable>,
    /// Preemptions.
    pub preemptions: PreemptionRecord,
}

/// Waiting of guaranteed jobs inside their tenant's quota that the right victims would have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Avoidable {
    /// In all, over one job of a kind at a time.
    pub time: Span,
    /// The same times the GPUs of each job.
    pub gpu_time: GpuTime,
    /// Jobs that waited so.
    pub jobs: u64,
    /// The first of them, and since when it waited longer than it had to.
    pub first: Option<(JobId, Time)>,
}

/// Preemptions of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptionRecord {
    /// Every set of victims that was evicted for one job at one instant.
    pub decisions: Vec<PreemptionDecision>,
    /// GPU time that victims had spent in the attempts that were ended.
    pub victims_gpu: GpuTime,
    /// Time from each decision to the start of the job it was for.
    pub latencies: Vec<Span>,
    /// Jobs preempted more often within an hour than the cap allows.
    pub jobs_over_cap: u64,
    /// Starts of guaranteed jobs beyond their tenant's quota.
    pub spilled_starts: u64,
    /// Such jobs charged to quota later, while they ran.
    pub promotions: u64,
}

/// One set of victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptionDecision {
    /// How many.
    pub victims: u32,
    /// Φ of the set in 10⁻⁹ per second; `None` where the policy knows no Φ.
    pub phi_nano: Option<u64>,
}
