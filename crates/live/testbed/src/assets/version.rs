//! Which Kubernetes, and which etcd beside it.

use super::AssetsError;
use std::fmt;
use std::str::FromStr;

/// Version of etcd that is built beside every Kubernetes.
pub const ETCD: &str = "v3.6.15";

/// A minor version of Kubernetes that DeepShare is tested on, at its newest patch release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum KubernetesVersion {
    /// 1.34.4
    V1_34,
    /// 1.35.4
    V1_35,
    /// 1.36.3, on which CI runs.
    #[default]
    V1_36,
    /// 1.37.2
    V1_37,
}

impl KubernetesVersion {
    /// All of them, oldest first.
    pub const ALL: [KubernetesVersion; 4] = [Self::V1_34, Self::V1_35, Self::V1_36, Self::V1_37];

    /// The variable of the environment that says which one tests and commands use.
    pub const VARIABLE: &str = "DEEPSHARE_KUBERNETES";

    /// The one that [`Self::VARIABLE`] asks for, or the default.
    ///
    /// # Errors
    /// If what it asks for is not served here.
    pub fn asked() -> Result<KubernetesVersion, AssetsError> {
        match std::env::var_os(Self::VARIABLE).filter(|set| !set.is_empty()) {
            None => Ok(KubernetesVersion::default()),
            Some(text) => text.to_string_lossy().parse().map_err(AssetsError::Version),
        }
    }

    /// The minor version's number, as in 36.
    pub fn minor(self) -> u32 {
        match self {
            Self::V1_34 => 34,
            Self::V1_35 => 35,
            Self::V1_36 => 36,
            Self::V1_37 => 37,
        }
    }

    fn patch(self) -> u32 {
        match self {
            Self::V1_34 | Self::V1_35 => 4,
            Self::V1_36 => 3,
            Self::V1_37 => 2,
        }
    }

    /// Version of `k8s.io/kubernetes`, as in `v1.36.3`.
    pub fn module(self) -> String {
        format!("v1.{}.{}", self.minor(), self.patch())
    }

    /// Version of the modules that Kubernetes stages, as in `v0.36.3`.
    pub fn staging(self) -> String {
        format!("v0.{}.{}", self.minor(), self.patch())
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "1.{}", self.minor())
    }
}

impl FromStr for KubernetesVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |version: &&Self| version.to_string() == text;
        Self::ALL.iter().find(known).copied().ok_or_else(|| {
            format!(
                "{text:?} is no version of Kubernetes served here: use 1.34, 1.35, 1.36 or 1.37"
            )
        })
    }
}
