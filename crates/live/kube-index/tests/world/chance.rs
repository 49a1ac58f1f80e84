//! Seeded draws.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

pub struct Chance(Pcg64Mcg);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.random_range(0..limit)
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, percent: u32) -> bool {
        percent > 0 && self.below(100) < u64::from(percent)
    }

    pub fn one<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
