//! Resizing in place.

use crate::scene::{alone, borrower, end, nodes, scheduling, whole};
use deepshare_e2e::{Bed, Beds, Stage};
use deepshare_testbed::NodeSpec;
use libtest_mimic::Trial;
use serde_json::json;
use std::sync::Arc;

/// kubernetes/kubernetes#126891 and #129532: a pod was bound into room that a resize had promised
/// and not yet made, and its node refused it.
async fn no_pod_is_bound_into_room_that_a_shrinking_pod_still_has(bed: &Bed) {
    let node = NodeSpec { cpus: 16, ..nodes(1, 2) };
    let mut stage = Stage::set(bed, "shrink", node).await;
    stage.tenant("red", 1, &json!({})).await;
    stage.tenant("blue", 1, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    let large = borrower("large", 1)
        .request("cpu", "12")
        .request("memory", "8Gi")
        .deepshare("recommended-cpu", "4")
        .deepshare("recommended-memory", "8Gi")
        .behaves("resize-seconds", "2");
    stage.submit("blue", &alone(large)).await;
    let before = stage.running("blue", "large", 1).await;
    stage.submit("red", &alone(whole("own", 1).request("cpu", "8"))).await;
    stage.running("red", "own", 1).await;
    // It gave way, and was not made to go.
    let after = stage.running("blue", "large", 1).await;
    assert_eq!(before[0].metadata.uid, after[0].metadata.uid);
    let shown = after[0].status.as_ref().and_then(|status| {
        let containers = status.container_statuses.as_ref()?;
        containers[0].resources.as_ref()?.requests.as_ref()?.get("cpu").cloned()
    });
    assert_eq!(shown.map(|cpu| cpu.0).as_deref(), Some("4500m"));
    end(stage, scheduler).await;
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(beds, no_pod_is_bound_into_room_that_a_shrinking_pod_still_has)
}
