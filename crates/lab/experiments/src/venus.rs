//! The published month as DeepShare's experiments take it.

use crate::ExperimentError;
use deepshare_model::{Quota, TenantId};
use deepshare_trace::{Cluster, TenantEntry, Trace, read_venus_month};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Nodes of the published cluster, 8 GPUs each.
pub const NODES: usize = 135;

/// A history and a cluster whose tenants have quotas.
#[derive(Clone, Debug)]
pub struct Month {
    /// The jobs.
    pub trace: Trace,
    /// The machines and quotas.
    pub cluster: Cluster,
}

impl Month {
    /// Helios Venus, September 2020: tenants are its virtual clusters, quotas their sizes.
    ///
    /// # Errors
    /// If the folder does not have the files.
    pub fn venus(data: &Path) -> Result<Month, ExperimentError> {
        let (trace, cluster) = read_venus_month(data)?;
        Ok(Month { trace, cluster })
    }

    /// The same with so many nodes: the first of the published ones, or more of the same. Quotas
    /// stay as they are.
    pub fn with_nodes(&self, nodes: usize) -> Month {
        let mut month = self.clone();
        for index in month.cluster.nodes.len()..nodes {
            let mut node = month.cluster.nodes[0].clone();
            node.name = format!("more-{index}");
            month.cluster.nodes.push(node);
        }
        month.cluster.nodes.truncate(nodes);
        month
    }

    /// Tenants as the paper has them: `count` of them by a hash of the user (here xxh3), quotas in
    /// proportion to the GPU time that each asks for, in whole nodes, at least its widest job, and
    /// together the cluster. The month asks for more than the paper's 4 to 32 GPUs a tenant hold.
    pub fn with_hashed_tenants(&self, count: usize) -> Month {
        let mut month = self.clone();
        let mut asked = vec![0u128; count];
        let mut widest = vec![8u32; count];
        for job in &mut month.trace.jobs {
            let user = &self.trace.users[job.user.index()];
            let tenant = (xxh3_64(user.as_bytes()) % count as u64) as usize;
            job.tenant = TenantId::from_index(tenant);
            asked[tenant] += job.duration.on(job.gpus).0;
            widest[tenant] = widest[tenant].max(job.gpus.next_multiple_of(8));
        }
        let total = month.cluster.nodes.len() as u32 * 8;
        let quotas = in_proportion(&asked, &widest, total);
        let names: Vec<String> = (1..=count).map(|number| format!("hash-{number:02}")).collect();
        month.cluster.tenants = names
            .iter()
            .zip(quotas)
            .map(|(name, gpus)| TenantEntry::new(name.clone(), Quota::uniform(gpus, 1)))
            .collect();
        for node in &mut month.cluster.nodes {
            node.tenant = None;
        }
        month.trace.tenants = names;
        month
    }
}

/// Whole nodes in proportion to `weights`, at least `least` GPUs each, `total` GPUs together if
/// that many are enough: whoever is below its least gets that, and the others share the rest.
fn in_proportion(weights: &[u128], least: &[u32], total: u32) -> Vec<u32> {
    let mut fixed = vec![false; weights.len()];
    loop {
        let taken: u32 = least.iter().zip(&fixed).filter(|(_, f)| **f).map(|(l, _)| *l).sum();
        let rest = u128::from(total.saturating_sub(taken));
        let sum: u128 = weights.iter().zip(&fixed).filter(|(_, f)| !**f).map(|(w, _)| *w).sum();
        let share = |index: usize| (weights[index] * rest / sum.max(1)) as u32 / 8 * 8;
        let below = (0..weights.len()).find(|&i| !fixed[i] && share(i) < least[i]);
        match below {
            Some(index) => fixed[index] = true,
            None => {
                let quota = |i: usize| if fixed[i] { least[i] } else { share(i) };
                return (0..weights.len()).map(quota).collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::in_proportion;

    #[test]
    fn quotas_follow_weights_but_hold_the_widest_job_and_the_cluster() {
        assert_eq!(in_proportion(&[3, 1], &[8, 8], 64), [48, 16]);
        assert_eq!(in_proportion(&[99, 1, 100], &[8, 32, 8], 128), [40, 32, 48]);
        assert_eq!(in_proportion(&[1, 1], &[64, 64], 64), [64, 64]);
    }
}
