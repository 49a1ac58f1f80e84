//! One simulated node: what it sees goes in, writes and timers come out. Reads no clock and talks
//! to nobody.

use super::behaviour::{NodeBehaviour, PodBehaviour, Resize};
use super::devices::Devices;
use super::event::{Input, Output, Step, Timer};
use super::observed::ObservedPod;
use super::pod::{Pod, Resizing, Stage, is_resize, rejected, without};
use super::requests::{self, Compute};
use super::spec::{GpuResource, NodeSpec};
use super::status;
use super::write::{PodKey, Write};
use deepshare_kube_api::{Decision, PairSample, names};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A kubelet moves `allocatedResources` so long before `resources`.
const ALLOCATED_BEFORE: Duration = Duration::from_millis(25);

/// A node.
#[derive(Debug)]
pub struct Kubelet {
    name: String,
    capacity: Compute,
    max_pods: usize,
    devices: Devices,
    pods: BTreeMap<String, Pod>,
    faults: NodeBehaviour,
    /// Pods still to be rejected.
    rejects: u32,
    /// What happened while the node was lost: it learns of it when it is back.
    missed: Vec<Input>,
    /// Allocations or devices differ from what the GpuNode says.
    dirty: bool,
    samples: Vec<PairSample>,
}

impl Kubelet {
    /// The node of that number.
    pub fn new(spec: &NodeSpec, index: usize) -> Kubelet {
        let name = spec.name(index);
        let uuids = (0..spec.gpus).map(|gpu| spec.uuid(&name, gpu));
        Kubelet {
            devices: Devices::new(spec.resource, uuids),
            capacity: Compute {
                cpu: i128::from(spec.cpus) * 1000,
                memory: (i128::from(spec.memory_gib) << 30) * 1000,
            },
            max_pods: spec.pods as usize,
            name,
            pods: BTreeMap::new(),
            faults: NodeBehaviour::default(),
            rejects: 0,
            missed: Vec::new(),
            dirty: true,
            samples: Vec::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its devices.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Whether it sends heartbeats.
    pub fn is_lost(&self) -> bool {
        self.faults.lost
    }

    /// Something happened.
    pub fn input(&mut self, spec: &NodeSpec, input: Input, now: Timestamp, out: &mut Output) {
        if self.faults.lost {
            self.missed.push(input);
            return;
        }
        match input {
            Input::Pod(pod) => self.pod(spec, &pod, now, out),
            Input::Gone(uid) => {
                if let Some(pod) = self.pods.remove(&uid) {
                    self.release(&pod.key.uid, now, out);
                }
            }
            Input::Timer(timer) => self.fire(&timer, now, out),
        }
    }

    /// The node's annotations changed, or the control plane does not believe that it is ready.
    pub fn node(
        &mut self,
        spec: &NodeSpec,
        faults: NodeBehaviour,
        ready: bool,
        now: Timestamp,
        out: &mut Output,
    ) {
        let unhealthy = faults.unhealthy.iter().map(String::as_str).collect();
        let devices = self.devices.set_unhealthy(&unhealthy);
        self.dirty |= devices;
        if faults.reject_next != self.faults.reject_next {
            self.rejects = faults.reject_next;
        }
        self.faults = faults;
        if self.faults.lost {
            return;
        }
        if devices || !ready {
            let status = status::node(spec, &self.devices, now);
            out.writes.push(Write::NodeStatus { node: self.name.clone(), status });
        }
        for missed in std::mem::take(&mut self.missed) {
            self.input(spec, missed, now, out);
        }
    }

    fn pod(&mut self, spec: &NodeSpec, seen: &ObservedPod, now: Timestamp, out: &mut Output) {
        let Some(key) = key(seen) else { return };
        if self.pods.contains_key(&key.uid) {
            return self.update(&key.uid, seen, now, out);
        }
        let phase = seen.status.as_ref().map_or("", |status| status.phase.as_str());
        let deleted = seen.metadata.deletion_timestamp.is_some();
        if matches!(phase, "Succeeded" | "Failed") || (deleted && phase != "Running") {
            // It holds nothing here; a deleted pod waits for its kubelet to say so.
            if deleted {
                out.writes.push(Write::Remove { pod: key });
            }
            return;
        }
        match self.admit(&key, seen) {
            Err((reason, message)) => {
                let status = rejected(reason, &message, now);
                out.writes.push(Write::PodStatus { pod: key.clone(), status });
                let mut pod = Pod::new(key.clone(), seen, PodBehaviour::default(), now);
                pod.stage = Stage::Ended;
                self.pods.insert(key.uid, pod);
            }
            Ok(behaviour) => {
                let mut pod = Pod::new(key.clone(), seen, behaviour, now);
                let begun = seen.status.as_ref().and_then(|status| status.start_time.as_ref());
                let begun = begun.and_then(|begun| begun.parse().ok());
                if let Some(begun) = begun.filter(|_| phase == "Running") {
                    // It ran before this simulator did.
                    (pod.taken, pod.started, pod.stage) = (begun, Some(begun), Stage::Running);
                    out.timers.extend(completion(&pod, begun));
                } else {
                    let at = now + spec.start_delay_of(&key.namespace, &key.name);
                    out.timers.push(Timer { at, uid: key.uid.clone(), step: Step::Start });
                }
                self.pods.insert(key.uid.clone(), pod);
                self.dirty = true;
                if deleted {
                    self.update(&key.uid, seen, now, out);
                }
            }
        }
    }

    /// As a kubelet admits: devices first, then what its scheduling predicates say.
    fn admit(
        &mut self,
        key: &PodKey,
        seen: &ObservedPod,
    ) -> Result<PodBehaviour, (&'static str, String)> {
        const UNEXPECTED: &str = "UnexpectedAdmissionError";
        let annotations = seen.metadata.annotations.clone().unwrap_or_default();
        let behaviour = PodBehaviour::read(&annotations).map_err(|error| (UNEXPECTED, error))?;
        if self.rejects > 0 {
            self.rejects -= 1;
            let message = "annotation testbed.deepshare.io/reject-next of the node says so";
            return Err((UNEXPECTED, message.to_owned()));
        }
        let decision = annotations.get(names::DECISION).map(|text| Decision::read(text, &key.uid));
        let decision = decision.transpose().map_err(|error| (UNEXPECTED, error.to_string()))?;
        let live = self.pods.values().filter(|pod| pod.stage != Stage::Ended);
        let (count, used) = live.fold((0, Compute::default()), |(count, used), pod| {
            (count + 1, used.plus(pod.charge()))
        });
        self.devices
            .take(&key.uid, &requests::gpus(&seen.spec), decision.as_ref())
            .map_err(|error| (UNEXPECTED, error))?;
        let wanted = requests::compute(&seen.spec);
        let total = used.plus(wanted);
        let short = if count >= self.max_pods {
            Some(("OutOfpods", "pods", 1, count as i128, self.max_pods as i128))
        } else if total.cpu > self.capacity.cpu {
            Some(("OutOfcpu", "cpu", wanted.cpu, used.cpu, self.capacity.cpu))
        } else if total.memory > self.capacity.memory {
            let bytes = |milli: i128| milli / 1000;
            let (wanted, used) = (bytes(wanted.memory), bytes(used.memory));
            Some(("OutOfmemory", "memory", wanted, used, bytes(self.capacity.memory)))
        } else {
            None
        };
        let Some((reason, resource, requested, used, capacity)) = short else {
            return Ok(behaviour);
        };
        self.devices.release(&key.uid);
        Err((
            reason,
            format!(
                "Node didn't have enough resource: {resource}, requested: {requested}, used: \
                 {used}, capacity: {capacity}"
            ),
        ))
    }

    fn update(&mut self, uid: &str, seen: &ObservedPod, now: Timestamp, out: &mut Output) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let annotations = seen.metadata.annotations.clone().unwrap_or_default();
        // What a running pod's annotations say wrongly is left aside: it was told at admission.
        if let Ok(behaviour) = PodBehaviour::read(&annotations) {
            pod.behaviour = behaviour;
        }
        if seen.metadata.deletion_timestamp.is_some() {
            return self.delete(uid, seen.metadata.deletion_grace_period_seconds, now, out);
        }
        pod.generation = pod.generation.max(seen.metadata.generation.unwrap_or(0));
        if pod.stage == Stage::Starting {
            // Nothing runs yet: the change is part of the start, where there is room.
            if is_resize(&pod.spec, &seen.spec) {
                pod.spec = seen.spec.clone();
            }
        } else if pod.stage == Stage::Running && is_resize(&pod.spec, &seen.spec) {
            pod.spec = seen.spec.clone();
            pod.resizing = Resizing::Deferred;
            self.try_resize(uid, now, out);
        } else if pod.resizing == Resizing::Deferred {
            self.try_resize(uid, now, out);
        }
    }

    fn delete(&mut self, uid: &str, grace: Option<i64>, now: Timestamp, out: &mut Output) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let grace = grace.unwrap_or(0);
        if pod.stage == Stage::Ended {
            if pod.grace.is_none() {
                out.writes.push(Write::Remove { pod: pod.key.clone() });
            }
            pod.grace = Some(grace);
        } else if pod.grace.is_none_or(|before| grace < before) {
            let granted = Duration::from_secs(grace.max(0).unsigned_abs());
            let needed =
                if pod.stage == Stage::Starting { Duration::ZERO } else { pod.behaviour.stop };
            pod.stage = Stage::Stopping;
            pod.grace = Some(grace);
            let at = now + needed.min(granted);
            out.timers.push(Timer { at, uid: uid.to_owned(), step: Step::Stop });
        }
    }

    /// Begins a resize that waits, if there is room.
    fn try_resize(&mut self, uid: &str, now: Timestamp, out: &mut Output) {
        let others = self.pods.values().filter(|pod| pod.key.uid != uid);
        let used = others.fold(Compute::default(), |used, pod| used.plus(pod.charge()));
        let capacity = self.capacity;
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if pod.resizing != Resizing::Deferred || pod.stage != Stage::Running {
            return;
        }
        let total = used.plus(requests::compute(&pod.spec).max(requests::compute(&pod.actual)));
        let room = total.cpu <= capacity.cpu && total.memory <= capacity.memory;
        let why = match pod.behaviour.resize {
            Resize::Infeasible => Some("Infeasible"),
            Resize::Deferred => Some("Deferred"),
            Resize::Happens => (!room).then_some("Deferred"),
        };
        if let Some(why) = why {
            let pending = pod.condition("PodResizePending", "True", why, "the node is full", now);
            let status = json!({ "observedGeneration": pod.generation, "conditions": [pending] });
            out.writes.push(Write::PodStatus { pod: pod.key.clone(), status });
            return;
        }
        pod.resizing = Resizing::Accepted;
        let delay = pod.behaviour.resize_delay;
        let first = delay - ALLOCATED_BEFORE.min(delay / 2);
        let generation = pod.generation;
        let mut timer = |after, step| {
            out.timers.push(Timer { at: now + after, uid: uid.to_owned(), step });
        };
        timer(first, Step::Allocate(generation));
        timer(delay, Step::Resize(generation));
    }

    fn fire(&mut self, timer: &Timer, now: Timestamp, out: &mut Output) {
        let Some(pod) = self.pods.get_mut(&timer.uid) else { return };
        let write = |pod: &Pod, status: Value| Write::PodStatus { pod: pod.key.clone(), status };
        match (timer.step, pod.stage) {
            (Step::Start, Stage::Starting) => {
                pod.stage = Stage::Running;
                pod.started = Some(now);
                let late = is_resize(&pod.spec, &pod.actual);
                out.writes.push(write(pod, pod.running(&pod.actual, pod.ready(now))));
                out.timers.extend(completion(pod, now));
                if late {
                    pod.resizing = Resizing::Deferred;
                    let uid = timer.uid.clone();
                    self.try_resize(&uid, now, out);
                }
            }
            (Step::Complete, Stage::Running) => {
                pod.stage = Stage::Ended;
                let code = pod.behaviour.exit_code;
                let reason = if code == 0 { "Completed" } else { "Error" };
                out.writes.push(write(pod, pod.ended(code, reason, now)));
                self.release(&timer.uid, now, out);
            }
            (Step::Stop, Stage::Stopping) => {
                pod.stage = Stage::Ended;
                if pod.started.is_some() {
                    let granted = pod.grace.unwrap_or(0).max(0).unsigned_abs();
                    let killed = pod.behaviour.stop >= Duration::from_secs(granted);
                    // SIGKILL or SIGTERM, as a shell shows them.
                    let code = if killed { 137 } else { 143 };
                    out.writes.push(write(pod, pod.ended(code, "Error", now)));
                }
                out.writes.push(Write::Remove { pod: pod.key.clone() });
                self.release(&timer.uid, now, out);
            }
            (Step::Allocate(generation), Stage::Running) if generation == pod.generation => {
                let progress = pod.condition("PodResizeInProgress", "True", "", "", now);
                let conditions = vec![progress, without("PodResizePending")];
                out.writes.push(write(pod, pod.running(&pod.spec, conditions)));
            }
            (Step::Resize(generation), Stage::Running) if generation == pod.generation => {
                pod.actual = pod.spec.clone();
                pod.resizing = Resizing::No;
                let conditions = vec![without("PodResizeInProgress")];
                out.writes.push(write(pod, pod.running(&pod.spec, conditions)));
                self.retry(now, out);
            }
            // The pod went another way meanwhile.
            _ => {}
        }
    }

    fn release(&mut self, uid: &str, now: Timestamp, out: &mut Output) {
        self.dirty |= self.devices.release(uid);
        self.retry(now, out);
    }

    /// There may be room for a resize that waits.
    fn retry(&mut self, now: Timestamp, out: &mut Output) {
        let waiting = self.pods.values().filter(|pod| pod.resizing == Resizing::Deferred);
        let waiting = waiting.filter(|pod| pod.behaviour.resize == Resize::Happens);
        let waiting: Vec<String> = waiting.map(|pod| pod.key.uid.clone()).collect();
        for uid in waiting {
            self.try_resize(&uid, now, out);
        }
    }

    /// Takes a sample of its pairs.
    pub fn sample(&mut self, now: Timestamp) {
        let pairs: Vec<PairSample> = self
            .devices
            .pairs()
            .into_iter()
            .filter_map(|pair| {
                let pods =
                    pair.map(|uid| self.pods.get(uid).filter(|pod| pod.stage == Stage::Running));
                let [Some(one), Some(other)] = pods else { return None };
                let kept = [one, other].map(|pod| pod.behaviour.keeps_ppm);
                Some(PairSample {
                    pod_uids: pair.map(str::to_owned).to_vec(),
                    retentions_ppm: kept.to_vec(),
                    taken: format!("{now:.3}"),
                })
            })
            .collect();
        self.dirty |= !pairs.is_empty() || !self.samples.is_empty();
        self.samples = pairs;
    }

    /// The status of its GpuNode, if that has changed.
    pub fn gpu_status(&mut self, spec: &NodeSpec, out: &mut Output) {
        if self.dirty && !self.faults.lost && spec.resource == GpuResource::Deepshare {
            self.dirty = false;
            let status = status::gpu_node(spec, &self.devices, &self.samples);
            let status = Box::new(status);
            out.writes.push(Write::GpuNodeStatus { node: self.name.clone(), status });
        }
    }
}

fn completion(pod: &Pod, started: Timestamp) -> Option<Timer> {
    let run = SignedDuration::try_from(pod.behaviour.run?).ok()?;
    let at = started.checked_add(run).ok()?;
    Some(Timer { at, uid: pod.key.uid.clone(), step: Step::Complete })
}

fn key(pod: &ObservedPod) -> Option<PodKey> {
    Some(PodKey {
        namespace: pod.metadata.namespace.clone()?,
        name: pod.metadata.name.clone()?,
        uid: pod.metadata.uid.clone()?,
    })
}

#[cfg(test)]
mod tests;
