//! The program that `cargo xtask` runs; not meant for people.

use deepshare_bench::replays::{self, Options};
use deepshare_bench::{determinism, hot_paths, latency, preset};
use deepshare_trace::generate::SCALE_JOBS;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: deepshare-bench list
       deepshare-bench run HOT_PATH UNITS
       deepshare-bench determinism THREADS
       deepshare-bench replays RUNS [DATA_FOLDER]
       deepshare-bench latency INSTANTS [SVG_FILE]
       deepshare-bench scale [JOBS]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match answer(&arguments) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("deepshare-bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn answer(arguments: &[&str]) -> Result<String, String> {
    match arguments {
        ["list"] => Ok(hot_paths::ALL.iter().map(hot_paths::HotPath::line).collect()),
        ["run", name, units] => {
            let path = hot_paths::ALL.iter().find(|path| path.name == *name);
            let path = path.ok_or_else(|| format!("there is no hot path {name:?}\n{USAGE}"))?;
            (path.run)(number(units)?);
            Ok(String::new())
        }
        ["determinism", threads] => {
            let threads = NonZeroUsize::new(number(threads)? as usize);
            let threads = threads.ok_or_else(|| format!("no work without threads\n{USAGE}"))?;
            determinism::hashes(threads).map_err(|error| error.to_string())
        }
        ["replays", runs, data @ ..] if data.len() <= 1 => {
            let data = data.first().map(PathBuf::from);
            let options = Options { runs: number(runs)?.max(1), data };
            replays::table(&options).map_err(|error| error.to_string())
        }
        ["latency", instants, svg @ ..] if svg.len() <= 1 => {
            let report = latency::report(number(instants)?.max(1));
            if let Some(file) = svg.first() {
                let written = std::fs::write(file, &report.svg);
                written.map_err(|error| format!("cannot write {file}: {error}"))?;
            }
            Ok(report.text)
        }
        ["scale", jobs @ ..] if jobs.len() <= 1 => {
            let jobs = jobs.first().map_or(Ok(SCALE_JOBS), |jobs| number(jobs))?;
            preset::table(jobs).map_err(|error| error.to_string())
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a count\n{USAGE}"))
}
