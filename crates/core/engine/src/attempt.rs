//! One try at running a job.

use crate::command::EvictReason;
use crate::sharing::hosts::HostKind;
use crate::sharing::{Beside, Company};
use deepshare_model::{
    AttemptId, Class, Devices, Epoch, GpuTypeId, JobId, NodeId, Resources, Retention, Span, Time,
};
use serde::{Deserialize, Serialize};

/// Devices of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slice {
    /// The node.
    pub node: NodeId,
    /// Which of its devices.
    pub devices: Devices,
}

/// Where an attempt runs: one slice a node, in the order the placer chose them.
pub type Placement = Vec<Slice>;

/// The life of an attempt. Variants are ordered: an event can only move an attempt forward, which
/// makes late, doubled and reordered acknowledgements harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptState {
    /// Devices are promised but still held by others. Next: `Binding`, or `Released` if given up.
    Reserved,
    /// The world was asked to start it. Next: `Starting`, `Running`, `Terminating`, `Released`.
    Binding,
    /// Bound, not yet making progress. Next: `Running`, `Terminating`, `Released`.
    Starting,
    /// Making progress. Next: `Terminating`, `Released`.
    Running,
    /// Ending, still holding its devices. Next: `Released`; or back to what it was when the world
    /// refuses the eviction, the one step backwards.
    Terminating,
    /// Over. Nothing follows.
    Released,
}

/// What the books hold of an attempt beyond its placement; see `State::sync_attempt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Its devices count as held by guaranteed jobs.
    pub(crate) held: bool,
    /// Its devices count as reclaimable, and it is expected to end then.
    pub(crate) reclaimable: Option<Time>,
    /// All who share its devices count as reclaimable, and it is the first of them to end, then.
    pub(crate) leads: Option<(GpuTypeId, Time)>,
    /// It is a guaranteed job charged as best-effort.
    pub(crate) spilled: bool,
    /// It holds its devices until then, as far as is known.
    pub(crate) until: Option<Time>,
    /// It could take a partner, as this kind of host, and is expected to end then.
    pub(crate) host: Option<(HostKind, Time)>,
}

/// One try at running a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its id; later attempts have higher ones.
    pub id: AttemptId,
    /// Whose.
    pub job: JobId,
    /// The term of leadership that decided it.
    pub epoch: Epoch,
    /// Where it is in its life.
    pub state: AttemptState,
    /// How its devices are charged: as its job was submitted, or a guaranteed job beyond its
    /// tenant's quota as best-effort (spec §3, spill) until it is promoted.
    pub charged: Class,
    /// Where it runs. Emptied on release.
    pub placement: Placement,
    /// Devices of it, in all.
    gpus: u32,
    /// CPU and memory that it holds beside each GPU: as its job asks, or less after a shrink.
    pub per_gpu: Resources,
    /// What it held before a resize that is not confirmed yet.
    pub(crate) resizing: Option<Resources>,
    /// The world could not resize it: not asked again.
    pub(crate) rigid: bool,
    /// It holds less than its job asks for, and may grow from then on.
    pub(crate) grows_from: Option<Time>,
    /// When it began to make progress.
    pub running_since: Option<Time>,
    /// Who shares its devices, in the order in which they joined.
    pub beside: Vec<Beside>,
    /// The pairs it joined or is to join.
    pub(crate) company: Vec<Company>,
    /// In how many steps each iteration is done (gradient accumulation), 1 = as configured; more only
    /// beside others, to fit their memory.
    pub steps: u32,
    /// What that leaves of its speed.
    pub(crate) pace: Retention,
    /// Solo work believed done when its speed last changed, and when that was.
    pub(crate) worked: Span,
    pub(crate) rate_since: Time,
    /// What the tenant's account and the nodes' reclaimable devices hold of it.
    pub(crate) counted: Counted,
    /// Attempts that must release devices before this one can start.
    pub(crate) awaits: Vec<AttemptId>,
    /// Reserved attempts that wait for this one to release devices.
    pub(crate) waiters: Vec<AttemptId>,
    /// Why it is ending, and the state to return to if the eviction is refused.
    pub(crate) eviction: Option<(EvictReason, AttemptState)>,
    /// The eviction was refused: not a victim again before this instant.
    pub(crate) no_eviction_before: Time,
    /// A member of it is gone: it ends, also if an eviction under way is refused.
    pub(crate) broken: bool,
}

impl Attempt {
    /// An attempt that is promised devices, with CPU and memory beside each, and nobody on them yet.
    #[inline]
    pub(crate) fn new(
        (id, job): (AttemptId, JobId),
        epoch: Epoch,
        charged: Class,
        placement: Placement,
        per_gpu: Resources,
    ) -> Attempt {
        Attempt {
            id,
            job,
            epoch,
            state: AttemptState::Reserved,
            charged,
            gpus: placement.iter().map(|slice| slice.devices.count()).sum(),
            placement,
            per_gpu,
            resizing: None,
            rigid: false,
            grows_from: None,
            running_since: None,
            beside: Vec::new(),
            company: Vec::new(),
            steps: 1,
            pace: Retention::WHOLE,
            worked: Span::ZERO,
            rate_since: Time::ZERO,
            counted: Counted::default(),
            awaits: Vec::new(),
            waiters: Vec::new(),
            eviction: None,
            no_eviction_before: Time::ZERO,
            broken: false,
        }
    }

    /// Why it is ending, if it was evicted.
    pub fn evict_reason(&self) -> Option<EvictReason> {
        self.eviction.map(|(reason, _)| reason)
    }

    /// The share of its solo speed at which it is believed to run: a gang runs at its slowest.
    #[inline]
    pub fn rate(&self) -> Retention {
        let beside = self.beside.iter().map(|beside| beside.retention);
        beside.min().map_or(Retention::WHOLE, |kept| self.pace.times(kept))
    }

    /// True if it is to give CPU and memory that it holds still.
    pub(crate) fn is_shrinking(&self) -> bool {
        self.resizing.is_some_and(|before| !before.fits(self.per_gpu))
    }

    /// Whom it joined.
    pub(crate) fn joined(&self, host: AttemptId) -> bool {
        self.company.iter().any(|company| company.host == host)
    }

    /// Devices that it holds, is promised, or held until its release.
    #[inline]
    pub fn gpus(&self) -> u32 {
        self.gpus
    }

    /// An eviction of it was refused: the world is not asked again before this instant.
    pub fn no_eviction_before(&self) -> Time {
        self.no_eviction_before
    }

    /// True while it holds, or is promised, devices.
    pub fn is_live(&self) -> bool {
        self.state < AttemptState::Released
    }

    /// True if it can be chosen as a victim: started, and not ending already.
    pub fn is_evictable(&self) -> bool {
        (AttemptState::Binding..AttemptState::Terminating).contains(&self.state)
    }
}
