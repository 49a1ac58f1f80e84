//! What a pod requires of its node beside GPUs, CPU and memory, in one canonical form.
//!
//! Pods with equal [`Requirements`] are alike to every node, so they share a
//! [`SiteId`](deepshare_model::SiteId) and are judged once. Labels of the pod itself are no part of it:
//! only whether its own selectors match it is, or each job would be a case of its own.

use crate::accounting::requests;
use crate::selector::labels_match;
use crate::watched::{
    HostPort, LabelSelector, Labels, NodeInclusion, NodeSelector, Operator, Pod, PodAffinityTerm,
    Requirement, ResourceList, Toleration, TopologySpreadConstraint,
};
use deepshare_kube_api::names;
use std::collections::BTreeMap;

/// What a pod requires of its node, canonical: lists are sorted, defaults are filled in, and
/// namespaces are resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements {
    /// Labels that the node must have.
    pub node_selector: Labels,
    /// Required node affinity.
    pub node_affinity: Option<NodeSelector>,
    /// Taints that the pod tolerates.
    pub tolerations: Vec<Toleration>,
    /// Ports of the node that it takes.
    pub ports: Vec<HostPort>,
    /// Resources beside GPUs, CPU, memory and the pod's own place.
    pub resources: ResourceList,
    /// Pods beside which it must be: one place for each topology key, and in each a pod that meets
    /// all the filters.
    pub affinity: Vec<PodTerm>,
    /// It meets those filters itself, so the first of its kind may go anywhere.
    pub affine_to_itself: bool,
    /// Pods beside which it must not be, and whether it is one of them itself.
    pub anti_affinity: Vec<(PodTerm, bool)>,
    /// How evenly its kind must be spread.
    pub spread: Vec<Spread>,
    /// Its volume claims, as `namespace/name`.
    pub claims: Vec<Box<str>>,
}

/// Pods that meet all the filters, counted by the value of a label of their nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTerm {
    /// What they meet.
    pub filters: Vec<PodFilter>,
    /// The label: nodes with the same value are one place.
    pub topology_key: Box<str>,
}

/// Some of the cluster's pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodFilter {
    /// By label; `None`: none at all.
    pub selector: Option<LabelSelector>,
    /// In these namespaces.
    pub namespaces: Vec<Box<str>>,
    /// And in namespaces with these labels.
    pub namespace_selector: Option<LabelSelector>,
}

/// How evenly pods must be spread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spread {
    /// Which pods, and over what.
    pub term: PodTerm,
    /// The most that a place may have above the emptiest one.
    pub max_skew: u32,
    /// With fewer places than this the emptiest is taken to have no pod.
    pub min_domains: u32,
    /// Nodes that the pod's selector and affinity exclude are not counted.
    pub honors_affinity: bool,
    /// Nodes with taints that it does not tolerate are not counted.
    pub honors_taints: bool,
    /// The pod is one of those counted.
    pub counts_itself: bool,
}

/// Labels of every namespace, by name.
pub type Namespaces = BTreeMap<Box<str>, Labels>;

impl PodFilter {
    /// True if a pod in this namespace and with these labels is meant.
    pub fn matches(&self, namespace: &str, labels: &Labels, namespaces: &Namespaces) -> bool {
        let selected = |selector: &LabelSelector| {
            labels_match(selector, namespaces.get(namespace).unwrap_or(&Labels::default()))
        };
        (self.namespaces.iter().any(|one| **one == *namespace)
            || self.namespace_selector.as_ref().is_some_and(selected))
            && self.selector.as_ref().is_some_and(|selector| labels_match(selector, labels))
    }
}

impl PodTerm {
    /// True if a pod in this namespace and with these labels is counted.
    pub fn matches(&self, namespace: &str, labels: &Labels, namespaces: &Namespaces) -> bool {
        self.filters.iter().all(|filter| filter.matches(namespace, labels, namespaces))
    }
}

impl Requirements {
    /// What the pod requires. Namespaces matter where its selectors choose them by label.
    pub fn of(pod: &Pod, namespaces: &Namespaces) -> Requirements {
        let (meta, spec) = (&pod.metadata, &pod.spec);
        let itself = |term: &PodTerm| term.matches(&meta.namespace, &meta.labels, namespaces);
        let affinity = affinity(pod);
        let anti = spec.pod_anti_affinity.iter().map(|term| PodTerm {
            filters: vec![filter(pod, term)],
            topology_key: term.topology_key.clone(),
        });
        Requirements {
            node_selector: spec.node_selector.clone(),
            node_affinity: spec.node_affinity.as_deref().map(canonical),
            tolerations: sorted(spec.tolerations.iter().cloned()),
            ports: sorted(host_ports(pod).cloned()),
            resources: requests(pod).iter().filter(|(name, _)| !is_the_engines(name)).collect(),
            affine_to_itself: affinity.first().is_some_and(itself),
            affinity,
            anti_affinity: sorted(anti.map(|term| {
                let is_one = itself(&term);
                (term, is_one)
            })),
            spread: sorted(spec.topology_spread.iter().map(|one| spread(pod, one, namespaces))),
            claims: sorted(claims_of(pod)),
        }
    }
}

/// Name of a claim in the whole cluster.
pub fn claim_key(namespace: &str, name: &str) -> Box<str> {
    format!("{namespace}/{name}").into()
}

/// A pod's claims by that name, in the order of its volumes.
pub fn claims_of(pod: &Pod) -> impl Iterator<Item = Box<str>> {
    let meta = &pod.metadata;
    let volumes = pod.spec.volumes.iter();
    volumes.map(|volume| claim_key(&meta.namespace, &volume.claim(&meta.name)))
}

/// Ports of the node that the pod's containers take, sidecars included.
pub fn host_ports(pod: &Pod) -> impl Iterator<Item = &HostPort> {
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.sidecar);
    sidecars.chain(&pod.spec.containers).flat_map(|container| &container.host_ports)
}

/// True for what the engine itself counts, and for the pod's own place, which all pods take.
fn is_the_engines(resource: &str) -> bool {
    ["cpu", "memory", "pods", names::GPU, names::GPU_SLOT, names::NVIDIA_GPU].contains(&resource)
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort();
    items.dedup();
    items
}

/// Terms and conditions in order, values of lists too: what they say does not depend on it.
fn canonical(selector: &NodeSelector) -> NodeSelector {
    let conditions = |list: &[Requirement]| -> Box<[Requirement]> {
        let in_order = |one: &Requirement| Requirement {
            values: sorted(one.values.iter().cloned()).into(),
            ..one.clone()
        };
        sorted(list.iter().map(in_order)).into()
    };
    let terms = selector.node_selector_terms.iter().map(|term| crate::watched::NodeSelectorTerm {
        match_expressions: conditions(&term.match_expressions),
        match_fields: conditions(&term.match_fields),
    });
    NodeSelector { node_selector_terms: sorted(terms).into() }
}

/// A pod that is to be near must meet the filters of every term at once; each term only says over
/// which label "near" is meant.
fn affinity(pod: &Pod) -> Vec<PodTerm> {
    let terms = &pod.spec.pod_affinity;
    let filters = sorted(terms.iter().map(|term| filter(pod, term)));
    sorted(
        terms.iter().map(|term| PodTerm {
            filters: filters.clone(),
            topology_key: term.topology_key.clone(),
        }),
    )
}

fn filter(pod: &Pod, term: &PodAffinityTerm) -> PodFilter {
    let own_namespace = term.namespaces.is_empty() && term.namespace_selector.is_none();
    let selector = term.label_selector.clone().map(|selector| {
        let same = with_own_values(selector, pod, &term.match_label_keys, &Operator::In);
        with_own_values(same, pod, &term.mismatch_label_keys, &Operator::NotIn)
    });
    PodFilter {
        selector,
        namespaces: if own_namespace {
            vec![pod.metadata.namespace.clone()]
        } else {
            sorted(term.namespaces.iter().cloned())
        },
        namespace_selector: term.namespace_selector.clone(),
    }
}

fn spread(pod: &Pod, constraint: &TopologySpreadConstraint, namespaces: &Namespaces) -> Spread {
    let selector = constraint.label_selector.clone().map(|selector| {
        with_own_values(selector, pod, &constraint.match_label_keys, &Operator::In)
    });
    let own = &pod.metadata.namespace;
    let filter = PodFilter { selector, namespaces: vec![own.clone()], namespace_selector: None };
    let term = PodTerm { filters: vec![filter], topology_key: constraint.topology_key.clone() };
    Spread {
        counts_itself: term.matches(own, &pod.metadata.labels, namespaces),
        term,
        max_skew: constraint.max_skew,
        min_domains: constraint.min_domains.unwrap_or(1),
        honors_affinity: constraint.node_affinity_policy != Some(NodeInclusion::Ignore),
        honors_taints: constraint.node_taints_policy == Some(NodeInclusion::Honor),
    }
}

/// `matchLabelKeys` and its opposite as conditions: the API server writes most of them into the
/// selector itself, in which case they are already there.
fn with_own_values(
    selector: LabelSelector,
    pod: &Pod,
    keys: &[Box<str>],
    operator: &Operator,
) -> LabelSelector {
    let own = keys.iter().filter_map(|key| {
        let value = pod.metadata.labels.get(key)?;
        let (key, operator) = (key.clone(), operator.clone());
        Some(Requirement { key, operator, values: Box::new([value.into()]) })
    });
    let expressions = sorted(selector.match_expressions.iter().cloned().chain(own));
    LabelSelector { match_expressions: expressions.into(), ..selector }
}

#[cfg(test)]
mod tests;
