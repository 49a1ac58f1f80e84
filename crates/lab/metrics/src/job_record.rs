//! What became of one job: the raw material of every figure.

use deepshare_model::{
    Class, JobId, Outcome, PoolId, ProfileClassId, Span, TenantId, Time, UserId,
};
use serde::{Deserialize, Serialize};

/// One job's fate in a run. Records of a run are kept in trace order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Its number.
    pub job: JobId,
    /// Who paid.
    pub tenant: TenantId,
    /// Who submitted.
    pub user: UserId,
    /// The pool whose GPUs it could use. With one pool for everybody, all records name that.
    pub pool: PoolId,
    /// Guaranteed or best-effort.
    pub class: Class,
    /// Size of the gang.
    pub gpus: u32,
    /// Its hardware profile's class; `None` if the policy knew none.
    #[serde(default)]
    pub profile: Option<ProfileClassId>,
    /// The most that its running time may be over its solo work, thousandths; 0: no limit of its
    /// own.
    #[serde(default)]
    pub slowdown_limit_milli: u32,
    /// When it was submitted.
    pub submit: Time,
    /// Its solo work: how long it runs alone and undisturbed.
    pub duration: Span,
    /// When it first ran; `None` if it never did.
    pub first_start: Option<Time>,
    /// When it ended for good; `None` if it was still waiting or running when the run stopped.
    pub end: Option<Time>,
    /// All its time in a queue: to its first start and after every preemption or failure.
    pub waited: Span,
    /// How often a policy took its GPUs away.
    pub preemptions: u32,
    /// How often a failed node took its GPUs away.
    pub restarts_by_failure: u32,
    /// Time spent on its GPUs beside another job.
    pub shared: Span,
    /// Time of that lost to the other job: time beside it less solo work done in it.
    pub slowed: Span,
    /// Jobs that really ran on its GPUs beside it, in the order they met, each once.
    #[serde(default)]
    pub beside: Vec<JobId>,
    /// Solo work done twice because it came after the last checkpoint.
    pub work_lost: Span,
    /// Time spent on its GPUs loading, restoring or warming up rather than working.
    pub restart_overhead: Span,
    /// How it ended in the trace.
    pub outcome: Outcome,
    /// True if this cluster can never run it (its gang fits no pool it may use).
    pub refused: bool,
}

impl JobRecord {
    /// True if its owner withdrew it, before it ever started or with work left. A job that the
    /// trace says was cancelled, but that ran as long as it had run there, is none of these.
    pub fn is_cancelled(&self) -> bool {
        let Some(jct) = self.jct() else { return false };
        // What a job that did all its work has taken at least.
        let whole =
            self.waited + self.restart_overhead + self.work_lost + self.slowed + self.duration;
        self.first_start.is_none() || (self.outcome == Outcome::Cancelled && jct < whole)
    }

    /// Job completion time: end less submission. `None` before the end.
    pub fn jct(&self) -> Option<Span> {
        self.end.map(|end| end.saturating_since(self.submit))
    }

    /// Waiting up to the first start only. `None` if it never started.
    pub fn first_wait(&self) -> Option<Span> {
        self.first_start.map(|start| start.saturating_since(self.submit))
    }

    /// Time that it ran, restarts and work done again included: JCT less all waiting. `None` if it
    /// did not finish.
    pub fn ran(&self) -> Option<Span> {
        let jct = self.jct().filter(|_| !self.is_cancelled());
        jct.map(|jct| jct.saturating_sub(self.waited))
    }

    /// As [`ran`](Self::ran) with the waiting after preemptions and failures: end less first start.
    pub fn ran_or_requeued(&self) -> Option<Span> {
        let (end, start) = self.ran().and(self.end).zip(self.first_start)?;
        Some(end.saturating_since(start))
    }

    /// Time that it ran over its solo work. `None` if it did not finish or had nothing to do.
    pub fn execution_ratio(&self) -> Option<f64> {
        self.over_duration(self.ran()?)
    }

    /// As [`execution_ratio`](Self::execution_ratio) with the waiting after preemptions and
    /// failures.
    pub fn requeueing_ratio(&self) -> Option<f64> {
        self.over_duration(self.ran_or_requeued()?)
    }

    fn over_duration(&self, span: Span) -> Option<f64> {
        (!self.duration.is_zero()).then(|| span.0 as f64 / self.duration.0 as f64)
    }

    /// JCT less duration in microseconds: waiting, redone work, overhead and slow running
    /// together. Negative only if the job was ended with work left. `None` before the end.
    pub fn jct_minus_duration_micros(&self) -> Option<i64> {
        self.jct().map(|jct| signed(jct).saturating_sub(signed(self.duration)))
    }

    /// JCT over `max(duration, floor)`; with a positive floor it is defined for every ended job.
    pub fn jct_over_duration(&self, floor: Span) -> Option<f64> {
        let least = self.duration.max(floor);
        self.jct().map(|jct| jct.0 as f64 / least.0 as f64)
    }
}

/// Microseconds as a signed number, so that differences of spans exist.
pub(crate) fn signed(span: Span) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::shared_records;

    #[test]
    fn a_slowed_job_that_did_all_its_work_is_not_withdrawn_and_one_with_work_left_is() {
        let mut job = shared_records().remove(1);
        job.outcome = Outcome::Cancelled;
        // 25.5 s waited, 50 of work, 10 done again, 20 of restart, and 20 lost to another job.
        assert_eq!(job.jct(), Some(Span(125_500_000)));
        assert!(!job.is_cancelled());
        // Alone it would have been done long before, but it was not alone.
        job.end = Some(Time(135_000_000));
        assert!(job.is_cancelled());
    }

    #[test]
    fn the_two_clocks_of_a_job_differ_by_what_it_waits_after_its_first_start() {
        let job = shared_records().remove(1);
        // 50 s of work, 10 done again, 20 of restart and 20 lost to another job.
        assert_eq!((job.ran(), job.execution_ratio()), (Some(Span::from_secs(100)), Some(2.0)));
        // From 30 s to 135.5 s, of which 5.5 s in the queue.
        assert_eq!(job.requeueing_ratio(), Some(105.5 / 50.0));
    }

    #[test]
    fn a_job_that_did_not_finish_or_had_nothing_to_do_has_no_ratio() {
        let mut job = shared_records().remove(0);
        job.end = None;
        assert_eq!((job.execution_ratio(), job.requeueing_ratio()), (None, None));
        let mut idle = shared_records().remove(0);
        idle.duration = Span::ZERO;
        assert_eq!((idle.execution_ratio(), idle.requeueing_ratio()), (None, None));
        let mut withdrawn = shared_records().remove(1);
        withdrawn.outcome = Outcome::Cancelled;
        withdrawn.end = Some(Time::from_secs(100));
        assert_eq!(withdrawn.execution_ratio(), None);
    }
}
