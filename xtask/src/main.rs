//! `cargo xtask`: chores of this repository.

mod bench;
mod cluster;
mod contention;
mod crds;
mod e2e;
mod experiment;
mod instructions;
mod page;
mod pictures;
mod process;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
chores of this repository

usage: cargo xtask <chore>

  tidy                        check rings, bans, style, links and what is committed
  determinism                 replay twice, on one thread and on two: the same results?
  bench [--data DIR] [--runs N] [--write]
                              CPU time of every policy; --write puts it into docs/benchmarks.md
  bench --latency [--write]   time of DeepShare's decisions at 10,000 GPUs, and the preset scale
  bench --cluster [--write] [ARGUMENTS]
                              the scheduler beside kube-scheduler on one control plane; ARGUMENTS
                              are those of deepshare-cluster-bench, as in --runs 1
  cluster up [--nodes N] [--gpus G] [--kubernetes 1.34|1.35|1.36|1.37] [--dir DIR]
  cluster build | env | status | down [--dir DIR]
                              a Kubernetes control plane on this machine with simulated GPU nodes;
                              docs/testbed.md says how pods and nodes are made to behave
  e2e [--kubernetes 1.34|1.35|1.36|1.37] [-- ARGUMENTS]
                              tests on a real API server of that version, built if it is not there
                              yet; ARGUMENTS are those of cargo test, as in scenarios
  experiment quotas|sharing|when-to-share [--data DIR] [--seeds N] [--write]
                              what quota assurance, or sharing GPUs, is worth on a real month, or
                              when sharing pays; --write puts it into the page of that name in
                              docs/results/
  contention [--data DIR] [--write]
                              fit the contention model; --write puts its quality into
                              docs/results/contention.md and its coefficients into the crate
  crds [--check]              write the custom resource definitions in deploy/crds/, generated from
                              their types; --check says which ones are out of date
  pictures [--check]          draw the schedules of scripts in scenarios/ that ask for a picture;
                              --check says which ones in docs/ are out of date
  instructions [--check | --write] [NAME]...
                              instruction counts of hot paths; --check compares them with
                              xtask/instructions.toml, --write renews that file";

/// Why a chore failed, for people.
type Failure = String;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (chore, rest) = match arguments.split_first() {
        Some((chore, rest)) => (chore.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let done = match chore {
        "tidy" => no_more(rest).and_then(|()| tidy::run(&root())),
        "determinism" => no_more(rest).and_then(|()| bench::determinism(&root())),
        "bench" => bench::run(&root(), rest),
        "cluster" => cluster::run(&root(), rest),
        "e2e" => e2e::run(&root(), rest),
        "experiment" => experiment::run(&root(), rest),
        "contention" => contention::run(&root(), rest),
        "crds" => crds::run(&root(), rest),
        "pictures" => pictures::run(&root(), rest),
        "instructions" => instructions::run(&root(), rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(format!("there is no chore {other:?}\n\n{USAGE}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

fn no_more(rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => Err(format!("unexpected argument {extra:?}\n\n{USAGE}")),
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace's root").to_owned()
}
