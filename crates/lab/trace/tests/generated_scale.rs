//! The generated history of ten thousand GPUs is what it says, at any number of jobs.

use deepshare_model::{Class, GpuTypeId};
use deepshare_trace::generate::scale;
use deepshare_trace::{ReadOptions, Trace, read_trace_from, write_trace};

const JOBS: u32 = 30_000;

fn share(trace: &Trace, of: impl Fn(usize) -> bool) -> f64 {
    (0..trace.jobs.len()).filter(|&at| of(at)).count() as f64 / trace.jobs.len() as f64
}

#[test]
fn quotas_of_a_hundred_tenants_sum_to_ten_thousand_gpus_of_two_types() {
    let (trace, cluster) = scale(1, JOBS);
    assert_eq!((cluster.gpus(), cluster.tenants.len(), cluster.gpu_types.len()), (10_000, 100, 2));
    for (at, gpus) in [(0, 6_000), (1, 4_000)] {
        let gpu_type = GpuTypeId(at);
        let nodes = cluster.nodes.iter().filter(|node| node.gpu_type == gpu_type);
        assert_eq!(nodes.map(|node| node.gpus).sum::<u32>(), gpus);
        let quotas = cluster.tenants.iter().map(|tenant| tenant.quota.of(gpu_type));
        assert_eq!(quotas.sum::<u32>(), gpus);
    }
    let quota = |rank: usize| cluster.tenants[rank - 1].quota.total();
    assert!(quota(1) > 1_000 && quota(100) < 50, "{} and {}", quota(1), quota(100));
    assert!(trace.users.len() > 10_000, "{} users", trace.users.len());
}

#[test]
fn every_job_is_within_what_its_tenant_may_use_of_one_type() {
    let (trace, cluster) = scale(2, JOBS);
    for job in &trace.jobs {
        let quota = &cluster.tenants[job.tenant.index()].quota;
        let most = match job.gpu_type {
            Some(gpu_type) => quota.of(gpu_type),
            None => quota.of(GpuTypeId(0)).max(quota.of(GpuTypeId(1))),
        };
        assert!((1..=most).contains(&job.gpus), "job {} asks for {} of {most}", job.id, job.gpus);
    }
}

#[test]
fn classes_types_priorities_and_load_are_as_documented() {
    for (seed, jobs) in [(1, JOBS), (2, JOBS), (3, 3_000)] {
        let (trace, cluster) = scale(seed, jobs);
        assert_eq!(trace.jobs.len(), jobs as usize);
        assert!(trace.jobs.is_sorted_by_key(|job| (job.submit, job.row)));
        let near = |what: &str, value: f64, expected: f64, within: f64| {
            assert!((value - expected).abs() < within, "seed {seed}: {what} {value}");
        };
        let job = |at: usize| &trace.jobs[at];
        near("best-effort", share(&trace, |i| job(i).class == Some(Class::BestEffort)), 0.4, 0.03);
        near("of one type", share(&trace, |i| job(i).gpu_type.is_some()), 0.2, 0.05);
        near("without priority", share(&trace, |i| job(i).priority == 0), 0.94, 0.05);
        near("single GPUs", share(&trace, |i| job(i).gpus == 1), 0.56, 0.12);
        let window = trace.jobs[trace.jobs.len() - 1].submit.as_secs_f64();
        let load = trace.gpu_time().as_gpu_secs() / (cluster.gpus() as f64 * window);
        near("load", load, 1.05, 0.02);
    }
}

#[test]
fn the_same_seed_is_the_same_history_and_another_one_is_not() {
    let (first, cluster) = scale(7, 2_000);
    assert_eq!(scale(7, 2_000), (first.clone(), cluster.clone()));
    assert_ne!(scale(8, 2_000).0.jobs, first.jobs);
    let mut text = Vec::new();
    write_trace(&first, &mut text).unwrap();
    let options = ReadOptions {
        known_tenants: Some(cluster.tenant_names()),
        known_gpu_types: cluster.gpu_types.clone(),
        ..ReadOptions::default()
    };
    let read = read_trace_from("t.csv", std::io::Cursor::new(text), &options).unwrap();
    let told = |trace: &Trace| -> Vec<_> {
        let jobs = trace.jobs.iter();
        jobs.map(|j| (j.id.clone(), j.submit, j.duration, j.gpus, j.gpu_type, j.class)).collect()
    };
    assert_eq!(told(&read), told(&first));
}
