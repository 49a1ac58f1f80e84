//! `cargo xtask crds`: write the custom resource definitions, generated from their types.

use crate::Failure;
use crate::process::{self, build_as_tests};
use std::path::Path;
use std::process::Command;

/// Writes the definitions to `deploy/crds/`, or with `--check` says which files there are not as the
/// types have it.
///
/// # Errors
/// If the program does not build, a file cannot be written, or one is out of date.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    if let Some(other) = arguments.iter().find(|argument| *argument != "--check") {
        return Err(format!("unexpected argument {other:?}"));
    }
    let mut command = Command::new(build_as_tests(root, "crds")?);
    command.current_dir(root).arg("deploy/crds").args(arguments.first());
    process::run(&mut command, "crds: see above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_checking_can_be_asked_for() {
        let said = run(Path::new("."), &["--apply".to_owned()]).unwrap_err();
        assert!(said.contains("--apply"), "{said}");
    }
}
