//! Restarts and failover.

use crate::scene::{alone, end, nodes, scheduling, waits_for, whole};
use deepshare_e2e::{Bed, Beds, Stage, wait};
use k8s_openapi::api::core::v1::Pod;
use libtest_mimic::Trial;
use serde_json::json;
use std::sync::Arc;

/// kubernetes-sigs/kueue#1654: a restarted controller admitted work again that was finished.
/// Project-HAMi/HAMi#1130 and #338: what was under way when a scheduler died stayed locked, and the
/// pod that waited was lost.
async fn after_a_crash_what_waited_is_started_and_what_had_finished_is_not(bed: &Bed) {
    let mut stage = Stage::set(bed, "crash", nodes(1, 2)).await;
    stage.tenant("red", 4, &json!({})).await;
    let lease = "[lease]\nduration_s = 3\nrenew_deadline_s = 2\nretry_s = 0.5\n";
    let mut scheduler = scheduling(bed, lease).await;
    stage.submit("red", &alone(whole("ends", 2).behaves("run-seconds", "3"))).await;
    stage.running("red", "ends", 1).await;
    stage.submit("red", &alone(whole("waits", 2))).await;
    waits_for(&stage, "red", "waits", "Unschedulable").await;
    scheduler.kill();
    let phases = async |job: &str| {
        let pods = stage.pods("red", job).await;
        let phase = |pod: Pod| pod.status.and_then(|status| status.phase).unwrap_or_default();
        pods.into_iter().map(phase).collect::<Vec<_>>()
    };
    wait("the job ends while nobody schedules", async || {
        (phases("ends").await == ["Succeeded"]).then_some(())
    })
    .await;
    stage.submit("red", &alone(whole("new", 1))).await;
    assert_eq!(phases("waits").await, ["Pending"]);
    scheduler.start_again();
    stage.running("red", "waits", 1).await;
    waits_for(&stage, "red", "new", "Unschedulable").await;
    assert_eq!(phases("ends").await, ["Succeeded"]);
    end(stage, scheduler).await;
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(beds, after_a_crash_what_waited_is_started_and_what_had_finished_is_not)
}
