//! The order of jobs across tenants: worst-served tenant first, inside it by rank. And serving in it.

use deepshare_engine::{Draft, KeyId, Rank, Reason, State};
use deepshare_model::{Class, Demand, JobId, PoolId, TenantId};
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

/// Asks `start` for one waiting job after the other, charged to a class, until every kind of job has
/// been refused; those sleep until what they were refused for changes. What found no devices for one
/// job is not asked again for another like it, of whatever tenant; if `ask_each`, `start` is told, and
/// may know another way.
pub(crate) fn serve(
    draft: &mut Draft<'_>,
    order: Order,
    charge: Class,
    ask_each: bool,
    mut start: impl FnMut(&mut Draft<'_>, JobId, Option<&Reason>) -> Result<(), Reason>,
) {
    let mut streams = Streams::new(draft.state(), draft.pool(), order, charge);
    let mut hopeless: Vec<((Demand, u64), Reason)> = Vec::new();
    while let Some(job) = streams.next(draft.state()) {
        // Only what is charged to a guarantee can have devices that are not free.
        let none_free = charge == Class::BestEffort && draft.free_gpus() == 0;
        if none_free && !ask_each {
            for key in streams.rest().collect::<Vec<_>>() {
                let need = draft.state().key(key).demand.gpus;
                let open = draft.state().open_types(key, charge);
                draft.sleep(key, charge, open, Reason::NotEnoughFree { need, free: 0 });
            }
            return;
        }
        let key = draft.state().job(job).key;
        // Where a demand does not fit for one tenant it may for another with quota of other types.
        let open = draft.state().open_types(key, charge);
        let kind = (draft.state().key(key).demand, open);
        let known = hopeless.iter().find(|(other, _)| *other == kind);
        let mut known = known.map(|(_, reason)| reason.clone());
        if none_free && known.is_none() {
            known = Some(Reason::NotEnoughFree { need: kind.0.gpus, free: 0 });
        }
        let reason = match known {
            Some(reason) if !ask_each => reason,
            known => {
                let Err(reason) = start(draft, job, known.as_ref()) else { continue };
                if known.is_none() && !reason.is_quota() {
                    hopeless.push((kind, reason.clone()));
                }
                reason
            }
        };
        draft.sleep(key, charge, open, reason);
        streams.skip_key();
    }
}

/// A tenant's next job, and where its key is: compares across tenants by bucket of Q̃, T̂,
/// submission, id.
type Head = (u64, [u64; 2], JobId, u32, u32);

/// The waiting jobs of a pool that are worth asking for, in order, over all tenants.
struct Streams {
    /// By tenant.
    keys: Vec<Key>,
    tenants: Vec<Stream>,
    heads: BinaryHeap<Reverse<Head>>,
    /// The tenant and key of the last job.
    current: Option<(usize, usize)>,
}

struct Key {
    tenant: TenantId,
    key: KeyId,
    next: Option<(Rank, JobId)>,
}

/// One tenant's keys, and its place in the order.
struct Stream {
    bucket: u64,
    keys: std::ops::Range<usize>,
}

impl Streams {
    /// Over the awake keys whose start would be charged to a class.
    fn new(state: &State, pool: PoolId, order: Order, charge: Class) -> Streams {
        let mut keys: Vec<Key> = state
            .awake_keys(pool, charge)
            .map(|key| Key { tenant: state.key(key).tenant, key, next: state.first_waiting(key) })
            .collect();
        // Stable: keys of a tenant stay in their order.
        keys.sort_by_key(|key| key.tenant);
        let mut tenants: Vec<Stream> = Vec::new();
        let mut from = 0;
        for of_tenant in keys.chunk_by(|a, b| a.tenant == b.tenant) {
            let bucket = || state.qad(of_tenant[0].tenant).1.bucket(order.qad_bucket_milli);
            let bucket = if order.by_qad { bucket() } else { 0 };
            tenants.push(Stream { bucket, keys: from..from + of_tenant.len() });
            from += of_tenant.len();
        }
        let mut streams = Streams { keys, tenants, heads: BinaryHeap::new(), current: None };
        let heads = (0..streams.tenants.len()).filter_map(|tenant| streams.head(tenant));
        streams.heads = heads.map(Reverse).collect();
        streams
    }

    /// The next job in order.
    fn next(&mut self, state: &State) -> Option<JobId> {
        if let Some((tenant, key)) = self.current.take() {
            let key = &mut self.keys[key];
            key.next = key.next.and_then(|last| state.next_waiting(key.key, last));
            self.heads.extend(self.head(tenant).map(Reverse));
        }
        let Reverse((.., job, tenant, key)) = self.heads.pop()?;
        self.current = Some((tenant as usize, key as usize));
        Some(job)
    }

    /// Leaves out the remaining jobs of the last one's key.
    fn skip_key(&mut self) {
        if let Some((_, key)) = self.current {
            self.keys[key].next = None;
        }
    }

    /// The keys not looked at yet, in no order.
    fn rest(&self) -> impl Iterator<Item = KeyId> {
        self.keys.iter().filter(|key| key.next.is_some()).map(|key| key.key)
    }

    /// The key with a tenant's next job.
    fn first_of(&self, tenant: usize) -> Option<usize> {
        let waiting = |&key: &usize| self.keys[key].next.is_some();
        self.tenants[tenant].keys.clone().filter(waiting).min_by_key(|&key| self.keys[key].next)
    }

    fn head(&self, tenant: usize) -> Option<Head> {
        let key = self.first_of(tenant)?;
        let (Rank([_, time, submit]), job) = self.keys[key].next?;
        Some((self.tenants[tenant].bucket, [time, submit], job, tenant as u32, key as u32))
    }
}
