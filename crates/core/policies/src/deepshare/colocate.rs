//! Sharing devices: which running job a waiting one may join, and breaking up pairs that disappoint.
//!
//! ```text
//! P     = (G_p / (G_f + ε))^γ
//! ρ_tol = min(1, [ρ_min + P·(1 − ρ_min)] · (1 + 1 − min(Q̃_i, Q̃_e)))      (spec §5, Algorithm 2)
//! ```
//!
//! Tried where no exclusive devices were found. A candidate runs alone on exactly as many devices as
//! the job asks for; candidates are in the order (least ρ̂ of the two ↓, T̂ of the resident ↑). A pair
//! is admitted if one of the two was submitted as best-effort, both fit the devices' memory and the
//! nodes' CPU and memory, and both keep ρ_tol; a guaranteed partner also keeps the floor.
//!
//! Readings: D3 (ε is a share of all GPUs; G_p is what this round promoted and left unplaced, without
//! the job itself, reckoned by tenant as the lesser of what waits and what its quota or cap has room
//! for), D11 (`k − Q̃` for the only k there is above 1), D12 (gangs share whole device sets), D16.

use super::DeepShare;
use super::memo::Memo;
use super::victims::phi;
use deepshare_engine::{Draft, EvictReason, Mark, State};
use deepshare_model::{AttemptId, Class, GpuTypeId, PoolId, Retention, TenantId};
use serde::{Deserialize, Serialize};

/// A tenant whose Q̃ is this close to its Q stays where it is.
const SETTLED: f64 = 1e-4;
/// How often a phase looks at hosts only to say why a job has no partner.
const LOOKS: u32 = 1;

/// Whose demand makes pressure (reading D3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PressureDemand {
    /// Jobs that this round promoted and could not place.
    #[default]
    Promoted,
    /// Guaranteed ones among them.
    GuaranteedOnly,
    /// All that wait.
    AllPending,
}

/// What colocation can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColocationSettings {
    /// Most jobs on one device (k): 1 or 2.
    pub residents: u32,
    /// Least retention at no pressure (ρ_min), thousandths.
    pub rho_min_milli: u32,
    /// Exponent of pressure (γ), thousandths.
    pub gamma_milli: u32,
    /// ε as a share of all GPUs, thousandths.
    pub eps_share_milli: u32,
    /// Whose demand makes pressure.
    pub demand: PressureDemand,
    /// Least retention of a guaranteed job in a pair, thousandths; 0 = literal.
    pub guaranteed_floor_milli: u32,
    /// Most running jobs looked at for one waiting job; 0 = all.
    pub candidates: u32,
    /// Tolerance follows Q̃. Off: ablation `-colo`.
    pub by_qad: bool,
    /// Predictions count. Off: whatever fits in memory shares.
    pub by_prediction: bool,
    /// Widest job that shares, GPUs; 0 = any.
    pub max_gpus: u32,
}

impl Default for ColocationSettings {
    fn default() -> Self {
        ColocationSettings {
            residents: 2,
            rho_min_milli: 700,
            gamma_milli: 500,
            eps_share_milli: 8_000,
            demand: PressureDemand::Promoted,
            guaranteed_floor_milli: 900,
            candidates: 64,
            by_qad: true,
            by_prediction: true,
            max_gpus: 0,
        }
    }
}

/// The pressure of one phase of a round so far, and what follows from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Pressure {
    /// The class charged.
    pub(super) phase: Class,
    /// GPUs promoted and unplaced, as of some point of the draft.
    pending: u64,
    by_tenant: Vec<u64>,
    as_of: Option<(Mark, u32)>,
    /// GPUs free at that point.
    free: u32,
    /// Q̃ by tenant, as tolerance sees it.
    pub(super) assurance: Vec<f64>,
    /// By tenant: what Q̃ is on its way to, or has.
    pub(super) best: Vec<f64>,
    /// Some Q̃ is on its way up.
    pub(super) rises: bool,
    /// By tenant: has a parent or children.
    related: Vec<bool>,
    /// Number of GPU types.
    pub(super) types: usize,
    /// How often hosts may still be looked at only to say why a job has no partner.
    pub(super) looks: u32,
    /// ρ_min + P·(1 − ρ_min) and P by GPUs asked for, as of that point.
    bases: Memo<(f64, f64)>,
    /// What kinds of jobs may hope for, by their number and GPU type, as of that point: the most that
    /// both of a pair would keep, of those whose hosts' tenants let them.
    pub(super) reached: Memo<Option<Retention>>,
    /// GPUs that tenants may still be given, by tenant and GPU type, as of that point.
    pub(super) rooms: Memo<u32>,
}

impl Pressure {
    /// Begins a phase.
    pub(super) fn begin(&mut self, phase: Class) {
        (self.phase, self.as_of, self.looks) = (phase, None, LOOKS);
        self.assurance.clear();
        self.best.clear();
        self.rises = false;
    }
}

impl DeepShare {
    pub(super) fn colocation(&self) -> &ColocationSettings {
        &self.settings.colocation
    }

    /// True if the policy lets jobs share.
    pub(super) fn colocates(&self) -> bool {
        self.colocation().residents > 1
    }

    /// True if jobs of so many GPUs share.
    pub(super) fn may_share(&self, gpus: u32) -> bool {
        let widest = self.colocation().max_gpus;
        self.colocates() && (widest == 0 || gpus <= widest)
    }

    /// Ends the best-effort partner of every pair whose samples stayed below tolerance; of two
    /// best-effort jobs, the one of less Φ.
    pub(super) fn revoke_degraded(&self, draft: &mut Draft<'_>) {
        let pairs: Vec<_> = draft.state().degraded(draft.pool()).collect();
        for (newer, host) in pairs {
            let state = draft.state();
            if !state.attempt(newer).is_evictable() || !state.attempt(host).is_evictable() {
                continue;
            }
            let spared = |id: AttemptId| {
                let attempt = state.attempt(id);
                let guaranteed = state.job(attempt.job).spec.class == Class::Guaranteed;
                (guaranteed, phi(&self.settings, state, attempt))
            };
            let (of_newer, of_host) = (spared(newer), spared(host));
            let host_first = of_host.0.cmp(&of_newer.0).then(of_host.1.total_cmp(&of_newer.1));
            let mut victims = [newer, host];
            if host_first.is_lt() {
                victims.reverse();
            }
            let Some(id) = victims.into_iter().find(|&id| draft.can_revoke(id)) else { continue };
            let refused_until = state.attempt(id).no_eviction_before();
            match refused_until > state.now() {
                true => draft.wake_at(refused_until),
                false => draft.revoke(id, EvictReason::Degraded),
            }
        }
    }

    /// Q̃ of every tenant as tolerance sees it, and what it is on its way to.
    fn look_at_tenants(&self, state: &State, pressure: &mut Pressure) {
        pressure.related = vec![false; state.tenant_count()];
        for tenant in (0..state.tenant_count()).map(TenantId::from_index) {
            if let Some(parent) = state.tenant(tenant).parent {
                let relatives = [tenant, parent].map(TenantId::index);
                for index in relatives.into_iter().filter(|&index| index < state.tenant_count()) {
                    pressure.related[index] = true;
                }
            }
        }
        for tenant in (0..state.tenant_count()).map(TenantId::from_index) {
            let (now, smoothed) = state.qad(tenant);
            let (now, smoothed) = match self.colocation().by_qad {
                true => (now.as_f64(), smoothed.as_f64()),
                false => (1.0, 1.0),
            };
            pressure.assurance.push(smoothed);
            // Close enough is there.
            let rises = now - smoothed > SETTLED;
            pressure.best.push(if rises { now } else { smoothed });
            pressure.rises |= rises;
        }
    }

    /// Brings the pressure up to date with the draft.
    pub(super) fn refresh(&self, draft: &Draft<'_>, pressure: &mut Pressure) {
        if pressure.assurance.is_empty() {
            pressure.types = draft.state().gpu_types();
            self.look_at_tenants(draft.state(), pressure);
        }
        let (mark, undone) = (draft.mark(), draft.undone());
        // Nodes set aside are let in and out without a proposal.
        let free = draft.free_gpus();
        let known = pressure.as_of == Some((mark, undone));
        if known && pressure.free == free {
            return;
        }
        pressure.free = free;
        pressure.bases.forget();
        pressure.reached.forget();
        if known {
            return;
        }
        let (state, pool) = (draft.state(), draft.pool());
        let since = pressure.as_of.filter(|&(_, before)| before == undone);
        let changed = since.map(|(mark, _)| draft.tenants_since(mark));
        // What a tenant's relatives may use changes with what it uses.
        let alone = |tenant: &TenantId| !pressure.related[tenant.index()];
        match changed.filter(|tenants| tenants.iter().all(alone)) {
            Some(tenants) => {
                for tenant in tenants {
                    let now = self.promoted(state, pool, tenant, pressure.phase);
                    let before = std::mem::replace(&mut pressure.by_tenant[tenant.index()], now);
                    pressure.pending = pressure.pending - before + now;
                }
            }
            None => {
                let tenants = (0..state.tenant_count()).map(TenantId::from_index);
                let of = |tenant| self.promoted(state, pool, tenant, pressure.phase);
                pressure.by_tenant = tenants.map(of).collect();
                pressure.pending = pressure.by_tenant.iter().sum();
            }
        }
        pressure.as_of = Some((mark, undone));
        pressure.rooms.forget();
    }

    /// GPUs that a tenant's jobs promoted by now ask for and have not got.
    fn promoted(&self, state: &State, pool: PoolId, tenant: TenantId, phase: Class) -> u64 {
        let demand = self.colocation().demand;
        let waiting = |class| state.waiting_gpus(tenant, class);
        let (guaranteed, best_effort) = (waiting(Class::Guaranteed), waiting(Class::BestEffort));
        if guaranteed + best_effort == 0 || state.tenant(tenant).pool != pool {
            return 0;
        }
        if demand == PressureDemand::AllPending {
            return guaranteed + best_effort;
        }
        let room = |class| {
            let types = (0..state.gpu_types()).map(GpuTypeId::from_index);
            types.map(|t| u64::from(state.allowance(tenant, class, t))).sum::<u64>()
        };
        let promoted = guaranteed.min(room(Class::Guaranteed));
        if phase == Class::Guaranteed || demand == PressureDemand::GuaranteedOnly {
            return promoted;
        }
        let beyond = if self.settings.spill { guaranteed - promoted } else { 0 };
        promoted + (best_effort + beyond).min(room(Class::BestEffort))
    }

    /// ρ_min + P·(1 − ρ_min), and P, for a job of so many GPUs.
    pub(super) fn base_for(
        &self,
        draft: &Draft<'_>,
        pressure: &mut Pressure,
        gpus: u32,
    ) -> (f64, f64) {
        self.refresh(draft, pressure);
        if let Some(base) = pressure.bases.get(gpus as usize) {
            return base;
        }
        let usable = draft.state().pool(draft.pool()).usable_gpus();
        let others = pressure.pending.saturating_sub(u64::from(gpus));
        let base = self.base_tolerance((pressure.free, usable), others);
        pressure.bases.set(gpus as usize, base);
        base
    }

    /// Least retention at no pressure.
    pub(super) fn rho_min(&self) -> f64 {
        f64::from(self.colocation().rho_min_milli) / 1_000.0
    }

    /// The same with so many GPUs free of so many usable ones, and so many wanted by others.
    fn base_tolerance(&self, (free, usable): (u32, u32), pending: u64) -> (f64, f64) {
        let settings = self.colocation();
        let milli = |value: u32| f64::from(value) / 1_000.0;
        let eps = milli(settings.eps_share_milli) * f64::from(usable);
        let free = f64::from(free) + eps;
        let pressure = match pending {
            0 => 0.0,
            _ if free <= 0.0 => f64::INFINITY,
            _ => libm::pow(pending as f64 / free, milli(settings.gamma_milli)),
        };
        let rho_min = self.rho_min();
        (rho_min + pressure.min(1.0) * (1.0 - rho_min), pressure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deepshare::DeepShareSettings;
    use crate::deepshare::partner::rho_tol;

    /// P from so many GPUs wanted, 0 free, and ε = 4.
    fn tolerance(assurance: f64, pending: u64) -> f64 {
        let colocation =
            ColocationSettings { gamma_milli: 1_000, eps_share_milli: 1_000, ..Default::default() };
        let policy = DeepShare { settings: DeepShareSettings { colocation, ..Default::default() } };
        let (base, pressure) = policy.base_tolerance((0, 4), pending);
        assert!((pressure - pending as f64 / 4.0).abs() < 1e-12, "{pressure}");
        rho_tol(base, assurance)
    }

    /// ρ_min = 0.7. Rows: the lower Q̃; columns: P of 0, 0.25, 0.5, 0.75, 1 and more.
    #[test]
    fn tolerance_rises_with_pressure_and_as_assurance_falls() {
        let table = [
            (1.00, [0.700, 0.775, 0.850, 0.925, 1.0, 1.0]),
            (0.95, [0.735, 0.81375, 0.8925, 0.97125, 1.0, 1.0]),
            (0.90, [0.770, 0.8525, 0.935, 1.0, 1.0, 1.0]),
            (0.80, [0.840, 0.930, 1.0, 1.0, 1.0, 1.0]),
            (0.60, [0.980, 1.0, 1.0, 1.0, 1.0, 1.0]),
            (0.571, [1.0; 6]),
            (0.00, [1.0; 6]),
        ];
        for (assurance, row) in table {
            for (pending, expected) in row.into_iter().enumerate() {
                let found = tolerance(assurance, pending as u64);
                assert!((found - expected).abs() < 1e-3, "Q {assurance}, {pending}: {found}");
            }
        }
    }

    #[test]
    fn without_eps_any_backlog_is_all_the_pressure_there_is() {
        let colocation = ColocationSettings { eps_share_milli: 0, ..Default::default() };
        let policy = DeepShare { settings: DeepShareSettings { colocation, ..Default::default() } };
        assert_eq!(policy.base_tolerance((0, 4), 1).0, 1.0);
        assert_eq!(policy.base_tolerance((0, 4), 0), (0.7, 0.0));
        // √(4 / 16) of the way from 0.7 to 1.
        assert!((policy.base_tolerance((16, 32), 4).0 - 0.85).abs() < 1e-12);
    }
}
