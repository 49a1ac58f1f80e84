//! How many jobs of each size every virtual cluster gets.

use super::apportion;
use super::statistics::{CLUSTERS, SIZES};

/// GPU counts of the `jobs[v]` jobs of each virtual cluster `v`, ascending.
pub(super) fn by_cluster(jobs: &[u32]) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for (vc, &n) in CLUSTERS.iter().zip(jobs) {
        let counts = apportion(&vc.sizes.map(f64::from), n);
        let mut sizes: Vec<u32> = (SIZES.iter().zip(counts))
            .flat_map(|(&gpus, count)| std::iter::repeat_n(gpus, count as usize))
            .collect();
        if let Some(last) = sizes.last_mut() {
            *last = vc.largest;
        }
        all.push(sizes);
    }
    all
}
