//! Figures of a set of jobs on what sharing devices did to them.

use super::{Better, Scalar, Scope, Spread, Value, Valued, ratio, scalar_figures};
use crate::{Distribution, JobRecord};
use deepshare_model::{GpuTime, Span};

/// Jobs that shared for less say nothing of a job's slowdown: whole microseconds are too coarse.
const LEAST_SHARED: Span = Span::SECOND;

/// What sharing devices did to a set of jobs. Everything is missing if none of them shared. The
/// registry below has the definitions.
///
/// GPU time is that of jobs here, so a device with two jobs counts for both of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedJobFigures {
    /// Jobs that ran beside another for any time.
    pub jobs: u64,
    /// Time beside another job times GPUs.
    pub shared_gpu: GpuTime,
    /// Time of that lost to the other job times GPUs.
    pub slowed_gpu: GpuTime,
    /// Of finished jobs: time on GPUs times GPUs.
    pub ran_gpu: GpuTime,
    /// Of finished jobs: time beside another job times GPUs.
    pub finished_shared_gpu: GpuTime,
    /// Of finished jobs that shared: time on GPUs times GPUs.
    pub sharers_ran_gpu: GpuTime,
    /// Of finished jobs that shared: time lost to other jobs times GPUs.
    pub sharers_slowed_gpu: GpuTime,
    /// Of finished jobs: time beside another over solo work done in it.
    pub while_shared: Option<Distribution>,
    /// Of finished jobs: time on GPUs over what it would have been alone.
    pub over_life: Option<Distribution>,
}

/// Values gathered job by job, before they are sorted.
#[derive(Default)]
pub(super) struct SharedGathering {
    sums: SharedJobFigures,
    while_shared: Vec<f64>,
    over_life: Vec<f64>,
}

impl SharedGathering {
    /// Counts any job.
    pub(super) fn add(&mut self, job: &JobRecord) {
        self.sums.jobs += u64::from(!job.shared.is_zero());
        self.sums.shared_gpu += job.shared.on(job.gpus);
        self.sums.slowed_gpu += job.slowed.on(job.gpus);
    }

    /// Counts a finished job, besides.
    pub(super) fn add_finished(&mut self, job: &JobRecord) {
        let sums = &mut self.sums;
        let alone = job.duration + job.work_lost + job.restart_overhead;
        let ran = alone + job.slowed;
        sums.ran_gpu += ran.on(job.gpus);
        sums.finished_shared_gpu += job.shared.on(job.gpus);
        if job.shared.is_zero() {
            return;
        }
        sums.sharers_ran_gpu += ran.on(job.gpus);
        sums.sharers_slowed_gpu += job.slowed.on(job.gpus);
        if job.shared < LEAST_SHARED {
            return;
        }
        self.while_shared.extend(over(job.shared, job.shared.saturating_sub(job.slowed)));
        self.over_life.extend(over(ran, alone));
    }

    pub(super) fn finish(self) -> SharedJobFigures {
        SharedJobFigures {
            while_shared: Distribution::of_ratios(self.while_shared),
            over_life: Distribution::of_ratios(self.over_life),
            ..self.sums
        }
    }
}

fn over(with: Span, alone: Span) -> Option<f64> {
    (!alone.is_zero()).then(|| with.0 as f64 / alone.0 as f64)
}

impl SharedJobFigures {
    /// Every figure with its value, in the order of the registry.
    pub(super) fn figures(&self) -> Vec<Valued> {
        let mut figures = scalar_figures(SUMS, Scope::Jobs, self);
        figures.extend(SPREADS.iter().flat_map(|spread| spread.figures(Scope::Jobs, self)));
        figures
    }

    /// Time beside another job over the solo work done in it, each times GPUs: 1.08 is 8 % slower.
    pub fn while_shared_weighted(&self) -> Option<f64> {
        let alone = GpuTime(self.shared_gpu.0.saturating_sub(self.slowed_gpu.0));
        ratio(self.shared_gpu, alone).as_f64().filter(|_| self.jobs > 0)
    }

    fn over_life_weighted(&self) -> Value {
        let alone = self.sharers_ran_gpu.0.saturating_sub(self.sharers_slowed_gpu.0);
        ratio(self.sharers_ran_gpu, GpuTime(alone))
    }

    /// The value, if any job shared.
    fn if_any(&self, value: Value) -> Value {
        if self.jobs > 0 { value } else { Value::Missing }
    }
}

const SUMS: &[Scalar<SharedJobFigures>] = &[
    Scalar {
        name: "sharing_jobs",
        unit: "jobs",
        better: Better::Neither,
        definition: "jobs that ran beside another for any time",
        get: |f| f.if_any(Value::Count(f.jobs)),
    },
    Scalar {
        name: "jobs_shared_gpu_s",
        unit: "GPU-s",
        better: Better::Neither,
        definition: "sum of each job's time beside another times its GPUs; a GPU with two jobs \
                     counts for both",
        get: |f| f.if_any(Value::Real(f.shared_gpu.as_gpu_secs())),
    },
    Scalar {
        name: "jobs_slowed_gpu_s",
        unit: "GPU-s",
        better: Better::Lower,
        definition: "the same of the time that was lost to the other job: time beside it less solo \
                     work done in it",
        get: |f| f.if_any(Value::Real(f.slowed_gpu.as_gpu_secs())),
    },
    Scalar {
        name: "jobs_shared_of_run_time",
        unit: "1",
        better: Better::Neither,
        definition: "of finished jobs: time beside another / time on GPUs, each times GPUs",
        get: |f| f.if_any(ratio(f.finished_shared_gpu, f.ran_gpu)),
    },
    Scalar {
        name: "slowdown_while_shared_weighted",
        unit: "1",
        better: Better::Lower,
        definition: "time beside another job / solo work done in it, each summed over all jobs \
                     times their GPUs: 1.08 is 8 % slower than alone",
        get: |f| Value::of(f.while_shared_weighted()),
    },
    Scalar {
        name: "slowdown_over_life_weighted",
        unit: "1",
        better: Better::Lower,
        definition: "of finished jobs that shared: time on GPUs / (that less the time lost to \
                     other jobs), each summed times GPUs",
        get: |f| f.if_any(f.over_life_weighted()),
    },
];

const SPREADS: &[Spread<SharedJobFigures>] = &[
    Spread {
        stem: "slowdown_while_shared",
        unit: "1",
        better: Better::Lower,
        definition: "time beside another job / solo work done in it, over finished jobs that \
                     shared for 1 s or more",
        get: |f| &f.while_shared,
    },
    Spread {
        stem: "slowdown_over_life",
        unit: "1",
        better: Better::Lower,
        definition: "time on GPUs / (that less the time lost to other jobs), over the same jobs",
        get: |f| &f.over_life,
    },
];

#[cfg(test)]
mod tests;
