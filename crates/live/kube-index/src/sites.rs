//! Which nodes can take which pods, kept up to date at the cost of what changes.
//!
//! Pods with equal [`Requirements`] share a site. [`Sites`] holds what a node check must honour of nodes,
//! of all pods on them (ours and others') and of volumes, and tells the engine for each site and node
//! how many more such pods the node can take, see [`Admission`]. GPUs, CPU and memory are the engine's.
//!
//! An answer counts one node at a time: two pods that are each fine may not be together, as in two
//! nodes of a zone that must be spread over. So [`Sites::check`] judges each pod again right before it is
//! bound, with what has been assumed since. It also knows anti-affinity of others that came up after
//! the pod's site was made.

mod evaluate;
mod node;
mod term;
mod update;
mod volumes;
mod why;

pub use volumes::Selection;
pub use why::Why;

use crate::accounting::requests;
use crate::refusal::Refusal;
use crate::requirements::{Namespaces, PodTerm, Requirements, host_ports};
use crate::watched::{CsiDriver, CsiNode, HostPort, Labels, Namespace, Node, Pod, ResourceList};
use crate::watched::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use deepshare_model::{NodeId, Resources, SiteId};
use evaluate::Asked;
use node::NodeFacts;
use std::collections::{BTreeMap, BTreeSet};
use term::{Term, TermId};
use volumes::Volumes;

/// How many more pods of a site some nodes can take, beside whoever is there. Nothing said of a
/// node: none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Admission {
    /// Which kind of pod.
    pub site: SiteId,
    /// Of which nodes, in order.
    pub nodes: Vec<NodeId>,
    /// Pods on each; `u32::MAX`: as many as it has GPUs for.
    pub members: u32,
}

/// Something that node checks depend on has changed.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// A node is there, as it now is.
    Node(NodeId, &'a Node),
    /// A node is gone. Its pods stay until they are gone, too.
    NodeGone(NodeId),
    /// A pod is on a node, or is assumed to be from now on, as it now is. One that is over, and
    /// holds nothing, is gone.
    Pod {
        /// The pod.
        pod: &'a Pod,
        /// Its node, or the node it is about to be bound to.
        node: NodeId,
        /// The engine placed it and counts its CPU and memory.
        ours: bool,
    },
    /// The pod of this UID is gone, or will not be bound to where it was assumed.
    PodGone(&'a str),
    /// A namespace is there, as it now is.
    Namespace(&'a Namespace),
    /// A claim is there, as it now is.
    Claim(&'a PersistentVolumeClaim),
    /// A claim is gone: its namespace and name.
    ClaimGone(&'a str, &'a str),
    /// A volume is there, as it now is.
    Volume(&'a PersistentVolume),
    /// A volume is gone.
    VolumeGone(&'a str),
    /// For which node the volume of a claim is to be made, whatever the claim says; `None`: what it
    /// says counts.
    Selected(&'a str, Option<&'a Selection>),
    /// The volume of a claim cannot be made for a node for now, or could be again.
    Shut {
        /// The claim, as `namespace/name`.
        claim: &'a str,
        /// The node's name.
        node: &'a str,
        /// It cannot.
        shut: bool,
    },
    /// A class of volumes is there, as it now is.
    Class(&'a StorageClass),
    /// The drivers of a node.
    Drivers(&'a CsiNode),
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Sites {
    nodes: BTreeMap<NodeId, NodeFacts>,
    pods: BTreeMap<Box<str>, Resident>,
    namespaces: Namespaces,
    volumes: Volumes,
    /// CSI drivers by node name; they may be told before the node.
    drivers: BTreeMap<Box<str>, Box<[CsiDriver]>>,
    terms: BTreeMap<TermId, Term>,
    next_term: TermId,
    term_ids: BTreeMap<PodTerm, TermId>,
    /// Terms that some pod must not be beside, so that newcomers must be held against them.
    anti_terms: BTreeSet<TermId>,
    sites: BTreeMap<SiteId, Site>,
    site_ids: BTreeMap<Key, SiteId>,
    next_site: u32,
}

/// What makes pods alike: what they require, and whose anti-affinity they meet.
type Key = (Requirements, Vec<TermId>);

#[derive(Clone, Debug)]
struct Site {
    asked: Asked,
    /// What was last reported; nodes that are not there: none.
    answers: BTreeMap<NodeId, u32>,
}

/// A pod on a node, or assumed there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resident {
    node: NodeId,
    namespace: Box<str>,
    labels: Labels,
    terminating: bool,
    ours: bool,
    requests: ResourceList,
    ports: Box<[HostPort]>,
    claims: Box<[Box<str>]>,
    /// Its own anti-affinity.
    owns: Box<[TermId]>,
}

impl Resident {
    /// True if a look tells that it is as it was, as most news of pods is of their status. Of pods that
    /// have volumes, or rules about others, it takes more.
    fn is_plainly(&self, pod: &Pod, node: NodeId, ours: bool) -> bool {
        let (meta, spec) = (&pod.metadata, &pod.spec);
        let plain = spec.volumes.is_empty() && spec.pod_anti_affinity.is_empty();
        plain
            && self.claims.is_empty()
            && self.owns.is_empty()
            && (self.node, self.ours) == (node, ours)
            && self.terminating == meta.deletion_timestamp.is_some()
            && self.labels == meta.labels
            && host_ports(pod).eq(&self.ports)
            && requests(pod).iter().eq(self.requests.iter())
    }
}

impl Sites {
    /// The site of such pods, and where a new one can go. The same id for pods that are alike, until
    /// it is [forgotten](Sites::forget).
    pub fn site(&mut self, pod: &Pod) -> (SiteId, Vec<Admission>) {
        let requirements = Requirements::of(pod, &self.namespaces);
        self.intern_all(&requirements);
        let met = self.anti_terms_met(&pod.metadata.namespace, &pod.metadata.labels);
        let key = (requirements, met);
        if let Some(known) = self.site_ids.get(&key) {
            return (*known, Vec::new());
        }
        let id = SiteId(self.next_site);
        self.next_site += 1;
        let asked = self.asked(key.0.clone(), key.1.clone());
        for term in asked.terms() {
            if let Some(term) = self.terms.get_mut(&term) {
                term.sites.insert(id);
            }
        }
        self.sites.insert(id, Site { asked, answers: BTreeMap::new() });
        self.site_ids.insert(key, id);
        let mut report = update::Report::default();
        self.refresh(id, None, &mut report);
        (id, report.into_admissions())
    }

    /// Nobody asks about this site any more. Its id is not used again.
    pub fn forget(&mut self, site: SiteId) {
        let Some(kept) = self.sites.remove(&site) else { return };
        for term in kept.asked.terms() {
            if let Some(term) = self.terms.get_mut(&term) {
                term.sites.remove(&site);
            }
        }
        self.drop_unused(kept.asked.terms());
        let Asked { requirements, met, .. } = kept.asked;
        self.site_ids.remove(&(requirements, met));
    }

    /// Everything that the pod requires of this node, GPUs, CPU and memory included, as things are now.
    /// For a pod that is not assumed anywhere yet.
    ///
    /// # Errors
    /// The first thing that is in the way.
    pub fn check(&mut self, node: NodeId, pod: &Pod) -> Result<(), Why> {
        if let Some(resident) = self.pods.get(&pod.metadata.uid) {
            return Err(Why::Placed { on: self.name(resident.node) });
        }
        let requirements = Requirements::of(pod, &self.namespaces);
        self.intern_all(&requirements);
        let met = self.anti_terms_met(&pod.metadata.namespace, &pod.metadata.labels);
        let asked = self.asked(requirements, met);
        let verdict = self.check_asked(node, pod, &asked);
        self.drop_unused(asked.terms());
        verdict
    }

    /// For a pod that was assumed on this node some time ago: whether the node is still open to it, and
    /// reaches its volumes. What it uses of the node is its own all the while.
    ///
    /// # Errors
    /// The first thing that is in the way.
    pub fn recheck(&self, node: NodeId, pod: &Pod) -> Result<(), Why> {
        let facts = self.nodes.get(&node).filter(|facts| facts.present).ok_or(Why::NoNode)?;
        let requirements = Requirements::of(pod, &self.namespaces);
        evaluate::open(&requirements, facts)?;
        requirements.claims.iter().try_for_each(|key| self.volumes.reached(key, facts).map(drop))
    }

    fn check_asked(&self, node: NodeId, pod: &Pod, asked: &Asked) -> Result<(), Why> {
        let facts = self.nodes.get(&node).filter(|facts| facts.present).ok_or(Why::NoNode)?;
        self.members(asked, &self.spread_counts(asked), facts)?;
        for (name, asked) in requests(pod).iter() {
            let free = facts.free(name);
            if asked > free {
                return Err(Why::Resource { name: name.into(), asked, free });
            }
        }
        Ok(())
    }

    /// Allocatable CPU and memory of the node less what pods use that the engine did not place. MiB
    /// are rounded down. `None`: no such node.
    pub fn host_free(&self, node: NodeId) -> Option<Resources> {
        let facts = self.nodes.get(&node).filter(|facts| facts.present)?;
        let free = |name: &str| {
            let allocatable = facts.allocatable.get(name).unwrap_or(0);
            allocatable.saturating_sub(facts.others_use.get(name))
        };
        Some(Resources { cpu_milli: free("cpu"), memory_mib: free("memory") >> 20 })
    }

    /// The node that a pod is on, or assumed to be.
    pub fn node_of(&self, uid: &str) -> Option<NodeId> {
        self.pods.get(uid).map(|resident| resident.node)
    }

    /// Why the pod's volumes keep it from being scheduled anywhere, if they do.
    pub fn volume_refusal(&self, pod: &Pod) -> Option<Refusal> {
        self.volumes.refusal(pod)
    }

    /// Claims of the pod that are bound only once they are told its node, as `namespace/name`: annotate
    /// each with [`SELECTED_NODE`](deepshare_kube_api::names::SELECTED_NODE), and bind the pod when they
    /// are bound.
    pub fn claims_to_provision(&self, pod: &Pod) -> Vec<Box<str>> {
        self.volumes.to_provision(pod)
    }

    /// A claim by `namespace/name`.
    pub fn claim(&self, key: &str) -> Option<&PersistentVolumeClaim> {
        self.volumes.claims.get(key)
    }

    /// Claims that are bound to this volume.
    pub fn claims_of_volume(&self, name: &str) -> Vec<Box<str>> {
        self.volumes.bound_to(name).cloned().collect()
    }

    /// True if the volume is known.
    pub fn has_volume(&self, name: &str) -> bool {
        self.volumes.volumes.contains_key(name)
    }

    /// What was last said of the site, for tests and explanations.
    pub fn members_of(&self, site: SiteId, node: NodeId) -> u32 {
        let site = self.sites.get(&site);
        site.and_then(|site| site.answers.get(&node)).copied().unwrap_or(0)
    }

    fn name(&self, node: NodeId) -> Box<str> {
        self.nodes.get(&node).map_or_else(|| "a node that is gone".into(), |at| at.name.clone())
    }
}

#[cfg(test)]
mod tests;
