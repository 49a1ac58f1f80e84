//! Volume claims: where their volumes can be reached, and what is in the way of a pod that has them.

use super::node::NodeFacts;
use super::why::Why;
use crate::refusal::{Refusal, RefusalKind};
use crate::requirements::{Requirements, claim_key, claims_of};
use crate::selector::node_matches;
use crate::watched::{
    BindingMode, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume,
};
use std::collections::{BTreeMap, BTreeSet};

/// For which node a claim's volume is to be made, where this scheduler knows better than the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// For this one: it has been chosen, and the watch need not show it yet.
    Node(Box<str>),
    /// For any: what the claim says has been taken back.
    Any,
}

/// Claims, volumes and classes.
#[derive(Clone, Debug, Default)]
pub(super) struct Volumes {
    pub claims: BTreeMap<Box<str>, PersistentVolumeClaim>,
    pub volumes: BTreeMap<Box<str>, PersistentVolume>,
    pub classes: BTreeMap<Box<str>, StorageClass>,
    /// UIDs of pods on nodes by claim.
    pub users: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    /// What is known of claims without a volume beyond what they say.
    pub selections: BTreeMap<Box<str>, Selection>,
    /// Claims, and nodes for which their volumes could not be made lately.
    pub shut: BTreeSet<(Box<str>, Box<str>)>,
}

impl Volumes {
    /// How many more pods with the pod's claims the node can take.
    ///
    /// # Errors
    /// The first thing that is in the way of even one.
    pub fn room(&self, pod: &Requirements, node: &NodeFacts) -> Result<u32, Why> {
        let mut most = u32::MAX;
        for key in &pod.claims {
            let claim = self.reached(key, node)?;
            if claim.one_pod {
                if self.users.contains_key(key) {
                    return Err(Why::ClaimInUse { claim: key.clone() });
                }
                most = 1;
            }
        }
        for driver in &node.drivers {
            let Some(limit) = driver.count else { continue };
            let of_driver = |key: &str| self.driver(key).is_some_and(|name| *name == *driver.name);
            let new = pod.claims.iter().filter(|key| !node.claims.contains_key(*key));
            let new = new.filter(|key| of_driver(key)).count();
            let there = node.claims.keys().filter(|key| of_driver(key)).count();
            if new > 0 && there + new > limit as usize {
                return Err(Why::AttachLimit { driver: driver.name.clone() });
            }
        }
        Ok(most)
    }

    /// The claim of this name, if the node reaches its volume, or the one that will be made for it.
    ///
    /// # Errors
    /// It does not.
    pub fn reached(&self, key: &str, node: &NodeFacts) -> Result<&PersistentVolumeClaim, Why> {
        let claim = self.claims.get(key).filter(|claim| self.reaches(key, claim, node));
        claim.ok_or_else(|| Why::Volume { claim: key.into() })
    }

    fn reaches(&self, key: &str, claim: &PersistentVolumeClaim, node: &NodeFacts) -> bool {
        let selected =
            |nodes: &crate::watched::NodeSelector| node_matches(nodes, &node.name, &node.labels);
        if let Some(name) = &claim.volume {
            let volume = self.volumes.get(name);
            return volume.is_some_and(|at| at.node_affinity.as_ref().is_none_or(selected));
        }
        let class = self.class(claim).filter(|_| !claim.names_volume);
        let waits = class.filter(|class| {
            class.is_dynamic() && class.volume_binding_mode == BindingMode::WaitForFirstConsumer
        });
        let chosen = match self.selections.get(key) {
            Some(Selection::Node(name)) => Some(&**name),
            Some(Selection::Any) => None,
            None => claim.selected_node(),
        };
        waits.is_some_and(|class| {
            chosen.is_none_or(|chosen| *chosen == *node.name)
                && class.allowed_nodes.as_ref().is_none_or(selected)
                && !self.shut.contains(&(key.into(), node.name.clone()))
        })
    }

    /// The driver that attaches, or will attach, the claim's volume.
    fn driver(&self, key: &str) -> Option<&str> {
        let claim = self.claims.get(key)?;
        match &claim.volume {
            Some(volume) => self.volumes.get(volume)?.csi_driver.as_deref(),
            None => self.class(claim).map(|class| &*class.provisioner),
        }
    }

    fn class(&self, claim: &PersistentVolumeClaim) -> Option<&StorageClass> {
        self.classes.get(claim.storage_class.as_ref()?)
    }

    /// See [`Sites::volume_refusal`](super::Sites::volume_refusal).
    pub fn refusal(&self, pod: &Pod) -> Option<Refusal> {
        let namespace = &pod.metadata.namespace;
        pod.spec.volumes.iter().find_map(|volume| {
            let name = volume.claim(&pod.metadata.name);
            let key = claim_key(namespace, &name);
            let (kind, what) = self.trouble(&key).or_else(|| {
                let others = matches!(volume, Volume::Ephemeral(_)) && !self.is_of(&key, pod);
                let what = "is not this pod's, but of the same name: delete it".to_owned();
                others.then_some((RefusalKind::VolumeNotReady, what))
            })?;
            Some(Refusal { kind, message: format!("volume claim `{namespace}/{name}` {what}") })
        })
    }

    /// True if the claim was made for this very pod.
    fn is_of(&self, key: &str, pod: &Pod) -> bool {
        let owner = self.claims.get(key).and_then(|claim| claim.metadata.controller());
        owner.is_some_and(|owner| owner.uid == pod.metadata.uid)
    }

    fn trouble(&self, key: &str) -> Option<(RefusalKind, String)> {
        let not_ready = |what: &str| Some((RefusalKind::VolumeNotReady, what.to_owned()));
        let Some(claim) = self.claims.get(key) else {
            return not_ready("does not exist yet: create it, or correct the name");
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return not_ready("is being deleted: wait for it, and create it anew");
        }
        if let Some(volume) = &claim.volume {
            return match self.volumes.contains_key(volume) {
                true => None,
                false => not_ready("is bound to a volume that does not exist"),
            };
        }
        if claim.names_volume {
            return not_ready("names a volume that it is not bound to: wait, or look at both");
        }
        let Some(class) = self.class(claim) else {
            return not_ready(
                "is not bound, and its storage class does not exist: bind it by hand, \
                or name a class",
            );
        };
        if !class.is_dynamic() {
            let what = format!(
                "is not bound, and volumes of class `{}` are made by hand, which DeepShare does not \
                 choose among: bind it to one with `volumeName`",
                class.metadata.name
            );
            return Some((RefusalKind::VolumeUnsupported, what));
        }
        match class.volume_binding_mode {
            BindingMode::WaitForFirstConsumer => None,
            BindingMode::Immediate => not_ready("is not bound yet: its provisioner is at work"),
        }
    }

    /// See [`Sites::claims_to_provision`](super::Sites::claims_to_provision).
    pub fn to_provision(&self, pod: &Pod) -> Vec<Box<str>> {
        let unbound = |key: &str| self.claims.get(key).is_some_and(|claim| claim.volume.is_none());
        let mut keys: Vec<Box<str>> = claims_of(pod).filter(|key| unbound(key)).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// Claims that are bound, or about to be, to this volume.
    pub fn bound_to<'a>(&'a self, volume: &'a str) -> impl Iterator<Item = &'a Box<str>> {
        let claims = self.claims.iter();
        claims.filter(move |(_, claim)| claim.volume.as_deref() == Some(volume)).map(|(key, _)| key)
    }
}
