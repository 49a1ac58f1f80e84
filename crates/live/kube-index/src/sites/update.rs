//! Changes: what is touched, what must be looked at again, what is different.

use super::node::NodeFacts;
use super::term::TermId;
use super::{Admission, Change, Resident, Sites};
use crate::accounting::requests;
use crate::requirements::{Requirements, claim_key, host_ports};
use crate::watched::{CsiNode, Namespace, Node, Pod};
use deepshare_model::{NodeId, SiteId};
use std::collections::{BTreeMap, BTreeSet};

/// Answers that are different from the last ones.
#[derive(Debug, Default)]
pub(super) struct Report(BTreeMap<(SiteId, u32), Vec<NodeId>>);

impl Report {
    pub fn into_admissions(self) -> Vec<Admission> {
        let all = self.0.into_iter();
        all.map(|((site, members), nodes)| Admission { site, nodes, members }).collect()
    }
}

/// Sites to look at again: on all nodes, or on these.
#[derive(Debug, Default)]
struct Stale(BTreeMap<SiteId, Option<BTreeSet<NodeId>>>);

impl Stale {
    fn everywhere(&mut self, site: SiteId) {
        self.0.insert(site, None);
    }

    fn on(&mut self, site: SiteId, node: NodeId) {
        if let Some(nodes) = self.0.entry(site).or_insert_with(|| Some(BTreeSet::new())) {
            nodes.insert(node);
        }
    }
}

impl Sites {
    /// Takes a change in, and tells which answers it makes different.
    pub fn apply(&mut self, change: Change<'_>) -> Vec<Admission> {
        let mut stale = Stale::default();
        match change {
            Change::Node(id, node) => self.set_node(id, node, &mut stale),
            Change::NodeGone(id) => self.lose_node(id, &mut stale),
            Change::Pod { pod, .. } if pod.status.phase.is_terminal() => {
                self.remove_pod(&pod.metadata.uid, &mut stale);
            }
            Change::Pod { pod, node, ours } => self.set_pod(pod, node, ours, &mut stale),
            Change::PodGone(uid) => self.remove_pod(uid, &mut stale),
            Change::Namespace(namespace) => self.set_namespace(namespace, &mut stale),
            Change::Claim(claim) => {
                let key = claim_key(&claim.metadata.namespace, &claim.metadata.name);
                let before = self.volumes.claims.insert(key.clone(), claim.clone());
                if before.as_ref() != Some(claim) {
                    self.stale_claim(&key, &mut stale);
                }
            }
            Change::ClaimGone(namespace, name) => {
                let key = claim_key(namespace, name);
                self.volumes.claims.remove(&key);
                self.stale_claim(&key, &mut stale);
            }
            Change::Volume(volume) => {
                let name = &volume.metadata.name;
                let before = self.volumes.volumes.insert(name.clone(), volume.clone());
                if before.as_ref() != Some(volume) {
                    self.volumes.bound_to(name).for_each(|key| self.stale_claim(key, &mut stale));
                }
            }
            Change::VolumeGone(name) => {
                self.volumes.volumes.remove(name);
                self.volumes.bound_to(name).for_each(|key| self.stale_claim(key, &mut stale));
            }
            Change::Selected(claim, selection) => {
                match selection {
                    Some(one) => _ = self.volumes.selections.insert(claim.into(), one.clone()),
                    None => _ = self.volumes.selections.remove(claim),
                }
                self.stale_claim(claim, &mut stale);
            }
            Change::Shut { claim, node, shut } => {
                let pair = (claim.into(), node.into());
                match shut {
                    true => _ = self.volumes.shut.insert(pair),
                    false => _ = self.volumes.shut.remove(&pair),
                }
                self.stale_claim(claim, &mut stale);
            }
            Change::Class(class) => {
                self.volumes.classes.insert(class.metadata.name.clone(), class.clone());
                for (site, kept) in &self.sites {
                    if !kept.asked.requirements.claims.is_empty() {
                        stale.everywhere(*site);
                    }
                }
            }
            Change::Drivers(drivers) => self.set_drivers(drivers, &mut stale),
        }
        let mut report = Report::default();
        for (site, nodes) in stale.0 {
            self.refresh(site, nodes.as_ref(), &mut report);
        }
        report.into_admissions()
    }

    /// Judges a site again, on these nodes or on all, and notes what is different.
    pub(super) fn refresh(
        &mut self,
        id: SiteId,
        only: Option<&BTreeSet<NodeId>>,
        report: &mut Report,
    ) {
        let Some(mut site) = self.sites.remove(&id) else { return };
        let spread = self.spread_counts(&site.asked);
        let mut judge = |node: NodeId, facts: &NodeFacts| {
            let members = match facts.present {
                true => self.members(&site.asked, &spread, facts).unwrap_or(0),
                false => 0,
            };
            let before = site.answers.get(&node).copied().unwrap_or(0);
            if members != before {
                report.0.entry((id, members)).or_default().push(node);
            }
            match members {
                0 => site.answers.remove(&node),
                _ => site.answers.insert(node, members),
            };
        };
        match only {
            Some(nodes) => {
                let known = nodes.iter().filter_map(|node| Some((node, self.nodes.get(node)?)));
                known.for_each(|(node, facts)| judge(*node, facts));
            }
            None => self.nodes.iter().for_each(|(node, facts)| judge(*node, facts)),
        }
        self.sites.insert(id, site);
    }

    fn set_node(&mut self, id: NodeId, node: &Node, stale: &mut Stale) {
        let facts = self.nodes.entry(id).or_default();
        let before = facts.clone();
        facts.set(node);
        facts.drivers = self.drivers.get(&facts.name).cloned().unwrap_or_default();
        if *facts != before {
            self.node_changed(id, &before, stale);
        }
    }

    fn lose_node(&mut self, id: NodeId, stale: &mut Stale) {
        let Some(facts) = self.nodes.get_mut(&id) else { return };
        let before = facts.clone();
        facts.present = false;
        self.node_changed(id, &before, stale);
    }

    fn node_changed(&mut self, id: NodeId, before: &NodeFacts, stale: &mut Stale) {
        self.move_places(id, before);
        let now = &self.nodes[&id];
        // Counts of spread depend on whom a node keeps away, too.
        let elsewhere = before.present != now.present
            || before.labels != now.labels
            || before.taints != now.taints
            || before.cordoned != now.cordoned;
        for (site, kept) in &self.sites {
            if elsewhere && kept.asked.looks_elsewhere() {
                stale.everywhere(*site);
            } else {
                stale.on(*site, id);
            }
        }
    }

    fn set_pod(&mut self, pod: &Pod, node: NodeId, ours: bool, stale: &mut Stale) {
        let known = self.pods.get(&pod.metadata.uid);
        if known.is_some_and(|known| known.is_plainly(pod, node, ours)) {
            return;
        }
        let resident = self.resident(pod, node, ours);
        if self.pods.get(&pod.metadata.uid) == Some(&resident) {
            return;
        }
        resident.owns.iter().for_each(|id| self.hold(*id));
        self.remove_pod(&pod.metadata.uid, stale);
        let touched = self.count(&resident, true);
        let facts = self.nodes.entry(node).or_default();
        let before = places_left(facts);
        facts.add(&resident);
        let after = places_left(facts);
        for claim in &resident.claims {
            let users = self.volumes.users.entry(claim.clone()).or_default();
            users.insert(pod.metadata.uid.clone());
        }
        self.pod_changed(&resident, &touched, before != after, stale);
        self.pods.insert(pod.metadata.uid.clone(), resident);
    }

    fn remove_pod(&mut self, uid: &str, stale: &mut Stale) {
        let Some(resident) = self.pods.remove(uid) else { return };
        let touched = self.count(&resident, false);
        let facts = self.nodes.entry(resident.node).or_default();
        let before = places_left(facts);
        facts.remove(&resident);
        let after = places_left(facts);
        for claim in &resident.claims {
            if let Some(users) = self.volumes.users.get_mut(claim) {
                users.remove(uid);
                if users.is_empty() {
                    self.volumes.users.remove(claim);
                }
            }
        }
        self.pod_changed(&resident, &touched, before != after, stale);
        self.let_go(&resident.owns);
    }

    fn resident(&mut self, pod: &Pod, node: NodeId, ours: bool) -> Resident {
        let requirements = Requirements::of(pod, &self.namespaces);
        let owned = requirements.anti_affinity.iter().map(|(term, _)| self.intern(term));
        let owns: Box<[TermId]> = owned.collect();
        self.anti_terms.extend(&owns);
        Resident {
            node,
            namespace: pod.metadata.namespace.clone(),
            labels: pod.metadata.labels.clone(),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            ours,
            requests: requests(pod).iter().collect(),
            ports: host_ports(pod).cloned().collect(),
            claims: requirements.claims.into(),
            owns,
        }
    }

    /// What a pod on a node, or gone from it, makes stale.
    fn pod_changed(&self, pod: &Resident, terms: &[TermId], places: bool, stale: &mut Stale) {
        for id in terms {
            let term = &self.terms[id];
            // Anti-affinity is about the pod's own place; affinity and spread look at all of them.
            let (near, far): (Vec<SiteId>, Vec<SiteId>) =
                term.sites.iter().partition(|site| self.sites[*site].asked.looks_near(*id));
            far.iter().for_each(|site| stale.everywhere(*site));
            let key = &term.term.topology_key;
            let place = self.nodes.get(&pod.node).and_then(|facts| facts.place(key));
            if near.is_empty() || place.is_none() {
                continue;
            }
            let together = self.nodes.iter().filter(|(_, facts)| facts.place(key) == place);
            for (node, _) in together {
                near.iter().for_each(|site| stale.on(*site, *node));
            }
        }
        for (site, kept) in &self.sites {
            let asked = &kept.asked;
            let shares_claim =
                || asked.requirements.claims.iter().any(|claim| pod.claims.contains(claim));
            if !pod.claims.is_empty() && shares_claim() {
                stale.everywhere(*site);
            } else if places || asked.looks_at_use() {
                stale.on(*site, pod.node);
            }
        }
    }

    fn set_namespace(&mut self, namespace: &Namespace, stale: &mut Stale) {
        let meta = &namespace.metadata;
        if self.namespaces.get(&meta.name) == Some(&meta.labels) {
            return;
        }
        let there: Vec<Resident> =
            self.pods.values().filter(|pod| pod.namespace == meta.name).cloned().collect();
        for pod in &there {
            self.count(pod, false);
        }
        self.namespaces.insert(meta.name.clone(), meta.labels.clone());
        for pod in &there {
            self.count(pod, true);
        }
        for (site, kept) in &self.sites {
            if kept.asked.looks_elsewhere() {
                stale.everywhere(*site);
            }
        }
    }

    fn set_drivers(&mut self, of: &CsiNode, stale: &mut Stale) {
        self.drivers.insert(of.metadata.name.clone(), of.drivers.clone());
        let named = self.nodes.iter_mut().find(|(_, facts)| facts.name == of.metadata.name);
        let Some((node, facts)) = named else { return };
        facts.drivers = of.drivers.clone();
        for (site, kept) in &self.sites {
            if !kept.asked.requirements.claims.is_empty() {
                stale.on(*site, *node);
            }
        }
    }

    /// What a change of a claim, or of its volume, makes stale: sites with that claim, and on nodes with
    /// pods that have it others, as a driver attaches so many volumes.
    fn stale_claim(&self, key: &str, stale: &mut Stale) {
        let users = self.volumes.users.get(key).into_iter().flatten();
        let nodes: BTreeSet<NodeId> =
            users.filter_map(|uid| Some(self.pods.get(uid)?.node)).collect();
        for (site, kept) in &self.sites {
            let claims = &kept.asked.requirements.claims;
            if claims.iter().any(|claim| **claim == *key) {
                stale.everywhere(*site);
            } else if !claims.is_empty() {
                nodes.iter().for_each(|node| stale.on(*site, *node));
            }
        }
    }
}

/// Places for pods, as far as they are fewer than the node's GPUs and so can matter.
fn places_left(facts: &NodeFacts) -> u64 {
    facts.free("pods").min(u64::from(facts.gpu_slots()))
}
