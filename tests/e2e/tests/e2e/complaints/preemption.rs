//! Preempting too much, in circles, or past disruption budgets.

use crate::scene::{
    alone, borrower, end, gang, node_of, nodes, protect, replica_set, scheduling, whole, why,
    withdraw,
};
use deepshare_e2e::{Bed, Beds, Stage, wait};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::DeleteParams;
use libtest_mimic::Trial;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// kubernetes-sigs/kueue#13662 and volcano-sh/volcano#4947: of two victims one stopped earlier, was
/// admitted again into the space that was being cleared, and had to go again.
async fn who_stops_early_does_not_come_back_into_the_space_that_is_being_cleared(bed: &Bed) {
    let mut stage = Stage::set(bed, "cleared", nodes(2, 2)).await;
    stage.tenant("red", 4, &json!({})).await;
    stage.tenant("blue", 2, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    for (name, seconds) in [("quick", "0.2"), ("slow", "4")] {
        let annotations = json!({
            "deepshare.io/class": "best-effort",
            "testbed.deepshare.io/stop-seconds": seconds,
        });
        bed.create(replica_set(&stage.namespace("blue"), name, 1, &annotations)).await;
        stage.running("blue", name, 1).await;
    }
    stage.submit("red", &gang(whole("wide", 2), 2)).await;
    stage.running("red", "wide", 2).await;
    for name in ["quick", "slow"] {
        let pods = stage.pods("blue", name).await;
        assert!(pods.iter().all(|pod| node_of(pod).is_none()), "{name} came back: {pods:?}");
    }
    let seen = stage.so_far();
    let blue = format!("{}/", stage.namespace("blue"));
    let placed = seen.pods.values().filter(|pod| pod.name.starts_with(&blue));
    let placed = placed.filter(|pod| pod.node.is_some()).count();
    assert_eq!(placed, 2, "nobody was started to be evicted again");
    withdraw(bed, &stage, "red", "wide").await;
    stage.running("blue", "quick", 1).await;
    stage.running("blue", "slow", 1).await;
    end(stage, scheduler).await;
}

/// kai-scheduler/KAI-Scheduler#1579 and volcano-sh/volcano#2947: victims were deleted directly,
/// which no disruption budget can stop.
async fn a_pod_whose_budget_is_used_up_is_not_evicted_however_long_another_waits(bed: &Bed) {
    let mut stage = Stage::set(bed, "budget", nodes(1, 2)).await;
    stage.tenant("red", 2, &json!({})).await;
    stage.tenant("blue", 1, &json!({})).await;
    // How long a pod whose eviction was refused is left alone.
    let scheduler = scheduling(bed, "[backoff]\nmax_s = 3\n").await;
    let blue = stage.namespace("blue");
    stage.submit("blue", &alone(borrower("kept", 2))).await;
    stage.running("blue", "kept", 1).await;
    protect(bed, &blue, "kept").await;
    stage.submit("red", &alone(whole("own", 2))).await;
    wait("own is told that the budget refused", async || {
        let own = stage.pods("red", "own").await;
        let (_, message) = why(own.first()?)?;
        message.contains("disruption budget").then_some(())
    })
    .await;
    // Long enough to ask again.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let goes = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let kept = stage.pods("blue", "kept").await;
    assert!(kept.len() == 1 && !goes(&kept[0]), "{kept:?}");
    let own = stage.pods("red", "own").await;
    assert!(own.iter().all(|pod| node_of(pod).is_none()), "{own:?}");
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(bed.admin.clone(), &blue);
    budgets.delete("kept-stays", &DeleteParams::default()).await.expect("the budget is deleted");
    stage.running("red", "own", 1).await;
    end(stage, scheduler).await;
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(
        beds,
        who_stops_early_does_not_come_back_into_the_space_that_is_being_cleared,
        a_pod_whose_budget_is_used_up_is_not_evicted_however_long_another_waits
    )
}
