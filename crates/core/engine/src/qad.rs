//! The quota assurance degree: how far each tenant is from what it was promised (spec §2).
//!
//! `Q = A / min(q, D)`, where `D` is the guaranteed demand (waiting and running) and `A` the
//! devices that guaranteed jobs hold; 1 without demand or quota. Q̃ is its exponential moving
//! average, one step a cycle: `Q̃ ← λQ + (1−λ)Q̃`.
//!
//! Q changes only at events, so Q̃ is kept as its value at the last change and advanced in closed
//! form, `Q̃ = Q + (1−λ)ⁿ (Q̃₀ − Q)` after `n` slots, whenever somebody looks. Looking changes
//! nothing, so the value does not depend on who looks when. All of it is fixed-point: 32
//! fractional bits, the same on every machine.

use deepshare_model::{GpuTypeId, TenantId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A degree from 0 to 1 in units of 2⁻³².
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Degree(u64);

impl Degree {
    /// Nothing of what was promised.
    pub const ZERO: Degree = Degree(0);
    /// All of it.
    pub const ONE: Degree = Degree(1 << 32);

    /// `part / whole`, at most 1; 1 if `whole` is 0.
    pub fn ratio(part: u32, whole: u32) -> Degree {
        let part = u64::from(part.min(whole)) << 32;
        Degree(part.checked_div(u64::from(whole)).unwrap_or(1 << 32))
    }

    /// The degree as a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Degree::ONE.0 as f64
    }

    /// The number of whole buckets of `width` thousandths below the degree; the degree itself if
    /// the width is 0. What "equal" means for ordering tenants (spec §2, `qad_bucket`).
    pub fn bucket(self, width_milli: u32) -> u64 {
        let width = (Degree::ONE.0 * u64::from(width_milli)) / 1_000;
        self.0.checked_div(width).unwrap_or(self.0)
    }
}

impl fmt::Display for Degree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4}", self.as_f64())
    }
}

/// `(1−λ)ⁿ` is looked up for `n` below this, in units of 2⁻³².
const POWERS: usize = 64;

/// `(1−λ)ⁿ`, in units of 2⁻³²: from the table, and by squaring beyond it.
fn power(powers: &[u64], slots: u64) -> u64 {
    let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 32) as u64;
    if let Some(&known) = usize::try_from(slots).ok().and_then(|slots| powers.get(slots)) {
        return known;
    }
    let mut square = powers.get(1).copied().unwrap_or(0);
    let (mut result, mut left) = (Degree::ONE.0, slots);
    while left > 0 && square > 0 {
        if left & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        left >>= 1;
    }
    if left > 0 { 0 } else { result }
}

/// One tenant's account for one GPU type.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Account {
    /// Guaranteed GPUs demanded and held.
    demand: u32,
    held: u32,
    now: Degree,
    /// Q̃ as of the slot of the last change of Q.
    smoothed: Degree,
    slot: u64,
}

/// Every tenant's quota assurance degree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Qad {
    lambda_milli: u32,
    powers: Vec<u64>,
    accounts: Vec<Vec<Account>>,
}

impl Qad {
    pub(crate) fn new(lambda_milli: u32) -> Qad {
        let keep = u64::from(1_000 - lambda_milli.min(1_000));
        let powers = std::iter::successors(Some(Degree::ONE.0), |power| Some(power * keep / 1_000));
        Qad { lambda_milli, powers: powers.take(POWERS).collect(), accounts: Vec::new() }
    }

    fn account(&mut self, tenant: TenantId, gpu_type: GpuTypeId) -> &mut Account {
        if self.accounts.len() <= tenant.index() {
            self.accounts.resize_with(tenant.index() + 1, Vec::new);
        }
        let of_tenant = &mut self.accounts[tenant.index()];
        let fresh =
            Account { demand: 0, held: 0, now: Degree::ONE, smoothed: Degree::ONE, slot: 0 };
        if of_tenant.len() <= gpu_type.index() {
            of_tenant.resize(gpu_type.index() + 1, fresh);
        }
        &mut of_tenant[gpu_type.index()]
    }

    fn advanced(powers: &[u64], account: &Account, slot: u64) -> Degree {
        let power = power(powers, slot.saturating_sub(account.slot));
        let (to, from) = (account.now.0, account.smoothed.0);
        // The distance still to go, rounded towards the goal.
        let rest = |distance: u64| ((u128::from(distance) * u128::from(power)) >> 32) as u64;
        match from >= to {
            true => Degree(to + rest(from - to)),
            false => Degree(to - rest(to - from)),
        }
    }

    /// Books a change of demand or of devices held, at an instant in `slot`.
    pub(crate) fn change(
        &mut self,
        (tenant, gpu_type): (TenantId, GpuTypeId),
        (demand, held): (i64, i64),
        quota: u32,
        slot: u64,
    ) {
        let powers = std::mem::take(&mut self.powers);
        let account = self.account(tenant, gpu_type);
        account.demand = (i64::from(account.demand) + demand) as u32;
        account.held = (i64::from(account.held) + held) as u32;
        let now = Degree::ratio(account.held, account.demand.min(quota));
        if now != account.now {
            account.smoothed = Qad::advanced(&powers, account, slot);
            account.slot = slot;
            account.now = now;
        }
        self.powers = powers;
    }

    /// Sets Q̃ as of `slot`, at most 1.
    pub(crate) fn restore(
        &mut self,
        (tenant, gpu_type): (TenantId, GpuTypeId),
        smoothed: Degree,
        slot: u64,
    ) {
        let account = self.account(tenant, gpu_type);
        (account.smoothed, account.slot) = (smoothed.min(Degree::ONE), slot);
    }

    /// Q, and Q̃ as of `slot`: of the GPU type that is worst off.
    pub(crate) fn of(&self, tenant: TenantId, slot: u64) -> (Degree, Degree) {
        let accounts = self.accounts.get(tenant.index()).map_or(&[][..], Vec::as_slice);
        let now = accounts.iter().map(|account| account.now).min();
        let smoothed = accounts.iter().map(|a| Qad::advanced(&self.powers, a, slot)).min();
        (now.unwrap_or(Degree::ONE), smoothed.unwrap_or(Degree::ONE))
    }

    /// Guaranteed GPUs demanded and held, over all types.
    pub(crate) fn counts(&self, tenant: TenantId) -> (u32, u32) {
        let accounts = self.accounts.get(tenant.index()).map_or(&[][..], Vec::as_slice);
        accounts.iter().fold((0, 0), |(d, a), account| (d + account.demand, a + account.held))
    }

    /// Q, and Q̃ as of `slot`, of one GPU type.
    pub(crate) fn of_type(
        &self,
        (tenant, gpu_type): (TenantId, GpuTypeId),
        slot: u64,
    ) -> (Degree, Degree) {
        let account = self.accounts.get(tenant.index()).and_then(|all| all.get(gpu_type.index()));
        account.map_or((Degree::ONE, Degree::ONE), |account| {
            (account.now, Qad::advanced(&self.powers, account, slot))
        })
    }

    /// Guaranteed GPUs demanded and held, by GPU type.
    pub(crate) fn counts_by_type(
        &self,
        tenant: TenantId,
    ) -> impl ExactSizeIterator<Item = (u32, u32)> {
        let accounts = self.accounts.get(tenant.index()).map_or(&[][..], Vec::as_slice);
        accounts.iter().map(|account| (account.demand, account.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: TenantId = TenantId(0);
    const G: GpuTypeId = GpuTypeId(0);

    fn smoothed(qad: &Qad, slot: u64) -> f64 {
        qad.of(T, slot).1.as_f64()
    }

    #[test]
    fn a_deficit_has_nine_tenths_of_its_effect_after_seven_cycles() {
        let mut qad = Qad::new(300);
        qad.change((T, G), (8, 0), 8, 100);
        assert_eq!(smoothed(&qad, 100), 1.0);
        assert!(smoothed(&qad, 106) > 0.1);
        assert!((smoothed(&qad, 107) - 0.082_354_3).abs() < 1e-6);
    }

    #[test]
    fn from_0_72_five_cycles_bring_a_served_tenant_above_0_95() {
        let mut qad = Qad::new(300);
        // Q = 0.72 for long, then all of it.
        qad.change((T, G), (25, 18), 25, 0);
        assert!((smoothed(&qad, 1_000) - 0.72).abs() < 1e-6);
        qad.change((T, G), (0, 7), 25, 1_000);
        assert!(smoothed(&qad, 1_004) < 0.95);
        assert!((smoothed(&qad, 1_005) - 0.952_94).abs() < 1e-4);
    }

    #[test]
    fn a_slow_average_is_still_on_its_way_after_many_cycles() {
        let mut qad = Qad::new(1);
        qad.change((T, G), (8, 0), 8, 0);
        assert!((smoothed(&qad, 64) - 0.999f64.powi(64)).abs() < 1e-6);
        assert!((smoothed(&qad, 5_000) - 0.999f64.powi(5_000)).abs() < 1e-6);
        let mut frozen = Qad::new(0);
        frozen.change((T, G), (8, 0), 8, 0);
        assert_eq!(smoothed(&frozen, 1 << 40), 1.0);
    }

    #[test]
    fn looking_changes_nothing_and_the_closed_form_equals_ticking() {
        let mut qad = Qad::new(300);
        qad.change((T, G), (10, 0), 8, 3);
        qad.change((T, G), (0, 4), 8, 9);
        let mut ticked = 1.0;
        for slot in 4..=40u64 {
            let q = if slot <= 9 { 0.0 } else { 0.5 };
            ticked = 0.3 * q + 0.7 * ticked;
            assert!((smoothed(&qad, slot) - ticked).abs() < 1e-6 || slot < 9, "slot {slot}");
        }
        assert_eq!(qad.of(T, 40), qad.of(T, 40));
    }

    #[test]
    fn no_quota_or_no_demand_is_no_shortfall_and_more_than_promised_is_no_surplus() {
        assert_eq!(Degree::ratio(0, 0), Degree::ONE);
        assert_eq!(Degree::ratio(9, 8), Degree::ONE);
        assert_eq!(Degree::ratio(2, 8).as_f64(), 0.25);
        assert_eq!(Degree::ratio(99, 100).bucket(10), 99);
        assert_eq!(Degree::ONE.bucket(10), 100);
    }
}
