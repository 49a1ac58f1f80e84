//! The comparison that people read.

use super::{Report, grouped, with_decimals};
use crate::inputs::Inputs;
use crate::settings::{Compat, Settings};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use deepshare_metrics::Summary;

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
    let mut text = heading(report.settings, report.inputs);
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
    text += "\ndelay: all waiting. JCT less dur.: waiting, restarts, redone work. GPUs held: share\n\
             of GPU time given to jobs. idle: GPU-hours free while a job waits. No scheduler can\n\
             beat the last row. Definitions: docs/formats/results.md\n";
    text
}

fn figures(report: &Report<'_>, gap: u16, narrow: bool) -> String {
    let makespans = report.summaries.iter().filter_map(|run| run.value("makespan_s").as_f64());
    let in_days = makespans.fold(0.0, f64::max) >= LONG_S;
    let header = [
        "policy",
        "estimates",
        "mean\nJCT s",
        "mean\ndelay s",
        "P99\ndelay s",
        "JCT less\ndur. s",
        "pre-\nempted",
        "GPUs\nheld",
        "idle\nGPU-h",
        if in_days { "make-\nspan d" } else { "make-\nspan h" },
    ];
    let mut rows: Vec<Vec<String>> =
        report.summaries.iter().map(|summary| row(summary, narrow, in_days)).collect();
    if let Some(first) = report.summaries.first() {
        rows.push(bound(first, narrow));
    }
    plain_table(&header, &rows, 2, gap)
}

fn heading(settings: &Settings, inputs: &Inputs) -> String {
    let (trace, cluster) = (&inputs.trace, &inputs.cluster);
    let file = |path: &Option<std::path::PathBuf>, otherwise: &str| {
        path.as_ref().map_or_else(|| otherwise.to_owned(), |path| path.display().to_string())
    };
    let span = trace.jobs.first().zip(trace.jobs.last());
    let days = span.map_or(0.0, |(first, last)| {
        last.submit.saturating_since(first.submit).as_secs_f64() / SECONDS_PER_DAY
    });
    let gpus: u64 = cluster.nodes.iter().map(|node| u64::from(node.gpus)).sum();
    let capacity = crate::inputs::capacity(settings, cluster).name();
    let compat = if settings.compat == Compat::Lucid { ", compat lucid" } else { "" };
    let mut text = format!(
        "trace    {}: {} jobs of {} tenants in {} days\n\
         cluster  {}: {} GPUs in {} nodes\n\
         run      capacity {capacity}, seed {}{compat}\n",
        file(&settings.trace.file, "built-in month"),
        grouped(trace.jobs.len() as f64),
        trace.tenants.len(),
        with_decimals(days, 1),
        file(&settings.cluster.file, "built-in"),
        grouped(gpus as f64),
        grouped(cluster.nodes.len() as f64),
        settings.seed(),
    );
    if let crate::settings::EstimatesFrom::File(path) = &settings.estimates {
        text += &format!("given    estimates of {}\n", path.display());
    }
    text
}

/// A name that may be broken after its hyphens if there is little room.
fn name(text: &str, narrow: bool) -> String {
    if narrow { text.replace('-', "-\n") } else { text.to_owned() }
}

fn estimates(text: &str, narrow: bool) -> String {
    match text {
        "none" => "-".to_owned(),
        _ if text.chars().count() > ESTIMATES_WIDTH => {
            text.chars().take(ESTIMATES_WIDTH - 1).chain(['…']).collect()
        }
        _ => name(text, narrow),
    }
}

fn row(summary: &Summary, narrow: bool, in_days: bool) -> Vec<String> {
    let show = |figure: &str, unit: f64, decimals: usize| {
        let value = summary.value(figure).as_f64();
        value.map_or_else(|| "-".to_owned(), |value| with_decimals(value / unit, decimals))
    };
    let percent = |figure: &str| show(figure, 0.01, 1) + "%";
    vec![
        name(&summary.policy, narrow),
        estimates(&summary.estimates, narrow),
        show("jct_mean_s", 1.0, 0),
        show("queueing_delay_mean_s", 1.0, 0),
        show("queueing_delay_p99_s", 1.0, 0),
        show("jct_minus_duration_mean_s", 1.0, 0),
        show("preemptions", 1.0, 0),
        percent("allocation_ratio"),
        show("idle_while_waiting_gpu_s", SECONDS_PER_HOUR, 0),
        show("makespan_s", if in_days { SECONDS_PER_DAY } else { SECONDS_PER_HOUR }, 1),
    ]
}

/// What nothing can beat. It is about jobs and cluster, so it is the same for every policy.
fn bound(summary: &Summary, narrow: bool) -> Vec<String> {
    let least = summary.value("bound_jct_mean_s").as_f64();
    let duration = summary.value("duration_mean_s").as_f64();
    let over = least.zip(duration).map(|(least, duration)| (least - duration).max(0.0));
    let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), grouped);
    let mut row = vec![name("lower-bound", narrow), String::new(), show(least)];
    row.extend([String::new(), String::new(), show(over)]);
    row.resize(10, String::new());
    row
}
