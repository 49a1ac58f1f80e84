//! Nodes, GPUs and tenants, as they change: what the engine hears of them.

use crate::devices::{GpuKind, NodeEntry};
use crate::index::{Index, Named, NodeOrder, Timer};
use crate::places::SiteChange;
use crate::watched::Node;
use deepshare_engine::Event;
use deepshare_kube_api::GpuNode;
use deepshare_model::{JobId, NodeId, Time};
use std::sync::Arc;

impl Index {
    /// Tells the engine what changed of nodes, tenants and sites.
    pub(crate) fn tell_cluster(&mut self, now: Time) {
        if !self.is_synced() {
            return;
        }
        let mut working_changed = false;
        let known = self.types.len();
        self.touched.extend(self.places.take_touched());
        for name in std::mem::take(&mut self.touched) {
            let free = self.places.host_free(&name);
            let Some(entry) = self.nodes.get_mut(&name) else { continue };
            if let (Some(facts), Some(free)) = (&mut entry.facts, free) {
                facts.capacity = free;
            }
            let mut next = u32::try_from(self.nodes_by_id.len()).unwrap_or(u32::MAX);
            let before = entry.working();
            let events = entry.tell(&mut next, &mut self.types);
            working_changed |= entry.working() != before;
            if next as usize > self.nodes_by_id.len() {
                self.nodes_by_id.push(name.clone());
                let id = NodeId(next - 1);
                self.named.push(Named::Node(id, name.to_string()));
                self.places.number_node(&name, id);
            }
            self.events.extend(events);
        }
        let quotas_changed = std::mem::take(&mut self.quotas_changed) || self.types.len() > known;
        if quotas_changed || working_changed {
            let usable = self.usable();
            let events = self.tenants.reconcile(&mut self.types, &usable);
            for event in &events {
                if let Event::TenantSet { tenant, .. } = event {
                    let name = self.tenants.name(*tenant).to_owned();
                    self.named.push(Named::Tenant(*tenant, name));
                }
            }
            for (index, name) in self.types.names().enumerate().skip(known) {
                self.named.push(Named::GpuType(index as u32, name.to_owned()));
            }
            self.events.extend(events);
            if quotas_changed {
                // The engine need not hear of it: conditions speak of namespaces, too.
                self.why.note_change();
                self.dismiss_homeless(now);
                self.recheck_refused(now);
            }
        }
        self.tell_sites();
    }

    /// Refuses what waits in namespaces that belong to no tenant any more.
    fn dismiss_homeless(&mut self, now: Time) {
        for job in self.why.waiting() {
            let entry = self.jobs.get(job);
            let homeless = self.tenants.of(&entry.namespace).is_err();
            if homeless && !entry.over && entry.run.is_none() {
                self.events.push(Event::Cancelled { job });
                self.dissolve(now, job);
            }
        }
    }

    /// Tells the engine which nodes admit what, as far as that has changed.
    pub(crate) fn tell_sites(&mut self) {
        for SiteChange { site, members, nodes } in self.places.take_changes() {
            let kind = self.places.kind(site);
            let serves = |id: &NodeId| {
                let name = &self.nodes_by_id[id.index()];
                let fine = self.rejecting.get(name).is_none_or(|(until, _)| until.is_none());
                fine && self.nodes.get(name).is_some_and(|node| node.serves(kind))
            };
            let (open, shut): (Vec<NodeId>, Vec<NodeId>) = nodes.iter().partition(|id| serves(id));
            for (nodes, members) in [(open, members), (shut, 0)] {
                if !nodes.is_empty() {
                    self.events.push(Event::Admitted { site, nodes, members });
                }
            }
        }
    }

    /// Working GPUs by type.
    pub(crate) fn usable(&self) -> Vec<u32> {
        let mut usable = vec![0; self.types.len()];
        for (gpu_type, gpus) in self.nodes.values().filter_map(NodeEntry::working) {
            if let Some(sum) = usable.get_mut(gpu_type.index()) {
                *sum += gpus;
            }
        }
        usable
    }

    pub(crate) fn set_node(&mut self, now: Time, node: &Node) {
        let name: Arc<str> = (*node.metadata.name).into();
        self.places.set_node(node);
        let entry = self.node_entry(&name);
        entry.set_facts(node);
        if node.status.ready {
            entry.lost = false;
            self.unready.remove(&name);
        } else if !self.unready.contains_key(&name) {
            let until = now + self.config.patience.node;
            self.unready.insert(name.clone(), until);
            let order = self.timed_nodes.intern(&name).0;
            self.timers.insert((until, Timer::Node(order)));
        }
        self.touched.insert(name);
    }

    /// What is known of a node; nothing yet, if any of its objects comes first.
    pub(crate) fn node_entry(&mut self, name: &Arc<str>) -> &mut NodeEntry {
        self.nodes.entry(name.clone()).or_insert_with(|| NodeEntry::new(name))
    }

    pub(crate) fn set_gpus(&mut self, now: Time, gpus: GpuNode) {
        let name: Arc<str> = gpus.metadata.name.unwrap_or_default().into();
        let entry = self.node_entry(&name);
        let before = GpuKind::ALL.map(|kind| entry.serves(kind));
        entry.set_agent(gpus.status.map(|status| (gpus.spec, status)));
        let after = GpuKind::ALL.map(|kind| entry.serves(kind));
        let samples = entry.samples().to_vec();
        if before != after {
            self.places.repeat_node(&name);
        }
        self.touched.insert(name);
        for sample in samples {
            self.sampled(now, &sample);
        }
    }

    pub(crate) fn node_timer(&mut self, now: Time, order: NodeOrder) {
        let name: Arc<str> = self.timed_nodes.name(order as usize).into();
        if self.unready.get(&name).is_some_and(|&until| until <= now)
            && let Some(entry) = self.nodes.get_mut(&name)
        {
            entry.lost = true;
            self.touched.insert(name.clone());
        }
        // How often it has rejected in a row is remembered until it runs a pod.
        if let Some((until, _)) = self.rejecting.get_mut(&name)
            && until.is_some_and(|until| until <= now)
        {
            *until = None;
            self.places.repeat_node(&name);
        }
    }

    /// A node that rejected a pod gets no more for a while, longer with each in a row.
    pub(crate) fn punish_node(&mut self, now: Time, node: NodeId) {
        self.rejections += 1;
        let name = self.nodes_by_id[node.index()].clone();
        let times = self.rejecting.get(&name).map_or(0, |&(_, times)| times).min(6);
        let until = now + self.config.patience.rejecting_node * (1 << times);
        self.rejecting.insert(name.clone(), (Some(until), times + 1));
        let order = self.timed_nodes.intern(&name).0;
        self.timers.insert((until, Timer::Node(order)));
        self.places.repeat_node(&name);
    }

    /// Nodes that run a job do not reject everything: the next rejection is the first in a row.
    pub(crate) fn forgive_nodes(&mut self, job: JobId) {
        let places = self.jobs.get(job).members.iter().filter_map(|member| member.place.as_ref());
        for place in places {
            let name = &self.nodes_by_id[place.node.index()];
            if self.rejecting.get(name).is_some_and(|(until, _)| until.is_none()) {
                self.rejecting.remove(name);
            }
        }
    }

    pub(crate) fn is_lost(&self, node: NodeId) -> bool {
        let name = &self.nodes_by_id[node.index()];
        self.nodes.get(name).is_none_or(|entry| entry.lost || entry.facts.is_none())
    }
}
