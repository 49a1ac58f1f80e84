//! What the API server's objects show, watched from outside: nobody's memory but its own.

use deepshare_kube_api::{Decision, names};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// What was seen of one pod, last.
#[derive(Clone, Debug, Default)]
pub struct PodSeen {
    /// Namespace and name.
    pub name: String,
    /// Its node, once it is bound.
    pub node: Option<String>,
    /// Its phase.
    pub phase: String,
    /// The status' reason.
    pub reason: String,
    /// The decision of its Binding.
    pub decision: Option<Decision>,
    /// Condition `DisruptionTarget`: its message.
    pub disrupted: Option<String>,
    /// Class by annotation.
    pub guaranteed: bool,
    /// It is gone.
    pub gone: bool,
}

impl PodSeen {
    fn holds(&self) -> bool {
        self.node.is_some() && !self.gone && !["Succeeded", "Failed"].contains(&&*self.phase)
    }
}

/// What was seen, and what was wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Every pod by UID.
    pub pods: BTreeMap<String, PodSeen>,
    /// Broken promises, as they were seen.
    pub faults: Vec<String>,
}

/// A watch under way.
pub struct Watching {
    seen: Arc<Mutex<Evidence>>,
    task: JoinHandle<()>,
}

impl Evidence {
    /// Watches every pod from now on.
    ///
    /// # Panics
    /// If pods cannot be listed.
    pub async fn watch(client: &Client) -> Watching {
        let pods: Api<Pod> = Api::all(client.clone());
        let list = pods.list(&ListParams::default()).await.expect("pods are listed");
        let seen = Arc::new(Mutex::new(Evidence::default()));
        for pod in list.items {
            lock(&seen).see(&pod, false);
        }
        let version = list.metadata.resource_version.unwrap_or_default();
        let task = tokio::spawn(follow(pods, version, seen.clone()));
        Watching { seen, task }
    }

    fn see(&mut self, pod: &Pod, gone: bool) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let annotation = |key: &str| pod.metadata.annotations.as_ref().and_then(|all| all.get(key));
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let seen = PodSeen {
            name: format!(
                "{}/{}",
                pod.metadata.namespace.as_deref().unwrap_or_default(),
                pod.metadata.name.as_deref().unwrap_or_default()
            ),
            node: spec.and_then(|spec| spec.node_name.clone()),
            phase: status.and_then(|status| status.phase.clone()).unwrap_or_default(),
            reason: status.and_then(|status| status.reason.clone()).unwrap_or_default(),
            decision: annotation(names::DECISION).and_then(|text| Decision::read(text, &uid).ok()),
            disrupted: conditions
                .filter(|condition| condition.type_ == "DisruptionTarget")
                .find_map(|condition| condition.message.clone()),
            guaranteed: annotation(names::CLASS).is_none_or(|class| class == "guaranteed"),
            gone,
        };
        let preempted = seen.disrupted.as_deref().is_some_and(|why| why.contains("is preempted"));
        if preempted && seen.guaranteed {
            let charged = seen.decision.as_ref().map(|decision| decision.charged.as_str());
            if charged == Some("guaranteed") {
                self.fault(format!("{} is guaranteed and was preempted", seen.name));
            }
        }
        if seen.phase == "Failed" && seen.reason == "UnexpectedAdmissionError" {
            self.fault(format!("{} was rejected by its node: a device was taken", seen.name));
        }
        self.pods.insert(uid, seen);
        self.check_devices();
    }

    /// Notes a fault, once.
    fn fault(&mut self, what: String) {
        if !self.faults.contains(&what) {
            self.faults.push(what);
        }
    }

    /// No slot of a device is two pods', and no device is given away whole and in slots.
    fn check_devices(&mut self) {
        /// A slot, or the whole device, and the pod that has it.
        type Holder = (Option<u32>, String);
        let mut holders: BTreeMap<(String, String), Vec<Holder>> = BTreeMap::new();
        for pod in self.pods.values().filter(|pod| pod.holds()) {
            let Some(decision) = &pod.decision else { continue };
            let node = pod.node.clone().unwrap_or_default();
            for slot in decision.containers.iter().flat_map(|container| &container.devices) {
                let device = (node.clone(), slot.uuid.clone());
                holders.entry(device).or_default().push((slot.slot, pod.name.clone()));
            }
        }
        let mut faults = Vec::new();
        for ((node, device), on) in holders {
            let whole = on.iter().any(|(slot, _)| slot.is_none());
            let mut slots: Vec<_> = on.iter().map(|(slot, _)| slot).collect();
            slots.sort();
            slots.dedup();
            if on.len() > 1 && (whole || slots.len() < on.len()) {
                let names: Vec<&str> = on.iter().map(|(_, name)| name.as_str()).collect();
                faults.push(format!("{} hold one device of {node}: {device}", names.join(" and ")));
            }
        }
        faults.into_iter().for_each(|what| self.fault(what));
    }

    /// Bound pods of each attempt, by epoch and attempt, beside how many it has.
    pub fn attempts(&self) -> BTreeMap<(u32, u32), (u32, Vec<&PodSeen>)> {
        let mut attempts: BTreeMap<(u32, u32), (u32, Vec<&PodSeen>)> = BTreeMap::new();
        for pod in self.pods.values().filter(|pod| pod.holds()) {
            let Some(decision) = &pod.decision else { continue };
            let entry = attempts.entry((decision.epoch, decision.attempt)).or_default();
            entry.0 = decision.members;
            entry.1.push(pod);
        }
        attempts
    }
}

impl Watching {
    /// What has been seen so far.
    pub fn so_far(&self) -> Evidence {
        lock(&self.seen).clone()
    }

    /// Ends the watch.
    pub async fn end(self) -> Evidence {
        self.task.abort();
        let _ = self.task.await;
        lock(&self.seen).clone()
    }
}

fn lock(seen: &Mutex<Evidence>) -> std::sync::MutexGuard<'_, Evidence> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn follow(pods: Api<Pod>, mut version: String, seen: Arc<Mutex<Evidence>>) {
    use futures_util::StreamExt;
    loop {
        let Ok(stream) = pods.watch(&WatchParams::default(), &version).await else {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => {
                    version = pod.metadata.resource_version.clone().unwrap_or_default();
                    lock(&seen).see(&pod, false);
                }
                Ok(WatchEvent::Deleted(pod)) => {
                    version = pod.metadata.resource_version.clone().unwrap_or_default();
                    lock(&seen).see(&pod, true);
                }
                Ok(WatchEvent::Bookmark(mark)) => version = mark.metadata.resource_version,
                Ok(WatchEvent::Error(_)) | Err(_) => break,
            }
        }
    }
}
