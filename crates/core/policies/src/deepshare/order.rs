//! The order of jobs across tenants: worst-served tenant first, inside it by rank. And serving in it.

use deepshare_engine::{AskId, Draft, KeyId, Rank, Reason, State, Waiting};
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

/// Who starts jobs, charged to a class, and lets them share.
pub(crate) trait Starter {
    /// Starts a waiting job, or says why not: the rest of its kind is not asked for devices then.
    fn start(&mut self, draft: &mut Draft<'_>, job: JobId) -> Result<(), Reason>;

    /// True if jobs may join others.
    fn shares(&self) -> bool {
        false
    }

    /// Whether a job of a tenant may find a partner now, if it asks this.
    fn has_hope(&mut self, _: &mut Draft<'_>, _: TenantId, _: AskId) -> bool {
        false
    }

    /// Leaves of what jobs of a tenant and of so many GPUs ask that with which one may find a partner
    /// now.
    fn keep_hopeful(&mut self, _: &mut Draft<'_>, _: (TenantId, u32), asks: &mut Vec<AskId>) {
        asks.clear();
    }

    /// Starts a job for which there are no devices beside another one, and says whether it did.
    fn share(&mut self, _: &mut Draft<'_>, _: JobId) -> bool {
        false
    }
}

/// Jobs that sleep for want of devices and are to be asked for partners, and what they ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sleeping {
    /// They have not been asked before.
    pub(crate) new: Vec<(AskId, Waiting)>,
    /// They may find one.
    pub(crate) hopeful: Vec<(AskId, Waiting)>,
}

/// Starts one waiting job after the other, charged to a class, until every kind of job has been
/// refused; those sleep until what they were refused for changes. What found no devices for one job
/// is not asked again for another like it, of whatever tenant. Where jobs share, those that found no
/// devices are asked once more if they may find a partner or have not looked for one, and so are
/// those of the `sleeping` ones.
pub(crate) fn serve(
    draft: &mut Draft<'_>,
    order: Order,
    charge: Class,
    sleeping: Sleeping,
    starter: &mut impl Starter,
) {
    let mut streams = Streams::new((draft.state(), draft.pool()), order, charge, sleeping);
    for tenant in 0..streams.tenants.len() {
        streams.line_up(tenant, draft, starter);
    }
    let mut hopeless: Vec<((Demand, u64), Reason)> = Vec::new();
    let (mut hopeful, mut unasked): (Vec<AskId>, Vec<AskId>) = (Vec::new(), Vec::new());
    while let Some((tenant, Next { job: (_, job), key, ask })) = streams.next(draft, starter) {
        if let Some(ask) = ask {
            let asks =
                starter.has_hope(draft, tenant, ask) || !draft.state().has_asked(key, ask, charge);
            if !asks || !starter.share(draft, job) {
                streams.skip_key(draft, starter);
            }
            continue;
        }
        // Only what is charged to a guarantee can have devices that are not free.
        let none_free = charge == Class::BestEffort && draft.free_gpus() == 0;
        if none_free && !starter.shares() {
            for key in streams.rest().collect::<Vec<_>>() {
                let need = draft.state().key(key).demand.gpus;
                let open = draft.state().open_types(key, charge);
                draft.sleep(key, charge, open, Reason::NotEnoughFree { need, free: 0 });
            }
            return;
        }
        // Where a demand does not fit for one tenant it may for another with quota of other types.
        let open = draft.state().open_types(key, charge);
        let kind = (draft.state().key(key).demand, open);
        let known = hopeless.iter().find(|(other, _)| *other == kind);
        let mut known = known.map(|(_, reason)| reason.clone());
        if none_free && known.is_none() {
            known = Some(Reason::NotEnoughFree { need: kind.0.gpus, free: 0 });
        }
        let made = draft.state().job(job).ask.filter(|_| known.is_none());
        let reason = match known {
            Some(reason) => reason,
            None => {
                let Err(reason) = starter.start(draft, job) else { continue };
                if !reason.is_quota() {
                    hopeless.push((kind, reason.clone()));
                }
                reason
            }
        };
        let over_quota = reason.is_quota();
        draft.sleep(key, charge, open, reason);
        if starter.shares() && !over_quota {
            hopeful.clear();
            unasked.clear();
            for (ask, asked) in draft.state().asks_of(key, charge) {
                if Some(ask) != made {
                    if asked { hopeful.push(ask) } else { unasked.push(ask) }
                }
            }
            if !hopeful.is_empty() {
                starter.keep_hopeful(draft, (tenant, kind.0.gpus), &mut hopeful);
            }
            for &ask in unasked.iter().chain(&hopeful) {
                if let Some(job) = draft.state().first_asking(key, ask) {
                    streams.add(Next { job, key, ask: Some(ask) });
                }
            }
        }
        streams.skip_key(draft, starter);
    }
}

/// A tenant's next job: compares across tenants by bucket of Q̃, T̂, submission, id.
type Head = (u64, [u64; 2], JobId, u32);

/// The waiting jobs of a pool that are worth asking for, in order, over all tenants.
struct Streams {
    tenants: Vec<Stream>,
    /// The first job of every tenant but the current one's.
    heads: BinaryHeap<Reverse<Head>>,
    /// The tenant and job handed out last.
    current: Option<(usize, Next)>,
}

/// One tenant's place in the order, and the first jobs of its keys.
struct Stream {
    tenant: TenantId,
    bucket: u64,
    keys: BinaryHeap<Reverse<Next>>,
    /// The same of those that sleep and may find a partner. Most lose their hope to those before them.
    hopeful: Vec<Next>,
}

/// A key's next job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    job: (Rank, JobId),
    key: KeyId,
    /// The key sleeps, and this is what its jobs ask of a partner.
    ask: Option<AskId>,
}

impl Stream {
    /// The next job, those that have no hope any more left out.
    fn peek(&mut self, draft: &mut Draft<'_>, starter: &mut impl Starter) -> Option<Next> {
        let first = |hopeful: &[Next]| hopeful.iter().min().copied();
        let mut hopeful = first(&self.hopeful);
        let mut has_hope =
            |next: &Next| next.ask.is_some_and(|ask| starter.has_hope(draft, self.tenant, ask));
        if hopeful.is_some_and(|first| !has_hope(&first)) {
            self.hopeful.retain(has_hope);
            hopeful = first(&self.hopeful);
        }
        let other = self.keys.peek().map(|&Reverse(next)| next);
        [hopeful, other].into_iter().flatten().min()
    }

    fn pop(&mut self, next: Next) {
        match self.hopeful.iter().position(|&hopeful| hopeful == next) {
            Some(at) => _ = self.hopeful.swap_remove(at),
            None => _ = self.keys.pop(),
        }
    }
}

impl Streams {
    /// Over the awake keys whose start would be charged to a class, and some that sleep.
    fn new(
        (state, pool): (&State, PoolId),
        order: Order,
        charge: Class,
        sleeping: Sleeping,
    ) -> Streams {
        let mut places: Vec<Option<usize>> = vec![None; state.tenant_count()];
        let mut streams = Streams { tenants: Vec::new(), heads: BinaryHeap::new(), current: None };
        let mut add = |tenant: TenantId, hopeful: bool, next: Next| {
            let place = *places[tenant.index()].get_or_insert_with(|| {
                let bucket = || state.qad(tenant).1.bucket(order.qad_bucket_milli);
                let bucket = if order.by_qad { bucket() } else { 0 };
                let stream =
                    Stream { tenant, bucket, keys: BinaryHeap::new(), hopeful: Vec::new() };
                streams.tenants.push(stream);
                streams.tenants.len() - 1
            });
            let stream = &mut streams.tenants[place];
            match hopeful {
                true => stream.hopeful.push(next),
                false => stream.keys.push(Reverse(next)),
            }
        };
        for key in state.awake_keys(pool, charge) {
            if let Some(job) = state.first_waiting(key) {
                add(state.key(key).tenant, false, Next { job, key, ask: None });
            }
        }
        for (list, hopeful) in [(sleeping.new, false), (sleeping.hopeful, true)] {
            for (ask, Waiting { key, tenant, first }) in list {
                add(tenant, hopeful, Next { job: first, key, ask: Some(ask) });
            }
        }
        streams
    }

    /// The next job in order.
    fn next(
        &mut self,
        draft: &mut Draft<'_>,
        starter: &mut impl Starter,
    ) -> Option<(TenantId, Next)> {
        if let Some((tenant, last)) = self.current.take() {
            let next = match last.ask {
                None => draft.state().next_waiting(last.key, last.job),
                Some(ask) => draft.state().next_asking(last.key, ask, last.job),
            };
            self.tenants[tenant].keys.extend(next.map(|job| Reverse(Next { job, ..last })));
            self.line_up(tenant, draft, starter);
        }
        loop {
            let Reverse((.., job, tenant)) = self.heads.pop()?;
            let stream = &mut self.tenants[tenant as usize];
            let next = stream.peek(draft, starter);
            // It may have lost its hope since it was put there.
            let Some(next) = next.filter(|next| next.job.1 == job) else {
                self.line_up(tenant as usize, draft, starter);
                continue;
            };
            stream.pop(next);
            self.current = Some((tenant as usize, next));
            return Some((stream.tenant, next));
        }
    }

    /// Adds others of the last job's key.
    fn add(&mut self, next: Next) {
        if let Some((tenant, _)) = self.current {
            self.tenants[tenant].keys.push(Reverse(next));
        }
    }

    /// Leaves out the remaining jobs of the last one's key.
    fn skip_key(&mut self, draft: &mut Draft<'_>, starter: &mut impl Starter) {
        if let Some((tenant, _)) = self.current.take() {
            self.line_up(tenant, draft, starter);
        }
    }

    /// The keys of the last job and of those not handed out yet, in no order.
    fn rest(&self) -> impl Iterator<Item = KeyId> {
        let others = self.tenants.iter().flat_map(|theirs| theirs.keys.iter());
        let last = self.current.iter().map(|(_, last)| last);
        last.chain(others.map(|Reverse(next)| next)).map(|next| next.key)
    }

    /// Puts a tenant where its next job belongs.
    fn line_up(&mut self, tenant: usize, draft: &mut Draft<'_>, starter: &mut impl Starter) {
        let stream = &mut self.tenants[tenant];
        if let Some(next) = stream.peek(draft, starter) {
            let (Rank([_, time, submit]), job) = next.job;
            let head = (stream.bucket, [time, submit], job, tenant as u32);
            self.heads.push(Reverse(head));
        }
    }
}
