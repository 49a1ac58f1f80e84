//! Figures of a set of jobs: all of a run's, or a tenant's, a class's, a size's.

use super::limit_figures::LimitGathering;
use super::shared_job_figures::SharedGathering;
use super::{
    Better, LimitFigures, Scalar, Scope, SharedJobFigures, Spread, Value, Valued, scalar_figures,
};
use crate::job_record::signed;
use crate::{Distribution, JobRecord};
use deepshare_model::{GpuTime, Span, Time};

/// The least duration that [`JobFigures::slowdown`] divides by.
const SLOWDOWN_FLOOR: Span = Span::SECOND;
/// The least duration that [`JobFigures::bounded_slowdown`] divides by.
const BOUNDED_SLOWDOWN_FLOOR: Span = Span::from_secs(10);

/// Figures of a set of jobs. Distributions are over its finished jobs, counts and sums over all
/// of it. The registry below has the definitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFigures {
    /// Jobs in the set.
    pub jobs: u64,
    /// Those that ended after they had started.
    pub finished: u64,
    /// Those that this cluster can never run.
    pub refused: u64,
    /// Those that were withdrawn, before they ever started or with work left.
    pub cancelled: u64,
    /// End less submission.
    pub jct: Option<Distribution>,
    /// All waiting.
    pub queueing_delay: Option<Distribution>,
    /// Waiting before the first start.
    pub first_wait: Option<Distribution>,
    /// End less submission less solo work.
    pub jct_minus_duration: Option<Distribution>,
    /// JCT over solo work, of at least 1 s.
    pub slowdown: Option<Distribution>,
    /// JCT over solo work, of at least 10 s, and at least 1.
    pub bounded_slowdown: Option<Distribution>,
    /// Solo work: the least JCT of each job.
    pub duration: Option<Distribution>,
    /// How often a policy took each job's GPUs away.
    pub preemptions_per_job: Option<Distribution>,
    /// Last end less first submission.
    pub makespan: Option<Span>,
    /// GPUs taken away by a policy.
    pub preemptions: u64,
    /// GPUs taken away by a failed node.
    pub restarts_by_failure: u64,
    /// Sum of redone solo work, in microseconds.
    pub work_lost_micros: u128,
    /// The same times the GPUs of each job.
    pub work_lost_gpu: GpuTime,
    /// Sum of time spent restarting, in microseconds.
    pub restart_overhead_micros: u128,
    /// The same times the GPUs of each job.
    pub restart_overhead_gpu: GpuTime,
    /// Solo work of finished jobs times their GPUs.
    pub work_done_gpu: GpuTime,
    /// What sharing devices did to the jobs.
    pub sharing: SharedJobFigures,
    /// How much longer they ran than alone, and the limits they set.
    pub limits: LimitFigures,
}

impl JobFigures {
    /// The figures of `jobs`. They do not depend on the order.
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a JobRecord>) -> JobFigures {
        let mut gathering = Gathering::default();
        for job in jobs {
            gathering.add(job);
        }
        gathering.finish()
    }

    /// Every figure with its value, in the order of the registry.
    pub fn figures(&self) -> Vec<Valued> {
        let mut figures = scalar_figures(COUNTS, Scope::Jobs, self);
        figures.extend(SPREADS.iter().flat_map(|spread| spread.figures(Scope::Jobs, self)));
        figures.extend(scalar_figures(SUMS, Scope::Jobs, self));
        figures.extend(self.sharing.figures());
        figures.extend(self.limits.figures());
        figures
    }
}

/// Values gathered job by job, before they are sorted.
#[derive(Default)]
struct Gathering {
    sums: JobFigures,
    jct: Vec<i64>,
    waited: Vec<i64>,
    first_wait: Vec<i64>,
    jct_minus_duration: Vec<i64>,
    slowdown: Vec<f64>,
    bounded_slowdown: Vec<f64>,
    duration: Vec<i64>,
    preemptions: Vec<f64>,
    sharing: SharedGathering,
    limits: LimitGathering,
    first_submit: Option<Time>,
    last_end: Option<Time>,
}

impl Gathering {
    fn add(&mut self, job: &JobRecord) {
        let sums = &mut self.sums;
        sums.jobs += 1;
        sums.refused += u64::from(job.refused);
        sums.preemptions += u64::from(job.preemptions);
        sums.restarts_by_failure += u64::from(job.restarts_by_failure);
        sums.work_lost_micros += u128::from(job.work_lost.0);
        sums.work_lost_gpu += job.work_lost.on(job.gpus);
        sums.restart_overhead_micros += u128::from(job.restart_overhead.0);
        sums.restart_overhead_gpu += job.restart_overhead.on(job.gpus);
        self.sharing.add(job);
        self.first_submit = Some(self.first_submit.map_or(job.submit, |at| at.min(job.submit)));
        if job.is_cancelled() {
            sums.cancelled += 1;
            return;
        }
        let (Some(end), Some(jct)) = (job.end, job.jct()) else { return };
        self.sharing.add_finished(job);
        self.limits.add_finished(job);
        sums.finished += 1;
        sums.work_done_gpu += job.duration.on(job.gpus);
        self.last_end = self.last_end.max(Some(end));
        self.jct.push(signed(jct));
        self.waited.push(signed(job.waited));
        self.first_wait.extend(job.first_wait().map(signed));
        self.jct_minus_duration.extend(job.jct_minus_duration_micros());
        self.slowdown.extend(job.jct_over_duration(SLOWDOWN_FLOOR));
        let bounded = job.jct_over_duration(BOUNDED_SLOWDOWN_FLOOR);
        self.bounded_slowdown.extend(bounded.map(|ratio| ratio.max(1.0)));
        self.duration.push(signed(job.duration));
        self.preemptions.push(f64::from(job.preemptions));
    }

    fn finish(self) -> JobFigures {
        let span = self.last_end.zip(self.first_submit);
        JobFigures {
            jct: Distribution::of_micros(self.jct),
            queueing_delay: Distribution::of_micros(self.waited),
            first_wait: Distribution::of_micros(self.first_wait),
            jct_minus_duration: Distribution::of_micros(self.jct_minus_duration),
            slowdown: Distribution::of_ratios(self.slowdown),
            bounded_slowdown: Distribution::of_ratios(self.bounded_slowdown),
            duration: Distribution::of_micros(self.duration),
            preemptions_per_job: Distribution::of_ratios(self.preemptions),
            sharing: self.sharing.finish(),
            limits: self.limits.finish(),
            makespan: span.map(|(end, submit)| end.saturating_since(submit)),
            ..self.sums
        }
    }
}

const COUNTS: &[Scalar<JobFigures>] = &[
    Scalar {
        name: "jobs",
        unit: "jobs",
        better: Better::Neither,
        definition: "jobs in the set",
        get: |f| Value::Count(f.jobs),
    },
    Scalar {
        name: "finished",
        unit: "jobs",
        better: Better::Neither,
        definition: "jobs that ended after they had started; all distributions are over these",
        get: |f| Value::Count(f.finished),
    },
    Scalar {
        name: "unfinished",
        unit: "jobs",
        better: Better::Lower,
        definition: "jobs neither ended nor refused nor cancelled when the run stopped; if not 0, distributions \
                     leave out the jobs that fared worst",
        get: |f| Value::Count(f.jobs.saturating_sub(f.finished + f.refused + f.cancelled)),
    },
    Scalar {
        name: "refused",
        unit: "jobs",
        better: Better::Neither,
        definition: "jobs that this cluster can never run",
        get: |f| Value::Count(f.refused),
    },
    Scalar {
        name: "cancelled",
        unit: "jobs",
        better: Better::Neither,
        definition: "jobs withdrawn before they ever started or with work left; in no distribution",
        get: |f| Value::Count(f.cancelled),
    },
];

const SPREADS: &[Spread<JobFigures>] = &[
    Spread {
        stem: "jct",
        unit: "s",
        better: Better::Lower,
        definition: "job completion time: end less submission",
        get: |f| &f.jct,
    },
    Spread {
        stem: "queueing_delay",
        unit: "s",
        better: Better::Lower,
        definition: "all time in a queue: to the first start and again after every preemption or \
                     failure",
        get: |f| &f.queueing_delay,
    },
    Spread {
        stem: "first_wait",
        unit: "s",
        better: Better::Lower,
        definition: "first start less submission",
        get: |f| &f.first_wait,
    },
    Spread {
        stem: "jct_minus_duration",
        unit: "s",
        better: Better::Lower,
        definition: "JCT less duration: waiting, redone work, restart overhead and slowed running \
                     together",
        get: |f| &f.jct_minus_duration,
    },
    Spread {
        stem: "slowdown",
        unit: "1",
        better: Better::Lower,
        definition: "JCT / max(duration, 1 s)",
        get: |f| &f.slowdown,
    },
    Spread {
        stem: "bounded_slowdown",
        unit: "1",
        better: Better::Lower,
        definition: "max(1, JCT / max(duration, 10 s)), after Feitelson et al. with tau = 10 s",
        get: |f| &f.bounded_slowdown,
    },
    Spread {
        stem: "duration",
        unit: "s",
        better: Better::Neither,
        definition: "solo work: what the job takes alone and undisturbed, and the least its JCT \
                     can be",
        get: |f| &f.duration,
    },
    Spread {
        stem: "preemptions_per_job",
        unit: "times",
        better: Better::Lower,
        definition: "times a policy took a job's GPUs away",
        get: |f| &f.preemptions_per_job,
    },
];

const SUMS: &[Scalar<JobFigures>] = &[
    Scalar {
        name: "makespan_s",
        unit: "s",
        better: Better::Lower,
        definition: "last end less first submission",
        get: |f| Value::of(f.makespan.map(Span::as_secs_f64)),
    },
    Scalar {
        name: "preemptions",
        unit: "times",
        better: Better::Lower,
        definition: "times a policy took a running job's GPUs away",
        get: |f| Value::Count(f.preemptions),
    },
    Scalar {
        name: "restarts_by_failure",
        unit: "times",
        better: Better::Neither,
        definition: "times a failed node took a running job's GPUs away",
        get: |f| Value::Count(f.restarts_by_failure),
    },
    Scalar {
        name: "work_lost_s",
        unit: "s",
        better: Better::Lower,
        definition: "sum of solo work done again because it came after the last checkpoint",
        get: |f| Value::Real(f.work_lost_micros as f64 / 1e6),
    },
    Scalar {
        name: "work_lost_gpu_s",
        unit: "GPU-s",
        better: Better::Lower,
        definition: "the same, each job's times its GPUs",
        get: |f| Value::Real(f.work_lost_gpu.as_gpu_secs()),
    },
    Scalar {
        name: "restart_overhead_s",
        unit: "s",
        better: Better::Lower,
        definition: "sum of time spent on GPUs loading, restoring or warming up",
        get: |f| Value::Real(f.restart_overhead_micros as f64 / 1e6),
    },
    Scalar {
        name: "restart_overhead_gpu_s",
        unit: "GPU-s",
        better: Better::Lower,
        definition: "the same, each job's times its GPUs",
        get: |f| Value::Real(f.restart_overhead_gpu.as_gpu_secs()),
    },
    Scalar {
        name: "work_done_gpu_s",
        unit: "GPU-s",
        better: Better::Neither,
        definition: "sum of duration times GPUs over finished jobs",
        get: |f| Value::Real(f.work_done_gpu.as_gpu_secs()),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::records;

    fn value(jobs: &[JobRecord], name: &str) -> Option<f64> {
        let figures = JobFigures::of(jobs).figures();
        let (_, value) = figures.iter().find(|(figure, _)| figure.name == name).unwrap();
        value.as_f64()
    }

    #[test]
    fn figures_of_the_sample_are_those_worked_out_by_hand() {
        let jobs = records();
        // JCT 100 and 125.5; job 1 waits 20 before its first start and 25.5 in all.
        let expected = [
            ("jobs", 4.0),
            ("finished", 2.0),
            ("unfinished", 1.0),
            ("refused", 1.0),
            ("jct_mean_s", 112.75),
            ("jct_max_s", 125.5),
            ("queueing_delay_mean_s", 12.75),
            ("first_wait_mean_s", 10.0),
            ("jct_minus_duration_mean_s", 37.75),
            ("slowdown_mean", (1.0 + 2.51) / 2.0),
            ("duration_p50_s", 75.0),
            ("makespan_s", 135.5),
            ("preemptions", 1.0),
            ("work_lost_s", 10.0),
            ("work_lost_gpu_s", 20.0),
            ("restart_overhead_gpu_s", 40.0),
            ("work_done_gpu_s", 900.0),
        ];
        for (name, expected) in expected {
            assert_eq!(value(&jobs, name), Some(expected), "{name}");
        }
    }

    #[test]
    fn slowdowns_of_tiny_jobs_are_bounded_each_in_its_way() {
        let mut jobs = records();
        jobs.truncate(1);
        jobs[0].duration = Span(500_000);
        jobs[0].end = Some(Time::from_secs(2));
        assert_eq!(
            value(&jobs, "slowdown_mean"),
            Some(2.0),
            "divides by a second, not half of one"
        );
        assert_eq!(value(&jobs, "bounded_slowdown_mean"), Some(1.0), "2 s in 10 s is no speed-up");
    }

    #[test]
    fn means_over_no_finished_job_are_missing_rather_than_zero() {
        let jobs = &records()[2..];
        assert_eq!(value(jobs, "jct_mean_s"), None);
        assert_eq!(value(jobs, "makespan_s"), None);
        assert_eq!(value(jobs, "finished"), Some(0.0));
    }

    #[test]
    fn a_job_withdrawn_before_its_start_is_counted_and_left_out_of_all_else() {
        let mut jobs = records();
        jobs[2].first_start = None;
        jobs[2].end = Some(Time::from_secs(9_000));
        assert_eq!(value(&jobs, "cancelled"), Some(1.0));
        assert_eq!(value(&jobs, "finished"), Some(2.0));
        assert_eq!(value(&jobs, "unfinished"), Some(0.0));
        assert_eq!(value(&jobs, "jct_mean_s"), Some(112.75));
        assert_eq!(value(&jobs, "makespan_s"), Some(135.5));
        assert_eq!(value(&jobs, "preemptions_per_job_max"), Some(1.0));
    }

    #[test]
    fn the_order_of_jobs_does_not_matter() {
        let mut jobs = records();
        let figures = JobFigures::of(&jobs);
        jobs.reverse();
        assert_eq!(JobFigures::of(&jobs), figures);
    }
}
