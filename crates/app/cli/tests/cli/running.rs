//! Runs the program and keeps what it said.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run left.
#[derive(Debug)]
pub struct Ran {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Standard output of a run that went well.
    pub fn ok(self) -> String {
        assert_eq!(self.status, 0, "{}", self.err);
        self.out
    }

    /// The JSON object on standard output of a run that went well.
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).expect("standard output is one JSON value")
    }

    /// Standard error of a run that did not.
    pub fn fails(self, status: i32) -> String {
        assert_eq!((self.status, self.out.as_str()), (status, ""), "{}", self.err);
        self.err
    }
}

/// The program, to be given arguments.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deepshare"));
    command.stdin(Stdio::null()).env_remove("DEEPSHARE_DATA");
    command
}

/// Runs the program in a folder.
pub fn run_in(folder: &Path, args: &[&str]) -> Ran {
    let done = program().current_dir(folder).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { status: done.status.code().unwrap(), out: text(done.stdout), err: text(done.stderr) }
}

/// Runs the program at the root of the repository.
pub fn run(args: &[&str]) -> Ran {
    run_in(&root(), args)
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The names in a folder, hidden ones too, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The hash of the run of a policy in the JSON of a simulation.
pub fn hashes(object: &serde_json::Value) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let runs = object["runs"].as_array().unwrap();
    runs.iter().map(|run| (text(&run["policy"]), text(&run["result_hash"]))).collect()
}
