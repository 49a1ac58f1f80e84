//! What several tests need: objects in a few words.

use crate::SCHEDULER;
use deepshare_e2e::{Bed, JobDraft, PodDraft, Scheduler, Stage, wait};
use deepshare_testbed::NodeSpec;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

/// So many nodes of so many GPUs.
pub fn nodes(count: usize, gpus: usize) -> NodeSpec {
    NodeSpec { count, gpus, ..NodeSpec::default() }
}

/// A scheduler with these settings that knows the cluster.
pub async fn scheduling(bed: &Bed, settings: &str) -> Scheduler {
    let scheduler = Scheduler::start(bed, SCHEDULER, settings);
    scheduler.until_ready().await;
    scheduler
}

/// Ends a test: what is always true was true, and no node refused a pod.
pub async fn end(stage: Stage<'_>, scheduler: Scheduler) {
    let evidence = stage.strike(vec![scheduler]).await.unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(evidence.rejected, Vec::<String>::new(), "pods that their nodes refused");
}

/// A guaranteed pod with so many whole GPUs.
pub fn whole(name: &str, gpus: u32) -> PodDraft {
    PodDraft::new(name).deepshare("class", "guaranteed").gpus(gpus)
}

/// A best-effort pod with so many whole GPUs.
pub fn borrower(name: &str, gpus: u32) -> PodDraft {
    PodDraft::new(name).deepshare("class", "best-effort").gpus(gpus)
}

/// A Job of one pod.
pub fn alone(pod: PodDraft) -> JobDraft {
    JobDraft { pod, pods: 1 }
}

/// A Job whose pods start together or not at all.
pub fn gang(pod: PodDraft, pods: u32) -> JobDraft {
    JobDraft { pod: pod.deepshare("gang-size", &pods.to_string()), pods }
}

/// A ReplicaSet, which makes a new pod as soon as one is to go, while that one still stops.
pub fn replica_set(namespace: &str, name: &str, pods: u32, annotations: &Value) -> Value {
    let resources = json!({ "limits": { "deepshare.io/gpu": "2" } });
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "replicas": pods,
            "selector": { "matchLabels": { "job-name": name } },
            "template": {
                "metadata": { "labels": { "job-name": name }, "annotations": annotations },
                "spec": {
                    "schedulerName": "deepshare",
                    "containers": [{ "name": "main", "image": "train", "resources": resources }],
                },
            },
        },
    })
}

/// Deletes a Job with its pods.
pub async fn withdraw(bed: &Bed, stage: &Stage<'_>, tenant: &str, job: &str) {
    let jobs: Api<Job> = Api::namespaced(bed.admin.clone(), &stage.namespace(tenant));
    jobs.delete(job, &DeleteParams::background()).await.expect("the Job is deleted");
}

/// The node of a pod, once it is bound.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Why a pod waits, if it was told: the reason and message of its condition.
pub fn why(pod: &Pod) -> Option<(String, String)> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    (scheduled.status == "False").then(|| (text(&scheduled.reason), text(&scheduled.message)))
}

/// Waits until every pod of a Job is told the same reason for its waiting, which begins so; the
/// message.
pub async fn waits_for(stage: &Stage<'_>, tenant: &str, job: &str, reason: &str) -> String {
    wait(&format!("{tenant}'s {job} is told {reason}"), async || {
        let pods = stage.pods(tenant, job).await;
        let told: Option<Vec<_>> = pods.iter().map(why).collect();
        let mut told = told?.into_iter();
        let (_, message) = told.next().filter(|(said, _)| said == reason)?;
        told.all(|(said, _)| said == reason).then_some(message)
    })
    .await
}

/// Lets no pod of a Job be disrupted; `JOB-stays` is its budget. Waits until that is counted.
pub async fn protect(bed: &Bed, namespace: &str, job: &str) {
    let name = format!("{job}-stays");
    bed.create(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "job-name": job } } },
    }))
    .await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(bed.admin.clone(), namespace);
    wait(&format!("{name} is counted"), async || {
        let status = budgets.get(&name).await.ok()?.status?;
        (status.expected_pods == 1 && status.current_healthy == 1).then_some(())
    })
    .await;
}
