//! The rules of a simulated node, without a cluster.

use super::*;
use serde_json::json;

const GPU: &str = "deepshare.io/gpu";
const SLOT: &str = "deepshare.io/gpu-slot";

struct Node {
    spec: NodeSpec,
    kubelet: Kubelet,
    now: Timestamp,
}

impl Node {
    fn new() -> Node {
        let spec = NodeSpec { gpus: 1, cpus: 4, ..NodeSpec::default() };
        Node { kubelet: Kubelet::new(&spec, 0), spec, now: Timestamp::UNIX_EPOCH }
    }

    fn input(&mut self, input: Input) -> Output {
        let mut out = Output::default();
        self.kubelet.input(&self.spec, input, self.now, &mut out);
        out
    }

    /// Shows it a pod with these requests.
    fn pod(&mut self, uid: &str, generation: i64, requests: Value) -> Output {
        let container = json!({ "name": "main", "resources": { "requests": requests } });
        let pod = json!({
            "metadata": { "namespace": "team", "name": uid, "uid": uid, "generation": generation },
            "spec": { "containers": [container] },
            "status": { "phase": "Pending" },
        });
        self.input(Input::Pod(Box::new(serde_json::from_value(pod).unwrap())))
    }

    fn fire(&mut self, timers: Vec<Timer>) -> Output {
        let mut all = Output::default();
        for timer in timers {
            self.now = self.now.max(timer.at);
            let out = self.input(Input::Timer(timer));
            all.writes.extend(out.writes);
            all.timers.extend(out.timers);
        }
        all
    }

    fn fault(&mut self, lost: bool) -> Output {
        let mut out = Output::default();
        let faults = NodeBehaviour { lost, ..NodeBehaviour::default() };
        self.kubelet.node(&self.spec, faults, !lost, self.now, &mut out);
        out
    }
}

/// Phases, and reasons of failures, that are written.
fn phases(out: &Output) -> Vec<String> {
    let status = out.writes.iter().filter_map(|write| match write {
        Write::PodStatus { status, .. } => Some(status),
        _ => None,
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    status.map(|status| text(&status["phase"]) + &text(&status["reason"])).collect()
}

#[test]
fn a_device_is_whole_or_in_slots_and_a_failed_admission_holds_nothing() {
    let mut node = Node::new();
    // Both of its slots are there, its CPUs are not.
    let much = node.pod("much", 1, json!({ SLOT: "2", "cpu": "5" }));
    assert_eq!(phases(&much), ["FailedOutOfcpu"]);
    // One slot is there, the whole device is not any more.
    let both = node.pod("both", 1, json!({ SLOT: "1", GPU: "1" }));
    assert_eq!(phases(&both), ["FailedUnexpectedAdmissionError"]);
    assert!(phases(&node.pod("one", 1, json!({ SLOT: "1" }))).is_empty());
    assert!(phases(&node.pod("two", 1, json!({ SLOT: "1" }))).is_empty());
    assert_eq!(node.kubelet.devices().pairs(), [["one", "two"]]);
    assert_eq!(
        phases(&node.pod("three", 1, json!({ SLOT: "1" }))),
        ["FailedUnexpectedAdmissionError"]
    );
    node.input(Input::Gone("one".to_owned()));
    node.input(Input::Gone("two".to_owned()));
    assert!(phases(&node.pod("whole", 1, json!({ GPU: "1" }))).is_empty());
}

#[test]
fn a_shrinking_pod_is_charged_in_full_until_its_resize_is_in_force() {
    let mut node = Node::new();
    let started = node.pod("big", 1, json!({ "cpu": "4" })).timers;
    assert_eq!(phases(&node.fire(started)), ["Running"]);
    let mut steps = node.pod("big", 2, json!({ "cpu": "1" })).timers;
    let last = steps.pop().unwrap();
    assert_eq!(last.at.duration_since(steps[0].at), SignedDuration::from_millis(25));
    node.fire(steps);
    assert_eq!(phases(&node.pod("early", 1, json!({ "cpu": "3" }))), ["FailedOutOfcpu"]);
    node.fire(vec![last]);
    assert!(phases(&node.pod("late", 1, json!({ "cpu": "3" }))).is_empty());
}

#[test]
fn a_resize_overtaken_by_another_changes_nothing() {
    let mut node = Node::new();
    let started = node.pod("pod", 1, json!({ "cpu": "4" })).timers;
    node.fire(started);
    let first = node.pod("pod", 2, json!({ "cpu": "1" })).timers;
    let second = node.pod("pod", 3, json!({ "cpu": "2" })).timers;
    assert!(node.fire(first).writes.is_empty());
    node.fire(second);
    assert_eq!(phases(&node.pod("three", 1, json!({ "cpu": "3" }))), ["FailedOutOfcpu"]);
    assert!(phases(&node.pod("two", 1, json!({ "cpu": "2" }))).is_empty());
}

#[test]
fn a_lost_node_learns_in_order_of_what_it_missed() {
    let mut node = Node::new();
    let started = node.pod("before", 1, json!({ GPU: "1" })).timers;
    node.fault(true);
    assert!(node.fire(started).writes.is_empty());
    node.input(Input::Gone("before".to_owned()));
    assert!(node.pod("after", 1, json!({ GPU: "1" })).timers.is_empty());
    let back = node.fault(false);
    // The first ran a moment before it was gone, and its device is the second's.
    assert_eq!(phases(&back), ["Running"]);
    assert_eq!(back.timers.len(), 1);
    assert_eq!(node.kubelet.devices().allocations()[0].pod_uid, "after");
}
