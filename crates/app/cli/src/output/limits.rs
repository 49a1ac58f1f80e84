//! How well limits on slowdown were kept and what it brought, for people.

use super::{grouped, plain_table, with_decimals};
use deepshare_metrics::Summary;

const SECONDS_PER_HOUR: f64 = 3_600.0;

const LEGEND: &str = "\
Limits. over: finished jobs that ran longer than their limit allows, of all that
set one and of those that shared. longer: how much longer jobs that shared ran
than alone, mean and worst. by partner: how far that differs by kind of partner.
saved: GPU time spared against running every job alone.
";

/// A table of all runs, if a job set a limit in any; else nothing.
pub(super) fn limits(summaries: &[Summary]) -> String {
    if !summaries.iter().any(|summary| summary.jobs.limits.limited.jobs > 0) {
        return String::new();
    }
    let header = [
        "policy",
        "jobs with\na limit",
        "over\nall",
        "over\nshared",
        "longer\nmean",
        "longer\nworst",
        "by partner\nmax/min",
        "GPU-h\nheld",
        "\nsaved",
    ];
    let rows: Vec<Vec<String>> = summaries.iter().map(numbers).collect();
    let table = plain_table(&header, &rows, 1, 1);
    format!("\n{table}\n{LEGEND}")
}

fn numbers(summary: &Summary) -> Vec<String> {
    let figure = |name: &str| summary.value(name).as_f64();
    let show = |value: Option<f64>, decimals: usize, unit: &str| {
        value.map_or_else(|| "-".to_owned(), |value| with_decimals(value, decimals) + unit)
    };
    let percent = |share: Option<f64>, decimals| show(share.map(|s| 100.0 * s), decimals, "%");
    vec![
        summary.policy.clone(),
        figure("limited_jobs").map_or_else(|| "-".to_owned(), grouped),
        percent(figure("limit_violation_share"), 2),
        percent(figure("limit_violation_share_sharing"), 2),
        percent(figure("jct_increase_sharing_mean"), 1),
        percent(figure("execution_ratio_sharing_max").map(|ratio| ratio - 1.0), 1),
        show(figure("jct_inconsistency_max_over_min"), 2, ""),
        show(figure("allocated_gpu_s").map(|held| held / SECONDS_PER_HOUR), 0, ""),
        percent(figure("gpu_time_saved"), 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sharing::tests::summary;

    #[test]
    fn runs_are_shown_by_how_they_kept_limits_if_any_job_set_one() {
        let text = limits(&[summary("fifo", false), summary("deepshare", true)]);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        // 200 s for 196 and for 180, limits of 1.1; 300 GPU-seconds held for 376 of work.
        let fifo = ["fifo", "2", "50.00%", "-", "-", "-", "-", "0", "20.2%"];
        assert!(rows.contains(&fifo.to_vec()), "{text}");
        let expected = ["deepshare", "2", "50.00%", "50.00%", "6.6%", "11.1%", "-", "0", "20.2%"];
        assert!(rows.contains(&expected.to_vec()), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(limits(&[]), "");
    }
}
