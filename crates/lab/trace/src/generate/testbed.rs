//! Sixteen GPUs and fifty jobs that compete for them: small enough to follow every decision.
//!
//! After the testbed of the DeepShare paper (Fig. 12): 16 GPUs in 2 nodes, jobs of 1, 2 and 4 GPUs.
//! How long its jobs ran and when they came is not published; here they are drawn so that, with
//! hard quotas and first come, first served, they wait and run about as long as published.

use super::stream::{Purpose, Stream};
use super::{finish, partition_free};
use crate::cluster::{Cluster, TenantEntry};
use crate::trace::{Trace, TraceJob};
use deepshare_model::{Class, Quota, Span, TenantId, Time, UserId};

/// Numbers of jobs by GPUs.
const SIZES: [(u32, usize); 3] = [(1, 38), (2, 8), (4, 4)];
/// Best-effort jobs of the fifty.
const BEST_EFFORT: usize = 20;
/// Tenants, their quotas (16 GPUs in all), and the percentage of the work that is theirs: some ask
/// for less than their quota, some for more.
const TENANTS: [(&str, u32, f64); 4] =
    [("vision", 6, 36.0), ("speech", 4, 29.0), ("language", 4, 25.0), ("robots", 2, 10.0)];
const USERS_EACH: u32 = 3;
/// GPU time of all jobs.
const WORK_GPU_S: f64 = 54_000.0;
/// Deviation of the logarithm of a duration.
const SPREAD: f64 = 0.5;
/// From the first submission to the last, in seconds.
const WINDOW_S: f64 = 1_850.0;

/// Fifty jobs of four tenants on two nodes of 8 GPUs: 38 jobs of 1 GPU, 8 of 2 and 4 of 4, of which
/// 20 are best-effort. Classes are stated.
pub fn testbed(seed: u64) -> (Trace, Cluster) {
    let mut cluster = partition_free(&[("a100", 2)], 8);
    let entry = |&(name, gpus, _): &(&str, u32, f64)| {
        TenantEntry::new(name.to_owned(), Quota::uniform(gpus, 1))
    };
    cluster.tenants = TENANTS.iter().map(entry).collect();
    let users = TENANTS
        .iter()
        .flat_map(|(name, _, _)| (1..=USERS_EACH).map(move |number| format!("{name}-{number}")))
        .collect();
    let mut sizes: Vec<u32> =
        SIZES.iter().flat_map(|&(gpus, jobs)| std::iter::repeat_n(gpus, jobs)).collect();
    let mut classes = vec![Class::Guaranteed; sizes.len()];
    classes[..BEST_EFFORT].fill(Class::BestEffort);
    shuffle(&mut sizes, &mut Stream::new(seed, Purpose::Sizes));
    shuffle(&mut classes, &mut Stream::new(seed, Purpose::Terms));
    let durations = durations(&sizes, &mut Stream::new(seed, Purpose::Durations));
    let tenants = tenants(&sizes, &durations);
    let submits = submits(sizes.len(), &mut Stream::new(seed, Purpose::Arrivals));
    let mut people = Stream::new(seed, Purpose::Users);
    let jobs = (0..sizes.len()).map(|at| {
        let tenant = tenants[at];
        let user = tenant as u32 * USERS_EACH + people.below(u64::from(USERS_EACH)) as u32;
        TraceJob {
            tenant: TenantId::from_index(tenant),
            user: UserId(user),
            class: Some(classes[at]),
            ..TraceJob::plain(sizes[at], submits[at], durations[at])
        }
    });
    (finish(jobs.collect(), users, &cluster), cluster)
}

/// The tenant of each job: of those whose quota it fits, the one with the least of its work so far.
fn tenants(sizes: &[u32], durations: &[Span]) -> Vec<usize> {
    let mut given = [0.0; TENANTS.len()];
    let mut deal = |(&gpus, duration): (&u32, &Span)| {
        let fits = (0..TENANTS.len()).filter(|&at| TENANTS[at].1 >= gpus);
        let least = |a: &usize, b: &usize| f64::total_cmp(&given[*a], &given[*b]);
        let tenant = fits.min_by(least).expect("no job is wider than every quota");
        given[tenant] += duration.on(gpus).as_gpu_secs() / TENANTS[tenant].2;
        tenant
    };
    sizes.iter().zip(durations).map(&mut deal).collect()
}

/// Durations in whole seconds that make up the work.
fn durations(sizes: &[u32], stream: &mut Stream) -> Vec<Span> {
    let drawn: Vec<f64> = sizes.iter().map(|_| libm::exp(SPREAD * stream.normal())).collect();
    let work: f64 = sizes.iter().zip(&drawn).map(|(&gpus, long)| f64::from(gpus) * long).sum();
    let seconds = |long: &f64| libm::round(long * WORK_GPU_S / work).max(1.0) as u64;
    drawn.iter().map(|long| Span::from_secs(seconds(long))).collect()
}

/// `n` submissions in whole seconds, ascending: the first at 0, the last at the window's end.
fn submits(n: usize, stream: &mut Stream) -> Vec<Time> {
    let gaps = (1..n).scan(0.0, |sum, _| {
        *sum += stream.exponential(1.0);
        Some(*sum)
    });
    let times: Vec<f64> = std::iter::once(0.0).chain(gaps).collect();
    let all = times.last().copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
    times.iter().map(|time| Time::from_secs((time / all * WINDOW_S) as u64)).collect()
}

/// Puts the values in random order (Fisher and Yates).
fn shuffle<T>(values: &mut [T], stream: &mut Stream) {
    for at in (1..values.len()).rev() {
        values.swap(at, stream.below(at as u64 + 1) as usize);
    }
}
