//! Node checks in the engine's terms.
//!
//! [`Sites`] numbers every node that was ever named and knows nothing of GPUs. The engine numbers nodes
//! with GPUs, and a pod's requirements include the resource under which it asks for them. This is the
//! translation.

use crate::devices::GpuKind;
use crate::interner::Interner;
use crate::sites::{Admission, Change, Selection, Sites, Why};
use crate::watched::{
    CsiNode, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass,
};
use deepshare_model::{NodeId, Resources, SiteId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How many more members of a site the nodes take.
#[derive(Debug)]
pub(crate) struct SiteChange {
    pub(crate) site: SiteId,
    pub(crate) members: u32,
    pub(crate) nodes: Vec<NodeId>,
}

/// Sites that nobody uses any more are kept while they are so few: the next pod of such a kind costs no
/// look at every node.
const SPARE_SITES: usize = 64;

/// A site of the engine: requirements, and the resource.
#[derive(Clone, Copy, Debug)]
struct Kind {
    requirements: SiteId,
    kind: GpuKind,
    /// Pods and jobs of it.
    users: u32,
}

/// Which nodes take which pods.
#[derive(Debug, Default)]
pub(crate) struct Places {
    sites: Sites,
    /// Every node by name, with the number that `sites` knows it by.
    names: Interner,
    /// The engine's number of each, where it has one.
    engine: Vec<Option<NodeId>>,
    /// By site; those that were forgotten are in none of `ids`.
    kinds: Vec<Kind>,
    /// Sites without users, the one that has been without the longest first.
    spare: VecDeque<SiteId>,
    /// Forgotten sites, whose numbers are given to others.
    forgotten: Vec<SiteId>,
    ids: BTreeMap<(SiteId, GpuKind), SiteId>,
    changes: Vec<SiteChange>,
    touched: BTreeSet<u32>,
}

impl Places {
    fn number(&mut self, name: &str) -> NodeId {
        let id = self.names.intern(name).0;
        if self.engine.len() <= id as usize {
            self.engine.resize(id as usize + 1, None);
        }
        NodeId(id)
    }

    fn apply(&mut self, change: Change<'_>) {
        let admissions = self.sites.apply(change);
        self.note(admissions);
    }

    /// Translates what has changed.
    fn note(&mut self, admissions: Vec<Admission>) {
        for Admission { site, nodes, members } in admissions {
            let nodes: Vec<NodeId> =
                nodes.iter().filter_map(|node| self.engine[node.index()]).collect();
            if nodes.is_empty() {
                continue;
            }
            let kinds = GpuKind::ALL.iter().filter_map(|kind| self.ids.get(&(site, *kind)));
            self.changes.extend(kinds.map(|&site| SiteChange {
                site,
                members,
                nodes: nodes.clone(),
            }));
        }
    }

    pub(crate) fn set_node(&mut self, node: &Node) {
        let id = self.number(&node.metadata.name);
        self.apply(Change::Node(id, node));
    }

    pub(crate) fn drop_node(&mut self, name: &str) {
        let id = self.number(name);
        self.apply(Change::NodeGone(id));
    }

    /// The engine's number of a node, from now on.
    pub(crate) fn number_node(&mut self, name: &str, id: NodeId) {
        let order = self.number(name);
        self.engine[order.index()] = Some(id);
        self.repeat_node(name);
    }

    /// Says again what a node takes: what it serves has changed.
    pub(crate) fn repeat_node(&mut self, name: &str) {
        let order = self.number(name);
        let Some(node) = self.engine[order.index()] else { return };
        for (&(requirements, _), &site) in &self.ids {
            let members = self.sites.members_of(requirements, order);
            self.changes.push(SiteChange { site, members, nodes: vec![node] });
        }
    }

    /// A pod as it now is; `known`: the engine counts its CPU and memory.
    pub(crate) fn set_pod(&mut self, pod: &Pod, known: bool) {
        let Some(name) = pod.spec.node_name.as_deref() else { return };
        let node = self.number(name);
        self.hold(pod, node, known);
    }

    fn hold(&mut self, pod: &Pod, node: NodeId, ours: bool) {
        self.touched.insert(node.0);
        self.apply(Change::Pod { pod, node, ours });
    }

    pub(crate) fn drop_pod(&mut self, uid: &str) {
        if let Some(node) = self.sites.node_of(uid) {
            self.touched.insert(node.0);
            self.apply(Change::PodGone(uid));
        }
    }

    /// Nodes on which CPU or memory may have changed.
    pub(crate) fn take_touched(&mut self) -> Vec<Arc<str>> {
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().map(|id| self.names.name(id as usize).into()).collect()
    }

    /// Takes it that a pod will be bound to a node, unless that cannot take it any more: a word of why.
    pub(crate) fn assume(&mut self, node: &str, pod: &Pod) -> Result<(), String> {
        let node = self.number(node);
        self.sites.check(node, pod).map_err(|why| why.to_string())?;
        self.hold(pod, node, true);
        Ok(())
    }

    pub(crate) fn host_free(&self, name: &str) -> Option<Resources> {
        let order = self.names.get(name)?;
        self.sites.host_free(NodeId(order))
    }

    /// What has changed since this was last asked.
    pub(crate) fn take_changes(&mut self) -> Vec<SiteChange> {
        std::mem::take(&mut self.changes)
    }

    pub(crate) fn kind(&self, site: SiteId) -> GpuKind {
        self.kinds[site.index()].kind
    }

    /// The site of such pods.
    pub(crate) fn site_of(&mut self, pod: &Pod, kind: GpuKind) -> SiteId {
        let (requirements, _) = self.sites.site(pod);
        if let Some(known) = self.ids.get(&(requirements, kind)) {
            return *known;
        }
        let site = self.new_site(requirements, kind);
        // The answers of these requirements, as this kind has not heard them.
        let mut by_members: BTreeMap<u32, Vec<NodeId>> = BTreeMap::new();
        for (members, node) in self.open_to(requirements) {
            by_members.entry(members).or_default().push(node);
        }
        let changes = by_members.into_iter();
        self.changes.extend(changes.map(|(members, nodes)| SiteChange { site, members, nodes }));
        site
    }

    /// How many members each node takes of those that take any, by the engine's numbers.
    fn open_to(&self, requirements: SiteId) -> impl Iterator<Item = (u32, NodeId)> {
        let numbered = (0..).map(NodeId).zip(&self.engine);
        let answers = numbered.filter_map(move |(order, node)| {
            Some((self.sites.members_of(requirements, order), (*node)?))
        });
        answers.filter(|(members, _)| *members > 0)
    }

    /// A number for a site that has no users yet.
    fn new_site(&mut self, requirements: SiteId, kind: GpuKind) -> SiteId {
        let entry = Kind { requirements, kind, users: 0 };
        let id = match self.forgotten.pop() {
            Some(id) => id,
            None => {
                self.kinds.push(entry);
                SiteId::from_index(self.kinds.len() - 1)
            }
        };
        self.kinds[id.index()] = entry;
        self.ids.insert((requirements, kind), id);
        self.spare.push_back(id);
        id
    }

    /// One more pod or job is of this site.
    pub(crate) fn use_site(&mut self, site: SiteId) {
        let users = &mut self.kinds[site.index()].users;
        *users += 1;
        if *users == 1 {
            self.spare.retain(|spare| *spare != site);
        }
    }

    /// A pod or job of this site is gone.
    pub(crate) fn leave_site(&mut self, site: SiteId) {
        let users = &mut self.kinds[site.index()].users;
        *users -= 1;
        if *users > 0 {
            return;
        }
        self.spare.push_back(site);
        if self.spare.len() > SPARE_SITES
            && let Some(oldest) = self.spare.pop_front()
        {
            self.forget_site(oldest);
        }
    }

    /// Nobody asks about a site any more: pods with a claim of their own make one each.
    fn forget_site(&mut self, site: SiteId) {
        let Kind { requirements, kind, .. } = self.kinds[site.index()];
        let nodes: Vec<NodeId> = self.open_to(requirements).map(|(_, node)| node).collect();
        // Whoever gets its number must not find its answers.
        self.changes.push(SiteChange { site, members: 0, nodes });
        self.ids.remove(&(requirements, kind));
        if !GpuKind::ALL.iter().any(|kind| self.ids.contains_key(&(requirements, *kind))) {
            self.sites.forget(requirements);
        }
        self.forgotten.push(site);
    }

    /// Why a pod's volumes keep it from running anywhere, if they do: a word and a sentence.
    pub(crate) fn volume_refusal(&self, pod: &Pod) -> Option<(String, String)> {
        let refusal = self.sites.volume_refusal(pod)?;
        Some((refusal.kind.to_string(), refusal.message))
    }

    /// What node checks know of volumes.
    pub(crate) fn sites(&self) -> &Sites {
        &self.sites
    }

    /// Whether a pod that was assumed on a node may still go there: a word of why not.
    pub(crate) fn recheck(&self, node: &str, pod: &Pod) -> Result<(), String> {
        let verdict = match self.names.get(node) {
            Some(order) => self.sites.recheck(NodeId(order), pod),
            None => Err(Why::NoNode),
        };
        verdict.map_err(|why| why.to_string())
    }

    /// For which node the volume of a claim is to be made, whatever the claim says; `None`: what it says
    /// counts.
    pub(crate) fn select(&mut self, claim: &str, selection: Option<Selection>) {
        self.apply(Change::Selected(claim, selection.as_ref()));
    }

    /// The volume of a claim cannot be made for a node for now, or could be again.
    pub(crate) fn shut(&mut self, claim: &str, node: &str, shut: bool) {
        self.apply(Change::Shut { claim, node, shut });
    }

    pub(crate) fn set_namespace(&mut self, namespace: &Namespace) {
        self.apply(Change::Namespace(namespace));
    }

    pub(crate) fn set_claim(&mut self, claim: &PersistentVolumeClaim) {
        self.apply(Change::Claim(claim));
    }

    pub(crate) fn drop_claim(&mut self, namespace: &str, name: &str) {
        self.apply(Change::ClaimGone(namespace, name));
    }

    pub(crate) fn set_volume(&mut self, volume: &PersistentVolume) {
        self.apply(Change::Volume(volume));
    }

    pub(crate) fn drop_volume(&mut self, name: &str) {
        self.apply(Change::VolumeGone(name));
    }

    pub(crate) fn set_storage_class(&mut self, class: &StorageClass) {
        self.apply(Change::Class(class));
    }

    pub(crate) fn set_csi_node(&mut self, node: &CsiNode) {
        self.apply(Change::Drivers(node));
    }
}
