//! The comparison that people read.

use super::{Report, grouped, with_decimals};
use crate::settings::{Compat, Preset};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use deepshare_engine::CapacityMode;
use deepshare_metrics::Summary;
use deepshare_sim::{Classes, SimSettings};
use std::cmp::Ordering;
use std::path::Path;

const SECONDS_PER_DAY: f64 = 86_400.0;
const SECONDS_PER_HOUR: f64 = 3_600.0;
/// Makespans from this on are told in days, shorter ones in hours.
const LONG_S: f64 = 3.0 * SECONDS_PER_DAY;
/// Longest name of a source of estimates that the table shows whole.
const ESTIMATES_WIDTH: usize = 12;

/// A table without lines. Columns after the first `left` are set to the right, and all are `gap`
/// apart.
pub fn plain_table(header: &[&str], rows: &[Vec<String>], left: usize, gap: u16) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row.clone());
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, gap));
        if at >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The comparison, for so many columns of text (80 or more).
pub fn table(report: &Report<'_>, width: usize) -> String {
    let mut text = heading(report);
    let refused = report.summaries.iter().map(|summary| summary.jobs.refused).max().unwrap_or(0);
    if refused > 0 {
        text += &format!("left out {refused} jobs that this cluster can never run\n");
    }
    text.push('\n');
    // Names are broken only if there is no other way.
    let roomy = [(2, false), (1, false)].map(|(gap, narrow)| figures(report, gap, narrow));
    let fits = |text: &&String| text.lines().all(|line| line.chars().count() <= width);
    let fitting = roomy.iter().find(fits).cloned();
    text += &fitting.unwrap_or_else(|| figures(report, 1, true));
    text += &super::quotas::quotas(report);
    text += &super::sharing::sharing(&report.summaries);
    text += &super::limits::limits(&report.summaries);
    text += "\ndelay: all waiting. JCT less dur.: waiting, restarts, redone work. GPUs held:\n\
             share of GPU time given to jobs. idle: GPU-hours free while a job waits.\n\
             No scheduler can beat the last row. Definitions: docs/formats/results.md\n";
    text
}

fn figures(report: &Report<'_>, gap: u16, narrow: bool) -> String {
    let makespans = report.summaries.iter().filter_map(|run| run.value("makespan_s").as_f64());
    let in_days = makespans.fold(0.0, f64::max) >= LONG_S;
    let mut header = vec!["policy", "estimates"];
    if narrow {
        header = vec!["policy\n(estimates)"];
    }
    let left = header.len();
    header.extend(["mean\nJCT s", "mean\ndelay s", "P99\ndelay s"]);
    header.extend([if narrow { "JCT\nless\ndur. s" } else { "JCT less\ndur. s" }, "pre-\nempted"]);
    header.extend(["GPUs\nheld", "idle\nGPU-h"]);
    header.push(if in_days { "make-\nspan d" } else { "make-\nspan h" });
    let mut rows = Vec::new();
    for summary in &report.summaries {
        let mut row = names(&summary.policy, &summary.estimates, narrow);
        row.extend(numbers(summary, in_days));
        rows.push(row);
    }
    // Pools of their own bind tighter than one for all: only the least bound holds for every run.
    let bounded = |summary: &&Summary| summary.value("bound_jct_mean_s").as_f64();
    let loosest = (report.summaries.iter())
        .min_by(|a, b| bounded(a).partial_cmp(&bounded(b)).unwrap_or(Ordering::Equal));
    if let Some(loosest) = loosest {
        let mut row = names("lower-bound", "", narrow);
        row.extend(bound(loosest));
        row.resize(header.len(), String::new());
        rows.push(row);
    }
    plain_table(&header, &rows, left, gap)
}

fn heading(report: &Report<'_>) -> String {
    let Report { settings, inputs, .. } = report;
    let (trace, cluster) = (&inputs.trace, &inputs.cluster);
    let file = |path: Option<&Path>, otherwise: &str| {
        path.map_or_else(|| otherwise.to_owned(), |path| path.display().to_string())
    };
    let span = trace.jobs.first().zip(trace.jobs.last());
    let days = span.map_or(0.0, |(first, last)| {
        last.submit.saturating_since(first.submit).as_secs_f64() / SECONDS_PER_DAY
    });
    let gpus: u64 = cluster.nodes.iter().map(|node| u64::from(node.gpus)).sum();
    let capacity = capacity(report.runs);
    let compat = if settings.compat == Compat::Lucid { ", compat lucid" } else { "" };
    let classes = match report.runs.first().map(|run| run.classes) {
        None | Some(Classes::AsGiven) => String::new(),
        Some(classes) => format!(", classes {}", classes.name()),
    };
    let built_in = match settings.generate.preset {
        Preset::Venus => "built-in month",
        Preset::Scale => "built-in `scale`",
        Preset::Testbed => "built-in `testbed`",
    };
    let cluster_word = if settings.trace.log.is_some() { "of the log" } else { "built-in" };
    let mut text = format!(
        "trace    {}: {} jobs of {} tenants in {} days\n\
         cluster  {}: {} GPUs in {} nodes\n\
         run      capacity {capacity}, seed {}{compat}{classes}\n",
        file(settings.trace.named(), built_in),
        grouped(trace.jobs.len() as f64),
        trace.tenants.len(),
        with_decimals(days, 1),
        file(settings.cluster.file.as_deref(), cluster_word),
        grouped(gpus as f64),
        grouped(cluster.nodes.len() as f64),
        settings.seed(),
    );
    if let crate::settings::EstimatesFrom::File(path) = &settings.estimates {
        text += &format!("given    estimates of {}\n", path.display());
    }
    text
}

/// The capacity mode; where policies differ, that of the first with those of the others.
fn capacity(runs: &[SimSettings]) -> String {
    let mut modes: Vec<(CapacityMode, Vec<&str>)> = Vec::new();
    for run in runs {
        let (mode, name) = (run.engine.capacity, run.policy.name());
        match modes.iter_mut().find(|(known, _)| *known == mode) {
            Some((_, names)) => names.push(name),
            None => modes.push((mode, vec![name])),
        }
    }
    let Some((first, others)) = modes.split_first() else { return String::new() };
    let others = others.iter().map(|(mode, of)| format!("; {} for {}", mode.name(), of.join(", ")));
    format!("{}{}", first.0.name(), others.collect::<String>())
}

/// The cells of a policy and its estimates: two, or one if there is little room.
fn names(policy: &str, estimates: &str, narrow: bool) -> Vec<String> {
    let source = match estimates {
        "none" => "-".to_owned(),
        _ if estimates.chars().count() > ESTIMATES_WIDTH => {
            estimates.chars().take(ESTIMATES_WIDTH - 1).chain(['…']).collect()
        }
        _ => estimates.to_owned(),
    };
    if !narrow {
        return vec![policy.to_owned(), source];
    }
    if matches!(source.as_str(), "-" | "") {
        return vec![policy.to_owned()];
    }
    let line = format!("{policy} ({source})");
    let short = line.chars().count() <= ESTIMATES_WIDTH + 2;
    vec![if short { line } else { format!("{}\n({source})", policy.replace('-', "-\n")) }]
}

fn numbers(summary: &Summary, in_days: bool) -> [String; 8] {
    let show = |figure: &str, unit: f64, decimals: usize| {
        let value = summary.value(figure).as_f64();
        value.map_or_else(|| "-".to_owned(), |value| with_decimals(value / unit, decimals))
    };
    [
        show("jct_mean_s", 1.0, 0),
        show("queueing_delay_mean_s", 1.0, 0),
        show("queueing_delay_p99_s", 1.0, 0),
        show("jct_minus_duration_mean_s", 1.0, 0),
        show("preemptions", 1.0, 0),
        show("allocation_ratio", 0.01, 1) + "%",
        show("idle_while_waiting_gpu_s", SECONDS_PER_HOUR, 0),
        show("makespan_s", if in_days { SECONDS_PER_DAY } else { SECONDS_PER_HOUR }, 1),
    ]
}

/// What nothing can beat. It is about jobs and pools, so it is the same for every policy that has
/// the same pools.
fn bound(summary: &Summary) -> [String; 4] {
    let least = summary.value("bound_jct_mean_s").as_f64();
    let duration = summary.value("duration_mean_s").as_f64();
    let over = least.zip(duration).map(|(least, duration)| (least - duration).max(0.0));
    let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), grouped);
    [show(least), String::new(), String::new(), show(over)]
}
