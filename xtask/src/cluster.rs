//! `cargo xtask cluster`: a Kubernetes cluster on this machine. What runs it is
//! `crates/live/testbed`.

use crate::Failure;
use crate::process::cargo;
use std::path::Path;

/// What `up` applies, as far as it is there: in this order.
const MANIFESTS: [&str; 2] = ["deploy/crds", "deploy/rbac.yaml"];

/// Runs `deepshare-testbed` with the same arguments.
///
/// # Errors
/// If there is no such action, or the program does not build or fails.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    let action = arguments.first().map(String::as_str);
    if !matches!(action, Some("up" | "down" | "status")) {
        return Err(format!("say what to do with the cluster\n\n{}", crate::USAGE));
    }
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--package", "deepshare-testbed", "--"]).args(arguments);
    if action == Some("up") {
        let manifests = MANIFESTS.map(|path| root.join(path));
        for path in manifests.iter().filter(|path| path.exists()) {
            command.arg("--manifest").arg(path);
        }
    }
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the cluster is not as asked; see above".to_owned()) }
}
