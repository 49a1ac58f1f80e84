//! Starvation and stuck gangs.

use crate::scene::{alone, end, gang, node_of, nodes, scheduling, waits_for, whole, withdraw};
use deepshare_e2e::{Bed, Beds, Stage, wait};
use deepshare_testbed::NodeSpec;
use libtest_mimic::Trial;
use serde_json::json;
use std::sync::Arc;

/// volcano-sh/volcano#3373: each of two gangs got a part of the cluster and waited for the rest for
/// ever.
async fn two_gangs_that_do_not_both_fit_never_hold_half_each(bed: &Bed) {
    let mut stage = Stage::set(bed, "halves", nodes(2, 2)).await;
    stage.tenant("red", 6, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    // Three and three of four GPUs, at once.
    let (one, other) = (gang(whole("one", 1), 3), gang(whole("other", 1), 3));
    tokio::join!(stage.submit("red", &one), stage.submit("red", &other));
    let bound = async |job: &str| {
        let pods = stage.pods("red", job).await;
        pods.iter().filter(|pod| node_of(pod).is_some()).count()
    };
    let (first, second) = wait("one of the gangs is bound", async || {
        match (bound("one").await, bound("other").await) {
            (3, 0) => Some(("one", "other")),
            (0, 3) => Some(("other", "one")),
            _ => None,
        }
    })
    .await;
    stage.running("red", first, 3).await;
    waits_for(&stage, "red", second, "Unschedulable").await;
    assert_eq!(bound(second).await, 0, "{second} holds a part of the cluster");
    withdraw(bed, &stage, "red", first).await;
    stage.running("red", second, 3).await;
    end(stage, scheduler).await;
}

/// kubernetes-sigs/kueue#8309 and #4809: the head of a queue waited for one kind of GPU, and all
/// behind it for the head, though they wanted another kind that idled.
async fn a_job_that_waits_for_one_gpu_type_holds_up_nobody_who_wants_another(bed: &Bed) {
    let mut stage = Stage::set(bed, "kinds", nodes(1, 2)).await;
    let spec =
        NodeSpec { prefix: "kinds-other".to_owned(), gpu_type: "H100".to_owned(), ..nodes(1, 2) };
    let others = bed.nodes(spec).await;
    stage.tenant("red", 4, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    let of = |name: &str, kind: &str| alone(whole(name, 2).deepshare("gpu-type", kind));
    stage.submit("red", &of("first", "H100")).await;
    stage.running("red", "first", 1).await;
    stage.submit("red", &of("head", "H100")).await;
    waits_for(&stage, "red", "head", "Unschedulable").await;
    stage.submit("red", &of("behind", "A100-80GB")).await;
    stage.running("red", "behind", 1).await;
    end(stage, scheduler).await;
    others.remove().await.expect("the nodes go");
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(
        beds,
        two_gangs_that_do_not_both_fit_never_hold_half_each,
        a_job_that_waits_for_one_gpu_type_holds_up_nobody_who_wants_another
    )
}
