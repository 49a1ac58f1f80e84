//! Jobs as submitted.

use crate::{
    GpuTypeId, ProfileClassId, Resources, Retention, SiteId, Span, TenantId, Time, Training,
    TrustDomainId, UserId,
};
use serde::{Deserialize, Serialize};

/// Whether a job is covered by its tenant's quota (spec §1).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Charged to the tenant's quota; never a preemption victim of DeepShare.
    #[default]
    Guaranteed,
    /// Not charged; borrows idle capacity and can be reclaimed.
    BestEffort,
}

/// How the devices of a job may be spread over nodes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// In one node if the job fits one, else whole nodes and at most one partial node. What traces
    /// mean by a number of GPUs.
    #[default]
    Consolidated,
    /// Members of this many GPUs each (the pods of a gang); a member never spans nodes, and
    /// several may share one.
    Members(u32),
}

/// What a job asks for. All or nothing: a gang starts with every device or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Demand {
    /// Devices in all.
    pub gpus: u32,
    /// Shape over nodes.
    pub layout: Layout,
    /// The only GPU model that will do, if it matters.
    pub gpu_type: Option<GpuTypeId>,
    /// GPU memory needed on each device, MiB; 0 = unknown.
    pub gpu_memory_mib: u32,
    /// Host resources needed beside each device.
    pub per_gpu: Resources,
    /// What else it requires of its nodes; `None`: any will do.
    pub site: Option<SiteId>,
}

impl Demand {
    /// `gpus` devices of any model, consolidated, with no host resources.
    pub fn gpus(gpus: u32) -> Demand {
        Demand {
            gpus,
            layout: Layout::Consolidated,
            gpu_type: None,
            gpu_memory_mib: 0,
            per_gpu: Resources::default(),
            site: None,
        }
    }
}

/// What a job allows when a device is shared. Fixed at submission: it can never change later.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Sharing {
    /// The owner agreed to share devices.
    pub consent: bool,
    /// Only jobs of the same domain may share a device with it.
    pub trust_domain: TrustDomainId,
    /// The most that its running time beside others may be over its running time alone (TensorShare's
    /// GPU SLA), thousandths; 0: the policy's own limit.
    pub slowdown_limit_milli: u32,
}

/// A job as submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Who pays.
    pub tenant: TenantId,
    /// Who submitted.
    pub user: UserId,
    /// Guaranteed or best-effort.
    pub class: Class,
    /// Order inside a tenant: higher first.
    pub priority: i32,
    /// When it was submitted.
    pub submit: Time,
    /// What it asks for.
    pub demand: Demand,
    /// What it allows.
    pub sharing: Sharing,
    /// Its hardware profile's class, where known.
    pub profile: Option<ProfileClassId>,
    /// How its batch, memory and speed hang together, where known: it may then run with a smaller
    /// batch a step to fit beside another job.
    pub training: Option<Training>,
    /// CPU and memory beside each GPU that would be enough, as a vertical autoscaler recommends.
    pub recommended: Option<Resources>,
    /// Run time promised by the owner, where given (a wall-time limit or an annotation).
    pub requested_time: Option<Span>,
}

/// What a shrunk job keeps beyond what is recommended: a tenth of it, and at least half a core and
/// 256 MiB (spec §7).
const HEADROOM: Resources = Resources { cpu_milli: 500, memory_mib: 256 };

impl JobSpec {
    /// GPU memory on each device with each iteration done in so many steps, MiB; 0 = unknown.
    pub fn gpu_memory_mib(&self, steps: u32) -> u32 {
        match self.training {
            Some(training) if steps > 1 => training.memory_mib(steps),
            _ => self.demand.gpu_memory_mib,
        }
    }

    /// What is left of its speed with each iteration done in so many steps.
    pub fn pace(&self, steps: u32) -> Retention {
        self.training.map_or(Retention::WHOLE, |training| training.pace(steps))
    }

    /// The least CPU and memory beside each GPU to which the job may be shrunk in place: the
    /// recommendation and headroom, and never more than it asks for. `None` without a recommendation.
    pub fn least_per_gpu(&self) -> Option<Resources> {
        let recommended = self.recommended?;
        let with_headroom =
            |amount: u64, least: u64| amount.saturating_add(amount.div_ceil(10).max(least));
        let (cpu, memory) = (recommended.cpu_milli, recommended.memory_mib);
        let asked = self.demand.per_gpu;
        Some(Resources {
            cpu_milli: with_headroom(cpu, HEADROOM.cpu_milli).min(asked.cpu_milli),
            memory_mib: with_headroom(memory, HEADROOM.memory_mib).min(asked.memory_mib),
        })
    }
}

/// How a job ended.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Did its work.
    #[default]
    Succeeded,
    /// Ended by an error of its own.
    Failed,
    /// Ran out of GPU or host memory.
    OutOfMemory,
    /// Ended by its owner.
    Cancelled,
    /// Ended by its wall-time limit.
    Timeout,
    /// Ended with its node.
    NodeFail,
}

impl Outcome {
    /// Every outcome, in the order tables list them.
    pub const ALL: [Outcome; 6] = [
        Outcome::Succeeded,
        Outcome::Failed,
        Outcome::OutOfMemory,
        Outcome::Cancelled,
        Outcome::Timeout,
        Outcome::NodeFail,
    ];

    /// The word used in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::OutOfMemory => "out-of-memory",
            Outcome::Cancelled => "cancelled",
            Outcome::Timeout => "timeout",
            Outcome::NodeFail => "node-fail",
        }
    }
}

impl Class {
    /// The word used in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Class::Guaranteed => "guaranteed",
            Class::BestEffort => "best-effort",
        }
    }
}
