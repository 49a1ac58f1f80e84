//! How far a mean of paired differences might be off: the percentile bootstrap.

use crate::distribution::quantile;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// How often the pairs are drawn anew.
pub(crate) const RESAMPLES: usize = 1000;
/// Resamples that share a generator. Fixed, so that the result does not depend on how the work
/// might be spread over threads.
const CHUNK: usize = 50;

/// A range that holds the mean with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub low: f64,
    pub high: f64,
}

/// The 2.5 % and 97.5 % quantiles of the means of resampled `differences`, for each of its
/// columns. All columns of a row are drawn together. `None` without rows.
pub(crate) fn mean_intervals<const N: usize>(
    differences: &[[i64; N]],
    seed: u64,
) -> Option<[Interval; N]> {
    let rows = differences.len() as u64;
    if rows == 0 {
        return None;
    }
    let mut sums: Vec<[i128; N]> = Vec::with_capacity(RESAMPLES);
    for chunk in 0..RESAMPLES.div_ceil(CHUNK) as u64 {
        let mut random = Pcg64Mcg::seed_from_u64(seed ^ chunk.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for _ in 0..CHUNK.min(RESAMPLES - sums.len()) {
            let mut sum = [0; N];
            for _ in 0..rows {
                // The high word of the product is uniform below `rows`, to 1 in 2^64 / rows.
                let at = (u128::from(random.next_u64()) * u128::from(rows)) >> 64;
                let row = &differences[at as usize];
                sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += i128::from(value));
            }
            sums.push(sum);
        }
    }
    Some(std::array::from_fn(|column| {
        let mut of_column: Vec<i128> = sums.iter().map(|sum| sum[column]).collect();
        of_column.sort_unstable();
        let mean = |at: usize| of_column[at] as f64 / rows as f64;
        let bound = |per_mille| quantile(of_column.len(), per_mille, mean);
        Interval { low: bound(25), high: bound(975) }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_known_spread_is_that_of_the_normal_law() {
        // Half -1, half +1: the mean of 10,000 draws has standard deviation 0.01.
        let rows: Vec<[i64; 1]> =
            (0..10_000).map(|i| [if i % 2 == 0 { 1000 } else { -1000 }]).collect();
        let [interval] = mean_intervals(&rows, 7).unwrap();
        assert!((interval.low + 19.6).abs() < 2.0, "{interval:?}");
        assert!((interval.high - 19.6).abs() < 2.0, "{interval:?}");
    }

    #[test]
    fn equal_seeds_give_equal_intervals_and_others_do_not() {
        let rows: Vec<[i64; 2]> = (0..500).map(|i| [i * i % 97, i]).collect();
        assert_eq!(mean_intervals(&rows, 1), mean_intervals(&rows, 1));
        assert_ne!(mean_intervals(&rows, 1), mean_intervals(&rows, 2));
    }

    #[test]
    fn a_constant_has_no_spread_and_nothing_has_no_interval() {
        let [only] = mean_intervals(&[[5], [5], [5]], 3).unwrap();
        assert_eq!((only.low, only.high), (5.0, 5.0));
        assert_eq!(mean_intervals::<1>(&[], 3), None);
    }
}
