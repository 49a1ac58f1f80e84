//! Plays the nodes: watches and timers go in, writes come out.

use super::behaviour::NodeBehaviour;
use super::event::{Input, Output, Timer};
use super::kubelet::Kubelet;
use super::observed::{ObservedNode, ObservedPod, nodes, pods};
use super::spec::{NodeSpec, SIMULATOR};
use super::write::Write;
use super::writer::Writer;
use futures_util::StreamExt;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often heartbeats, and devices that changed, are written.
const TICK: Duration = Duration::from_millis(100);

/// The nodes and what is to happen to them.
pub struct Driver {
    client: Client,
    spec: Arc<NodeSpec>,
    kubelets: Vec<Kubelet>,
    /// Number of a node by name.
    numbers: BTreeMap<String, usize>,
    /// Number of the node that a pod is on, by UID.
    homes: BTreeMap<String, usize>,
    timers: BinaryHeap<Reverse<(Timer, usize)>>,
    writer: Writer,
    gpu_nodes: bool,
    /// When each node's next heartbeat is due.
    beats: Vec<Timestamp>,
    sample_at: Timestamp,
    /// UIDs seen in a list that is under way.
    listed: BTreeSet<String>,
}

impl Driver {
    /// Everything as registered.
    pub fn new(
        client: Client,
        spec: Arc<NodeSpec>,
        kubelets: Vec<Kubelet>,
        gpu_nodes: bool,
    ) -> Driver {
        let now = Timestamp::now();
        let count = u32::try_from(kubelets.len().max(1)).unwrap_or(u32::MAX);
        // Spread evenly over the interval: the API server sees a steady trickle.
        let beat = |index: usize| now + spec.heartbeat * u32::try_from(index).unwrap_or(0) / count;
        let numbers = kubelets.iter().enumerate();
        Driver {
            writer: Writer::new(&client),
            numbers: numbers.map(|(number, one)| (one.name().to_owned(), number)).collect(),
            homes: BTreeMap::new(),
            timers: BinaryHeap::new(),
            beats: (0..kubelets.len()).map(beat).collect(),
            sample_at: now + spec.sample,
            listed: BTreeSet::new(),
            client,
            spec,
            kubelets,
            gpu_nodes,
        }
    }

    /// Plays on until it is dropped.
    pub async fn run(mut self) {
        let api: Api<ObservedPod> = Api::all_with(self.client.clone(), &pods());
        let bound = watcher::Config::default().fields("spec.nodeName!=").streaming_lists();
        let mut pods = std::pin::pin!(watch(api, bound).default_backoff());
        let api: Api<ObservedNode> = Api::all_with(self.client.clone(), &nodes());
        let ours = format!("{SIMULATOR}={}", self.spec.prefix);
        let ours = watcher::Config::default().labels(&ours).streaming_lists();
        let mut nodes = std::pin::pin!(watch(api, ours).default_backoff());
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(event) = pods.next() => match event {
                    Ok(event) => self.pod_event(event),
                    Err(error) => tracing::warn!("watching pods: {error}"),
                },
                Some(event) = nodes.next() => match event {
                    Ok(event) => self.node_event(event),
                    Err(error) => tracing::warn!("watching nodes: {error}"),
                },
                () = until(self.timers.peek().map(|Reverse((timer, _))| timer.at)) => self.fire(),
                _ = tick.tick() => self.tick(),
            }
        }
    }

    fn pod_event(&mut self, event: Event<ObservedPod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.metadata.uid.clone());
                self.pod(pod);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<String> =
                    self.homes.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
                gone.into_iter().for_each(|uid| self.gone(uid));
            }
            Event::Apply(pod) => self.pod(pod),
            Event::Delete(pod) => self.gone(pod.metadata.uid.unwrap_or_default()),
        }
    }

    fn pod(&mut self, pod: ObservedPod) {
        let node = pod.spec.node_name.as_ref().and_then(|name| self.numbers.get(name));
        let (Some(&number), Some(uid)) = (node, pod.metadata.uid.clone()) else { return };
        self.homes.insert(uid, number);
        self.input(number, Input::Pod(Box::new(pod)));
    }

    fn gone(&mut self, uid: String) {
        if let Some(number) = self.homes.remove(&uid) {
            self.input(number, Input::Gone(uid));
        }
    }

    fn node_event(&mut self, event: Event<ObservedNode>) {
        let (Event::Apply(node) | Event::InitApply(node)) = event else { return };
        let name = node.metadata.name.unwrap_or_default();
        let Some(&number) = self.numbers.get(&name) else { return };
        let faults = match NodeBehaviour::read(&node.metadata.annotations.unwrap_or_default()) {
            Ok(faults) => faults,
            Err(error) => return tracing::error!("node {name}: {error}"),
        };
        let conditions = node.status.unwrap_or_default().conditions;
        let ready = conditions.iter().any(|one| one.kind == "Ready" && one.status == "True");
        let now = Timestamp::now();
        let mut out = Output::default();
        let was_lost = self.kubelets[number].is_lost();
        self.kubelets[number].node(&self.spec, faults, ready, now, &mut out);
        if was_lost && !self.kubelets[number].is_lost() {
            self.beats[number] = now;
        }
        self.put(number, out);
    }

    fn input(&mut self, number: usize, input: Input) {
        let mut out = Output::default();
        self.kubelets[number].input(&self.spec, input, Timestamp::now(), &mut out);
        self.put(number, out);
    }

    fn fire(&mut self) {
        let now = Timestamp::now();
        while let Some(Reverse((timer, _))) = self.timers.peek()
            && timer.at <= now
            && let Some(Reverse((timer, number))) = self.timers.pop()
        {
            self.input(number, Input::Timer(timer));
        }
    }

    fn tick(&mut self) {
        let now = Timestamp::now();
        let sample = self.sample_at <= now;
        if sample {
            self.sample_at = now + self.spec.sample;
        }
        for number in 0..self.kubelets.len() {
            let kubelet = &mut self.kubelets[number];
            let mut out = Output::default();
            if sample {
                kubelet.sample(now);
            }
            if self.gpu_nodes {
                kubelet.gpu_status(&self.spec, &mut out);
            }
            if self.beats[number] <= now && !kubelet.is_lost() {
                self.beats[number] = now + self.spec.heartbeat;
                out.writes.push(Write::Heartbeat { node: kubelet.name().to_owned() });
            }
            self.put(number, out);
        }
    }

    fn put(&mut self, number: usize, out: Output) {
        self.timers.extend(out.timers.into_iter().map(|timer| Reverse((timer, number))));
        out.writes.into_iter().for_each(|write| self.writer.send(write));
    }
}

/// Waits for a time; for ever if there is none.
async fn until(at: Option<Timestamp>) {
    let Some(at) = at else { return std::future::pending().await };
    let left = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(left).await;
}
