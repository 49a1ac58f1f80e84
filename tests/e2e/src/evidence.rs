//! What the API server's objects show, watched from outside: nobody's memory but its own.

use deepshare_kube_api::{Allocation, Decision, DeviceSlot, GpuNode, names};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
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
    /// Condition `PodScheduled`, where it is false: reason and message.
    pub waits: Option<(String, String)>,
    /// It was asked to go.
    pub deleting: bool,
    /// It is gone.
    pub gone: bool,
}

impl PodSeen {
    /// True while it is on a node and not over.
    pub fn holds(&self) -> bool {
        self.node.is_some() && !self.gone && !["Succeeded", "Failed"].contains(&&*self.phase)
    }

    /// Its node refused to run it: it was bound to what another had.
    pub fn was_rejected(&self) -> bool {
        let reasons = self.reason.starts_with("OutOf") || self.reason == "UnexpectedAdmissionError";
        self.phase == "Failed" && reasons
    }

    /// It was decided that its GPUs are its tenant's own, not borrowed ones.
    pub fn is_guaranteed(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| decision.charged == "guaranteed")
    }

    /// The attempt that it is part of: its epoch and number.
    pub fn attempt(&self) -> Option<(u32, u32)> {
        self.decision.as_ref().map(|decision| (decision.epoch, decision.attempt))
    }

    fn was_evicted(&self) -> bool {
        self.disrupted.is_some() && self.deleting
    }

    fn slots(&self) -> impl Iterator<Item = &DeviceSlot> {
        let containers = self.decision.iter().flat_map(|decision| &decision.containers);
        containers.flat_map(|container| &container.devices)
    }
}

/// How long a gang was bound in part.
#[derive(Clone, Copy, Debug, Default)]
struct InPart {
    since: Option<Instant>,
    longest: Duration,
}

/// What was seen, and what was wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Every pod by UID.
    pub pods: BTreeMap<String, PodSeen>,
    /// Broken promises, as they were seen.
    pub faults: Vec<String>,
    /// Pods that their nodes refused to run. A scheduler that has its nodes for itself causes none.
    pub rejected: Vec<String>,
    /// Guaranteed pods that were evicted; but not of a gang of which only a part was left or had come,
    /// as that starts again as a whole.
    pub guaranteed_evicted: Vec<String>,
    /// What each node's agent says who holds what.
    held: BTreeMap<String, Vec<Allocation>>,
    gangs: BTreeMap<(u32, u32), InPart>,
}

/// A watch under way.
pub struct Watching {
    seen: Arc<Mutex<Evidence>>,
    tasks: [JoinHandle<()>; 2],
}

impl Evidence {
    /// Watches every pod and every node's devices from now on.
    ///
    /// # Panics
    /// If they cannot be listed within a minute.
    pub async fn watch(client: &Client) -> Watching {
        let seen = Arc::new(Mutex::new(Evidence::default()));
        let pods = follow(client, &seen, Evidence::see_pod).await;
        let nodes = follow(client, &seen, Evidence::see_node).await;
        Watching { seen, tasks: [pods, nodes] }
    }

    /// The longest time for which a part of a gang, and not all of it, had devices without being asked
    /// to give them back.
    pub fn longest_in_part(&self) -> Duration {
        let now = Instant::now();
        let longest = self.gangs.values().map(|gang| {
            let still = gang.since.map(|since| now.saturating_duration_since(since));
            gang.longest.max(still.unwrap_or_default())
        });
        longest.max().unwrap_or_default()
    }

    fn see_pod(&mut self, pod: &Pod, gone: bool) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let annotation = |key: &str| pod.metadata.annotations.as_ref().and_then(|all| all.get(key));
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let condition = |kind: &str| {
            let all = status.and_then(|status| status.conditions.as_ref());
            all.into_iter().flatten().find(|condition| condition.type_ == kind)
        };
        let seen = PodSeen {
            name: called(pod),
            node: spec.and_then(|spec| spec.node_name.clone()),
            phase: status.and_then(|status| status.phase.clone()).unwrap_or_default(),
            reason: status.and_then(|status| status.reason.clone()).unwrap_or_default(),
            decision: annotation(names::DECISION).and_then(|text| Decision::read(text, &uid).ok()),
            disrupted: condition("DisruptionTarget").and_then(|is| is.message.clone()),
            waits: condition("PodScheduled").filter(|is| is.status == "False").map(|is| {
                (is.reason.clone().unwrap_or_default(), is.message.clone().unwrap_or_default())
            }),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            gone,
        };
        let preempted = seen.disrupted.as_deref().is_some_and(|why| why.contains("is preempted"));
        if preempted && seen.is_guaranteed() {
            self.fault(format!("{} is guaranteed and was preempted", seen.name));
        }
        let before = self.pods.get(&uid).and_then(|pod| pod.decision.as_ref());
        if let (Some(before), Some(now)) = (before, &seen.decision)
            && before.containers != now.containers
        {
            self.fault(format!("{} got other devices while it was bound", seen.name));
        }
        if seen.was_rejected() && self.pods.get(&uid).is_none_or(|pod| !pod.was_rejected()) {
            self.rejected.push(format!("{} was rejected by its node: {}", seen.name, seen.reason));
        }
        let attempt = seen.attempt();
        let known = self.pods.get(&uid).is_some_and(PodSeen::was_evicted);
        if seen.is_guaranteed() && seen.was_evicted() && !known {
            let gang = attempt.and_then(|attempt| self.gangs.get(&attempt));
            if gang.is_none_or(|gang| gang.since.is_none()) {
                self.guaranteed_evicted.push(seen.name.clone());
            }
        }
        self.pods.insert(uid, seen);
        if let Some(attempt) = attempt {
            self.check_gang(attempt);
        }
        self.check_decisions();
        self.check_agents();
    }

    fn see_node(&mut self, node: &GpuNode, gone: bool) {
        let name = node.metadata.name.clone().unwrap_or_default();
        let held = node.status.as_ref().filter(|_| !gone).map(|status| &status.allocations);
        self.held.insert(name, held.cloned().unwrap_or_default());
        self.check_agents();
    }

    /// Notes a fault, once.
    fn fault(&mut self, what: String) {
        if !self.faults.contains(&what) {
            self.faults.push(what);
        }
    }

    /// Whether all of a gang's pods have devices, or none of them.
    fn check_gang(&mut self, attempt: (u32, u32)) {
        let of = self.pods.values().filter(|pod| pod.attempt() == Some(attempt));
        let (mut members, mut held, mut done) = (0, 0, 0);
        for pod in of {
            members = pod.decision.as_ref().map_or(0, |decision| decision.members);
            held += u32::from(pod.holds() && !pod.deleting);
            done += u32::from(pod.phase == "Succeeded");
        }
        let gang = self.gangs.entry(attempt).or_default();
        if held > 0 && held + done < members {
            gang.since.get_or_insert_with(Instant::now);
        } else if let Some(since) = gang.since.take() {
            gang.longest = gang.longest.max(since.elapsed());
        }
    }

    /// By the decisions: no slot of a device is two pods', and no device is given away whole and in
    /// slots.
    fn check_decisions(&mut self) {
        let mut holders = Holders::default();
        for pod in self.pods.values().filter(|pod| pod.holds()) {
            let node = pod.node.as_deref().unwrap_or_default();
            pod.slots().for_each(|slot| holders.add(node, slot, &pod.name));
        }
        holders.twice().into_iter().for_each(|what| self.fault(what));
    }

    /// By the nodes' agents: the same, for pods of other schedulers, too; and each pod of ours has the
    /// devices that were decided for it.
    fn check_agents(&mut self) {
        let (mut holders, mut faults) = (Holders::default(), Vec::new());
        for (node, held) in &self.held {
            for allocation in held {
                let pod = self.pods.get(&allocation.pod_uid);
                let name = pod.map_or(allocation.pod_uid.as_str(), |pod| pod.name.as_str());
                allocation.devices.iter().for_each(|slot| holders.add(node, slot, name));
                let decided: Option<BTreeSet<&DeviceSlot>> =
                    pod.filter(|pod| pod.decision.is_some()).map(|pod| pod.slots().collect());
                if decided.is_some_and(|decided| decided != allocation.devices.iter().collect()) {
                    faults.push(format!("{name} has other devices than were decided for it"));
                }
            }
        }
        faults.extend(holders.twice());
        faults.into_iter().for_each(|what| self.fault(what));
    }
}

/// Who is on which device of which node.
#[derive(Default)]
struct Holders<'a>(BTreeMap<(&'a str, &'a str), Vec<Holder<'a>>>);

/// A slot, or the whole device, and the pod that has it.
type Holder<'a> = (Option<u32>, &'a str);

impl<'a> Holders<'a> {
    fn add(&mut self, node: &'a str, slot: &'a DeviceSlot, pod: &'a str) {
        self.0.entry((node, &slot.uuid)).or_default().push((slot.slot, pod));
    }

    /// Devices that were given away twice.
    fn twice(self) -> Vec<String> {
        let mut twice = Vec::new();
        for ((node, device), on) in self.0 {
            let whole = on.iter().any(|(slot, _)| slot.is_none());
            let slots: BTreeSet<_> = on.iter().map(|(slot, _)| slot).collect();
            if on.len() > 1 && (whole || slots.len() < on.len()) {
                let pods: Vec<&str> = on.iter().map(|&(_, pod)| pod).collect();
                twice.push(format!("{} hold one device of {node}: {device}", pods.join(" and ")));
            }
        }
        twice
    }
}

impl Watching {
    /// What has been seen so far.
    pub fn so_far(&self) -> Evidence {
        lock(&self.seen).clone()
    }

    /// Ends the watch.
    pub async fn end(self) -> Evidence {
        for task in self.tasks {
            task.abort();
            let _ = task.await;
        }
        lock(&self.seen).clone()
    }
}

/// Namespace and name.
fn called(pod: &Pod) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", text(&pod.metadata.namespace), text(&pod.metadata.name))
}

fn lock(seen: &Mutex<Evidence>) -> std::sync::MutexGuard<'_, Evidence> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows every object of a kind to the evidence, as it is and when it is gone; returns when they have
/// been listed.
async fn follow<K>(
    client: &Client,
    seen: &Arc<Mutex<Evidence>>,
    see: fn(&mut Evidence, &K, bool),
) -> JoinHandle<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let all: Api<K> = Api::all(client.clone());
    let (seen, listed) = (seen.clone(), Arc::new(Notify::new()));
    let first = listed.clone();
    let task = tokio::spawn(async move {
        let stream = watcher(all, watcher::Config::default()).default_backoff();
        let mut stream = std::pin::pin!(stream);
        let mut known: BTreeMap<String, K> = BTreeMap::new();
        let mut there = BTreeSet::new();
        let uid = |object: &K| object.meta().uid.clone().unwrap_or_default();
        while let Some(event) = stream.next().await {
            let mut seen = lock(&seen);
            match event {
                Ok(watcher::Event::Init) => there.clear(),
                Ok(watcher::Event::Apply(object)) => {
                    see(&mut seen, &object, false);
                    known.insert(uid(&object), object);
                }
                Ok(watcher::Event::InitApply(object)) => {
                    there.insert(uid(&object));
                    see(&mut seen, &object, false);
                    known.insert(uid(&object), object);
                }
                Ok(watcher::Event::Delete(object)) => {
                    known.remove(&uid(&object));
                    see(&mut seen, &object, true);
                }
                Ok(watcher::Event::InitDone) => {
                    known.retain(|uid, object| {
                        let still = there.contains(uid);
                        if !still {
                            see(&mut seen, object, true);
                        }
                        still
                    });
                    listed.notify_one();
                }
                // The watch is taken up again, after a pause.
                Err(_) => {}
            }
        }
    });
    let listed = tokio::time::timeout(Duration::from_secs(60), first.notified());
    listed.await.expect("they are listed");
    task
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A pod of a guaranteed gang of two.
    fn pod(uid: &str, phase: &str, evicted: bool) -> Pod {
        let decision = json!({
            "version": Decision::VERSION, "podUid": uid, "attempt": 1, "epoch": 1, "members": 2,
            "charged": "guaranteed", "containers": [], "submitted": "2026-01-01T00:00:00Z",
        });
        let gone = json!({ "type": "DisruptionTarget", "status": "True", "message": "goes" });
        let pod = json!({
            "metadata": {
                "name": uid, "namespace": "red", "uid": uid,
                "annotations": { (names::DECISION): decision.to_string() },
                "deletionTimestamp": evicted.then_some("2026-01-01T00:01:00Z"),
            },
            "spec": { "nodeName": "n", "containers": [] },
            "status": { "phase": phase, "conditions": if evicted { vec![gone] } else { vec![] } },
        });
        serde_json::from_value(pod).expect("a pod")
    }

    /// Who was evicted although guaranteed, of pods that were seen so one after the other.
    fn evicted(seen: &[(&str, &str, bool)]) -> Vec<String> {
        let mut evidence = Evidence::default();
        for &(uid, phase, evicted) in seen {
            evidence.see_pod(&pod(uid, phase, evicted), false);
        }
        evidence.guaranteed_evicted
    }

    #[test]
    fn a_gang_may_be_evicted_when_it_has_lost_a_pod_and_not_while_it_is_whole() {
        let (one, other) = (("one", "Running", false), ("other", "Running", false));
        let whole = [one, other, ("one", "Running", true), ("other", "Running", true)];
        assert_eq!(evicted(&whole), ["red/one"]);
        let done = [one, ("other", "Succeeded", false), ("one", "Running", true)];
        assert_eq!(evicted(&done), ["red/one"]);
        let lost = [one, other, ("other", "Failed", false), ("one", "Running", true)];
        assert!(evicted(&lost).is_empty());
        assert!(evicted(&[one, ("one", "Running", true)]).is_empty(), "it never was whole");
        let again = [one, other, ("one", "Running", true), ("one", "Running", true)];
        assert_eq!(evicted(&again).len(), 1, "said once");
    }
}
