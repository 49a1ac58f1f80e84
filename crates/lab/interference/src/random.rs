//! Random streams that are the same on every machine.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A random stream for one purpose, so that streams do not disturb each other.
pub(crate) fn stream(seed: u64, purpose: u64) -> Pcg64Mcg {
    // Any odd constant spreads purposes over seeds; this is 2^64 over the golden ratio.
    Pcg64Mcg::seed_from_u64(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A draw from the standard normal distribution (Box and Muller's transform).
pub(crate) fn normal(rng: &mut Pcg64Mcg) -> f64 {
    let radius: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    let turn: f64 = rng.random_range(0.0..core::f64::consts::TAU);
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(turn)
}
