//! Small draws.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// One of several, all as likely.
pub(crate) fn one<T: Copy>(rng: &mut Pcg64Mcg, choices: &[T]) -> T {
    choices[rng.random_range(0..choices.len())]
}

/// True so many times in a hundred.
pub(crate) fn chance(rng: &mut Pcg64Mcg, percent: u32) -> bool {
    rng.random_range(0..100) < percent
}
