//! Pods that other pods' rules are about, counted by node and by place.

use super::{Resident, Sites};
use crate::requirements::{PodTerm, Requirements};
use crate::watched::Labels;
use deepshare_model::{NodeId, SiteId};
use std::collections::{BTreeMap, BTreeSet};

pub(super) type TermId = u32;

/// Pods that meet a term's filters, and pods that must not be beside such.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub term: PodTerm,
    pub by_node: BTreeMap<NodeId, Counts>,
    pub by_place: BTreeMap<Box<str>, Counts>,
    pub in_all: Counts,
    /// Sites whose answers depend on the counts.
    pub sites: BTreeSet<SiteId>,
    /// Pods on nodes whose own anti-affinity it is.
    pub holders: u32,
}

/// Numbers of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// That meet the filters.
    pub met: u32,
    /// The same without those that are being deleted.
    pub staying: u32,
    /// Whose own anti-affinity this is.
    pub owners: u32,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.met += other.met;
        self.staying += other.staying;
        self.owners += other.owners;
    }

    fn subtract(&mut self, other: Counts) {
        self.met -= other.met;
        self.staying -= other.staying;
        self.owners -= other.owners;
    }
}

fn add<K: Ord + Clone>(to: &mut BTreeMap<K, Counts>, key: &K, counts: Counts) {
    to.entry(key.clone()).or_default().add(counts);
}

fn subtract<K: Ord>(from: &mut BTreeMap<K, Counts>, key: &K, counts: Counts) {
    if let Some(left) = from.get_mut(key) {
        left.subtract(counts);
        if *left == Counts::default() {
            from.remove(key);
        }
    }
}

impl Term {
    /// Pods in the node's place; none where the node is in no place.
    pub fn at(&self, place: Option<&str>) -> Counts {
        place.and_then(|place| self.by_place.get(place)).copied().unwrap_or_default()
    }

    /// Adds pods on a node, which is in this place if in any.
    fn add(&mut self, node: NodeId, place: Option<&str>, counts: Counts) {
        add(&mut self.by_node, &node, counts);
        if let Some(place) = place {
            add(&mut self.by_place, &place.into(), counts);
            self.in_all.add(counts);
        }
    }

    fn subtract(&mut self, node: NodeId, place: Option<&str>, counts: Counts) {
        subtract(&mut self.by_node, &node, counts);
        if let Some(place) = place {
            subtract(&mut self.by_place, &place.into(), counts);
            self.in_all.subtract(counts);
        }
    }
}

impl Sites {
    /// Knows every term of the requirements from now on.
    pub(super) fn intern_all(&mut self, requirements: &Requirements) {
        for term in &requirements.affinity {
            self.intern(term);
        }
        for spread in &requirements.spread {
            self.intern(&spread.term);
        }
        for (term, _) in &requirements.anti_affinity {
            let id = self.intern(term);
            self.anti_terms.insert(id);
        }
    }

    /// The term's id. A new one starts with the pods that are there.
    pub(super) fn intern(&mut self, term: &PodTerm) -> TermId {
        if let Some(known) = self.term_ids.get(term) {
            return *known;
        }
        let id = self.next_term;
        self.next_term += 1;
        let mut counted = Term {
            term: term.clone(),
            by_node: BTreeMap::new(),
            by_place: BTreeMap::new(),
            in_all: Counts::default(),
            sites: BTreeSet::new(),
            holders: 0,
        };
        for pod in self.pods.values() {
            if term.matches(&pod.namespace, &pod.labels, &self.namespaces) {
                let place = self.nodes.get(&pod.node).and_then(|at| at.place(&term.topology_key));
                counted.add(pod.node, place, pod.as_met());
            }
        }
        self.terms.insert(id, counted);
        self.term_ids.insert(term.clone(), id);
        id
    }

    /// Anti-affinity of whomever that a pod with these labels meets.
    pub(super) fn anti_terms_met(&self, namespace: &str, labels: &Labels) -> Vec<TermId> {
        let met = |id: &&TermId| self.terms[*id].term.matches(namespace, labels, &self.namespaces);
        self.anti_terms.iter().filter(met).copied().collect()
    }

    /// One more pod on a node has this anti-affinity.
    pub(super) fn hold(&mut self, id: TermId) {
        if let Some(term) = self.terms.get_mut(&id) {
            term.holders += 1;
        }
    }

    /// One pod fewer has each of these.
    pub(super) fn let_go(&mut self, ids: &[TermId]) {
        for id in ids {
            if let Some(term) = self.terms.get_mut(id) {
                term.holders -= 1;
            }
        }
        self.drop_unused(ids.iter().copied());
    }

    /// Forgets those of these terms that no site and no pod on a node needs any more: jobs bring their
    /// own, so they would pile up.
    pub(super) fn drop_unused(&mut self, ids: impl Iterator<Item = TermId>) {
        for id in ids {
            let unused =
                self.terms.get(&id).is_some_and(|term| term.sites.is_empty() && term.holders == 0);
            if unused && let Some(term) = self.terms.remove(&id) {
                self.term_ids.remove(&term.term);
                self.anti_terms.remove(&id);
            }
        }
    }

    /// Counts a pod in, or out, of every term; returns those that it is counted in.
    pub(super) fn count(&mut self, pod: &Resident, present: bool) -> Vec<TermId> {
        let mut touched = Vec::new();
        let facts = self.nodes.get(&pod.node);
        for (id, term) in self.terms.iter_mut() {
            let id = *id;
            let mut counts = Counts::default();
            if term.term.matches(&pod.namespace, &pod.labels, &self.namespaces) {
                counts = pod.as_met();
            }
            counts.owners = u32::from(pod.owns.contains(&id));
            if counts == Counts::default() {
                continue;
            }
            let place = facts.and_then(|facts| facts.place(&term.term.topology_key));
            if present {
                term.add(pod.node, place, counts);
            } else {
                term.subtract(pod.node, place, counts);
            }
            touched.push(id);
        }
        touched
    }

    /// A node's pods are in other places now: counts of every term whose place it changes.
    pub(super) fn move_places(&mut self, node: NodeId, before: &super::NodeFacts) {
        let Some(after) = self.nodes.get(&node) else { return };
        for term in self.terms.values_mut() {
            let Some(counts) = term.by_node.get(&node).copied() else { continue };
            let key = &term.term.topology_key;
            let (old, new) = (before.place(key), after.place(key));
            if old != new {
                term.subtract(node, old, counts);
                term.add(node, new, counts);
            }
        }
    }
}

impl Resident {
    /// How it counts where it meets a term's filters.
    fn as_met(&self) -> Counts {
        Counts { met: 1, staying: u32::from(!self.terminating), owners: 0 }
    }
}
