//! Streams of random numbers: one per purpose, so that a change to one leaves the others alone.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// What a stream is for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Arrivals,
    Users,
    Sizes,
    Durations,
    Outcomes,
    Placement,
    Quotas,
    Terms,
}

/// A reproducible stream. Sampling uses only exact operations and `libm`, so that every platform
/// draws the same numbers.
pub(super) struct Stream(Pcg64Mcg);

impl Stream {
    pub(super) fn new(seed: u64, purpose: Purpose) -> Stream {
        let low = mix(seed);
        let high = mix(low ^ mix(purpose as u64 + 1));
        Stream(Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low)))
    }

    /// Uniform in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Exponential with this mean.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// A position, with probability proportional to the steps of `cumulative`.
    pub(super) fn pick(&mut self, cumulative: &[f64]) -> usize {
        let total = cumulative.last().copied().unwrap_or(0.0);
        let at = self.unit() * total;
        cumulative.partition_point(|&c| c <= at).min(cumulative.len() - 1)
    }
}

/// Running sums of `weights`, for [`Stream::pick`].
pub(super) fn cumulative(weights: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let add = |sum: &mut f64, w: f64| {
        *sum += w;
        Some(*sum)
    };
    weights.into_iter().scan(0.0, add).collect()
}

/// Spreads the bits of a seed (the finaliser of SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
