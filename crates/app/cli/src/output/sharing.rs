//! What sharing devices brought and cost, for people.

use super::{grouped, plain_table, with_decimals};
use deepshare_metrics::Summary;
use deepshare_model::Class;

const LEGEND: &str = "\
Sharing. pairs: formed, and broken up again. time shared: share of GPU time that
jobs held in which a GPU had two. slower: how much longer jobs took beside
another than alone, by GPU time of all and of guaranteed jobs, and by job. solo
work: per installed GPU-second while jobs arrive; 1 is all busy and undisturbed.
no partner for: times a job asked in vain, by the test that its best one failed.
";
/// Columns of text that there are at least.
const WIDTH: usize = 80;

/// A table of all runs, if devices had two jobs in any; else nothing.
pub(super) fn sharing(summaries: &[Summary]) -> String {
    if !summaries.iter().any(|summary| summary.sharing.shared()) {
        return String::new();
    }
    let header = [
        "policy",
        "pairs",
        "re-\nvoked",
        "time\nshared",
        "slower\nall",
        "slower\nguar.",
        "slower\nP95",
        "slower\nworst",
        "solo\nwork",
    ];
    let rows: Vec<Vec<String>> = summaries.iter().map(numbers).collect();
    let table = plain_table(&header, &rows, 1, 1);
    let refused: String = summaries.iter().map(refused).collect();
    format!("\n{table}{refused}\n{LEGEND}")
}

/// How often a job asked for a partner in vain, by the test that its best one failed.
fn refused(summary: &Summary) -> String {
    let tests = summary.sharing.pairs.iter().flat_map(|pairs| &pairs.refused);
    let counts: Vec<String> = tests
        .filter(|&&(_, times)| times > 0)
        .map(|(test, times)| format!(" {test} {}", grouped(*times as f64)))
        .collect();
    let Some(last) = counts.len().checked_sub(1) else { return String::new() };
    let mut text = format!("{}: no partner for", summary.policy);
    let mut line_begins = 0;
    for (at, count) in counts.iter().enumerate() {
        // One more for the comma.
        if text.len() - line_begins + count.len() + 1 > WIDTH {
            line_begins = text.len() + 1;
            text += "\n ";
        }
        text += count;
        text += if at < last { "," } else { "\n" };
    }
    text
}

fn numbers(summary: &Summary) -> Vec<String> {
    let figure = |name: &str| summary.value(name).as_f64();
    let show = |value: Option<f64>, decimals: usize, unit: &str| {
        value.map_or_else(|| "-".to_owned(), |value| with_decimals(value, decimals) + unit)
    };
    let count = |name: &str| figure(name).map_or_else(|| "-".to_owned(), grouped);
    let slower = |ratio: Option<f64>| show(ratio.map(|ratio| 100.0 * (ratio - 1.0)), 1, "%");
    let guaranteed = summary.by_class.iter().find(|group| group.name == Class::Guaranteed.name());
    let guaranteed = guaranteed.and_then(|group| group.jobs.sharing.while_shared_weighted());
    let shared = figure("shared_of_allocated").map(|share| 100.0 * share);
    vec![
        summary.policy.clone(),
        count("pairs_formed"),
        count("pairs_revoked"),
        show(shared, 1, "%"),
        slower(figure("slowdown_while_shared_weighted")),
        slower(guaranteed),
        slower(figure("slowdown_while_shared_p95")),
        slower(figure("slowdown_while_shared_max")),
        show(figure("solo_work_per_installed_arrivals"), 3, ""),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use deepshare_metrics::{
        ArrivalWindow, Counters, JobRecord, PairRecord, QuotaRecord, RunRecord, Usage,
    };
    use deepshare_model::{JobId, Outcome, PoolId, Span, TenantId, Time, UserId};

    /// A job on one GPU that lost so many of 100 s beside another, and ran 100 s alone.
    fn job(number: u32, class: Class, slowed: u64) -> JobRecord {
        let (shared, slowed) = (Span::from_secs(100), Span::from_secs(slowed));
        JobRecord {
            job: JobId(number),
            tenant: TenantId(0),
            user: UserId(0),
            pool: PoolId(0),
            class,
            gpus: 1,
            profile: None,
            slowdown_limit_milli: 1_100,
            submit: Time::ZERO,
            duration: Span::from_secs(200).saturating_sub(slowed),
            first_start: Some(Time::ZERO),
            end: Some(Time::from_secs(200)),
            waited: Span::ZERO,
            preemptions: 0,
            restarts_by_failure: 0,
            shared,
            slowed,
            beside: Vec::new(),
            work_lost: Span::ZERO,
            restart_overhead: Span::ZERO,
            outcome: Outcome::Succeeded,
            refused: false,
        }
    }

    fn tests() -> Vec<(String, u64)> {
        let test = |name: &str, times| (name.to_owned(), times);
        let all = [("class", 12_345), ("memory", 0), ("floor", 1), ("tolerance", 1_000_000)];
        all.into_iter().map(|(name, times)| test(name, times)).collect()
    }

    fn run(policy: &str, shares: bool) -> RunRecord {
        let gpu_secs = |secs: u32| Span::SECOND.on(secs);
        let slowed = [(Class::Guaranteed, 4), (Class::BestEffort, 20)];
        let mut jobs: Vec<JobRecord> =
            (0..).zip(slowed).map(|(at, (class, slowed))| job(at, class, slowed)).collect();
        let mut usage = Usage {
            capacity: gpu_secs(500),
            allocated: gpu_secs(300),
            shared: gpu_secs(100),
            arrival_window: ArrivalWindow {
                capacity: gpu_secs(100),
                solo_work: gpu_secs(88),
                ..ArrivalWindow::default()
            },
            ..Usage::default()
        };
        let mut pairs = PairRecord { formed: 1234, revoked: 7, refused: tests() };
        if !shares {
            jobs.iter_mut().for_each(|job| (job.shared, job.slowed) = Default::default());
            (usage.shared, pairs) = Default::default();
        }
        RunRecord {
            policy: policy.to_owned(),
            estimates: "none".to_owned(),
            jobs,
            usage,
            quota: QuotaRecord::default(),
            pool_gpus: vec![2],
            residents_per_gpu: 2,
            pairs,
            counters: Counters::default(),
        }
    }

    pub fn summary(policy: &str, shares: bool) -> Summary {
        Summary::of(&run(policy, shares), &["tenant"])
    }

    #[test]
    fn runs_that_shared_are_shown_with_those_that_did_not() {
        let text = sharing(&[summary("conservative-backfill", false), summary("deepshare", true)]);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            rows.contains(&vec![
                "conservative-backfill",
                "-",
                "-",
                "-",
                "-",
                "-",
                "-",
                "-",
                "0.880"
            ]),
            "{text}"
        );
        // 200 s beside each other for 176 of work, of which 100 for 96; by job 1.0417 and 1.25.
        let expected =
            ["deepshare", "1,234", "7", "33.3%", "13.6%", "4.2%", "24.0%", "25.0%", "0.880"];
        assert!(rows.contains(&expected.to_vec()), "{text}");
        let refused = "deepshare: no partner for class 12,345, floor 1, tolerance 1,000,000\n\nSha";
        assert!(text.contains(refused), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn refusals_by_many_tests_are_broken_into_lines() {
        let mut summary = summary("deepshare", true);
        let many = (0..12).map(|at| (format!("test-number-{at}"), at));
        summary.sharing.pairs.as_mut().unwrap().refused = many.collect();
        let text = refused(&summary);
        assert_eq!(text.split_whitespace().filter(|word| word.starts_with("test-")).count(), 11);
        assert!(!text.contains("test-number-0"), "nothing failed it: {text}");
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.ends_with("test-number-11 11\n"), "{text}");
    }

    #[test]
    fn nothing_is_shown_if_nobody_shared() {
        assert_eq!(sharing(&[summary("fifo", false)]), "");
        assert_eq!(sharing(&[]), "");
    }
}
