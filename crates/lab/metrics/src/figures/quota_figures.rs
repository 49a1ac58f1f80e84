//! Figures of quotas: what tenants were assured, and what preemption for it cost.

use super::{Better, Scalar, Scope, Spread, Value, Valued, scalar_figures};
use crate::{Assured, Avoidable, Distribution, QuotaRecord, TenantAssurance};
use deepshare_model::{GpuTime, Span, TenantId};

/// Figures of quotas of a whole run. The registry below has the definitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaFigures {
    /// Quotas were guarantees in this run, and not caps or only numbers.
    pub guarantees: bool,
    /// All tenants' time together.
    pub whole: Assured,
    /// The same up to the last submission.
    pub arrivals: Assured,
    /// The tenant with the lowest mean Q̃, the first of equals.
    pub worst_tenant: Option<TenantId>,
    /// Its mean Q̃.
    pub worst: Option<f64>,
    /// The lowest mean Q̃ of a tenant up to the last submission.
    pub worst_arrivals: Option<f64>,
    /// How long falls of Q̃ below 0.95 lasted; `None` if there were none.
    pub recovery: Option<Distribution>,
    /// Number of these falls; `None` if assurance was not measured.
    pub recoveries: Option<u64>,
    /// Waiting that could have been avoided; `None` if it was not looked for.
    pub avoidable: Option<Avoidable>,
    /// Decisions to preempt for a job.
    pub decisions: u64,
    /// Victims of each.
    pub victims: Option<Distribution>,
    /// Φ of each.
    pub phi: Option<Distribution>,
    /// GPU time that victims had spent in the attempts that were ended.
    pub victims_gpu: GpuTime,
    /// From decision to start.
    pub latency: Option<Distribution>,
    /// Jobs preempted more often within an hour than the cap allows.
    pub jobs_over_cap: u64,
    /// Starts of guaranteed jobs beyond quota.
    pub spilled_starts: u64,
    /// Of those, charged to quota later.
    pub promotions: u64,
}

impl QuotaFigures {
    /// The figures of `record`.
    pub fn of(record: &QuotaRecord) -> QuotaFigures {
        let sum = |of: fn(&TenantAssurance) -> &Assured| {
            let mut sum = Assured::default();
            record.tenants.iter().for_each(|tenant| sum.add(of(tenant)));
            sum
        };
        let worst = |of: fn(&TenantAssurance) -> &Assured| {
            let means = record.tenants.iter().enumerate();
            let means = means.filter_map(|(at, tenant)| Some((at, of(tenant).mean_smoothed()?)));
            means.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))
        };
        let micros = |spans: &[Span]| spans.iter().map(|span| span.0 as i64).collect();
        let preemptions = &record.preemptions;
        let decisions = &preemptions.decisions;
        let phi = decisions.iter().filter_map(|d| Some(d.phi_nano? as f64 / 1e9)).collect();
        let victims = decisions.iter().map(|d| f64::from(d.victims)).collect();
        let worst_whole = worst(|tenant| &tenant.whole);
        QuotaFigures {
            guarantees: record.guarantees,
            whole: sum(|tenant| &tenant.whole),
            arrivals: sum(|tenant| &tenant.arrivals),
            worst_tenant: worst_whole.map(|(at, _)| TenantId::from_index(at)),
            worst: worst_whole.map(|(_, mean)| mean),
            worst_arrivals: worst(|tenant| &tenant.arrivals).map(|(_, mean)| mean),
            recovery: Distribution::of_micros(micros(&record.recoveries)),
            recoveries: (!record.tenants.is_empty()).then_some(record.recoveries.len() as u64),
            avoidable: record.avoidable,
            decisions: decisions.len() as u64,
            victims: Distribution::of_ratios(victims),
            phi: Distribution::of_ratios(phi),
            victims_gpu: preemptions.victims_gpu,
            latency: Distribution::of_micros(micros(&preemptions.latencies)),
            jobs_over_cap: preemptions.jobs_over_cap,
            spilled_starts: preemptions.spilled_starts,
            promotions: preemptions.promotions,
        }
    }

    /// Every figure with its value, in the order of the registry.
    pub fn figures(&self) -> Vec<Valued> {
        let mut figures = assured_figures(&self.whole);
        figures.extend(scalar_figures(ASSURANCE, Scope::Run, self));
        figures.extend(RECOVERY.figures(Scope::Run, self));
        figures.extend(scalar_figures(PREEMPTION, Scope::Run, self));
        figures.extend(SPREADS.iter().flat_map(|spread| spread.figures(Scope::Run, self)));
        figures
    }
}

/// The figures of one tenant's assured time, or of all tenants' together.
pub(crate) fn assured_figures(of: &Assured) -> Vec<Valued> {
    scalar_figures(ASSURED, Scope::Run, of)
}

fn count(count: Option<u64>) -> Value {
    count.map_or(Value::Missing, Value::Count)
}

const ASSURED: &[Scalar<Assured>] = &[
    Scalar {
        name: "quota_demand_s",
        unit: "s",
        better: Better::Neither,
        definition: "time in which a tenant has guaranteed demand and a quota for it, summed over \
                     tenants; what the figures of assurance are over",
        get: |f| Value::Real(f.time.as_secs_f64()),
    },
    Scalar {
        name: "qad_now_mean",
        unit: "1",
        better: Better::Higher,
        definition: "mean over that time of the quota assurance degree Q: guaranteed GPUs held / \
                     min(quota, demanded)",
        get: |f| Value::of(f.mean_now()),
    },
    Scalar {
        name: "qad_mean",
        unit: "1",
        better: Better::Higher,
        definition: "mean over that time of the smoothed degree",
        get: |f| Value::of(f.mean_smoothed()),
    },
    Scalar {
        name: "qad_compliance",
        unit: "1",
        better: Better::Higher,
        definition: "share of that time with a smoothed degree of at least 0.95",
        get: |f| Value::of(f.share_below(0).map(|share| 1.0 - share)),
    },
    Scalar {
        name: "qad_below_0_95",
        unit: "1",
        better: Better::Lower,
        definition: "share of that time with a smoothed degree below 0.95",
        get: |f| Value::of(f.share_below(0)),
    },
    Scalar {
        name: "qad_below_0_9",
        unit: "1",
        better: Better::Lower,
        definition: "share of that time with a smoothed degree below 0.9",
        get: |f| Value::of(f.share_below(1)),
    },
    Scalar {
        name: "qad_below_0_85",
        unit: "1",
        better: Better::Lower,
        definition: "share of that time with a smoothed degree below 0.85",
        get: |f| Value::of(f.share_below(2)),
    },
    Scalar {
        name: "qad_below_0_5",
        unit: "1",
        better: Better::Lower,
        definition: "share of that time with a smoothed degree below 0.5",
        get: |f| Value::of(f.share_below(3)),
    },
];

const ASSURANCE: &[Scalar<QuotaFigures>] = &[
    Scalar {
        name: "qad_worst_tenant",
        unit: "1",
        better: Better::Higher,
        definition: "the lowest mean smoothed degree of a tenant; `worst_tenant` has its name",
        get: |f| Value::of(f.worst),
    },
    Scalar {
        name: "qad_mean_arrivals",
        unit: "1",
        better: Better::Higher,
        definition: "qad_mean up to the last submission, so without the drain at the end",
        get: |f| Value::of(f.arrivals.mean_smoothed()),
    },
    Scalar {
        name: "qad_compliance_arrivals",
        unit: "1",
        better: Better::Higher,
        definition: "qad_compliance up to the last submission",
        get: |f| Value::of(f.arrivals.share_below(0).map(|share| 1.0 - share)),
    },
    Scalar {
        name: "qad_worst_tenant_arrivals",
        unit: "1",
        better: Better::Higher,
        definition: "qad_worst_tenant up to the last submission",
        get: |f| Value::of(f.worst_arrivals),
    },
    Scalar {
        name: "avoidable_s",
        unit: "s",
        better: Better::Lower,
        definition: "time for which guaranteed jobs inside their tenant's quota waited on after \
                     grace and one cycle although free devices and a legal set of victims would \
                     have placed them",
        get: |f| Value::of(f.avoidable.map(|avoidable| avoidable.time.as_secs_f64())),
    },
    Scalar {
        name: "avoidable_gpu_s",
        unit: "GPU-s",
        better: Better::Lower,
        definition: "the same, each job's times its GPUs",
        get: |f| Value::of(f.avoidable.map(|avoidable| avoidable.gpu_time.as_gpu_secs())),
    },
    Scalar {
        name: "avoidable_jobs",
        unit: "jobs",
        better: Better::Lower,
        definition: "jobs that waited so; `avoidable_first` has the first",
        get: |f| count(f.avoidable.map(|avoidable| avoidable.jobs)),
    },
    Scalar {
        name: "recoveries",
        unit: "times",
        better: Better::Lower,
        definition: "times that a tenant's smoothed degree fell below 0.95",
        get: |f| count(f.recoveries),
    },
];

const RECOVERY: Spread<QuotaFigures> = Spread {
    stem: "recovery",
    unit: "s",
    better: Better::Lower,
    definition: "time from such a fall until the smoothed degree was 0.95 again",
    get: |f| &f.recovery,
};

const PREEMPTION: &[Scalar<QuotaFigures>] = &[
    Scalar {
        name: "preempting_decisions",
        unit: "times",
        better: Better::Lower,
        definition: "times that a job's turn made victims: all those evicted for one job at one \
                     instant are one decision",
        get: |f| Value::Count(f.decisions),
    },
    Scalar {
        name: "victims_gpu_s",
        unit: "GPU-s",
        better: Better::Lower,
        definition: "GPU time that victims had spent in the attempts that were ended",
        get: |f| Value::Real(f.victims_gpu.as_gpu_secs()),
    },
    Scalar {
        name: "jobs_over_preemption_cap",
        unit: "jobs",
        better: Better::Lower,
        definition: "jobs preempted more often within an hour than the policy's cap; than 3 times \
                     for a policy that has none",
        get: |f| Value::Count(f.jobs_over_cap),
    },
    Scalar {
        name: "spilled_starts",
        unit: "times",
        better: Better::Neither,
        definition: "starts of guaranteed jobs beyond their tenant's quota, charged as best-effort",
        get: |f| Value::Count(f.spilled_starts),
    },
    Scalar {
        name: "promotions",
        unit: "times",
        better: Better::Neither,
        definition: "such jobs charged to quota later, while they ran",
        get: |f| Value::Count(f.promotions),
    },
];

const SPREADS: &[Spread<QuotaFigures>] = &[
    Spread {
        stem: "victims_per_preemption",
        unit: "jobs",
        better: Better::Lower,
        definition: "victims of a decision to preempt",
        get: |f| &f.victims,
    },
    Spread {
        stem: "phi",
        unit: "1/s",
        better: Better::Lower,
        definition: "the cost of a decision's victims, by a policy that knows one",
        get: |f| &f.phi,
    },
    Spread {
        stem: "reclaim_latency",
        unit: "s",
        better: Better::Lower,
        definition: "time from a decision to the start of the job it was for",
        get: |f| &f.latency,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PreemptionDecision, PreemptionRecord};
    use deepshare_model::{JobId, Time};

    fn assured(time_s: u64, mean: u128, below_s: u64) -> TenantAssurance {
        let time = Span::from_secs(time_s);
        let whole = Assured {
            time,
            now: 0,
            smoothed: u128::from(time.0) * (mean << 32) / 100,
            below: [Span::from_secs(below_s), Span::ZERO, Span::ZERO, Span::ZERO],
        };
        TenantAssurance { quota: 8, whole, arrivals: Assured::default() }
    }

    fn value(record: &QuotaRecord, name: &str) -> Option<f64> {
        let figures = QuotaFigures::of(record).figures();
        let (_, value) = figures.iter().find(|(figure, _)| figure.name == name).unwrap();
        value.as_f64()
    }

    #[test]
    fn tenants_count_by_the_time_they_are_owed_something_and_the_worst_is_named() {
        let tenants = vec![assured(300, 100, 0), assured(0, 0, 0), assured(100, 60, 40)];
        let record = QuotaRecord { tenants, ..QuotaRecord::default() };
        let figures = QuotaFigures::of(&record);
        assert_eq!(figures.worst_tenant, Some(TenantId(2)));
        assert!((figures.worst.unwrap() - 0.6).abs() < 1e-9);
        assert!((value(&record, "qad_mean").unwrap() - 0.9).abs() < 1e-9);
        assert_eq!(value(&record, "qad_compliance"), Some(0.9));
        assert_eq!(value(&record, "qad_below_0_5"), Some(0.0));
        assert_eq!(value(&record, "quota_demand_s"), Some(400.0));
        assert_eq!(value(&record, "qad_mean_arrivals"), None);
    }

    #[test]
    fn what_was_not_measured_is_missing_and_not_zero() {
        let record = QuotaRecord::default();
        for name in ["qad_mean", "qad_compliance", "avoidable_s", "recoveries", "phi_mean"] {
            assert_eq!(value(&record, name), None, "{name}");
        }
        assert_eq!(value(&record, "preempting_decisions"), Some(0.0));
    }

    #[test]
    fn preemptions_and_violations_are_those_worked_out_by_hand() {
        let decision = |victims, phi_nano| PreemptionDecision { victims, phi_nano };
        let record = QuotaRecord {
            guarantees: true,
            avoidable: Some(Avoidable {
                time: Span::from_secs(30),
                gpu_time: Span::from_secs(30).on(4),
                jobs: 1,
                first: Some((JobId(7), Time::from_secs(5))),
            }),
            recoveries: vec![Span::SECOND, Span::from_secs(3)],
            tenants: vec![assured(1, 100, 0)],
            preemptions: PreemptionRecord {
                decisions: vec![decision(1, Some(2_000_000)), decision(3, Some(4_000_000))],
                ..PreemptionRecord::default()
            },
        };
        let expected = [
            ("avoidable_s", 30.0),
            ("avoidable_gpu_s", 120.0),
            ("avoidable_jobs", 1.0),
            ("recoveries", 2.0),
            ("recovery_mean_s", 2.0),
            ("recovery_max_s", 3.0),
            ("preempting_decisions", 2.0),
            ("victims_per_preemption_mean", 2.0),
            ("victims_per_preemption_max", 3.0),
            ("phi_mean", 0.003),
        ];
        for (name, expected) in expected {
            assert_eq!(value(&record, name), Some(expected), "{name}");
        }
    }
}
