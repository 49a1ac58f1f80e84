//! The little world of a script: one engine, its auditor, and what becomes of commands.
//!
//! Jobs bind, start and stop at once and never fail, except where the script said otherwise
//! beforehand. Order of one instant: what the world had in store for it, then the script's lines,
//! then the wake, in which the policy decides.

use super::Strain;
use super::error::{BrokenRule, Fault};
use super::names::Names;
use super::report;
use super::sharing::Kept;
use super::stint::Stint;
use crate::picture::{Recorder, Schedule};
use crate::told::Told;
use deepshare_audit::Auditor;
use deepshare_engine::{
    BindFailure, CapacityMode, Command, Engine, EngineSettings, Event, EvictReason, JobState,
    Reason,
};
use deepshare_model::{AttemptId, Class, JobId, Outcome, Retention, Span, Time};
use deepshare_policies::PolicyConfig;
use deepshare_sim::auditor_of;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Rounds at one instant after which a script is given up.
const MAX_ROUNDS_AT_ONCE: u32 = 1_000;

/// What a script chooses before its engine begins.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) policy: PolicyConfig,
    pub(crate) engine: EngineSettings,
    /// What every restart costs.
    pub(crate) restart: Span,
    /// Everything is told twice.
    pub(crate) news_twice: bool,
    /// Settings that the script gave, which no policy's defaults change.
    pub(crate) said: Vec<String>,
}

impl Setup {
    /// Chooses a policy, and the engine settings that suit it where the script gave none.
    pub(crate) fn choose(&mut self, policy: PolicyConfig) {
        let suits = policy.engine_settings();
        let given = |key: &str| self.said.iter().any(|said| said == key);
        if !given("cycle") {
            self.engine.cycle = suits.cycle;
        }
        if !given("preempted-pause") {
            self.engine.preempted_pause = suits.preempted_pause;
        }
        if !given("pair-samples") {
            self.engine.pair_samples = suits.pair_samples;
        }
        if !given("pair-slack") {
            self.engine.pair_slack_ppm = suits.pair_slack_ppm;
        }
        let elastic = matches!(policy, PolicyConfig::DeepShare(_) | PolicyConfig::ElasticQuota {});
        if !given("capacity") {
            self.engine.capacity = if elastic { CapacityMode::Elastic } else { CapacityMode::Pool };
        }
        self.policy = policy;
    }
}

/// What a script arranged for a job's next start or stop; each arrangement is used up by it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) bind_takes: Span,
    pub(crate) bind_fails: Option<BindFailure>,
    pub(crate) start_takes: Span,
    pub(crate) rejected: bool,
    pub(crate) stop_takes: Span,
    /// The next eviction is refused, this long after it is asked for.
    pub(crate) refuses_after: Option<Span>,
    /// The next resize cannot be done.
    pub(crate) refuses_resize: bool,
}

/// A job as it really is.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobTruth {
    /// Ends by itself after this much work.
    pub(crate) run: Option<Span>,
    pub(crate) outcome: Outcome,
    pub(crate) fate: Fate,
    saved: Span,
    owed: Span,
    end_told: bool,
    /// Why it waits, as last told.
    said: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Coming,
    Running(Stint),
    Stopping,
    Gone,
}

#[derive(Clone, Copy, Debug)]
enum Due {
    Binds(AttemptId),
    Starts(AttemptId),
    WorkDone(AttemptId, u32),
    Refuses(AttemptId),
    LetsGo(AttemptId),
}

/// A script being run.
pub(crate) struct Story {
    pub(crate) names: Names,
    pub(crate) setup: Setup,
    pub(crate) now: Time,
    pub(crate) jobs: Vec<JobTruth>,
    world: Option<(Engine, Auditor)>,
    strain: Strain,
    attempts: BTreeMap<AttemptId, (JobId, Truth)>,
    /// Who shares devices with each.
    partners: BTreeMap<AttemptId, BTreeSet<AttemptId>>,
    /// In how many steps iterations are done, where it is more than one.
    steps: BTreeMap<AttemptId, u32>,
    /// All that the engine was told.
    told: Vec<(Time, Event)>,
    /// What was last predicted, and how often anything was.
    pub(crate) predicted: Kept,
    /// By how much true slowdowns exceed predicted ones, by percentile, millionths.
    pub(crate) errors_ppm: Vec<i32>,
    pub(crate) tables: u64,
    /// What jobs really keep, where it is not what is predicted.
    pub(crate) true_kept: Kept,
    due: BTreeMap<(Time, u64), Due>,
    seq: u64,
    news: VecDeque<Event>,
    replies: Vec<String>,
    recorder: Recorder,
}

impl Story {
    pub(crate) fn new(strain: Strain) -> Story {
        Story {
            names: Names::default(),
            setup: Setup {
                policy: PolicyConfig::Fifo { skip: false },
                engine: EngineSettings {
                    capacity: CapacityMode::Pool,
                    ..EngineSettings::default()
                },
                restart: Span::ZERO,
                news_twice: false,
                said: Vec::new(),
            },
            now: Time::ZERO,
            jobs: Vec::new(),
            world: None,
            strain,
            attempts: BTreeMap::new(),
            partners: BTreeMap::new(),
            steps: BTreeMap::new(),
            told: Vec::new(),
            predicted: Kept::new(),
            errors_ppm: Vec::new(),
            tables: 0,
            true_kept: Kept::new(),
            due: BTreeMap::new(),
            seq: 0,
            news: VecDeque::new(),
            replies: Vec::new(),
            recorder: Recorder::default(),
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.world.is_some()
    }

    /// What the engine was made of and told.
    pub(crate) fn told(self) -> Told {
        Told { policy: self.setup.policy, settings: self.setup.engine, events: self.told }
    }

    fn world(&mut self) -> &mut (Engine, Auditor) {
        self.world.get_or_insert_with(|| {
            let engine = Engine::new(self.setup.engine, self.setup.policy.build());
            let auditor = auditor_of(&self.setup.engine, &self.setup.policy);
            (engine, auditor.check_every(1).checks_assurance())
        })
    }

    pub(crate) fn state(&mut self) -> &deepshare_engine::State {
        self.world().0.state()
    }

    /// Words for something of the books, with names.
    pub(crate) fn describe(
        &mut self,
        words: impl FnOnce(&Names, &deepshare_engine::State) -> String,
    ) -> String {
        self.world();
        let (engine, _) = self.world.as_ref().expect("begun in the line above");
        words(&self.names, engine.state())
    }

    /// As [`Story::describe`], in several lines.
    pub(crate) fn describe_all(
        &mut self,
        words: impl FnOnce(&Names, &deepshare_engine::State) -> Vec<String>,
    ) -> Vec<String> {
        self.world();
        let (engine, _) = self.world.as_ref().expect("begun in the line above");
        words(&self.names, engine.state())
    }

    pub(crate) fn take_replies(&mut self) -> Vec<String> {
        std::mem::take(&mut self.replies)
    }

    /// Adds a reply of this instant.
    pub(crate) fn say(&mut self, what: impl std::fmt::Display) {
        self.replies.push(format!("{} {what}", self.now));
    }

    fn broken(&self, rule: BrokenRule) -> Fault {
        Fault::Broken { at: self.now, rule }
    }

    /// Tells the engine something, and whatever follows from it at once.
    pub(crate) fn tell(&mut self, event: Event) -> Result<(), Fault> {
        self.news.push_back(event);
        self.deliver()
    }

    /// Tells the engine all that is to be told.
    pub(crate) fn deliver(&mut self) -> Result<(), Fault> {
        while let Some(event) = self.news.pop_front() {
            self.step(&event)?;
            if self.setup.news_twice || self.strain == Strain::NewsTwice {
                self.step(&event)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, event: &Event) -> Result<(), Fault> {
        let now = self.now;
        self.told.push((now, event.clone()));
        self.recorder.event(now, event);
        let (engine, auditor) = self.world();
        let mut commands = Vec::new();
        let stepped = auditor
            .event(now, event)
            .map_err(|violation| BrokenRule::Audit(Box::new(violation)))
            .and_then(|()| engine.step(now, event, &mut commands).map_err(BrokenRule::Policy))
            .and_then(|()| {
                let checked = commands.iter().try_for_each(|one| auditor.command(now, one));
                let checked = checked.and_then(|()| auditor.compare(engine.state()));
                checked.map_err(|violation| BrokenRule::Audit(Box::new(violation)))
            });
        if let Event::Found { job, running_since, .. } = *event {
            self.take_up(job, running_since);
        }
        for command in commands {
            self.recorder.command(now, &command);
            self.obey(command);
        }
        stepped.map_err(|rule| self.broken(rule))?;
        self.tell_ends();
        if self.strain == Strain::Restarts {
            self.snapshot()?;
        }
        Ok(())
    }

    /// Saves the engine as JSON and goes on with what is read back, under a fresh policy.
    pub(crate) fn snapshot(&mut self) -> Result<(), Fault> {
        let policy = self.setup.policy.build();
        let engine = &mut self.world().0;
        let restored = serde_json::to_string(&engine.snapshot())
            .and_then(|text| serde_json::from_str(&text))
            .map_err(|error| error.to_string())
            .and_then(|saved| Engine::restore(saved, policy).map_err(|error| error.to_string()));
        match restored {
            Ok(again) => *engine = again,
            Err(why) => return Err(self.broken(BrokenRule::Snapshot(why))),
        }
        Ok(())
    }

    fn tell_ends(&mut self) {
        for index in 0..self.jobs.len() {
            let JobState::Ended(outcome) = self.state().job(JobId::from_index(index)).state else {
                continue;
            };
            if !std::mem::replace(&mut self.jobs[index].end_told, true) {
                let name = self.names.jobs[index].clone();
                match outcome {
                    Outcome::Succeeded => self.say(format_args!("end {name}")),
                    other => self.say(format_args!("end {name} {}", other.name())),
                }
            }
        }
    }

    fn name(&self, job: JobId) -> String {
        self.names.job_name(job).to_owned()
    }

    fn attempt_name(&self, attempt: AttemptId) -> String {
        self.name(self.attempts[&attempt].0)
    }

    fn later(&mut self, delay: Span, due: Due) {
        self.due.insert((self.now + delay, self.seq), due);
        self.seq += 1;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Reserve { attempt, job, placement, charged } => {
                self.attempts.insert(attempt, (job, Truth::Gone));
                let on = report::placement(&placement);
                let beyond = self.beyond_quota(job, charged);
                self.say(format_args!("reserve {} on {on}{beyond}", self.name(job)));
            }
            Command::Start { attempt, job, placement, charged, steps, .. } => {
                self.attempts.insert(attempt, (job, Truth::Coming));
                let on = report::placement(&placement);
                let beyond = self.beyond_quota(job, charged);
                let in_steps = match steps {
                    1 => String::new(),
                    _ => format!(" in {steps} steps"),
                };
                self.steps.insert(attempt, steps);
                self.say(format_args!("start {} on {on}{beyond}{in_steps}", self.name(job)));
                let takes = std::mem::take(&mut self.jobs[job.index()].fate.bind_takes);
                self.at_once_or_later(takes, Due::Binds(attempt));
            }
            Command::Shrink { attempt, per_gpu, .. } => {
                let (cpu, memory) = (per_gpu.cpu_milli, per_gpu.memory_mib);
                let name = self.attempt_name(attempt);
                self.say(format_args!("shrink {name} to {cpu}m {memory}Mi"));
                self.resize(attempt);
            }
            Command::Grow { attempt, per_gpu, .. } => {
                let (cpu, memory) = (per_gpu.cpu_milli, per_gpu.memory_mib);
                let name = self.attempt_name(attempt);
                self.say(format_args!("grow {name} to {cpu}m {memory}Mi"));
                self.resize(attempt);
            }
            Command::Accumulate { attempt, steps, .. } => {
                let name = self.attempt_name(attempt);
                self.say(format_args!("{name} trains in {steps} steps"));
                self.steps.insert(attempt, steps);
                self.change_speeds();
            }
            Command::Watch { attempt, partner, bar } => {
                let (joined, there) = (self.attempt_name(attempt), self.attempt_name(partner));
                self.say(format_args!("watch {joined} beside {there} at {bar}"));
                self.partners.entry(attempt).or_default().insert(partner);
                self.partners.entry(partner).or_default().insert(attempt);
                self.change_speeds();
            }
            Command::Promote { attempt } => {
                self.say(format_args!("promote {}", self.attempt_name(attempt)));
            }
            Command::ReleaseReservation { attempt } => {
                self.say(format_args!("unreserve {}", self.attempt_name(attempt)));
            }
            Command::Evict { attempt, reason, preemption, .. } => {
                let name = self.attempt_name(attempt);
                let why = report::eviction(&self.names, reason, preemption);
                self.say(format_args!("evict {name} for {why}"));
                self.evict(attempt, reason);
            }
            Command::Refuse { job, reason } => {
                let why = report::reason(&self.names, &reason);
                self.jobs[job.index()].said = Some(why.clone());
                self.say(format_args!("refuse {} {why}", self.name(job)));
            }
        }
    }

    /// What is said of a job whose devices are not charged to the class it belongs to.
    fn beyond_quota(&mut self, job: JobId, charged: Class) -> &'static str {
        match self.state().job(job).spec.class == charged {
            true => "",
            false => " beyond quota",
        }
    }

    fn resize(&mut self, attempt: AttemptId) {
        let job = self.attempts[&attempt].0;
        if !std::mem::take(&mut self.jobs[job.index()].fate.refuses_resize) {
            return self.news.push_back(Event::Resized { attempt });
        }
        self.say(format_args!("resizing {} is refused", self.name(job)));
        self.news.push_back(Event::ResizeRefused { attempt });
    }

    /// Takes up an attempt of which the engine was told.
    fn take_up(&mut self, job: JobId, running_since: Option<Time>) {
        let Some(attempt) = self.state().job(job).active() else { return };
        if self.attempts.contains_key(&attempt) {
            return;
        }
        let placement = self.state().attempt(attempt).placement.clone();
        let (name, on) = (self.name(job), report::placement(&placement));
        self.say(format_args!("found {name} on {on}"));
        match running_since {
            Some(since) => {
                let stint = Stint::new(since);
                self.attempts.insert(attempt, (job, Truth::Running(stint)));
                self.foresee_end(attempt, stint);
            }
            None => {
                self.attempts.insert(attempt, (job, Truth::Coming));
                let takes = std::mem::take(&mut self.jobs[job.index()].fate.start_takes);
                self.at_once_or_later(takes, Due::Starts(attempt));
            }
        }
    }

    fn at_once_or_later(&mut self, delay: Span, due: Due) {
        if delay.is_zero() {
            self.happen(due);
        } else {
            self.later(delay, due);
        }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Binds(attempt) => self.bind(attempt),
            Due::Starts(attempt) => self.start(attempt),
            Due::WorkDone(attempt, round) => {
                let (job, truth) = self.attempts[&attempt];
                if let Truth::Running(stint) = truth
                    && stint.round == round
                {
                    self.complete(attempt, self.jobs[job.index()].outcome);
                }
            }
            Due::Refuses(attempt) => {
                if let Truth::Running(_) = self.attempts[&attempt].1 {
                    let name = self.attempt_name(attempt);
                    self.say(format_args!("eviction of {name} is refused"));
                    self.news.push_back(Event::EvictionRefused { attempt });
                }
            }
            Due::LetsGo(attempt) => {
                self.set(attempt, Truth::Gone);
                self.news.push_back(Event::DevicesReleased { attempt });
            }
        }
    }

    fn set(&mut self, attempt: AttemptId, truth: Truth) {
        if let Some(entry) = self.attempts.get_mut(&attempt) {
            entry.1 = truth;
        }
    }

    fn bind(&mut self, attempt: AttemptId) {
        let (job, truth) = self.attempts[&attempt];
        if truth != Truth::Coming {
            return;
        }
        let name = self.name(job);
        let fate = &mut self.jobs[job.index()].fate;
        if let Some(failure) = fate.bind_fails.take() {
            self.set(attempt, Truth::Gone);
            self.say(format_args!("binding {name} fails"));
            self.news.push_back(Event::BindFailed { attempt, failure });
            return;
        }
        let takes = std::mem::take(&mut fate.start_takes);
        self.news.push_back(Event::Bound { attempt });
        self.at_once_or_later(takes, Due::Starts(attempt));
    }

    fn start(&mut self, attempt: AttemptId) {
        let (job, truth) = self.attempts[&attempt];
        if truth != Truth::Coming {
            return;
        }
        if std::mem::take(&mut self.jobs[job.index()].fate.rejected) {
            self.set(attempt, Truth::Gone);
            self.say(format_args!("{} is rejected by its node", self.name(job)));
            self.news.push_back(Event::Rejected { attempt });
            return;
        }
        let stint = Stint::new(self.now);
        self.set(attempt, Truth::Running(stint));
        self.news.push_back(Event::Running { attempt });
        self.foresee_end(attempt, stint);
        self.change_speeds();
    }

    fn foresee_end(&mut self, attempt: AttemptId, stint: Stint) {
        let truth = &self.jobs[self.attempts[&attempt].0.index()];
        if let Some(run) = truth.run {
            let goal = run.saturating_sub(truth.saved) + truth.owed;
            let left = stint.time_to(self.now, goal);
            self.later(left, Due::WorkDone(attempt, stint.round));
        }
    }

    /// Every job that shares goes on at the speed that it keeps beside its partner, every other at
    /// its own.
    pub(crate) fn change_speeds(&mut self) {
        let ids: Vec<AttemptId> = self.attempts.keys().copied().collect();
        for attempt in ids {
            let (_, Truth::Running(mut stint)) = self.attempts[&attempt] else { continue };
            if stint.change(self.now, self.true_rate(attempt)) {
                self.set(attempt, Truth::Running(stint));
                self.foresee_end(attempt, stint);
            }
        }
    }

    fn true_rate(&mut self, attempt: AttemptId) -> Retention {
        let running = |id: &AttemptId| matches!(self.attempts[id].1, Truth::Running(_));
        let partners = self.partners.get(&attempt).cloned().unwrap_or_default();
        let partners: Vec<AttemptId> = partners.into_iter().filter(running).collect();
        let kept = partners.into_iter().map(|partner| self.truly_kept([attempt, partner]));
        let slowest = kept.min().unwrap_or(Retention::WHOLE);
        let (job, steps) = (self.attempts[&attempt].0, self.steps.get(&attempt).copied());
        let paced = self.state().job(job).spec.pace(steps.unwrap_or(1));
        paced.times(slowest)
    }

    /// What the first keeps beside the second.
    fn truly_kept(&mut self, pair: [AttemptId; 2]) -> Retention {
        let jobs = pair.map(|id| self.attempts[&id].0);
        let [own, other] = jobs.map(|job| self.state().job(job).spec.profile);
        let (Some(own), Some(other)) = (own, other) else { return Retention::WHOLE };
        let kept = self.true_kept.get(&(own, other)).or(self.predicted.get(&(own, other)));
        kept.copied().unwrap_or(Retention::WHOLE)
    }

    /// The running attempt of a job, if it has one.
    pub(crate) fn running(&self, job: JobId) -> Option<AttemptId> {
        let running = |truth| matches!(truth, Truth::Running(_));
        self.attempts
            .iter()
            .rev()
            .find(|(_, entry)| entry.0 == job && running(entry.1))
            .map(|e| *e.0)
    }

    /// Every attempt of a job so far, and whether it is over.
    pub(crate) fn attempts_of(&self, job: JobId) -> Vec<(AttemptId, bool)> {
        let mine = self.attempts.iter().filter(|(_, entry)| entry.0 == job);
        mine.map(|(&attempt, entry)| (attempt, entry.1 == Truth::Gone)).collect()
    }

    /// A running attempt ends by itself.
    pub(crate) fn complete(&mut self, attempt: AttemptId, outcome: Outcome) {
        self.news.push_back(Event::Finished { attempt, outcome });
        self.stop(attempt, false);
    }

    fn evict(&mut self, attempt: AttemptId, reason: EvictReason) {
        let (job, truth) = self.attempts[&attempt];
        let worked = match truth {
            Truth::Gone | Truth::Stopping => return,
            Truth::Coming => None,
            Truth::Running(stint) => Some(stint.worked(self.now)),
        };
        let fate = &mut self.jobs[job.index()].fate;
        if reason.is_chosen()
            && worked.is_some()
            && let Some(after) = fate.refuses_after.take()
        {
            self.at_once_or_later(after, Due::Refuses(attempt));
            return;
        }
        let lost = reason == EvictReason::NodeLost;
        if let Some(stint) = worked {
            let (restart, truth) = (self.setup.restart, &mut self.jobs[job.index()]);
            let progress = stint.saturating_sub(truth.owed);
            truth.saved += if lost { Span::ZERO } else { progress };
            truth.owed = restart;
            let (work, restart) = (truth.saved, truth.owed);
            self.news.push_back(Event::Checkpoint { attempt, work, restart });
        }
        self.stop(attempt, lost);
    }

    fn stop(&mut self, attempt: AttemptId, at_once: bool) {
        let job = self.attempts[&attempt].0;
        self.set(attempt, Truth::Stopping);
        if let Some(partners) = self.partners.remove(&attempt) {
            for partner in partners {
                self.partners.entry(partner).or_default().remove(&attempt);
            }
            self.change_speeds();
        }
        let takes = std::mem::take(&mut self.jobs[job.index()].fate.stop_takes);
        if takes.is_zero() || at_once {
            self.happen(Due::LetsGo(attempt));
            return;
        }
        let until = self.now + takes;
        self.say(format_args!("{} lets go at {until}", self.name(job)));
        self.news.push_back(Event::Terminating { attempt, until });
        self.later(takes, Due::LetsGo(attempt));
    }

    /// Goes to an instant: everything before it happens, and what the world has in store for it.
    pub(crate) fn go_to(&mut self, time: Time) -> Result<(), Fault> {
        if time <= self.now {
            return Ok(());
        }
        self.close()?;
        while let Some(next) = self.next_instant().filter(|&next| next < time) {
            self.now = next.max(self.now);
            self.happen_now()?;
            self.close()?;
        }
        self.now = time;
        self.happen_now()
    }

    /// Goes on until nothing more will happen.
    pub(crate) fn run(&mut self) -> Result<(), Fault> {
        self.close()?;
        while let Some(next) = self.next_instant() {
            self.now = next.max(self.now);
            self.happen_now()?;
            self.close()?;
        }
        Ok(())
    }

    fn next_instant(&mut self) -> Option<Time> {
        let wakeup = self.world().0.next_wakeup();
        let due = self.due.keys().next().map(|&(at, _)| at);
        [wakeup, due].into_iter().flatten().min()
    }

    fn happen_now(&mut self) -> Result<(), Fault> {
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let due = entry.remove();
            self.happen(due);
            self.deliver()?;
        }
        Ok(())
    }

    /// Ends the instant: the policy decides, and whoever waits says why.
    pub(crate) fn close(&mut self) -> Result<(), Fault> {
        let mut rounds = 0;
        while self.world().0.next_wakeup().is_some_and(|at| at <= self.now) {
            self.tell(Event::Wake)?;
            self.happen_now()?;
            rounds += 1;
            if rounds > MAX_ROUNDS_AT_ONCE {
                return Err(self.broken(BrokenRule::Livelock { rounds }));
            }
        }
        for index in 0..self.jobs.len() {
            self.tell_wait(JobId::from_index(index));
        }
        Ok(())
    }

    fn tell_wait(&mut self, job: JobId) {
        let (now, why) = (self.now, self.state().explain(job));
        self.recorder.waits(now, job, why.as_ref());
        let why = match why {
            // The reservation was told when it was made.
            Some(Reason::AwaitingRelease { .. }) | None => None,
            Some(why) => Some(report::reason(&self.names, &why)),
        };
        if self.jobs[job.index()].said != why {
            if let Some(why) = &why {
                self.say(format_args!("wait {} {why}", self.name(job)));
            }
            self.jobs[job.index()].said = why;
        }
    }

    /// What happened up to now.
    pub(crate) fn schedule(self) -> Schedule {
        self.recorder.finish(self.now, &self.names.jobs)
    }

    /// Ends the script: the last instant is closed, and the books are balanced.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        self.close()?;
        let now = self.now;
        let finished = self.world().1.finish(now);
        let finished = finished.map_err(|violation| BrokenRule::Audit(Box::new(violation)));
        finished.map(|_| ()).map_err(|rule| self.broken(rule))
    }
}
