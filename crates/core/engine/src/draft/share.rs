//! Proposals to share devices, and hopes of doing so.

use super::{Draft, Why};
use crate::job::Job;
use crate::queue::KeyId;
use crate::reason::{Illegal, PairTest, Reason};
use crate::settings::CapacityMode;
use crate::sharing::asks::{AskId, AskKind, Nearest, losses_of};
use crate::sharing::hosts::HostKind;
use crate::sharing::{Company, PairTerms};
use crate::state::State;
use deepshare_model::{AttemptId, Class, GpuTypeId, JobId, NodeId, Retention, TenantId};
use std::collections::BTreeSet;

impl Draft<'_> {
    /// Starts a waiting job, charged to a class of its tenant, on the devices of a running attempt
    /// of as many GPUs.
    ///
    /// # Errors
    /// The quota that binds, or the GPU memory, CPU or host memory that is missing. A job or an
    /// attempt that shares with nobody, or not with this one, is an [`Illegal`] proposal.
    pub fn share(
        &mut self,
        job: JobId,
        charge: Class,
        host: AttemptId,
        terms: PairTerms,
    ) -> Result<(), Reason> {
        if !self.is_waiting_here(job) {
            return Err(Reason::NotConsidered);
        }
        let state = &*self.state;
        let entry = state.attempt(host);
        let (spec, theirs) = (&state.job(job).spec, &state.job(entry.job).spec);
        let demand = spec.demand;
        let Some(first) = entry.placement.first() else {
            return self.refuse_illegal(Illegal::NotAHost(job));
        };
        let gpu_type = state.nodes[first.node.index()].spec.gpu_type;
        let agrees = spec.sharing.consent
            && theirs.sharing.consent
            && spec.sharing.trust_domain == theirs.sharing.trust_domain;
        let alike = demand.gpus == theirs.demand.gpus
            && demand.layout == theirs.demand.layout
            && demand.gpu_type.is_none_or(|wanted| wanted == gpu_type);
        let here = state.shares && state.pool_of(entry.job) == self.pool;
        if !here || !agrees || !alike || !state.takes_partner(entry) {
            return self.refuse_illegal(Illegal::NotAHost(job));
        }
        for slice in &entry.placement {
            let node = &state.nodes[slice.node.index()];
            let (memory, need) = (node.spec.gpu_memory_mib, demand.gpu_memory_mib);
            let left = memory.saturating_sub(theirs.demand.gpu_memory_mib);
            let told = need > 0 && theirs.demand.gpu_memory_mib > 0;
            if memory > 0 && (!told || need > left) {
                return Err(Reason::NotEnoughGpuMemory { need, left });
            }
            if node.host_room_for(demand.per_gpu) < slice.devices.count() {
                return Err(Reason::NotEnoughHost { need: demand.gpus });
            }
        }
        let elastic = state.settings.capacity == CapacityMode::Elastic;
        let class = if elastic { charge } else { spec.class };
        state.admits((spec.tenant, class), gpu_type, demand.gpus)?;
        let (placement, tenant) = (entry.placement.clone(), theirs.tenant);
        self.claim(job, class, placement);
        self.state.pools[self.pool.index()].hosts.note_taken(demand.gpus, tenant);
        let newest = self.state.attempts.last_mut().expect("the claim just made");
        newest.company =
            Some(Company { host, terms, sampled_at: None, bad_samples: 0, observed: [0; 2] });
        Ok(())
    }

    /// Ends one attempt of a pair that runs slower than it may.
    pub fn revoke(&mut self, attempt: AttemptId) {
        let victim = self.state.attempt(attempt);
        let job = victim.job;
        let fits = victim.is_evictable() && !victim.beside.is_empty();
        if !fits || victim.no_eviction_before > self.state.now {
            self.illegal.get_or_insert(Illegal::NotRunning(job));
        } else if self.state.is_guaranteed(victim) {
            self.illegal.get_or_insert(Illegal::Guaranteed(job));
        } else {
            self.end(attempt, Why::Degraded);
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
