//! Figures of a set of jobs on how much longer they ran than alone, and on the limits they set.

use super::{Better, Scalar, Scope, Spread, Value, Valued, scalar_figures};
use crate::{Distribution, JobRecord};
use deepshare_model::Span;

/// How much longer finished jobs ran than alone, against the limits they set (TensorShare's GPU
/// SLA: Future Generation Computer Systems 181, 108413). The registry below has the definitions.
///
/// Two clocks: the time that a job ran, which is TensorShare's, and the same with its waiting after
/// preemptions and failures. Jobs without work have no ratio and are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitFigures {
    /// Finished jobs that set a limit.
    pub limited: Limited,
    /// Those of them that ran beside another.
    pub limited_sharing: Limited,
    /// Time that a job ran over its solo work.
    pub execution: Option<Distribution>,
    /// The same of jobs that ran beside another.
    pub execution_sharing: Option<Distribution>,
    /// End less first start over solo work.
    pub requeueing: Option<Distribution>,
    /// The same of jobs that ran beside another.
    pub requeueing_sharing: Option<Distribution>,
}

/// Jobs with a limit, and those beyond it by each clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limited {
    /// Jobs.
    pub jobs: u64,
    /// Those that ran longer.
    pub violated: u64,
    /// Those that took longer from first start to end.
    pub violated_requeueing: u64,
}

impl Limited {
    fn add(&mut self, job: &JobRecord) {
        let beyond = |span: Option<Span>| u64::from(span.is_some_and(|span| is_beyond(job, span)));
        self.jobs += 1;
        self.violated += beyond(job.ran());
        self.violated_requeueing += beyond(job.ran_or_requeued());
    }

    fn share(self, part: u64) -> Value {
        Value::of((self.jobs > 0).then(|| part as f64 / self.jobs as f64))
    }

    /// The count, if there are such jobs.
    fn count(self, part: u64) -> Value {
        if self.jobs > 0 { Value::Count(part) } else { Value::Missing }
    }
}

/// Whether a time is over the job's limit by more than a millionth of it. Less is rounding: times
/// are whole microseconds.
fn is_beyond(job: &JobRecord, span: Span) -> bool {
    let limit = u128::from(job.duration.0) * u128::from(job.slowdown_limit_milli);
    u128::from(span.0) * 1_000 * 1_000_000 > limit * 1_000_001
}

/// Values gathered job by job, before they are sorted.
#[derive(Default)]
pub(super) struct LimitGathering {
    limited: Limited,
    limited_sharing: Limited,
    execution: Vec<f64>,
    execution_sharing: Vec<f64>,
    requeueing: Vec<f64>,
    requeueing_sharing: Vec<f64>,
}

impl LimitGathering {
    /// Counts a finished job.
    pub(super) fn add_finished(&mut self, job: &JobRecord) {
        if job.duration.is_zero() {
            return;
        }
        let (execution, requeueing) = (job.execution_ratio(), job.requeueing_ratio());
        self.execution.extend(execution);
        self.requeueing.extend(requeueing);
        let shared = !job.shared.is_zero();
        if shared {
            self.execution_sharing.extend(execution);
            self.requeueing_sharing.extend(requeueing);
        }
        if job.slowdown_limit_milli > 0 {
            self.limited.add(job);
            if shared {
                self.limited_sharing.add(job);
            }
        }
    }

    pub(super) fn finish(self) -> LimitFigures {
        LimitFigures {
            limited: self.limited,
            limited_sharing: self.limited_sharing,
            execution: Distribution::of_ratios(self.execution),
            execution_sharing: Distribution::of_ratios(self.execution_sharing),
            requeueing: Distribution::of_ratios(self.requeueing),
            requeueing_sharing: Distribution::of_ratios(self.requeueing_sharing),
        }
    }
}

impl LimitFigures {
    /// Every figure with its value, in the order of the registry.
    pub(super) fn figures(&self) -> Vec<Valued> {
        let mut figures = scalar_figures(SCALARS, Scope::Jobs, self);
        figures.extend(SPREADS.iter().flat_map(|spread| spread.figures(Scope::Jobs, self)));
        figures
    }
}

fn increase(of: &Option<Distribution>) -> Value {
    Value::of(of.map(|ratios| ratios.mean - 1.0))
}

const SCALARS: &[Scalar<LimitFigures>] = &[
    Scalar {
        name: "limited_jobs",
        unit: "jobs",
        better: Better::Neither,
        definition: "finished jobs that set a limit on execution_ratio",
        get: |f| f.limited.count(f.limited.jobs),
    },
    Scalar {
        name: "limit_violations",
        unit: "jobs",
        better: Better::Lower,
        definition: "those whose execution_ratio is over their limit by more than a millionth of \
                     it",
        get: |f| f.limited.count(f.limited.violated),
    },
    Scalar {
        name: "limit_violation_share",
        unit: "1",
        better: Better::Lower,
        definition: "limit_violations / limited_jobs",
        get: |f| f.limited.share(f.limited.violated),
    },
    Scalar {
        name: "limit_violation_share_requeueing",
        unit: "1",
        better: Better::Lower,
        definition: "the same by requeueing_ratio",
        get: |f| f.limited.share(f.limited.violated_requeueing),
    },
    Scalar {
        name: "limited_sharing_jobs",
        unit: "jobs",
        better: Better::Neither,
        definition: "limited_jobs that ran beside another for any time",
        get: |f| f.limited.count(f.limited_sharing.jobs),
    },
    Scalar {
        name: "limit_violations_sharing",
        unit: "jobs",
        better: Better::Lower,
        definition: "those whose execution_ratio is over their limit by more than a millionth of \
                     it",
        get: |f| f.limited_sharing.count(f.limited_sharing.violated),
    },
    Scalar {
        name: "limit_violation_share_sharing",
        unit: "1",
        better: Better::Lower,
        definition: "limit_violations_sharing / limited_sharing_jobs",
        get: |f| f.limited_sharing.share(f.limited_sharing.violated),
    },
    Scalar {
        name: "limit_violation_share_sharing_requeueing",
        unit: "1",
        better: Better::Lower,
        definition: "the same by requeueing_ratio",
        get: |f| f.limited_sharing.share(f.limited_sharing.violated_requeueing),
    },
    Scalar {
        name: "jct_increase_mean",
        unit: "1",
        better: Better::Lower,
        definition: "execution_ratio_mean less 1",
        get: |f| increase(&f.execution),
    },
    Scalar {
        name: "jct_increase_sharing_mean",
        unit: "1",
        better: Better::Lower,
        definition: "execution_ratio_sharing_mean less 1",
        get: |f| increase(&f.execution_sharing),
    },
];

const SPREADS: &[Spread<LimitFigures>] = &[
    Spread {
        stem: "execution_ratio",
        unit: "1",
        better: Better::Lower,
        definition: "time a job ran (JCT less all waiting) / its duration, over finished jobs of \
                     any duration",
        get: |f| &f.execution,
    },
    Spread {
        stem: "execution_ratio_sharing",
        unit: "1",
        better: Better::Lower,
        definition: "the same over those that ran beside another for any time",
        get: |f| &f.execution_sharing,
    },
    Spread {
        stem: "requeueing_ratio",
        unit: "1",
        better: Better::Lower,
        definition: "(end less first start) / duration, over finished jobs of any duration",
        get: |f| &f.requeueing,
    },
    Spread {
        stem: "requeueing_ratio_sharing",
        unit: "1",
        better: Better::Lower,
        definition: "the same over those that ran beside another for any time",
        get: |f| &f.requeueing_sharing,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobFigures;
    use crate::sample::{records, shared_records};
    use deepshare_model::Time;

    fn value(jobs: &[JobRecord], name: &str) -> Option<f64> {
        let figures = JobFigures::of(jobs).figures();
        let (_, value) = figures.iter().find(|(figure, _)| figure.name == name).unwrap();
        value.as_f64()
    }

    /// The shared sample: job 0 runs 108 s for 100, job 1 runs 100 s for 50 within 105.5 s; and a
    /// third that runs 60 s for 50 alone. Limits are 1.08, 2.0 and 1.1.
    fn limited() -> Vec<JobRecord> {
        let mut jobs = shared_records();
        jobs[2].end = Some(Time::from_secs(180));
        jobs[2].duration = Span::from_secs(50);
        for (job, limit) in jobs.iter_mut().zip([1_080, 2_000, 1_100]) {
            job.slowdown_limit_milli = limit;
        }
        jobs
    }

    #[test]
    fn figures_of_three_jobs_are_those_worked_out_by_hand() {
        let jobs = limited();
        let expected = [
            ("limited_jobs", 3.0),
            ("limit_violations", 1.0),
            ("limit_violation_share", 1.0 / 3.0),
            ("limit_violation_share_requeueing", 2.0 / 3.0),
            ("limited_sharing_jobs", 2.0),
            ("limit_violations_sharing", 0.0),
            ("limit_violation_share_sharing", 0.0),
            ("limit_violation_share_sharing_requeueing", 0.5),
            ("jct_increase_mean", (1.08 + 1.2 + 2.0) / 3.0 - 1.0),
            ("jct_increase_sharing_mean", (1.08 + 2.0) / 2.0 - 1.0),
            ("execution_ratio_max", 2.0),
            ("execution_ratio_p50", 1.2),
            ("requeueing_ratio_max", 105.5 / 50.0),
            ("requeueing_ratio_sharing_mean", (1.08 + 2.11) / 2.0),
        ];
        for (name, expected) in expected {
            let value = value(&jobs, name).unwrap();
            assert!((value - expected).abs() < 1e-12, "{name}: {value}, not {expected}");
        }
    }

    #[test]
    fn a_limit_is_violated_beyond_a_millionth_of_it() {
        let mut jobs = vec![limited().swap_remove(0)];
        for (end, violations) in [(108_000_108, 0.0), (108_000_109, 1.0)] {
            jobs[0].end = Some(Time(end));
            assert_eq!(value(&jobs, "limit_violations"), Some(violations), "{end}");
        }
    }

    #[test]
    fn nothing_is_said_of_limits_where_nobody_set_one_or_finished() {
        assert_eq!(value(&records(), "limited_jobs"), None);
        assert_eq!(value(&records(), "limit_violation_share"), None);
        assert_eq!(value(&records(), "execution_ratio_max"), Some(2.0));
        assert_eq!(value(&records(), "execution_ratio_sharing_max"), None);
        let mut jobs = limited();
        jobs.iter_mut().for_each(|job| job.end = None);
        assert_eq!(value(&jobs, "limited_jobs"), None);
        assert_eq!(value(&jobs, "jct_increase_mean"), None);
    }

    #[test]
    fn limits_of_jobs_that_never_shared_have_no_share_among_sharers() {
        let mut jobs = limited();
        jobs.iter_mut().for_each(|job| job.shared = Span::ZERO);
        assert_eq!(value(&jobs, "limited_jobs"), Some(3.0));
        assert_eq!(value(&jobs, "limited_sharing_jobs"), Some(0.0));
        assert_eq!(value(&jobs, "limit_violation_share_sharing"), None);
    }
}
