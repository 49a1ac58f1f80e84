//! In-place resizes: best-effort attempts give CPU and memory that they do not need.

use crate::command::Command;
use crate::state::State;
use deepshare_model::{AttemptId, Class, JobId, Resources};

impl State {
    /// What the attempt may be shrunk to, if that is less than it holds: best-effort attempts with a
    /// recommendation, one shrink at a time.
    pub fn shrinks_to(&self, id: AttemptId) -> Option<Resources> {
        let attempt = self.attempt(id);
        let least = self.job(attempt.job).spec.least_per_gpu()?;
        let free = attempt.charged == Class::BestEffort
            && attempt.is_evictable()
            && attempt.resizing.is_none()
            && !attempt.rigid;
        let held = attempt.per_gpu;
        let less = least.fits(held) && least != held;
        (free && less).then_some(least)
    }

    /// Books a shrink, and returns what the attempt held beside each GPU.
    pub(crate) fn shrink(&mut self, id: AttemptId, per_gpu: Resources) -> Resources {
        let before = std::mem::replace(&mut self.attempts[id.index()].per_gpu, per_gpu);
        self.attempts[id.index()].resizing = Some(before);
        self.resizes += 1;
        let given = difference(before, per_gpu);
        for slice in self.attempt(id).placement.clone() {
            let given = given.times(slice.devices.count());
            self.with_node(slice.node, |node| node.give_host(given));
        }
        before
    }

    /// Takes a shrink back.
    pub(crate) fn unshrink(&mut self, id: AttemptId, before: Resources) {
        let per_gpu = std::mem::replace(&mut self.attempts[id.index()].per_gpu, before);
        self.attempts[id.index()].resizing = None;
        self.resizes -= 1;
        let taken = difference(before, per_gpu);
        for slice in self.attempt(id).placement.clone() {
            let taken = taken.times(slice.devices.count());
            self.with_node(slice.node, |node| node.take_host(taken));
        }
    }

    /// True if an attempt's nodes have room for what it held before its shrink.
    pub(crate) fn fits_unshrunk(&self, id: AttemptId, before: Resources) -> bool {
        let attempt = self.attempt(id);
        let more = difference(before, attempt.per_gpu);
        attempt.placement.iter().all(|slice| {
            let node = &self.nodes[slice.node.index()];
            more.times(slice.devices.count()).fits(node.host_room())
        })
    }

    pub(crate) fn announce_shrink(&self, attempt: AttemptId, out: &mut Vec<Command>) {
        let (epoch, per_gpu) = (self.epoch, self.attempt(attempt).per_gpu);
        out.push(Command::Shrink { attempt, epoch, per_gpu });
    }

    /// A shrink is visible: who waited for it may start.
    pub(crate) fn resized(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let live = self.attempts.get_mut(id.index()).filter(|attempt| attempt.is_live());
        let Some(attempt) = live else { return };
        if attempt.resizing.take().is_none() {
            return;
        }
        self.resizes -= 1;
        if !self.leaves(id) {
            let waiters = std::mem::take(&mut self.attempts[id.index()].waiters);
            self.release_waiters(id, waiters, out);
        }
        let job = self.attempt(id).job;
        let nodes: Vec<_> = self.attempt(id).placement.iter().map(|slice| slice.node).collect();
        nodes.into_iter().for_each(|node| self.note_room(node));
        let pool = self.pool_of(job).index();
        self.pools[pool].dirty = true;
    }

    /// A shrink cannot be done: who was promised what it would have freed has to wait again. Returns
    /// their jobs.
    pub(crate) fn resize_refused(&mut self, id: AttemptId, out: &mut Vec<Command>) -> Vec<JobId> {
        let Some(attempt) = self.attempts.get(id.index()) else { return Vec::new() };
        let Some(before) = attempt.resizing.filter(|_| attempt.is_live()) else {
            return Vec::new();
        };
        self.unshrink(id, before);
        self.attempts[id.index()].rigid = true;
        let job = self.attempt(id).job;
        let pool = self.pool_of(job).index();
        self.pools[pool].dirty = true;
        if self.leaves(id) {
            return Vec::new();
        }
        let waiters = std::mem::take(&mut self.attempts[id.index()].waiters);
        waiters.into_iter().map(|waiter| self.drop_reservation(waiter, out)).collect()
    }

    /// True if the attempt is on its way out: who waits for it waits for its devices, too.
    fn leaves(&self, id: AttemptId) -> bool {
        !self.attempt(id).is_evictable()
    }
}

fn difference(more: Resources, less: Resources) -> Resources {
    Resources {
        cpu_milli: more.cpu_milli - less.cpu_milli,
        memory_mib: more.memory_mib - less.memory_mib,
    }
}
