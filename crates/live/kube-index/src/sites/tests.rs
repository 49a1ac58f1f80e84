//! Each rule of a node check by itself, then all of them under random changes.

mod random;
mod rules;
mod volumes;

use super::{Change, Sites};
use crate::watched::{Node, Pod};
use deepshare_model::NodeId;
use serde_json::{Value, json};

/// A ready node with 8 GPUs and room for everything else, `n1` for 1.
fn node(id: u32, labels: Value) -> Value {
    let mut all = json!({"kubernetes.io/hostname": format!("n{id}")});
    merge(&mut all, labels);
    json!({
        "metadata": {"name": format!("n{id}"), "labels": all},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110",
                "deepshare.io/gpu": "8", "deepshare.io/gpu-slot": "16"},
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// A pod of namespace `vision` that asks for one GPU; its name is its UID.
fn pod(name: &str, labels: Value, spec: Value) -> Value {
    let mut whole = json!({"containers": [{"name": "main", "resources": {"requests": {
        "cpu": "1", "deepshare.io/gpu": "1"}}}]});
    merge(&mut whole, spec);
    json!({
        "metadata": {"name": name, "uid": name, "namespace": "vision", "labels": labels},
        "spec": whole})
}

fn merge(into: &mut Value, from: Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { panic!("two objects") };
    into.extend(from);
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

impl Sites {
    fn with(nodes: &[Value]) -> Sites {
        let mut sites = Sites::default();
        nodes.iter().zip(1..).for_each(|(node, id)| sites.put(id, node));
        sites
    }

    fn put(&mut self, id: u32, node: &Value) {
        self.apply(Change::Node(NodeId(id), &read::<Node>(node)));
    }

    fn bind(&mut self, pod: &Value, node: u32) {
        self.apply(Change::Pod { pod: &read::<Pod>(pod), node: NodeId(node), ours: true });
    }

    /// How many such pods each of the nodes from 1 on can take; `-1`: any number.
    fn room<const N: usize>(&mut self, pod: &Value) -> [i64; N] {
        let (site, _) = self.site(&read::<Pod>(pod));
        std::array::from_fn(|at| match self.members_of(site, NodeId(at as u32 + 1)) {
            u32::MAX => -1,
            members => i64::from(members),
        })
    }
}

fn anti_affinity(key: &str, labels: Value) -> Value {
    required("podAntiAffinity", key, labels)
}

fn required(kind: &str, key: &str, labels: Value) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": key, "labelSelector": {"matchLabels": labels}}]}}})
}

fn spread(max_skew: u32, labels: Value, more: Value) -> Value {
    let mut constraint = json!({"maxSkew": max_skew, "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": labels}});
    merge(&mut constraint, more);
    json!({"topologySpreadConstraints": [constraint]})
}
