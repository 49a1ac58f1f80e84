//! An attempt as the stream describes it.

use super::pairs::Joining;
use deepshare_engine::{AttemptState, EvictReason, Placement};
use deepshare_model::{Class, Epoch, GpuTypeId, JobId, Resources, Time};

#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub job: JobId,
    /// The term under which it was placed.
    pub epoch: Epoch,
    pub charged: Class,
    pub placement: Placement,
    pub gpu_type: GpuTypeId,
    /// Devices that it was given: as many as its job asks for, unless it was found.
    pub gpus: u32,
    /// CPU and memory beside each of its GPUs.
    pub per_gpu: Resources,
    /// What it held beside each before a resize that is not confirmed.
    pub resizes_from: Option<Resources>,
    /// Since when it holds less than its job asks for.
    pub shrunk_at: Option<Time>,
    /// A resize of it was refused.
    pub rigid: bool,
    /// How far it came, its ending apart: `Reserved` to `Running`, or `Released`.
    pub reached: AttemptState,
    pub ending: Option<Ending>,
    /// A member of it is gone.
    pub broken: bool,
    pub started_at: Option<Time>,
    /// It made progress at some time.
    pub has_run: bool,
    /// When it first made progress.
    pub ran_since: Option<Time>,
    /// Its eviction was refused: no victim before this instant.
    pub spared_until: Time,
    /// The pairs it was admitted to.
    pub joins: Vec<Joining>,
    /// In how many steps each of its iterations is done.
    pub steps: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Evicted(EvictReason),
    Finished,
}

impl Attempt {
    pub fn state(&self) -> AttemptState {
        match (self.reached, self.ending) {
            (AttemptState::Released, _) => AttemptState::Released,
            (_, Some(_)) => AttemptState::Terminating,
            (reached, None) => reached,
        }
    }

    pub fn is_live(&self) -> bool {
        self.reached != AttemptState::Released
    }

    pub fn is_reserved(&self) -> bool {
        self.reached == AttemptState::Reserved
    }

    /// Started and not released.
    pub fn holds(&self) -> bool {
        self.is_live() && !self.is_reserved()
    }

    /// Started and not ending: it may be asked to give its devices back.
    pub fn is_evictable(&self) -> bool {
        (AttemptState::Binding..AttemptState::Terminating).contains(&self.state())
    }

    /// What it uses beside each GPU when all that leaves or shrinks has done so.
    pub fn stays(&self) -> Option<Resources> {
        (!self.is_leaving()).then_some(self.per_gpu)
    }

    /// What it uses beside each GPU just now.
    pub fn uses(&self) -> Option<Resources> {
        let before = self.resizes_from.filter(|_| self.is_shrinking());
        self.holds().then(|| before.unwrap_or(self.per_gpu))
    }

    /// It is to give CPU or memory that it uses still.
    pub fn is_shrinking(&self) -> bool {
        self.resizes_from.is_some_and(|before| !before.fits(self.per_gpu))
    }

    /// Live, and on its way out.
    pub fn is_leaving(&self) -> bool {
        self.is_live() && self.ending.is_some()
    }
}
