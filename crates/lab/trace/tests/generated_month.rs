//! The generated month against the published statistics of the month it imitates.

use deepshare_trace::generate::{GeneratorOptions, venus_like};
use deepshare_trace::{Cluster, Trace, TraceJob};
use std::sync::LazyLock;

const SEEDS: [u64; 5] = [0, 1, 2, 3, 20_200_901];

/// Seeds and their months, generated once for all tests.
fn months() -> impl Iterator<Item = (u64, &'static Trace, &'static Cluster)> {
    static MONTHS: LazyLock<Vec<(u64, Trace, Cluster)>> = LazyLock::new(|| {
        let month = |seed| {
            let (trace, cluster) = venus_like(seed, &GeneratorOptions::default());
            (seed, trace, cluster)
        };
        SEEDS.into_iter().map(month).collect()
    });
    MONTHS.iter().map(|(seed, trace, cluster)| (*seed, trace, cluster))
}

/// Panics unless `value` is within `tolerance` of `published`.
fn near(what: &str, seed: u64, value: f64, published: f64, tolerance: f64) {
    assert!(
        (value - published).abs() <= tolerance,
        "seed {seed}: {what} is {value}, published {published} ± {tolerance}"
    );
}

fn seconds(job: &TraceJob) -> f64 {
    job.duration.as_secs_f64()
}

fn gpu_hours(jobs: &[&TraceJob]) -> f64 {
    jobs.iter().map(|job| job.duration.on(job.gpus).as_gpu_secs()).sum::<f64>() / 3600.0
}

/// Share of jobs for which `f` holds, in percent.
fn percent(trace: &Trace, f: impl Fn(&TraceJob) -> bool) -> f64 {
    let n = trace.jobs.iter().filter(|job| f(job)).count();
    100.0 * n as f64 / trace.jobs.len() as f64
}

#[test]
fn durations_have_the_published_mean_and_tail() {
    for (seed, trace, _) in months() {
        assert_eq!(trace.jobs.len(), 23_859);
        let mean = trace.jobs.iter().map(seconds).sum::<f64>() / 23_859.0;
        near("mean duration", seed, mean, 11_769.3, 0.02 * 11_769.3);
        near("share under 30 min", seed, percent(trace, |j| seconds(j) < 1800.0), 82.2, 1.0);
        near("share over 4 h", seed, percent(trace, |j| seconds(j) > 14_400.0), 9.1, 1.5);
        near("share over a day", seed, percent(trace, |j| seconds(j) > 86_400.0), 3.7, 1.2);
        let mut sorted: Vec<f64> = trace.jobs.iter().map(seconds).collect();
        sorted.sort_by(f64::total_cmp);
        near("median", seed, sorted[sorted.len() / 2], 193.0, 20.0);
        near("99th percentile", seed, sorted[sorted.len() * 99 / 100], 264_172.0, 30_000.0);
        let short: Vec<_> = trace.jobs.iter().filter(|j| seconds(j) < 1800.0).collect();
        let all: Vec<_> = trace.jobs.iter().collect();
        let part = 100.0 * gpu_hours(&short) / gpu_hours(&all);
        near("GPU-hours under 30 min, percent", seed, part, 1.44, 0.7);
    }
}

#[test]
fn every_tenant_has_the_published_jobs_load_and_largest_job() {
    let published: [(usize, u32, f64, u32); 15] = [
        (7_603, 32, 0.89, 72),
        (2_826, 16, 0.90, 40),
        (2_654, 32, 0.77, 64),
        (1_452, 144, 1.09, 160),
        (710, 24, 0.79, 48),
        (2_301, 40, 0.80, 96),
        (426, 4, 0.84, 32),
        (1_525, 40, 0.84, 88),
        (196, 32, 0.77, 32),
        (518, 16, 0.85, 64),
        (651, 8, 0.62, 24),
        (1_854, 160, 0.91, 256),
        (679, 8, 0.92, 80),
        (415, 16, 0.91, 16),
        (49, 8, 1.30, 8),
    ];
    for (seed, trace, cluster) in months() {
        assert_eq!((cluster.gpus(), cluster.nodes.len()), (1_080, 135));
        assert_eq!(trace.tenants, cluster.tenant_names());
        for (index, (jobs, largest, load, gpus)) in published.into_iter().enumerate() {
            let of_tenant: Vec<_> =
                trace.jobs.iter().filter(|j| j.tenant.index() == index).collect();
            assert_eq!(of_tenant.len(), jobs);
            assert_eq!(of_tenant.iter().map(|j| j.gpus).max(), Some(largest));
            assert_eq!(cluster.tenants[index].quota.total(), gpus);
            let offered = gpu_hours(&of_tenant) / (26.0 * 24.0 * f64::from(gpus));
            // In the smallest one, a single job is a sixth of the load.
            near(&trace.tenants[index], seed, offered, load, if jobs < 100 { 0.2 } else { 0.02 });
        }
        let all: Vec<_> = trace.jobs.iter().collect();
        near("GPU-hours", seed, gpu_hours(&all), 601_983.0, 0.01 * 601_983.0);
    }
}

#[test]
fn sizes_have_the_published_shares_of_jobs_and_of_gpu_time() {
    let published = [
        (1, 1, 56.53, 4.05, 1.5),
        (2, 2, 6.25, 3.55, 2.0),
        (4, 4, 6.89, 4.44, 2.0),
        (8, 8, 19.41, 35.47, 7.0),
        (14, 24, 3.10, 10.94, 5.0),
        (32, 32, 4.04, 20.90, 11.0),
        (128, 160, 2.01, 16.90, 11.0),
    ];
    for (seed, trace, _) in months() {
        let all: Vec<_> = trace.jobs.iter().collect();
        for (low, high, jobs, time, tolerance) in published {
            let of_size: Vec<_> =
                trace.jobs.iter().filter(|j| (low..=high).contains(&j.gpus)).collect();
            let what = format!("{low}-{high} GPUs");
            near(&what, seed, percent(trace, |j| (low..=high).contains(&j.gpus)), jobs, 0.1);
            near(&what, seed, 100.0 * gpu_hours(&of_size) / gpu_hours(&all), time, tolerance);
        }
    }
}

#[test]
fn arrivals_are_bursty_and_follow_day_and_week() {
    for (seed, trace, _) in months() {
        let hour = |job: &TraceJob| (job.submit.0 / 3_600_000_000) as usize;
        let mut hours = vec![0_u32; 26 * 24];
        trace.jobs.iter().for_each(|job| hours[hour(job)] += 1);
        let mean = trace.jobs.len() as f64 / hours.len() as f64;
        let square = |&n: &u32| (f64::from(n) - mean).powi(2);
        let variance = hours.iter().map(square).sum::<f64>() / hours.len() as f64;
        near("variance over mean of hourly arrivals", seed, variance / mean, 42.2, 13.0);
        let zero = trace.jobs.windows(2).filter(|w| w[0].submit == w[1].submit).count();
        near("simultaneous, percent", seed, 100.0 * zero as f64 / 23_859.0, 13.2, 2.0);
        let night = percent(trace, |j| (4..8).contains(&(hour(j) % 24))) / 4.0;
        let peak = percent(trace, |j| (14..17).contains(&(hour(j) % 24))) / 3.0;
        near("percent an hour by night", seed, night, 1.1, 0.4);
        near("percent an hour in the afternoon", seed, peak, 7.0, 1.0);
        // The first day is a Tuesday.
        let wednesday = percent(trace, |j| (hour(j) / 24) % 7 == 1);
        let saturday = percent(trace, |j| (hour(j) / 24) % 7 == 4);
        near("Wednesdays, percent", seed, wednesday, 25.2, 7.0);
        near("Saturdays, percent", seed, saturday, 6.7, 3.0);
    }
}

/// GPUs asked for over the period if nothing queues: their mean, the most, and the share of the
/// time, in percent, in which they are more than `gpus`.
fn demand<'a>(jobs: impl Iterator<Item = &'a TraceJob>, gpus: u32) -> (f64, i64, f64) {
    let end = 26 * 86_400_000_000_u64;
    let mut changes = Vec::new();
    for job in jobs {
        changes.push((job.submit.0, i64::from(job.gpus)));
        changes.push((job.submit.0 + job.duration.0, -i64::from(job.gpus)));
    }
    changes.sort_unstable();
    changes.retain(|&(time, _)| time < end);
    changes.push((end, 0));
    let (mut now, mut asked, mut most, mut area, mut beyond) = (0, 0, 0, 0.0, 0);
    for (time, change) in changes {
        area += asked as f64 * (time - now) as f64;
        beyond += if asked > i64::from(gpus) { time - now } else { 0 };
        (now, asked) = (time, asked + change);
        most = most.max(asked);
    }
    (area / end as f64, most, 100.0 * beyond as f64 / end as f64)
}

#[test]
fn demand_is_the_published_one_over_time() {
    for (seed, trace, _) in months() {
        let (mean, most, beyond) = demand(trace.jobs.iter(), 1_080);
        near("mean demand, GPUs", seed, mean, 900.0, 0.03 * 900.0);
        near("largest demand, GPUs", seed, most as f64, 1_381.0, 250.0);
        // Published: 3.6 %.
        assert!(
            (1.0..8.0).contains(&beyond),
            "seed {seed}: above 1,080 GPUs {beyond} % of the time"
        );
    }
}

#[test]
fn tenants_seldom_ask_for_more_than_they_have() {
    for (seed, trace, cluster) in months() {
        for (index, tenant) in cluster.tenants.iter().enumerate() {
            let jobs = trace.jobs.iter().filter(|job| job.tenant.index() == index);
            // In the published month up to 26.1 % of the time.
            let (_, _, beyond) = demand(jobs.clone(), tenant.quota.total());
            assert!(beyond < 32.0, "seed {seed}: {} {beyond} %", tenant.name);
            let (_, _, double) = demand(jobs, 2 * tenant.quota.total());
            assert!(double < 10.0, "seed {seed}: {} {double} % above twice", tenant.name);
        }
    }
}

#[test]
fn a_few_users_have_most_of_the_jobs_and_nobody_has_none() {
    for (seed, trace, _) in months() {
        let mut jobs = vec![0_u32; trace.users.len()];
        trace.jobs.iter().for_each(|job| jobs[job.user.index()] += 1);
        assert_eq!(jobs.len(), 118);
        assert!(jobs.iter().all(|&n| n > 0));
        jobs.sort_unstable();
        let busiest: u32 = jobs[113..].iter().sum();
        near("the five busiest, percent", seed, f64::from(busiest) / 238.59, 37.3, 5.0);
        let busy = jobs.iter().filter(|&&n| n >= 50).count();
        near("users with 50 jobs", seed, busy as f64, 60.0, 12.0);
        let mut places: Vec<_> = trace.jobs.iter().map(|j| (j.user, j.tenant)).collect();
        places.sort_unstable();
        places.dedup();
        let shared = places.chunk_by(|a, b| a.0 == b.0).filter(|c| c.len() > 1).count();
        assert_eq!(shared, 34);
    }
}

#[test]
fn outcomes_have_the_published_mix() {
    use deepshare_model::Outcome;
    for (seed, trace, _) in months() {
        let share = |outcome| percent(trace, move |j| j.outcome == outcome);
        near("succeeded", seed, share(Outcome::Succeeded), 55.66, 1.5);
        near("cancelled", seed, share(Outcome::Cancelled), 25.30, 1.5);
        near("failed", seed, share(Outcome::Failed), 18.99, 1.5);
    }
}

#[test]
fn a_seed_names_one_history_and_another_seed_another() {
    let options = GeneratorOptions::days(2);
    let (first, _) = venus_like(7, &options);
    assert_eq!(first, venus_like(7, &options).0);
    assert_ne!(first.jobs, venus_like(8, &options).0.jobs);
}

/// Guards results against a change of the generator that nobody meant, on any platform.
#[test]
fn the_history_of_seed_one_is_the_one_it_has_always_been() {
    let (trace, _) = venus_like(1, &GeneratorOptions::default());
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for job in &trace.jobs {
        for value in [job.submit.0, job.duration.0, u64::from(job.gpus), u64::from(job.user.0)] {
            hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
    }
    assert_eq!(format!("{hash:016x}"), "31288d49b245ca55");
}

#[test]
fn histories_of_any_size_keep_to_their_cluster() {
    for (jobs, days) in [(0, 1), (1, 1), (15, 1), (500, 3), (50_000, 54)] {
        let (trace, cluster) = venus_like(3, &GeneratorOptions { jobs, days });
        assert_eq!(trace.jobs.len(), jobs as usize);
        for job in &trace.jobs {
            assert!(job.gpus <= cluster.tenants[job.tenant.index()].quota.total());
            assert!(job.submit.0 < u64::from(days) * 86_400_000_000);
            assert!(job.duration.0 >= 1_000_000);
        }
        assert!(trace.jobs.is_sorted_by_key(|job| job.submit));
    }
}
