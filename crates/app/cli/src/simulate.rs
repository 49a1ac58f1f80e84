//! `deepshare simulate`.

use crate::args::SimulateArgs;
use crate::failure::Failure;
use crate::inputs::{self, Inputs};
use crate::interrupt::Interrupt;
use crate::lucid;
use crate::output::{self, Report};
use crate::progress::Progress;
use crate::settings::{self, Assignment, Capacity, EstimatesFrom, Raw, Settings};
use crate::sharing;
use crate::staging::Target;
use crate::terminal;
use deepshare_metrics::{RunRecord, Summary};
use deepshare_sim::{SimSettings, simulate_all};
use rayon::prelude::*;
use std::num::NonZeroUsize;

/// Runs the command.
///
/// # Errors
/// See [`Failure`]; then nothing was written.
pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::listen();
    let mut settings = settings_of(args)?;
    let target = args.out.as_deref().map(|path| Target::of(path, args.force)).transpose()?;
    let inputs = inputs::load(&settings)?;
    let runs = inputs::runs(&settings, &inputs)?;
    if let Some(mode) = inputs::one_capacity(&runs) {
        settings.capacity = Capacity::Mode(mode);
    }
    if !args.quiet {
        advise(&settings, &inputs, &runs);
    }
    interrupt.gentle();
    let records = replay(&settings, &inputs, &runs, args, &interrupt)?;
    let summaries = summarise(&records, &inputs, args.threads)?;
    let (settings, inputs, runs) = (&settings, &inputs, &runs[..]);
    let report = Report { settings, inputs, runs, records: &records, summaries };
    if let Some(target) = target {
        output::write_folder(&report, target, &interrupt)?;
    }
    interrupt.abrupt();
    if args.json {
        return terminal::print(&report.json());
    }
    terminal::print(&output::table(&report, terminal::width()))
}

/// Settings of the file, `--set` and flags, weakest first.
fn settings_of(args: &SimulateArgs) -> Result<Settings, Failure> {
    let mut problems = Vec::new();
    let mut assignments = Vec::new();
    if let Some(path) = &args.settings {
        assignments.extend(settings::from_file(path, &mut problems));
    }
    assignments.extend(settings::from_text(&args.set, &mut problems));
    assignments.extend(flags(args));
    match Settings::of(&assignments) {
        Ok(settings) if problems.is_empty() => Ok(settings),
        Ok(_) => Err(Failure::Settings(problems)),
        Err(more) => {
            problems.extend(more);
            Err(Failure::Settings(problems))
        }
    }
}

/// Flags are settings too, the strongest.
fn flags(args: &SimulateArgs) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    let mut flag = |flag: &str, key: &str, value: Raw| {
        let key = settings::find_key(key).expect("flags stand for keys of the table");
        assignments.push(Assignment { key, value, place: flag.to_owned() });
    };
    let files = [
        ("--trace", "trace.file", &args.trace),
        ("--trace-order", "trace.order_file", &args.trace_order),
        ("--cluster", "cluster.file", &args.cluster),
        ("--history", "trace.log", &args.history),
        ("--profiles", "profiles.file", &args.profiles),
        ("--configurations", "configurations.file", &args.configurations),
        ("--pairs", "pairs.file", &args.pairs),
        ("--workloads", "workloads.file", &args.workloads),
        ("--forecast", "forecast.file", &args.forecast),
    ];
    for (name, key, path) in files {
        if let Some(path) = path {
            flag(name, key, Raw::text(&path.display().to_string()));
        }
    }
    if !args.policy.is_empty() {
        flag("--policy", "policy", Raw::text(&args.policy.join(",")));
    }
    if let Some(preset) = &args.preset {
        flag("--preset", "generate.preset", Raw::text(preset));
    }
    if let Some(source) = &args.estimates {
        flag("--estimates", "estimates.from", Raw::text(source));
    }
    if let Some(share) = &args.best_effort_share {
        flag("--best-effort-share", "best_effort_share", Raw::typed(share));
    }
    if let Some(seed) = args.seed {
        flag("--seed", "seed", Raw::typed(&seed.to_string()));
    }
    if args.audit {
        flag("--audit", "audit", Raw::typed("true"));
    }
    assignments
}

/// Says what was read and what may surprise.
fn advise(settings: &Settings, inputs: &Inputs, runs: &[SimSettings]) {
    if settings.trace.named().is_some() {
        terminal::say(&inputs.trace.report.to_string());
    }
    if settings.estimates != EstimatesFrom::Default
        && !runs.iter().any(|run| run.policy.uses_estimates())
        && !lucid::is_asked_for(settings)
    {
        terminal::say("note: no policy of this run uses run-time estimates");
    }
    if lucid::is_asked_for(settings) && settings.runs[0].audit {
        terminal::say("note: Lucid's artifact runs outside the engine, where there is no auditor");
    }
    sharing::advise(settings, runs);
    if inputs.trace.jobs.is_empty() {
        terminal::say("warning: the trace has no jobs");
    }
}

fn replay(
    settings: &Settings,
    inputs: &Inputs,
    runs: &[SimSettings],
    args: &SimulateArgs,
    interrupt: &Interrupt,
) -> Result<Vec<RunRecord>, Failure> {
    let jobs = (inputs.trace.jobs.len() * runs.len()) as u64;
    let _progress = Progress::show(&interrupt.watch, jobs, !args.quiet);
    on_threads(args.threads, || {
        let engine = |runs: &[SimSettings]| {
            simulate_all(&inputs.trace, &inputs.cluster, runs, &interrupt.watch)
        };
        let Some(at) = settings.policies.iter().position(|name| lucid::is_artifact(settings, name))
        else {
            return Ok(engine(runs)?);
        };
        // It is quick, and may yet refuse its inputs.
        let record = lucid::run(settings, inputs, lucid::when_sharing(settings))?;
        let mut records = engine(&[&runs[..at], &runs[at + 1..]].concat())?;
        records.insert(at, record);
        Ok(records)
    })?
}

fn summarise(
    records: &[RunRecord],
    inputs: &Inputs,
    threads: Option<NonZeroUsize>,
) -> Result<Vec<Summary>, Failure> {
    let names = &inputs.trace.tenants;
    on_threads(threads, || records.par_iter().map(|run| Summary::of(run, names)).collect())
}

/// Does `work` on so many threads, but at most on one for each core; on just these if `None`.
fn on_threads<T: Send>(
    threads: Option<NonZeroUsize>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let Some(threads) = threads else { return Ok(work()) };
    // More threads than cores would only wait for each other.
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.min(cores).get()).build();
    let pool = pool.map_err(|error| {
        Failure::Usage(format!("--threads {threads}: cannot start them: {error}; use fewer"))
    })?;
    Ok(pool.install(work))
}
