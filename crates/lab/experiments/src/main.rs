//! The program that `cargo xtask experiment` runs; not meant for people.

use deepshare_experiments::{ExperimentError, quotas, sharing, slowdown_limits, when_to_share};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: deepshare-experiments quotas|sharing|when-to-share|slowdown-limits \
                     SEEDS DATA_FOLDER";

type Page = fn(&Path, u64) -> Result<String, ExperimentError>;

/// Experiments by name.
const PAGES: [(&str, Page); 4] = [
    ("quotas", quotas::page),
    ("sharing", sharing::page),
    ("when-to-share", when_to_share::page),
    ("slowdown-limits", slowdown_limits::page),
];

fn page(arguments: &[&str]) -> Result<String, String> {
    let &[experiment, seeds, data] = arguments else { return Err(USAGE.to_owned()) };
    let known = PAGES.iter().find(|(name, _)| *name == experiment);
    let (_, page) = known.ok_or_else(|| USAGE.to_owned())?;
    let seeds = seeds.parse().map_err(|_| format!("{seeds:?} is not a count\n{USAGE}"))?;
    page(Path::new(data), seeds).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match page(&arguments) {
        Ok(page) => {
            print!("{page}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("deepshare-experiments: {why}");
            ExitCode::FAILURE
        }
    }
}
