//! `deepshare compare`.

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output::{json_line, plain_table, with_decimals};
use crate::terminal;
use deepshare_metrics::{
    Better, Change, Comparison, JobTable, PairedDifference, Pairs, Scope, read_jobs_csv, registry,
};
use deepshare_policies::PolicyConfig;
use serde::Serialize;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Figures shown without `--all`.
const USUAL: [&str; 19] = [
    "finished",
    "unfinished",
    "jct_mean_s",
    "jct_p50_s",
    "jct_p99_s",
    "queueing_delay_mean_s",
    "queueing_delay_p99_s",
    "first_wait_mean_s",
    "jct_minus_duration_mean_s",
    "bounded_slowdown_mean",
    "makespan_s",
    "preemptions",
    "work_lost_gpu_s",
    "qad_mean",
    "qad_worst_tenant",
    "qad_compliance",
    "avoidable_s",
    "victims_per_preemption_mean",
    "victims_gpu_s",
];

/// Figures of each class shown without `--all`, where there are two.
const USUAL_OF_CLASS: [&str; 5] = [
    "jct_mean_s",
    "queueing_delay_mean_s",
    "jct_minus_duration_mean_s",
    "jct_minus_duration_p99_s",
    "preemptions",
];

/// Two files of one policy, or of two.
struct Couple {
    policy: Option<&'static str>,
    a: PathBuf,
    b: PathBuf,
}

#[derive(Serialize)]
struct Document {
    a: String,
    b: String,
    comparisons: Vec<Compared>,
}

#[derive(Serialize)]
struct Compared {
    /// `null` where two files were named.
    policy: Option<&'static str>,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Runs the command.
///
/// # Errors
/// If there is nothing to compare, or a file cannot be read.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let mut comparisons = Vec::new();
    for couple in couples(&args.a, &args.b)? {
        let (a, b) = (read(&couple.a)?, read(&couple.b)?);
        let mut comparison = Comparison::of_tables(&a, &b, args.seed);
        let summaries = (summary_beside(&couple.a)?, summary_beside(&couple.b)?);
        if let (Some(a), Some(b)) = summaries {
            comparison.figures.extend(run_changes(&a, &b));
        }
        warn(couple.policy, &comparison.pairs);
        comparisons.push(Compared { policy: couple.policy, comparison });
    }
    let (a, b) = (args.a.display().to_string(), args.b.display().to_string());
    if args.json {
        return terminal::print(&json_line(&Document { a, b, comparisons }));
    }
    let mut text = format!("A  {a}\nB  {b}\n");
    for compared in &comparisons {
        text.push('\n');
        text += &show(compared, args.all);
    }
    terminal::print(&text)
}

/// What to compare with what.
fn couples(a: &Path, b: &Path) -> Result<Vec<Couple>, Failure> {
    for path in [a, b] {
        if !path.exists() {
            let what =
                format!("{}: no such file or folder; give results to compare", path.display());
            return Err(Failure::Usage(what));
        }
    }
    if let (Some(a), Some(b)) = (jobs_file(a), jobs_file(b)) {
        return Ok(vec![Couple { policy: None, a, b }]);
    }
    let folder = |path: &Path, policy: &str| Some(path.join(policy).join("jobs.csv"));
    let couples: Vec<Couple> = PolicyConfig::NAMES
        .into_iter()
        .filter_map(|policy| {
            let (a, b) = (folder(a, policy)?, folder(b, policy)?);
            (a.is_file() && b.is_file()).then_some(Couple { policy: Some(policy), a, b })
        })
        .collect();
    if couples.is_empty() {
        let what = format!(
            "{} and {} have nothing in common to compare; give two jobs.csv, two folders that hold \
             one, or two folders written by `deepshare simulate --out` that share a policy",
            a.display(),
            b.display()
        );
        return Err(Failure::Usage(what));
    }
    Ok(couples)
}

fn jobs_file(path: &Path) -> Option<PathBuf> {
    let inside = path.join("jobs.csv");
    if path.is_file() { Some(path.to_owned()) } else { inside.is_file().then_some(inside) }
}

fn read(path: &Path) -> Result<JobTable, Failure> {
    let name = path.display().to_string();
    let file = File::open(path)
        .map_err(|error| Failure::Usage(format!("cannot open {name}: {error}; check the path")))?;
    Ok(read_jobs_csv(BufReader::new(file), &name)?)
}

/// The `summary.json` of the run that a `jobs.csv` is of, if it lies beside it.
fn summary_beside(jobs: &Path) -> Result<Option<serde_json::Value>, Failure> {
    let path = jobs.with_file_name("summary.json");
    if !path.is_file() {
        return Ok(None);
    }
    let name = path.display().to_string();
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("{name}: {error}; write it again, or remove it to do without"))
    };
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    serde_json::from_str(&text).map(Some).map_err(|error| wrong(&error))
}

/// Figures of cluster and quotas that either run has; a `jobs.csv` does not hold them.
fn run_changes(a: &serde_json::Value, b: &serde_json::Value) -> Vec<Change> {
    let of_run = registry().into_iter().filter(|figure| figure.scope == Scope::Run);
    let changes = of_run.map(|figure| {
        let value = |run: &serde_json::Value| run[figure.name.as_str()].as_f64();
        Change::new(&figure, value(a), value(b))
    });
    changes.filter(|change| change.a.is_some() || change.b.is_some()).collect()
}

fn warn(policy: Option<&str>, pairs: &Pairs) {
    let of = policy.map_or(String::new(), |policy| format!("{policy}: "));
    let strangers = pairs.only_in_a + pairs.only_in_b + pairs.altered;
    if strangers > 0 {
        terminal::say(&format!(
            "warning: {of}not one trace: {} jobs are only in A, {} only in B, and {} have other \
             GPUs, submission or duration",
            pairs.only_in_a, pairs.only_in_b, pairs.altered
        ));
    }
    if pairs.unfinished > 0 {
        terminal::say(&format!(
            "warning: {of}{} jobs did not end in both runs and are left out of the differences",
            pairs.unfinished
        ));
    }
}

fn show(compared: &Compared, all: bool) -> String {
    let Comparison { figures, by_class, pairs } = &compared.comparison;
    let title = compared.policy.unwrap_or("figure");
    let mut text = figure_table(title, figures, |name| all || USUAL.contains(&name));
    for class in by_class.iter().filter(|_| by_class.len() > 1) {
        text.push('\n');
        let title = format!("{} jobs", class.class);
        let shown = |name: &str| all || USUAL_OF_CLASS.contains(&name);
        text += &figure_table(&title, &class.figures, shown);
    }
    let differences = [("JCT", &pairs.jct), ("queueing delay", &pairs.queueing_delay)];
    let rows: Vec<Vec<String>> = differences
        .into_iter()
        .filter_map(|(name, of)| of.as_ref().map(|of| pair_row(name, of)))
        .collect();
    if !rows.is_empty() {
        text.push('\n');
        let title = format!("{} jobs", pairs.pairs);
        let header = [&title, "B less", "B more", "equal", "mean of B less A, s", "95 % interval"];
        text += &plain_table(&header, &rows, 1, 2);
    }
    text
}

fn figure_table(title: &str, figures: &[Change], shown: impl Fn(&str) -> bool) -> String {
    let shown = figures.iter().filter(|change| shown(&change.name));
    let rows: Vec<Vec<String>> = shown.map(figure_row).collect();
    plain_table(&[title, "A", "B", "B less A", "in %", "better"], &rows, 1, 2)
}

fn figure_row(change: &Change) -> Vec<String> {
    let decimals = if change.unit == "1" { 3 } else { usize::from(change.unit == "s") };
    let number = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |value| with_decimals(value, decimals))
    };
    let percent = change.difference_percent;
    vec![
        change.name.clone(),
        number(change.a),
        number(change.b),
        number(change.difference),
        percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.1}")),
        match change.better {
            Better::Lower => "lower".to_owned(),
            Better::Higher => "higher".to_owned(),
            Better::Neither => String::new(),
        },
    ]
}

fn pair_row(name: &str, of: &PairedDifference) -> Vec<String> {
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let seconds = |value: f64| with_decimals(value, 1);
    vec![
        name.to_owned(),
        percent(of.better_share),
        percent(of.worse_share),
        percent(of.equal_share),
        seconds(of.mean_difference_s),
        format!("{} to {}", seconds(of.interval_low_s), seconds(of.interval_high_s)),
    ]
}
