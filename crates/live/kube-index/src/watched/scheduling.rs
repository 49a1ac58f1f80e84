//! Where pods may go: selectors, affinity, tolerations, spread.

use super::Labels;
use super::or_default;
use serde::{Deserialize, Deserializer};

/// A comparison in a selector or toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The value is one of those given.
    In,
    /// The value is absent, or none of those given.
    NotIn,
    /// There is a value.
    Exists,
    /// There is none.
    DoesNotExist,
    /// The value is a whole number above the one given.
    Gt,
    /// The value is a whole number below the one given.
    Lt,
    /// The value is the one given (tolerations).
    Equal,
    /// One that this version does not know.
    Unknown(Box<str>),
}

impl<'de> Deserialize<'de> for Operator {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Operator, D::Error> {
        let word = Box::<str>::deserialize(input)?;
        Ok(match &*word {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::Gt,
            "Lt" => Operator::Lt,
            "Equal" => Operator::Equal,
            _ => Operator::Unknown(word),
        })
    }
}

/// One condition on a label or field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Requirement {
    /// Of which label or field.
    pub key: Box<str>,
    /// How the value is compared.
    pub operator: Operator,
    /// With what.
    #[serde(default, deserialize_with = "or_default")]
    pub values: Box<[Box<str>]>,
}

/// Objects by their labels. Empty selects all; all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must be there with these values.
    #[serde(default, deserialize_with = "or_default")]
    pub match_labels: Labels,
    /// Conditions on labels.
    #[serde(default, deserialize_with = "or_default")]
    pub match_expressions: Box<[Requirement]>,
}

/// Nodes: one of the terms must hold. Without any, no node is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// The terms.
    #[serde(default, deserialize_with = "or_default")]
    pub node_selector_terms: Box<[NodeSelectorTerm]>,
}

/// Conditions that must all hold of a node. Without any, no node is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// On its labels.
    #[serde(default, deserialize_with = "or_default")]
    pub match_expressions: Box<[Requirement]>,
    /// On its fields: `metadata.name` is the only one there is.
    #[serde(default, deserialize_with = "or_default")]
    pub match_fields: Box<[Requirement]>,
}

/// A taint that the pod puts up with.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Of which key; empty: of any.
    #[serde(default)]
    pub key: Box<str>,
    /// How values are compared; absent: `Equal`.
    #[serde(default)]
    pub operator: Option<Operator>,
    /// With what.
    #[serde(default)]
    pub value: Box<str>,
    /// Which effect; absent: any.
    #[serde(default)]
    pub effect: Option<super::TaintEffect>,
}

/// Pods beside which a pod must, or must not, be.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAffinityTerm {
    /// By their labels; absent: none.
    #[serde(default)]
    pub label_selector: Option<LabelSelector>,
    /// In these namespaces; with no selector of namespaces, none means the pod's own.
    #[serde(default, deserialize_with = "or_default")]
    pub namespaces: Box<[Box<str>]>,
    /// And in those with these labels.
    #[serde(default)]
    pub namespace_selector: Option<LabelSelector>,
    /// Nodes with the same value of this label count as one place.
    pub topology_key: Box<str>,
    /// Labels of which the other pod must have the pod's own value.
    #[serde(default, deserialize_with = "or_default")]
    pub match_label_keys: Box<[Box<str>]>,
    /// Labels of which the other pod must have another value.
    #[serde(default, deserialize_with = "or_default")]
    pub mismatch_label_keys: Box<[Box<str>]>,
}

/// How evenly pods must be spread. Only `DoNotSchedule` is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpreadConstraint {
    /// The most that a place may have above the emptiest one.
    pub max_skew: u32,
    /// Nodes with the same value of this label count as one place.
    pub topology_key: Box<str>,
    /// What happens where it cannot be met: `DoNotSchedule`, `ScheduleAnyway`.
    pub when_unsatisfiable: Box<str>,
    /// Which pods of the pod's own namespace are counted; absent: none.
    #[serde(default)]
    pub label_selector: Option<LabelSelector>,
    /// With fewer places than this the emptiest is taken to have no pod.
    #[serde(default)]
    pub min_domains: Option<u32>,
    /// Whether nodes that the pod's selector and affinity exclude are left out; absent: `Honor`.
    #[serde(default)]
    pub node_affinity_policy: Option<NodeInclusion>,
    /// Whether nodes with taints that it does not tolerate are left out; absent: `Ignore`.
    #[serde(default)]
    pub node_taints_policy: Option<NodeInclusion>,
    /// Labels of which counted pods must have the pod's own value.
    #[serde(default, deserialize_with = "or_default")]
    pub match_label_keys: Box<[Box<str>]>,
}

/// Whether what excludes a node excludes it from the counting, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum NodeInclusion {
    /// It does.
    Honor,
    /// It does not.
    Ignore,
}

/// The required part of `spec.affinity`; preferences are dropped.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Affinity {
    #[serde(default, deserialize_with = "or_default")]
    pub node_affinity: Required<Option<Box<NodeSelector>>>,
    #[serde(default, deserialize_with = "or_default")]
    pub pod_affinity: Required<Box<[PodAffinityTerm]>>,
    #[serde(default, deserialize_with = "or_default")]
    pub pod_anti_affinity: Required<Box<[PodAffinityTerm]>>,
}

#[derive(Default, Deserialize)]
pub(super) struct Required<T: Default> {
    #[serde(
        default,
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "or_default",
        bound(deserialize = "T: Deserialize<'de> + Default")
    )]
    pub required: T,
}
