//! What one run of a scheduler knew, followed step by step.

use crate::record::Named;
use deepshare_engine::{
    CapacityMode, Command, Event, EvictReason, JobState, NodeCondition, Placement, State,
};
use deepshare_model::{
    AttemptId, Devices, JobId, JobSpec, NodeSpec, Outcome, Retention, Span, TenantSpec, Time,
};
use std::collections::BTreeMap;

/// The books of one run.
#[derive(Default)]
pub(super) struct Books {
    /// Wall-clock time of this run's zero.
    pub(super) zero_us: i64,
    pub(super) names: BTreeMap<Named, String>,
    pub(super) tenants: Vec<TenantSpec>,
    pub(super) nodes: Vec<NodeBook>,
    pub(super) capacity: CapacityMode,
    /// By id; `None`: it had ended before the log begins.
    jobs: Vec<Option<JobBook>>,
    /// Attempts that hold devices.
    attempts: BTreeMap<AttemptId, AttemptBook>,
    /// The id of the next attempt: ids are dense, in the order in which attempts begin.
    next_attempt: u32,
    now: Time,
}

/// A node.
pub(super) struct NodeBook {
    pub(super) spec: NodeSpec,
    pub(super) lost: bool,
}

/// A job.
pub(super) struct JobBook {
    pub(super) spec: JobSpec,
    pub(super) outcome: Option<Outcome>,
    /// Whether it has made progress at all.
    ran: bool,
    withdrawn: bool,
    /// Solo work of past attempts, and the restart that the next one pays first.
    work: Span,
    restart: Span,
    /// What would survive a stop: work and restart.
    saved: Option<(Span, Span)>,
}

/// An attempt that holds devices.
struct AttemptBook {
    job: JobId,
    /// Since when it runs at this rate.
    since: Option<Time>,
    rate: Retention,
    worked: Span,
    partner: Option<AttemptId>,
}

impl AttemptBook {
    fn new(job: JobId, since: Option<Time>) -> AttemptBook {
        AttemptBook { job, since, rate: Retention::WHOLE, worked: Span::ZERO, partner: None }
    }

    /// Solo work done by `now`.
    fn worked_by(&self, now: Time) -> Span {
        let at_rate = self.since.map_or(Span::ZERO, |since| now.saturating_since(since));
        self.worked.saturating_add(self.rate.work_in(at_rate))
    }

    /// Runs at another rate from `now` on.
    fn change_rate(&mut self, now: Time, rate: Retention) {
        self.worked = self.worked_by(now);
        self.since = self.since.map(|since| since.max(now));
        self.rate = rate;
    }
}

impl JobBook {
    fn new(spec: JobSpec) -> JobBook {
        JobBook {
            spec,
            outcome: None,
            ran: false,
            withdrawn: false,
            work: Span::ZERO,
            restart: Span::ZERO,
            saved: None,
        }
    }

    /// Adds the work of an attempt that stopped.
    fn add(&mut self, worked: Span) {
        let paid = worked.min(self.restart);
        self.work = self.work.saturating_add(worked - paid);
        self.restart -= paid;
    }
}

impl Books {
    /// The books of a run that begins with an empty engine.
    pub(super) fn starting(zero_us: i64) -> Books {
        Books { zero_us, ..Books::default() }
    }

    /// True before anything is known.
    pub(super) fn is_empty(&self) -> bool {
        self.tenants.is_empty() && self.nodes.is_empty() && self.jobs.is_empty()
    }

    /// Number of GPU types that nodes, quotas or jobs name.
    pub(super) fn gpu_types(&self) -> usize {
        let nodes = self.nodes.iter().map(|node| node.spec.gpu_type.index());
        let jobs = self.jobs.iter().flatten().filter_map(|job| job.spec.demand.gpu_type);
        let named = self.names.keys().filter_map(|name| match name {
            Named::GpuType(id) => Some(id.index()),
            _ => None,
        });
        let most = nodes.chain(jobs.map(|id| id.index())).chain(named).max();
        most.map_or(1, |most| most + 1)
    }

    /// Takes everything from an engine, beside the jobs that had ended before they were seen.
    pub(super) fn restore(&mut self, state: &State) {
        self.now = state.now();
        let tenants = (0..state.tenant_count()).map(deepshare_model::TenantId::from_index);
        self.tenants = tenants.map(|id| state.tenant(id).clone()).collect();
        let nodes = state.nodes().iter();
        self.nodes = nodes
            .map(|node| NodeBook {
                spec: node.spec.clone(),
                lost: node.condition == NodeCondition::Lost,
            })
            .collect();
        self.attempts.clear();
        self.next_attempt = state.attempts().len() as u32;
        for (index, job) in state.jobs().iter().enumerate() {
            let ended = match job.state {
                JobState::Ended(outcome) => Some(outcome),
                _ => None,
            };
            if index >= self.jobs.len() {
                self.jobs.push(ended.is_none().then(|| JobBook::new(job.spec.clone())));
            }
            let Some(book) = &mut self.jobs[index] else { continue };
            if book.outcome.is_some() {
                continue;
            }
            book.ran |= !job.work.is_zero() || !job.served.is_zero();
            (book.outcome, book.work, book.restart) = (ended, job.work, job.restart);
            let Some(id) = job.active() else { continue };
            let attempt = state.attempt(id);
            let mut holding = AttemptBook::new(attempt.job, attempt.running_since);
            holding.partner = attempt.beside.first().map(|beside| beside.partner);
            if attempt.running_since.is_some() {
                book.ran = true;
                holding.change_rate(self.now, attempt.rate());
                holding.worked = state.progress(attempt.job).saturating_sub(book.work);
                // Progress is counted without it.
                book.restart = Span::ZERO;
            }
            self.attempts.insert(id, holding);
        }
    }

    /// Follows a step.
    pub(super) fn step(&mut self, now: Time, event: &Event, commands: &[Command]) {
        self.now = now;
        self.hear(event);
        for command in commands {
            match command {
                Command::Reserve { attempt, job, .. } | Command::Start { attempt, job, .. } => {
                    self.begin(*attempt, *job);
                }
                Command::ReleaseReservation { attempt }
                | Command::Evict { attempt, reason: EvictReason::NodeLost, .. } => {
                    self.stop(*attempt);
                }
                _ => {}
            }
        }
    }

    /// An attempt was decided, now or when it was reserved.
    fn begin(&mut self, id: AttemptId, job: JobId) {
        if self.attempts.get(&id).is_some_and(|holding| holding.job == job) {
            return;
        }
        // Its id was taken to be that of a job that was found, which the engine of another release
        // did not take up.
        let mistaken = self.attempts.insert(id, AttemptBook::new(job, None));
        self.next_attempt = match mistaken {
            Some(_) => id.0 + 1,
            None => self.next_attempt.max(id.0 + 1),
        };
    }

    /// True if the engine takes up a job that was found there.
    fn takes_up(&self, job: JobId, placement: &Placement) -> bool {
        let open = self.jobs.get(job.index()).and_then(Option::as_ref);
        let open = open.is_some_and(|job| job.outcome.is_none());
        let there = placement.iter().all(|slice| {
            let node = self.nodes.get(slice.node.index());
            let gpus = node.map_or(0, |node| node.spec.gpus.min(Devices::MAX_PER_NODE));
            let devices = Devices::first(gpus);
            !slice.devices.is_empty() && slice.devices.minus(devices).is_empty()
        });
        open && there && !placement.is_empty() && !self.holds(job)
    }

    fn hear(&mut self, event: &Event) {
        let now = self.now;
        match event {
            Event::Submitted { job, spec } if job.index() == self.jobs.len() => {
                self.jobs.push(Some(JobBook::new(spec.clone())));
            }
            Event::Carried { job, served, .. } => {
                if let Some(job) = self.job(*job) {
                    job.ran |= !served.is_zero();
                    job.work = job.work.max(*served);
                }
            }
            Event::Found { job, placement, running_since, .. }
                if self.takes_up(*job, placement) =>
            {
                let id = AttemptId(self.next_attempt);
                self.next_attempt += 1;
                self.attempts.insert(id, AttemptBook::new(*job, *running_since));
                if let Some(job) = self.job(*job) {
                    job.ran |= running_since.is_some();
                }
            }
            Event::Running { attempt } => {
                let Some(holding) = self.attempts.get_mut(attempt) else { return };
                holding.since.get_or_insert(now);
                let job = holding.job;
                if let Some(job) = self.job(job) {
                    job.ran = true;
                }
            }
            Event::Checkpoint { attempt, work, restart } => {
                let job = self.attempts.get(attempt).map(|holding| holding.job);
                if let Some(job) = job.and_then(|job| self.job(job)) {
                    job.saved = Some((*work, *restart));
                }
            }
            Event::PairSampled { attempts: [a, b], retentions, .. }
                if [a, b].iter().all(|id| self.attempts.contains_key(id)) =>
            {
                for (one, other, kept) in [(a, b, retentions[0]), (b, a, retentions[1])] {
                    if let Some(holding) = self.attempts.get_mut(one) {
                        holding.change_rate(now, kept);
                        holding.partner = Some(*other);
                    }
                }
            }
            Event::Finished { attempt, outcome } => {
                let Some(holding) = self.attempts.get(attempt) else { return };
                let (job, worked) = (holding.job, holding.worked_by(now));
                let Some(book) = self.job(job).filter(|job| job.outcome.is_none()) else { return };
                // It did its work: nothing of this attempt is lost.
                book.saved = None;
                book.add(worked);
                book.outcome = Some(*outcome);
                self.part(*attempt);
            }
            Event::Cancelled { job } => {
                let running = self.holds(*job);
                if let Some(job) = self.job(*job).filter(|job| job.outcome.is_none()) {
                    job.withdrawn = true;
                    job.outcome = (!running).then_some(Outcome::Cancelled);
                }
            }
            Event::BindFailed { attempt, .. }
            | Event::Rejected { attempt }
            | Event::StartOverdue { attempt }
            | Event::DevicesReleased { attempt } => self.stop(*attempt),
            Event::NodeAdded { node, spec } if node.index() == self.nodes.len() => {
                self.nodes.push(NodeBook { spec: spec.clone(), lost: false });
            }
            Event::NodeLost { node } | Event::NodeRecovered { node } => {
                if let Some(book) = self.nodes.get_mut(node.index()) {
                    book.lost = matches!(event, Event::NodeLost { .. });
                }
            }
            Event::NodeMoved { node, pool } => {
                if let Some(book) = self.nodes.get_mut(node.index()) {
                    book.spec.pool = *pool;
                }
            }
            Event::NodeChanged { node, gpus, capacity } => {
                if let Some(book) = self.nodes.get_mut(node.index()) {
                    (book.spec.gpus, book.spec.capacity) = (*gpus, *capacity);
                }
            }
            Event::TenantSet { tenant, spec } => match self.tenants.get_mut(tenant.index()) {
                Some(known) => *known = spec.clone(),
                None => self.tenants.push(spec.clone()),
            },
            _ => {}
        }
    }

    /// True if an attempt of the job holds devices.
    fn holds(&self, job: JobId) -> bool {
        self.attempts.values().any(|holding| holding.job == job)
    }

    fn job(&mut self, id: JobId) -> Option<&mut JobBook> {
        self.jobs.get_mut(id.index())?.as_mut()
    }

    /// An attempt holds nothing any more.
    fn stop(&mut self, id: AttemptId) {
        let now = self.now;
        self.part(id);
        let Some(holding) = self.attempts.remove(&id) else { return };
        let Some(job) = self.job(holding.job).filter(|job| job.outcome.is_none()) else { return };
        job.add(holding.worked_by(now));
        if let Some((work, restart)) = job.saved.take() {
            (job.work, job.restart) = (work, restart);
        }
        if job.withdrawn {
            job.outcome = Some(Outcome::Cancelled);
        }
    }

    /// Whoever shared with an attempt runs alone from now on.
    fn part(&mut self, id: AttemptId) {
        let now = self.now;
        let partner = self.attempts.get_mut(&id).and_then(|holding| holding.partner.take());
        if let Some(partner) = partner.and_then(|partner| self.attempts.get_mut(&partner)) {
            partner.change_rate(now, Retention::WHOLE);
            partner.partner = None;
        }
    }

    /// The jobs as they stand at the last step, with the solo run time of those that ran.
    pub(super) fn into_jobs(mut self) -> impl Iterator<Item = (JobId, JobBook, Option<Span>)> {
        for holding in std::mem::take(&mut self.attempts).into_values() {
            let worked = holding.worked_by(self.now);
            if let Some(job) = self.job(holding.job).filter(|job| job.outcome.is_none()) {
                job.add(worked);
            }
        }
        let jobs = (0..).map(JobId).zip(self.jobs);
        jobs.filter_map(|(id, job)| {
            let job = job?;
            let run_time = job.ran.then_some(job.work);
            Some((id, job, run_time))
        })
    }
}
