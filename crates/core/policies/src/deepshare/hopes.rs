//! What waiting jobs may hope for.
//!
//! A job that was refused every partner sleeps until one may pass. Of each kind of job the engine
//! keeps what both of a pair would keep at best, by the tenant of the host; whether that is enough
//! follows from the pressure and the Q̃ of both tenants, and costs no search.

use super::DeepShare;
use super::colocate::Pressure;
use super::order::Sleeping;
use super::partner::{may_join, rho_tol};
use deepshare_engine::{AskId, AskKind, Attempt, Draft, KeyId, Nearest, PairTest, State, Waiting};
use deepshare_model::{
    AttemptId, Class, Demand, GpuTypeId, JobId, NodeId, PoolId, Resources, Retention, TenantId,
    Time,
};
use std::collections::BTreeSet;

impl DeepShare {
    /// Raises the hopes of waiting jobs by the hosts that came up.
    pub(super) fn hear_of_hosts(&self, draft: &mut Draft<'_>) {
        // Less is asked of nobody.
        let rho_min = self.rho_min();
        draft.raise_hopes(self.terms(), |state, ask, host| {
            let pair = self.could_share(state, ask, host).ok()?;
            Some(pair[0].min(pair[1])).filter(|&least| self.passes(least, rho_min))
        });
        debug_assert!(self.are_hopes_enough(draft), "a host was missed");
    }

    /// True if nobody could have more than is known; one kind of job in four is looked at.
    fn are_hopes_enough(&self, draft: &Draft<'_>) -> bool {
        let (state, pool) = (draft.state(), draft.pool());
        let sizes = state.host_sizes(pool);
        let asks = sizes.flat_map(|gpus| state.asks_of_size(pool, gpus));
        let mut some = asks.filter(|listed| listed.ask.index() as u64 % 4 == state.rounds() % 4);
        some.all(|listed| {
            let Some(hopes) = state.hopes(pool, listed.ask) else { return true };
            all_hosts(state, pool, &listed.kind.demand).all(|whose| {
                let (found, _) = self.survey(state, pool, &listed.kind, whose, &mut None);
                let mut theirs = hopes.iter();
                found.is_none()
                    || theirs.any(|hope| {
                        (hope.tenant, hope.gpu_type) == whose && Some(hope.keeps) >= found
                    })
            })
        })
    }

    /// What hopes depend on beside predictions, in one number.
    fn terms(&self) -> u64 {
        let settings = self.colocation();
        let switches = [settings.by_prediction, self.settings.shrink];
        let numbers = [settings.rho_min_milli, settings.guaranteed_floor_milli];
        let numbers = numbers.into_iter().chain(switches.map(u32::from));
        // The first settings ever are others than none.
        numbers.fold(1, |all: u64, number| all.wrapping_mul(1_000_003) ^ u64::from(number))
    }

    /// Jobs that sleep for want of devices and are to be asked in the phase that begins: those that
    /// may find a partner, and `new` ones. Asks for the next slot if time alone may help others.
    pub(super) fn sleeping(
        &self,
        draft: &mut Draft<'_>,
        new: &BTreeSet<(KeyId, AskId)>,
        pressure: &mut Pressure,
    ) -> Sleeping {
        let (pool, phase) = (draft.pool(), pressure.phase);
        let mut sleeping = Sleeping::default();
        let mut later = false;
        for &(key, ask) in new.iter().filter(|(key, _)| draft.state().is_hungry(*key, phase)) {
            let waiting = draft.state().waiting_for(pool, ask).iter().find(|of| of.key == key);
            sleeping.new.extend(waiting.map(|waiting| (ask, *waiting)));
        }
        let hungry = draft.state().hungry_sizes(pool, phase);
        let sizes = draft.state().host_sizes(pool).filter(|gpus| hungry.contains(gpus));
        let sizes: Vec<u32> = sizes.collect();
        if sizes.is_empty() {
            return sleeping;
        }
        let mut reaches: Vec<(GpuTypeId, Option<Retention>)> = Vec::new();
        let mut waiting: Vec<Waiting> = Vec::new();
        // Most tenants have no quota left: theirs need not be asked.
        self.refresh(draft, pressure);
        let tenants = (0..draft.state().tenant_count()).map(TenantId::from_index);
        let mut most_room = |tenant: TenantId| {
            let types = types_for(pressure.types, None);
            types.map(|of| room_of(draft.state(), (tenant, of), pressure)).max().unwrap_or(0)
        };
        let rooms: Vec<u32> = tenants.map(&mut most_room).collect();
        for gpus in sizes {
            let (base, _) = self.base_for(draft, pressure, gpus);
            // Less than the base is asked of nobody.
            let state = draft.state();
            let asks = state.asks_of_size(pool, gpus).iter();
            let asks = asks.filter(|listed| {
                let class = listed.kind.class;
                let spills = class == Class::Guaranteed && self.settings.spill;
                let most = state.most_hoped(pool)[listed.ask.index()];
                (class == phase || spills) && self.may_pass(most, base)
            });
            let asks = asks.map(|listed| (listed.ask, listed.kind.demand.gpu_type));
            for (ask, wanted) in asks.collect::<Vec<_>>() {
                let state = draft.state();
                let most = state.most_hoped(pool)[ask.index()];
                waiting.clear();
                waiting.extend(state.waiting_for(pool, ask).iter().filter(|waiting| {
                    rooms[waiting.tenant.index()] >= gpus && state.is_hungry(waiting.key, phase)
                }));
                if waiting.is_empty() {
                    continue;
                }
                reaches.clear();
                for gpu_type in types_for(pressure.types, wanted) {
                    let most = self.reached(draft, (ask, gpu_type), pressure);
                    reaches.push((gpu_type, most));
                }
                let most_now = reaches.iter().map(|&(_, most)| most).max().flatten();
                let (least_now, least_soon) =
                    (self.least_q(base, most_now), self.least_q(base, most));
                let mut may_rise = false;
                for one in &waiting {
                    let tenant = one.tenant;
                    if pressure.assurance[tenant.index()] < least_now {
                        may_rise |= pressure.best[tenant.index()] >= least_soon;
                        continue;
                    }
                    let asked = rho_tol(base, pressure.assurance[tenant.index()]);
                    let hopeful = reaches.iter().any(|&(gpu_type, most)| {
                        self.may_pass(most, asked)
                            && room_of(draft.state(), (tenant, gpu_type), pressure) >= gpus
                    });
                    if hopeful && (new.is_empty() || !new.contains(&(one.key, ask))) {
                        sleeping.hopeful.push((ask, *one));
                    }
                }
                if may_rise && !later {
                    let tenants: Vec<TenantId> = waiting.iter().map(|one| one.tenant).collect();
                    later = self.may_hope(draft, &tenants, ask, pressure);
                }
            }
        }
        if later {
            self.look_again(draft);
        }
        sleeping
    }

    /// Asks for the next slot: tolerance falls as assurance rises, and nothing else need happen.
    pub(super) fn look_again(&self, draft: &mut Draft<'_>) {
        let next = draft.now() + draft.state().qad_cycle();
        draft.wake_at(next);
    }

    /// True if a job may find a partner now.
    pub(super) fn would_share(
        &self,
        draft: &mut Draft<'_>,
        job: JobId,
        pressure: &mut Pressure,
    ) -> bool {
        let entry = draft.state().job(job);
        let tenant = entry.spec.tenant;
        entry.ask.is_some_and(|ask| self.has_hope(draft, tenant, ask, pressure))
    }

    /// True if a job of a tenant may find a partner now, if it asks this.
    pub(super) fn has_hope(
        &self,
        draft: &mut Draft<'_>,
        tenant: TenantId,
        ask: AskId,
        pressure: &mut Pressure,
    ) -> bool {
        let demand = draft.state().ask_kind(draft.pool(), ask).demand;
        let (base, _) = self.base_for(draft, pressure, demand.gpus);
        let tolerance = rho_tol(base, pressure.assurance[tenant.index()]);
        types_for(pressure.types, demand.gpu_type).any(|gpu_type| {
            room_of(draft.state(), (tenant, gpu_type), pressure) >= demand.gpus && {
                let most = self.reached(draft, (ask, gpu_type), pressure);
                self.may_pass(most, tolerance)
            }
        })
    }

    /// Leaves of what jobs of a tenant and of so many GPUs ask that with which one may find a partner
    /// now.
    pub(super) fn keep_hopeful(
        &self,
        draft: &mut Draft<'_>,
        (tenant, gpus): (TenantId, u32),
        asks: &mut Vec<AskId>,
        pressure: &mut Pressure,
    ) {
        let (base, _) = self.base_for(draft, pressure, gpus);
        let tolerance = rho_tol(base, pressure.assurance[tenant.index()]);
        let state = draft.state();
        let mut types = types_for(pressure.types, None);
        if !types.any(|of| room_of(state, (tenant, of), pressure) >= gpus) {
            asks.clear();
        }
        let most = state.most_hoped(draft.pool());
        asks.retain(|ask| self.may_pass(most[ask.index()], tolerance));
        asks.retain(|&ask| self.has_hope(draft, tenant, ask, pressure));
    }

    /// True if time alone may let a job of one of some tenants find a partner, if it asks this.
    pub(super) fn may_hope(
        &self,
        draft: &mut Draft<'_>,
        tenants: &[TenantId],
        ask: AskId,
        pressure: &mut Pressure,
    ) -> bool {
        let demand = draft.state().ask_kind(draft.pool(), ask).demand;
        let (base, _) = self.base_for(draft, pressure, demand.gpus);
        pressure.rises
            && types_for(pressure.types, demand.gpu_type).any(|gpu_type| {
                let reach = self.reach(draft, (ask, gpu_type), base, &pressure.best);
                tenants.iter().any(|&tenant| {
                    self.may_pass(reach, rho_tol(base, pressure.best[tenant.index()]))
                        && room_of(draft.state(), (tenant, gpu_type), pressure) >= demand.gpus
                })
            })
    }

    /// The least Q̃ that is asked of a tenant whose pair would keep so much, or a hair less: a quick
    /// test for many tenants.
    fn least_q(&self, base: f64, keeps: Option<Retention>) -> f64 {
        match keeps {
            None => f64::INFINITY,
            Some(keeps) if self.passes(keeps, 1.0) => f64::NEG_INFINITY,
            Some(keeps) => 2.0 - keeps.as_f64() / base - 1e-6,
        }
    }

    fn may_pass(&self, reach: Option<Retention>, tolerance: f64) -> bool {
        reach.is_some_and(|reach| self.passes(reach, tolerance))
    }

    /// [`DeepShare::reach`] of a kind of job as things are.
    fn reached(
        &self,
        draft: &mut Draft<'_>,
        (ask, gpu_type): (AskId, GpuTypeId),
        pressure: &mut Pressure,
    ) -> Option<Retention> {
        self.refresh(draft, pressure);
        let place = ask.index() * pressure.types + gpu_type.index();
        if let Some(known) = pressure.reached.get(place) {
            return known;
        }
        let gpus = draft.state().ask_kind(draft.pool(), ask).demand.gpus;
        let (base, _) = self.base_for(draft, pressure, gpus);
        let most = match self.may_share(gpus) {
            true => self.reach(draft, (ask, gpu_type), base, &pressure.assurance),
            false => None,
        };
        pressure.reached.set(place, most);
        most
    }

    /// The most that both of a pair would keep among those hosts, on GPUs of one type, whose tenants
    /// ask for no more than that; whoever asks for no more has a partner. The most there is if nobody
    /// has looked yet.
    fn reach(
        &self,
        draft: &mut Draft<'_>,
        (ask, gpu_type): (AskId, GpuTypeId),
        base: f64,
        assurance: &[f64],
    ) -> Option<Retention> {
        let pool = draft.pool();
        loop {
            let state = draft.state();
            let Some(hopes) = state.hopes(pool, ask) else { return Some(Retention::WHOLE) };
            let losses = state.losses(pool, state.ask_kind(pool, ask).demand.gpus);
            // The best come first, and nobody asks for less than the base.
            let mut hopes = hopes.iter().take_while(|hope| self.passes(hope.keeps, base));
            let best = hopes.find(|hope| {
                hope.gpu_type == gpu_type
                    && self.passes(hope.keeps, rho_tol(base, assurance[hope.tenant.index()]))
            })?;
            if best.is_settled(losses) {
                return Some(best.keeps);
            }
            let whose = (best.tenant, gpu_type);
            let found = self.survey(state, pool, state.ask_kind(pool, ask), whose, &mut None);
            draft.settle_hope(ask, whose, found);
        }
    }

    /// Looks at all hosts for a kind of job.
    pub(super) fn look(&self, draft: &mut Draft<'_>, ask: AskId, pressure: &mut Pressure) {
        pressure.reached.forget();
        let (state, pool) = (draft.state(), draft.pool());
        let kind = *state.ask_kind(pool, ask);
        let mut nearest: Option<Nearest> = None;
        let whose: Vec<(TenantId, GpuTypeId)> = all_hosts(state, pool, &kind.demand).collect();
        let survey = |&whose: &_| self.survey(state, pool, &kind, whose, &mut nearest);
        let found: Vec<_> = whose.iter().map(survey).collect();
        draft.note_look(ask, nearest);
        for (whose, found) in whose.into_iter().zip(found) {
            draft.settle_hope(ask, whose, found);
        }
    }

    /// The most that both of a pair with a tenant's hosts on GPUs of a type would keep, and the nodes
    /// that keep the job off some of them; and the pair that came furthest, if it is further than the
    /// one known.
    fn survey(
        &self,
        state: &State,
        pool: PoolId,
        ask: &AskKind,
        (tenant, gpu_type): (TenantId, GpuTypeId),
        nearest: &mut Option<Nearest>,
    ) -> (Option<Retention>, Vec<NodeId>) {
        let mut best: Option<Retention> = None;
        let mut blocked: Vec<NodeId> = Vec::new();
        let hosts = state.hosts_of(pool, ask.demand.gpus, tenant);
        for (host, hosts) in hosts.filter(|(host, _)| host.gpu_type == gpu_type) {
            let (mut test, keeps) = match self.could_share(state, ask, host) {
                Ok(keeps) => (PairTest::Tolerance, keeps),
                Err(Some(refused)) => refused,
                Err(None) => continue,
            };
            if test == PairTest::Tolerance {
                let least = keeps[0].min(keeps[1]);
                if !self.passes(least, self.rho_min()) {
                    // No pressure makes it pass.
                } else if self.is_any_open(state, pool, ask, hosts, &mut blocked) {
                    best = best.max(Some(least));
                } else {
                    test = PairTest::Host;
                    if self.is_any_shrinkable(state, pool, ask, hosts) {
                        best = best.max(Some(least));
                    }
                }
            }
            note_nearest(nearest, Nearest { test, kind: *host, tenant, keeps });
        }
        (best, blocked)
    }

    /// True if one of these hosts takes a partner now; else notes the nodes that are in the way.
    fn is_any_open(
        &self,
        state: &State,
        pool: PoolId,
        ask: &AskKind,
        hosts: &BTreeSet<(Time, AttemptId)>,
        blocked: &mut Vec<NodeId>,
    ) -> bool {
        let mut hosts = hosts.iter().map(|&(_, id)| state.attempt(id));
        hosts.any(|host| {
            let open = may_join(state, pool, host) && has_host_room(state, host, ask);
            if !open {
                blocked.extend(host.placement.iter().map(|slice| slice.node));
            }
            open
        })
    }

    /// True if one of these hosts would take a guaranteed partner once best-effort jobs there have
    /// given what CPU and memory they can.
    fn is_any_shrinkable(
        &self,
        state: &State,
        pool: PoolId,
        ask: &AskKind,
        hosts: &BTreeSet<(Time, AttemptId)>,
    ) -> bool {
        if !self.settings.shrink || ask.class != Class::Guaranteed {
            return false;
        }
        let mut hosts = hosts.iter().map(|&(_, id)| state.attempt(id));
        hosts.any(|host| {
            let fits = host.placement.iter().all(|slice| {
                let room =
                    state.nodes()[slice.node.index()].host_room_with(spare(state, slice.node));
                ask.demand.per_gpu.times(slice.devices.count()).fits(room)
            });
            fits && may_join(state, pool, host) && state.admits_on(&host.placement, &ask.demand)
        })
    }
}

/// Tenants with hosts of a demand's size, and the GPU types that would do for it.
pub(super) fn all_hosts(
    state: &State,
    pool: PoolId,
    demand: &Demand,
) -> impl Iterator<Item = (TenantId, GpuTypeId)> {
    let Demand { gpus, gpu_type, .. } = *demand;
    state.host_tenants(pool, gpus).flat_map(move |tenant| {
        types_for(state.gpu_types(), gpu_type).map(move |gpu_type| (tenant, gpu_type))
    })
}

/// GPU types that would do for a demand.
fn types_for(types: usize, wanted: Option<GpuTypeId>) -> impl Iterator<Item = GpuTypeId> {
    let all = (0..types).map(GpuTypeId::from_index);
    all.filter(move |&gpu_type| wanted.is_none_or(|wanted| wanted == gpu_type))
}

/// GPUs of a type that a tenant may still be given in the class of a phase.
pub(super) fn room_of(
    state: &State,
    (tenant, gpu_type): (TenantId, GpuTypeId),
    pressure: &mut Pressure,
) -> u32 {
    let place = tenant.index() * pressure.types + gpu_type.index();
    if let Some(room) = pressure.rooms.get(place) {
        return room;
    }
    let room = state.allowance(tenant, pressure.phase, gpu_type);
    pressure.rooms.set(place, room);
    room
}

/// CPU and memory that the best-effort jobs of a node could give.
fn spare(state: &State, node: NodeId) -> Resources {
    let entry = &state.nodes()[node.index()];
    let mut sum = Resources::default();
    for device in entry.held().iter() {
        for &resident in entry.residents(device) {
            let held = state.attempt(resident).per_gpu;
            if let Some(least) = state.shrinks_to(resident) {
                sum.cpu_milli += held.cpu_milli.saturating_sub(least.cpu_milli);
                sum.memory_mib += held.memory_mib.saturating_sub(least.memory_mib);
            }
        }
    }
    sum
}

/// True if a host's nodes admit a partner, and have CPU and memory left for it.
pub(super) fn has_host_room(state: &State, host: &Attempt, ask: &AskKind) -> bool {
    let per_gpu = ask.demand.per_gpu;
    let fits = |node: NodeId, gpus: u32| state.nodes()[node.index()].host_room_for(per_gpu) >= gpus;
    if !state.admits_on(&host.placement, &ask.demand) {
        return false;
    }
    per_gpu == Resources::default()
        || host.placement.iter().all(|slice| fits(slice.node, slice.devices.count()))
}

/// Keeps the pair that came furthest; of equals, the one of which both keep most.
fn note_nearest(nearest: &mut Option<Nearest>, next: Nearest) {
    let order = |pair: &Nearest| (pair.test, pair.keeps[0].min(pair.keeps[1]));
    if nearest.as_ref().is_none_or(|known| order(&next) > order(known)) {
        *nearest = Some(next);
    }
}
