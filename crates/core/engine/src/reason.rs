//! Why a job waits: one closed list, with quantities, for every surface that says it.

use crate::qad::Degree;
use deepshare_model::{GpuTypeId, JobId, Retention, Span, TenantId, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a job is not running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No round has looked at it yet.
    NotConsidered,
    /// Its owner holds it.
    Held,
    /// A start failed; it returns to its queue later.
    BackingOff {
        /// When.
        until: Time,
    },
    /// Devices are promised to it, and their holders are stopping.
    AwaitingRelease {
        /// Attempts still holding its devices.
        holders: u32,
    },
    /// The pool has too few free GPUs.
    NotEnoughFree {
        /// GPUs it asks for.
        need: u32,
        /// GPUs free.
        free: u32,
    },
    /// Enough GPUs are free, but not in the shape it needs.
    Fragmented {
        /// GPUs it asks for.
        need: u32,
        /// GPUs free.
        free: u32,
        /// Most GPUs free on one node.
        largest: u32,
    },
    /// GPUs are free, but no node has the CPU or host memory beside them.
    NotEnoughHost {
        /// GPUs it asks for.
        need: u32,
    },
    /// GPUs are free, but not on nodes that meet its requirements: labels, taints, ports, other
    /// resources.
    NotAdmitted {
        /// GPUs it asks for.
        need: u32,
        /// Nodes of its pool with GPUs that would do.
        nodes: u32,
        /// Of these, nodes that admit any member of it.
        admitting: u32,
    },
    /// GPUs are free to share, but not enough of their memory is.
    NotEnoughGpuMemory {
        /// MiB it needs on each.
        need: u32,
        /// MiB left on each.
        left: u32,
    },
    /// No GPU is free, and nobody it could share with passes.
    NoPartner(PairRefusal),
    /// Its tenant's quota is used up.
    OverQuota {
        /// The tenant, or the ancestor whose quota binds.
        tenant: TenantId,
        /// Of which GPU type.
        gpu_type: GpuTypeId,
        /// GPUs it asks for.
        need: u32,
        /// GPUs the tenant uses.
        used: u32,
        /// GPUs the tenant may use.
        quota: u32,
    },
    /// Other tenants lend no more of the quota they do not use.
    LendingLimit {
        /// GPUs it asks for.
        need: u32,
        /// GPUs it could still borrow.
        left: u32,
    },
    /// The policy serves strictly in order, and this job is first and blocked.
    BehindHead {
        /// The blocked job ahead.
        head: JobId,
    },
    /// It would fit now, but would delay the reservation of a job ahead.
    WouldDelay {
        /// The job with the reservation.
        head: JobId,
        /// When that job is to start.
        at: Time,
    },
    /// The policy planned its start for later.
    Planned {
        /// When.
        at: Time,
    },
    /// Jobs that go first leave too few GPUs.
    Outranked {
        /// GPUs it asks for.
        need: u32,
        /// GPUs left by the jobs ahead.
        left: u32,
    },
    /// The policy decides only at set instants.
    BetweenRounds {
        /// The next one.
        next: Time,
    },
    /// Asks for no GPU, or for members that do not add up to its GPUs.
    BadDemand,
    /// Larger than its pool can ever hold.
    LargerThanPool {
        /// GPUs it asks for.
        need: u32,
        /// GPUs of an empty pool that could serve it.
        pool: u32,
    },
    /// Larger than its tenant may ever use.
    LargerThanQuota {
        /// The tenant, or the ancestor whose quota binds.
        tenant: TenantId,
        /// GPUs it asks for.
        need: u32,
        /// GPUs the tenant may use.
        quota: u32,
    },
}

impl Reason {
    /// The word for it in conditions, files and scenario scripts.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::NotConsidered => "not-considered",
            Reason::Held => "held",
            Reason::BackingOff { .. } => "backing-off",
            Reason::AwaitingRelease { .. } => "awaiting-release",
            Reason::NotEnoughFree { .. } => "not-enough-free",
            Reason::Fragmented { .. } => "fragmented",
            Reason::NotEnoughHost { .. } => "not-enough-host",
            Reason::NotAdmitted { .. } => "not-admitted",
            Reason::NotEnoughGpuMemory { .. } => "not-enough-gpu-memory",
            Reason::NoPartner(_) => "no-partner",
            Reason::OverQuota { .. } => "over-quota",
            Reason::LendingLimit { .. } => "lending-limit",
            Reason::BehindHead { .. } => "behind-head",
            Reason::WouldDelay { .. } => "would-delay",
            Reason::Planned { .. } => "planned",
            Reason::Outranked { .. } => "outranked",
            Reason::BetweenRounds { .. } => "between-rounds",
            Reason::BadDemand => "bad-demand",
            Reason::LargerThanPool { .. } => "larger-than-pool",
            Reason::LargerThanQuota { .. } => "larger-than-quota",
        }
    }

    /// True if CPU or memory beside a GPU is all that is missing.
    pub(crate) fn lacks_host(&self) -> bool {
        match self {
            Reason::NotEnoughHost { .. } => true,
            Reason::NoPartner(refusal) => refusal.test == PairTest::Host,
            _ => false,
        }
    }

    /// True if a quota, not the machines, stands in the way.
    pub fn is_quota(&self) -> bool {
        matches!(
            self,
            Reason::OverQuota { .. } | Reason::LargerThanQuota { .. } | Reason::LendingLimit { .. }
        )
    }
}

/// What people call those whom a reason names.
pub trait Names {
    /// A tenant.
    fn tenant(&self, id: TenantId) -> String {
        id.to_string()
    }

    /// A job.
    fn job(&self, id: JobId) -> String {
        id.to_string()
    }

    /// An instant.
    fn instant(&self, at: Time) -> String {
        at.to_string()
    }
}

/// Ids and seconds.
struct Bare;

impl Names for Bare {}

impl Reason {
    /// The reason in words, with names for ids.
    pub fn in_words(&self, names: &impl Names) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text, names);
        text
    }

    fn write(&self, f: &mut impl fmt::Write, names: &impl Names) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Reason::NotConsidered | Reason::Held | Reason::BadDemand => Ok(()),
            Reason::BackingOff { until } => write!(f, " (until {})", names.instant(*until)),
            Reason::AwaitingRelease { holders } => write!(f, " (of {holders} jobs)"),
            Reason::NotEnoughFree { need, free } => write!(f, " (needs {need} GPUs, {free} free)"),
            Reason::Fragmented { need, free, largest } => {
                write!(f, " (needs {need} GPUs, {free} free, at most {largest} on one node)")
            }
            Reason::NotEnoughHost { need } => {
                write!(f, " (no CPU or memory beside {need} free GPUs)")
            }
            Reason::NotAdmitted { need, nodes, admitting } => {
                write!(f, " (needs {need} GPUs on nodes that meet its requirements: ")?;
                write!(f, "{admitting} of {nodes} do)")
            }
            Reason::NotEnoughGpuMemory { need, left } => {
                write!(f, " (needs {need} MiB on each GPU, {left} left)")
            }
            Reason::NoPartner(refusal) => {
                f.write_str(" (")?;
                refusal.write(f, names)?;
                f.write_str(")")
            }
            Reason::OverQuota { tenant, need, used, quota, .. } => {
                let tenant = names.tenant(*tenant);
                write!(f, " (needs {need} GPUs, {tenant} uses {used} of {quota})")
            }
            Reason::LendingLimit { need, left } => {
                write!(f, " (needs {need} GPUs, {left} of its own idle quota and lent)")
            }
            Reason::BehindHead { head } => write!(f, " (of {})", names.job(*head)),
            Reason::WouldDelay { head, at } => {
                write!(f, " ({}, due at {})", names.job(*head), names.instant(*at))
            }
            Reason::Planned { at } => write!(f, " (at {})", names.instant(*at)),
            Reason::Outranked { need, left } => {
                write!(f, " (needs {need} GPUs, jobs ahead leave {left})")
            }
            Reason::BetweenRounds { next } => write!(f, " (next at {})", names.instant(*next)),
            Reason::LargerThanPool { need, pool } => {
                write!(f, " (needs {need} GPUs, an empty pool offers {pool})")
            }
            Reason::LargerThanQuota { tenant, need, quota } => {
                let tenant = names.tenant(*tenant);
                write!(f, " (needs {need} GPUs, {tenant} may use {quota})")
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &Bare)
    }
}

/// Which test a pair failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairTest {
    /// One of the two must be best-effort.
    Class,
    /// Both must fit the memory of a device.
    Memory,
    /// The node needs CPU and memory for both.
    Host,
    /// A guaranteed job must keep more than the others.
    Floor,
    /// Both must keep what the pressure and their tenants' assurance ask for.
    Tolerance,
    /// Both must be served sooner, on the mean, than one after the other.
    Benefit,
    /// Neither may be slowed down more than its owner accepts.
    SlowdownLimit,
    /// Both together must do more than one alone.
    Throughput,
}

impl PairTest {
    /// Every test, in the order in which they are made.
    pub const ALL: [PairTest; 8] = [
        PairTest::Class,
        PairTest::Memory,
        PairTest::Host,
        PairTest::Floor,
        PairTest::Tolerance,
        PairTest::Benefit,
        PairTest::SlowdownLimit,
        PairTest::Throughput,
    ];

    /// The word used in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            PairTest::Class => "class",
            PairTest::Memory => "memory",
            PairTest::Host => "host",
            PairTest::Floor => "floor",
            PairTest::Tolerance => "tolerance",
            PairTest::Benefit => "benefit",
            PairTest::SlowdownLimit => "slowdown-limit",
            PairTest::Throughput => "throughput",
        }
    }
}

/// Why the best partner that a job could have was refused, with the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairRefusal {
    /// The test that failed.
    pub test: PairTest,
    /// The job it would have shared with.
    pub partner: JobId,
    /// Predicted retention of the two: its own, the partner's (ρ̂).
    pub retentions: [Retention; 2],
    /// What they would have had to satisfy.
    pub bound: PairBound,
}

/// What a pair has to satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairBound {
    /// Both keep ρ_tol of their speed.
    Tolerance {
        /// ρ_tol.
        tolerance: Retention,
        /// Contention pressure P, thousandths.
        pressure_milli: u32,
        /// Q̃ of both tenants.
        qad: [Degree; 2],
    },
    /// Served together they end sooner, on the mean, than one after the other.
    MeanCompletion {
        /// Mean time to their ends if they share.
        together: Span,
        /// If one waits for the other.
        apart: Span,
    },
    /// Neither is slowed down by more than its limit.
    Slowdown {
        /// The most that each accepts, thousandths: its own, the partner's.
        limits_milli: [u32; 2],
    },
    /// Both together do more than one alone.
    Throughput,
}

impl PairRefusal {
    fn write(&self, f: &mut impl fmt::Write, names: &impl Names) -> fmt::Result {
        let PairRefusal { test, partner, retentions: [own, theirs], bound } = self;
        let partner = names.job(*partner);
        write!(f, "{}: beside {partner} it would keep {own} of its speed", test.name())?;
        write!(f, " and {partner} {theirs}, ")?;
        match bound {
            PairBound::Tolerance { tolerance, pressure_milli, qad } => {
                let pressure = f64::from(*pressure_milli) / 1_000.0;
                write!(f, "both have to keep {tolerance}; pressure {pressure:.3}")?;
                write!(f, ", assurance {} and {}", qad[0], qad[1])
            }
            PairBound::MeanCompletion { together, apart } => {
                let (together, apart) = (together.as_secs_f64(), apart.as_secs_f64());
                write!(f, "together they end after {together:.0} s on the mean")?;
                write!(f, ", one after the other after {apart:.0} s")
            }
            PairBound::Slowdown { limits_milli } => {
                let [own, theirs] = limits_milli.map(|milli| f64::from(milli) / 1_000.0);
                write!(f, "and they accept slowdowns of {own:.2} and {theirs:.2}")
            }
            PairBound::Throughput => write!(f, "less together than one alone"),
        }
    }
}

impl fmt::Display for PairRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &Bare)
    }
}

/// A proposal that breaks a rule of the engine: a defect of the policy, not of the input. A
/// simulation stops at it; a live driver counts it and goes on without the proposal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// Placing a job that does not wait.
    #[error("policy placed {0}, which is not waiting")]
    NotWaiting(JobId),
    /// Evicting something that does not run.
    #[error("policy evicted an attempt of {0} that is not running")]
    NotRunning(JobId),
    /// Evicting what is charged to a guarantee.
    #[error("policy evicted {0}, whose devices are guaranteed to its tenant")]
    Guaranteed(JobId),
    /// Placing on devices that are not free.
    #[error("policy placed {0} on devices that are not free")]
    NotFree(JobId),
    /// Placing a gang in part, or with too much.
    #[error("policy gave {job} {given} devices where it asks for {asked}")]
    NotWhole {
        /// The gang.
        job: JobId,
        /// Devices proposed.
        given: u32,
        /// Devices demanded.
        asked: u32,
    },
    /// Sharing the devices of an attempt that cannot take this partner.
    #[error("policy let {0} share the devices of a job that takes no such partner")]
    NotAHost(JobId),
    /// Acting on another pool than the one whose round it is.
    #[error("policy acted on {0}, which belongs to another pool")]
    OtherPool(JobId),
}
