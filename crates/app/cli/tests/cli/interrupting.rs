//! Ctrl-C at any moment: all of the results or none.
#![cfg(unix)]

use crate::running::{names, program};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Sends SIGINT after a while; the exit status, and what was said.
fn interrupted_after(folder: &std::path::Path, pause: Duration, args: &[&str]) -> (i32, String) {
    let mut command = program();
    let child = command.current_dir(folder).args(args);
    let child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(pause);
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).stderr(Stdio::null()).status().unwrap();
    let done = child.wait_with_output().unwrap();
    // Before the program listens the system ends it, which shells call 130 too.
    let status = done.status.code().or(done.status.signal().map(|signal| 128 + signal));
    (status.unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn ctrl_c_during_a_run_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Far more than can be done before the signal.
    let args = ["simulate", "--set", "generate.jobs=300000", "--audit", "--out", "results"];
    let (status, said) = interrupted_after(folder.path(), Duration::from_secs(2), &args);
    assert_eq!(status, 130, "{said}");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn ctrl_c_at_any_moment_leaves_all_or_nothing() {
    let args = [
        "simulate",
        "-q",
        "--set",
        "generate.days=3",
        "--set",
        "policy=fifo,sjf",
        "--out",
        "results",
    ];
    for pause in [5, 20, 40, 60, 80, 100, 120, 150, 200, 300, 400, 600] {
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = interrupted_after(folder.path(), Duration::from_millis(pause), &args);
        assert!(status == 0 || status == 130, "{status} after {pause} ms: {said}");
        let left = names(folder.path());
        match left.as_slice() {
            [] => assert_eq!(status, 130),
            [results] => {
                assert_eq!(results, "results", "after {pause} ms");
                let whole = ["fifo", "run.json", "settings.toml", "sjf"];
                assert_eq!(names(&folder.path().join("results")), whole);
            }
            more => panic!("{more:?} after {pause} ms"),
        }
    }
}
