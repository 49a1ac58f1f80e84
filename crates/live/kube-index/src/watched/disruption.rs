//! Disruption budgets.

use super::{LabelSelector, Metadata, or_default};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// How many pods of an application may be disrupted at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PodDisruptionBudget {
    /// Namespace and name.
    pub metadata: Metadata,
    /// Whose.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: PodDisruptionBudgetSpec,
    /// What is left.
    #[serde(default, deserialize_with = "or_default")]
    pub status: PodDisruptionBudgetStatus,
}

/// Whose budget it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PodDisruptionBudgetSpec {
    /// Pods of its namespace; absent: none.
    #[serde(default)]
    pub selector: Option<LabelSelector>,
}

/// What is left of a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodDisruptionBudgetStatus {
    /// Pods that may be disrupted now.
    #[serde(default)]
    pub disruptions_allowed: u32,
    /// Names of pods whose eviction has been granted and not been seen yet.
    #[serde(default, deserialize_with = "names")]
    pub disrupted_pods: Box<[Box<str>]>,
}

fn names<'de, D: Deserializer<'de>>(input: D) -> Result<Box<[Box<str>]>, D::Error> {
    let by_name = Option::<BTreeMap<Box<str>, IgnoredAny>>::deserialize(input)?;
    Ok(by_name.unwrap_or_default().into_keys().collect())
}
