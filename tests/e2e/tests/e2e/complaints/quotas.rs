//! Confusion about quotas.

use crate::scene::{alone, end, nodes, scheduling, waits_for, whole};
use deepshare_e2e::{Bed, Beds, PodDraft, Stage, quota_with, wait};
use deepshare_kube_api::TenantQuota;
use kube::Api;
use libtest_mimic::Trial;
use serde_json::json;
use std::sync::Arc;

/// koordinator-sh/koordinator#2565: pods with whole GPUs and pods with a fraction of one were
/// charged to different quotas, so that a tenant had both.
async fn whole_gpus_and_slots_count_against_one_quota(bed: &Bed) {
    let mut stage = Stage::set(bed, "charged", nodes(1, 4)).await;
    stage.tenant("red", 2, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    let slot = |name: &str| alone(PodDraft::new(name).deepshare("class", "guaranteed").slot());
    stage.submit("red", &alone(whole("whole", 1))).await;
    stage.submit("red", &slot("slot")).await;
    stage.running("red", "whole", 1).await;
    stage.running("red", "slot", 1).await;
    stage.submit("red", &slot("more")).await;
    waits_for(&stage, "red", "more", "OverQuota").await;
    let quotas: Api<TenantQuota> = Api::all(bed.admin.clone());
    let (name, used) = (stage.namespace("red"), "the quota shows two GPUs in use");
    wait(used, async || {
        let status = quotas.get_status(&name).await.ok()?.status?;
        (status.guaranteed == 2).then_some(())
    })
    .await;
    end(stage, scheduler).await;
}

/// kubernetes-sigs/kueue#4050 and #5139: what was configured wrongly showed nowhere, and its status
/// stayed unknown.
async fn a_quota_that_cannot_work_as_written_says_so(bed: &Bed) {
    let mut stage = Stage::set(bed, "wrong", nodes(1, 2)).await;
    stage.tenant("red", 1, &json!({})).await;
    stage.tenant("orphan", 1, &json!({ "parent": "nobody" })).await;
    stage.tenant("rich", 9, &json!({})).await;
    // Later, and of one second the later by name.
    let red = stage.namespace("red");
    let late = format!("{red}-late");
    bed.create(quota_with(&late, &red, &json!({ "*": 1 }), &json!({}))).await;
    let scheduler = scheduling(bed, "").await;
    let quotas: Api<TenantQuota> = Api::all(bed.admin.clone());
    for (tenant, condition, reason) in [
        (red, "Ready", "Served"),
        (stage.namespace("orphan"), "Ready", "ParentMissing"),
        (stage.namespace("rich"), "Satisfiable", "QuotaExceedsCluster"),
        (late, "Ready", "NamespaceConflict"),
    ] {
        wait(&format!("{tenant} says {reason}"), async || {
            let status = quotas.get(&tenant).await.ok()?.status?;
            let said = status.conditions.iter().find(|said| said.kind == condition)?;
            (said.reason == reason && !said.message.is_empty()).then_some(())
        })
        .await;
    }
    // Somebody has to be scheduled for there to be a decision.
    stage.submit("red", &alone(whole("served", 1))).await;
    stage.running("red", "served", 1).await;
    end(stage, scheduler).await;
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(
        beds,
        whole_gpus_and_slots_count_against_one_quota,
        a_quota_that_cannot_work_as_written_says_so
    )
}
