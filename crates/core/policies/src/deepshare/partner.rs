//! The search for a partner: bilateral admission, in the order of `colocate.rs`.

use super::DeepShare;
use super::colocate::{Pressure, ground};
use deepshare_engine::{
    AskKind, Attempt, Draft, HostKind, PairRefusal, PairTerms, PairTest, Reason, State,
};
use deepshare_model::{AttemptId, Class, JobId, PoolId, ProfileClassId, Retention, TenantId, Time};
use std::cmp::Reverse;

/// Predictions and tolerances are equal up to this: a pair without interference passes a tolerance
/// of 1.
const SLACK: f64 = 1e-9;

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

/// A pair that was refused.
struct Furthest {
    test: PairTest,
    kind: HostKind,
    keeps: [Retention; 2],
}

/// The job that looks for a partner, and the tolerance that all its candidates share.
struct Ask<'a> {
    job: JobId,
    charge: Class,
    tenant: TenantId,
    /// ρ_min + P·(1 − ρ_min).
    base: f64,
    pressure: f64,
    /// Q̃ by tenant, and what it is on its way to.
    assurance: &'a [f64],
    best: &'a [f64],
}

impl Ask<'_> {
    /// The lower Q̃ of the two tenants.
    fn assurance(&self, partner: TenantId) -> f64 {
        self.assurance[self.tenant.index()].min(self.assurance[partner.index()])
    }
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
        let (tenant, gpus) = (entry.spec.tenant, entry.gpus());
        let widest = self.colocation().max_gpus;
        let Some(kind) = state.key(entry.key).ask() else { return Err(None) };
        if !self.colocates() || (widest > 0 && gpus > widest) {
            return Err(None);
        }
        self.refresh(draft, pressure);
        let others = pressure.pending.saturating_sub(u64::from(gpus));
        let (base, level) = self.base_tolerance(ground(draft), others);
        let (assurance, best) = (pressure.assurance.as_slice(), pressure.best.as_slice());
        let ask = Ask { job, charge, tenant, base, pressure: level, assurance, best };
        let mut furthest: Option<Furthest> = None;
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut hope: Option<Retention> = None;
        // At the best, its own tenant's assurance decides.
        let least = rho_tol(base, assurance[tenant.index()]);
        for (host, hosts) in state.hosts(draft.pool(), gpus) {
            let (mut test, keeps) = match self.could_share(state, &kind, host) {
                Ok(keeps) => (PairTest::Tolerance, keeps),
                Err(Some(refused)) => refused,
                Err(None) => continue,
            };
            if test == PairTest::Tolerance {
                hope = hope.max(Some(keeps[0].min(keeps[1])));
                // Those that were joined in this round are hosts no more.
                let free = |(_, id): &&(Time, AttemptId)| {
                    may_join(state, draft.pool(), state.attempt(*id))
                };
                if self.passes(keeps[0].min(keeps[1]), least) {
                    if let Some(&first) = hosts.iter().find(free) {
                        candidates.push(Candidate { kind: *host, keeps, first });
                        continue;
                    }
                    test = PairTest::Host;
                }
            }
            note_furthest(&mut furthest, Furthest { test, kind: *host, keeps });
        }
        candidates.sort_by_key(Candidate::order);
        let soon = rho_tol(base, best[tenant.index()]);
        let mut rising = soon < least && hope.is_some_and(|hope| self.passes(hope, soon));
        match self.try_in_order(draft, &ask, candidates, &mut furthest, &mut rising) {
            Ok(()) => return Ok(()),
            Err(Some(quota)) => return Err(Some(quota)),
            Err(None) => draft.set_hope(job, hope, least),
        }
        if rising {
            self.look_again(draft);
        }
        let refusal = furthest.and_then(|furthest| {
            draft.count_refused_pair(furthest.test);
            self.refusal(draft.state(), draft.pool(), &ask, &furthest)
        });
        Err(refusal.map(Reason::NoPartner))
    }

    /// Tries candidates one by one. An error is a quota that binds whoever the partner is.
    fn try_in_order(
        &self,
        draft: &mut Draft<'_>,
        ask: &Ask<'_>,
        candidates: Vec<Candidate>,
        furthest: &mut Option<Furthest>,
        rising: &mut bool,
    ) -> Result<(), Option<Reason>> {
        let mut left = match self.colocation().candidates {
            0 => usize::MAX,
            most => most as usize,
        };
        for candidate in candidates {
            let [own, theirs] = candidate.keeps;
            let mut failed = PairTest::Tolerance;
            for host in hosts_of(draft.state(), draft.pool(), &candidate.kind, left) {
                left -= 1;
                let state = draft.state();
                let attempt = state.attempt(host);
                let partner = state.job(attempt.job).spec.tenant;
                let tolerance = rho_tol(ask.base, ask.assurance(partner));
                if !self.passes(candidate.least(), tolerance) {
                    *rising |= ask.best[partner.index()] > ask.assurance[partner.index()];
                    continue;
                }
                failed = PairTest::Host;
                if !may_join(state, draft.pool(), attempt) {
                    continue;
                }
                let terms = PairTerms { tolerance: self.agreed(tolerance), own, theirs };
                match draft.share(ask.job, ask.charge, host, terms) {
                    Ok(()) => return Ok(()),
                    Err(reason) if reason.is_quota() => return Err(Some(reason)),
                    Err(_) => {}
                }
            }
            let Candidate { kind, keeps, .. } = candidate;
            note_furthest(furthest, Furthest { test: failed, kind, keeps });
            if left == 0 {
                break;
            }
        }
        Err(None)
    }

    /// True if both of a pair keep enough.
    fn passes(&self, least: Retention, tolerance: f64) -> bool {
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

    /// Why the pair that came furthest was refused, with its numbers.
    fn refusal(
        &self,
        state: &State,
        pool: PoolId,
        ask: &Ask<'_>,
        furthest: &Furthest,
    ) -> Option<PairRefusal> {
        let &(_, first) = state.hosts_of_kind(pool, &furthest.kind)?.first()?;
        let partner = state.attempt(first).job;
        let tenant = state.job(partner).spec.tenant;
        Some(PairRefusal {
            test: furthest.test,
            partner,
            retentions: furthest.keeps,
            tolerance: self.agreed(rho_tol(ask.base, ask.assurance(tenant))),
            pressure_milli: (ask.pressure * 1_000.0).min(1e9) as u32,
            qad: [state.qad(ask.tenant).1, state.qad(tenant).1],
        })
    }
}

/// ρ_tol from ρ_min + P·(1 − ρ_min) and the lower of two Q̃.
pub(super) fn rho_tol(base: f64, assurance: f64) -> f64 {
    (base * (2.0 - assurance)).min(1.0)
}

/// Keeps the pair that came furthest; of equals, the one of which both keep most.
fn note_furthest(furthest: &mut Option<Furthest>, next: Furthest) {
    let order = |pair: &Furthest| (pair.test, pair.keeps[0].min(pair.keeps[1]));
    if furthest.as_ref().is_none_or(|known| order(&next) > order(known)) {
        *furthest = Some(next);
    }
}

/// The hosts of a kind that are expected to end first.
fn hosts_of(state: &State, pool: PoolId, kind: &HostKind, most: usize) -> Vec<AttemptId> {
    let hosts = state.hosts_of_kind(pool, kind);
    hosts.into_iter().flatten().take(most).map(|&(_, id)| id).collect()
}

/// True if nothing keeps a partner off a host's devices for now: what a gang waits for stays free
/// of newcomers.
fn may_join(state: &State, pool: PoolId, host: &Attempt) -> bool {
    let guarded = state.pool(pool).guard().map_or(&[][..], |guard| guard.nodes.as_slice());
    state.takes_partner(host) && !host.placement.iter().any(|slice| guarded.contains(&slice.node))
}
