//! Proposals to share devices, and hopes of doing so.

use super::{Draft, Proposal, Why};
use crate::attempt::{AttemptState, Placement, Slice};
use crate::command::EvictReason;
use crate::job::Job;
use crate::queue::KeyId;
use crate::reason::{Illegal, PairTest, Reason};
use crate::settings::CapacityMode;
use crate::sharing::asks::{AskId, AskKind, Nearest, losses_of};
use crate::sharing::hosts::HostKind;
use crate::sharing::{Company, PairTerms};
use crate::state::State;
use deepshare_model::{
    AttemptId, Class, Devices, GpuTypeId, JobId, Layout, NodeId, Retention, TenantId,
};
use std::collections::BTreeSet;

impl Draft<'_> {
    /// Starts a waiting job, charged to a class of its tenant, on the devices of a running attempt
    /// of as many GPUs.
    ///
    /// # Errors
    /// The quota that binds, the GPU memory, CPU or host memory that is missing, or nodes that do not
    /// admit the job. A job or an
    /// attempt that shares with nobody, or not with this one, is an [`Illegal`] proposal.
    pub fn share(
        &mut self,
        job: JobId,
        charge: Class,
        host: AttemptId,
        terms: PairTerms,
    ) -> Result<(), Reason> {
        let placement = self.state.attempt(host).placement.clone();
        self.share_on(job, charge, placement, &[(host, terms)], 1)
    }

    /// Starts a waiting job, charged to a class of its tenant, on given devices, of which each is free
    /// or held by one of `partners` alone. Each of its iterations is done in so many steps while it
    /// is not alone. A partner runs, or was placed in this draft where it can start at once.
    ///
    /// # Errors
    /// As [`Draft::share`]; and who has to go first, if the job could not start at once beside a
    /// partner that was placed just now, or in more steps than one.
    pub fn share_on(
        &mut self,
        job: JobId,
        charge: Class,
        placement: Placement,
        partners: &[(AttemptId, PairTerms)],
        steps: u32,
    ) -> Result<(), Reason> {
        if !self.is_waiting_here(job) {
            return Err(Reason::NotConsidered);
        }
        let given: u32 = placement.iter().map(|slice| slice.devices.count()).sum();
        let asked = self.state.job(job).gpus();
        if given != asked {
            return self.refuse_illegal(Illegal::NotWhole { job, given, asked });
        }
        // Who starts later may find another partner there, or none.
        let at_once = steps > 1 || partners.iter().any(|&(host, _)| self.is_fresh(host));
        if !self.may_share(job, &placement, partners, steps) {
            return self.refuse_illegal(Illegal::NotAHost(job));
        }
        self.has_room(job, &placement, steps)?;
        let state = &*self.state;
        let spec = &state.job(job).spec;
        let gpu_type = state.nodes[placement[0].node.index()].spec.gpu_type;
        let elastic = state.settings.capacity == CapacityMode::Elastic;
        let class = if elastic { charge } else { spec.class };
        state.admits((spec.tenant, class), gpu_type, asked)?;
        self.claim(job, class, placement);
        let newest = self.state.attempts.last_mut().expect("the claim just made");
        let id = newest.id;
        newest.company = partners.iter().map(|&(host, terms)| Company::new(host, terms)).collect();
        self.state.set_steps(id, steps);
        for &(host, _) in partners {
            let spec = &self.state.job(self.state.attempt(host).job).spec;
            let (gpus, tenant) = (spec.demand.gpus, spec.tenant);
            self.state.pools[self.pool.index()].hosts.note_taken(gpus, tenant);
        }
        let holders = if at_once { self.state.in_the_way(id).len() as u32 } else { 0 };
        if holders > 0 {
            self.journal.pop();
            self.unclaim(id);
            return Err(Reason::AwaitingRelease { holders });
        }
        Ok(())
    }

    /// True if the attempt was placed in this draft and can start at once.
    pub fn is_fresh(&self, host: AttemptId) -> bool {
        let placed = |proposal: &Proposal| matches!(proposal, Proposal::Place(id) if *id == host);
        self.state.attempt(host).state == AttemptState::Reserved
            && self.journal.iter().any(placed)
            && self.state.in_the_way(host).is_empty()
    }

    /// Whether these partners, and nobody else, hold the devices, and all agree.
    fn may_share(
        &self,
        job: JobId,
        placement: &Placement,
        partners: &[(AttemptId, PairTerms)],
        steps: u32,
    ) -> bool {
        let state = &*self.state;
        let spec = &state.job(job).spec;
        let agrees = |&(host, _): &(AttemptId, PairTerms)| {
            let host = state.attempt(host);
            let theirs = &state.job(host.job).spec;
            let even = spec.demand.layout == Layout::Consolidated
                && theirs.demand.layout == Layout::Consolidated
                || (theirs.demand.layout, theirs.demand.gpus)
                    == (spec.demand.layout, spec.demand.gpus);
            let held = |slice: &Slice| {
                let theirs = host.placement.iter().filter(|other| other.node == slice.node);
                theirs.fold(Devices::NONE, |all, other| {
                    all.union(other.devices.intersect(slice.devices))
                })
            };
            theirs.sharing.consent
                && spec.sharing.trust_domain == theirs.sharing.trust_domain
                && even
                && state.pool_of(host.job) == self.pool
                && (host.is_evictable() || self.is_fresh(host.id))
                && placement.iter().any(|slice| !held(slice).is_empty())
        };
        let in_steps = match spec.training {
            Some(training) => training.steps().any(|s| s == steps),
            None => steps == 1,
        };
        let typed = placement.first().is_some_and(|first| {
            let gpu_type = state.nodes[first.node.index()].spec.gpu_type;
            let alike = |slice: &Slice| state.nodes[slice.node.index()].spec.gpu_type == gpu_type;
            spec.demand.gpu_type.is_none_or(|wanted| wanted == gpu_type)
                && placement.iter().all(alike)
        });
        state.shares
            && spec.sharing.consent
            && in_steps
            && typed
            && partners.iter().all(agrees)
            && placement.iter().all(|slice| self.is_open_to(slice, partners))
    }

    /// Whether each device of a slice works and is held, or promised, to nobody but one of these.
    fn is_open_to(&self, slice: &Slice, partners: &[(AttemptId, PairTerms)]) -> bool {
        let node = &self.state.nodes[slice.node.index()];
        let claimed = partners.iter().map(|&(host, _)| self.state.attempt(host));
        let claimed = claimed.filter(|host| host.state == AttemptState::Reserved);
        let theirs = claimed
            .flat_map(|host| &host.placement)
            .filter(|other| other.node == slice.node)
            .fold(Devices::NONE, |all, other| all.union(other.devices));
        // A device promised to a partner has room for one more only as long as nobody is there.
        let open = node.unclaimed().union(theirs.intersect(node.usable()).intersect(node.vacant));
        let known = |resident: &AttemptId| partners.iter().any(|(host, _)| host == resident);
        node.spec.pool == self.pool
            && !node.is_held_back()
            && slice.devices.minus(open).is_empty()
            && slice.devices.iter().all(|device| match node.residents(device) {
                [] => true,
                [resident] => known(resident),
                _ => false,
            })
    }

    /// Whether GPU memory, CPU and host memory are enough for a job beside those who are there, and
    /// the nodes admit it.
    fn has_room(&self, job: JobId, placement: &Placement, steps: u32) -> Result<(), Reason> {
        let state = &*self.state;
        let spec = &state.job(job).spec;
        if !state.admits_on(placement, &spec.demand) {
            return Err(state.not_admitted(self.pool, &spec.demand, false));
        }
        let need = spec.gpu_memory_mib(steps);
        for slice in placement {
            let node = &state.nodes[slice.node.index()];
            let memory = node.spec.gpu_memory_mib;
            for device in slice.devices.iter().filter(|_| memory > 0) {
                let there = self.on_device(slice.node, device);
                let held = there.map(|id| state.gpu_memory_of(state.attempt(id)));
                let left = memory.saturating_sub(held.unwrap_or(0));
                // Where memory counts, who does not say what it needs shares with nobody.
                let told = held.is_none_or(|held| held > 0 && need > 0);
                if !told || need > left {
                    return Err(Reason::NotEnoughGpuMemory { need, left });
                }
            }
            if node.host_room_for(spec.demand.per_gpu) < slice.devices.count() {
                return Err(Reason::NotEnoughHost { need: spec.demand.gpus });
            }
        }
        Ok(())
    }

    /// Who is on a device, or was given it in this draft.
    fn on_device(&self, node: NodeId, device: u32) -> Option<AttemptId> {
        let resident = self.state.nodes[node.index()].residents(device).first().copied();
        resident.or_else(|| {
            let placed = self.journal.iter().rev().filter_map(|proposal| match proposal {
                Proposal::Place(id) => Some(self.state.attempt(*id)),
                _ => None,
            });
            let on = |slice: &Slice| slice.node == node && slice.devices.0 & (1 << device) != 0;
            placed.into_iter().find(|a| a.placement.iter().any(on)).map(|attempt| attempt.id)
        })
    }

    /// Ends one attempt of a pair, because the pair runs slower than it may, or has slowed one of them
    /// down as much as it accepts.
    pub fn revoke(&mut self, attempt: AttemptId, reason: EvictReason) {
        let victim = self.state.attempt(attempt);
        let job = victim.job;
        let fits = victim.is_evictable() && !victim.beside.is_empty();
        if !fits || victim.no_eviction_before > self.state.now {
            self.illegal.get_or_insert(Illegal::NotRunning(job));
        } else if self.state.is_guaranteed(victim) {
            self.illegal.get_or_insert(Illegal::Guaranteed(job));
        } else {
            self.end(attempt, Why::Parted(reason));
        }
    }

    /// Notes which test the best partner of a job failed.
    pub fn count_refused_pair(&mut self, test: PairTest) {
        self.state.pair_counts.refused[test as usize] += 1;
    }

    /// Raises hopes by the hosts that came up since the last round. `keeps` says what the one who
    /// keeps less of a pair would keep, or that they cannot be one; under other `terms` than before
    /// nothing is known any more.
    pub fn raise_hopes(
        &mut self,
        terms: u64,
        mut keeps: impl FnMut(&State, &AskKind, &HostKind) -> Option<Retention>,
    ) {
        let pool = self.pool.index();
        self.state.pools[pool].hosts.asks.set_terms(terms);
        for (host, tenant) in self.state.pools[pool].hosts.take_fresh() {
            let asks = self.state.pools[pool].hosts.asks.of_size(host.gpus).iter();
            let raised = asks
                .filter_map(|listed| Some((listed.ask, keeps(self.state, &listed.kind, &host)?)));
            for (ask, keeps) in raised.collect::<Vec<_>>() {
                let asks = &mut self.state.pools[pool].hosts.asks;
                asks.raise(ask, (tenant, host.gpu_type), keeps);
            }
        }
    }

    /// Notes the best that a tenant's hosts of a GPU type have for a kind of job now, and the nodes that
    /// keep it off others: once those have more to give, their hosts count as new.
    pub fn settle_hope(
        &mut self,
        ask: AskId,
        (tenant, gpu_type): (TenantId, GpuTypeId),
        (keeps, blocked): (Option<Retention>, Vec<NodeId>),
    ) {
        let gpus = self.state.ask_kind(self.pool, ask).demand.gpus;
        let hosts = &mut self.state.pools[self.pool.index()].hosts;
        let losses = losses_of(hosts.losses(gpus), tenant);
        hosts.asks.settle(ask, (tenant, gpu_type), keeps, losses);
        hosts.block(blocked);
    }

    /// Notes that all hosts were looked at for a kind of job, and the pair that came furthest. What
    /// each tenant's hosts have for it is to be settled next.
    pub fn note_look(&mut self, ask: AskId, nearest: Option<Nearest>) {
        let now = self.state.now;
        self.state.pools[self.pool.index()].hosts.asks.note_look(ask, nearest, now);
    }

    /// Says why the waiting jobs of a job's key that ask the same of a partner found none, charged to
    /// a class; `None` if there was nobody to be refused.
    pub fn refuse_partner(&mut self, job: JobId, charge: Class, reason: Option<Reason>) {
        let Job { key, ask, .. } = *self.state.job(job);
        if let Some(ask) = ask {
            self.state.queues.refuse_partner(key, ask, charge, reason);
        }
    }

    /// Keys that have come to have waiting jobs of a kind since this was last asked.
    pub fn take_new_asks(&mut self) -> BTreeSet<(KeyId, AskId)> {
        self.state.pools[self.pool.index()].hosts.asks.take_new()
    }

    /// True if the attempt still runs beside somebody and can be asked to leave now.
    pub fn can_revoke(&self, attempt: AttemptId) -> bool {
        let victim = self.state.attempt(attempt);
        victim.is_evictable() && !victim.beside.is_empty() && !self.state.is_guaranteed(victim)
    }
}
