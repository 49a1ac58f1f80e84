//! The truth: what really becomes of jobs, nodes and commands.
//!
//! The world knows durations and failures and answers commands; it decides nothing. What the
//! engine hears of it is news, which may travel late, twice or out of order ([`crate::Actuation`]).

mod company;

use crate::actuation::Chance;
use crate::interference::SharedInterference;
use crate::pace::{Pace, Stint};
use crate::queue::{Due, EventQueue};
use crate::restart::Restart;
use crate::settings::SimSettings;
use crate::telemetry::{Pair, Reading};
use crate::workload::Workload;
use deepshare_audit::WorkLedger;
use deepshare_engine::{BindFailure, Command, Event, EvictReason, PairBar};
use deepshare_metrics::{JobRecord, SharingLevels};
use deepshare_model::{AttemptId, JobId, Outcome, PoolId, Retention, Span, Time, Training};
use deepshare_trace::{Trace, TraceJob};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, VecDeque};

/// A random stream for one purpose, so that streams do not disturb each other.
pub(crate) fn stream(seed: u64, purpose: u64) -> Pcg64Mcg {
    // Any odd constant spreads purposes over seeds; this is 2^64 over the golden ratio.
    Pcg64Mcg::seed_from_u64(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// When a job may first start: what waiting and completion times count from. Time in which its
/// owner holds it is nobody's delay.
fn eligible(job: &TraceJob) -> Time {
    let released = job.hold_until.map_or(job.submit, |until| until.max(job.submit));
    job.cancel.map_or(released, |cancel| cancel.min(released))
}

/// What an attempt is really doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    /// The world is asked to bind or start it.
    Coming,
    /// Working.
    Running,
    /// Stopped, still holding devices.
    Stopping,
    /// Holds nothing any more.
    Gone,
}

struct AttemptTruth {
    job: JobId,
    truth: Truth,
    /// When all news of it so far will have been heard.
    heard_by: Time,
    /// Who is on its devices too.
    partners: Vec<AttemptId>,
    /// What its iterations leave of its speed, done in as many steps as they are.
    paced: Retention,
    /// How far it is, once it runs.
    pace: Pace,
    /// What the meters count of it.
    counted: SharingLevels,
    /// Memory of each of its devices, MiB; 0 = unknown.
    memory_mib: u32,
}

/// True if the world may refuse to evict for this reason.
fn may_be_refused(reason: EvictReason) -> bool {
    reason.is_chosen()
}

impl AttemptTruth {
    fn new(job: JobId, truth: Truth) -> AttemptTruth {
        AttemptTruth {
            job,
            truth,
            heard_by: Time::ZERO,
            partners: Vec::new(),
            paced: Retention::WHOLE,
            pace: Pace::new(Time::ZERO, Span::ZERO),
            counted: SharingLevels::default(),
            memory_mib: 0,
        }
    }
}

/// What a job has really done.
struct JobTruth {
    /// Solo work that survives a stop.
    saved: Span,
    /// What the next start spends before it makes progress.
    owed: Span,
    /// Waiting since; `None` while it runs or when it is over.
    waits_since: Option<Time>,
    ledger: WorkLedger,
    over: bool,
}

/// What a pair has to keep, and its next reading once both run.
type Watched = (PairBar, Option<(Pair, Reading)>);

pub(crate) struct World {
    /// How jobs train, where that is known.
    training: Vec<Option<Training>>,
    restart: Restart,
    finish_lag: Span,
    interference: Option<SharedInterference>,
    seed: u64,
    pair_slack_ppm: u32,
    /// By the attempt that joined and the one that was there.
    pairs: BTreeMap<(AttemptId, AttemptId), Watched>,
    /// What all running attempts together do.
    pub(crate) levels: SharingLevels,
    /// Memory of the devices, by node, MiB; 0 = unknown.
    device_memory: Vec<u32>,
    ideal: bool,
    chance: Chance,
    attempts: Vec<AttemptTruth>,
    jobs: Vec<JobTruth>,
    pub(crate) records: Vec<JobRecord>,
    pub(crate) queue: EventQueue,
    /// News heard at once, in order.
    pub(crate) news: VecDeque<Event>,
    /// Jobs that ended since the last look, for the auditor and the meter.
    pub(crate) just_ended: Vec<JobId>,
    pub(crate) ended: usize,
}

impl World {
    pub(crate) fn new(trace: &Trace, workload: &Workload, settings: &SimSettings) -> World {
        let records =
            trace.jobs.iter().zip(&workload.jobs).enumerate().map(|(index, (job, spec))| {
                JobRecord {
                    job: JobId::from_index(index),
                    tenant: spec.tenant,
                    user: spec.user,
                    pool: workload.tenants.get(spec.tenant.index()).map_or(PoolId(0), |t| t.pool),
                    class: spec.class,
                    gpus: spec.demand.gpus,
                    profile: spec.profile,
                    slowdown_limit_milli: spec.sharing.slowdown_limit_milli,
                    submit: eligible(job),
                    duration: job.duration,
                    first_start: None,
                    end: None,
                    waited: Span::ZERO,
                    preemptions: 0,
                    restarts_by_failure: 0,
                    shared: Span::ZERO,
                    slowed: Span::ZERO,
                    beside: Vec::new(),
                    work_lost: Span::ZERO,
                    restart_overhead: Span::ZERO,
                    outcome: job.outcome,
                    refused: false,
                }
            });
        let jobs = trace.jobs.iter().map(|job| JobTruth {
            saved: Span::ZERO,
            owed: Span::ZERO,
            waits_since: Some(eligible(job)),
            ledger: WorkLedger {
                work: job.duration,
                progressed: Span::ZERO,
                lost: Span::ZERO,
                restarts: Span::ZERO,
                ran: Span::ZERO,
                slowed: Span::ZERO,
                completed: false,
            },
            over: false,
        });
        World {
            training: workload.jobs.iter().map(|job| job.training).collect(),
            restart: settings.restart,
            finish_lag: settings.finish_lag,
            interference: settings.interference.clone(),
            seed: settings.seed,
            pair_slack_ppm: settings.engine.pair_slack_ppm,
            pairs: BTreeMap::new(),
            levels: SharingLevels::default(),
            device_memory: workload.nodes.iter().map(|node| node.gpu_memory_mib).collect(),
            ideal: settings.actuation.is_ideal(),
            chance: Chance::new(settings.actuation, settings.seed),
            attempts: Vec::new(),
            jobs: jobs.collect(),
            records: records.collect(),
            queue: EventQueue::default(),
            news: VecDeque::new(),
            just_ended: Vec::new(),
            ended: 0,
        }
    }

    pub(crate) fn ledger(&self, job: JobId) -> &WorkLedger {
        &self.jobs[job.index()].ledger
    }

    /// Carries out a command of the engine.
    pub(crate) fn obey(&mut self, now: Time, command: &Command) {
        match command {
            Command::Start { attempt, job, placement, steps, .. } => {
                self.note(*attempt, *job, Truth::Coming);
                self.attempts[attempt.index()].paced = self.pace_in(*job, *steps);
                self.attempts[attempt.index()].memory_mib = self.memory_of(placement);
                if self.ideal {
                    self.news.push_back(Event::Bound { attempt: *attempt });
                    self.run(now, *attempt);
                } else {
                    let at = now + self.chance.bind_delay();
                    self.queue.push(at, Due::Binds(*attempt));
                }
            }
            Command::Evict { attempt, reason, .. } => self.evict(now, *attempt, *reason),
            // Promises and refusals are words: nothing moves in the world.
            Command::Reserve { attempt, job, .. } => self.note(*attempt, *job, Truth::Gone),
            Command::Shrink { attempt, .. } | Command::Grow { attempt, .. } => {
                self.shrink(now, *attempt);
            }
            Command::Watch { attempt, partner, bar } => self.pair(now, *attempt, *partner, *bar),
            Command::Accumulate { attempt, steps, .. } => self.accumulate(now, *attempt, *steps),
            Command::Promote { .. }
            | Command::ReleaseReservation { .. }
            | Command::Refuse { .. } => {}
        }
    }

    fn note(&mut self, attempt: AttemptId, job: JobId, truth: Truth) {
        // Attempts are numbered as proposed, and announced promises after starts.
        while self.attempts.len() <= attempt.index() {
            self.attempts.push(AttemptTruth::new(job, Truth::Gone));
        }
        self.attempts[attempt.index()] = AttemptTruth::new(job, truth);
    }

    /// Sends news of an attempt. News of one attempt may be heard in any order, except that the
    /// release of its devices is heard last: a watch tells of an object's end after all the rest.
    fn tell(&mut self, now: Time, attempt: AttemptId, event: Event) {
        if self.ideal {
            self.news.push_back(event);
            return;
        }
        let (delay, double) = self.chance.news_delays();
        let entry = &mut self.attempts[attempt.index()];
        let mut at = now + delay;
        if matches!(event, Event::DevicesReleased { .. }) {
            at = at.max(entry.heard_by);
        }
        entry.heard_by = entry.heard_by.max(at);
        if let Some(double) = double {
            self.queue.push(at.max(now + double), Due::News(Box::new(event.clone())));
        }
        self.queue.push(at, Due::News(Box::new(event)));
    }

    /// A binding takes effect, or fails.
    pub(crate) fn bind(&mut self, now: Time, attempt: AttemptId) {
        if self.attempts[attempt.index()].truth != Truth::Coming {
            return;
        }
        if self.chance.bind_fails() {
            self.attempts[attempt.index()].truth = Truth::Gone;
            self.tell(now, attempt, Event::BindFailed { attempt, failure: BindFailure::Transient });
            return;
        }
        self.tell(now, attempt, Event::Bound { attempt });
        let at = now + self.chance.start_delay();
        self.queue.push(at, Due::Starts(attempt));
    }

    /// A bound attempt starts, or is rejected.
    pub(crate) fn start(&mut self, now: Time, attempt: AttemptId) {
        if self.attempts[attempt.index()].truth != Truth::Coming {
            return;
        }
        if self.chance.rejected() {
            self.attempts[attempt.index()].truth = Truth::Gone;
            self.tell(now, attempt, Event::Rejected { attempt });
            return;
        }
        self.run(now, attempt);
    }

    fn run(&mut self, now: Time, attempt: AttemptId) {
        let entry = &mut self.attempts[attempt.index()];
        entry.truth = Truth::Running;
        let job = entry.job;
        let record = &mut self.records[job.index()];
        let truth = &mut self.jobs[job.index()];
        if let Some(since) = truth.waits_since.take() {
            record.waited += now.saturating_since(since);
        }
        record.first_start.get_or_insert(now);
        let left = truth.owed + record.duration.saturating_sub(truth.saved);
        self.attempts[attempt.index()].pace = Pace::new(now, left);
        self.queue.push(now + left + self.finish_lag, Due::WorkDone(attempt, 0));
        self.tell(now, attempt, Event::Running { attempt });
        self.meet(now, attempt);
        self.count(attempt);
    }

    /// A running attempt has done its work, unless it was stopped before or has another speed now.
    pub(crate) fn work_done(&mut self, now: Time, attempt: AttemptId, token: u32) -> Option<JobId> {
        let entry = &self.attempts[attempt.index()];
        let (truth, job, pace) = (entry.truth, entry.job, entry.pace);
        if truth != Truth::Running || pace.token != token {
            return None;
        }
        self.book_stint(job, pace.stint(now));
        let truth = &mut self.jobs[job.index()];
        truth.over = true;
        truth.ledger.completed = true;
        let record = &mut self.records[job.index()];
        record.end = Some(now);
        self.just_ended.push(job);
        self.ended += 1;
        let outcome = record.outcome;
        self.tell(now, attempt, Event::Finished { attempt, outcome });
        self.stop(now, attempt);
        Some(job)
    }

    /// Splits a stint into restart and progress, and books both.
    fn book_stint(&mut self, job: JobId, stint: Stint) -> Span {
        let (record, truth) = (&mut self.records[job.index()], &mut self.jobs[job.index()]);
        let paid = stint.worked.min(truth.owed);
        truth.owed -= paid;
        let progress = stint.worked - paid;
        let slowed = stint.ran - stint.worked;
        record.shared += stint.shared;
        record.slowed += slowed;
        truth.ledger.slowed += slowed;
        record.restart_overhead += paid;
        truth.ledger.restarts += paid;
        truth.ledger.progressed += progress;
        truth.ledger.ran += stint.ran;
        progress
    }

    fn evict(&mut self, now: Time, attempt: AttemptId, reason: EvictReason) {
        let entry = &self.attempts[attempt.index()];
        let (truth, job) = (entry.truth, entry.job);
        match truth {
            // Over already: the engine will hear, or has to hear again.
            Truth::Gone | Truth::Stopping => {}
            Truth::Coming => self.stop(now, attempt),
            Truth::Running if may_be_refused(reason) && self.chance.refused() => {
                self.tell(now, attempt, Event::EvictionRefused { attempt });
            }
            Truth::Running => {
                let lost_node = reason == EvictReason::NodeLost;
                self.interrupt(now, attempt, lost_node);
                let record = &mut self.records[job.index()];
                match reason {
                    EvictReason::Preempted | EvictReason::Degraded | EvictReason::SlowdownLimit => {
                        record.preemptions += 1
                    }
                    EvictReason::NodeLost | EvictReason::Broken => record.restarts_by_failure += 1,
                    EvictReason::Cancelled | EvictReason::StartOverdue => {}
                }
                self.stop(now, attempt);
            }
        }
    }

    /// An attempt's pod is resized in place, or cannot be.
    fn shrink(&mut self, now: Time, attempt: AttemptId) {
        if self.ideal {
            self.news.push_back(Event::Resized { attempt });
            return;
        }
        let at = now + self.chance.start_delay();
        let event = match self.chance.rejected() {
            true => Event::ResizeRefused { attempt },
            false => Event::Resized { attempt },
        };
        self.queue.push(at, Due::News(Box::new(event)));
    }

    /// Ends a stint before the job's end: what it did is kept as far as checkpoints go.
    fn interrupt(&mut self, now: Time, attempt: AttemptId, lost_node: bool) {
        let entry = &self.attempts[attempt.index()];
        let (job, stint) = (entry.job, entry.pace.stint(now));
        let progress = self.book_stint(job, stint);
        let kept = self.restart.kept(progress, lost_node);
        let (record, truth) = (&mut self.records[job.index()], &mut self.jobs[job.index()]);
        truth.saved += kept;
        truth.ledger.lost += progress - kept;
        record.work_lost += progress - kept;
        truth.owed = self.restart.owed(record.gpus, truth.owed);
        truth.waits_since = Some(now);
        let (work, restart) = (truth.saved, truth.owed);
        self.tell(now, attempt, Event::Checkpoint { attempt, work, restart });
    }

    fn stop(&mut self, now: Time, attempt: AttemptId) {
        self.attempts[attempt.index()].truth = Truth::Stopping;
        self.leave(now, attempt);
        if self.ideal {
            self.let_go(now, attempt);
        } else {
            let until = now + self.chance.stop_delay();
            self.tell(now, attempt, Event::Terminating { attempt, until });
            self.queue.push(until, Due::LetsGo(attempt));
        }
    }

    /// A stopping attempt lets go of its devices.
    pub(crate) fn let_go(&mut self, now: Time, attempt: AttemptId) {
        self.attempts[attempt.index()].truth = Truth::Gone;
        self.tell(now, attempt, Event::DevicesReleased { attempt });
    }

    /// The owner withdraws a job, waiting or running. False if it was over already. Whatever runs of
    /// it is stopped by the engine.
    pub(crate) fn withdraw(&mut self, now: Time, job: JobId) -> bool {
        let (record, truth) = (&mut self.records[job.index()], &mut self.jobs[job.index()]);
        if truth.over {
            return false;
        }
        if let Some(since) = truth.waits_since.take() {
            record.waited += now.saturating_since(since);
        }
        truth.over = true;
        record.outcome = Outcome::Cancelled;
        record.end = Some(now);
        self.just_ended.push(job);
        self.ended += 1;
        true
    }

    /// True if the job has ended or will never run.
    pub(crate) fn is_over(&self, job: JobId) -> bool {
        self.jobs[job.index()].over
    }

    /// A job that the cluster can never run is left out.
    pub(crate) fn refuse(&mut self, job: JobId) {
        self.records[job.index()].refused = true;
        self.jobs[job.index()].over = true;
        self.jobs[job.index()].waits_since = None;
        self.ended += 1;
    }
}
