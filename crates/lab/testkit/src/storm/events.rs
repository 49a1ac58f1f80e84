//! Makes events up.

use crate::pairing::training;
use deepshare_engine::{
    BindFailure, CapacityMode, Degree, Engine, Event, Placement, RetentionTable, Slice,
};
use deepshare_model::{
    AttemptId, Class, Demand, Devices, Epoch, GpuTypeId, JobId, JobSpec, Layout, NodeId, NodeSpec,
    Outcome, PoolId, ProfileClassId, Quota, Resources, Retention, Sharing, SiteId, Span, TenantId,
    TenantSpec, Time, TrustDomainId, UserId,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const TENANTS: u32 = 3;
const NODES: usize = 6;
/// Profile classes of jobs; tables may know fewer.
const CLASSES: u32 = 4;
/// Sites that jobs may require.
const SITES: u32 = 3;
/// Jobs that may wait before only a few more come.
const CROWD: u32 = 40;
/// Past events from which one is told again.
const MEMORY: usize = 24;

/// True for events that issue ids: leaving one out would break those after it.
pub(super) fn is_dense(event: &Event) -> bool {
    matches!(event, Event::Submitted { .. } | Event::NodeAdded { .. } | Event::TenantSet { .. })
}

/// The same events without a job: later jobs move up.
pub(super) fn without_job(events: &[(Time, Event)], gone: JobId) -> Vec<(Time, Event)> {
    let mut kept = events.to_vec();
    kept.retain_mut(|(_, event)| match event {
        Event::Submitted { job, .. }
        | Event::Estimated { job, .. }
        | Event::Cancelled { job }
        | Event::Held { job }
        | Event::Unheld { job }
        | Event::Carried { job, .. }
        | Event::Found { job, .. }
        | Event::Shielded { job, .. } => {
            let stays = *job != gone;
            job.0 -= u32::from(*job > gone);
            stays
        }
        _ => true,
    });
    kept
}

/// Up to a minute, in whole seconds.
fn span(rng: &mut Pcg64Mcg) -> Span {
    Span::from_secs(rng.random_range(0..=60))
}

/// Mostly good enough to share, or anything.
fn retention(rng: &mut Pcg64Mcg, gentle: bool) -> Retention {
    let least = if gentle { 850_000 } else { 1 };
    Retention::from_ppm(rng.random_range(least..=1_100_000))
}

/// Where events come from.
pub(super) struct Source {
    rng: Pcg64Mcg,
    capacity: CapacityMode,
    now: Time,
    tenants: u32,
    memory: Vec<Event>,
}

impl Source {
    pub(super) fn new(seed: u64, capacity: CapacityMode) -> Source {
        let rng = Pcg64Mcg::seed_from_u64(seed);
        Source { rng, capacity, now: Time::ZERO, tenants: 0, memory: Vec::new() }
    }

    /// The next event and its instant.
    pub(super) fn next(&mut self, engine: &Engine) -> (Time, Event) {
        let state = engine.state();
        if self.tenants < TENANTS {
            self.tenants += 1;
            let event = self.tenant(TenantId(self.tenants - 1));
            return (self.now, event);
        }
        if state.nodes().len() < NODES {
            let node = NodeId::from_index(state.nodes().len());
            let spec = self.node();
            return (self.now, Event::NodeAdded { node, spec });
        }
        if state.retentions().rows.is_empty() && self.rng.random_bool(0.2) {
            return (self.now, self.table(1));
        }
        // Stay, and let more happen at this instant; or close it and go on.
        if self.rng.random_bool(0.4) {
            if engine.next_wakeup().is_some_and(|at| at <= self.now) {
                return (self.now, Event::Wake);
            }
            self.now = self.now + self.pass(engine);
        }
        let event = match self.rng.random_range(0..100) {
            0..4 if !self.memory.is_empty() => self.again(),
            _ => self.fresh(engine),
        };
        if self.memory.len() == MEMORY {
            self.memory.remove(0);
        }
        self.memory.push(event.clone());
        (self.now, event)
    }

    /// How long nothing happens: never beyond what the engine waits for.
    fn pass(&mut self, engine: &Engine) -> Span {
        let until = engine.next_wakeup().map(|at| at.saturating_since(self.now));
        // A plan may lie in the far future; the storm does not.
        let until = until.filter(|&until| until < Span::from_secs(10_000));
        let some = Span(self.rng.random_range(1..=5_000_000));
        match until {
            Some(until) if self.rng.random_bool(0.5) || some > until => until,
            _ => some,
        }
    }

    fn again(&mut self) -> Event {
        let at = self.rng.random_range(0..self.memory.len());
        self.memory[at].clone()
    }

    fn fresh(&mut self, engine: &Engine) -> Event {
        let waiting: u32 = engine.state().pools().iter().map(|pool| pool.waiting_jobs()).sum();
        let submit = if waiting < CROWD { 25 } else { 3 };
        match self.rng.random_range(0..100) {
            roll if roll < submit => self.submission(engine),
            roll if roll < 62 => self.about_attempt(engine),
            roll if roll < 72 => self.about_pair(engine),
            roll if roll < 86 => self.about_job(engine),
            roll if roll < 96 => self.about_node(engine),
            96 if self.rng.random_bool(0.3) => self.assurance(),
            96 => self.tenant_again(),
            97 => Event::Leadership { epoch: Epoch(self.rng.random_range(0..5)) },
            98 => {
                let version = engine.state().retentions().version;
                let version = (version + self.rng.random_range(0..3)).saturating_sub(1);
                self.table(version)
            }
            _ => Event::Wake,
        }
    }

    /// What jobs of each class are predicted to keep; rows may be missing or too short.
    fn table(&mut self, version: u64) -> Event {
        let rng = &mut self.rng;
        let gentle = rng.random_bool(0.7);
        let known = if rng.random_bool(0.8) { CLASSES } else { rng.random_range(0..=CLASSES) };
        let rows = (0..known).map(|_| {
            let known = if rng.random_bool(0.9) { CLASSES } else { rng.random_range(0..=CLASSES) };
            (0..known).map(|_| retention(rng, gentle)).collect()
        });
        let rows = rows.collect();
        let scores = (0..known).map(|_| rng.random_range(0..3)).collect();
        Event::Retentions {
            table: RetentionTable { version, rows, scores, errors_ppm: Vec::new() },
        }
    }

    /// A sample of a pair, or of two that are none.
    fn about_pair(&mut self, engine: &Engine) -> Event {
        let state = engine.state();
        let pools = (0..state.pools().len()).map(PoolId::from_index);
        let live: Vec<_> = pools.flat_map(|pool| state.live(pool)).collect();
        let paired: Vec<_> = live.iter().filter(|attempt| !attempt.beside.is_empty()).collect();
        let rng = &mut self.rng;
        let mut attempts = match paired.is_empty() || rng.random_bool(0.1) {
            true => [0, 1]
                .map(|_| AttemptId::from_index(rng.random_range(0..=state.attempts().len() + 1))),
            false => {
                // Mostly of the same pair, so that bad samples come in a row.
                let newest = paired[paired.len() - 1];
                let any = paired[rng.random_range(0..paired.len())];
                let one = if rng.random_bool(0.6) { newest } else { any };
                [one.id, one.beside[0].partner]
            }
        };
        if rng.random_bool(0.5) {
            attempts.reverse();
        }
        let gentle = rng.random_bool(0.3);
        let retentions = [retention(rng, gentle), retention(rng, gentle)];
        let late = if rng.random_bool(0.1) { rng.random_range(0..=10_000_000) } else { 0 };
        let taken = Time(self.now.0.saturating_sub(late));
        Event::PairSampled { attempts, retentions, taken }
    }

    fn tenant(&mut self, tenant: TenantId) -> Event {
        let pool = match self.capacity {
            CapacityMode::Partition => PoolId(tenant.0 as u16),
            _ => PoolId(0),
        };
        let mut quota = Quota::default();
        for gpu_type in 0..2 {
            quota.set(GpuTypeId(gpu_type), self.rng.random_range(0..=16));
        }
        let rng = &mut self.rng;
        let parent = (tenant.0 > 0 && rng.random_bool(0.3)).then_some(TenantId(0));
        let spec = TenantSpec {
            parent,
            best_effort_milli: [0, 500, 1_000, 2_000, 3_000][rng.random_range(0..5)],
            lending_limit: rng.random_bool(0.3).then(|| rng.random_range(0..8)),
            min_run_time: Span::from_secs([0, 0, 0, 1, 20][rng.random_range(0..5)]),
            ..TenantSpec::new(pool, quota)
        };
        Event::TenantSet { tenant, spec }
    }

    /// Q̃ as an earlier engine left it.
    fn assurance(&mut self) -> Event {
        let tenant = TenantId(self.rng.random_range(0..TENANTS));
        let gpu_type = GpuTypeId(self.rng.random_range(0..2));
        let smoothed = Degree::ratio(self.rng.random_range(0..=100), 100);
        Event::AssuranceRestored { tenant, gpu_type, smoothed }
    }

    fn tenant_again(&mut self) -> Event {
        let tenant = TenantId(self.rng.random_range(0..TENANTS));
        self.tenant(tenant)
    }

    fn pool(&mut self) -> PoolId {
        match self.capacity {
            CapacityMode::Partition => PoolId(self.rng.random_range(0..TENANTS as u16)),
            _ => PoolId(0),
        }
    }

    fn node(&mut self) -> NodeSpec {
        let gpus = [1, 2, 4, 8, 8][self.rng.random_range(0..5)];
        let cores = u64::from(gpus) * 4_000;
        let capacity = match self.rng.random_bool(0.5) {
            true => Resources { cpu_milli: cores, ..Resources::UNLIMITED },
            false => Resources::UNLIMITED,
        };
        let gpu_type = GpuTypeId(self.rng.random_range(0..2));
        let gpu_memory_mib = [0, 0, 0, 16_000, 80_000][self.rng.random_range(0..5)];
        NodeSpec { pool: self.pool(), gpu_type, gpus, gpu_memory_mib, capacity }
    }

    fn submission(&mut self, engine: &Engine) -> Event {
        let rng = &mut self.rng;
        let each = rng.random_range(1..=4);
        let (gpus, layout) = match rng.random_range(0..4) {
            0 => (each * rng.random_range(1..=3), Layout::Members(each)),
            _ => ([1, 1, 2, 3, 4, 8, 12][rng.random_range(0..7)], Layout::Consolidated),
        };
        let demand = Demand {
            layout,
            gpu_type: rng.random_bool(0.2).then(|| GpuTypeId(rng.random_range(0..2))),
            gpu_memory_mib: [0, 0, 4_000, 12_000, 40_000][rng.random_range(0..5)],
            per_gpu: match rng.random_bool(0.5) {
                true => Resources { cpu_milli: rng.random_range(0..6_000), memory_mib: 0 },
                false => Resources::default(),
            },
            site: rng.random_bool(0.2).then(|| SiteId(rng.random_range(0..SITES))),
            ..Demand::gpus(gpus)
        };
        let training = training(rng);
        let gpu_memory_mib =
            training.map_or(demand.gpu_memory_mib, |training| training.memory_mib(1));
        let demand = Demand { gpu_memory_mib, ..demand };
        let spec = JobSpec {
            tenant: TenantId(rng.random_range(0..TENANTS)),
            user: UserId(0),
            class: [Class::Guaranteed, Class::BestEffort][rng.random_range(0..2)],
            priority: rng.random_range(0..3),
            submit: self.now,
            demand,
            sharing: Sharing {
                consent: rng.random_bool(0.9),
                trust_domain: TrustDomainId(u32::from(rng.random_bool(0.1))),
                slowdown_limit_milli: [0, 0, 1_050, 1_500][rng.random_range(0..4)],
            },
            profile: rng.random_bool(0.9).then(|| ProfileClassId(rng.random_range(0..CLASSES))),
            training,
            recommended: rng
                .random_bool(0.6)
                .then(|| Resources { cpu_milli: rng.random_range(0..3_000), memory_mib: 0 }),
            requested_time: None,
        };
        let job = JobId::from_index(engine.state().jobs().len());
        Event::Submitted { job, spec }
    }

    fn about_attempt(&mut self, engine: &Engine) -> Event {
        let state = engine.state();
        let live: Vec<AttemptId> = (0..state.pools().len())
            .flat_map(|pool| state.live(PoolId::from_index(pool)))
            .map(|attempt| attempt.id)
            .collect();
        let rng = &mut self.rng;
        let attempt = match live.is_empty() || rng.random_bool(0.1) {
            // Over long ago, or yet to come.
            true => AttemptId::from_index(rng.random_range(0..=state.attempts().len() + 1)),
            false => live[rng.random_range(0..live.len())],
        };
        match rng.random_range(0..32) {
            0..4 => Event::Bound { attempt },
            4..10 => Event::Running { attempt },
            10..13 => {
                let outcome = Outcome::ALL[rng.random_range(0..Outcome::ALL.len())];
                Event::Finished { attempt, outcome }
            }
            13..18 => Event::DevicesReleased { attempt },
            18 => {
                let failures =
                    [BindFailure::Transient, BindFailure::Conflict, BindFailure::Permanent];
                Event::BindFailed { attempt, failure: failures[rng.random_range(0..3)] }
            }
            19 => Event::Rejected { attempt },
            20 => Event::StartOverdue { attempt },
            21 => Event::Terminating { attempt, until: self.now },
            22..24 => Event::EvictionRefused { attempt },
            24..27 => Event::Resized { attempt },
            27 => Event::ResizeRefused { attempt },
            28 => Event::Broken { attempt },
            _ => Event::Checkpoint { attempt, work: span(rng), restart: span(rng) },
        }
    }

    fn about_job(&mut self, engine: &Engine) -> Event {
        let jobs = engine.state().jobs().len();
        if jobs == 0 {
            return Event::Wake;
        }
        let rng = &mut self.rng;
        let recent = jobs.saturating_sub(60);
        let job = JobId::from_index(rng.random_range(recent..jobs));
        match rng.random_range(0..14) {
            10 => Event::Shielded { job, shielded: rng.random_bool(0.6) },
            11 => self.history(job),
            12..14 => self.found(engine, job),
            0..6 => Event::Estimated { job, run_time: span(rng) },
            6 => Event::Cancelled { job },
            7 => Event::Held { job },
            8..10 => Event::Unheld { job },
            _ => match engine.state().job(job).active() {
                Some(attempt) => Event::Checkpoint { attempt, work: span(rng), restart: span(rng) },
                None => Event::Wake,
            },
        }
    }

    /// What happened to a job before.
    fn history(&mut self, job: JobId) -> Event {
        let ago = |rng: &mut Pcg64Mcg| Span::from_secs(rng.random_range(0..7_200));
        let times = self.rng.random_range(0..4);
        let mut preempted_at: Vec<Time> =
            (0..times).map(|_| Time(self.now.0.saturating_sub(ago(&mut self.rng).0))).collect();
        preempted_at.sort_unstable();
        Event::Carried { job, preempted_at, served: ago(&mut self.rng) }
    }

    /// A job on devices that may be anybody's; now and then on fewer than it asks for, or on some that
    /// are not there.
    fn found(&mut self, engine: &Engine, job: JobId) -> Event {
        let state = engine.state();
        let demand = state.job(job).spec.demand;
        let mut left = match self.rng.random_bool(0.9) {
            true => demand.gpus,
            false => self.rng.random_range(1..=demand.gpus),
        };
        let mut placement: Placement = Vec::new();
        for _ in 0..4 {
            let node = NodeId::from_index(self.rng.random_range(0..state.nodes().len()));
            let all = &state.nodes()[node.index()];
            let gpus = all.spec.gpus.min(left);
            let gpu_type = |node: NodeId| state.nodes()[node.index()].spec.gpu_type;
            let apart =
                |slice: &Slice| slice.node == node || gpu_type(slice.node) != gpu_type(node);
            if gpus == 0 || placement.iter().any(apart) {
                continue;
            }
            let devices = match self.rng.random_bool(0.7) && all.open().count() >= gpus {
                true => all.open().lowest(gpus),
                false => Devices::first(gpus),
            };
            placement.push(Slice { node, devices });
            left -= gpus;
        }
        if self.rng.random_bool(0.02) {
            placement.push(Slice { node: NodeId::from_index(NODES), devices: Devices::first(1) });
        }
        let spec = &state.job(job).spec;
        let least = spec.least_per_gpu().filter(|_| self.rng.random_bool(0.5));
        let charged = match self.capacity == CapacityMode::Elastic && self.rng.random_bool(0.2) {
            true => Class::BestEffort,
            false => spec.class,
        };
        let ago = self.rng.random_range(0..=100_000_000);
        let since = Time(self.now.0.saturating_sub(ago));
        Event::Found {
            job,
            charged,
            placement,
            per_gpu: least.unwrap_or(demand.per_gpu),
            running_since: self.rng.random_bool(0.7).then_some(since),
        }
    }

    /// What some nodes admit of a site.
    fn admission(&mut self, nodes: usize) -> Event {
        let site = SiteId(self.rng.random_range(0..SITES));
        let all = (0..nodes).map(NodeId::from_index);
        let nodes = all.filter(|_| self.rng.random_bool(0.6)).collect();
        let members = [0, 1, 1, 2, 5, u32::MAX, u32::MAX][self.rng.random_range(0..7)];
        Event::Admitted { site, nodes, members }
    }

    /// A node with other resources than it had.
    fn change(&mut self, node: NodeId, spec: &NodeSpec) -> Event {
        let rng = &mut self.rng;
        let more = if rng.random_bool(0.2) { rng.random_range(0..=2) } else { 0 };
        let gpus = (spec.gpus + more).min(10);
        let cpu_milli = u64::from(gpus) * rng.random_range(500..6_000);
        let capacity = match rng.random_bool(0.7) {
            true => Resources { cpu_milli, ..Resources::UNLIMITED },
            false => Resources::UNLIMITED,
        };
        Event::NodeChanged { node, gpus, capacity }
    }

    fn about_node(&mut self, engine: &Engine) -> Event {
        let nodes = engine.state().nodes();
        let node = NodeId::from_index(self.rng.random_range(0..nodes.len()));
        match self.rng.random_range(0..18) {
            13..16 => self.admission(nodes.len()),
            16 => self.change(node, &nodes[node.index()].spec),
            0 => Event::NodeLost { node },
            1..5 => Event::NodeRecovered { node },
            5 => Event::NodeCordoned { node, cordoned: true },
            6..8 => Event::NodeCordoned { node, cordoned: false },
            8 => Event::NodeMoved { node, pool: self.pool() },
            _ => {
                let device = self.rng.random_range(0..nodes[node.index()].spec.gpus);
                let healthy = self.rng.random_bool(0.7);
                Event::DeviceHealth { node, device, healthy }
            }
        }
    }
}
