//! Figures of a whole run: use of the cluster, the bound, and what the run cost.

use super::{Better, Scalar, Scope, Value, Valued, ratio, scalar_figures};
use crate::{Bound, BoundJob, Counters, RunRecord, Usage};

/// Figures of a whole run. The registry below has the definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunFigures {
    /// GPU time by use.
    pub usage: Usage,
    /// What no scheduler can beat, over the finished jobs.
    pub bound: Bound,
    /// Sum of the completion times of the same jobs, in microseconds.
    pub jct_micros: u128,
    /// What the run cost to compute.
    pub counters: Counters,
}

impl RunFigures {
    /// The figures of `run`.
    ///
    /// # Panics
    /// If a finished job names a pool beyond `run.pool_gpus`.
    pub fn of(run: &RunRecord) -> RunFigures {
        let finished = run.jobs.iter().filter(|job| job.end.is_some() && !job.is_cancelled());
        let bound_jobs: Vec<BoundJob> = finished
            .clone()
            .map(|job| BoundJob {
                pool: job.pool,
                gpus: job.gpus,
                submit: job.submit,
                duration: job.duration,
            })
            .collect();
        let jcts = finished.filter_map(|job| job.jct());
        RunFigures {
            usage: run.usage,
            bound: Bound::of(&bound_jobs, &run.pool_gpus, run.residents_per_gpu),
            jct_micros: jcts.map(|jct| u128::from(jct.0)).sum(),
            counters: run.counters,
        }
    }

    /// Every figure with its value, in the order of the registry.
    pub fn figures(&self) -> Vec<Valued> {
        scalar_figures(RUN, Scope::Run, self)
    }
}

const RUN: &[Scalar<RunFigures>] = &[
    Scalar {
        name: "allocation_ratio",
        unit: "1",
        better: Better::Higher,
        definition: "GPU time given to jobs / GPU time of healthy GPUs, from the first submission \
                     to the last end; says nothing of how busy the GPUs were",
        get: |f| ratio(f.usage.allocated, f.usage.capacity),
    },
    Scalar {
        name: "allocation_ratio_arrivals",
        unit: "1",
        better: Better::Higher,
        definition: "the same from the first to the last submission, so without the drain at the \
                     end",
        get: |f| ratio(f.usage.arrival_window.allocated, f.usage.arrival_window.capacity),
    },
    Scalar {
        name: "allocated_gpu_s",
        unit: "GPU-s",
        better: Better::Neither,
        definition: "GPU time given to jobs; a shared GPU counts once",
        get: |f| Value::Real(f.usage.allocated.as_gpu_secs()),
    },
    Scalar {
        name: "capacity_gpu_s",
        unit: "GPU-s",
        better: Better::Neither,
        definition: "GPU time of installed and healthy GPUs",
        get: |f| Value::Real(f.usage.capacity.as_gpu_secs()),
    },
    Scalar {
        name: "idle_while_waiting_gpu_s",
        unit: "GPU-s",
        better: Better::Lower,
        definition: "GPU time of free healthy GPUs while any job of the cluster waits",
        get: |f| Value::Real(f.usage.idle_while_waiting.as_gpu_secs()),
    },
    Scalar {
        name: "idle_while_pool_waits_gpu_s",
        unit: "GPU-s",
        better: Better::Lower,
        definition: "GPU time of free healthy GPUs while a job of their own pool waits",
        get: |f| Value::Real(f.usage.idle_while_pool_waits.as_gpu_secs()),
    },
    Scalar {
        name: "bound_jct_mean_s",
        unit: "s",
        better: Better::Neither,
        definition: "a mean JCT that no scheduler can beat on these finished jobs: the best \
                     combination of durations, SRPT and mean busy times",
        get: |f| Value::of(f.bound.mean_s()),
    },
    Scalar {
        name: "bound_srpt_jct_mean_s",
        unit: "s",
        better: Better::Neither,
        definition: "the weaker bound by shortest remaining work alone, on one machine of the \
                     pool's speed over GPU-seconds",
        get: |f| Value::of(f.bound.srpt_mean_s()),
    },
    Scalar {
        name: "jct_mean_over_bound",
        unit: "1",
        better: Better::Lower,
        definition: "jct_mean_s / bound_jct_mean_s: 1 cannot be improved on",
        get: |f| {
            let bound = f.bound.best_micros;
            Value::of((bound > 0).then(|| f.jct_micros as f64 / bound as f64))
        },
    },
    Scalar {
        name: "events",
        unit: "events",
        better: Better::Neither,
        definition: "events the simulator handled",
        get: |f| Value::Count(f.counters.events),
    },
    Scalar {
        name: "rounds",
        unit: "rounds",
        better: Better::Neither,
        definition: "scheduling rounds",
        get: |f| Value::Count(f.counters.rounds),
    },
    Scalar {
        name: "commands",
        unit: "commands",
        better: Better::Neither,
        definition: "commands the engine issued",
        get: |f| Value::Count(f.counters.commands),
    },
];
