//! The programs of a control plane: found, or built once from their Go modules.
//!
//! Few package registries serve Kubernetes binaries, but Go's module proxy serves their source,
//! checked against Go's checksum database. Nothing is patched.

mod build;
mod version;

pub use version::{ETCD, KubernetesVersion};

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs without which there is no control plane.
const NEEDED: [&str; 2] = ["etcd", "kube-apiserver"];
/// Everything that is built.
const BUILT: [&str; 5] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];

/// A folder of programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assets {
    folder: PathBuf,
}

/// Why there are no programs.
#[derive(Debug, thiserror::Error)]
pub enum AssetsError {
    /// `KUBEBUILDER_ASSETS` names a folder that will not do.
    #[error(
        "KUBEBUILDER_ASSETS={} has no {missing}: point it to a folder with etcd and kube-apiserver \
         (kube-controller-manager, kube-scheduler and kubectl beside them), or unset it to have \
         them built", folder.display()
    )]
    Incomplete {
        /// The folder.
        folder: PathBuf,
        /// What is not in it.
        missing: String,
    },
    /// Nothing is cached and Go is not installed.
    #[error(
        "no Kubernetes to run against, so everything that needs a cluster is left out: install Go \
         1.26 or later (https://go.dev/dl or your distribution) and the programs of Kubernetes \
         {version} are built once into {}; or set KUBEBUILDER_ASSETS to a folder with etcd and \
         kube-apiserver", cache.display()
    )]
    GoMissing {
        /// What would be built.
        version: KubernetesVersion,
        /// To where.
        cache: PathBuf,
    },
    /// `DEEPSHARE_KUBERNETES` asks for a version that there is not.
    #[error("{variable}: {0}", variable = KubernetesVersion::VARIABLE)]
    Version(String),
    /// There is nowhere to build to.
    #[error("no folder to keep Kubernetes in: set DEEPSHARE_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,
    /// The cache cannot be read or written.
    #[error("cannot {doing} {}: {error}", path.display())]
    Io {
        /// What was tried, as in `write`.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A step of the build failed.
    #[error("building Kubernetes {version}: `{command}` failed:\n{said}")]
    Build {
        /// What was being built.
        version: KubernetesVersion,
        /// The command.
        command: String,
        /// The end of what it said.
        said: String,
    },
}

impl Assets {
    /// The folder that `KUBEBUILDER_ASSETS` names; else the cached build of `version`, which takes
    /// about ten minutes on two cores the first time and says so on standard error.
    ///
    /// # Errors
    /// If the named folder lacks a program; [`AssetsError::GoMissing`] if there is neither a build
    /// nor Go; and whatever goes wrong in a build.
    pub fn find_or_build(version: KubernetesVersion) -> Result<Assets, AssetsError> {
        if let Some(folder) = std::env::var_os("KUBEBUILDER_ASSETS").filter(|set| !set.is_empty()) {
            return Assets::at(PathBuf::from(folder));
        }
        let cache = cache()?.join("kubernetes");
        let Some(go) = go_version() else {
            // A build by an earlier Go serves as well.
            return newest_build(&cache, version).ok_or(AssetsError::GoMissing { version, cache });
        };
        let folder = cache.join(format!("{}-{go}", version.module()));
        if !complete(&folder) {
            build::build(version, &folder)?;
        }
        Ok(Assets { folder })
    }

    /// The programs in a folder.
    ///
    /// # Errors
    /// If etcd or kube-apiserver is missing.
    pub fn at(folder: PathBuf) -> Result<Assets, AssetsError> {
        let missing: Vec<&str> =
            NEEDED.into_iter().filter(|program| !folder.join(program).is_file()).collect();
        if missing.is_empty() {
            return Ok(Assets { folder });
        }
        Err(AssetsError::Incomplete { folder, missing: missing.join(" and no ") })
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A program's path, if it is there.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.join(name)).filter(|path| path.is_file())
    }

    /// What the API server says of its version, as in `Kubernetes v1.36.3`.
    pub fn kubernetes_version(&self) -> Option<String> {
        let mut command = Command::new(self.folder.join("kube-apiserver"));
        let done = command.arg("--version").stdin(Stdio::null()).output().ok()?;
        let said = String::from_utf8(done.stdout).ok()?;
        done.status.success().then(|| said.trim().to_owned())
    }
}

fn complete(folder: &Path) -> bool {
    BUILT.iter().all(|program| folder.join(program).is_file())
}

/// `DEEPSHARE_CACHE`, or `deepshare` in the user's cache folder.
pub(crate) fn cache() -> Result<PathBuf, AssetsError> {
    let set = |name: &str| std::env::var_os(name).filter(|set| !set.is_empty()).map(PathBuf::from);
    set("DEEPSHARE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("deepshare")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/deepshare")))
        .ok_or(AssetsError::NoCache)
}

/// As `go env GOVERSION` says it: `go1.26.8`.
fn go_version() -> Option<String> {
    let done = Command::new("go").args(["env", "GOVERSION"]).stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8(done.stdout).ok()?;
    let word = said.split_whitespace().next()?;
    done.status.success().then(|| word.to_owned())
}

fn newest_build(cache: &Path, version: KubernetesVersion) -> Option<Assets> {
    let begin = format!("{}-", version.module());
    let entries = std::fs::read_dir(cache).ok()?.flatten().map(|entry| entry.path());
    let ours = entries.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begin))
    });
    ours.filter(|path| complete(path)).max().map(|folder| Assets { folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_folder_is_refused_by_name_of_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("etcd"), "").unwrap();
        let refused = Assets::at(folder.path().to_owned()).unwrap_err().to_string();
        assert!(refused.contains("has no kube-apiserver:"), "{refused}");
        std::fs::write(folder.path().join("kube-apiserver"), "").unwrap();
        let assets = Assets::at(folder.path().to_owned()).unwrap();
        assert_eq!(assets.program("kubectl"), None);
    }

    #[test]
    fn without_go_the_text_says_what_is_left_out_and_how_to_get_it() {
        let missing = AssetsError::GoMissing {
            version: KubernetesVersion::default(),
            cache: PathBuf::from("/cache"),
        };
        let text = missing.to_string();
        for part in ["left out", "go.dev/dl", "1.26 or later", "KUBEBUILDER_ASSETS", "/cache"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }

    #[test]
    fn versions_are_named_by_minor_release() {
        let version: KubernetesVersion = "1.37".parse().unwrap();
        assert_eq!((version.module(), version.staging()), ("v1.37.2".into(), "v0.37.2".into()));
        assert!("1.33".parse::<KubernetesVersion>().unwrap_err().contains("1.34"));
    }
}
