//! The auditor: watches, checks, and only then believes.

use crate::books::{After, Assurance, Books};
use crate::report::{AuditReport, JobCounts};
use crate::share_rules::ShareRules;
use crate::violation::{Standing, Violation};
use crate::work_ledger::WorkLedger;
use deepshare_engine::{Command, EngineSettings, Event, State};
use deepshare_model::{JobId, Time};

/// What DeepShare's reclaim promises, to be checked beside what holds under every policy: a victim
/// is never preempted too soon, no victim could have stayed, and no guaranteed job within its quota
/// waits that could be placed by evicting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReclaimRules {
    /// Preemptions within an hour after which a job is a victim only if there is no other; 0: none.
    pub preemption_cap: u32,
}

/// An independent checker of one engine. See the crate's documentation for how to drive it.
///
/// A violation means that the run's figures cannot be trusted. The books are then as they were
/// before the offending command or event, time apart; going on is possible, but later violations
/// may follow from the first.
#[derive(Clone, Debug)]
pub struct Auditor {
    pub(crate) books: Books,
    preempts_guaranteed: bool,
    reclaims: Option<ReclaimRules>,
    /// Rounds that the engine had held when it was last compared, and the slot of the last one.
    rounds: (u64, Option<u64>),
    every: u32,
    report: AuditReport,
}

impl Auditor {
    /// An auditor of an engine that has seen no event yet, under the engine's settings.
    pub fn new(settings: &EngineSettings) -> Auditor {
        Auditor {
            books: Books::new(*settings),
            preempts_guaranteed: true,
            reclaims: None,
            rounds: (0, None),
            every: 4_096,
            report: AuditReport::default(),
        }
    }

    /// Whether the policy may preempt guaranteed jobs. Default: true, as classical policies do.
    #[must_use]
    pub fn preempts_guaranteed(mut self, allowed: bool) -> Auditor {
        self.preempts_guaranteed = allowed;
        self
    }

    /// The policy reclaims as DeepShare does, under these rules. Default: no such promise.
    /// Searching for a better set of victims costs O(devices) each time.
    #[must_use]
    pub fn reclaims(mut self, rules: ReclaimRules) -> Auditor {
        self.reclaims = Some(rules);
        self
    }

    /// The policy lets two jobs share devices, under these rules. Default: a device has one holder.
    #[must_use]
    pub fn shares(mut self, rules: ShareRules) -> Auditor {
        self.books.shares = Some(rules);
        self
    }

    /// Works out every tenant's quota assurance degree slot by slot and holds the engine's against
    /// it. Costs O(jobs so far) a step: for tests.
    #[must_use]
    pub fn checks_assurance(mut self) -> Auditor {
        self.books.assurance = Some(Assurance::new(&self.books.settings));
        self
    }

    /// [`Auditor::compare`] looks at everything once in so many calls (0: never), and else at what
    /// the step touched. Default 4,096, which costs little; tests that can afford it take 1.
    #[must_use]
    pub fn check_every(mut self, every: u32) -> Auditor {
        self.every = every;
        self
    }

    /// Watches an event, before the engine's step.
    ///
    /// # Errors
    /// The rule that the last step left broken, or that the driver broke with this event.
    pub fn event(&mut self, now: Time, event: &Event) -> Result<(), Violation> {
        self.books.check_step_end()?;
        self.books.begin_step(now)?;
        self.report.steps += 1;
        self.books.apply(event)
    }

    /// Checks one command of the step, in order.
    ///
    /// # Errors
    /// The rule that the command breaks.
    pub fn command(&mut self, now: Time, command: &Command) -> Result<(), Violation> {
        let books = &mut self.books;
        if now != books.now {
            return Err(Violation::CommandOffStep { now, step: books.now });
        }
        if !matches!(command, Command::Watch { .. }) {
            books.check_watched()?;
        }
        match command {
            Command::Reserve { attempt, job, charged, placement } => {
                let joins = books.check_reserve(*attempt, *job, *charged, placement)?;
                books.check_victims(*job, placement, self.reclaims)?;
                books.promise(*attempt, *job, *charged, placement, (joins, 1));
            }
            Command::Start { attempt, epoch, job, charged, placement, steps } => {
                if attempt.index() < books.attempts.len() {
                    books.check_reserved_start(*attempt, *epoch, *job, placement)?;
                } else {
                    let joins = books.check_direct_start(
                        *attempt,
                        *epoch,
                        (*job, *charged),
                        (placement, *steps),
                    )?;
                    books.check_victims(*job, placement, self.reclaims)?;
                    books.promise(*attempt, *job, *charged, placement, (joins, *steps));
                }
                books.occupy(*attempt);
            }
            Command::Promote { attempt } => {
                books.check_promote(*attempt)?;
                books.promote(*attempt);
            }
            Command::ReleaseReservation { attempt } => {
                books.check_release_reservation(*attempt)?;
                books.release(*attempt, After::Requeue);
            }
            Command::Evict { attempt, epoch, reason, preemption, .. } => {
                books.check_evict(*attempt, *epoch, *reason, self.preempts_guaranteed)?;
                if let Some(preemption) = *preemption {
                    books.check_reclaim(*attempt, preemption, self.reclaims)?;
                }
                books.begin_eviction(*attempt, *reason, *preemption);
            }
            Command::Shrink { attempt, epoch, per_gpu } => {
                books.check_shrink(*attempt, *epoch, *per_gpu)?;
                books.resize_to(*attempt, *per_gpu);
            }
            Command::Accumulate { attempt, epoch, steps } => {
                books.check_accumulate(*attempt, *epoch, *steps)?;
                books.attempts[attempt.index()].steps = *steps;
                books.step.attempts.push(*attempt);
            }
            Command::Watch { attempt, partner, bar } => {
                let pair = books.check_watch(*attempt, *partner, *bar)?;
                books.pairs.insert((*attempt, *partner), pair);
                books.step.unwatched.retain(|watched| *watched != (*attempt, *partner));
                books.step.attempts.push(*partner);
            }
            Command::Grow { attempt, epoch, per_gpu } => {
                books.check_grow(*attempt, *epoch, *per_gpu)?;
                books.resize_to(*attempt, *per_gpu);
                books.attempts[attempt.index()].shrunk_at = None;
            }
            Command::Refuse { job, reason } => {
                books.check_refusal(*job, reason)?;
                books.job_mut(*job)?.refused = true;
            }
        }
        self.report.commands += 1;
        Ok(())
    }

    /// Holds the engine's view against the stream's, after a step: what the step touched, and
    /// everything once in a while (see [`Auditor::check_every`]).
    ///
    /// # Errors
    /// The first difference, or a rule that the step left broken.
    pub fn compare(&mut self, state: &State) -> Result<(), Violation> {
        self.books.check_step_end()?;
        self.books.check_assurance(state)?;
        self.check_round(state)?;
        self.report.comparisons += 1;
        if self.every > 0 && self.report.comparisons.is_multiple_of(u64::from(self.every)) {
            self.report.full_comparisons += 1;
            return self.check_all(state);
        }
        self.books.compare_touched(state)
    }

    /// After a round, or a wake that found no reason for one.
    fn check_round(&mut self, state: &State) -> Result<(), Violation> {
        let (before, last_slot) = self.rounds;
        let slot = self.books.now.0.checked_div(self.books.settings.cycle.0);
        let held = state.rounds() > before;
        if held {
            self.rounds = (state.rounds(), slot);
        }
        // A slot that had its round already has no other.
        if held {
            self.books.check_degraded_part()?;
        }
        let idle = self.books.step.woken && (slot.is_none() || slot > last_slot);
        match self.reclaims {
            Some(_) if held || idle => self.books.check_nobody_left_waiting(),
            _ => Ok(()),
        }
    }

    /// Holds everything against everything. Costs O(devices + jobs + attempts so far).
    ///
    /// # Errors
    /// The first difference, or a rule that does not hold.
    pub fn check_all(&self, state: &State) -> Result<(), Violation> {
        self.books.check_step_end()?;
        self.books.check_reservations()?;
        self.books.compare_all(state)
    }

    /// Checks what a job truly did, as its driver knows it, once no attempt of it runs any more.
    ///
    /// # Errors
    /// If progress or running time is not conserved, or the job is unknown.
    pub fn work(&mut self, job: JobId, ledger: &WorkLedger) -> Result<(), Violation> {
        self.books.job(job)?;
        ledger.check(job)?;
        self.books.jobs[job.index()].ran = Some(ledger.ran);
        self.report.ledgers += 1;
        Ok(())
    }

    /// Ends the audit at `end`, the run's last instant.
    ///
    /// # Errors
    /// If a rule is left broken, or GPU time or running time do not add up over the whole run.
    pub fn finish(&self, end: Time) -> Result<AuditReport, Violation> {
        let books = &self.books;
        if end < books.now {
            return Err(Violation::TimeRanBackwards { now: end, last: books.now });
        }
        books.check_step_end()?;
        books.check_reservations()?;
        books.check_ran(end)?;
        let mut jobs = JobCounts::default();
        for job in &books.jobs {
            *match job.standing() {
                Standing::Ended(_) => &mut jobs.ended,
                Standing::Active(_) => &mut jobs.active,
                Standing::Held => &mut jobs.held,
                Standing::Refused => &mut jobs.refused,
                Standing::Waiting => &mut jobs.waiting,
            } += 1;
        }
        Ok(AuditReport {
            attempts: books.attempts.len() as u64,
            live_attempts: books.live_attempts().count() as u64,
            jobs,
            gpu_time: books.check_gpu_time(end)?,
            ..self.report
        })
    }
}
