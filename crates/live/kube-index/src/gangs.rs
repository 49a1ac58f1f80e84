//! Which pods belong together, by whatever convention their owner follows.
//!
//! | convention | group | size |
//! | --- | --- | --- |
//! | own annotations | `deepshare.io/gang`, else the owner | `deepshare.io/gang-size` |
//! | coscheduling plugin | label `scheduling.x-k8s.io/pod-group` | its PodGroup's `minMember` |
//! | the same, before PodGroups | label `pod-group.scheduling.sigs.k8s.io/name` | label `…/min-available` |
//! | Volcano | annotation `scheduling.k8s.io/group-name` | its PodGroup's `minMember` |
//! | Kubernetes 1.36 | `spec.schedulingGroup.podGroupName` | its PodGroup's gang `minCount` |
//!
//! "The owner" is the JobSet or training job that labels the pod, else its controller (a Job). A group
//! is local to its namespace. Pods beyond its size are jobs of their own, one each.

use crate::pods::Group;
use crate::watched::{Pod, PodGroup};
use deepshare_kube_api::names;
use std::collections::BTreeMap;

/// Whose PodGroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupSource {
    /// `scheduling.x-k8s.io`, the coscheduling plugin's.
    Coscheduling,
    /// `scheduling.volcano.sh`.
    Volcano,
    /// `scheduling.k8s.io`, Kubernetes's own.
    Core,
}

/// PodGroups by source, namespace and name.
#[derive(Debug, Default)]
pub(crate) struct PodGroups(BTreeMap<(GroupSource, Box<str>, Box<str>), Option<u32>>);

impl PodGroups {
    pub(crate) fn set(&mut self, source: GroupSource, group: &PodGroup) {
        let key = (source, group.metadata.namespace.clone(), group.metadata.name.clone());
        self.0.insert(key, group.min_members);
    }

    pub(crate) fn remove(&mut self, source: GroupSource, namespace: &str, name: &str) {
        self.0.remove(&(source, namespace.into(), name.into()));
    }

    /// The gang that a pod of a namespace names; `None`: its PodGroup asks for no gang.
    ///
    /// # Errors
    /// A word and a sentence: the PodGroup is not there, or not yet.
    pub(crate) fn resolve(
        &self,
        named: &GroupRef,
        namespace: &str,
    ) -> Result<Option<Group>, (String, String)> {
        let (source, name) = match named {
            GroupRef::Told(group) => return Ok(Some(group.clone())),
            GroupRef::PodGroup(source, name) => (*source, name),
        };
        match self.0.get(&(source, namespace.into(), name.clone())) {
            Some(None) => Ok(None),
            Some(&Some(size)) => {
                let name = format!("{source:?}/{name}");
                Ok(Some(Group { name, size }).filter(|_| size > 1))
            }
            None => {
                let message =
                    format!("its PodGroup {name} is not in namespace {namespace}: create it");
                Err(("PodGroupMissing".to_owned(), message))
            }
        }
    }
}

/// Most pods of a gang: more than any cluster runs, and few enough to hold in memory.
const MOST: u32 = 100_000;

/// How a pod names its gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupRef {
    /// It says all there is to know.
    Told(Group),
    /// A PodGroup says how many there are.
    PodGroup(GroupSource, Box<str>),
}

/// What people call a group: its name without what tells it from others of that name.
pub(crate) fn title(group: &str) -> &str {
    let name = group.rsplit_once('/').map_or(group, |(_, name)| name);
    name.split(':').next().unwrap_or(name)
}

/// How a pod names its gang, if it is part of one.
///
/// # Errors
/// A word and a sentence: the size is missing or not a number, or the gang has no name.
pub(crate) fn group_of(pod: &Pod) -> Result<Option<GroupRef>, (String, String)> {
    let (annotations, labels) = (&pod.metadata.annotations, &pod.metadata.labels);
    let own = annotations.get(names::GANG);
    let size = annotations.get(names::GANG_SIZE);
    if own.is_some() || size.is_some() {
        let Some(size) = size else {
            let message = format!(
                "annotation {} is set and {} is not: say how many pods the gang has",
                names::GANG,
                names::GANG_SIZE
            );
            return Err(("BadGang".to_owned(), message));
        };
        let size = parse_size(size, names::GANG_SIZE)?;
        let name = own.map(|name| format!("gang/{name}")).or_else(|| owner_name(pod));
        return match name {
            _ if size == 1 => Ok(None),
            Some(name) => Ok(Some(GroupRef::Told(Group { name, size }))),
            None => {
                let message = format!(
                    "annotation {} is set on a pod that nobody controls: name its gang in {}",
                    names::GANG_SIZE,
                    names::GANG
                );
                Err(("BadGang".to_owned(), message))
            }
        };
    }
    let by_pod_group = [
        (GroupSource::Coscheduling, labels.get("scheduling.x-k8s.io/pod-group")),
        (GroupSource::Volcano, annotations.get("scheduling.k8s.io/group-name")),
        (GroupSource::Core, pod.spec.pod_group.as_deref()),
    ];
    for (source, name) in by_pod_group {
        if let Some(name) = name {
            return Ok(Some(GroupRef::PodGroup(source, name.into())));
        }
    }
    if let Some(name) = labels.get("pod-group.scheduling.sigs.k8s.io/name") {
        let label = "pod-group.scheduling.sigs.k8s.io/min-available";
        let size = parse_size(labels.get(label).unwrap_or(""), label)?;
        let name = format!("label/{name}");
        return Ok(Some(GroupRef::Told(Group { name, size })).filter(|_| size > 1));
    }
    Ok(None)
}

fn parse_size(text: &str, place: &str) -> Result<u32, (String, String)> {
    let size = text.trim().parse::<u32>().ok().filter(|size| (1..=MOST).contains(size));
    size.ok_or_else(|| {
        let message = format!("{place} is {text:?}: write a number of pods from 1 to {MOST}");
        ("BadGang".to_owned(), message)
    })
}

/// The owner that its pods have in common.
fn owner_name(pod: &Pod) -> Option<String> {
    let labels = &pod.metadata.labels;
    let by_label = ["jobset.sigs.k8s.io/jobset-uid", "jobset.sigs.k8s.io/jobset-name"]
        .into_iter()
        .chain(["training.kubeflow.org/job-name"])
        .find_map(|label| Some(format!("{label}/{}", labels.get(label)?)));
    by_label.or_else(|| {
        let owner = pod.metadata.controller()?;
        Some(format!("owner/{}:{}", owner.name, owner.uid))
    })
}
