//! Nodes and GPUs that fail.

use crate::scene::{end, node_of, nodes, replica_set, scheduling};
use deepshare_e2e::{Bed, Beds, Stage, wait};
use libtest_mimic::Trial;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// kubernetes-sigs/kueue#14244 and #12701: a workload whose nodes failed was given one new node, or
/// none, where several had failed.
async fn a_gang_that_loses_two_nodes_at_once_starts_again_as_a_whole_on_others(bed: &Bed) {
    let mut stage = Stage::set(bed, "lost", nodes(4, 2)).await;
    stage.tenant("red", 4, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    let annotations = json!({
        "deepshare.io/class": "best-effort",
        "deepshare.io/gang": "wide",
        "deepshare.io/gang-size": "2",
    });
    bed.create(replica_set(&stage.namespace("red"), "wide", 2, &annotations)).await;
    let places = async || {
        let pods = stage.running("red", "wide", 2).await;
        pods.iter().filter_map(node_of).map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let lost = places().await;
    assert_eq!(lost.len(), 2);
    for node in &lost {
        bed.burn_node(node).await;
    }
    wait("the gang runs on the other nodes", async || {
        places().await.is_disjoint(&lost).then_some(())
    })
    .await;
    end(stage, scheduler).await;
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(beds, a_gang_that_loses_two_nodes_at_once_starts_again_as_a_whole_on_others)
}
