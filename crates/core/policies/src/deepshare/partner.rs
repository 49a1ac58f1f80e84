//! The search for a partner: bilateral admission, in the order of `colocate.rs`.

use super::DeepShare;
use super::colocate::Pressure;
use deepshare_engine::{
    Attempt, Draft, HostKind, KeyId, PairRefusal, PairTerms, PairTest, Reason, SchedulingKey, State,
};
use deepshare_model::{AttemptId, Class, JobId, PoolId, ProfileClassId, Retention, TenantId, Time};
use std::cmp::Reverse;

/// Predictions and tolerances are equal up to this: a pair without interference passes a tolerance
/// of 1.
const SLACK: f64 = 1e-9;

/// A tenant whose Q̃ is this close to its Q stays where it is.
const SETTLED: f64 = 1e-4;

/// One kind of host for one job.
struct Candidate {
    kind: HostKind,
    /// Predicted retention: the job's own, the host's.
    keeps: [Retention; 2],
    /// The host of this kind that is expected to end first.
    first: (Time, AttemptId),
}

impl Candidate {
    fn least(&self) -> Retention {
        self.keeps[0].min(self.keeps[1])
    }

    fn order(&self) -> (Reverse<Retention>, (Time, AttemptId)) {
        (Reverse(self.least()), self.first)
    }
}

/// The job that looks for a partner, and the tolerance that all its candidates share.
struct Ask {
    job: JobId,
    key: KeyId,
    charge: Class,
    tenant: TenantId,
    /// ρ_min + P·(1 − ρ_min).
    base: f64,
    pressure: f64,
}

impl DeepShare {
    /// Lets a job join a running one if a pair passes; else notes what it may hope for, and says why
    /// the pair that came furthest did not pass, if there is any.
    pub(super) fn find_partner(
        &self,
        draft: &mut Draft<'_>,
        job: JobId,
        charge: Class,
        pressure: &mut Pressure,
    ) -> Result<(), Option<Reason>> {
        let state = draft.state();
        let entry = state.job(job);
        let (id, tenant) = (entry.key, entry.spec.tenant);
        let key = *state.key(id);
        let gpus = key.demand.gpus;
        let widest = self.colocation().max_gpus;
        if !self.colocates() || key.profile.is_none() || (widest > 0 && gpus > widest) {
            return Err(None);
        }
        if pressure.as_of != draft.mark() {
            *pressure = self.pressure(draft, charge);
        }
        let others = pressure.pending.saturating_sub(u64::from(gpus));
        let (base, level) = {
            let pool = draft.state().pool(draft.pool());
            self.base_tolerance((pool.free_gpus(), pool.usable_gpus()), others)
        };
        let ask = Ask { job, key: id, charge, tenant, base, pressure: level };
        let mut furthest: Option<(PairTest, Candidate)> = None;
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut hope: Option<Retention> = None;
        let state = draft.state();
        for (kind, hosts) in state.hosts(draft.pool(), gpus) {
            // Those that were joined in this round are hosts no more.
            let free =
                |(_, id): &&(Time, AttemptId)| may_join(state, draft.pool(), state.attempt(*id));
            let Some(&first) = hosts.iter().find(free) else { continue };
            let (test, keeps) = match self.could_share(state, &key, kind) {
                Ok(keeps) => (PairTest::Tolerance, keeps),
                Err(refused) => refused,
            };
            let candidate = Candidate { kind: *kind, keeps, first };
            if test == PairTest::Tolerance {
                hope = hope.max(Some(candidate.least()));
                if candidate.least().as_f64() + SLACK >= base {
                    candidates.push(candidate);
                    continue;
                }
            }
            note_furthest(&mut furthest, test, candidate);
        }
        candidates.sort_by_key(Candidate::order);
        match self.try_in_order(draft, &ask, candidates, &mut furthest) {
            Ok(()) => return Ok(()),
            Err(Some(quota)) => return Err(Some(quota)),
            Err(None) => draft.set_hope(ask.key, charge, hope),
        }
        Err(furthest.map(|(test, candidate)| {
            draft.count_refused_pair(test);
            Reason::NoPartner(self.refusal(draft.state(), &ask, test, &candidate))
        }))
    }

    /// Tries candidates one by one. An error is a quota that binds whoever the partner is.
    fn try_in_order(
        &self,
        draft: &mut Draft<'_>,
        ask: &Ask,
        candidates: Vec<Candidate>,
        furthest: &mut Option<(PairTest, Candidate)>,
    ) -> Result<(), Option<Reason>> {
        let most = match self.colocation().candidates {
            0 => usize::MAX,
            most => most as usize,
        };
        let mut looked_at = 0;
        let mut rising = false;
        for candidate in candidates {
            if looked_at >= most {
                break;
            }
            let tolerance = self.tolerance(draft.state(), ask, candidate.kind.tenant);
            let passes = candidate.least().as_f64() + SLACK >= tolerance;
            if !passes && self.colocation().by_prediction {
                let tenants = [ask.tenant, candidate.kind.tenant];
                rising |= tenants.iter().any(|&tenant| rises(draft.state(), tenant));
                looked_at += 1;
                note_furthest(furthest, PairTest::Tolerance, candidate);
                continue;
            }
            let [own, theirs] = candidate.keeps;
            let terms = PairTerms { tolerance: Retention::from_ratio(tolerance), own, theirs };
            let room = most - looked_at;
            for host in hosts_of(draft.state(), draft.pool(), &candidate.kind, room) {
                looked_at += 1;
                if !may_join(draft.state(), draft.pool(), draft.state().attempt(host)) {
                    continue;
                }
                match draft.share(ask.job, ask.charge, host, terms) {
                    Ok(()) => return Ok(()),
                    Err(reason) if reason.is_quota() => return Err(Some(reason)),
                    Err(_) => {}
                }
            }
            note_furthest(furthest, PairTest::Host, candidate);
        }
        if rising {
            // Tolerance falls as assurance rises, and nothing else need happen.
            let next = draft.now() + draft.state().qad_cycle();
            draft.wake_at(next);
        }
        Err(None)
    }

    /// Predicted retentions of two jobs, own first, if they could be a pair at some tolerance; else
    /// the test that they fail at any, with what is predicted of them.
    pub(super) fn could_share(
        &self,
        state: &State,
        key: &SchedulingKey,
        host: &HostKind,
    ) -> Result<[Retention; 2], (PairTest, [Retention; 2])> {
        let unknown = [Retention::from_ppm(0); 2];
        let demand = &key.demand;
        let alike = host.gpus == demand.gpus
            && host.layout == demand.layout
            && host.trust_domain == key.sharing.trust_domain
            && demand.gpu_type.is_none_or(|wanted| wanted == host.gpu_type);
        let keeps = key.profile.and_then(|own| self.predicted(state, own, host.profile));
        let Some(keeps) = keeps.filter(|_| alike) else { return Err((PairTest::Class, unknown)) };
        if key.class == Class::Guaranteed && host.class == Class::Guaranteed {
            return Err((PairTest::Class, keeps));
        }
        let told = host.memory_left_mib == u32::MAX || demand.gpu_memory_mib > 0;
        if !told || demand.gpu_memory_mib > host.memory_left_mib {
            return Err((PairTest::Memory, keeps));
        }
        let floor = self.colocation().guaranteed_floor_milli * 1_000;
        let passes =
            |class: Class, keeps: Retention| class == Class::BestEffort || keeps.ppm() >= floor;
        match passes(key.class, keeps[0]) && passes(host.class, keeps[1]) {
            true => Ok(keeps),
            false => Err((PairTest::Floor, keeps)),
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

    /// ρ_tol of a pair.
    fn tolerance(&self, state: &State, ask: &Ask, partner: TenantId) -> f64 {
        if !self.colocation().by_prediction {
            return 0.0;
        }
        let assurance = match self.colocation().by_qad {
            true => state.qad(ask.tenant).1.min(state.qad(partner).1).as_f64(),
            false => 1.0,
        };
        rho_tol(ask.base, assurance)
    }

    fn refusal(
        &self,
        state: &State,
        ask: &Ask,
        test: PairTest,
        candidate: &Candidate,
    ) -> PairRefusal {
        let partner = candidate.kind.tenant;
        PairRefusal {
            test,
            partner: state.attempt(candidate.first.1).job,
            retentions: candidate.keeps,
            tolerance: Retention::from_ratio(self.tolerance(state, ask, partner)),
            pressure_milli: (ask.pressure * 1_000.0).min(1e9) as u32,
            qad: [state.qad(ask.tenant).1, state.qad(partner).1],
        }
    }
}

/// ρ_tol from ρ_min + P·(1 − ρ_min) and the lower of two Q̃.
pub(super) fn rho_tol(base: f64, assurance: f64) -> f64 {
    (base * (2.0 - assurance)).min(1.0)
}

/// Keeps the pair that came furthest; of equals, the one that would be tried first.
fn note_furthest(
    furthest: &mut Option<(PairTest, Candidate)>,
    test: PairTest,
    candidate: Candidate,
) {
    let better = |(known, of): &(PairTest, Candidate)| {
        test > *known || (test == *known && candidate.order() < of.order())
    };
    if furthest.as_ref().is_none_or(better) {
        *furthest = Some((test, candidate));
    }
}

/// The hosts of a kind that are expected to end first.
fn hosts_of(state: &State, pool: PoolId, kind: &HostKind, most: usize) -> Vec<AttemptId> {
    let mut kinds = state.hosts(pool, kind.gpus).filter(|(other, _)| *other == kind);
    let hosts = kinds.next().map(|(_, hosts)| hosts.iter().take(most).map(|&(_, id)| id).collect());
    hosts.unwrap_or_default()
}

/// True if nothing keeps a partner off a host's devices for now: what a gang waits for stays free
/// of newcomers.
fn may_join(state: &State, pool: PoolId, host: &Attempt) -> bool {
    let guarded = state.pool(pool).guard().map_or(&[][..], |guard| guard.nodes.as_slice());
    state.takes_partner(host) && !host.placement.iter().any(|slice| guarded.contains(&slice.node))
}

/// True if a tenant's Q̃ is still on its way up.
fn rises(state: &State, tenant: TenantId) -> bool {
    let (now, smoothed) = state.qad(tenant);
    now.as_f64() - smoothed.as_f64() > SETTLED
}
