//! Proposals to share devices, and hopes of doing so.

use super::{Draft, Why};
use crate::reason::{Illegal, PairTest, Reason};
use crate::settings::CapacityMode;
use crate::sharing::{AskKind, Company, HostKind, PairTerms};
use crate::state::State;
use deepshare_model::{AttemptId, Class, JobId, Retention, TenantId};

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
        let placement = entry.placement.clone();
        self.claim(job, class, placement);
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

    /// Notes what both of a pair with a job's best host would keep: whoever asks for the same may hope
    /// for that, and is asked again once it is enough. `refused_at` is what they would have had to
    /// keep if only the job's own tenant counted: who was refused at that again and again, because of
    /// its hosts' tenants or nodes, is asked ever more rarely (after the eighth time: 1 s, then 2 s,
    /// up to a minute) until less is asked of it or more may be hoped for.
    pub fn set_hope(&mut self, job: JobId, hope: Option<Retention>, refused_at: f64) {
        let key = self.state.job(job).key;
        if let Some(ask) = self.state.queues.ask(key) {
            self.state.pools[self.pool.index()].hosts.asks.set_hope(ask, hope);
            let now = self.state.now;
            self.state.queues.patience_mut(key).refused(
                now,
                hope,
                Retention::from_ratio(refused_at),
            );
        }
    }

    /// Raises hopes by the hosts that came up since the last round. `keeps` says what both of a pair
    /// would keep, or that they cannot be one.
    pub fn raise_hopes(
        &mut self,
        mut keeps: impl FnMut(&State, &AskKind, &HostKind) -> Option<Retention>,
    ) {
        let pool = self.pool.index();
        for host in self.state.pools[pool].hosts.take_fresh() {
            for (ask, kind) in self.state.pools[pool].hosts.asks.of_size(host.gpus) {
                let hope = keeps(self.state, &kind, &host);
                let asks = &mut self.state.pools[pool].hosts.asks;
                if hope > asks.hope(ask) {
                    asks.set_hope(ask, hope);
                }
            }
        }
    }

    /// Wakes the keys of a class whose hopes are at least what is enough for jobs of a tenant and of
    /// so many GPUs: what it is now, and what it will be if nothing happens. True if others may be
    /// woken by then.
    pub fn wake_hopeful(
        &mut self,
        charge: Class,
        enough: impl FnMut(TenantId, u32) -> [Retention; 2],
    ) -> bool {
        self.state.wake_hopeful(self.pool, charge, enough)
    }

    /// True if the attempt still runs beside somebody and can be asked to leave now.
    pub fn can_revoke(&self, attempt: AttemptId) -> bool {
        let victim = self.state.attempt(attempt);
        victim.is_evictable() && !victim.beside.is_empty() && !self.state.is_guaranteed(victim)
    }
}
