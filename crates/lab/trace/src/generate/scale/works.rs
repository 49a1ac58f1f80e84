//! What the jobs of a tenant are like: those of one of the published virtual clusters.

use super::super::durations;
use super::super::statistics::{CLUSTERS, VirtualCluster};
use super::super::stream::Stream;
use super::super::{apportion, sizes};
use super::GPUS_PER_NODE;
use crate::cluster::Cluster;
use deepshare_model::{GpuTypeId, Quota};

/// Jobs drawn from for each virtual cluster.
const SAMPLE: u32 = 4_096;

/// Sizes and durations that a tenant's jobs are drawn from.
pub(super) struct Work {
    /// GPUs and seconds, ascending.
    sample: Vec<(u32, u64)>,
}

impl Work {
    /// The size at this many deviations from everyone's middle.
    pub(super) fn size(&self, deviations: f64) -> u32 {
        self.sample[at(deviations, self.sample.len())].0
    }

    /// The duration, of jobs of the next larger size in the sample, at this many deviations from
    /// their middle.
    pub(super) fn seconds(&self, gpus: u32, deviations: f64) -> u64 {
        let from = self.sample.partition_point(|&(size, _)| size < gpus);
        let from = from.min(self.sample.len() - 1);
        let size = self.sample[from].0;
        let to = self.sample.partition_point(|&(other, _)| other <= size);
        self.sample[from + at(deviations, to - from)].1
    }

    /// Mean GPU time of a job.
    pub(super) fn mean_gpu_s(&self) -> f64 {
        let sum: f64 = self.sample.iter().map(|&(gpus, s)| f64::from(gpus) * s as f64).sum();
        sum / self.sample.len() as f64
    }
}

/// The position among `n` in order that is so many deviations from the middle.
fn at(deviations: f64, n: usize) -> usize {
    let share = 0.5 * (1.0 + libm::erf(deviations / std::f64::consts::SQRT_2));
    ((share * n as f64) as usize).min(n - 1)
}

/// How each tenant works. Of the virtual clusters, each has about its published share of the GPUs.
pub(super) fn of_tenants(cluster: &Cluster, stream: &mut Stream) -> Vec<Work> {
    let all_sizes = sizes::by_cluster(&[SAMPLE; CLUSTERS.len()]);
    let samples: Vec<Vec<(u32, u64)>> =
        CLUSTERS.iter().zip(&all_sizes).map(|(vc, sizes)| sample(vc, sizes, stream)).collect();
    let mut owed = apportion(&CLUSTERS.map(|vc| vc.gpu_hours), cluster.gpus() as u32)
        .into_iter()
        .map(i64::from)
        .collect::<Vec<i64>>();
    let tenant = |terms: &crate::cluster::TenantEntry| {
        // Largest debt first, so that the largest tenants have the widest jobs.
        let most = (0..owed.len()).max_by_key(|&vc| (owed[vc], std::cmp::Reverse(vc)));
        let vc = most.expect("there are virtual clusters");
        owed[vc] -= i64::from(terms.quota.total());
        let cut = |&(gpus, s): &(u32, u64)| (within(gpus, &terms.quota, None), s);
        let mut sample: Vec<(u32, u64)> = samples[vc].iter().map(cut).collect();
        sample.sort_unstable();
        Work { sample }
    };
    cluster.tenants.iter().map(tenant).collect()
}

fn sample(vc: &VirtualCluster, sizes: &[u32], stream: &mut Stream) -> Vec<(u32, u64)> {
    let inclination: Vec<f64> = sizes.iter().map(|_| stream.normal()).collect();
    let durations = durations::hand_out(vc, sizes, &inclination);
    sizes.iter().copied().zip(durations).collect()
}

/// `gpus`, cut to what a quota allows on one type of GPU; of more than a node only whole nodes.
pub(super) fn within(gpus: u32, quota: &Quota, gpu_type: Option<GpuTypeId>) -> u32 {
    let types = (0..super::NODES.len()).map(GpuTypeId::from_index);
    let allowed = gpu_type.map_or_else(
        || types.map(|gpu_type| quota.of(gpu_type)).max().unwrap_or(0),
        |gpu_type| quota.of(gpu_type),
    );
    match gpus.min(allowed) {
        cut if cut == gpus || cut < GPUS_PER_NODE => cut.max(1),
        cut => cut - cut % GPUS_PER_NODE,
    }
}
