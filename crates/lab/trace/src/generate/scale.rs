//! Ten thousand GPUs, a hundred tenants and a million jobs: what the scheduler is tuned on.
//!
//! Each tenant works as one of the virtual clusters of the published month: the same sizes of jobs,
//! durations and GPU time by size, cut to what its quota allows. So many jobs go to each that
//! demand keeps to quotas, more or less. Submissions follow the published hours and weekdays, with
//! a rush at first from which a backlog stays ([`RUSH`]).

mod works;

use super::arrivals::{KINDS, SAME_SECOND};
use super::statistics::{FIRST_WEEKDAY, HOURS, WEEKDAY_COUNTS, WEEKDAYS};
use super::stream::{Purpose, Stream, cumulative};
use super::{Person, apportion, finish, partition_free};
use crate::cluster::{Cluster, TenantEntry};
use crate::trace::{Trace, TraceJob};
use deepshare_model::{Class, GpuTypeId, Quota, Span, TenantId, Time, UserId};
use works::Work;

/// Nodes of 8 GPUs by type.
const NODES: [(&str, u32); 2] = [("a100", 750), ("h100", 500)];
const GPUS_PER_NODE: u32 = 8;
const TENANTS: usize = 100;
/// GPU time asked for, as a share of what there is while jobs are submitted.
const LOAD: f64 = 1.05;
/// Thousandths of jobs that are best-effort.
const BEST_EFFORT_MILLI: u64 = 400;
/// Share of jobs that run on one type of GPU only.
const TYPED: f64 = 0.2;
/// Shares of jobs with a priority, and which.
const PRIORITIES: [(f64, i32); 3] = [(0.94, 0), (0.05, 1), (0.01, 10)];
/// Deviation of the logarithm of a tenant's quota of one type from its rank's.
const QUOTA_SPREAD: f64 = 0.3;
/// Deviation of the logarithm of a tenant's demand from its quota.
const DEMAND_SPREAD: f64 = 0.6;
/// Parts of the time in which jobs are submitted, and how many come there relative to the mean.
const RUSH: [(f64, f64); 3] = [(0.1, 4.0), (0.3, 1.0), (0.6, 0.5)];
/// Users of a tenant: so many, and one more for so many GPUs of its quota, up to the last.
const USERS: (u32, u32, u32) = (100, 4, 500);
/// Mean gap between jobs of a batch that do not come in one second.
const GAP_S: f64 = 60.0;

/// Jobs of the usual history.
pub const SCALE_JOBS: u32 = 1_000_000;

/// `jobs` jobs of 100 tenants on 10,000 GPUs of two types, with quotas by type that sum to the
/// cluster. The fewer jobs, the shorter the time in which they are submitted: the load is always
/// 1.05. Classes are stated, two jobs in five are best-effort.
pub fn scale(seed: u64, jobs: u32) -> (Trace, Cluster) {
    let mut draw = Draw::new(seed);
    let cluster = cluster(&mut draw.quotas);
    let works = works::of_tenants(&cluster, &mut draw.durations);
    let share = |(tenant, work): (&TenantEntry, &Work)| {
        let demand = libm::exp(DEMAND_SPREAD * draw.quotas.normal());
        f64::from(tenant.quota.total()) * demand / work.mean_gpu_s()
    };
    let weights: Vec<f64> = cluster.tenants.iter().zip(&works).map(share).collect();
    let counts = apportion(&weights, jobs);
    let mut history = History {
        jobs: Vec::with_capacity(jobs as usize),
        batches: Vec::new(),
        people: Vec::new(),
        users: Vec::new(),
    };
    for (index, work) in works.iter().enumerate() {
        let tenant = TenantId::from_index(index);
        history.fill(tenant, &cluster.tenants[index], work, counts[index], &mut draw);
    }
    history.place();
    (finish(history.jobs, history.users, &cluster), cluster)
}

/// Streams of random numbers.
struct Draw {
    quotas: Stream,
    arrivals: Stream,
    users: Stream,
    sizes: Stream,
    durations: Stream,
    terms: Stream,
}

impl Draw {
    fn new(seed: u64) -> Draw {
        Draw {
            quotas: Stream::new(seed, Purpose::Quotas),
            arrivals: Stream::new(seed, Purpose::Arrivals),
            users: Stream::new(seed, Purpose::Users),
            sizes: Stream::new(seed, Purpose::Sizes),
            durations: Stream::new(seed, Purpose::Durations),
            terms: Stream::new(seed, Purpose::Terms),
        }
    }
}

fn cluster(stream: &mut Stream) -> Cluster {
    let mut cluster = partition_free(&NODES, GPUS_PER_NODE);
    let mut quotas = vec![Quota::default(); TENANTS];
    for (at, (_, nodes)) in NODES.iter().enumerate() {
        let weights: Vec<f64> = (1..=TENANTS)
            .map(|rank| libm::exp(QUOTA_SPREAD * stream.normal()) / rank as f64)
            .collect();
        let parts = apportion(&weights, nodes * GPUS_PER_NODE);
        for (quota, gpus) in quotas.iter_mut().zip(parts) {
            quota.set(GpuTypeId::from_index(at), gpus);
        }
    }
    let named = (1..).zip(quotas);
    cluster.tenants =
        named.map(|(rank, quota)| TenantEntry::new(format!("t{rank:03}"), quota)).collect();
    cluster
}

/// Jobs that one user submits in a row.
struct Batch {
    /// Position among all submissions, from 0 to 1.
    at: f64,
    /// How many jobs.
    jobs: usize,
}

/// What one batch's jobs have in common.
struct Kind {
    user: UserId,
    gpus: u32,
    gpu_type: Option<GpuTypeId>,
    priority: i32,
    /// Inclination to run long, as a deviation from everyone's.
    long: f64,
}

struct History {
    jobs: Vec<TraceJob>,
    batches: Vec<Batch>,
    people: Vec<Person>,
    users: Vec<String>,
}

impl History {
    /// Adds `count` jobs of a tenant, their submissions counted from the start of their batch.
    fn fill(
        &mut self,
        tenant: TenantId,
        terms: &TenantEntry,
        work: &Work,
        count: u32,
        draw: &mut Draw,
    ) {
        let (least, each, most) = USERS;
        let users = (least + terms.quota.total() / each).min(most);
        let first_user = self.people.len();
        for number in 1..=users {
            self.people.push(Person::new(&mut draw.users));
            self.users.push(format!("{}-u{number:03}", terms.name));
        }
        // The five busiest have over a third, as in the published month.
        let skew = cumulative((1..=users).map(|rank| 1.0 / f64::from(rank)));
        let kinds = cumulative(KINDS.iter().map(|kind| kind.0));
        let mut left = count;
        while left > 0 {
            let kind = draw.arrivals.pick(&kinds);
            let size = (1 + draw.arrivals.exponential(KINDS[kind].1) as u32).min(left);
            left -= size;
            let user = UserId::from_index(first_user + draw.users.pick(&skew));
            let kind = self.kind(user, &terms.quota, work, draw);
            self.batches.push(Batch { at: draw.arrivals.unit(), jobs: size as usize });
            let mut time = 0;
            for number in 0..size {
                if number > 0 && draw.arrivals.unit() >= SAME_SECOND {
                    time += 1 + draw.arrivals.exponential(GAP_S) as u64;
                }
                self.jobs.push(job(tenant, &kind, Time::from_secs(time), work, draw));
            }
        }
    }

    fn kind(&self, user: UserId, quota: &Quota, work: &Work, draw: &mut Draw) -> Kind {
        let person = &self.people[user.index()];
        let gpu_type =
            if draw.terms.unit() < TYPED { a_type(quota, &mut draw.terms) } else { None };
        let wanted = work.size(0.6 * person.large + 0.8 * draw.sizes.normal());
        let priorities = cumulative(PRIORITIES.iter().map(|one| one.0));
        Kind {
            user,
            gpus: works::within(wanted, quota, gpu_type),
            gpu_type,
            priority: PRIORITIES[draw.terms.pick(&priorities)].1,
            long: 0.45 * person.long + 0.5 * draw.durations.normal(),
        }
    }

    /// Spreads the batches over the time that makes the load what it should be.
    fn place(&mut self) {
        let work: f64 = self.jobs.iter().map(|job| job.duration.on(job.gpus).as_gpu_secs()).sum();
        let gpus: u32 = NODES.iter().map(|(_, nodes)| nodes * GPUS_PER_NODE).sum();
        let window = (work / (f64::from(gpus) * LOAD)).max(1.0);
        let rhythm = rhythm(window);
        let last = Time::from_secs(window as u64);
        let mut jobs = self.jobs.iter_mut();
        for batch in &self.batches {
            let start = Span::from_secs((when(batch.at, &rhythm) * window) as u64);
            for job in jobs.by_ref().take(batch.jobs) {
                job.submit = (job.submit + start).min(last);
            }
        }
    }
}

fn job(tenant: TenantId, kind: &Kind, submit: Time, work: &Work, draw: &mut Draw) -> TraceJob {
    let seconds = work.seconds(kind.gpus, kind.long + 0.74 * draw.durations.normal());
    let best_effort = draw.terms.below(1_000) < BEST_EFFORT_MILLI;
    TraceJob {
        tenant,
        user: kind.user,
        gpu_type: kind.gpu_type,
        class: Some(if best_effort { Class::BestEffort } else { Class::Guaranteed }),
        priority: kind.priority,
        ..TraceJob::plain(kind.gpus, submit, Span::from_secs(seconds))
    }
}

/// A GPU type, likelier the more of it the tenant has.
fn a_type(quota: &Quota, stream: &mut Stream) -> Option<GpuTypeId> {
    let types = || (0..NODES.len()).map(GpuTypeId::from_index);
    let shares = cumulative(types().map(|gpu_type| f64::from(quota.of(gpu_type))));
    types().nth(stream.pick(&shares)).filter(|&gpu_type| quota.of(gpu_type) > 0)
}

/// Running sums of how many jobs come in each of the equal slots, of an hour about, of `window`
/// seconds.
fn rhythm(window: f64) -> Vec<f64> {
    let slots = libm::round(window / 3_600.0).max(1.0) as usize;
    let weight = |slot: usize| {
        let (weekday, part) = ((FIRST_WEEKDAY + slot / 24) % 7, slot as f64 / slots as f64);
        let by_day = WEEKDAYS[weekday] / WEEKDAY_COUNTS[weekday];
        HOURS[slot % 24] * by_day * rush(part)
    };
    cumulative((0..slots).map(weight))
}

fn rush(part: f64) -> f64 {
    let mut end = 0.0;
    for (length, rate) in RUSH {
        end += length;
        if part < end {
            return rate;
        }
    }
    RUSH[RUSH.len() - 1].1
}

/// The part of the window before which the share `at` of all submissions comes.
fn when(at: f64, rhythm: &[f64]) -> f64 {
    let wanted = at * rhythm.last().copied().unwrap_or(1.0);
    let slot = rhythm.partition_point(|&sum| sum <= wanted).min(rhythm.len() - 1);
    let before = if slot == 0 { 0.0 } else { rhythm[slot - 1] };
    let inside = (wanted - before) / (rhythm[slot] - before);
    (slot as f64 + inside.clamp(0.0, 1.0)) / rhythm.len() as f64
}
