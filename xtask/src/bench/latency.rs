//! `cargo xtask bench --latency`: how long a decision takes at scale, and the whole preset.

use crate::Failure;
use crate::page::{Marks, preamble, write};
use crate::process::{build, output};
use std::path::Path;
use std::process::Command;

/// Drawn beside the page.
const PICTURE: &str = "docs/images/latency.svg";
/// The picture's own address on the page.
const ON_PAGE: &str = "images/latency.svg";
/// Instants of the usual state that are measured.
const INSTANTS: u32 = 20_000;
const MARKS: Marks = Marks {
    page: "docs/benchmarks.md",
    begin: "<!-- written by `cargo xtask bench --latency --write`: begin -->",
    end: "<!-- written by `cargo xtask bench --latency --write`: end -->",
};

/// Measures and prints; with `--write`, draws and puts both into the page.
///
/// # Errors
/// If the measuring program does not build or fails, or a file cannot be written.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    let writes = writes(arguments)?;
    let program = build(root, "deepshare-bench")?;
    let mut command = Command::new(&program);
    command.args(["latency", &INSTANTS.to_string()]);
    if writes {
        let picture = root.join(PICTURE);
        let folder = picture.parent().expect("the picture lies in a folder");
        let made = std::fs::create_dir_all(folder);
        made.map_err(|error| format!("cannot make the folder of {PICTURE}: {error}"))?;
        command.arg(picture);
    }
    let latency = output(&mut command)?;
    let preset = output(Command::new(&program).arg("scale"))?;
    let how = "`cargo xtask bench --latency`: wall time of the engine's steps on one thread; the \
               preset: process CPU time and peak memory of one run.";
    let picture = format!("![Time of a decision by GPUs and by waiting jobs]({ON_PAGE})");
    let report = format!("{}\n{latency}\n{picture}\n\n{preset}", preamble(root, how)?);
    print!("{report}");
    if writes {
        write(root, &MARKS, &report)?;
    }
    Ok(())
}

/// Whether the page is to be written. Nothing else can be chosen.
fn writes(arguments: &[String]) -> Result<bool, Failure> {
    let mut writes = false;
    for argument in arguments {
        match argument.as_str() {
            "--latency" => {}
            "--write" => writes = true,
            other => return Err(format!("unexpected argument {other:?} beside --latency")),
        }
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writing_can_be_asked_for() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            writes(&words)
        };
        assert_eq!((of(&["--latency"]), of(&["--latency", "--write"])), (Ok(false), Ok(true)));
        assert!(of(&["--latency", "--runs", "3"]).unwrap_err().contains("--runs"));
    }
}
