//! Time by quota assurance degree, integrated exactly as the run goes.
//!
//! Between two events a tenant's degree Q is constant and its smoothed degree Q̃ moves along a
//! known curve, so time below a threshold and the mean are worked out in closed form. Only time in
//! which the tenant is owed something counts: guaranteed demand, and a quota for it.

mod curve;

use curve::{Curve, ONE, Powers};
use deepshare_model::{Span, TenantId, Time};
use serde::{Deserialize, Serialize};

/// Smoothed degrees below which time is counted, thousandths.
pub const ASSURANCE_LEVELS: [u32; 4] = [950, 900, 850, 500];

/// The level of compliance among [`ASSURANCE_LEVELS`]: what ends an episode of recovery.
const COMPLIANCE: usize = 0;

/// How one GPU type of a tenant stands from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its guaranteed jobs ask for GPUs of this type, and it has a quota of them.
    pub owed: bool,
    /// Q, in units of 2⁻³².
    pub now: u64,
    /// Q̃ as of the slot of that instant, in units of 2⁻³².
    pub smoothed: u64,
}

/// Time of a tenant by degree, while it is owed something. Sums over tenants are of the same form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assured {
    /// Time in all.
    pub time: Span,
    /// Integral of Q over it, in units of 2⁻³² µs.
    pub now: u128,
    /// Integral of Q̃ over it, in units of 2⁻³² µs.
    pub smoothed: u128,
    /// Time with Q̃ below each of [`ASSURANCE_LEVELS`].
    pub below: [Span; ASSURANCE_LEVELS.len()],
}

impl Assured {
    /// Mean of Q over time; `None` if nothing was ever owed.
    pub fn mean_now(&self) -> Option<f64> {
        self.mean(self.now)
    }

    /// Mean of Q̃ over time; `None` if nothing was ever owed.
    pub fn mean_smoothed(&self) -> Option<f64> {
        self.mean(self.smoothed)
    }

    fn mean(&self, integral: u128) -> Option<f64> {
        let time = self.time.0 as f64 * ONE as f64;
        (!self.time.is_zero()).then(|| integral as f64 / time)
    }

    /// Share of time with Q̃ below one of [`ASSURANCE_LEVELS`]; `None` if nothing was ever owed.
    pub fn share_below(&self, level: usize) -> Option<f64> {
        (!self.time.is_zero()).then(|| self.below[level].0 as f64 / self.time.0 as f64)
    }

    /// Adds another's time to this one.
    pub fn add(&mut self, other: &Assured) {
        self.time += other.time;
        self.now += other.now;
        self.smoothed += other.smoothed;
        for (below, more) in self.below.iter_mut().zip(other.below) {
            *below += more;
        }
    }
}

/// What a tenant was assured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantAssurance {
    /// Its quota when the run ended, over all GPU types.
    pub quota: u32,
    /// Over the whole run.
    pub whole: Assured,
    /// Up to the last submission.
    pub arrivals: Assured,
}

/// Integrates [`TenantAssurance`] change by change.
#[derive(Clone, Debug)]
pub struct AssuranceMeter {
    cycle: Span,
    powers: Powers,
    arrivals_end: Time,
    tenants: Vec<Account>,
    /// Time from Q̃'s fall below compliance to its return, for each time it fell.
    recoveries: Vec<Span>,
}

#[derive(Clone, Debug)]
struct Account {
    since: Time,
    owed: bool,
    now: u64,
    /// Q̃ by GPU type, from the slot of `since` on.
    curves: Vec<Curve>,
    /// Below compliance since.
    below_since: Option<Time>,
    sums: TenantAssurance,
}

impl Default for Account {
    fn default() -> Account {
        Account {
            since: Time::ZERO,
            owed: false,
            now: ONE,
            curves: vec![Curve::FULL],
            below_since: None,
            sums: TenantAssurance::default(),
        }
    }
}

impl AssuranceMeter {
    /// A meter of degrees that step every `cycle` with weight `lambda_milli` thousandths. Jobs are
    /// submitted up to `arrivals_end`.
    ///
    /// # Panics
    /// If the cycle is zero.
    pub fn new(cycle: Span, lambda_milli: u32, arrivals_end: Time) -> AssuranceMeter {
        assert!(!cycle.is_zero(), "a smoothed degree has a cycle");
        AssuranceMeter {
            cycle,
            powers: Powers::new(lambda_milli),
            arrivals_end,
            tenants: Vec::new(),
            recoveries: Vec::new(),
        }
    }

    /// A tenant stands so from `now` on, by GPU type. Costs O(types) and little else.
    ///
    /// # Panics
    /// If `now` runs backwards for this tenant.
    pub fn set(&mut self, now: Time, tenant: TenantId, standings: &[Standing]) {
        if self.tenants.len() <= tenant.index() {
            self.tenants.resize_with(tenant.index() + 1, Account::default);
        }
        self.count(tenant.index(), now);
        let account = &mut self.tenants[tenant.index()];
        account.owed = standings.iter().any(|standing| standing.owed);
        account.now = standings.iter().map(|standing| standing.now).min().unwrap_or(ONE);
        account.curves.clear();
        let curve = |standing: &Standing| Curve { from: standing.smoothed, to: standing.now };
        account.curves.extend(standings.iter().map(curve));
        if account.curves.is_empty() {
            account.curves.push(Curve::FULL);
        }
    }

    /// Closes the accounts at `end`: what each tenant was assured, and how long each fall of Q̃
    /// below compliance lasted; one that has not ended counts up to `end`.
    pub fn finish(mut self, end: Time) -> (Vec<TenantAssurance>, Vec<Span>) {
        for index in 0..self.tenants.len() {
            self.count(index, end);
            if let Some(since) = self.tenants[index].below_since.take() {
                self.recoveries.push(end.saturating_since(since));
            }
        }
        let sums = self.tenants.iter().map(|account| account.sums).collect();
        (sums, self.recoveries)
    }

    /// Counts a tenant's time up to `now`, from where its curves have to be set anew.
    fn count(&mut self, tenant: usize, now: Time) {
        let account = &self.tenants[tenant];
        let from = account.since;
        let step = now.since(from).expect("a tenant's clock never runs backwards");
        if step.is_zero() {
            return;
        }
        let full = !account.owed && account.below_since.is_none();
        if full && account.curves.iter().all(|&curve| curve == Curve::FULL) {
            self.tenants[tenant].since = now;
            return;
        }
        let whole = self.piece(account, from, now);
        let arrivals = match self.arrivals_end {
            end if end >= now => whole,
            end if end > from => self.piece(account, from, end),
            _ => Assured::default(),
        };
        let below_since = self.falls_and_returns(tenant, now);
        let account = &mut self.tenants[tenant];
        account.below_since = below_since;
        if account.owed {
            account.sums.whole.add(&whole);
            account.sums.arrivals.add(&arrivals);
        }
        account.since = now;
    }

    /// Time from `from` to `to`, in which nothing changes but by itself.
    fn piece(&self, account: &Account, from: Time, to: Time) -> Assured {
        let step = to.saturating_since(from);
        let mut sums = Assured {
            time: step,
            now: u128::from(account.now) * u128::from(step.0),
            ..Assured::default()
        };
        for (curve, begin, end) in self.lowest(account, to) {
            sums.smoothed += self.integral(account, curve, end);
            sums.smoothed -= self.integral(account, curve, begin);
            for (below, level) in sums.below.iter_mut().zip(ASSURANCE_LEVELS) {
                let (before, flip) = self.side(account, curve, degree(level), begin, end);
                let first = flip.saturating_since(begin);
                let second = end.saturating_since(flip);
                *below += if before { first } else { second };
            }
        }
        sums
    }

    /// Of the curves of a tenant's GPU types, the lowest, with its times, up to `to`.
    fn lowest(&self, account: &Account, to: Time) -> Vec<(Curve, Time, Time)> {
        let powers = &self.powers;
        let (first, last) = (self.slot(account.since), self.slot(to));
        let mut pieces = Vec::with_capacity(1);
        let (mut slot, mut begin) = (0, account.since);
        while begin < to {
            let lowest = account
                .curves
                .iter()
                .copied()
                .min_by_key(|c| (c.value(powers, slot), c.value(powers, slot + 1), c.to))
                .expect("an account has a curve");
            let overtaken = account.curves.iter().filter(|&&other| other != lowest);
            let next = overtaken.filter_map(|&other| lowest.overtaken(powers, slot, other)).min();
            let end = match next.filter(|&next| first + next <= last) {
                Some(next) => Time((first + next) * self.cycle.0).min(to),
                None => to,
            };
            pieces.push((lowest, begin, end));
            (slot, begin) = (next.unwrap_or(slot), end);
        }
        pieces
    }

    /// Integral of a curve from the start of the account's slot to an instant.
    fn integral(&self, account: &Account, curve: Curve, to: Time) -> u128 {
        let slots = self.slot(to) - self.slot(account.since);
        let part = u128::from(to.0 % self.cycle.0);
        let whole = curve.sum(&self.powers, slots) * u128::from(self.cycle.0);
        whole + u128::from(curve.value(&self.powers, slots)) * part
    }

    /// Whether a curve is below a level at `begin`, and until when; `end` if to the end.
    fn side(
        &self,
        account: &Account,
        curve: Curve,
        level: u64,
        begin: Time,
        end: Time,
    ) -> (bool, Time) {
        let first = self.slot(account.since);
        let below = curve.value(&self.powers, self.slot(begin) - first) < level;
        let flip = curve.flips(&self.powers, level);
        let flip = flip.map(|slot| Time((first + slot) * self.cycle.0));
        (below, flip.filter(|&at| at > begin).map_or(end, |at| at.min(end)))
    }

    /// Follows Q̃ across the level of compliance up to `now`; since when it is below then.
    fn falls_and_returns(&mut self, tenant: usize, now: Time) -> Option<Time> {
        let account = &self.tenants[tenant];
        let level = degree(ASSURANCE_LEVELS[COMPLIANCE]);
        let mut since = account.below_since;
        let mut returns = Vec::new();
        let mut change = |below: bool, at: Time| match (below, since) {
            (true, None) => since = Some(at),
            (false, Some(fell)) => {
                returns.push(at.saturating_since(fell));
                since = None;
            }
            _ => {}
        };
        for (curve, begin, end) in self.lowest(account, now) {
            let (below, flip) = self.side(account, curve, level, begin, end);
            change(below, begin);
            if flip < end {
                change(!below, flip);
            }
        }
        self.recoveries.extend(returns);
        since
    }

    fn slot(&self, at: Time) -> u64 {
        at.0 / self.cycle.0
    }
}

/// A degree of so many thousandths in units of 2⁻³², rounded as the scheduler rounds.
fn degree(milli: u32) -> u64 {
    (u64::from(milli) << 32) / 1_000
}

#[cfg(test)]
mod tests;
