//! What a measured world begins with: the preset `scale`, cut to any number of GPUs.

use deepshare_engine::CapacityMode;
use deepshare_model::{GpuTypeId, JobSpec, NodeSpec, Quota, Span, TenantSpec};
use deepshare_sim::Workload;
use deepshare_trace::generate::scale;

/// GPUs of the preset.
pub const ALL_GPUS: u32 = 10_000;

/// Tenants, nodes, and the jobs that will come, in order.
pub struct Inputs {
    /// By id.
    pub tenants: Vec<TenantSpec>,
    /// By id; first those of the first GPU type.
    pub nodes: Vec<NodeSpec>,
    /// Each with its true run time.
    pub jobs: Vec<(JobSpec, Span)>,
}

impl Inputs {
    /// Keeps of each GPU type as many nodes, of each quota as much, as leaves about `gpus` GPUs.
    /// Jobs keep their sizes as far as quotas allow.
    pub fn scale(seed: u64, gpus: u32, jobs: u32) -> Inputs {
        let (trace, cluster) = scale(seed, jobs);
        let workload = Workload::new(&trace, &cluster, CapacityMode::Elastic);
        let Workload { mut tenants, mut nodes, jobs, .. } =
            workload.expect("the preset has quotas and describes all that its jobs ask for");
        let types = nodes.iter().map(|node| node.gpu_type.index() + 1).max().unwrap_or(1);
        for tenant in &mut tenants {
            tenant.quota = cut(&tenant.quota, types, gpus);
        }
        let mut kept = vec![0; types];
        let all: Vec<u32> = (0..types)
            .map(|of| nodes.iter().filter(|node| node.gpu_type.index() == of).count() as u32)
            .collect();
        nodes.retain(|node| {
            let of = node.gpu_type.index();
            kept[of] += 1;
            kept[of] <= (all[of] * gpus).div_ceil(ALL_GPUS)
        });
        // Whole seconds would have jobs that start together end together.
        let part = |job: usize| Span(job as u64 * 618_034 % 1_000_000);
        let durations =
            trace.jobs.iter().enumerate().map(|(index, job)| job.duration + part(index));
        let mut jobs: Vec<(JobSpec, Span)> = jobs.into_iter().zip(durations).collect();
        for (job, _) in &mut jobs {
            let quota = &tenants[job.tenant.index()].quota;
            let most = quota.of(job.demand.gpu_type.unwrap_or_else(|| quota.largest()));
            job.demand.gpus = job.demand.gpus.min(most);
        }
        Inputs { tenants, nodes, jobs }
    }

    /// GPUs of all nodes.
    pub fn gpus(&self) -> u32 {
        self.nodes.iter().map(|node| node.gpus).sum()
    }
}

/// A quota in proportion, at least one GPU of each type.
fn cut(quota: &Quota, types: usize, gpus: u32) -> Quota {
    let mut less = Quota::default();
    for of in (0..types).map(GpuTypeId::from_index) {
        less.set(of, (quota.of(of) * gpus / ALL_GPUS).max(1));
    }
    less
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_cluster_has_a_tenth_of_nodes_and_quotas_and_jobs_that_they_allow() {
        let (whole, tenth) = (Inputs::scale(1, 10_000, 500), Inputs::scale(1, 1_000, 500));
        assert_eq!((whole.gpus(), tenth.gpus()), (10_000, 1_000));
        let quotas = |inputs: &Inputs| inputs.tenants.iter().map(|t| t.quota.total()).sum::<u32>();
        assert!(quotas(&tenth) <= quotas(&whole) / 8, "{}", quotas(&tenth));
        for (job, _) in &tenth.jobs {
            let quota = &tenth.tenants[job.tenant.index()].quota;
            assert!((1..=quota.of(quota.largest())).contains(&job.demand.gpus));
        }
    }
}
