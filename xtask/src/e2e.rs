//! `cargo xtask e2e`: the tests on a real API server, on any version of Kubernetes that is served.

use crate::Failure;
use crate::process::{self, build_as_tests, cargo};
use std::path::Path;
use std::process::Command;

/// What the tests of a cluster take their version from.
const VERSION: &str = "DEEPSHARE_KUBERNETES";

/// Runs them; they fail, instead of being skipped, where there is nothing to run them on.
///
/// # Errors
/// If an argument is unknown, the programs of Kubernetes cannot be built, or a test fails.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    let (version, rest) = match arguments {
        [flag, version, rest @ ..] if flag == "--kubernetes" => (Some(version), rest),
        rest => (None, rest),
    };
    let filter = match rest {
        [] => rest,
        [dashes, filter @ ..] if dashes == "--" => filter,
        [other, ..] => return Err(format!("unexpected argument {other:?}\n\n{}", crate::USAGE)),
    };
    let on = |mut command: Command| {
        command.env("DEEPSHARE_REQUIRE_CLUSTER", "1");
        if let Some(version) = version {
            // Somebody else's programs are of one version, whatever is asked for.
            command.env(VERSION, version).env_remove("KUBEBUILDER_ASSETS");
        }
        command
    };
    // Once for all: each test would wait for it otherwise.
    let mut build = on(Command::new(build_as_tests(root, "deepshare-testbed")?));
    process::run(build.arg("build"), "no Kubernetes to test on; see above")?;
    let mut test = on(cargo(root));
    // Those of the whole workspace, for the features of its dependencies: see `build_as_tests`.
    test.args([
        "test",
        "--workspace",
        "--test",
        "control_plane",
        "--test",
        "nodes",
        "--test",
        "e2e",
    ]);
    process::run(test.args(filter), "not all tests pass; see above")
}
