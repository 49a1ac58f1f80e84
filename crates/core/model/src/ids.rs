//! Dense newtype ids. Issued by whoever owns the table (the driver for jobs, nodes and tenants,
//! the engine for attempts), so that a `Vec` indexed by id replaces every map.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! dense_id {
    ($(#[$doc:meta])* $name:ident, $repr:ty, $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $repr);

        impl $name {
            /// The position of this id's entry in a table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the entry at `index`.
            ///
            /// # Panics
            /// If the table outgrew the id's width, which no supported cluster does.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(<$repr>::try_from(index).expect("more entries than the id can number"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

dense_id!(
    /// A job, numbered in order of submission.
    JobId, u32, "j"
);
dense_id!(
    /// A node. Also the order in which placement prefers otherwise equal nodes.
    NodeId, u32, "n"
);
dense_id!(
    /// One physical GPU.
    DeviceId, u32, "d"
);
dense_id!(
    /// A tenant (a Helios or Philly virtual cluster, a Kubernetes `TenantQuota`).
    TenantId, u32, "t"
);
dense_id!(
    /// A person or service account that submits jobs.
    UserId, u32, "u"
);
dense_id!(
    /// A set of nodes that share one queue.
    PoolId, u16, "p"
);
dense_id!(
    /// A GPU model such as A100.
    GpuTypeId, u16, "g"
);
dense_id!(
    /// A class of jobs with alike hardware profiles; retention tables are indexed by it.
    ProfileClassId, u32, "c"
);
dense_id!(
    /// Jobs share a device only inside one trust domain.
    TrustDomainId, u32, "td"
);
dense_id!(
    /// What a job requires of a node beside GPUs, CPU and memory: labels, taints, ports, other
    /// resources. Jobs that require the same share one.
    SiteId, u32, "s"
);
dense_id!(
    /// One try at running a job. Never reused, so an event that names a past attempt is stale.
    AttemptId, u32, "a"
);
dense_id!(
    /// A term of leadership. Commands carry it so that a deposed leader's are refused.
    Epoch, u32, "e"
);
