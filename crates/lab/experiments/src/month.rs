//! The published histories as the experiments take them.

use crate::ExperimentError;
use deepshare_model::{Quota, TenantId};
use deepshare_trace::{
    Cluster, NodeEntry, TenantEntry, Trace, in_proportion, read_philly_window, read_venus_month,
};
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

    /// Two weeks of Microsoft Philly on 219 GPUs; see [`read_philly_window`].
    ///
    /// # Errors
    /// If the folder does not have the files.
    pub fn philly(data: &Path) -> Result<Month, ExperimentError> {
        let (trace, cluster) = read_philly_window(data)?;
        Ok(Month { trace, cluster })
    }

    /// The same with so many nodes: the first of the published ones, or all of them and then the
    /// same again from the first on. Quotas stay as they are.
    pub fn with_nodes(&self, nodes: usize) -> Month {
        let published = &self.cluster.nodes;
        let of = |index: usize| {
            let node = published[index % published.len()].clone();
            let name = if index < published.len() { node.name } else { format!("more-{index}") };
            NodeEntry { name, ..node }
        };
        let nodes = (0..nodes).map(of).collect();
        let cluster = Cluster { nodes, ..self.cluster.clone() };
        Month { trace: self.trace.clone(), cluster }
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
        let total = u32::try_from(month.cluster.gpus()).expect("the published cluster is small");
        let quotas = in_proportion(&asked, &widest, total, 8);
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

#[cfg(test)]
mod tests {
    use super::*;
    use deepshare_trace::generate::testbed;

    #[test]
    fn nodes_are_the_first_ones_or_all_and_the_same_again() {
        let (trace, mut cluster) = testbed(1);
        let last = cluster.nodes.len() - 1;
        cluster.nodes[last].gpus = 3;
        let month = Month { trace, cluster };
        let sizes = |nodes: usize| -> Vec<u32> {
            month.with_nodes(nodes).cluster.nodes.iter().map(|node| node.gpus).collect()
        };
        assert_eq!(month.with_nodes(last + 1).cluster, month.cluster);
        assert_eq!(sizes(last), sizes(last + 1)[..last]);
        let doubled = month.with_nodes(2 * last + 2).cluster;
        assert_eq!(doubled.gpus(), 2 * month.cluster.gpus());
        let mut names: Vec<&String> = doubled.nodes.iter().map(|node| &node.name).collect();
        names.sort();
        names.dedup();
        assert_eq!((names.len(), &doubled.tenants), (2 * last + 2, &month.cluster.tenants));
    }
}
