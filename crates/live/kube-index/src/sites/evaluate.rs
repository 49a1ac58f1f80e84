//! One pair of a kind of pod and a node: how many more, or why none.

use super::node::NodeFacts;
use super::term::TermId;
use super::{Sites, Why};
use crate::requirements::{Requirements, Spread};
use crate::selector::{has_all, node_matches, untolerated};
use std::collections::BTreeMap;

/// Requirements with their terms looked up.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub requirements: Requirements,
    /// In the order of the requirements.
    pub affinity: Vec<TermId>,
    pub anti_affinity: Vec<TermId>,
    pub spread: Vec<TermId>,
    /// Anti-affinity of others that such pods meet.
    pub met: Vec<TermId>,
}

impl Asked {
    /// Every term that answers depend on.
    pub fn terms(&self) -> impl Iterator<Item = TermId> {
        [&self.affinity, &self.anti_affinity, &self.spread, &self.met]
            .into_iter()
            .flatten()
            .copied()
    }

    /// Answers for one node depend on the places of pods on others.
    pub fn looks_elsewhere(&self) -> bool {
        self.terms().next().is_some()
    }

    /// Of this term only the node's own place matters.
    pub fn looks_near(&self, term: TermId) -> bool {
        !self.affinity.contains(&term) && !self.spread.contains(&term)
    }

    /// Answers depend on the ports, resources or volumes in use on the node itself.
    pub fn looks_at_use(&self) -> bool {
        let requirements = &self.requirements;
        !(requirements.ports.is_empty()
            && requirements.resources.is_empty()
            && requirements.claims.is_empty())
    }
}

/// Pods of one spread constraint in each place that counts, and the fewest that any has.
pub(super) struct SpreadCounts {
    by_place: BTreeMap<Box<str>, u32>,
    fewest: u32,
}

impl Sites {
    /// Looks up the terms, which must be known.
    pub(super) fn asked(&mut self, requirements: Requirements, met: Vec<TermId>) -> Asked {
        Asked {
            affinity: requirements.affinity.iter().map(|term| self.intern(term)).collect(),
            anti_affinity: requirements
                .anti_affinity
                .iter()
                .map(|(term, _)| self.intern(term))
                .collect(),
            spread: requirements.spread.iter().map(|one| self.intern(&one.term)).collect(),
            requirements,
            met,
        }
    }

    /// What the nodes hold of each spread constraint, in their order. Costs one pass over the nodes
    /// for each.
    pub(super) fn spread_counts(&self, asked: &Asked) -> Vec<SpreadCounts> {
        let all = &asked.requirements.spread;
        let pairs = all.iter().zip(&asked.spread);
        pairs.map(|(spread, id)| self.spread_count(&asked.requirements, spread, *id)).collect()
    }

    fn spread_count(&self, pod: &Requirements, spread: &Spread, id: TermId) -> SpreadCounts {
        let counts = &self.terms[&id].by_node;
        let mut by_place: BTreeMap<Box<str>, u32> = BTreeMap::new();
        for (node, facts) in &self.nodes {
            // A node counts only where it is in a place of every constraint of the pod.
            let in_places =
                pod.spread.iter().all(|one| facts.place(&one.term.topology_key).is_some());
            if !in_places
                || (spread.honors_affinity && !is_selected(pod, facts))
                || (spread.honors_taints && kept_away(pod, facts).is_some())
            {
                continue;
            }
            let Some(place) = facts.place(&spread.term.topology_key) else { continue };
            let here = counts.get(node).map_or(0, |counts| counts.staying);
            if let Some(sum) = by_place.get_mut(place) {
                *sum += here;
            } else {
                by_place.insert(place.into(), here);
            }
        }
        let fewest = by_place.values().copied().min().unwrap_or(0);
        let enough = by_place.len() >= spread.min_domains as usize;
        SpreadCounts { by_place, fewest: if enough { fewest } else { 0 } }
    }

    /// How many more such pods the node can take; `u32::MAX`: as many as it has GPUs for.
    ///
    /// # Errors
    /// The first thing that is in the way of even one.
    pub(super) fn members(
        &self,
        asked: &Asked,
        spread: &[SpreadCounts],
        node: &NodeFacts,
    ) -> Result<u32, Why> {
        let pod = &asked.requirements;
        open(pod, node)?;
        let mut most = room(pod, node)?;
        most = most.min(self.beside_others(asked, node)?);
        for (constraint, counts) in pod.spread.iter().zip(spread) {
            most = most.min(spread_room(constraint, counts, node)?);
        }
        most = most.min(self.volumes.room(pod, node)?);
        Ok(if most >= node.gpu_slots() { u32::MAX } else { most })
    }

    /// Affinity and anti-affinity, both ways.
    fn beside_others(&self, asked: &Asked, node: &NodeFacts) -> Result<u32, Why> {
        let pod = &asked.requirements;
        let term = |id: &TermId| &self.terms[id];
        let key = |id: &TermId| term(id).term.topology_key.clone();
        let at = |id: &TermId| term(id).at(node.place(&term(id).term.topology_key));
        // The first of a kind that is to be beside its own may go to any place there is.
        let first =
            pod.affine_to_itself && asked.affinity.iter().all(|id| term(id).in_all.met == 0);
        for id in &asked.affinity {
            let in_a_place = node.place(&term(id).term.topology_key).is_some();
            if !in_a_place || (at(id).met == 0 && !first) {
                return Err(Why::Affinity { topology_key: key(id) });
            }
        }
        let mut most = u32::MAX;
        for ((own, is_one), id) in pod.anti_affinity.iter().zip(&asked.anti_affinity) {
            if at(id).met > 0 {
                return Err(Why::AntiAffinity { topology_key: key(id) });
            }
            if *is_one && node.place(&own.topology_key).is_some() {
                most = 1;
            }
        }
        if let Some(id) = asked.met.iter().find(|id| at(id).owners > 0) {
            return Err(Why::AntiAffinityOfOthers { topology_key: key(id) });
        }
        Ok(most)
    }
}

/// Whether the node is ready, and takes pods of the kind at all.
///
/// # Errors
/// It does not.
pub(super) fn open(pod: &Requirements, node: &NodeFacts) -> Result<(), Why> {
    if !node.ready {
        return Err(Why::NotReady);
    }
    if let Some(why) = kept_away(pod, node) {
        return Err(why);
    }
    if !is_selected(pod, node) {
        return Err(Why::Selector);
    }
    Ok(())
}

/// Cordons and taints. A cordon is a taint that can be tolerated, like any.
fn kept_away(pod: &Requirements, node: &NodeFacts) -> Option<Why> {
    const CORDON: &str = "node.kubernetes.io/unschedulable";
    if node.cordoned {
        let taint = crate::watched::Taint {
            key: CORDON.into(),
            value: Box::default(),
            effect: crate::watched::TaintEffect::NoSchedule,
        };
        if untolerated(&[taint], &pod.tolerations).is_some() {
            return Some(Why::Cordoned);
        }
    }
    let taint = untolerated(&node.taints, &pod.tolerations)?;
    Some(Why::Taint { key: taint.key.clone() })
}

/// Places, other resources and ports.
fn room(pod: &Requirements, node: &NodeFacts) -> Result<u32, Why> {
    let mut most = u64::from(u32::MAX);
    for (name, asked) in pod.resources.iter().chain([("pods", 1)]) {
        let free = node.free(name);
        if asked > free {
            return Err(Why::Resource { name: name.into(), asked, free });
        }
        most = most.min(free.checked_div(asked).unwrap_or(most));
    }
    if let Some(taken) = pod.ports.iter().find(|port| node.port_is_taken(port)) {
        return Err(Why::Port { port: taken.port });
    }
    if !pod.ports.is_empty() {
        most = 1;
    }
    Ok(most as u32)
}

/// Node selector and node affinity.
fn is_selected(pod: &Requirements, node: &NodeFacts) -> bool {
    has_all(&pod.node_selector, &node.labels)
        && pod
            .node_affinity
            .as_ref()
            .is_none_or(|affinity| node_matches(affinity, &node.name, &node.labels))
}

fn spread_room(spread: &Spread, counts: &SpreadCounts, node: &NodeFacts) -> Result<u32, Why> {
    let topology_key = &spread.term.topology_key;
    let uneven = || Why::Spread { topology_key: topology_key.clone() };
    let place = node.place(topology_key).ok_or_else(uneven)?;
    let here = counts.by_place.get(place).copied().unwrap_or(0);
    let limit = counts.fewest.saturating_add(spread.max_skew);
    match (spread.counts_itself, limit.checked_sub(here)) {
        (true, Some(more)) if more > 0 => Ok(more),
        (false, Some(_)) => Ok(u32::MAX),
        _ => Err(uneven()),
    }
}
