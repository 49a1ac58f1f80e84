//! The command `deepshare`: replay job histories on a cluster under scheduling policies, and
//! compare what came out.
//!
//! Data goes to stdout, talk to stderr. Exit status: 0 done, 1 a run failed, 2 wrong usage, settings
//! or input, 130 interrupted.

mod args;
mod compare;
mod failure;
mod generate;
mod history;
mod inputs;
mod interrupt;
mod lucid;
mod output;
#[cfg(test)]
mod pinned;
mod progress;
mod replay;
mod reproduce;
mod settings;
mod sharing;
mod simulate;
mod staging;
mod terminal;

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.command {
        Command::Simulate(args) => simulate::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Settings => terminal::print(&settings::reference()),
        Command::Completions { shell } => completions(shell),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                terminal::say(&format!("error: {message}"));
            }
            ExitCode::from(failure.status())
        }
    }
}

fn completions(shell: args::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    let shell = match shell {
        args::Shell::Bash => clap_complete::Shell::Bash,
        args::Shell::Zsh => clap_complete::Shell::Zsh,
        args::Shell::Fish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(shell, &mut Args::command(), "deepshare", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))
}
