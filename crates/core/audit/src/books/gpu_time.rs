//! Where GPU time goes, summed over time as it passes.

use crate::books::node::Shares;
use crate::report::GpuTimeShares;
use deepshare_model::{GpuTime, Span};

/// How many devices are where now, and how long devices were there so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GpuTimes {
    installed: u64,
    held: u64,
    shared: u64,
    promised: u64,
    free: u64,
    closed: u64,
    so_far: GpuTimeShares,
}

impl GpuTimes {
    pub fn install(&mut self, gpus: u32) {
        self.installed += u64::from(gpus);
    }

    /// A node's devices are no longer where they were.
    pub fn remove(&mut self, shares: &Shares) {
        self.held -= u64::from(shares.held.count());
        self.shared -= u64::from(shares.shared);
        self.promised -= u64::from(shares.promised.count());
        self.free -= u64::from(shares.free.count());
        self.closed -= u64::from(shares.closed.count());
    }

    /// A node's devices are here from now on.
    pub fn add(&mut self, shares: &Shares) {
        self.held += u64::from(shares.held.count());
        self.shared += u64::from(shares.shared);
        self.promised += u64::from(shares.promised.count());
        self.free += u64::from(shares.free.count());
        self.closed += u64::from(shares.closed.count());
    }

    /// The shares when `span` more has passed.
    pub fn after(&self, span: Span) -> GpuTimeShares {
        let on = |gpus: u64| GpuTime(u128::from(span.0) * u128::from(gpus));
        GpuTimeShares {
            installed: self.so_far.installed + on(self.installed),
            held: self.so_far.held + on(self.held),
            shared: self.so_far.shared + on(self.shared),
            promised: self.so_far.promised + on(self.promised),
            free: self.so_far.free + on(self.free),
            closed: self.so_far.closed + on(self.closed),
        }
    }

    pub fn pass(&mut self, span: Span) {
        if !span.is_zero() {
            self.so_far = self.after(span);
        }
    }
}
