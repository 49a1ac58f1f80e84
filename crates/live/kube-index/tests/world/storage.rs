//! Storage: claims of a class that waits for the first pod, and a provisioner for the node that it is
//! told.
//!
//! What the provisioner is to do with a claim stands in annotations of the claim: `test/never` and
//! `test/refused` (on the node of that name, or `everywhere`), `test/reach` (`everywhere`: any node
//! reaches the volume), `test/forbidden` (nobody may write it).

use crate::cluster::{Happening, Key, Kind, World};
use deepshare_engine::BindFailure;
use deepshare_kube_api::names::SELECTED_NODE;
use deepshare_kube_index::{ClaimRef, Outcome};
use deepshare_model::Span;
use serde_json::{Value, json};

const CLASS: &str = "fast";

impl World {
    /// The class whose volumes are made for the node of their first pod.
    pub fn storage_class(&mut self) {
        let class = json!({
            "metadata": {"name": CLASS}, "provisioner": "csi.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        });
        self.set(Kind::Class, CLASS, class);
    }

    pub fn claim(&mut self, namespace: &str, name: &str) {
        self.claim_with(namespace, name, &[]);
    }

    /// A claim that its provisioner treats as these annotations say.
    pub fn claim_with(&mut self, namespace: &str, name: &str, notes: &[(&str, &str)]) {
        let mut claim = json!({
            "metadata": {
                "name": name, "namespace": namespace, "uid": format!("claim-{name}"),
                "annotations": {},
            },
            "spec": {"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"]},
            "status": {"phase": "Pending"},
        });
        for (note, text) in notes {
            claim["metadata"]["annotations"][*note] = json!(text);
        }
        self.set(Kind::Claim, &format!("{namespace}/{name}"), claim);
    }

    pub fn claim_object(&self, key: &str) -> &Value {
        &self.objects[&Key { kind: Kind::Claim, name: key.to_owned() }]
    }

    /// The node that a claim is to be made for.
    pub fn selected_node(&self, key: &str) -> Option<&str> {
        self.claim_object(key)["metadata"]["annotations"][SELECTED_NODE].as_str()
    }

    /// Carries out a scheduler's choice of a node.
    pub fn select_node(&mut self, claim: &ClaimRef, node: Option<&str>) -> Option<Outcome> {
        let key = format!("{}/{}", claim.namespace, claim.name);
        let object = self.objects.get(&Key { kind: Kind::Claim, name: key.clone() });
        let there = object.filter(|object| object["metadata"]["uid"] == claim.uid.as_str());
        let failure = match there {
            None => Some(BindFailure::Conflict),
            Some(object) if !object["metadata"]["annotations"]["test/forbidden"].is_null() => {
                Some(BindFailure::Permanent)
            }
            _ => self.chance.percent(self.faults.bind_transient).then_some(BindFailure::Transient),
        };
        if let Some(failure) = failure {
            let (claim, message) = (claim.clone(), "as the test wants it".to_owned());
            return node.map(|_| Outcome::SelectionFailed { claim, failure, message });
        }
        self.say_node(&key, node);
        if let Some(node) = node {
            let at = self.now + Span(self.faults.provision_ms * 1_000) + self.delay(100);
            self.push(at, Happening::Provision { claim: key, node: node.to_owned() });
        }
        None
    }

    fn say_node(&mut self, key: &str, node: Option<&str>) {
        self.change(Kind::Claim, key, |claim| {
            let notes = claim["metadata"]["annotations"].as_object_mut().unwrap();
            match node {
                Some(node) => _ = notes.insert(SELECTED_NODE.to_owned(), json!(node)),
                None => _ = notes.remove(SELECTED_NODE),
            }
        });
    }

    /// The provisioner has made a volume for this node, or found that it cannot.
    pub fn provision(&mut self, key: &str, node: &str) {
        let name = Key { kind: Kind::Claim, name: key.to_owned() };
        let Some(claim) = self.objects.get(&name).cloned() else { return };
        let notes = &claim["metadata"]["annotations"];
        let meant = |note: &str| {
            notes[note].as_str().is_some_and(|text| text == node || text == "everywhere")
        };
        let stands = notes[SELECTED_NODE] == node;
        // What was taken back while it was at work may be made all the same.
        let stops = !stands && self.chance.percent(50);
        let lost = meant("test/never") || self.chance.percent(self.faults.provision_lost);
        if claim["status"]["phase"] == "Bound" || stops || lost {
            return;
        }
        if meant("test/refused") || self.chance.percent(self.faults.provision_refused) {
            if stands {
                self.say_node(key, None);
            }
            return;
        }
        let volume = format!("pv-{}", claim["metadata"]["uid"].as_str().unwrap());
        let mut spec = json!({"csi": {"driver": "csi.example.com"}});
        if !meant("test/reach") {
            let here = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
            spec["nodeAffinity"] =
                json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}});
        }
        self.set(Kind::Volume, &volume, json!({"metadata": {"name": volume}, "spec": spec}));
        self.change(Kind::Claim, key, |claim| claim["spec"]["volumeName"] = json!(volume));
        self.change(Kind::Claim, key, |claim| claim["status"]["phase"] = json!("Bound"));
    }

    /// A pod is bound only to a node that reaches its volumes, and only when they are there.
    pub fn check_volumes(&mut self, uid: &str) {
        let pod = self.pod_object(uid).unwrap().clone();
        let node = pod["spec"]["nodeName"].as_str().unwrap().to_owned();
        for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
            let name = match volume["persistentVolumeClaim"]["claimName"].as_str() {
                Some(name) => name.to_owned(),
                None => format!("{}-scratch", pod["metadata"]["name"].as_str().unwrap()),
            };
            let key = format!("{}/{name}", pod["metadata"]["namespace"].as_str().unwrap());
            let claim = Key { kind: Kind::Claim, name: key.clone() };
            // A claim may go at the last moment.
            let Some(claim) = self.objects.get(&claim) else { continue };
            let volume = claim["spec"]["volumeName"].as_str().unwrap_or_default().to_owned();
            let volume = self.objects.get(&Key { kind: Kind::Volume, name: volume });
            let terms = volume.map(|volume| {
                let only = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0];
                only["matchExpressions"][0]["values"][0].as_str().is_none_or(|only| only == node)
            });
            if claim["status"]["phase"] != "Bound" || terms != Some(true) {
                self.wrongs.push(format!("{}: {uid} is on {node} without {key}", self.now));
            }
        }
    }
}
