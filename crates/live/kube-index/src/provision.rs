//! Claims whose volumes are made once a node is written on them: which node that is, who waits for the
//! volume, and when the node is taken back.
//!
//! A provisioner that cannot make a volume for a node removes the node from the claim; from one that
//! takes too long it is taken back. The claim then leaves that node alone for a while, longer each time
//! in a row. What becomes of the pods that wait is in `awaiting.rs`, and which nodes remain in
//! `sites/volumes.rs`.

use crate::action::{Action, ClaimRef};
use crate::index::{Index, Timer};
use crate::jobs::Uid;
use crate::pods::PodFacts;
use crate::requirements::{claim_key, claims_of};
use crate::sites::Selection;
use deepshare_model::{JobId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A claim, as `namespace/name`.
pub(crate) type ClaimKey = Box<str>;

/// Claims whose volumes are to be made.
#[derive(Debug, Default)]
pub(crate) struct Provision {
    /// Nodes chosen for claims that pods wait for.
    chosen: BTreeMap<ClaimKey, Chosen>,
    /// The claims that each of those pods waits for.
    waiting: BTreeMap<Uid, Vec<ClaimKey>>,
    /// Nodes that were taken back, until the claim shows it.
    taken_back: BTreeMap<ClaimKey, Arc<str>>,
    /// Nodes on claims that nobody here waits for, and until when they are honoured.
    left: BTreeMap<ClaimKey, (Box<str>, Time)>,
    /// By node: until when the claim's volume is not tried there again, and failures in a row.
    failed: BTreeMap<ClaimKey, BTreeMap<Arc<str>, Failures>>,
}

/// Until when, while that is to come, and how many in a row.
type Failures = (Option<Time>, u32);

/// The node chosen for a claim.
#[derive(Debug)]
struct Chosen {
    node: Arc<str>,
    shown: Shown,
    pods: BTreeSet<Uid>,
}

/// Whether the claim shows the node that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Not yet.
    No,
    /// It does from an earlier time, and that was taken back.
    Before,
    /// It does.
    Yes,
}

impl Index {
    /// A pod on this node waits for volumes: has them made there.
    pub(crate) fn provision(&mut self, uid: &Uid, node: &Arc<str>, claims: Vec<ClaimKey>) {
        claims.iter().for_each(|key| self.choose(key, node, uid));
        self.provision.waiting.insert(uid.clone(), claims);
    }

    /// A pod on this node waits for the volume of this claim. Of pods that share a claim the first one's
    /// node counts: whether the others reach the volume shows once it is there.
    fn choose(&mut self, key: &ClaimKey, node: &Arc<str>, uid: &Uid) {
        if let Some(chosen) = self.provision.chosen.get_mut(key) {
            chosen.pods.insert(uid.clone());
            return;
        }
        let before = self.provision.taken_back.remove(key).is_some_and(|before| before == *node);
        let shown = match self.shown_node(key).is_some_and(|shown| *shown == **node) {
            true if before => Shown::Before,
            true => Shown::Yes,
            false => Shown::No,
        };
        if shown != Shown::Yes {
            self.write_node(key, Some(node));
        }
        self.provision.left.remove(key);
        self.places.select(key, Some(Selection::Node((**node).into())));
        let (node, pods) = (node.clone(), BTreeSet::from([uid.clone()]));
        self.provision.chosen.insert(key.clone(), Chosen { node, shown, pods });
    }

    /// The node that a claim shows, while it has no volume.
    pub(crate) fn shown_node(&self, key: &str) -> Option<Box<str>> {
        let claim = self.places.sites().claim(key).filter(|claim| !claim.names_volume)?;
        claim.selected_node().map(Into::into)
    }

    fn write_node(&mut self, key: &str, node: Option<&str>) {
        let Some(claim) = self.places.sites().claim(key) else { return };
        let meta = &claim.metadata;
        let claim = ClaimRef {
            namespace: meta.namespace.to_string(),
            name: meta.name.to_string(),
            uid: meta.uid.to_string(),
        };
        self.actions.push(Action::SelectNode { claim, node: node.map(str::to_owned) });
    }

    /// A sentence if a claim has shown the node that was chosen, and does not any more.
    pub(crate) fn lost_node(&self, key: &str) -> Option<String> {
        let chosen = self.provision.chosen.get(key).filter(|at| at.shown == Shown::Yes)?;
        let claim = self.places.sites().claim(key).filter(|claim| !claim.names_volume)?;
        let node = &chosen.node;
        match claim.selected_node() {
            Some(shown) if *shown == **node => None,
            Some(other) => Some(format!("volume claim {key} is now to be made for {other}")),
            None => Some(format!(
                "the volume of claim {key} was not made for {node}: its provisioner has given the node \
                 back, and says why in the claim's events"
            )),
        }
    }

    /// A pod does not wait for volumes any more; true if it did. What it chose a node for and nobody else
    /// waits for is taken back, unless its volume is there.
    pub(crate) fn withdraw(&mut self, uid: &str) -> bool {
        let Some(keys) = self.provision.waiting.remove(uid) else { return false };
        for key in keys {
            let Some(chosen) = self.provision.chosen.get_mut(&key) else { continue };
            chosen.pods.remove(uid);
            if !chosen.pods.is_empty() {
                continue;
            }
            let (node, shown) = (chosen.node.clone(), chosen.shown);
            self.provision.chosen.remove(&key);
            let claim = self.places.sites().claim(&key);
            let open = claim.is_some_and(|claim| !claim.names_volume);
            let stands = self.shown_node(&key).is_some_and(|shown| *shown == *node);
            // What is on its way to be written will stand.
            match open && (stands || shown != Shown::Yes) {
                true => self.take_back(&key, node),
                false => self.places.select(&key, None),
            }
        }
        true
    }

    fn take_back(&mut self, key: &ClaimKey, node: Arc<str>) {
        self.write_node(key, None);
        self.places.select(key, Some(Selection::Any));
        self.provision.taken_back.insert(key.clone(), node);
    }

    /// The volume of a claim could not be made for the node that was chosen.
    pub(crate) fn shun(&mut self, now: Time, key: &ClaimKey) {
        let Some(node) = self.provision.chosen.get(key).map(|chosen| chosen.node.clone()) else {
            return;
        };
        let nodes = self.provision.failed.entry(key.clone()).or_default();
        let (closed, times) = nodes.entry(node.clone()).or_default();
        let until = now + self.config.patience.rejecting_node * (1 << (*times).min(6));
        (*closed, *times) = (Some(until), *times + 1);
        self.timers.insert((until, Timer::Claims));
        self.places.shut(key, &node, true);
    }

    /// A claim is another one than before, or gone, or its volume has come.
    pub(crate) fn claim_changed(&mut self, now: Time, namespace: &str, name: &str) {
        let key = claim_key(namespace, name);
        let claim = self.places.sites().claim(&key);
        let open = claim.is_some_and(|claim| !claim.names_volume);
        if !open {
            for node in self.provision.failed.remove(&key).unwrap_or_default().keys() {
                self.places.shut(&key, node, false);
            }
        }
        let shown = self.shown_node(&key);
        let back = self.provision.taken_back.get(&key);
        if back.is_some_and(|node| shown.as_deref() != Some(&**node)) {
            self.provision.taken_back.remove(&key);
            self.places.select(&key, None);
        }
        if let Some(chosen) = self.provision.chosen.get_mut(&key) {
            chosen.shown = match (shown.as_deref() == Some(&*chosen.node), chosen.shown) {
                (true, Shown::Before) => Shown::Before,
                (true, _) => Shown::Yes,
                (false, Shown::Before) => Shown::No,
                (false, before) => before,
            };
            let jobs = chosen.pods.iter().filter_map(|uid| self.jobs.by_pod.get(uid).copied());
            let jobs: BTreeSet<JobId> = jobs.collect();
            jobs.into_iter().for_each(|job| self.review(now, job));
        } else if !self.provision.taken_back.contains_key(&key) {
            self.note_left(now, &key, shown);
        }
    }

    /// Pods that wait for the volume of a claim.
    pub(crate) fn who_awaits(&self, key: &str) -> Vec<Uid> {
        let chosen = self.provision.chosen.get(key).into_iter();
        chosen.flat_map(|chosen| chosen.pods.iter().cloned()).collect()
    }

    /// A volume has come, or is another one than before.
    pub(crate) fn volume_came(&mut self, now: Time, name: &str) {
        for key in self.places.sites().claims_of_volume(name) {
            if self.provision.chosen.contains_key(&key)
                && let Some((namespace, name)) = key.split_once('/')
            {
                self.claim_changed(now, namespace, name);
            }
        }
    }

    /// A node that nobody here has chosen stands on a claim: by an earlier leader, or another scheduler.
    /// Its provisioner may be at work, so it is honoured; but not for ever.
    fn note_left(&mut self, now: Time, key: &ClaimKey, shown: Option<Box<str>>) {
        let Some(node) = shown else {
            self.provision.left.remove(key);
            return;
        };
        if self.provision.left.get(key).is_none_or(|(known, _)| *known != node) {
            let until = now + self.config.patience.volumes;
            self.provision.left.insert(key.clone(), (node, until));
            self.timers.insert((until, Timer::Claims));
        }
    }

    /// Nodes that are no part of the cluster are not honoured.
    pub(crate) fn expire_left(&mut self, now: Time) {
        for (node, until) in self.provision.left.values_mut() {
            if self.nodes.get(&**node).is_none_or(|entry| entry.facts.is_none()) {
                *until = now;
                self.timers.insert((now, Timer::Claims));
            }
        }
    }

    /// Time has passed for claims: nodes are tried again, and nodes that were left are taken back.
    pub(crate) fn claims_timer(&mut self, now: Time) {
        let mut open = Vec::new();
        for (key, nodes) in &mut self.provision.failed {
            for (node, (closed, _)) in nodes {
                // How often is remembered until the volume is there.
                if closed.is_some_and(|until| until <= now) {
                    *closed = None;
                    open.push((key.clone(), node.clone()));
                }
            }
        }
        open.iter().for_each(|(key, node)| self.places.shut(key, node, false));
        let left = self.provision.left.iter().filter(|(_, (_, until))| *until <= now);
        let left: Vec<(ClaimKey, Arc<str>)> =
            left.map(|(key, (node, _))| (key.clone(), (**node).into())).collect();
        for (key, node) in left {
            self.provision.left.remove(&key);
            match self.is_wanted(&key) {
                true => self.take_back(&key, node),
                // It is no business of ours yet.
                false => self.note_left(now, &key, Some((*node).into())),
            }
        }
    }

    /// True if a pod that waits to be scheduled has the claim.
    fn is_wanted(&self, key: &str) -> bool {
        let has = |pod: &PodFacts| {
            let whole = pod.whole.as_ref().filter(|_| pod.is_asking());
            whole.is_some_and(|pod| claims_of(pod).any(|claim| *claim == *key))
        };
        self.pods.values().any(has)
    }
}
