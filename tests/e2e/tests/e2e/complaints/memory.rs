//! Memory.

use crate::scene::{alone, end, nodes, scheduling, waits_for, whole};
use deepshare_e2e::{Bed, Beds, Stage};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::sync::Arc;

const PODS: usize = 40;
/// Of each pod's environment, bytes.
const LARGE: usize = 300_000;

/// kai-scheduler/KAI-Scheduler#1634 and #1725: the scheduler kept pods as a whole, and ran out of
/// memory where they carried large environments.
async fn pods_with_huge_environments_do_not_fill_the_schedulers_memory(bed: &Bed) {
    let mut stage = Stage::set(bed, "huge", nodes(1, 1)).await;
    stage.tenant("red", 100, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    stage.submit("red", &alone(whole("first", 1))).await;
    stage.running("red", "first", 1).await;
    let red = bed.pods(&stage.namespace("red"));
    let pod = |number: usize, bytes: usize| -> Pod {
        let env: Value = json!([{ "name": "DATA", "value": "x".repeat(bytes) }]);
        let pod = json!({
            "metadata": { "name": format!("pod-{number}"), "labels": { "job-name": "huge" } },
            "spec": {
                "schedulerName": "deepshare",
                "containers": [{
                    "name": "main", "image": "train", "env": env,
                    "resources": { "limits": { "deepshare.io/gpu": 1 } },
                }],
            },
        });
        serde_json::from_value(pod).expect("a pod")
    };
    // What a few pods cost at first, buffers included, is not asked here.
    for number in 0..5 {
        red.create(&PostParams::default(), &pod(number, LARGE)).await.expect("a pod");
    }
    waits_for(&stage, "red", "huge", "Unschedulable").await;
    let before = scheduler.resident_bytes();
    for number in 5..5 + PODS {
        red.create(&PostParams::default(), &pod(number, LARGE)).await.expect("a pod");
    }
    waits_for(&stage, "red", "huge", "Unschedulable").await;
    let grown = scheduler.resident_bytes().saturating_sub(before);
    assert!(grown < PODS * LARGE / 2, "{PODS} pods of {LARGE} bytes cost {grown} bytes");
    end(stage, scheduler).await;
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(beds, pods_with_huge_environments_do_not_fill_the_schedulers_memory)
}
