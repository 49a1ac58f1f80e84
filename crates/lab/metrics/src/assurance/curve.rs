//! A smoothed degree between two events, in closed form: `to + (1−λ)ⁿ (from − to)` in slot `n`.
//!
//! The same fixed-point arithmetic as the scheduler's own, written anew.

/// One, in the units of degrees: 2⁻³².
pub(super) const ONE: u64 = 1 << 32;

/// Powers that are tabulated at most: enough for weights of 0.01 and more.
const MOST_POWERS: usize = 4_096;

/// `(1−λ)ⁿ` and its sums.
#[derive(Clone, Debug)]
pub(super) struct Powers {
    /// `(1−λ)ⁿ` for `n` from 0 on, as long as anything is left of it.
    power: Vec<u64>,
    /// Sum of the first `n` powers.
    sum: Vec<u64>,
}

impl Powers {
    pub(super) fn new(lambda_milli: u32) -> Powers {
        let keep = u64::from(1_000 - lambda_milli.min(1_000));
        let (mut power, mut sum) = (vec![ONE], vec![0]);
        while power.len() < MOST_POWERS && power.last().is_some_and(|&last| last > 0) {
            let last = power[power.len() - 1];
            sum.push(sum[sum.len() - 1] + last);
            power.push(last * keep / 1_000);
        }
        Powers { power, sum }
    }

    fn power(&self, slots: u64) -> u64 {
        usize::try_from(slots).ok().and_then(|n| self.power.get(n)).copied().unwrap_or(0)
    }

    fn sum(&self, slots: u64) -> u64 {
        let last = self.sum.len() - 1;
        self.sum[usize::try_from(slots).map_or(last, |slots| slots.min(last))]
    }
}

/// A degree that moves from one value towards another, slot by slot, in units of 2⁻³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Curve {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Curve {
    /// Full assurance, and nothing that changes it.
    pub(super) const FULL: Curve = Curve { from: ONE, to: ONE };

    fn towards(self, rest: u64, of: u64) -> u64 {
        if self.from >= self.to { of + rest } else { of - rest }
    }

    /// The degree in slot `n`, counted from the one in which it was `from`.
    pub(super) fn value(self, powers: &Powers, n: u64) -> u64 {
        let distance = u128::from(self.from.abs_diff(self.to));
        let rest = (distance * u128::from(powers.power(n))) >> 32;
        self.towards(rest as u64, self.to)
    }

    /// Sum of the degrees of the first `n` slots.
    pub(super) fn sum(self, powers: &Powers, n: u64) -> u128 {
        let distance = u128::from(self.from.abs_diff(self.to));
        let rest = (distance * u128::from(powers.sum(n))) >> 32;
        let settled = u128::from(self.to) * u128::from(n);
        if self.from >= self.to { settled + rest } else { settled - rest }
    }

    /// The first slot in which the degree is on the other side of `threshold` than in slot 0, if
    /// there is one; below is one side, at or above the other.
    pub(super) fn flips(self, powers: &Powers, threshold: u64) -> Option<u64> {
        let below = self.from < threshold;
        if (self.to < threshold) == below {
            return None;
        }
        first_slot(0, |n| (self.value(powers, n) < threshold) != below)
    }

    /// The first slot after `n` in which `other` is the lower one, if there is one. Two such
    /// curves of the same slots cross at most once.
    pub(super) fn overtaken(self, powers: &Powers, n: u64, other: Curve) -> Option<u64> {
        first_slot(n + 1, |at| other.value(powers, at) < self.value(powers, at))
    }
}

/// The first slot from `from` on for which `is` holds, where it holds ever after.
fn first_slot(from: u64, is: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (from, from.max(MOST_POWERS as u64));
    if !is(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if is(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_crossings_are_those_of_slot_by_slot_values() {
        let powers = Powers::new(300);
        for (from, to) in [(ONE, 0), (0, ONE), (ONE, ONE * 3 / 4), (ONE / 8, ONE / 2)] {
            let curve = Curve { from, to };
            let mut sum = 0u128;
            for n in 0..80 {
                let off = sum.abs_diff(curve.sum(&powers, n));
                assert!(off <= 64, "slot {n}: {off} off");
                sum += u128::from(curve.value(&powers, n));
            }
            for threshold in [ONE / 2, ONE * 95 / 100] {
                let below = |n: u64| curve.value(&powers, n) < threshold;
                let found = (0..80).find(|&n| below(n) != below(0));
                assert_eq!(curve.flips(&powers, threshold), found);
            }
        }
    }

    #[test]
    fn the_published_table_of_the_average_holds() {
        let powers = Powers::new(300);
        // A total deficit has nine tenths of its effect after seven cycles.
        let deficit = Curve { from: ONE, to: 0 };
        assert_eq!(deficit.flips(&powers, ONE / 10), Some(7));
        // From 0.72 to 0.95 in five.
        let recovery = Curve { from: ONE / 100 * 72, to: ONE };
        assert_eq!(recovery.flips(&powers, ONE / 100 * 95), Some(5));
    }
}
