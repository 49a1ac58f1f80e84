//! Conservative backfill: FIFO with a reservation for every waiting job.
//!
//! Source: Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User Runtime
//! Estimates in Scheduling the IBM SP2 with Backfilling", IEEE TPDS 2001.
//! Objective: use what idles without delaying any job that came earlier. On arrival each job gets
//! the earliest start that delays no reservation made before; when something ends early, late or
//! unplanned, all reservations are made anew in order of submission.
//! Deviations: reservations are of devices on nodes, found by the same placer, and of quota where
//! that binds, not of a number of GPUs. Jobs without an estimate are planned to run for ever.
//! Cost: O(running + waiting + nodes) a round that follows the plan; planning a job is O(steps ×
//! nodes), and more when windows are long. Whenever an end comes early or late, or a job starts ahead
//! of one that came before it, all waiting jobs are planned anew.
//!
//! The plan kept between rounds is a cache of what planning everything anew would give.

use crate::backfill::expected_end;
use deepshare_engine::{
    Contents, Draft, Forecast, JobState, Placement, Policy, Rank, Reason, State,
};
use deepshare_model::{AttemptId, JobId, PoolId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// FIFO with a reservation for every waiting job.
#[derive(Debug, Default)]
pub struct ConservativeBackfill {
    plans: BTreeMap<PoolId, Plan>,
}

#[derive(Clone, Debug)]
struct Reservation {
    start: Time,
    end: Time,
    /// What the job was expected to take when it was planned.
    run_time: Span,
    placement: Placement,
}

/// The pool's future: what is free as a step function of time, and who starts when.
#[derive(Debug)]
struct Plan {
    generation: u64,
    /// What is free from each instant on, until the next.
    steps: Vec<(Time, Contents)>,
    running: BTreeMap<AttemptId, Time>,
    reserved: BTreeMap<JobId, Reservation>,
    /// Start of every reservation, in order.
    starts: BTreeSet<(Time, JobId)>,
    /// A job started ahead of one that came before it.
    passed: bool,
    /// The pool in searchable form, with whatever contents were looked at last.
    scratch: Forecast,
    window: Contents,
}

impl Policy for ConservativeBackfill {
    fn name(&self) -> &'static str {
        "conservative-backfill"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        Rank([state.job(job).spec.submit.0, 0, 0])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let pool = draft.pool();
        let kept = self.plans.remove(&pool).filter(|plan| plan.holds(draft.state(), pool));
        let kept = kept.and_then(|plan| plan.brought_up_to(draft.state(), pool));
        let fresh = kept.is_none();
        let mut plan = kept.unwrap_or_else(|| Plan::new(draft.state(), pool));
        plan.reserve_waiting(draft.state(), pool);
        if !plan.start_due(draft) && !fresh {
            // A start did not go as planned although nothing else changed: plan anew, once.
            plan = Plan::new(draft.state(), pool);
            plan.reserve_waiting(draft.state(), pool);
            plan.start_due(draft);
        }
        plan.announce(draft);
        self.plans.insert(pool, plan);
    }
}

impl Plan {
    fn new(state: &State, pool: PoolId) -> Plan {
        let now = state.now();
        let mut then = Forecast::now(state, pool);
        let mut ends: Vec<_> = state.live(pool).map(|a| (expected_end(state, a), a.id)).collect();
        ends.sort_unstable();
        let mut steps = vec![(now, then.contents().clone())];
        for &(end, attempt) in &ends {
            then.release(state, state.attempt(attempt));
            match steps.last_mut() {
                Some((at, contents)) if *at == end => contents.clone_from(then.contents()),
                _ => steps.push((end, then.contents().clone())),
            }
        }
        Plan {
            generation: state.generation(),
            steps,
            running: ends.into_iter().map(|(end, attempt)| (attempt, end)).collect(),
            reserved: BTreeMap::new(),
            starts: BTreeSet::new(),
            passed: false,
            scratch: then,
            window: Contents::default(),
        }
    }

    /// Whether everything went as planned so far.
    fn holds(&self, state: &State, pool: PoolId) -> bool {
        let now = state.now();
        let all_run = state.live(pool).all(|attempt| {
            self.running
                .get(&attempt.id)
                .is_some_and(|&end| end > now && end == expected_end(state, attempt))
        });
        let live = state.pool(pool).live_attempts();
        let ended_on_time = || {
            let over = self.running.iter().filter(|(id, _)| !state.attempt(**id).is_live());
            let mut over = over.peekable();
            over.peek().is_none() || over.all(|(_, &end)| end == now)
        };
        let as_expected = || {
            self.reserved.iter().all(|(&job, reservation)| {
                state.job(job).state == JobState::Waiting
                    && reservation.run_time == expected_run_time(state, job)
            })
        };
        !self.passed
            && self.generation == state.generation()
            && all_run
            && (live == self.running.len() || ended_on_time())
            && as_expected()
            && self.in_order(state, pool)
    }

    /// Whether no job without a reservation goes before one that has one: a job that was held or
    /// lost its node returns to its place.
    fn in_order(&self, state: &State, pool: PoolId) -> bool {
        let mut walk = state.walk(pool);
        let mut planned = 0;
        while planned < self.reserved.len()
            && let Some(job) = walk.next(state)
        {
            if !self.reserved.contains_key(&job) {
                return false;
            }
            planned += 1;
        }
        true
    }

    /// The plan from now on, if what is free now is what it expected, those about to start counted
    /// in. Devices can come free of which it knew nothing: those of a job of another pool, say, on
    /// a node that has changed pools.
    fn brought_up_to(mut self, state: &State, pool: PoolId) -> Option<Plan> {
        let now = state.now();
        let past = self.steps.partition_point(|&(at, _)| at <= now).saturating_sub(1);
        self.steps.drain(..past);
        let (at, expected) = self.steps.first_mut()?;
        *at = now.max(*at);
        self.running.retain(|_, &mut end| end > now);
        let actual = Forecast::now(state, pool);
        let mut contents = actual.contents().clone();
        for (_, job) in self.starts.iter().take_while(|&&(start, _)| start <= now) {
            actual.occupy(state, *job, &self.reserved[job].placement, &mut contents);
        }
        (contents == *expected).then_some(self)
    }

    fn reserve_waiting(&mut self, state: &State, pool: PoolId) {
        let mut walk = state.walk(pool);
        while let Some(job) = walk.next(state) {
            if !self.reserved.contains_key(&job) {
                self.reserve(state, job);
            }
        }
    }

    /// Gives a job the earliest start at which it fits for all of its run time.
    fn reserve(&mut self, state: &State, job: JobId) {
        let need = state.job(job).gpus();
        let run_time = expected_run_time(state, job);
        let mut first = 0;
        while first < self.steps.len() {
            let start = self.steps[first].0;
            let end = start + run_time;
            // A step with too few free devices rules out every start whose window holds it.
            let last = self.steps.partition_point(|&(at, _)| at < end).max(first + 1);
            let short = (first..last).rev().find(|&step| self.steps[step].1.free_gpus() < need);
            if let Some(short) = short {
                first = short + 1;
                continue;
            }
            if let Some(placement) = self.fits(state, job, first, last) {
                self.occupy(state, job, start, end, &placement);
                self.starts.insert((start, job));
                self.reserved.insert(job, Reservation { start, end, run_time, placement });
                return;
            }
            first += 1;
        }
    }

    /// Where the job fits throughout the given steps.
    fn fits(&mut self, state: &State, job: JobId, first: usize, last: usize) -> Option<Placement> {
        let need = state.job(job).gpus();
        self.window.clone_from(&self.steps[first].1);
        for (_, contents) in &self.steps[first + 1..last] {
            self.window.intersect(contents);
            if self.window.free_gpus() < need {
                return None;
            }
        }
        self.scratch.load(&self.window);
        self.scratch.find(state, job)
    }

    fn occupy(&mut self, state: &State, job: JobId, from: Time, to: Time, placement: &Placement) {
        let (from, to) = (self.split(from), self.split(to));
        for (_, contents) in &mut self.steps[from..to] {
            self.scratch.occupy(state, job, placement, contents);
        }
    }

    /// The index of the step that begins at `at`, made if there is none.
    fn split(&mut self, at: Time) -> usize {
        match self.steps.binary_search_by_key(&at, |&(step, _)| step) {
            Ok(index) => index,
            Err(index) => {
                if at < Time::MAX {
                    let contents = self.steps[index - 1].1.clone();
                    self.steps.insert(index, (at, contents));
                }
                index
            }
        }
    }

    /// Starts the jobs whose time has come. False if one could not start.
    fn start_due(&mut self, draft: &mut Draft<'_>) -> bool {
        let mut as_planned = true;
        while let Some(&(start, job)) = self.starts.first() {
            if start > draft.now() {
                break;
            }
            self.starts.pop_first();
            let reservation = self.reserved.remove(&job).expect("every start has a reservation");
            match draft.place_on(job, reservation.placement) {
                Ok(()) => {
                    let attempt = draft.state().job(job).active().expect("just placed");
                    self.running.insert(attempt, reservation.end);
                    // Whoever was planned before it did not see it there, and would now.
                    let place = |job: JobId| (draft.state().job(job).spec.submit, job);
                    self.passed |= self.reserved.keys().any(|&other| place(other) < place(job));
                }
                Err(reason) => {
                    draft.refuse(job, reason);
                    as_planned = false;
                }
            }
        }
        as_planned
    }

    fn announce(&self, draft: &mut Draft<'_>) {
        for (&job, reservation) in &self.reserved {
            draft.refuse(job, Reason::Planned { at: reservation.start });
        }
        if let Some(&(start, _)) = self.starts.first()
            && start < Time::MAX
        {
            draft.wake_at(start);
        }
    }
}

/// What a waiting job is expected to take; at least an instant, since it needs its devices then.
fn expected_run_time(state: &State, job: JobId) -> Span {
    state.job(job).left_at_start().unwrap_or(Span::MAX).max(Span(1))
}
