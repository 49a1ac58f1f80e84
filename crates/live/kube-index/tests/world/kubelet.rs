//! Kubelets: one set of devices a node, pods that start, run, stop and are resized, and those who make
//! pods anew.

use crate::cluster::{Happening, Key, Kind, World, rfc3339, seconds};
use deepshare_kube_api::{Allocation, Decision, DeviceSlot, names};
use deepshare_model::Span;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A node's kubelet and its device plugin.
#[derive(Default)]
pub struct Kubelet {
    /// Who is on which slot of which device.
    pub slots: BTreeMap<String, [Option<String>; 2]>,
    /// It answers nobody.
    pub silent: bool,
}

/// A controller of pods, as a Job is.
pub struct Controller {
    pub template: Value,
    pub made: u32,
    /// Milliseconds until it makes up for a pod that is gone.
    pub slow_ms: u64,
    /// It makes no more.
    pub stopped: bool,
}

impl World {
    /// Takes a bound pod up, or refuses it.
    pub fn admit(&mut self, uid: &str) {
        let Some(node) = self.node_of(uid) else { return };
        if self.put_off(&node, Happening::Admit { uid: uid.to_owned() }) {
            return;
        }
        let Some(pod) = self.pod_object(uid).cloned() else { return };
        if pod["status"]["phase"] != "Pending" {
            return;
        }
        let rejected = !pod["metadata"]["annotations"]["test/rejected"].is_null()
            || self.chance.percent(self.faults.rejected);
        let slots =
            if rejected { Err("UnexpectedAdmissionError") } else { self.allot(&node, &pod) };
        match slots {
            Err(reason) => {
                self.rejections.push(uid.to_owned());
                self.change(Kind::Pod, uid, |pod| {
                    pod["status"]["phase"] = json!("Failed");
                    pod["status"]["reason"] = json!(reason);
                });
                self.make_up_for(uid, &pod);
            }
            Ok(slots) => {
                let kubelet = self.kubelets.get_mut(&node).unwrap();
                for slot in slots {
                    let on = kubelet.slots.get_mut(&slot.uuid).unwrap();
                    match slot.slot {
                        None => *on = [Some(uid.to_owned()), Some(uid.to_owned())],
                        Some(at) => on[at as usize] = Some(uid.to_owned()),
                    }
                }
                self.publish(&node);
                let takes = Span::from_secs(seconds(&pod, "test/starts-in").unwrap_or(1));
                let at = self.now + takes + self.delay(100);
                self.push(at, Happening::Start { uid: uid.to_owned() });
            }
        }
    }

    /// The slots that a pod gets: those of its decision, or any that are free.
    fn allot(&self, node: &str, pod: &Value) -> Result<Vec<DeviceSlot>, &'static str> {
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        let kubelet = self.kubelets.get(node).ok_or("NodeAffinity")?;
        let cpu: u64 = self.pods_on(node).map(|(_, pod)| cpu_of(pod)).sum();
        let node_key = Key { kind: Kind::Node, name: node.to_owned() };
        let allocatable = &self.objects[&node_key]["status"]["allocatable"]["cpu"];
        if cpu > milli(allocatable) {
            return Err("OutOfcpu");
        }
        let requests = &pod["spec"]["containers"][0]["resources"]["requests"];
        let asked = |resource: &str| {
            requests[resource].as_str().and_then(|text| text.parse::<usize>().ok()).unwrap_or(0)
        };
        let whole = asked(names::GPU) + asked(names::NVIDIA_GPU);
        let slot = asked(names::GPU_SLOT);
        let decision = pod["metadata"]["annotations"][names::DECISION].as_str();
        let decision = decision.and_then(|text| Decision::read(text, uid).ok());
        // NVIDIA's plugin hands out what it likes.
        let decision = decision.filter(|_| asked(names::NVIDIA_GPU) == 0);
        let wanted: Vec<DeviceSlot> = match decision {
            Some(decision) => decision.containers.into_iter().flat_map(|own| own.devices).collect(),
            None => {
                let free = kubelet.slots.iter().filter(|(_, on)| on.iter().all(Option::is_none));
                let free = free.take(whole + slot);
                free.map(|(uuid, _)| DeviceSlot {
                    uuid: uuid.clone(),
                    slot: (slot > 0).then_some(0),
                })
                .collect()
            }
        };
        let fits = |wanted: &DeviceSlot| {
            kubelet.slots.get(&wanted.uuid).is_some_and(|on| match wanted.slot {
                None => slot == 0 && on.iter().all(Option::is_none),
                Some(at) => slot > 0 && on.get(at as usize).is_some_and(Option::is_none),
            })
        };
        match wanted.len() == whole + slot && wanted.iter().all(fits) {
            true => Ok(wanted),
            false => Err("UnexpectedAdmissionError"),
        }
    }

    pub fn begin(&mut self, uid: &str) {
        let Some(node) = self.node_of(uid) else { return };
        if self.put_off(&node, Happening::Start { uid: uid.to_owned() }) {
            return;
        }
        let Some(pod) = self.pod_object(uid) else { return };
        if pod["status"]["phase"] != "Pending" {
            return;
        }
        let lasts = seconds(pod, "test/lasts");
        let since = rfc3339(self.now);
        self.change(Kind::Pod, uid, |pod| {
            let requests = pod["spec"]["containers"][0]["resources"]["requests"].clone();
            pod["status"]["phase"] = json!("Running");
            pod["status"]["startTime"] = json!(since);
            pod["status"]["containerStatuses"] = json!([{
                "name": "main", "state": {"running": {"startedAt": since}},
                "resources": {"requests": requests},
            }]);
        });
        if let Some(lasts) = lasts {
            self.push(self.now + Span::from_secs(lasts), Happening::End { uid: uid.to_owned() });
        }
    }

    pub fn end(&mut self, uid: &str) {
        let Some(node) = self.node_of(uid) else { return };
        if self.put_off(&node, Happening::End { uid: uid.to_owned() }) {
            return;
        }
        let Some(pod) = self.pod_object(uid).cloned() else { return };
        if pod["status"]["phase"] != "Running" {
            return;
        }
        let fails = pod["metadata"]["annotations"]["test/fails"].as_str().is_some();
        self.change(Kind::Pod, uid, |pod| {
            pod["status"]["phase"] = json!(if fails { "Failed" } else { "Succeeded" });
            pod["status"]["containerStatuses"][0]["state"] = json!({"terminated": {
                "exitCode": i32::from(fails), "reason": if fails { "Error" } else { "Completed" },
            }});
        });
        self.free(&node, uid);
        if fails {
            self.make_up_for(uid, &pod);
        }
    }

    /// A pod that was deleted has stopped.
    pub fn stopped(&mut self, uid: &str) {
        let Some(node) = self.node_of(uid) else { return };
        if self.put_off(&node, Happening::Stopped { uid: uid.to_owned() }) {
            return;
        }
        self.free(&node, uid);
        self.remove(Kind::Pod, uid);
    }

    fn free(&mut self, node: &str, uid: &str) {
        let Some(kubelet) = self.kubelets.get_mut(node) else { return };
        for slot in kubelet.slots.values_mut().flatten() {
            if slot.as_deref() == Some(uid) {
                *slot = None;
            }
        }
        self.publish(node);
    }

    /// The agent says what its kubelet has allotted.
    fn publish(&mut self, node: &str) {
        let mut held: BTreeMap<&str, Vec<DeviceSlot>> = BTreeMap::new();
        for (uuid, on) in &self.kubelets[node].slots {
            for (at, uid) in on.iter().enumerate() {
                if let Some(uid) = uid {
                    let whole = on.iter().all(|other| other.as_deref() == Some(uid));
                    let slot = if whole { None } else { Some(at as u32) };
                    let devices = held.entry(uid).or_default();
                    let device = DeviceSlot { uuid: uuid.clone(), slot };
                    if !devices.contains(&device) {
                        devices.push(device);
                    }
                }
            }
        }
        let held: Vec<Allocation> = held
            .into_iter()
            .map(|(uid, devices)| Allocation { pod_uid: uid.to_owned(), devices })
            .collect();
        let allocations = serde_json::to_value(held).unwrap();
        self.change(Kind::Gpus, node, |gpus| gpus["status"]["allocations"] = allocations);
    }

    pub fn resize(&mut self, uid: &str, requests: &BTreeMap<String, BTreeMap<String, String>>) {
        let wanted = requests.get("main").cloned().unwrap_or_default();
        self.change(Kind::Pod, uid, |pod| {
            for (resource, amount) in &wanted {
                pod["spec"]["containers"][0]["resources"]["requests"][resource] = json!(amount);
            }
        });
        let at = self.now + Span(self.faults.resize_ms * 1_000);
        self.push(at, Happening::ResizeShown { uid: uid.to_owned() });
    }

    pub fn show_resize(&mut self, uid: &str) {
        let Some(pod) = self.pod_object(uid) else { return };
        if pod["status"]["phase"] != "Running" {
            return;
        }
        self.change(Kind::Pod, uid, |pod| {
            let wanted = pod["spec"]["containers"][0]["resources"]["requests"].clone();
            pod["status"]["containerStatuses"][0]["resources"]["requests"] = wanted;
        });
    }

    /// A silent kubelet does it later.
    fn put_off(&mut self, node: &str, happening: Happening) -> bool {
        let silent = self.kubelets.get(node).is_some_and(|kubelet| kubelet.silent);
        if silent {
            self.push(self.now + Span::SECOND, happening);
        }
        silent
    }

    /// A node's kubelet falls silent, or is heard again.
    pub fn silence(&mut self, node: &str, silent: bool) {
        self.kubelets.get_mut(node).unwrap().silent = silent;
        let status = if silent { "Unknown" } else { "True" };
        self.change(Kind::Node, node, |node| {
            node["status"]["conditions"] = json!([{"type": "Ready", "status": status}]);
        });
    }

    /// A controller that keeps `replicas` pods of a kind.
    pub fn controller(&mut self, name: &str, template: Value, replicas: u32) {
        let controller = Controller { template, made: 0, slow_ms: 500, stopped: false };
        self.controllers.insert(name.to_owned(), controller);
        for _ in 0..replicas {
            self.make(name);
        }
    }

    pub fn make(&mut self, name: &str) {
        let controller = self.controllers.get_mut(name).unwrap();
        if controller.stopped {
            return;
        }
        let mut pod = controller.template.clone();
        pod["metadata"]["name"] = json!(format!("{name}-{}", controller.made));
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name, "controller": true,
        }]);
        controller.made += 1;
        self.create(pod);
    }

    /// The controller of a pod that failed or is gone makes another one.
    pub fn make_up_for(&mut self, uid: &str, pod: &Value) {
        let Some(owner) = pod["metadata"]["ownerReferences"][0]["uid"].as_str() else { return };
        if self.replaced.insert(uid.to_owned()) {
            let at = self.now + Span(self.controllers[owner].slow_ms * 1_000) + self.delay(100);
            self.push(at, Happening::Recreate { controller: owner.to_owned() });
        }
    }

    pub fn pod_is_gone(&mut self, uid: &str, pod: &Value) {
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            self.free(node, uid);
        }
        if pod["status"]["phase"] != "Succeeded" {
            self.make_up_for(uid, pod);
        }
    }
}

/// CPU that a pod asks for, thousandths: what it was given or wants, whichever is more.
fn cpu_of(pod: &Value) -> u64 {
    let wanted = milli(&pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]);
    let shown = &pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"];
    wanted.max(milli(shown))
}

fn milli(amount: &Value) -> u64 {
    let text = amount.as_str().unwrap_or("0");
    match text.strip_suffix('m') {
        Some(milli) => milli.parse().unwrap(),
        None => text.parse::<u64>().unwrap() * 1_000,
    }
}
