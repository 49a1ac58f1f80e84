//! Quotas in proportion to what tenants use.

/// A total split in proportion: who gets its least instead, and what the others divide.
struct Split<'a> {
    weights: &'a [u128],
    least: &'a [u32],
    fixed: Vec<bool>,
    /// What those that are not fixed divide, and their weights together.
    rest: u128,
    sum: u128,
}

impl<'a> Split<'a> {
    /// Whoever would get less than its least, in whole steps, gets that; the others divide the rest.
    fn new(weights: &'a [u128], least: &'a [u32], total: u32, step: u32) -> Split<'a> {
        assert_eq!(weights.len(), least.len(), "a weight and a least for each");
        let mut split =
            Split { weights, least, fixed: vec![false; weights.len()], rest: 0, sum: 1 };
        loop {
            let fixed = |&index: &usize| split.fixed[index];
            let taken: u32 = (0..weights.len()).filter(fixed).map(|i| least[i]).sum();
            let sum: u128 = (0..weights.len()).filter(|i| !fixed(i)).map(|i| weights[i]).sum();
            split.rest = u128::from(total.saturating_sub(taken));
            split.sum = sum.max(1);
            match (0..weights.len()).find(|&index| split.of(index, step) < least[index]) {
                Some(index) => split.fixed[index] = true,
                None => return split,
            }
        }
    }

    fn of(&self, index: usize, step: u32) -> u32 {
        if self.fixed[index] {
            return self.least[index];
        }
        let share = self.weights[index] * self.rest / self.sum;
        u32::try_from(share).expect("at most the total") / step * step
    }

    fn remainder(&self, index: usize) -> u128 {
        if self.fixed[index] { 0 } else { self.weights[index] * self.rest % self.sum }
    }
}

/// Whole steps in proportion to `weights`, at least `least` each, together at most `total` if that
/// is enough for the least: whoever is below its least gets that, and the others share the rest.
///
/// # Panics
/// If there are not as many weights as leasts, or `step` is 0.
pub fn in_proportion(weights: &[u128], least: &[u32], total: u32, step: u32) -> Vec<u32> {
    let split = Split::new(weights, least, total, step);
    (0..weights.len()).map(|index| split.of(index, step)).collect()
}

/// As [`in_proportion`] in steps of 1, but together just `total`: what is left goes by largest
/// remainders, ties to the first.
///
/// # Panics
/// If there are not as many weights as leasts.
pub fn all_in_proportion(weights: &[u128], least: &[u32], total: u32) -> Vec<u32> {
    let split = Split::new(weights, least, total, 1);
    let mut parts: Vec<u32> = (0..weights.len()).map(|index| split.of(index, 1)).collect();
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    by_remainder.sort_by_key(|&index| (std::cmp::Reverse(split.remainder(index)), index));
    let left = total.saturating_sub(parts.iter().sum()) as usize;
    for index in by_remainder.into_iter().take(left) {
        parts[index] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{all_in_proportion, in_proportion};

    #[test]
    fn quotas_follow_weights_but_hold_the_widest_job_and_the_cluster() {
        assert_eq!(in_proportion(&[3, 1], &[8, 8], 64, 8), [48, 16]);
        assert_eq!(in_proportion(&[99, 1, 100], &[8, 32, 8], 128, 8), [40, 32, 48]);
        assert_eq!(in_proportion(&[1, 1], &[64, 64], 64, 8), [64, 64]);
    }

    #[test]
    fn all_of_it_is_given_away_by_largest_remainders() {
        assert_eq!(all_in_proportion(&[1, 1, 1], &[1, 1, 1], 11), [4, 4, 3]);
        assert_eq!(all_in_proportion(&[10, 26, 64], &[0, 0, 0], 10), [1, 3, 6]);
        // The last would get 0; the others divide what it leaves, 8 : 2 of 6.
        assert_eq!(all_in_proportion(&[80, 20, 0], &[1, 1, 4], 10), [5, 1, 4]);
    }
}
