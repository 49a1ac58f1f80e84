//! `cargo xtask crds`: write the custom resource definitions, generated from their types.

use crate::Failure;
use crate::process::{self, cargo};
use std::path::Path;

/// Writes the definitions to `deploy/crds/`, or with `--check` says which files there are not as the
/// types have it.
///
/// # Errors
/// If the program does not build, a file cannot be written, or one is out of date.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    if let Some(other) = arguments.iter().find(|argument| *argument != "--check") {
        return Err(format!("unexpected argument {other:?}"));
    }
    let mut command = cargo(root);
    // The profile of the tests, which build it anyhow: Kubernetes' types take minutes.
    command.args(["run", "--quiet", "--profile", "test", "--package", "deepshare-kube-api"]);
    command.args(["--bin", "crds", "--", "deploy/crds"]);
    process::run(command.args(arguments.first()), "crds: see above")
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
