//! Histories that need no file. [`venus_like`]: a month with the statistics of the published Venus
//! month, but other jobs. [`scale`]: a million jobs on ten thousand GPUs. [`testbed`]: fifty on
//! sixteen.
//!
//! The month: virtual clusters (named `vc01` and on) differ as the published ones do in size, users, job
//! sizes, durations and load. Users submit in batches, some of them in several virtual clusters,
//! and wait with heavy jobs until there is room.
//! The same seed gives the same history on every platform.

mod arrivals;
mod durations;
mod placement;
mod scale;
mod sizes;
mod statistics;
mod stream;
mod testbed;

use crate::cluster::{Cluster, NodeEntry};
use crate::report::ImportReport;
use crate::trace::{Trace, TraceJob};
use deepshare_model::{GpuTypeId, Outcome, Span, TenantId, Time, UserId};
pub use scale::{SCALE_JOBS, scale};
use statistics::{CLUSTERS, DAYS, JOBS, OUTCOMES, SHARED_USERS, USERS};
use stream::{Purpose, Stream, cumulative};
pub use testbed::testbed;

/// Size of a generated history. The cluster stays 135 nodes of 8 GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorOptions {
    /// Number of jobs; 23,859 by default.
    pub jobs: u32,
    /// Days over which they are submitted, from midnight on a Tuesday; 26 by default. At least 1.
    pub days: u32,
}

impl Default for GeneratorOptions {
    fn default() -> GeneratorOptions {
        GeneratorOptions { jobs: JOBS, days: DAYS }
    }
}

impl GeneratorOptions {
    /// As many days of the same load: 917.65 jobs a day.
    pub fn days(days: u32) -> GeneratorOptions {
        let jobs = (u64::from(JOBS) * u64::from(days)).div_ceil(u64::from(DAYS));
        GeneratorOptions { jobs: u32::try_from(jobs).unwrap_or(u32::MAX), days }
    }
}

/// A history with the statistics of Venus, and the cluster it ran on: 15 tenants with partitions of
/// 8-GPU nodes, 1,080 GPUs in all. Submissions and durations are whole seconds, no job is larger
/// than its tenant's partition, and tenants have the same ids in both.
pub fn venus_like(seed: u64, options: &GeneratorOptions) -> (Trace, Cluster) {
    let vc_jobs = apportion(&CLUSTERS.map(|vc| f64::from(vc.jobs())), options.jobs);
    let vc_sizes = sizes::by_cluster(&vc_jobs);
    let members = members();
    let mut streams = Streams::new(seed);
    let hours = arrivals::rhythm(options.days.max(1), &mut streams.arrivals);
    let end = Time::from_secs(u64::from(options.days.max(1)) * 86_400);
    let mut people: Vec<Person> = Vec::new();
    people.resize_with(USERS as usize, || Person::new(&mut streams.users));
    let mut jobs = Vec::new();
    for (index, vc) in CLUSTERS.iter().enumerate() {
        let tenant = TenantId::from_index(index);
        let batches = arrivals::batches(vc_jobs[index], vc.users, &hours, &mut streams.arrivals);
        let mut of_vc =
            fill(tenant, &batches, &vc_sizes[index], &members[index], &people, &mut streams);
        placement::place(&mut of_vc, vc.nodes as usize, end, &mut streams.placement);
        jobs.extend(of_vc);
    }
    let partitions: Vec<(String, u32)> =
        (1..).zip(&CLUSTERS).map(|(number, vc)| (format!("vc{number:02}"), vc.nodes)).collect();
    let cluster = Cluster::partitions(&partitions, 8);
    let users = (1..=USERS).map(|number| format!("user{number:03}")).collect();
    let mut trace = finish(jobs, users, &cluster);
    for job in &mut trace.jobs {
        job.outcome = outcome(&mut streams.outcomes);
    }
    (trace, cluster)
}

/// Jobs as a trace: in order of submission, simultaneous ones as they are, and numbered.
fn finish(mut jobs: Vec<TraceJob>, users: Vec<String>, cluster: &Cluster) -> Trace {
    (1..).zip(&mut jobs).for_each(|(row, job)| job.row = row);
    jobs.sort_unstable_by_key(|job| (job.submit, job.row));
    for (row, job) in (1..).zip(&mut jobs) {
        job.row = row;
        job.id = row.to_string();
    }
    let mut report = ImportReport::of("", None);
    report.rows = jobs.len() as u64;
    report.kept = report.rows;
    let (tenants, gpu_types) = (cluster.tenant_names(), cluster.gpu_types.clone());
    Trace { jobs, tenants, users, gpu_types, report }
}

/// Nodes of several GPU types, given by name and number of nodes, that are reserved for nobody.
fn partition_free(types: &[(&str, u32)], gpus_per_node: u32) -> Cluster {
    let mut nodes = Vec::new();
    for (at, &(name, count)) in types.iter().enumerate() {
        nodes.extend((0..count).map(|number| NodeEntry {
            name: format!("{name}-{number}"),
            tenant: None,
            gpu_type: GpuTypeId::from_index(at),
            gpus: gpus_per_node,
            gpu_memory_mib: 0,
            cpu_milli: None,
            memory_mib: None,
        }));
    }
    let gpu_types = types.iter().map(|&(name, _)| name.to_owned()).collect();
    Cluster { tenants: Vec::new(), nodes, gpu_types }
}

/// The streams of one history.
struct Streams {
    arrivals: Stream,
    users: Stream,
    sizes: Stream,
    durations: Stream,
    outcomes: Stream,
    placement: Stream,
}

impl Streams {
    fn new(seed: u64) -> Streams {
        Streams {
            arrivals: Stream::new(seed, Purpose::Arrivals),
            users: Stream::new(seed, Purpose::Users),
            sizes: Stream::new(seed, Purpose::Sizes),
            durations: Stream::new(seed, Purpose::Durations),
            outcomes: Stream::new(seed, Purpose::Outcomes),
            placement: Stream::new(seed, Purpose::Placement),
        }
    }
}

/// A user's habits, as deviations from everyone's.
struct Person {
    /// Runs long jobs.
    long: f64,
    /// Runs large jobs.
    large: f64,
}

impl Person {
    fn new(stream: &mut Stream) -> Person {
        Person { long: stream.normal(), large: stream.normal() }
    }
}

/// The jobs of one virtual cluster, without id, row and outcome.
fn fill(
    tenant: TenantId,
    batches: &[arrivals::Batch],
    sizes: &[u32],
    members: &[UserId],
    people: &[Person],
    streams: &mut Streams,
) -> Vec<TraceJob> {
    // Sizes go out in ascending order to batches ordered by taste, so that a batch is mostly of one
    // size, a user keeps to similar ones, and their counts are exactly those wanted.
    let habit = |batch: &arrivals::Batch| &people[members[batch.user].index()];
    let mut by_taste: Vec<(f64, usize)> = (batches.iter().enumerate())
        .map(|(at, batch)| (habit(batch).large + 0.8 * streams.sizes.normal(), at))
        .collect();
    by_taste.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut jobs = Vec::with_capacity(sizes.len());
    let mut inclination = Vec::with_capacity(sizes.len());
    for (_, at) in by_taste {
        let batch = &batches[at];
        // Shares of the variance of the logarithm: a fifth between users, the published figure;
        // the batch's part is assumed.
        let shared = 0.45 * habit(batch).long + 0.5 * streams.durations.normal();
        for &time in &batch.times {
            inclination.push(shared + 0.74 * streams.durations.normal());
            jobs.push(TraceJob {
                tenant,
                user: members[batch.user],
                ..TraceJob::plain(sizes[jobs.len()], Time::from_secs(time), Span::ZERO)
            });
        }
    }
    let durations = durations::hand_out(&CLUSTERS[tenant.index()], sizes, &inclination);
    for (job, seconds) in jobs.iter_mut().zip(durations) {
        job.duration = Span::from_secs(seconds);
    }
    jobs
}

/// The users of each virtual cluster: some are in several, taken in turn, the rest in one.
fn members() -> Vec<Vec<UserId>> {
    let places: u32 = CLUSTERS.iter().map(|vc| vc.users).sum();
    let shared =
        apportion(&CLUSTERS.map(|vc| f64::from(vc.users)), places - (USERS - SHARED_USERS));
    let (mut next_shared, mut next_own) = (0, SHARED_USERS);
    let mut all = Vec::new();
    for (vc, &of_shared) in CLUSTERS.iter().zip(&shared) {
        let mut members = Vec::new();
        for place in 0..vc.users {
            // Both kinds in turn, so that neither has all the busy ranks.
            if (place * of_shared) % vc.users + of_shared >= vc.users {
                members.push(UserId(next_shared % SHARED_USERS));
                next_shared += 1;
            } else {
                members.push(UserId(next_own));
                next_own += 1;
            }
        }
        all.push(members);
    }
    all
}

fn outcome(stream: &mut Stream) -> Outcome {
    let of = [
        Outcome::Succeeded,
        Outcome::Cancelled,
        Outcome::Failed,
        Outcome::NodeFail,
        Outcome::Timeout,
    ];
    of[stream.pick(&cumulative(OUTCOMES))]
}

/// `total` split in proportion to `weights`, by largest remainder.
fn apportion(weights: &[f64], total: u32) -> Vec<u32> {
    let sum: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|w| w / sum * f64::from(total)).collect();
    let mut parts: Vec<u32> = exact.iter().map(|e| libm::floor(*e) as u32).collect();
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    let remainder = |i: usize| exact[i] - libm::floor(exact[i]);
    by_remainder.sort_by(|&a, &b| remainder(b).total_cmp(&remainder(a)).then(a.cmp(&b)));
    let missing = total.saturating_sub(parts.iter().sum());
    for &i in by_remainder.iter().cycle().take(missing as usize) {
        parts[i] += 1;
    }
    parts
}
