//! The order of jobs across tenants: worst-served tenant first, inside it by rank.

use deepshare_engine::{KeyId, Rank, State};
use deepshare_model::{Class, JobId, PoolId, TenantId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How tenants are ordered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// Width of a bucket of equal Q̃, thousandths.
    pub(crate) qad_bucket_milli: u32,
    /// False: all tenants are equal.
    pub(crate) by_qad: bool,
}

/// A tenant's next job: compares across tenants by bucket of Q̃, T̂, submission, id.
type Head = (u64, [u64; 2], JobId, usize);

/// The waiting jobs of some classes, in order, over all tenants of a pool.
pub(crate) struct Streams {
    tenants: Vec<Stream>,
    heads: BinaryHeap<Reverse<Head>>,
    current: Option<usize>,
}

/// One tenant's waiting jobs in rank order.
struct Stream {
    tenant: TenantId,
    bucket: u64,
    heap: BinaryHeap<Reverse<(Rank, JobId, KeyId)>>,
    current: Option<(Rank, JobId, KeyId)>,
}

impl Streams {
    pub(crate) fn new(
        state: &State,
        pool: PoolId,
        order: Order,
        wanted: impl Fn(Class) -> bool,
    ) -> Streams {
        let mut tenants: Vec<Stream> = Vec::new();
        let mut by_tenant: Vec<(TenantId, Rank, JobId, KeyId)> = state
            .active_keys(pool)
            .filter(|&key| wanted(state.key(key).class))
            .filter_map(|key| {
                let (rank, job) = state.first_waiting(key)?;
                Some((state.key(key).tenant, rank, job, key))
            })
            .collect();
        by_tenant.sort_unstable();
        for (tenant, rank, job, key) in by_tenant {
            if tenants.last().is_none_or(|stream| stream.tenant != tenant) {
                let bucket = || state.qad(tenant).1.bucket(order.qad_bucket_milli);
                tenants.push(Stream {
                    tenant,
                    bucket: if order.by_qad { bucket() } else { 0 },
                    heap: BinaryHeap::new(),
                    current: None,
                });
            }
            let stream = tenants.last_mut().expect("pushed above");
            stream.heap.push(Reverse((rank, job, key)));
        }
        let heads = tenants.iter().enumerate().filter_map(|(i, s)| s.head(i)).map(Reverse);
        Streams { heads: heads.collect(), tenants, current: None }
    }

    /// The next job in order.
    pub(crate) fn next(&mut self, state: &State) -> Option<JobId> {
        if let Some(index) = self.current.take() {
            let stream = &mut self.tenants[index];
            stream.advance(state);
            self.heads.extend(stream.head(index).map(Reverse));
        }
        let Reverse((_, _, job, index)) = self.heads.pop()?;
        let stream = &mut self.tenants[index];
        stream.current = stream.heap.pop().map(|Reverse(entry)| entry);
        self.current = Some(index);
        Some(job)
    }

    /// Leaves out the remaining jobs of the last one's key.
    pub(crate) fn skip_key(&mut self) {
        if let Some(index) = self.current {
            self.tenants[index].current = None;
        }
    }
}

impl Stream {
    fn head(&self, index: usize) -> Option<Head> {
        let Reverse((Rank([_, time, submit]), job, _)) = *self.heap.peek()?;
        Some((self.bucket, [time, submit], job, index))
    }

    fn advance(&mut self, state: &State) {
        if let Some((rank, job, key)) = self.current.take()
            && let Some((rank, job)) = state.next_waiting(key, (rank, job))
        {
            self.heap.push(Reverse((rank, job, key)));
        }
    }
}
