//! How well quotas were kept, for people.

use super::{Report, plain_table, with_decimals};
use deepshare_metrics::Summary;
use deepshare_model::Class;

const SECONDS_PER_HOUR: f64 = 3_600.0;

const LEGEND: &str = "\
sm. Q: smoothed share of what a tenant was promised and asked for that it held, while it asked.
< 0.95: share of that time with less. avoid-able: waiting that legal victims would have ended.
JCT less dur.: of guaranteed jobs, and of best-effort jobs.
";

/// A table of the runs in which quotas are guarantees; nothing if there are none.
pub(super) fn quotas(report: &Report<'_>) -> String {
    let kept = report.summaries.iter().filter(|summary| summary.quota.guarantees);
    let rows: Vec<Vec<String>> = kept.map(quota_numbers).collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = [
        "policy",
        "mean\nsm. Q",
        "worst\ntenant",
        "time\n< 0.95",
        "avoid-\nable h",
        "guar. JCT\nless dur. s",
        "best-eff. JCT\nless dur. s",
        "victims a\npreemption",
    ];
    let table = plain_table(&header, &rows, 1, 1);
    format!("\n{table}\n{LEGEND}")
}

fn quota_numbers(summary: &Summary) -> Vec<String> {
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "-".to_owned(), |value| with_decimals(value, decimals))
    };
    let figure = |name: &str| summary.value(name).as_f64();
    let delay = |class: Class| {
        let group = summary.by_class.iter().find(|group| group.name == class.name())?;
        Some(group.jobs.jct_minus_duration?.mean)
    };
    let below = figure("qad_below_0_95").map(|share| 100.0 * share);
    vec![
        summary.policy.clone(),
        number(figure("qad_mean"), 4),
        number(figure("qad_worst_tenant"), 4),
        below.map_or_else(|| "-".to_owned(), |below| with_decimals(below, 2) + "%"),
        number(figure("avoidable_s").map(|seconds| seconds / SECONDS_PER_HOUR), 1),
        number(delay(Class::Guaranteed), 0),
        number(delay(Class::BestEffort), 0),
        number(figure("victims_per_preemption_mean"), 2),
    ]
}
