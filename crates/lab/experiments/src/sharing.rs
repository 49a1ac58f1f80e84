//! What sharing GPUs is worth: DeepShare with and without, and Lucid beside it, on the Venus month
//! with its published profiles and pairs.

mod bars;
mod lines;
mod philly;
mod rivals;
mod testbed;
mod truth;

use crate::ExperimentError;
use crate::figures::{Column, compliance, delay};
use crate::month::{Month, NODES};
use crate::tables::{Load, Table, coin, run, say};
use deepshare_metrics::Summary;
use std::path::Path;

/// Nodes of the loaded clusters: offered load 1.0, 1.2 and 1.4.
const LOADED: [usize; 3] = [120, 100, 86];
/// Seeds of tables that answer no bar.
const FEW: u64 = 2;
/// Seeds of the sweeps of ε.
const SWEPT: u64 = 5;

fn figure(summary: &Summary, name: &str) -> Option<f64> {
    summary.value(name).as_f64()
}

/// Slowdown of shared jobs while they share, weighted by GPU time, percent.
fn slowdown(summary: &Summary) -> Option<f64> {
    Some(100.0 * (figure(summary, "slowdown_while_shared_weighted")? - 1.0))
}

/// The same of guaranteed jobs.
fn guaranteed_slowdown(summary: &Summary) -> Option<f64> {
    let group = summary.by_class.iter().find(|group| group.name == "guaranteed")?;
    Some(100.0 * (group.jobs.sharing.while_shared_weighted()? - 1.0))
}

/// Solo work done per installed GPU-second while jobs arrive, percent.
fn solo(summary: &Summary) -> Option<f64> {
    Some(100.0 * figure(summary, "solo_work_per_installed_arrivals")?)
}

fn avoidable(summary: &Summary) -> Option<f64> {
    Some(summary.quota.avoidable?.time.as_secs_f64())
}

fn queueing(summary: &Summary) -> Option<f64> {
    figure(summary, "queueing_delay_mean_s")
}

const COLUMNS: &[Column] = &[
    Column { title: "JCT − duration, s", digits: 0, get: delay },
    Column { title: "queueing delay, s", digits: 0, get: queueing },
    Column { title: "its P95, s", digits: 0, get: |s| figure(s, "queueing_delay_p95_s") },
    Column { title: "its P99, s", digits: 0, get: |s| figure(s, "queueing_delay_p99_s") },
    Column { title: "JCT / duration, P95", digits: 2, get: |s| figure(s, "slowdown_p95") },
    Column { title: "P99", digits: 2, get: |s| figure(s, "slowdown_p99") },
    Column { title: "solo work per installed GPU-s, %", digits: 1, get: solo },
    Column {
        title: "per allocated, %",
        digits: 1,
        get: |s| Some(100.0 * figure(s, "solo_work_per_allocated_arrivals")?),
    },
    Column { title: "slowdown while shared, %", digits: 2, get: slowdown },
    Column { title: "of guaranteed jobs, %", digits: 2, get: guaranteed_slowdown },
    Column {
        title: "of jobs, P95, %",
        digits: 1,
        get: |s| Some(100.0 * (figure(s, "slowdown_while_shared_p95")? - 1.0)),
    },
    Column {
        title: "allocated GPU-s shared, %",
        digits: 1,
        get: |s| Some(100.0 * figure(s, "shared_of_allocated_arrivals")?),
    },
    Column { title: "pairs", digits: 0, get: |s| figure(s, "pairs_formed") },
    Column { title: "revoked", digits: 0, get: |s| figure(s, "pairs_revoked") },
    Column { title: "compliance, %", digits: 2, get: compliance },
    Column { title: "avoidable waiting, s", digits: 0, get: avoidable },
    Column {
        title: "compute in use, of installed, %",
        digits: 1,
        get: |s| Some(100.0 * figure(s, "compute_in_use_of_installed_arrivals")?),
    },
    Column {
        title: "GPU memory in use, of installed, %",
        digits: 1,
        get: |s| Some(100.0 * figure(s, "memory_in_use_of_installed_arrivals")?),
    },
];

/// The page's tables and judgements, as Markdown.
///
/// # Errors
/// See [`ExperimentError`].
pub fn page(data: &Path, seeds: u64) -> Result<String, ExperimentError> {
    let venus = Month::venus(data)?;
    let truth = truth::Truth::venus(data, &venus)?;
    let interference = truth.by_seed(0.902, seeds);
    let lucid = rivals::Files::read(data, &venus)?;
    let load = |nodes: usize| Load {
        month: &venus,
        nodes,
        classes: coin(40),
        seeds,
        interference: &interference,
        columns: COLUMNS,
    };
    let published = rivals::published(data, &venus)?;
    let mut cases = lines::both();
    cases.extend(lucid.partitioned(&venus));
    cases.extend(lucid.pooled());
    let main = run("135 nodes (the published cluster)", &load(NODES), cases)?;
    let mut loaded = Vec::new();
    for nodes in LOADED {
        let title = format!("{nodes} nodes, quotas of 135");
        let mut cases = lines::both();
        if nodes == 100 {
            cases.extend(lines::narrow());
        }
        cases.extend(lucid.pooled());
        loaded.push(run(&title, &load(nodes), cases)?);
    }
    let few = |nodes: usize| Load { seeds: seeds.min(FEW), ..load(nodes) };
    let ablations = run("100 nodes: without one thing or another", &few(100), lines::ablations())?;
    let mut sweeps = Vec::new();
    for nodes in [100, 86] {
        let title = format!("ε, as a multiple of all GPUs: {nodes} nodes");
        let load = Load { seeds: seeds.min(SWEPT), ..load(nodes) };
        sweeps.push(run(&title, &load, lines::sweep(900))?);
    }
    for nodes in [100, 86] {
        let title = format!("ε without the floor of guaranteed jobs (literal): {nodes} nodes");
        sweeps.push(run(&title, &few(nodes), lines::sweep(0))?);
    }
    let elsewhere = philly::sweeps(data, seeds)?;
    let told = truth.predictors(&venus, coin(40), seeds.min(FEW))?;

    let mut text = bars::judge(&published, &main, &loaded, &sweeps);
    text.push_str(&bars::by_size(&loaded));
    say(&mut text, truth.describe());
    let tables = [&main].into_iter().chain(&loaded).chain([&ablations]);
    for table in tables.chain(&sweeps).chain(&elsewhere).chain([&told]) {
        table.show(&mut text);
    }
    text.push_str(&testbed::page()?);
    Ok(text)
}

/// A table's line, which the page's own code has put there.
fn line<'a>(table: &'a Table, name: &str) -> &'a crate::tables::Line {
    table.line(name).expect("the page's own line")
}
