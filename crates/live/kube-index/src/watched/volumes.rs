//! Volumes, as far as they bind a pod to nodes.

use super::{Metadata, NodeSelector, NodeSelectorTerm, Operator, Requirement, or_default};
use deepshare_kube_api::names;
use serde::{Deserialize, Deserializer};

/// A volume of a pod that may depend on a node. All others (config maps, empty folders) are dropped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Volume {
    /// A claim of this name in the pod's namespace.
    Claim(Box<str>),
    /// A claim that lives as long as the pod, named after the pod and this volume.
    Ephemeral(Box<str>),
}

impl Volume {
    /// The name of its claim, in the namespace of the pod of this name.
    pub fn claim(&self, pod: &str) -> Box<str> {
        match self {
            Volume::Claim(name) => name.clone(),
            Volume::Ephemeral(volume) => format!("{pod}-{volume}").into(),
        }
    }

    /// What matters of a volume, if anything does.
    fn read(wire: WireVolume) -> Option<Volume> {
        match (wire.persistent_volume_claim, wire.ephemeral) {
            (Some(claim), _) => Some(Volume::Claim(claim.claim_name)),
            (None, Some(_)) => Some(Volume::Ephemeral(wire.name)),
            (None, None) => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireVolume {
    name: Box<str>,
    #[serde(default)]
    persistent_volume_claim: Option<WireClaim>,
    #[serde(default)]
    ephemeral: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireClaim {
    claim_name: Box<str>,
}

/// Reads `spec.volumes`.
pub(super) fn of_nodes<'de, D: Deserializer<'de>>(input: D) -> Result<Box<[Volume]>, D::Error> {
    let all = Option::<Vec<WireVolume>>::deserialize(input)?.unwrap_or_default();
    Ok(all.into_iter().filter_map(Volume::read).collect())
}

/// A claim of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WirePvc")]
pub struct PersistentVolumeClaim {
    /// Namespace and name, and the annotation that names the node it is provisioned for.
    pub metadata: Metadata,
    /// The volume it is bound to, once `status.phase` is `Bound`.
    pub volume: Option<Box<str>>,
    /// It names a volume, whether it is bound to it yet or not.
    pub names_volume: bool,
    /// Its class; `Some("")`: none on purpose; `None`: the default class.
    pub storage_class: Option<Box<str>>,
    /// One pod at a time in the whole cluster (`ReadWriteOncePod`).
    pub one_pod: bool,
}

impl PersistentVolumeClaim {
    /// The node that its volume is to be made for, if one has been chosen.
    pub fn selected_node(&self) -> Option<&str> {
        self.metadata.annotations.get(names::SELECTED_NODE)
    }
}

#[derive(Deserialize)]
struct WirePvc {
    metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    spec: WirePvcSpec,
    #[serde(default, deserialize_with = "or_default")]
    status: WirePvcStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePvcSpec {
    #[serde(default)]
    volume_name: Option<Box<str>>,
    #[serde(default)]
    storage_class_name: Option<Box<str>>,
    #[serde(default, deserialize_with = "or_default")]
    access_modes: Vec<Box<str>>,
}

#[derive(Default, Deserialize)]
struct WirePvcStatus {
    #[serde(default)]
    phase: Option<Box<str>>,
}

impl From<WirePvc> for PersistentVolumeClaim {
    fn from(wire: WirePvc) -> PersistentVolumeClaim {
        let bound = wire.status.phase.as_deref() == Some("Bound");
        let volume = wire.spec.volume_name.filter(|name| !name.is_empty());
        PersistentVolumeClaim {
            metadata: wire.metadata,
            names_volume: volume.is_some(),
            volume: volume.filter(|_| bound),
            storage_class: wire.spec.storage_class_name,
            one_pod: wire.spec.access_modes.iter().any(|mode| &**mode == "ReadWriteOncePod"),
        }
    }
}

/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WirePv")]
pub struct PersistentVolume {
    /// Its name.
    pub metadata: Metadata,
    /// Nodes that reach it; `None`: all.
    pub node_affinity: Option<NodeSelector>,
    /// The CSI driver that attaches it, where one does.
    pub csi_driver: Option<Box<str>>,
}

#[derive(Deserialize)]
struct WirePv {
    metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    spec: WirePvSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePvSpec {
    #[serde(default, deserialize_with = "or_default")]
    node_affinity: WireNodeAffinity,
    #[serde(default)]
    csi: Option<WireCsi>,
}

#[derive(Default, Deserialize)]
struct WireNodeAffinity {
    #[serde(default)]
    required: Option<NodeSelector>,
}

#[derive(Deserialize)]
struct WireCsi {
    driver: Box<str>,
}

impl From<WirePv> for PersistentVolume {
    fn from(wire: WirePv) -> PersistentVolume {
        PersistentVolume {
            metadata: wire.metadata,
            node_affinity: wire.spec.node_affinity.required,
            csi_driver: wire.spec.csi.map(|csi| csi.driver),
        }
    }
}

/// How volumes of a class come to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    /// Its name.
    pub metadata: Metadata,
    /// Who makes them; `kubernetes.io/no-provisioner`: an administrator, by hand.
    pub provisioner: Box<str>,
    /// When they are bound.
    #[serde(default)]
    pub volume_binding_mode: BindingMode,
    /// Nodes that its volumes can be made for; `None`: all.
    #[serde(default, rename = "allowedTopologies", deserialize_with = "topologies")]
    pub allowed_nodes: Option<NodeSelector>,
}

fn topologies<'de, D: Deserializer<'de>>(input: D) -> Result<Option<NodeSelector>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Term {
        #[serde(default, deserialize_with = "or_default")]
        match_label_expressions: Vec<OneOf>,
    }
    #[derive(Deserialize)]
    struct OneOf {
        key: Box<str>,
        values: Box<[Box<str>]>,
    }
    let is_in =
        |one: OneOf| Requirement { key: one.key, operator: Operator::In, values: one.values };
    let terms = Option::<Vec<Term>>::deserialize(input)?.unwrap_or_default();
    if terms.is_empty() {
        return Ok(None);
    }
    let terms = terms.into_iter().map(|term| NodeSelectorTerm {
        match_expressions: term.match_label_expressions.into_iter().map(is_in).collect(),
        match_fields: Box::default(),
    });
    Ok(Some(NodeSelector { node_selector_terms: terms.collect() }))
}

impl StorageClass {
    /// Volumes are made on demand.
    pub fn is_dynamic(&self) -> bool {
        &*self.provisioner != "kubernetes.io/no-provisioner"
    }
}

/// When a claim gets its volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum BindingMode {
    /// At once.
    #[default]
    Immediate,
    /// When the first pod that uses it has a node.
    WaitForFirstConsumer,
}

/// CSI drivers of the node of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CsiNode {
    /// The node's name.
    pub metadata: Metadata,
    /// Its drivers.
    #[serde(default, rename = "spec", deserialize_with = "drivers")]
    pub drivers: Box<[CsiDriver]>,
}

/// A CSI driver on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsiDriver {
    /// Its name.
    pub name: Box<str>,
    /// Volumes that it can attach there; `None`: any number.
    pub count: Option<u32>,
}

fn drivers<'de, D: Deserializer<'de>>(input: D) -> Result<Box<[CsiDriver]>, D::Error> {
    #[derive(Default, Deserialize)]
    struct Spec {
        #[serde(default, deserialize_with = "or_default")]
        drivers: Vec<Driver>,
    }
    #[derive(Deserialize)]
    struct Driver {
        name: Box<str>,
        #[serde(default, deserialize_with = "or_default")]
        allocatable: Limit,
    }
    #[derive(Default, Deserialize)]
    struct Limit {
        #[serde(default)]
        count: Option<u32>,
    }
    let spec = Option::<Spec>::deserialize(input)?.unwrap_or_default();
    let slim = |driver: Driver| CsiDriver { name: driver.name, count: driver.allocatable.count };
    Ok(spec.drivers.into_iter().map(slim).collect())
}
