//! Others on the same nodes, at the same time: another scheduler, another process of our own, and
//! budgets that say no.

use crate::SCHEDULER;
use crate::scene::{alone, protect};
use deepshare_e2e::{Bed, Beds, Gate, PodDraft, PodSeen, Scheduler, Stage, wait};
use deepshare_testbed::NodeSpec;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use libtest_mimic::Trial;
use serde_json::json;
use std::sync::Arc;

fn nodes(count: usize, gpus: usize) -> NodeSpec {
    NodeSpec { count, gpus, cpus: 16, ..NodeSpec::default() }
}

/// A pod that kube-scheduler places.
async fn create_of_others(bed: &Bed, stage: &Stage<'_>, pod: PodDraft) {
    let mut pod = pod.spec("schedulerName", json!("default-scheduler")).pod();
    pod["metadata"]["namespace"] = json!(stage.namespace("others"));
    bed.create(pod).await;
}

/// Pods of other schedulers, by phase.
async fn of_others(bed: &Bed, stage: &Stage<'_>, phase: &str) -> Vec<Pod> {
    let pods = bed.pods(&stage.namespace("others"));
    let all = pods.list(&ListParams::default()).await.expect("pods are listed");
    let is =
        |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase);
    all.items.into_iter().filter(is).collect()
}

async fn until_others_run(bed: &Bed, stage: &Stage<'_>, count: usize) {
    wait("pods of another scheduler run", async || {
        (of_others(bed, stage, "Running").await.len() == count).then_some(())
    })
    .await;
}

/// What was seen of the pods of a tenant's job.
fn seen_of<'s>(
    seen: &'s deepshare_e2e::Evidence,
    stage: &Stage<'_>,
    tenant: &str,
    job: &str,
) -> Vec<&'s PodSeen> {
    let prefix = format!("{}/{job}-", stage.namespace(tenant));
    seen.pods.values().filter(|pod| pod.name.starts_with(&prefix)).collect()
}

/// Waits until a job's pod waits for a reason whose sentence has these words.
async fn waits(stage: &Stage<'_>, tenant: &str, job: &str, words: &[&str]) -> (String, String) {
    wait(&format!("{tenant}'s {job} waits: {words:?}"), async || {
        let seen = stage.so_far();
        let pods = seen_of(&seen, stage, tenant, job);
        let said =
            pods.into_iter().filter(|pod| pod.node.is_none()).find_map(|pod| pod.waits.clone())?;
        words.iter().all(|word| said.1.contains(word)).then_some(said)
    })
    .await
}

/// What others hold is not given away, nor taken from them, though a guarantee waits for it; and what they
/// give back is.
async fn what_others_hold_is_theirs(bed: &Bed) {
    let mut stage = Stage::set(bed, "theirs", nodes(2, 4)).await;
    stage.tenant("red", 8, &json!({})).await;
    stage.space("others").await;
    let on = |at: usize| json!({ "kubernetes.io/hostname": stage.node(at) });
    let gpus = PodDraft::new("gpus").gpus(2).spec("nodeSelector", on(0));
    create_of_others(bed, &stage, gpus).await;
    let cpus = PodDraft::new("cpus").request("cpu", "13").spec("nodeSelector", on(1));
    create_of_others(bed, &stage, cpus).await;
    until_others_run(bed, &stage, 2).await;
    let scheduler = Scheduler::start(bed, SCHEDULER, "");
    scheduler.until_ready().await;
    // Two fit beside the GPUs of others on the one node, one beside their CPUs on the other.
    for at in 0..6 {
        let pod = PodDraft::new(&format!("j{at}")).gpus(1).request("cpu", "2");
        stage.submit("red", &alone(pod)).await;
    }
    let placed = |want: usize| {
        let stage = &stage;
        async move {
            wait(&format!("{want} jobs of red run"), async || {
                let seen = stage.so_far();
                let red = format!("{}/", stage.namespace("red"));
                let red = seen.pods.values().filter(|pod| pod.name.starts_with(&red));
                let runs = |pod: &&PodSeen| pod.phase == "Running";
                let asked = red.clone().filter(|pod| !runs(pod)).all(|pod| pod.waits.is_some());
                (red.filter(runs).count() == want && asked).then_some(())
            })
            .await;
        }
    };
    placed(3).await;
    let now = DeleteParams::default();
    bed.pods(&stage.namespace("others")).delete("gpus", &now).await.expect("a pod is deleted");
    placed(5).await;
    bed.pods(&stage.namespace("others")).delete("cpus", &now).await.expect("a pod is deleted");
    placed(6).await;
    let seen = stage.strike(vec![scheduler]).await.expect("all promises are kept");
    assert_eq!(seen.rejected, Vec::<String>::new());
    assert!(seen.pods.values().all(|pod| pod.disrupted.is_none()), "{:?}", seen.pods);
}

/// Both schedulers place at the same time. Of two that choose one device or one CPU at the same moment a
/// node rejects the later pod; nobody is evicted, and in the end all of ours have run.
async fn both_place_at_once(bed: &Bed) {
    let mut stage = Stage::set(bed, "storm", nodes(2, 4)).await;
    stage.tenant("red", 8, &json!({})).await;
    stage.space("others").await;
    let scheduler = Scheduler::start(bed, SCHEDULER, "");
    scheduler.until_ready().await;
    for at in 0..12 {
        let pod = PodDraft::new(&format!("j{at}")).gpus(1).request("cpu", "3");
        stage.submit("red", &alone(pod.behaves("run-seconds", "0.5"))).await;
        let pod = PodDraft::new(&format!("c{at}")).request("cpu", "2");
        create_of_others(bed, &stage, pod.behaves("run-seconds", "0.7")).await;
        if at % 4 == 0 {
            let pod = PodDraft::new(&format!("g{at}")).gpus(1).request("cpu", "1");
            create_of_others(bed, &stage, pod.behaves("run-seconds", "0.7")).await;
        }
    }
    wait("all of ours have run", async || {
        let seen = stage.so_far();
        let done = |at: usize| {
            let pods = seen_of(&seen, &stage, "red", &format!("j{at}"));
            pods.iter().any(|pod| pod.phase == "Succeeded")
        };
        (0..12).all(done).then_some(())
    })
    .await;
    wait("whoever of the others was not rejected has run", async || {
        let (done, failed) =
            (of_others(bed, &stage, "Succeeded").await, of_others(bed, &stage, "Failed").await);
        (done.len() + failed.len() == 15).then_some(())
    })
    .await;
    let seen = stage.strike(vec![scheduler]).await.expect("all promises are kept");
    assert!(seen.pods.values().all(|pod| pod.disrupted.is_none()), "{:?}", seen.pods);
}

/// Of two processes one writes; when it is asked to stop, the other takes over without waiting for a
/// Lease that would not expire within this test.
async fn only_the_leader_writes(bed: &Bed) {
    let settings = "lease = { duration_s = 3600, renew_deadline_s = 1800, retry_s = 0.3 }\n";
    let mut stage = Stage::set(bed, "two", nodes(1, 4)).await;
    stage.tenant("red", 4, &json!({})).await;
    let gates = [Gate::open(bed).await, Gate::open(bed).await];
    let mut first = Scheduler::start_behind(&gates[0], SCHEDULER, settings);
    first.until_ready().await;
    let second = Scheduler::start_behind(&gates[1], SCHEDULER, settings);
    wait("the second stands by", async || {
        second.said().contains("waiting for the Lease").then_some(())
    })
    .await;
    stage.submit("red", &alone(PodDraft::new("one").gpus(1))).await;
    stage.running("red", "one", 1).await;
    assert_eq!(gates[1].writes(), Vec::<String>::new(), "a process that stands by writes nothing");
    first.stop();
    let written = gates[0].writes();
    second.until_ready().await;
    stage.submit("red", &alone(PodDraft::new("two").gpus(1))).await;
    stage.running("red", "two", 1).await;
    assert_eq!(gates[0].writes(), written);
    let seen = stage.strike(vec![first, second]).await.expect("all promises are kept");
    let epochs: Vec<u32> = ["one", "two"]
        .iter()
        .flat_map(|name| {
            seen.pods.values().filter(move |pod| pod.name.contains(&format!("/{name}-")))
        })
        .filter_map(|pod| pod.attempt().map(|(epoch, _)| epoch))
        .collect();
    assert_eq!(epochs.len(), 2);
    assert!(epochs[0] < epochs[1], "the terms of two leaders: {epochs:?}");
}

/// A pod that its budget protects is passed over where another will do. Where none will, the guaranteed
/// pod waits and is told which pod that is; unless its tenant overrides budgets.
async fn a_budget_says_no(bed: &Bed) {
    let mut stage = Stage::set(bed, "budget", nodes(1, 3)).await;
    stage.tenant("red", 2, &json!({})).await;
    let overrides = json!({ "reclaim": { "overridePdb": true, "pdbWaitSeconds": 2 } });
    stage.tenant("green", 1, &overrides).await;
    stage.tenant("blue", 2, &json!({})).await;
    let scheduler = Scheduler::start(bed, SCHEDULER, "");
    scheduler.until_ready().await;
    // By cost alone `kept` would go first, and `other` would be the last.
    for (name, run) in [("kept", "9000"), ("also", "3000"), ("other", "1000")] {
        let pod = PodDraft::new(name).gpus(1).deepshare("class", "best-effort");
        stage.submit("blue", &alone(pod.deepshare("run-time", run))).await;
        stage.running("blue", name, 1).await;
    }
    for name in ["kept", "also"] {
        protect(bed, &stage.namespace("blue"), name).await;
    }
    stage.submit("red", &alone(PodDraft::new("first").gpus(1))).await;
    stage.running("red", "first", 1).await;
    let seen = stage.so_far();
    let on = |name: &str| seen_of(&seen, &stage, "blue", name).iter().any(|pod| pod.holds());
    assert!(on("kept") && on("also") && !on("other"), "{:?}", seen.pods);
    stage.submit("green", &alone(PodDraft::new("second").gpus(1))).await;
    stage.running("green", "second", 1).await;
    let seen = stage.so_far();
    let on = |name: &str| seen_of(&seen, &stage, "blue", name).iter().any(|pod| pod.holds());
    assert!(!on("kept") && on("also"), "{:?}", seen.pods);
    stage.submit("red", &alone(PodDraft::new("third").gpus(1))).await;
    waits(&stage, "red", "third", &["budget-blue/also-", "disruption budget"]).await;
    let seen = stage.so_far();
    let also = seen_of(&seen, &stage, "blue", "also");
    assert!(also.iter().any(|pod| pod.holds() && !pod.deleting), "{also:?}");
    stage.strike(vec![scheduler]).await.expect("all promises are kept");
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(
        beds,
        what_others_hold_is_theirs,
        both_place_at_once,
        only_the_leader_writes,
        a_budget_says_no
    )
}
