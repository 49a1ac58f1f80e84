//! Under random changes: what was reported adds up to what a fresh look at everything finds.

use super::*;
use deepshare_model::SiteId;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;

const NODES: u32 = 6;
const ZONES: [&str; 3] = ["a", "b", "c"];
const APPS: [&str; 3] = ["web", "data", "batch"];

/// What is there, apart from what [`Sites`] makes of it.
#[derive(Default)]
struct World {
    nodes: BTreeMap<u32, Value>,
    pods: BTreeMap<String, (Value, u32)>,
    namespaces: BTreeMap<&'static str, Value>,
}

impl World {
    /// One change, told to `sites`.
    fn step(
        &mut self,
        rng: &mut Pcg64,
        kinds: &[Value],
        sites: &mut Sites,
    ) -> Vec<crate::sites::Admission> {
        let id = rng.random_range(1..=NODES);
        match rng.random_range(0..10) {
            0 | 1 => {
                let node = random_node(rng, id);
                self.nodes.insert(id, node.clone());
                sites.apply(Change::Node(NodeId(id), &read(&node)))
            }
            2 => {
                self.nodes.remove(&id);
                sites.apply(Change::NodeGone(NodeId(id)))
            }
            3 => {
                // Of a namespace that no site's pods are in: its own place in the world is a pod's for good.
                let name = "speech";
                let team = ["s", "t"][rng.random_range(0..2)];
                let namespace = json!({"metadata": {"name": name, "labels": {"team": team}}});
                self.namespaces.insert(name, namespace.clone());
                sites.apply(Change::Namespace(&read(&namespace)))
            }
            4..7 => {
                let name = format!("p{}", rng.random_range(0..12));
                self.pods.remove(&name);
                sites.apply(Change::PodGone(&name))
            }
            _ => {
                let name = format!("p{}", rng.random_range(0..12));
                let kind = kinds.get(rng.random_range(0..=kinds.len()));
                let mut pod = kind.cloned().unwrap_or_else(stranger);
                pod["metadata"]["name"] = json!(name);
                pod["metadata"]["uid"] = json!(name);
                if rng.random_bool(0.2) {
                    pod["metadata"]["deletionTimestamp"] = json!("2026-05-01T10:00:00Z");
                }
                self.pods.insert(name, (pod.clone(), id));
                let pod: Pod = read(&pod);
                sites.apply(Change::Pod { pod: &pod, node: NodeId(id), ours: true })
            }
        }
    }

    /// The same world, told in one go.
    fn afresh(&self) -> Sites {
        let mut sites = Sites::default();
        for namespace in self.namespaces.values() {
            sites.apply(Change::Namespace(&read(namespace)));
        }
        for (id, node) in &self.nodes {
            sites.put(*id, node);
        }
        self.pods.values().for_each(|(pod, node)| sites.bind(pod, *node));
        sites
    }
}

fn random_node(rng: &mut Pcg64, id: u32) -> Value {
    let labels = match rng.random_range(0..4) {
        0 => json!({}),
        _ => json!({"zone": ZONES[rng.random_range(0..3)]}),
    };
    let mut node = node(id, labels);
    node["status"]["allocatable"]["pods"] = json!(rng.random_range(2..6).to_string());
    node["status"]["allocatable"]["example.com/nic"] = json!("3");
    if rng.random_bool(0.2) {
        node["spec"]["taints"] = json!([{"key": "k", "effect": "NoSchedule"}]);
    }
    if rng.random_bool(0.1) {
        node["spec"]["unschedulable"] = json!(true);
    }
    if rng.random_bool(0.1) {
        node["status"]["conditions"][0]["status"] = json!("False");
    }
    node
}

/// Pods with every kind of rule.
fn kinds() -> Vec<Value> {
    let [web, data, batch] = APPS.map(|app| json!({"app": app}));
    let host = "kubernetes.io/hostname";
    let selected = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone",
            "labelSelector": {"matchLabels": web}, "namespaceSelector": {"matchLabels": {"team": "s"}}}]}}});
    vec![
        pod("k", web.clone(), json!({})),
        pod("k", data.clone(), json!({"tolerations": [{"operator": "Exists"}]})),
        pod("k", batch.clone(), json!({"nodeSelector": {"zone": "a"}})),
        pod("k", web.clone(), anti_affinity(host, web.clone())),
        pod("k", data.clone(), anti_affinity("zone", web.clone())),
        pod("k", data.clone(), required("podAffinity", "zone", data.clone())),
        pod("k", batch.clone(), required("podAffinity", host, web.clone())),
        pod("k", web.clone(), spread(1, web.clone(), json!({}))),
        pod(
            "k",
            data.clone(),
            spread(2, data, json!({"minDomains": 3, "nodeTaintsPolicy": "Honor"})),
        ),
        pod(
            "k",
            batch.clone(),
            json!({"containers": [{"name": "main",
            "ports": [{"containerPort": 1, "hostPort": 1}],
            "resources": {"requests": {"deepshare.io/gpu": "1", "example.com/nic": "1"}}}]}),
        ),
        pod("k", batch, selected),
    ]
}

/// A pod of another namespace, with rules about its own.
fn stranger() -> Value {
    let mut speech = pod("k", json!({"app": "web"}), anti_affinity("zone", json!({"app": "web"})));
    speech["metadata"]["namespace"] = json!("speech");
    speech
}

/// Sites of all the kinds, once all their rules are known.
fn sites_of(kinds: &[Value], sites: &mut Sites) -> Vec<(SiteId, Vec<crate::sites::Admission>)> {
    for kind in kinds {
        sites.intern_all_of(&read(kind));
    }
    kinds.iter().map(|kind| sites.site(&read(kind))).collect()
}

impl Sites {
    fn intern_all_of(&mut self, pod: &Pod) {
        let requirements = crate::requirements::Requirements::of(pod, &self.namespaces);
        self.intern_all(&requirements);
    }
}

#[test]
fn what_was_reported_is_what_a_fresh_look_finds() {
    let kinds = kinds();
    for seed in 0..16 {
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut world = World::default();
        for (name, team) in [("vision", "t"), ("speech", "t")] {
            let namespace = json!({"metadata": {"name": name, "labels": {"team": team}}});
            world.namespaces.insert(name, namespace);
        }
        let mut sites = world.afresh();
        let ids: Vec<SiteId> = sites_of(&kinds, &mut sites).into_iter().map(|(id, _)| id).collect();
        // What a listener knows, from reports alone.
        let mut told: BTreeMap<(SiteId, NodeId), u32> = BTreeMap::new();
        for step in 0..60 {
            for admission in world.step(&mut rng, &kinds, &mut sites) {
                for node in admission.nodes {
                    let before = told.insert((admission.site, node), admission.members);
                    assert_ne!(before, Some(admission.members), "seed {seed} step {step}: no news");
                }
            }
            if step % 4 != 3 {
                continue;
            }
            let mut fresh = world.afresh();
            let fresh_ids = sites_of(&kinds, &mut fresh);
            for (kind, (id, (fresh_id, _))) in ids.iter().zip(&fresh_ids).enumerate() {
                for node in (1..=NODES).map(NodeId) {
                    let known = told.get(&(*id, node)).copied().unwrap_or(0);
                    let found = fresh.members_of(*fresh_id, node);
                    assert_eq!(known, found, "seed {seed} step {step} kind {kind} node {node:?}");
                }
            }
        }
    }
}
