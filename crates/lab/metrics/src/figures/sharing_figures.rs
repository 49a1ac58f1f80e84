//! Figures of a whole run on devices with two jobs: pairs, solo work done, and devices in use.

use super::{Better, Scalar, Scope, Value, Valued, ratio, scalar_figures};
use crate::{PairRecord, RunRecord, Usage};
use deepshare_model::GpuTime;

/// Figures of sharing of a whole run. The registry below has the definitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharingFigures {
    /// GPU time by use.
    pub usage: Usage,
    /// What became of proposals to share devices; `None` if nobody shared or asked to.
    pub pairs: Option<PairRecord>,
}

impl SharingFigures {
    /// The figures of `run`.
    pub fn of(run: &RunRecord) -> SharingFigures {
        let PairRecord { formed, revoked, refused } = &run.pairs;
        let asked = *formed + *revoked > 0 || refused.iter().any(|&(_, times)| times > 0);
        let shared = run.usage.shared.0 > 0 || run.jobs.iter().any(|job| !job.shared.is_zero());
        let pairs = (asked || shared).then(|| run.pairs.clone());
        SharingFigures { usage: run.usage, pairs }
    }

    /// True if devices had two jobs, for however short a time.
    pub fn shared(&self) -> bool {
        self.usage.shared.0 > 0
    }

    /// Every figure with its value, in the order of the registry.
    pub fn figures(&self) -> Vec<Valued> {
        scalar_figures(SHARING, Scope::Run, self)
    }

    fn of_pairs(&self, get: impl Fn(&PairRecord) -> u64) -> Value {
        self.pairs.as_ref().map_or(Value::Missing, |pairs| Value::Count(get(pairs)))
    }

    /// The value, in a run with sharing.
    fn if_sharing(&self, value: Value) -> Value {
        if self.pairs.is_some() { value } else { Value::Missing }
    }

    /// The ratio, in a run whose jobs have profiles: else nobody knows what they use.
    fn if_profiled(&self, part: GpuTime, whole: GpuTime) -> Value {
        let profiled = self.usage.compute.0 > 0 || self.usage.memory.0 > 0;
        if profiled { ratio(part, whole) } else { Value::Missing }
    }
}

const SHARING: &[Scalar<SharingFigures>] = &[
    Scalar {
        name: "pairs_formed",
        unit: "times",
        better: Better::Neither,
        definition: "times that a job was started beside another on its GPUs",
        get: |f| f.of_pairs(|pairs| pairs.formed),
    },
    Scalar {
        name: "pairs_revoked",
        unit: "times",
        better: Better::Lower,
        definition: "pairs broken up because samples of their speed stayed below tolerance",
        get: |f| f.of_pairs(|pairs| pairs.revoked),
    },
    Scalar {
        name: "pairs_refused",
        unit: "times",
        better: Better::Neither,
        definition: "times that a job asked for a partner in vain; `pairs_refused_by_test` has \
                     them by the test that its best one failed",
        get: |f| f.of_pairs(|pairs| pairs.refused.iter().map(|&(_, times)| times).sum()),
    },
    Scalar {
        name: "shared_gpu_s",
        unit: "GPU-s",
        better: Better::Neither,
        definition: "GPU time of GPUs with two jobs; each GPU counts once",
        get: |f| f.if_sharing(Value::Real(f.usage.shared.as_gpu_secs())),
    },
    Scalar {
        name: "shared_of_allocated",
        unit: "1",
        better: Better::Neither,
        definition: "shared_gpu_s / allocated_gpu_s",
        get: |f| f.if_sharing(ratio(f.usage.shared, f.usage.allocated)),
    },
    Scalar {
        name: "shared_of_allocated_arrivals",
        unit: "1",
        better: Better::Neither,
        definition: "the same from the first to the last submission",
        get: |f| {
            let window = &f.usage.arrival_window;
            f.if_sharing(ratio(window.shared, window.allocated))
        },
    },
    Scalar {
        name: "solo_work_gpu_s",
        unit: "GPU-s",
        better: Better::Neither,
        definition: "solo work done: each running job's GPUs at its share of its solo speed, over \
                     time; restarts and work done again count as work",
        get: |f| Value::Real(f.usage.solo_work.as_gpu_secs()),
    },
    Scalar {
        name: "solo_work_per_installed",
        unit: "1",
        better: Better::Higher,
        definition: "solo_work_gpu_s / capacity_gpu_s: solo work done per installed and healthy \
                     GPU-second",
        get: |f| ratio(f.usage.solo_work, f.usage.capacity),
    },
    Scalar {
        name: "solo_work_per_installed_arrivals",
        unit: "1",
        better: Better::Higher,
        definition: "the same from the first to the last submission",
        get: |f| ratio(f.usage.arrival_window.solo_work, f.usage.arrival_window.capacity),
    },
    Scalar {
        name: "solo_work_per_allocated",
        unit: "1",
        better: Better::Higher,
        definition: "solo_work_gpu_s / allocated_gpu_s: solo work done per GPU-second given to \
                     jobs; more than 1 only by sharing",
        get: |f| ratio(f.usage.solo_work, f.usage.allocated),
    },
    Scalar {
        name: "solo_work_per_allocated_arrivals",
        unit: "1",
        better: Better::Higher,
        definition: "the same from the first to the last submission",
        get: |f| ratio(f.usage.arrival_window.solo_work, f.usage.arrival_window.allocated),
    },
    Scalar {
        name: "compute_in_use_of_installed",
        unit: "1",
        better: Better::Higher,
        definition: "GPU time of compute in use, by the jobs' profiles, / GPU time of all \
                     installed and healthy GPUs",
        get: |f| f.if_profiled(f.usage.compute, f.usage.capacity),
    },
    Scalar {
        name: "compute_in_use_of_installed_arrivals",
        unit: "1",
        better: Better::Higher,
        definition: "the same from the first to the last submission",
        get: |f| {
            let window = &f.usage.arrival_window;
            f.if_profiled(window.compute, window.capacity)
        },
    },
    Scalar {
        name: "compute_in_use_of_allocated",
        unit: "1",
        better: Better::Higher,
        definition: "GPU time of compute in use, by the jobs' profiles, / GPU time of GPUs given \
                     to jobs",
        get: |f| f.if_profiled(f.usage.compute, f.usage.allocated),
    },
    Scalar {
        name: "compute_in_use_of_allocated_arrivals",
        unit: "1",
        better: Better::Higher,
        definition: "the same from the first to the last submission",
        get: |f| {
            let window = &f.usage.arrival_window;
            f.if_profiled(window.compute, window.allocated)
        },
    },
    Scalar {
        name: "memory_in_use_of_installed",
        unit: "1",
        better: Better::Neither,
        definition: "GPU memory in use, by the jobs' profiles, / memory of all installed and \
                     healthy GPUs, both over time; a GPU counts as one whatever its memory",
        get: |f| f.if_profiled(f.usage.memory, f.usage.capacity),
    },
    Scalar {
        name: "memory_in_use_of_installed_arrivals",
        unit: "1",
        better: Better::Neither,
        definition: "the same from the first to the last submission",
        get: |f| {
            let window = &f.usage.arrival_window;
            f.if_profiled(window.memory, window.capacity)
        },
    },
    Scalar {
        name: "memory_in_use_of_allocated",
        unit: "1",
        better: Better::Neither,
        definition: "GPU memory in use, by the jobs' profiles, / memory of GPUs given to jobs, \
                     both over time; a GPU counts as one whatever its memory",
        get: |f| f.if_profiled(f.usage.memory, f.usage.allocated),
    },
    Scalar {
        name: "memory_in_use_of_allocated_arrivals",
        unit: "1",
        better: Better::Neither,
        definition: "the same from the first to the last submission",
        get: |f| {
            let window = &f.usage.arrival_window;
            f.if_profiled(window.memory, window.allocated)
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{run, shared_run};

    fn value(run: &RunRecord, name: &str) -> Option<f64> {
        let figures = SharingFigures::of(run).figures();
        let (_, value) = figures.iter().find(|(figure, _)| figure.name == name).unwrap();
        value.as_f64()
    }

    #[test]
    fn figures_of_the_shared_sample_are_those_worked_out_by_hand() {
        let run = shared_run();
        let expected = [
            ("pairs_formed", 3.0),
            ("pairs_revoked", 1.0),
            ("pairs_refused", 9.0),
            ("shared_gpu_s", 320.0),
            ("shared_of_allocated", 0.4),
            ("shared_of_allocated_arrivals", 0.25),
            ("solo_work_gpu_s", 900.0),
            ("solo_work_per_installed", 0.9),
            ("solo_work_per_installed_arrivals", 0.75),
            ("solo_work_per_allocated", 1.125),
            ("solo_work_per_allocated_arrivals", 0.9375),
            ("compute_in_use_of_installed", 0.6),
            ("compute_in_use_of_installed_arrivals", 0.5),
            ("compute_in_use_of_allocated", 0.75),
            ("compute_in_use_of_allocated_arrivals", 0.625),
            ("memory_in_use_of_installed", 0.3),
            ("memory_in_use_of_installed_arrivals", 0.25),
            ("memory_in_use_of_allocated", 0.375),
            ("memory_in_use_of_allocated_arrivals", 0.3125),
        ];
        for (name, expected) in expected {
            assert_eq!(value(&run, name), Some(expected), "{name}");
        }
        assert_eq!(SharingFigures::of(&run).figures().len(), expected.len(), "every one is here");
    }

    #[test]
    fn a_run_without_sharing_or_profiles_has_nothing_but_its_solo_work() {
        let mut run = run();
        run.usage.solo_work = run.usage.allocated;
        run.pairs.refused = vec![("memory".to_owned(), 0)];
        let there: Vec<String> = SharingFigures::of(&run)
            .figures()
            .into_iter()
            .filter(|(_, value)| *value != Value::Missing)
            .map(|(figure, _)| figure.name)
            .collect();
        let expected = [
            "solo_work_gpu_s",
            "solo_work_per_installed",
            "solo_work_per_installed_arrivals",
            "solo_work_per_allocated",
            "solo_work_per_allocated_arrivals",
        ];
        assert_eq!(there, expected);
        assert_eq!(value(&run, "solo_work_per_allocated"), Some(1.0));
    }

    #[test]
    fn profiles_tell_what_is_in_use_without_any_sharing() {
        let mut run = shared_run();
        run.pairs = PairRecord::default();
        run.usage.shared = GpuTime(0);
        run.jobs.clear();
        assert_eq!(value(&run, "compute_in_use_of_installed"), Some(0.6));
        assert_eq!(value(&run, "pairs_formed"), None);
        assert_eq!(value(&run, "shared_of_allocated"), None);
    }

    #[test]
    fn a_run_that_asked_to_share_in_vain_formed_no_pair_rather_than_not_saying() {
        let mut run = run();
        run.pairs.refused = vec![("memory".to_owned(), 2)];
        assert_eq!(value(&run, "pairs_formed"), Some(0.0));
        assert_eq!(value(&run, "pairs_refused"), Some(2.0));
        assert_eq!(value(&run, "shared_of_allocated"), Some(0.0));
    }
}
