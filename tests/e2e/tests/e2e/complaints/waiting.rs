//! Why a pod waits.

use crate::scene::{alone, borrower, end, gang, nodes, scheduling, waits_for, whole};
use deepshare_e2e::{Bed, Beds, Stage, wait};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use libtest_mimic::Trial;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// ai-dynamo/grove#226 and kubernetes-sigs/headlamp#6842: pods waited without any word of why, or
/// its parts had to be gathered from several objects.
async fn every_pod_that_waits_is_told_why_in_its_condition_and_an_event(bed: &Bed) {
    let mut stage = Stage::set(bed, "why", nodes(1, 2)).await;
    stage.tenant("red", 2, &json!({})).await;
    stage.space("nobody").await;
    let scheduler = scheduling(bed, "").await;
    stage.submit("red", &alone(whole("holds", 2))).await;
    stage.running("red", "holds", 1).await;
    let lone = whole("lone", 1).deepshare("gang-size", "2").deepshare("gang", "pair");
    let cases = [
        ("red", alone(whole("beyond", 1)), "OverQuota", "2 of 2"),
        ("red", alone(borrower("lent", 1)), "Unschedulable", "0 free"),
        ("red", alone(whole("wide", 3)), "LargerThanQuota", "3 GPUs"),
        ("red", alone(lone), "GangIncomplete", "1 of 2"),
        ("red", alone(whole("when", 1).deepshare("run-time", "soon")), "BadAnnotation", "soon"),
        ("nobody", alone(whole("stray", 1)), "NoTenant", "TenantQuota"),
    ];
    for (tenant, job, _, _) in &cases {
        stage.submit(tenant, job).await;
    }
    for (tenant, job, reason, part) in &cases {
        let name = job.job("")["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let message = waits_for(&stage, tenant, &name, reason).await;
        assert!(message.contains(part), "{name}: {message}");
        let pods = stage.pods(tenant, &name).await;
        let pod = pods[0].metadata.name.clone().unwrap_or_default();
        wait(&format!("an event about {pod}"), async || {
            let told = events_about(bed, &stage.namespace(tenant), &pod).await;
            told.iter().any(|note| note.contains(part)).then_some(())
        })
        .await;
    }
    end(stage, scheduler).await;
}

async fn events_about(bed: &Bed, namespace: &str, pod: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(bed.admin.clone(), namespace);
    let events = events.list(&ListParams::default()).await.expect("events are listed");
    let about = |event: &Event| {
        let regarding = event.regarding.as_ref().and_then(|object| object.name.as_deref());
        regarding == Some(pod) && event.reporting_controller.as_deref() == Some("deepshare")
    };
    let events = events.items.into_iter().filter(about);
    events.filter_map(|event| event.note).collect()
}

/// volcano-sh/volcano#3852: conditions of waiting pods were written again and again, and the API
/// server had no time for anything else.
async fn a_pod_that_waits_for_the_same_reason_is_not_written_again(bed: &Bed) {
    let mut stage = Stage::set(bed, "quiet", nodes(1, 2)).await;
    stage.tenant("red", 2, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    stage.submit("red", &alone(whole("holds", 1))).await;
    stage.running("red", "holds", 1).await;
    stage.submit("red", &gang(whole("waits", 1), 2)).await;
    waits_for(&stage, "red", "waits", "OverQuota").await;
    let versions = async || {
        let pods = stage.pods("red", "waits").await;
        pods.into_iter().map(|pod| pod.metadata.resource_version).collect::<Vec<_>>()
    };
    let before = versions().await;
    // Others come and go, so that there is something to look at anew.
    for name in ["a", "b", "c"] {
        let passes = borrower(name, 1).behaves("run-seconds", "0.3");
        stage.submit("red", &alone(passes)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(versions().await, before);
    end(stage, scheduler).await;
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(
        beds,
        every_pod_that_waits_is_told_why_in_its_condition_and_an_event,
        a_pod_that_waits_for_the_same_reason_is_not_written_again
    )
}
