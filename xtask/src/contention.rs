//! `cargo xtask contention`: fit the contention model and write the page about it.

use crate::Failure;
use crate::page::{Marks, data, write};
use crate::process::{build, output};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Part of the page that the fit writes.
const PAGE: Marks = Marks {
    page: "docs/results/contention.md",
    begin: "<!-- written by `cargo xtask contention --write`: begin -->",
    end: "<!-- written by `cargo xtask contention --write`: end -->",
};
/// The coefficients that the crate includes.
const COEFFICIENTS: &str = "crates/lab/interference/src/contention/shipped.rs";

/// Fits the coefficients and prints how well they fit; with `--write` into the page and the crate.
///
/// # Errors
/// If there is no data, the program does not build or fails, or a file cannot be written.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    let mut folder = None;
    let mut writes = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--data" => {
                let value = rest.next().ok_or("--data takes a value")?;
                folder = Some(PathBuf::from(value));
            }
            "--write" => writes = true,
            other => return Err(format!("unexpected argument {other:?}")),
        }
    }
    let data = data(root, folder)?;
    let data = data.ok_or("no data folder with helios_venus in it; give one with --data DIR")?;
    let mut command = Command::new(build(root, "deepshare-interference")?);
    command.arg(data);
    if writes {
        command.arg(root.join(COEFFICIENTS));
    }
    // The result depends on the files alone, so the page names no machine and no commit.
    let report = output(&mut command)?;
    print!("{report}");
    if writes {
        write(root, &PAGE, &report)?;
    }
    Ok(())
}
