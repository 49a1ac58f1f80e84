//! Other programs: cargo, git, valgrind.

use crate::Failure;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The cargo that runs this chore.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    // What cargo tells this program of itself. Build scripts that ask for it (ring's) would run, and
    // half the tree would compile, anew each time a chore and a person take turns.
    let own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if own(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

/// Git on the repository, whoever owns its folder.
pub fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(root).args(["-c", "safe.directory=*"]);
    command
}

/// Runs a command and returns what it printed.
///
/// # Errors
/// If it cannot be started or fails; with what it said.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    let shown = format!("{command:?}");
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("cannot run {shown}: {error}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{shown} failed ({}):\n{}", done.status, said.trim_end()));
    }
    String::from_utf8(done.stdout).map_err(|_| format!("{shown} printed something not UTF-8"))
}

/// Runs a command with its output shown, and says so where it fails.
///
/// # Errors
/// If it cannot be started, or `failed` if it fails.
pub fn run(command: &mut Command, failed: &str) -> Result<(), Failure> {
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(failed.to_owned()) }
}

/// Builds a program of the workspace, named as its package, as it is shipped and measured; returns its
/// path.
///
/// # Errors
/// If it does not build.
pub fn build(root: &Path, package: &str) -> Result<PathBuf, Failure> {
    build_of(root, package, package)
}

/// The same, of a package that is called otherwise.
///
/// # Errors
/// If it does not build.
pub fn build_of(root: &Path, package: &str, program: &str) -> Result<PathBuf, Failure> {
    let mut command = cargo(root);
    command.args(["build", "--quiet", "--release", "--package", package, "--bin", program]);
    built(root, &mut command, "release", program)
}

/// Builds a program of the workspace as the tests of the whole workspace have it, so that next to nothing
/// is compiled for both; returns its path.
///
/// # Errors
/// If it does not build.
pub fn build_as_tests(root: &Path, program: &str) -> Result<PathBuf, Failure> {
    let mut command = cargo(root);
    // Features of dependencies are those that all packages ask for, not only the program's.
    command.args(["build", "--quiet", "--workspace", "--bin", program]);
    built(root, &mut command, "debug", program)
}

fn built(
    root: &Path,
    command: &mut Command,
    folder: &str,
    program: &str,
) -> Result<PathBuf, Failure> {
    run(command, &format!("{program} does not build; see above"))?;
    let mut metadata = cargo(root);
    metadata.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let metadata: serde_json::Value = serde_json::from_str(&output(&mut metadata)?)
        .map_err(|error| format!("cargo metadata printed no JSON: {error}"))?;
    let target = metadata["target_directory"].as_str();
    let target = target.ok_or("cargo metadata names no target directory")?;
    let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    Ok(Path::new(target).join(folder).join(name))
}
