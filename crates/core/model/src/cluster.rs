//! Nodes, their devices and their host resources.

use crate::{GpuTypeId, PoolId};
use serde::{Deserialize, Serialize};

/// A set of devices of one node: bit `i` is the node's `i`-th GPU.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Devices(pub u64);

impl Devices {
    /// No device.
    pub const NONE: Devices = Devices(0);
    /// Most devices on one node.
    pub const MAX_PER_NODE: u32 = 64;

    /// The first `n` devices of a node.
    ///
    /// # Panics
    /// If `n` is above [`Devices::MAX_PER_NODE`].
    pub fn first(n: u32) -> Devices {
        assert!(n <= Self::MAX_PER_NODE, "a node has at most 64 devices");
        if n == 64 { Devices(u64::MAX) } else { Devices((1 << n) - 1) }
    }

    /// How many devices are in the set.
    #[inline]
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// True if the set is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The `n` lowest-numbered devices of the set, or all of it if it is smaller.
    #[inline]
    pub fn lowest(self, n: u32) -> Devices {
        let mut rest = self.0;
        for _ in 0..n {
            rest &= rest.wrapping_sub(1);
        }
        Devices(self.0 & !rest)
    }

    /// True if device `index` is in the set.
    #[inline]
    pub fn contains(self, index: u32) -> bool {
        self.0 >> index & 1 == 1
    }

    /// Devices in either set.
    #[inline]
    pub fn union(self, other: Devices) -> Devices {
        Devices(self.0 | other.0)
    }

    /// Devices in both sets.
    #[inline]
    pub fn intersect(self, other: Devices) -> Devices {
        Devices(self.0 & other.0)
    }

    /// Devices in `self` but not in `other`.
    #[inline]
    pub fn minus(self, other: Devices) -> Devices {
        Devices(self.0 & !other.0)
    }

    /// The indices in the set, ascending.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let index = rest.trailing_zeros();
            rest &= rest - 1;
            Some(index)
        })
    }
}

/// Host resources of a node or demanded of one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Resources {
    /// Thousandths of a CPU core.
    pub cpu_milli: u64,
    /// Host memory in MiB.
    pub memory_mib: u64,
}

impl Resources {
    /// What a node offers when its description does not limit it.
    pub const UNLIMITED: Resources =
        Resources { cpu_milli: u64::MAX / 4, memory_mib: u64::MAX / 4 };

    /// True if both amounts are within `limit`.
    #[inline]
    pub fn fits(self, limit: Resources) -> bool {
        self.cpu_milli <= limit.cpu_milli && self.memory_mib <= limit.memory_mib
    }

    /// Both amounts multiplied, as for `n` GPUs' worth.
    #[inline]
    pub fn times(self, n: u32) -> Resources {
        Resources {
            cpu_milli: self.cpu_milli * u64::from(n),
            memory_mib: self.memory_mib * u64::from(n),
        }
    }

    /// Adds to both amounts.
    #[inline]
    pub fn add(&mut self, other: Resources) {
        self.cpu_milli += other.cpu_milli;
        self.memory_mib += other.memory_mib;
    }

    /// Takes from both amounts.
    ///
    /// # Panics
    /// If more is taken than is there (in builds with overflow checks): books are then wrong.
    #[inline]
    pub fn take(&mut self, other: Resources) {
        self.cpu_milli -= other.cpu_milli;
        self.memory_mib -= other.memory_mib;
    }
}

/// A node as its owner describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// The pool whose queue it serves.
    pub pool: PoolId,
    /// The model of its GPUs; a node has GPUs of one model.
    pub gpu_type: GpuTypeId,
    /// Number of GPUs, at most [`Devices::MAX_PER_NODE`].
    pub gpus: u32,
    /// Memory of each GPU in MiB.
    pub gpu_memory_mib: u32,
    /// Allocatable CPU and host memory.
    pub capacity: Resources,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_takes_from_the_bottom_and_never_more_than_there_is() {
        let set = Devices(0b1011_0100);
        assert_eq!(set.lowest(2), Devices(0b0001_0100));
        assert_eq!(set.lowest(9), set);
        assert_eq!(set.lowest(0), Devices::NONE);
        assert_eq!(Devices::first(64).count(), 64);
        assert_eq!(Devices(0b1001).iter().collect::<Vec<_>>(), [0, 3]);
    }
}
