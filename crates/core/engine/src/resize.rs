//! In-place resizes: best-effort attempts give CPU and memory that they do not need, and have them back
//! when nobody else does.

use crate::attempt::Slice;
use crate::command::Command;
use crate::state::State;
use deepshare_model::{AttemptId, Class, JobId, PoolId, Resources, Span, Time};

/// How long an attempt stays shrunk at least. A resize takes a kubelet seconds, and whoever it was
/// shrunk for may be followed by others of its kind: an attempt that went to and fro with each of them
/// would cost more than it gains.
const COOL_DOWN: Span = Span::from_secs(60);

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

    /// Lets an attempt hold so much beside each GPU, and returns what it held before.
    fn hold(&mut self, id: AttemptId, per_gpu: Resources) -> Resources {
        let before = std::mem::replace(&mut self.attempts[id.index()].per_gpu, per_gpu);
        for slice in self.attempt(id).placement.clone() {
            let gpus = slice.devices.count();
            self.with_node(slice.node, |node| {
                node.give_host(before.times(gpus));
                node.take_host(per_gpu.times(gpus));
            });
        }
        before
    }

    /// Books a resize, and returns what the attempt held beside each GPU.
    pub(crate) fn begin_resize(&mut self, id: AttemptId, per_gpu: Resources) -> Resources {
        let before = self.hold(id, per_gpu);
        self.attempts[id.index()].resizing = Some(before);
        self.resizes += 1;
        before
    }

    /// Takes a resize back.
    pub(crate) fn undo_resize(&mut self, id: AttemptId, before: Resources) {
        self.hold(id, before);
        self.attempts[id.index()].resizing = None;
        self.resizes -= 1;
    }

    /// True if an attempt's nodes have room for it to hold so much more beside each GPU.
    pub(crate) fn fits_grown(&self, id: AttemptId, per_gpu: Resources) -> bool {
        let attempt = self.attempt(id);
        let more = difference(per_gpu, attempt.per_gpu);
        attempt.placement.iter().all(|slice| {
            let node = &self.nodes[slice.node.index()];
            more.times(slice.devices.count()).fits(node.host_room())
        })
    }

    pub(crate) fn announce_shrink(&self, attempt: AttemptId, out: &mut Vec<Command>) {
        let (epoch, per_gpu) = (self.epoch, self.attempt(attempt).per_gpu);
        out.push(Command::Shrink { attempt, epoch, per_gpu });
    }

    /// A resize is visible: who waited for a shrink may start.
    pub(crate) fn resized(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let live = self.attempts.get_mut(id.index()).filter(|attempt| attempt.is_live());
        let Some(attempt) = live else { return };
        let shrank = attempt.is_shrinking();
        if attempt.resizing.take().is_none() {
            return;
        }
        self.resizes -= 1;
        if !shrank {
            return;
        }
        self.note_shrunk(id);
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

    /// A resize cannot be done: who was promised what a shrink would have freed has to wait again.
    /// Returns their jobs.
    pub(crate) fn resize_refused(&mut self, id: AttemptId, out: &mut Vec<Command>) -> Vec<JobId> {
        let Some(attempt) = self.attempts.get(id.index()) else { return Vec::new() };
        let Some(before) = attempt.resizing.filter(|_| attempt.is_live()) else {
            return Vec::new();
        };
        let shrank = attempt.is_shrinking();
        self.attempts[id.index()].rigid = true;
        let pool = self.pool_of(self.attempt(id).job).index();
        self.pools[pool].dirty = true;
        if !shrank {
            self.give_back_growth(id, before);
            return Vec::new();
        }
        self.undo_resize(id, before);
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

impl State {
    /// Notes that an attempt holds less than its job asks for, from now on.
    pub(crate) fn note_shrunk(&mut self, id: AttemptId) {
        let attempt = self.attempt(id);
        let asked = self.job(attempt.job).spec.demand.per_gpu;
        let less = attempt.per_gpu.fits(asked) && attempt.per_gpu != asked;
        if !less || attempt.rigid {
            return;
        }
        self.forget_growth(id);
        let (at, pool) = (self.now + COOL_DOWN, self.pool_of(self.attempt(id).job).index());
        self.attempts[id.index()].grows_from = Some(at);
        self.pools[pool].shrunk.insert((at, id));
        let look = &mut self.pools[pool].grow_at;
        *look = Some(look.map_or(at, |earlier| earlier.min(at)));
    }

    /// The attempt is not to grow any more.
    #[inline]
    pub(crate) fn forget_growth(&mut self, id: AttemptId) {
        if let Some(at) = self.attempts[id.index()].grows_from.take() {
            let pool = self.pool_of(self.attempt(id).job).index();
            self.pools[pool].shrunk.remove(&(at, id));
        }
    }

    /// Something changed that may let a pool's shrunk attempts grow.
    #[inline]
    pub(crate) fn look_at_growth(&mut self, pool: PoolId) {
        let pool = &mut self.pools[pool.index()];
        if !pool.shrunk.is_empty() {
            pool.grow_at = Some(self.now);
        }
    }

    /// When it is next to be looked at who can grow, where the policy lets anybody.
    pub(crate) fn next_growth(&self) -> Option<Time> {
        match self.grows {
            true => self.pools.iter().filter_map(|pool| pool.grow_at).min(),
            false => None,
        }
    }

    /// Looks at the pools for which it is time.
    pub(crate) fn grow_all_back(&mut self, out: &mut Vec<Command>) {
        for pool in (0..self.pools.len()).map(PoolId::from_index) {
            if self.pool(pool).grow_at.is_some_and(|at| at <= self.now) {
                self.grow_back(pool, out);
            }
        }
    }

    /// Gives a pool's shrunk attempts back what their jobs ask for, those shrunk first leading, where
    /// their nodes have it and nobody waits for it.
    fn grow_back(&mut self, pool: PoolId, out: &mut Vec<Command>) {
        let now = self.now;
        let books = &self.pools[pool.index()];
        let ready: Vec<AttemptId> =
            books.shrunk.iter().take_while(|(at, _)| *at <= now).map(|&(_, id)| id).collect();
        let later = books.shrunk.iter().map(|&(at, _)| at).find(|&at| at > now);
        let wanted = books.waiting > 0
            && !ready.is_empty()
            && (books.reasons.lack_host()
                || books.active_keys.iter().any(|&key| self.queues.lacks_host(key)));
        self.pools[pool.index()].grow_at = later;
        for id in ready {
            if !wanted && self.can_grow(id) {
                self.grow(id, out);
            }
        }
    }

    fn can_grow(&self, id: AttemptId) -> bool {
        let attempt = self.attempt(id);
        let asked = self.job(attempt.job).spec.demand.per_gpu;
        // What is promised there, or not given yet, is nobody's to grow into.
        let unspoken = |slice: &Slice| {
            let node = &self.nodes[slice.node.index()];
            let mut there = node.everyone().into_iter();
            node.claimed.is_empty() && !there.any(|id| self.attempt(id).is_shrinking())
        };
        attempt.is_evictable()
            && attempt.resizing.is_none()
            && self.fits_grown(id, asked)
            && attempt.placement.iter().all(unspoken)
    }

    fn grow(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        self.forget_growth(id);
        let per_gpu = self.job(self.attempt(id).job).spec.demand.per_gpu;
        self.begin_resize(id, per_gpu);
        out.push(Command::Grow { attempt: id, epoch: self.epoch, per_gpu });
    }

    /// The world could not grow it.
    fn give_back_growth(&mut self, id: AttemptId, before: Resources) {
        self.undo_resize(id, before);
        for slice in self.attempt(id).placement.clone() {
            self.note_room(slice.node);
        }
    }
}

fn difference(more: Resources, less: Resources) -> Resources {
    Resources {
        cpu_milli: more.cpu_milli - less.cpu_milli,
        memory_mib: more.memory_mib - less.memory_mib,
    }
}
