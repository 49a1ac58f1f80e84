//! A Kubernetes control plane on loopback and a simulator of GPU nodes, for development and tests.
//!
//! [`Assets`] finds or builds the programs, [`ControlPlane`] runs them, [`NodeSimulator`] plays
//! kubelets and node agents, and [`cluster`] keeps all of that running between commands. The
//! scheduler is not part of it: whatever binds pods is under test.

pub mod assets;
pub mod cluster;
pub mod control_plane;
pub mod manifests;
pub mod nodes;

pub use assets::{Assets, AssetsError, KubernetesVersion};
pub use control_plane::{ControlPlane, ControlPlaneError, Options, User};
pub use nodes::{GpuResource, NodeSimulator, NodeSpec};

/// The programs that tests run against, of the version that `DEEPSHARE_KUBERNETES` asks for; `None`,
/// with a word of why, where there are none and tests may be left out for it.
///
/// # Errors
/// If the programs are missing and cannot be built, and `DEEPSHARE_REQUIRE_CLUSTER` is 1; whatever
/// goes wrong in a build.
pub fn assets_or_skip() -> Result<Option<Assets>, AssetsError> {
    match Assets::find_or_build(KubernetesVersion::asked()?) {
        Ok(assets) => Ok(Some(assets)),
        Err(missing @ AssetsError::GoMissing { .. }) => {
            if std::env::var("DEEPSHARE_REQUIRE_CLUSTER").is_ok_and(|value| value == "1") {
                return Err(missing);
            }
            eprintln!("skipped: {missing}");
            Ok(None)
        }
        Err(other) => Err(other),
    }
}
