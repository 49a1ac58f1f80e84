//! `cargo xtask bench --cluster`: the scheduler beside kube-scheduler on a real API server.

use crate::Failure;
use crate::page::{Marks, preamble, write};
use crate::process::{build, build_of, output};
use std::path::Path;
use std::process::{Command, Stdio};

const MARKS: Marks = Marks {
    page: "docs/kubernetes/speed.md",
    begin: "<!-- written by `cargo xtask bench --cluster --write`: begin -->",
    end: "<!-- written by `cargo xtask bench --cluster --write`: end -->",
};

/// Measures and prints; with `--write`, puts the tables into the page. All other arguments are those
/// of the measuring program.
///
/// # Errors
/// If a program does not build or fails, or the page cannot be written.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    let writes = arguments.iter().any(|argument| argument == "--write");
    let own = ["--cluster", "--write"];
    let others: Vec<&String> =
        arguments.iter().filter(|argument| !own.contains(&argument.as_str())).collect();
    let scheduler = build_of(root, "deepshare-control", "deepshare-scheduler")?;
    let program = build(root, "deepshare-cluster-bench")?;
    let mut command = Command::new(program);
    command.arg("--scheduler").arg(scheduler).args(&others);
    // It takes a quarter of an hour and says how far it is.
    command.stderr(Stdio::inherit());
    let tables = output(&mut command)?;
    let asked: String = others.iter().map(|argument| format!(" {argument}")).collect();
    let how = format!("`cargo xtask bench --cluster{asked}`.");
    let report = format!("{}\n{tables}", preamble(root, &how)?);
    print!("{report}");
    if writes { write(root, &MARKS, &report) } else { Ok(()) }
}
