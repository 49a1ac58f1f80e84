//! The search for a partner: bilateral admission, in the order of `colocate.rs`.

use super::DeepShare;
use super::colocate::Pressure;
use super::hopes::{all_hosts, has_host_room, room_of};
use deepshare_engine::{
    AskId, AskKind, Attempt, Draft, Hope, HostKind, Nearest, PairBar, PairBound, PairRefusal,
    PairTerms, PairTest, Reason, State,
};
use deepshare_model::{
    AttemptId, Class, GpuTypeId, JobId, PoolId, ProfileClassId, Retention, Span, TenantId, Time,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Predictions and tolerances are equal up to this: a pair without interference passes a tolerance
/// of 1.
const SLACK: f64 = 1e-9;
/// Why there is no partner is worked out no more often than this for a kind of job that has no hope.
const LOOK_AGAIN: Span = Span::from_secs(60);

/// The next host of a kind: what both would keep, when it is expected to end, and the kind's place.
type Head = (Reverse<Retention>, Time, AttemptId, usize);

/// A job that looks for a partner, and what it takes for it to share now.
struct Asker<'a> {
    kind: AskKind,
    tenant: TenantId,
    /// ρ_min + P·(1 − ρ_min).
    base: f64,
    /// P.
    level: f64,
    /// Q̃ by tenant.
    assurance: &'a [f64],
}

impl Asker<'_> {
    /// What it takes to share with a job of a tenant (ρ_tol).
    fn tolerance(&self, partner: TenantId) -> f64 {
        let lower = self.assurance[self.tenant.index()].min(self.assurance[partner.index()]);
        rho_tol(self.base, lower)
    }
}

impl DeepShare {
    /// Lets a job join a running one if a pair passes; else says why the pair that came furthest did
    /// not, if there is any.
    pub(super) fn find_partner(
        &self,
        draft: &mut Draft<'_>,
        job: JobId,
        pressure: &mut Pressure,
    ) -> Result<(), Option<Reason>> {
        let (pool, charge) = (draft.pool(), pressure.phase);
        let entry = draft.state().job(job);
        let (tenant, gpus) = (entry.spec.tenant, entry.gpus());
        let Some(ask) = entry.ask.filter(|_| self.may_share(gpus)) else { return Err(None) };
        let kind = *draft.state().ask_kind(pool, ask);
        let (base, level) = self.base_for(draft, pressure, gpus);
        // Of those that passed, the first that did not take the job.
        let mut passed: Option<Nearest> = None;
        if self.has_hope(draft, tenant, ask, pressure) {
            let rooms = (0..draft.state().gpu_types()).map(GpuTypeId::from_index);
            let rooms = rooms.map(|of| room_of(draft.state(), (tenant, of), pressure) >= gpus);
            let rooms: Vec<bool> = rooms.collect();
            let asker = Asker { kind, tenant, base, level, assurance: &pressure.assurance };
            let state = draft.state();
            match self.first_partner(state, pool, state.hopes(pool, ask), &rooms, &asker) {
                Ok((host, terms)) => match draft.share(job, charge, host, terms) {
                    Ok(()) => return Ok(()),
                    Err(reason) if reason.is_quota() => return Err(Some(reason)),
                    Err(_) => {}
                },
                Err(first) => passed = first,
            }
            self.look(draft, ask, pressure);
        } else if pressure.looks > 0 && is_out_of_date(draft, ask) {
            pressure.looks -= 1;
            self.look(draft, ask, pressure);
        }
        let hopes = self.has_hope(draft, tenant, ask, pressure);
        if !hopes && self.may_hope(draft, &[tenant], ask, pressure) {
            self.look_again(draft);
        }
        let nearest = passed.filter(|_| hopes).or(draft.state().nearest(pool, ask).copied());
        let Some(nearest) = nearest else { return Err(None) };
        draft.count_refused_pair(nearest.test);
        let asker = Asker { kind, tenant, base, level, assurance: &pressure.assurance };
        Err(self.refusal(draft.state(), pool, &asker, &nearest).map(Reason::NoPartner))
    }

    /// The first host, in order, that passes and takes the job now, on GPUs of types of which its
    /// tenant has `rooms`; else the first that passed only.
    fn first_partner(
        &self,
        state: &State,
        pool: PoolId,
        hopes: Option<&[Hope]>,
        rooms: &[bool],
        asker: &Asker<'_>,
    ) -> Result<(AttemptId, PairTerms), Option<Nearest>> {
        let kind = &asker.kind;
        let gpus = kind.demand.gpus;
        let mut whose: Vec<(TenantId, GpuTypeId)> = match hopes {
            Some(hopes) => {
                let passes = |hope: &&Hope| self.passes(hope.keeps, asker.tolerance(hope.tenant));
                hopes.iter().filter(passes).map(|hope| (hope.tenant, hope.gpu_type)).collect()
            }
            None => all_hosts(state, pool, &kind.demand).collect(),
        };
        whose.retain(|(_, gpu_type)| rooms[gpu_type.index()]);
        // Hosts of each kind are in order already.
        let mut kinds = Vec::new();
        let mut heads: BinaryHeap<Reverse<Head>> = BinaryHeap::new();
        for (tenant, gpu_type) in whose {
            let tolerance = asker.tolerance(tenant);
            let hosts = state.hosts_of(pool, gpus, tenant);
            for (host, hosts) in hosts.filter(|(host, _)| host.gpu_type == gpu_type) {
                let Ok([own, theirs]) = self.could_share(state, kind, host) else { continue };
                let least = own.min(theirs);
                let mut hosts = hosts.iter();
                if self.passes(least, tolerance)
                    && let Some(&(end, first)) = hosts.next()
                {
                    heads.push(Reverse((Reverse(least), end, first, kinds.len())));
                    let bar = PairBar::both(self.agreed(tolerance));
                    let terms = PairTerms { bar, own, theirs };
                    kinds.push((*host, tenant, hosts, terms));
                }
            }
        }
        let most = match self.colocation().candidates {
            0 => usize::MAX,
            most => most as usize,
        };
        let mut passed: Option<Nearest> = None;
        for _ in 0..most {
            let Some(Reverse((least, _, id, index))) = heads.pop() else { break };
            let host = state.attempt(id);
            let (host_kind, tenant, hosts, terms) = &mut kinds[index];
            if may_join(state, pool, host) && has_host_room(state, host, kind) {
                return Ok((id, *terms));
            }
            let keeps = [terms.own, terms.theirs];
            let (test, kind, tenant) = (PairTest::Host, *host_kind, *tenant);
            passed.get_or_insert(Nearest { test, kind, tenant, keeps });
            if let Some(&(end, next)) = hosts.next() {
                heads.push(Reverse((least, end, next, index)));
            }
        }
        Err(passed)
    }

    /// True if both of a pair keep enough.
    pub(super) fn passes(&self, least: Retention, tolerance: f64) -> bool {
        !self.colocation().by_prediction || least.as_f64() + SLACK >= tolerance
    }

    /// What a pair is held to.
    fn agreed(&self, tolerance: f64) -> Retention {
        match self.colocation().by_prediction {
            true => Retention::from_ratio(tolerance),
            false => Retention::from_ppm(0),
        }
    }

    /// Predicted retentions of two jobs, own first, if they could be a pair at some tolerance; else
    /// the test that they fail at any, with what is predicted of them. Who is not of the same shape
    /// and trust domain, or of whom nothing is predicted, is nobody's candidate.
    pub(super) fn could_share(
        &self,
        state: &State,
        ask: &AskKind,
        host: &HostKind,
    ) -> Result<[Retention; 2], Option<(PairTest, [Retention; 2])>> {
        let demand = &ask.demand;
        let alike = host.gpus == demand.gpus
            && host.layout == demand.layout
            && host.trust_domain == ask.sharing.trust_domain
            && demand.gpu_type.is_none_or(|wanted| wanted == host.gpu_type);
        if !alike {
            return Err(None);
        }
        let keeps = self.predicted(state, ask.profile, host.profile).ok_or(None)?;
        if ask.class == Class::Guaranteed && host.class == Class::Guaranteed {
            return Err(Some((PairTest::Class, keeps)));
        }
        let told = host.memory_left_mib == u32::MAX || demand.gpu_memory_mib > 0;
        if !told || demand.gpu_memory_mib > host.memory_left_mib {
            return Err(Some((PairTest::Memory, keeps)));
        }
        let floor = self.colocation().guaranteed_floor_milli * 1_000;
        let passes =
            |class: Class, keeps: Retention| class == Class::BestEffort || keeps.ppm() >= floor;
        match passes(ask.class, keeps[0]) && passes(host.class, keeps[1]) {
            true => Ok(keeps),
            false => Err(Some((PairTest::Floor, keeps))),
        }
    }

    fn predicted(
        &self,
        state: &State,
        own: ProfileClassId,
        other: ProfileClassId,
    ) -> Option<[Retention; 2]> {
        if !self.colocation().by_prediction {
            return Some([Retention::WHOLE; 2]);
        }
        let table = state.retentions();
        Some([table.get(own, other)?, table.get(other, own)?])
    }

    /// Why the pair that came furthest was refused, with its numbers as they are now; `None` if its
    /// host is gone.
    fn refusal(
        &self,
        state: &State,
        pool: PoolId,
        asker: &Asker<'_>,
        nearest: &Nearest,
    ) -> Option<PairRefusal> {
        let partner = state.attempt(first_of(state, pool, nearest)?).job;
        Some(PairRefusal {
            test: nearest.test,
            partner,
            retentions: nearest.keeps,
            bound: PairBound::Tolerance {
                tolerance: self.agreed(asker.tolerance(nearest.tenant)),
                pressure_milli: (asker.level * 1_000.0).min(1e9) as u32,
                qad: [state.qad(asker.tenant).1, state.qad(nearest.tenant).1],
            },
        })
    }
}

/// True if the host that came nearest is gone, and nobody has looked for another for a while.
fn is_out_of_date(draft: &Draft<'_>, ask: AskId) -> bool {
    let (state, pool) = (draft.state(), draft.pool());
    let nearest = state.nearest(pool, ask);
    nearest.is_some_and(|nearest| first_of(state, pool, nearest).is_none())
        && state.looked_at(pool, ask) + LOOK_AGAIN <= draft.now()
}

/// The first host of the kind that came nearest.
fn first_of(state: &State, pool: PoolId, nearest: &Nearest) -> Option<AttemptId> {
    let mut kinds = state.hosts_of(pool, nearest.kind.gpus, nearest.tenant);
    let (_, hosts) = kinds.find(|(kind, _)| **kind == nearest.kind)?;
    hosts.first().map(|&(_, id)| id)
}

/// ρ_tol from ρ_min + P·(1 − ρ_min) and the lower of two Q̃.
pub(super) fn rho_tol(base: f64, assurance: f64) -> f64 {
    (base * (2.0 - assurance)).min(1.0)
}

/// True if nothing keeps a partner off a host's devices for now: what a gang waits for stays free
/// of newcomers.
pub(super) fn may_join(state: &State, pool: PoolId, host: &Attempt) -> bool {
    let guarded = state.pool(pool).guard().map_or(&[][..], |guard| guard.nodes.as_slice());
    state.takes_partner(host) && !host.placement.iter().any(|slice| guarded.contains(&slice.node))
}
