//! The command line.

use crate::lucid;
use crate::settings::shipped_names;
use clap::{Args as Arguments, Parser, Subcommand, ValueEnum};
use deepshare_interference::{SHIPPED_CONFIGURATIONS, SHIPPED_PAIRS};
use deepshare_policies::PolicyConfig;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Replay, compare and explain multi-tenant GPU scheduling.
#[derive(Debug, Parser)]
#[command(
    name = "deepshare",
    version,
    about,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Start with `deepshare simulate`: it needs no files. \
                  Every command has examples in its --help."
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Replay a job history under one or more policies and print a comparison
    #[command(
        long_about = "Replay a job history under one or more policies and print a comparison.\n\n\
            Without arguments: a built-in month with the statistics of a published one (23,859 jobs of \
            15 teams on 1,080 GPUs) under every policy, on all cores.\n\n\
            The comparison goes to standard output, everything else to standard error."
    )]
    Simulate(Box<SimulateArgs>),
    /// Compare two results of `simulate --out`, job by job
    Compare(CompareArgs),
    /// Write a built-in history as files to start from
    Generate(GenerateArgs),
    /// Step an engine through the log of a live one and compare what it asks for
    #[command(
        long_about = "Step an engine through the event log of a scheduler on Kubernetes and compare \
            what it asks for with what the scheduler asked for, byte for byte, up to the first \
            difference.\n\n\
            The same release gives the same commands. Another one may decide otherwise: then this \
            shows where it first does."
    )]
    Replay(ReplayArgs),
    /// Check results that others have published
    Reproduce(ReproduceArgs),
    /// Print every setting with its values, unit, default and meaning
    Settings,
    /// Print a script that completes commands in your shell
    #[command(after_help = "Examples:\n  \
        deepshare completions bash > ~/.local/share/bash-completion/completions/deepshare\n  \
        deepshare completions fish > ~/.config/fish/completions/deepshare.fish")]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// A shell that completes commands.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Shell {
    /// GNU Bash.
    Bash,
    /// Z shell.
    Zsh,
    /// Fish.
    Fish,
}

/// `deepshare simulate`.
#[derive(Debug, Arguments)]
#[command(after_long_help = "Examples:\n  \
        deepshare simulate\n  \
        deepshare simulate --trace jobs.csv --cluster cluster.toml\n  \
        deepshare simulate --preset testbed --policy deepshare --policy elastic-quota\n  \
        deepshare simulate --policy fifo --policy srtf --out results\n  \
        deepshare simulate --policy qssf --estimates oracle --json | jq .runs[0].jct_mean_s\n  \
        deepshare simulate --set capacity=pool --set restart.overhead_s=120\n  \
        deepshare simulate --settings results/settings.toml\n  \
        deepshare simulate --history /var/log/deepshare --policy deepshare --policy fifo\n\n\
        Exit status: 0 done, 1 a run failed, 2 wrong usage, settings or input, 130 interrupted.\n\
        Formats: docs/formats/. Settings: `deepshare settings`.")]
pub struct SimulateArgs {
    /// The job history: a CSV file of ours, of Helios or of Philly, plain, .gz or .zst
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// A CSV file with a column `job_id` that orders jobs submitted at the same instant
    #[arg(long, value_name = "FILE")]
    pub trace_order: Option<PathBuf>,
    /// The cluster: a TOML file of ours or a vc_config.csv; needed with --trace
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// The event log of a scheduler on Kubernetes, for jobs and cluster; --cluster replaces its cluster
    #[arg(long, value_name = "LOG")]
    pub history: Option<PathBuf>,
    /// The history to replay without --trace: `venus`, `scale` or `testbed` [default: venus]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// A policy to run, or `all`; may be given again [default: all]
    #[arg(
        long,
        value_name = "NAME",
        long_help = policy_help()
    )]
    pub policy: Vec<String>,
    /// Where run-time estimates come from: `oracle`, `running-mean` or a file
    #[arg(
        long,
        value_name = "SOURCE",
        long_help = "Where run-time estimates come from, for every policy that uses any: `oracle` \
                     (the true duration), `running-mean` (of the user's ended jobs) or a CSV file \
                     `job_id,priority` in seconds. If not given: oracle for sjf, srtf and the \
                     backfills, running-mean for qssf, lucid and deepshare"
    )]
    pub estimates: Option<String>,
    /// What each job runs, for policies that let jobs share GPUs: a CSV file of hardware profiles
    #[arg(
        long,
        value_name = "FILE",
        long_help = "What each job runs and asks of a GPU, for every policy that lets jobs share \
                     them (lucid, deepshare): a CSV file with the columns \
                     `job_id,model,batchsize,gpu_util,gmem_util,gmem`, and if known \
                     `dataset,amp,speed`; a job log that has them does. Without it profiles are \
                     drawn with the seed; see docs/formats/profiles.md"
    )]
    pub profiles: Option<PathBuf>,
    /// A pool of training configurations from which jobs draw what they run: a CSV file or a name
    #[arg(
        long,
        value_name = "FILE|NAME",
        long_help = configurations_help()
    )]
    pub configurations: Option<PathBuf>,
    /// What pairs of workloads keep of their speed on one GPU: a file of measurements, or a name
    #[arg(
        long,
        value_name = "FILE|NAME",
        long_help = pairs_help()
    )]
    pub pairs: Option<PathBuf>,
    /// Sharing scores for lucid: a CSV file `model,dataset,batchsize,amp,label`
    #[arg(
        long,
        value_name = "FILE",
        long_help = "Sharing score of each workload, for lucid: a CSV file \
                     `model,dataset,batchsize,amp,label` with labels 0 (disturbs little) to 2. \
                     Without it scores follow from the profiles"
    )]
    pub workloads: Option<PathBuf>,
    /// Forecast of arrivals for lucid: a CSV file `time,pred_gpu_job,pred_gpu_num`
    #[arg(
        long,
        value_name = "FILE",
        long_help = "Forecast of arrivals in ten minutes, for lucid: a CSV file \
                     `time,pred_gpu_job,pred_gpu_num`. Without it the forecast is what came lately"
    )]
    pub forecast: Option<PathBuf>,
    /// Make this share of jobs best-effort, by a coin; without it the trace says which are
    #[arg(long, value_name = "SHARE")]
    pub best_effort_share: Option<String>,
    /// Seed of the built-in month and of all chance [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// A setting; may be given again. `deepshare settings` lists them
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// A TOML file of settings
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Check every step with an independent auditor; slower
    #[arg(long)]
    pub audit: bool,
    /// Write results to this folder: one with jobs.csv and summary.json a policy, and settings.toml
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace results that are already in the folder, once the new ones are complete
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Runs at the same time [default: one a core]; results do not depend on it
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Say nothing on standard error but errors
    #[arg(long, short)]
    pub quiet: bool,
}

fn configurations_help() -> String {
    let names = shipped_names(&SHIPPED_CONFIGURATIONS);
    format!(
        "A pool of named training configurations from which each job draws, with the seed, what it \
         runs and how its batch, memory and speed hang together: a CSV file, or one of {names}, \
         which come with the program. Not together with --profiles; see \
         docs/formats/configurations.md"
    )
}

fn pairs_help() -> String {
    let names = shipped_names(&SHIPPED_PAIRS);
    format!(
        "What pairs of workloads keep of their speed on one GPU, for every policy that lets jobs \
         share them: a file of measurements, ours or of Lucid, Gavel or Blox, or one of {names}, \
         which come with the program. Pairs that it lacks go by a contention model; see \
         docs/formats/pairs.md"
    )
}

fn policy_help() -> String {
    let (last, others) = PolicyConfig::NAMES.split_last().expect("there are policies");
    let all = others.join(", ");
    format!(
        "A policy to run, or `all`; may be given again [default: all]. One of {all} and {last}. \
         Under `--set compat=lucid`, {} is its artifact's simulator: it then needs its files, and is \
         left out unless asked for",
        lucid::POLICY
    )
}

/// `deepshare compare`.
#[derive(Debug, Arguments)]
#[command(after_long_help = "Examples:\n  \
        deepshare compare results/fifo results/srtf\n  \
        deepshare compare before after\n  \
        deepshare compare before/fifo/jobs.csv after/fifo/jobs.csv --json\n\n\
        Two folders of `simulate --out` are compared policy by policy.\n\
        Jobs are matched by id; figures and intervals are defined in docs/formats/results.md.")]
pub struct CompareArgs {
    /// A jobs.csv, the folder of one, or a folder of `simulate --out`
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// What to compare it with
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Show every figure, not only the usual ones
    #[arg(long)]
    pub all: bool,
    /// Seed of the resampling behind the intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// `deepshare generate`.
#[derive(Debug, Arguments)]
#[command(after_long_help = "Examples:\n  \
        deepshare generate --out trace.csv --cluster-out cluster.toml\n  \
        deepshare generate --days 7 --seed 2 --out week.csv --cluster-out cluster.toml\n  \
        deepshare generate --preset testbed --out jobs.csv --cluster-out gpus.toml\n  \
        deepshare generate --history /var/log/deepshare --out jobs.csv --cluster-out cluster.toml\n  \
        deepshare simulate --trace trace.csv --cluster cluster.toml")]
pub struct GenerateArgs {
    /// Where to write the jobs, as CSV
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Where to write the cluster they run on, as TOML
    #[arg(long, value_name = "FILE")]
    pub cluster_out: Option<PathBuf>,
    /// Write what the event log of a scheduler on Kubernetes holds, not a built-in history
    #[arg(long, value_name = "LOG", conflicts_with_all = ["preset", "seed", "jobs", "days"])]
    pub history: Option<PathBuf>,
    /// Which history: `venus`, a month like a published one; `scale`, a million jobs on 10,000
    /// GPUs; or `testbed`, 50 jobs on 16 GPUs
    #[arg(long, value_name = "NAME", default_value = "venus")]
    pub preset: String,
    /// Seed; the same one gives the same history everywhere
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of jobs [default: 917.65 a day, the load of the published month; 1000000 of `scale`]
    #[arg(long, value_name = "N")]
    pub jobs: Option<u64>,
    /// Days over which those of the month are submitted [default: 26]
    #[arg(long, value_name = "N")]
    pub days: Option<u64>,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
}

/// `deepshare replay`.
#[derive(Debug, Arguments)]
#[command(after_long_help = "Examples:\n  \
        deepshare replay /var/log/deepshare\n  \
        deepshare replay /var/log/deepshare --audit\n  \
        deepshare replay /var/log/deepshare --json | jq .mismatch\n\n\
        Exit status: 0 the same commands, 1 a difference, 2 a log that cannot be read.\n\
        What a log holds: docs/event-log.md.")]
pub struct ReplayArgs {
    /// The folder of the log
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// Check every step with an independent auditor, too, from where a scheduler started
    #[arg(long)]
    pub audit: bool,
    /// Print one JSON object instead of the account
    #[arg(long)]
    pub json: bool,
}

/// `deepshare reproduce`.
#[derive(Debug, Arguments)]
pub struct ReproduceArgs {
    /// What to reproduce.
    #[command(subcommand)]
    pub what: Reproduction,
}

/// Published results.
#[derive(Debug, Subcommand)]
pub enum Reproduction {
    /// The per-job logs of the Lucid artifact on Helios Venus, September 2020
    #[command(
        long_about = "Replay Helios Venus, September 2020, with `compat=lucid` under FIFO, SJF, \
            SRTF, Tiresias, QSSF and Lucid itself, and show how many jobs have the start, end, \
            queueing time and preemptions of the Lucid artifact's published logs, with our means \
            beside the artifact's and those of DeepShare's Table VI. Lucid as published has no log; \
            its means are to be within the range that the order of simultaneous jobs makes.\n\n\
            The data are not part of this program. The folder has helios_venus/ \
            (vc_config.csv, venus_sept2020_jobs.csv.zst, venus_sept2020_trace_order.csv.zst), \
            lucid_venus/ (estimates, profiles, pairs, scores, forecast) and lucid_sim_results/ \
            (logs).",
        after_long_help = "Examples:\n  \
            deepshare reproduce venus --data data\n  \
            DEEPSHARE_DATA=data deepshare reproduce venus --json\n\n\
            Exit status 1 if any job or mean differs."
    )]
    Venus {
        /// The data folder [default: the environment's DEEPSHARE_DATA]
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print one JSON object instead of the table
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pinned::assert_pinned;
    use clap::CommandFactory;

    /// Every command's help, as 100 columns have it.
    fn commands() -> String {
        let mut text = "# Commands\n\nWhat `--help` says of each.\n".to_owned();
        let mut all = vec![(String::from("deepshare"), Args::command())];
        while let Some((name, command)) = all.pop() {
            let inner: Vec<_> = command.get_subcommands().cloned().collect();
            for sub in inner.into_iter().rev().filter(|sub| sub.get_name() != "help") {
                all.push((format!("{name} {}", sub.get_name()), sub));
            }
            let mut shown = command.bin_name(name.clone()).term_width(90);
            let help = shown.render_long_help().to_string();
            let lines: String =
                help.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
            text += &format!("\n## {name}\n\n```text\n{lines}```\n");
        }
        text
    }

    #[test]
    fn the_committed_page_has_every_command_as_it_is() {
        assert_pinned("docs/reference/commands.md", &commands());
    }

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }
}
