//! Two runs of one trace beside each other: every figure, and job by job.

use crate::bootstrap::{Interval, mean_intervals};
use crate::figures::{Better, JobFigures, QuotaFigures, RunFigures, SharingFigures, Valued};
use crate::job_record::signed;
use crate::{Figure, JobRecord, JobTable, RunRecord};
use deepshare_model::Class;
use serde::Serialize;
use std::collections::BTreeMap;

/// What changes from run A to run B.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Every figure of both, in the order of the registry.
    pub figures: Vec<Change>,
    /// The figures of jobs of one class, for each class that either run has.
    pub by_class: Vec<ClassChanges>,
    /// Job by job.
    pub pairs: Pairs,
}

/// What changes for the jobs of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassChanges {
    /// `guaranteed` or `best-effort`.
    pub class: &'static str,
    /// Every figure of a set of jobs, in the order of the registry.
    pub figures: Vec<Change>,
}

/// A figure of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Its registered name.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// Which way it should go.
    pub better: Better,
    /// In run A.
    pub a: Option<f64>,
    /// In run B.
    pub b: Option<f64>,
    /// B less A.
    pub difference: Option<f64>,
    /// B less A in percent of A; `None` if A is zero.
    pub difference_percent: Option<f64>,
}

/// Jobs matched by id.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pairs {
    /// Jobs that ended in both runs; the differences are over these.
    pub pairs: u64,
    /// Jobs in both runs that did not end in at least one.
    pub unfinished: u64,
    /// Jobs of A alone.
    pub only_in_a: u64,
    /// Jobs of B alone.
    pub only_in_b: u64,
    /// Jobs in both whose GPUs, submission or duration differ. If not 0, the runs are not of one
    /// trace and the differences say little of the policies.
    pub altered: u64,
    /// Of job completion times.
    pub jct: Option<PairedDifference>,
    /// Of queueing delays.
    pub queueing_delay: Option<PairedDifference>,
}

/// B less A over matched jobs.
///
/// The interval is what the mean difference would be, 95 times in 100, for other jobs drawn like
/// these (percentile bootstrap, 1,000 resamples of the pairs). It takes jobs to be independent,
/// which jobs that queued together are not, so it is too narrow rather than too wide.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairedDifference {
    /// Share of jobs that take less in B.
    pub better_share: f64,
    /// Share of jobs that take more in B.
    pub worse_share: f64,
    /// Share of jobs that take exactly as long.
    pub equal_share: f64,
    /// Mean of B less A.
    pub mean_difference_s: f64,
    /// Lower end of the 95 % interval of that mean.
    pub interval_low_s: f64,
    /// Upper end.
    pub interval_high_s: f64,
}

impl Comparison {
    /// Compares two runs of one trace; jobs are matched by number. `seed` is the bootstrap's.
    pub fn of_runs(a: &RunRecord, b: &RunRecord, seed: u64) -> Comparison {
        let figures = |run: &RunRecord| {
            let mut figures = JobFigures::of(&run.jobs).figures();
            figures.extend(RunFigures::of(run).figures());
            figures.extend(QuotaFigures::of(&run.quota).figures());
            figures.extend(SharingFigures::of(run).figures());
            figures
        };
        let by_number =
            |run: &RunRecord| -> Vec<u32> { run.jobs.iter().map(|job| job.job.0).collect() };
        Comparison {
            figures: changes(&figures(a), &figures(b)),
            by_class: changes_by_class(&a.jobs, &b.jobs),
            pairs: pair(&by_number(a), &a.jobs, &by_number(b), &b.jobs, seed),
        }
    }

    /// Compares two job lists read from files; jobs are matched by their ids in the trace. Figures
    /// of the cluster are left out, as the files do not have them.
    pub fn of_tables(a: &JobTable, b: &JobTable, seed: u64) -> Comparison {
        let figures = |table: &JobTable| JobFigures::of(&table.jobs).figures();
        Comparison {
            figures: changes(&figures(a), &figures(b)),
            by_class: changes_by_class(&a.jobs, &b.jobs),
            pairs: pair(&a.ids, &a.jobs, &b.ids, &b.jobs, seed),
        }
    }
}

impl Change {
    /// A figure's values in both runs.
    pub fn new(figure: &Figure, a: Option<f64>, b: Option<f64>) -> Change {
        let difference = a.zip(b).map(|(a, b)| b - a);
        let base = a.filter(|&a| a != 0.0);
        Change {
            name: figure.name.clone(),
            unit: figure.unit,
            better: figure.better,
            a,
            b,
            difference,
            difference_percent: difference.zip(base).map(|(by, base)| 100.0 * by / base),
        }
    }
}

/// Both lists are those of the registry, so they agree in order.
fn changes(a: &[Valued], b: &[Valued]) -> Vec<Change> {
    let change =
        |((figure, a), (_, b)): (&Valued, &Valued)| Change::new(figure, a.as_f64(), b.as_f64());
    a.iter().zip(b).map(change).collect()
}

fn changes_by_class(a: &[JobRecord], b: &[JobRecord]) -> Vec<ClassChanges> {
    let classes = [Class::Guaranteed, Class::BestEffort].into_iter();
    let has = |class: Class, jobs: &[JobRecord]| jobs.iter().any(|job| job.class == class);
    let figures = |class: Class, jobs: &[JobRecord]| {
        JobFigures::of(jobs.iter().filter(|job| job.class == class)).figures()
    };
    classes
        .filter(|&class| has(class, a) || has(class, b))
        .map(|class| ClassChanges {
            class: class.name(),
            figures: changes(&figures(class, a), &figures(class, b)),
        })
        .collect()
}

fn pair<K: Ord>(
    a_ids: &[K],
    a_jobs: &[JobRecord],
    b_ids: &[K],
    b_jobs: &[JobRecord],
    seed: u64,
) -> Pairs {
    let in_b: BTreeMap<&K, &JobRecord> = b_ids.iter().zip(b_jobs).collect();
    let mut pairs = Pairs::default();
    let mut differences: Vec<[i64; 2]> = Vec::new();
    let mut matched = 0;
    for (id, a) in a_ids.iter().zip(a_jobs) {
        let Some(b) = in_b.get(id) else {
            pairs.only_in_a += 1;
            continue;
        };
        matched += 1;
        let same = (a.gpus, a.submit, a.duration) == (b.gpus, b.submit, b.duration);
        pairs.altered += u64::from(!same);
        match (a.jct(), b.jct()) {
            (Some(a_jct), Some(b_jct)) if !a.is_cancelled() && !b.is_cancelled() => differences
                .push([signed(b_jct) - signed(a_jct), signed(b.waited) - signed(a.waited)]),
            _ => pairs.unfinished += 1,
        }
    }
    pairs.only_in_b = in_b.len() as u64 - matched;
    pairs.pairs = differences.len() as u64;
    if let Some([jct, delay]) = mean_intervals(&differences, seed) {
        pairs.jct = Some(paired(differences.iter().map(|row| row[0]), jct));
        pairs.queueing_delay = Some(paired(differences.iter().map(|row| row[1]), delay));
    }
    pairs
}

fn paired(differences: impl Iterator<Item = i64>, interval: Interval) -> PairedDifference {
    let (mut count, mut better, mut worse, mut sum) = (0u64, 0u64, 0u64, 0i128);
    for difference in differences {
        count += 1;
        better += u64::from(difference < 0);
        worse += u64::from(difference > 0);
        sum += i128::from(difference);
    }
    let share = |part: u64| part as f64 / count as f64;
    PairedDifference {
        better_share: share(better),
        worse_share: share(worse),
        equal_share: share(count - better - worse),
        mean_difference_s: sum as f64 / (count as f64 * 1e6),
        interval_low_s: interval.low / 1e6,
        interval_high_s: interval.high / 1e6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::run;
    use deepshare_model::{Span, Time};

    fn change<'a>(comparison: &'a Comparison, name: &str) -> &'a Change {
        comparison.figures.iter().find(|change| change.name == name).unwrap()
    }

    /// The sample, but job 0 waits 40 s and job 1 is not preempted.
    fn other_run() -> RunRecord {
        let mut other = run();
        other.jobs[0].waited = Span::from_secs(40);
        other.jobs[0].first_start = Some(Time::from_secs(40));
        other.jobs[0].end = Some(Time::from_secs(140));
        other.jobs[1].end = Some(Time::from_secs(80));
        other.jobs[1].waited = Span::from_secs(20);
        other.jobs[1].preemptions = 0;
        other
    }

    #[test]
    fn changes_are_from_a_to_b_with_their_percentage() {
        let comparison = Comparison::of_runs(&run(), &other_run(), 1);
        let jct = change(&comparison, "jct_mean_s");
        assert_eq!((jct.a, jct.b, jct.difference), (Some(112.75), Some(105.0), Some(-7.75)));
        assert_eq!(jct.difference_percent, Some(-775.0 / 112.75));
        assert_eq!(change(&comparison, "preemptions").difference_percent, Some(-100.0));
        let failures = change(&comparison, "restarts_by_failure");
        assert_eq!((failures.difference, failures.difference_percent), (Some(0.0), None));
        assert_eq!(change(&comparison, "allocation_ratio").difference, Some(0.0));
    }

    #[test]
    fn jobs_are_matched_and_those_better_and_worse_counted() {
        let pairs = Comparison::of_runs(&run(), &other_run(), 1).pairs;
        assert_eq!((pairs.pairs, pairs.unfinished, pairs.altered), (2, 2, 0));
        let jct = pairs.jct.unwrap();
        assert_eq!((jct.better_share, jct.worse_share, jct.equal_share), (0.5, 0.5, 0.0));
        assert_eq!(jct.mean_difference_s, -7.75);
        // With two pairs a resample is either twice one, twice the other, or both.
        assert_eq!((jct.interval_low_s, jct.interval_high_s), (-55.5, 40.0));
    }

    #[test]
    fn a_run_compared_with_itself_is_equal_for_certain() {
        let pairs = Comparison::of_runs(&run(), &run(), 1).pairs;
        let jct = pairs.jct.unwrap();
        assert_eq!(jct.equal_share, 1.0);
        assert_eq!((jct.interval_low_s, jct.interval_high_s), (0.0, 0.0));
    }

    #[test]
    fn lists_of_different_traces_are_told_from_runs_of_one() {
        let table = |ids: [&str; 4]| JobTable {
            ids: ids.map(str::to_owned).to_vec(),
            jobs: run().jobs,
            ..JobTable::default()
        };
        let a = table(["w", "x", "y", "z"]);
        let mut b = table(["x", "w", "y", "other"]);
        let pairs = Comparison::of_tables(&a, &b, 1).pairs;
        assert_eq!((pairs.only_in_a, pairs.only_in_b, pairs.altered), (1, 1, 2));
        b.ids[3] = "z".to_owned();
        let comparison = Comparison::of_tables(&a, &b, 1);
        assert_eq!(comparison.pairs.only_in_b, 0);
        assert!(comparison.figures.iter().all(|change| change.name != "allocation_ratio"));
    }

    #[test]
    fn classes_are_compared_apart() {
        let comparison = Comparison::of_runs(&run(), &other_run(), 1);
        let [guaranteed, best_effort] = &comparison.by_class[..] else { panic!("two classes") };
        let jct = |of: &ClassChanges| {
            let change = of.figures.iter().find(|change| change.name == "jct_mean_s").unwrap();
            (of.class, change.a, change.b)
        };
        assert_eq!(jct(guaranteed), ("guaranteed", Some(100.0), Some(140.0)));
        assert_eq!(jct(best_effort), ("best-effort", Some(125.5), Some(70.0)));
    }

    #[test]
    fn a_comparison_has_a_form_in_json() {
        let json = serde_json::to_value(Comparison::of_runs(&run(), &other_run(), 1)).unwrap();
        assert_eq!(json["pairs"]["jct"]["mean_difference_s"], serde_json::json!(-7.75));
        assert_eq!(json["figures"][0]["better"], serde_json::json!("neither"));
    }
}
