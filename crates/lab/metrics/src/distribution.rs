//! A distribution as its mean, tail quantiles and maximum.

use serde::{Deserialize, Serialize};

const MICROS_PER_SECOND: f64 = 1e6;

/// Mean, quantiles and maximum of a set of values. Independent of the values' order: times are
/// summed as integers, ratios after sorting.
///
/// A quantile `q` of `n` sorted values `x[0..n]` lies at `h = q (n - 1)`: it is
/// `x[floor h] + (h - floor h) (x[floor h + 1] - x[floor h])`, linear between order statistics
/// (what NumPy and R call their default, "type 7").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 % of the values are at most this.
    pub p90: f64,
    /// 95 % of the values are at most this.
    pub p95: f64,
    /// 99 % of the values are at most this.
    pub p99: f64,
    /// 99.9 % of the values are at most this.
    pub p99_9: f64,
    /// Largest value.
    pub max: f64,
}

/// A column of [`Distribution`]: the part of a figure's name that says which, and how to get it.
pub(crate) struct Statistic {
    pub name: &'static str,
    pub title: &'static str,
    pub get: fn(&Distribution) -> f64,
}

/// Every statistic, in the order tables list them.
pub(crate) const STATISTICS: [Statistic; 7] = [
    Statistic { name: "mean", title: "mean", get: |d| d.mean },
    Statistic { name: "p50", title: "median", get: |d| d.p50 },
    Statistic { name: "p90", title: "90th percentile", get: |d| d.p90 },
    Statistic { name: "p95", title: "95th percentile", get: |d| d.p95 },
    Statistic { name: "p99", title: "99th percentile", get: |d| d.p99 },
    Statistic { name: "p99_9", title: "99.9th percentile", get: |d| d.p99_9 },
    Statistic { name: "max", title: "maximum", get: |d| d.max },
];

impl Distribution {
    /// Of times in microseconds, told in seconds. `None` if there are none.
    pub fn of_micros(mut micros: Vec<i64>) -> Option<Distribution> {
        micros.sort_unstable();
        let sum: i128 = micros.iter().map(|&value| i128::from(value)).sum();
        let mean = sum as f64 / (micros.len() as f64 * MICROS_PER_SECOND);
        of_sorted(micros.len(), mean, |at| micros[at] as f64 / MICROS_PER_SECOND)
    }

    /// Of plain numbers such as ratios. `None` if there are none.
    pub fn of_ratios(mut ratios: Vec<f64>) -> Option<Distribution> {
        ratios.sort_unstable_by(f64::total_cmp);
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        of_sorted(ratios.len(), mean, |at| ratios[at])
    }
}

fn of_sorted(count: usize, mean: f64, value: impl Fn(usize) -> f64) -> Option<Distribution> {
    let last = count.checked_sub(1)?;
    let quantile = |per_mille| quantile(count, per_mille, &value);
    Some(Distribution {
        mean,
        p50: quantile(500),
        p90: quantile(900),
        p95: quantile(950),
        p99: quantile(990),
        p99_9: quantile(999),
        max: value(last),
    })
}

/// The quantile at `per_mille / 1000` of `count` values that `value` returns in ascending order.
///
/// # Panics
/// If there are no values or `per_mille` is above 1000.
pub(crate) fn quantile(count: usize, per_mille: u64, value: impl Fn(usize) -> f64) -> f64 {
    assert!(count > 0 && per_mille <= 1000, "a quantile of something, between none and all");
    // The position is an integer number of thousandths, so it is exact.
    let position = (count - 1) as u128 * u128::from(per_mille);
    let below = (position / 1000) as usize;
    let thousandths = (position % 1000) as f64;
    let low = value(below);
    if thousandths == 0.0 {
        return low;
    }
    low + (value(below + 1) - low) * thousandths / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_order_statistics() {
        let of = Distribution::of_micros(vec![40_000_000, 10_000_000, 30_000_000, 20_000_000]);
        let of = of.unwrap();
        assert_eq!((of.mean, of.p50, of.max), (25.0, 25.0, 40.0));
        // h = 0.9 * 3 = 2.7: seven tenths of the way from the third to the fourth.
        assert!((of.p90 - 37.0).abs() < 1e-12);
        assert!((of.p99_9 - 39.97).abs() < 1e-12);
    }

    #[test]
    fn one_value_is_its_own_mean_and_every_quantile_and_no_value_is_no_distribution() {
        let of = Distribution::of_micros(vec![1_500_000]).unwrap();
        assert!(STATISTICS.iter().all(|statistic| (statistic.get)(&of) == 1.5));
        assert_eq!(Distribution::of_micros(Vec::new()), None);
        assert_eq!(Distribution::of_ratios(Vec::new()), None);
    }

    #[test]
    fn the_order_of_the_values_does_not_matter_to_the_last_bit() {
        let ratios: Vec<f64> = (1..2000).map(|i| 1.0 + 1.0 / f64::from(i)).collect();
        let mut reversed = ratios.clone();
        reversed.reverse();
        let (one, other) = (Distribution::of_ratios(ratios), Distribution::of_ratios(reversed));
        assert_eq!(one.unwrap().mean.to_bits(), other.unwrap().mean.to_bits());
    }
}
