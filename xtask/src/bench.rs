//! `cargo xtask bench` and `cargo xtask determinism`: run the measuring program and judge.

mod cluster;
mod latency;

use crate::Failure;
use crate::page::{Marks, data, preamble, write};
use crate::process::{build, build_as_tests, output};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Marks of the part that this chore writes.
const MONTH: Marks = Marks {
    page: "docs/benchmarks.md",
    begin: "<!-- written by `cargo xtask bench --write`: begin -->",
    end: "<!-- written by `cargo xtask bench --write`: end -->",
};

struct Options {
    data: Option<PathBuf>,
    runs: u32,
    write: bool,
}

impl Options {
    fn of(arguments: &[String]) -> Result<Options, Failure> {
        let mut options = Options { data: None, runs: 5, write: false };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{argument} takes a value"));
            match argument.as_str() {
                "--data" => options.data = Some(PathBuf::from(value()?)),
                "--runs" => {
                    let runs = value()?;
                    options.runs = runs.parse().map_err(|_| format!("{runs:?} is no count"))?;
                }
                "--write" => options.write = true,
                other => return Err(format!("unexpected argument {other:?}")),
            }
        }
        Ok(options)
    }
}

/// Measures the CPU time of every policy and prints it.
///
/// # Errors
/// If the measuring program does not build or fails, or the page cannot be written.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    if arguments.iter().any(|argument| argument == "--latency") {
        return latency::run(root, arguments);
    }
    if arguments.iter().any(|argument| argument == "--cluster") {
        return cluster::run(root, arguments);
    }
    let options = Options::of(arguments)?;
    let data = data(root, options.data)?;
    let program = build(root, "deepshare-bench")?;
    let mut command = Command::new(program);
    command.args(["replays", &options.runs.to_string()]).args(&data);
    let table = output(&mut command)?;
    let runs = options.runs;
    let how = format!(
        "`cargo xtask bench --runs {runs}`: process CPU time of one replay on one thread, reading \
         and reports left out; median, least and most of {runs} runs."
    );
    let report = format!("{}\n{table}", preamble(root, &how)?);
    print!("{report}");
    if data.is_none() {
        eprintln!("skipped: the real month (no data folder; give one with --data)");
    }
    if options.write {
        write(root, &MONTH, &report)?;
    }
    Ok(())
}

/// Replays a week in two processes, on one thread and on two, and compares the results.
///
/// # Errors
/// If any differ.
pub fn determinism(root: &Path) -> Result<(), Failure> {
    // What a result depends on, it depends on however it was compiled.
    let program = build_as_tests(root, "deepshare-bench")?;
    let hashes = |threads: &str| {
        println!("determinism: a generated week under every policy, threads: {threads}");
        output(Command::new(&program).args(["determinism", threads]))
    };
    let (one, two) = (hashes("1")?, hashes("2")?);
    print!("{one}");
    let differing = differences(&one, &two);
    if differing.is_empty() {
        println!("determinism: {} results, the same both times", one.lines().count());
        return Ok(());
    }
    Err(format!(
        "results depend on more than the inputs:\n{}\nlook for an unordered map, a clock or chance \
         without a seed in what these runs share",
        differing.join("\n")
    ))
}

/// Lines that are not the same.
fn differences(one: &str, two: &str) -> Vec<String> {
    let pairs = one.lines().zip(two.lines()).filter(|(one, two)| one != two);
    let mut found: Vec<String> = pairs.map(|(one, two)| format!("  {one}\n  {two}")).collect();
    let (first, second) = (one.lines().count(), two.lines().count());
    if first != second {
        found.push(format!("  {first} results, then {second}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_differ_or_are_missing_are_shown() {
        assert!(differences("a\nb\n", "a\nb\n").is_empty());
        assert_eq!(differences("a\nb\n", "a\nc\n"), ["  b\n  c"]);
        assert_eq!(differences("a\nb\n", "a\n").len(), 1);
    }

    #[test]
    fn options_are_read_and_wrong_ones_refused() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Options::of(&words)
        };
        let options = of(&["--runs", "3", "--write", "--data", "d"]).unwrap();
        assert_eq!((options.runs, options.write), (3, true));
        assert_eq!(options.data, Some(PathBuf::from("d")));
        for wrong in [&["--runs"][..], &["--runs", "x"], &["--fast"]] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
