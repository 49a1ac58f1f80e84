//! Figures of a whole run on devices with two jobs: pairs, solo work done, and devices in use.

use super::{Better, Consistency, Scalar, Scope, Value, Valued, ratio, scalar_figures};
use crate::{PairRecord, RunRecord, Usage};
use deepshare_model::GpuTime;

/// Figures of sharing of a whole run. The registry below has the definitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharingFigures {
    /// GPU time by use.
    pub usage: Usage,
    /// What became of proposals to share devices; `None` if nobody shared or asked to.
    pub pairs: Option<PairRecord>,
    /// Solo work of finished jobs times their GPUs.
    pub work_done: GpuTime,
    /// How far running times differ by partner.
    pub consistency: Option<Consistency>,
}

impl SharingFigures {
    /// The figures of `run`.
    pub fn of(run: &RunRecord) -> SharingFigures {
        let PairRecord { formed, revoked, refused } = &run.pairs;
        let asked = *formed + *revoked > 0 || refused.iter().any(|&(_, times)| times > 0);
        let shared = run.usage.shared.0 > 0 || run.jobs.iter().any(|job| !job.shared.is_zero());
        let pairs = (asked || shared).then(|| run.pairs.clone());
        let finished = run.jobs.iter().filter(|job| job.ran().is_some());
        SharingFigures {
            usage: run.usage,
            pairs,
            work_done: GpuTime(finished.map(|job| job.duration.on(job.gpus).0).sum()),
            consistency: Consistency::of(&run.jobs),
        }
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

    /// One less a ratio, of what finished at all.
    fn saved(&self) -> Value {
        let per_work = ratio(self.usage.allocated, self.work_done).as_f64();
        Value::of(per_work.map(|per_work| 1.0 - per_work))
    }

    fn of_groups(&self, get: impl Fn(&Consistency) -> Value) -> Value {
        self.consistency.as_ref().map_or(Value::Missing, get)
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
    Scalar {
        name: "gpu_time_saved",
        unit: "1",
        better: Better::Higher,
        definition: "1 less allocated_gpu_s / work_done_gpu_s: GPU time spared against running \
                     every finished job alone and undisturbed",
        get: SharingFigures::saved,
    },
    Scalar {
        name: "partner_groups",
        unit: "groups",
        better: Better::Neither,
        definition: "profile classes whose jobs ran beside two classes or more; of finished jobs \
                     that ran beside jobs of one class only",
        get: |f| f.of_groups(|of| Value::Count(of.groups)),
    },
    Scalar {
        name: "partner_group_jobs",
        unit: "jobs",
        better: Better::Neither,
        definition: "those jobs of these classes",
        get: |f| f.of_groups(|of| Value::Count(of.jobs)),
    },
    Scalar {
        name: "jct_inconsistency_max_over_min",
        unit: "1",
        better: Better::Lower,
        definition: "largest / smallest of a group's mean execution_ratio by class of the partner; \
                     the mean over groups, each weighing the same",
        get: |f| f.of_groups(|of| Value::of(Some(of.max_over_min))),
    },
    Scalar {
        name: "jct_inconsistency_variation",
        unit: "1",
        better: Better::Lower,
        definition: "standard deviation / mean of the same means by class of the partner; the mean \
                     over groups, each weighing the same",
        get: |f| f.of_groups(|of| Value::of(Some(of.variation))),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{run, shared_run};
    use deepshare_model::{JobId, Span, Time};

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
            // 800 GPU-seconds for 8 x 100 + 2 x 50 of work.
            ("gpu_time_saved", 1.0 - 800.0 / 900.0),
        ];
        for (name, expected) in expected {
            assert_eq!(value(&run, name), Some(expected), "{name}");
        }
        // Each of the two had one partner, so nothing can differ by partner.
        let by_partner = [
            "partner_groups",
            "partner_group_jobs",
            "jct_inconsistency_max_over_min",
            "jct_inconsistency_variation",
        ];
        assert_eq!(by_partner.map(|name| value(&run, name)), [None; 4]);
        let all = expected.len() + by_partner.len();
        assert_eq!(SharingFigures::of(&run).figures().len(), all, "every one is here");
    }

    #[test]
    fn running_times_that_differ_by_partner_are_told_of_the_run() {
        let mut run = shared_run();
        // Job 2 is of job 0's class, beside job 1's like it and then beside job 0's: two classes of
        // partners, so it does not count until it is beside job 0's only.
        run.jobs[2].end = Some(Time::from_secs(270));
        (run.jobs[2].profile, run.jobs[2].shared) = (run.jobs[0].profile, Span::SECOND);
        run.jobs[2].beside = vec![JobId(1), JobId(0)];
        assert_eq!(value(&run, "partner_groups"), None);
        run.jobs[2].beside = vec![JobId(0)];
        // Means 1.08 beside the one class, 150 / 100 beside the other.
        assert_eq!(value(&run, "partner_groups"), Some(1.0));
        assert_eq!(value(&run, "partner_group_jobs"), Some(2.0));
        assert_eq!(value(&run, "jct_inconsistency_max_over_min"), Some(1.5 / 1.08));
        let variation = value(&run, "jct_inconsistency_variation").unwrap();
        assert!((variation - 0.21 / 1.29).abs() < 1e-12, "{variation}");
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
            "gpu_time_saved",
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
