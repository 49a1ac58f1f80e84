//! `cargo xtask cluster`: a Kubernetes cluster on this machine. What runs it is
//! `crates/live/testbed`.

use crate::Failure;
use crate::process::{self, build_as_tests};
use std::path::Path;
use std::process::Command;

/// What `up` applies, in this order.
const MANIFESTS: [&str; 3] = ["deploy/crds", "deploy/rbac.yaml", "deploy/admission.yaml"];

/// Runs `deepshare-testbed` with the same arguments.
///
/// # Errors
/// If there is no such action, or the program does not build or fails.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    let action = arguments.first().map(String::as_str);
    if !matches!(action, Some("build" | "up" | "down" | "status" | "env")) {
        return Err(format!("say what to do with the cluster\n\n{}", crate::USAGE));
    }
    let mut command = Command::new(build_as_tests(root, "deepshare-testbed")?);
    command.args(arguments);
    if action == Some("up") {
        for path in MANIFESTS {
            command.arg("--manifest").arg(root.join(path));
        }
    }
    process::run(&mut command, "the cluster is not as asked; see above")
}
