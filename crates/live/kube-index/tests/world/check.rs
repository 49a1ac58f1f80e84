//! A checker that sees objects and writes only, nobody's memory.

use crate::cluster::{Key, Kind, World};
use deepshare_kube_api::{Decision, names};
use deepshare_kube_index::Action;
use deepshare_model::Span;
use serde_json::Value;
use std::collections::BTreeMap;

/// How long a gang may have some of its pods bound and not all: a start, or the wait for a member.
const PARTIAL: Span = Span::from_secs(200);

impl World {
    pub fn pod_object(&self, uid: &str) -> Option<&Value> {
        self.objects.get(&Key { kind: Kind::Pod, name: uid.to_owned() })
    }

    pub fn node_of(&self, uid: &str) -> Option<String> {
        let node = self.pod_object(uid)?["spec"]["nodeName"].as_str()?;
        Some(node.to_owned())
    }

    pub fn pods(&self) -> impl Iterator<Item = (&str, &Value)> {
        let pods = self.objects.iter().filter(|(key, _)| key.kind == Kind::Pod);
        pods.map(|(key, pod)| (key.name.as_str(), pod))
    }

    /// Pods on a node that are not over.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = (&str, &Value)> {
        let node = node.to_owned();
        self.pods().filter(move |(_, pod)| pod["spec"]["nodeName"] == *node && !is_over(pod))
    }

    /// The newest pod whose `namespace/name` begins so.
    pub fn find(&self, name: &str) -> Option<&Value> {
        let of = |pod: &Value| {
            let (namespace, own) = (&pod["metadata"]["namespace"], &pod["metadata"]["name"]);
            format!("{}/{}", namespace.as_str().unwrap(), own.as_str().unwrap())
        };
        let named = self.pods().filter(|(_, pod)| of(pod).starts_with(name));
        let age = |uid: &str| uid["uid-".len()..].parse::<u64>().unwrap();
        named.max_by_key(|(uid, _)| age(uid)).map(|(_, pod)| pod)
    }

    pub fn phase(&self, name: &str) -> &str {
        self.find(name).map_or("gone", |pod| pod["status"]["phase"].as_str().unwrap())
    }

    pub fn runs(&self, name: &str) -> bool {
        self.phase(name) == "Running"
    }

    /// Number of running pods whose `namespace/name` begins so.
    pub fn running(&self, name: &str) -> usize {
        let of = |pod: &Value| {
            let (namespace, own) = (&pod["metadata"]["namespace"], &pod["metadata"]["name"]);
            format!("{}/{}", namespace.as_str().unwrap(), own.as_str().unwrap())
        };
        let runs = |pod: &Value| pod["status"]["phase"] == "Running";
        self.pods().filter(|(_, pod)| runs(pod) && of(pod).starts_with(name)).count()
    }

    /// Why a pod waits: the reason and message of its condition.
    pub fn why(&self, name: &str) -> (String, String) {
        let pod = self.find(name).expect("the pod is there");
        let condition = &pod["status"]["conditions"][0];
        let text = |field: &str| condition[field].as_str().unwrap_or("").to_owned();
        (text("reason"), text("message"))
    }

    /// The devices that a pod was given.
    pub fn devices(&self, name: &str) -> Vec<String> {
        let Some(pod) = self.find(name) else { return Vec::new() };
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        decision_of(uid, pod).map_or_else(Vec::new, |decision| {
            let slots = decision.containers.into_iter().flat_map(|own| own.devices);
            slots.map(|slot| slot.id()).collect()
        })
    }

    /// Writes of a kind so far.
    pub fn count(&self, which: impl Fn(&Action) -> bool) -> usize {
        self.written.iter().filter(|(_, action)| which(action)).count()
    }

    /// Judges a write by what the API server has at this moment.
    pub fn judge(&mut self, action: &Action) {
        if let Action::Evict { pod, message, .. } = action
            && let Some(object) = self.pod_object(&pod.uid)
            && let Some(decision) = decision_of(&pod.uid, object)
            && decision.charged == "guaranteed"
            && !message.contains("shares a GPU")
        {
            let wrong = format!("{}: a guaranteed pod is evicted: {action:?}", self.now);
            self.wrongs.push(wrong);
        }
    }

    /// A pod was bound: nobody else may have been promised its slots.
    pub fn check_decisions(&mut self, uid: &str) {
        if self.contested {
            return;
        }
        let slots = |uid: &str, pod: &Value| -> Vec<(String, Option<u32>)> {
            let decision = decision_of(uid, pod);
            let all = decision.into_iter().flat_map(|decision| decision.containers);
            all.flat_map(|own| own.devices).map(|slot| (slot.uuid, slot.slot)).collect()
        };
        let Some(pod) = self.pod_object(uid) else { return };
        let Some(node) = pod["spec"]["nodeName"].as_str() else { return };
        let own = slots(uid, pod);
        let meets = |(uuid, slot): &(String, Option<u32>)| {
            own.iter()
                .any(|(mine, at)| mine == uuid && (slot.is_none() || at.is_none() || slot == at))
        };
        let others = self.pods_on(node).filter(|(other, _)| *other != uid);
        let twice: Vec<String> = others
            .filter(|(other, pod)| slots(other, pod).iter().any(meets))
            .map(|(other, _)| format!("{}: {uid} and {other} have one device", self.now))
            .collect();
        self.wrongs.extend(twice);
    }

    /// Looks at the objects as they are.
    pub fn check(&mut self) {
        for process in &self.processes {
            if let Some(wrong) = &process.audit.wrong {
                self.wrongs.push(wrong.clone());
            }
        }
        let mut gangs: BTreeMap<String, (u32, u32, u32)> = BTreeMap::new();
        for (_, pod) in self.pods() {
            let notes = &pod["metadata"]["annotations"];
            let Some(size) = notes[names::GANG_SIZE].as_str() else { continue };
            let gang = format!("{}/{}", pod["metadata"]["namespace"], notes[names::GANG]);
            let counts = gangs.entry(gang).or_insert((size.parse().unwrap_or(0), 0, 0));
            let bound = !pod["spec"]["nodeName"].is_null();
            counts.1 += u32::from(bound && !is_over(pod));
            counts.2 += u32::from(pod["status"]["phase"] == "Succeeded");
        }
        let half = |(size, bound, done): (u32, u32, u32)| bound > 0 && bound + done < size;
        self.partial.retain(|gang, _| gangs.get(gang).is_some_and(|counts| half(*counts)));
        let now = self.now;
        for (gang, counts) in gangs {
            if half(counts) {
                let since = *self.partial.entry(gang.clone()).or_insert(now);
                if now.saturating_since(since) > PARTIAL {
                    self.wrongs.push(format!("{now}: gang {gang} half runs since {since}"));
                }
            }
        }
        assert!(self.wrongs.is_empty(), "{}\n{}", self.wrongs.join("\n"), self.report());
    }

    /// Now that all is quiet: every pod of ours is bound, over, or says why it waits.
    pub fn check_quiet(&self) {
        for (uid, pod) in self.pods() {
            let ours = pod["spec"]["schedulerName"] == "deepshare";
            let free = pod["spec"]["nodeName"].is_null() && !is_over(pod);
            let gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|g| !g.is_empty());
            let said = pod["status"]["conditions"][0]["reason"].as_str().is_some();
            let name = &pod["metadata"]["name"];
            assert!(
                !ours || !free || gated || said,
                "{}: {uid} ({name}) waits and nobody says why\n{}",
                self.now,
                self.report()
            );
        }
    }

    /// The latest steps of every scheduler.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (at, process) in self.processes.iter().enumerate() {
            text += &format!("scheduler {at}:\n");
            for line in &process.audit.recent {
                text += &format!("  {line}\n");
            }
        }
        for (at, action) in self.written.iter().rev().take(25).rev() {
            text += &format!("  {} {action:?}\n", at.0);
        }
        text
    }
}

pub fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

pub fn decision_of(uid: &str, pod: &Value) -> Option<Decision> {
    let text = pod["metadata"]["annotations"][names::DECISION].as_str()?;
    Decision::read(text, uid).ok()
}
