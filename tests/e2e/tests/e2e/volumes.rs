//! Volumes that are made once their pod has a node. The controller manager does its own part, and the
//! test is the provisioner: what it is asked, what it makes, and what it cannot make.

use crate::scene::{alone, end, gang, node_of, nodes, scheduling, waits_for, whole};
use deepshare_e2e::{Bed, Beds, PodDraft, Stage, wait};
use deepshare_kube_api::names::SELECTED_NODE;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::sync::Arc;

const PROVISIONER: &str = "storage.deepshare.test";

/// A class of volumes, and whoever makes them.
struct Storage<'a> {
    bed: &'a Bed,
    namespace: String,
    class: String,
}

impl<'a> Storage<'a> {
    async fn of(bed: &'a Bed, stage: &Stage<'_>, tenant: &str) -> Storage<'a> {
        let namespace = stage.namespace(tenant);
        let class = format!("{namespace}-storage");
        bed.create(json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": { "name": class },
            "provisioner": PROVISIONER,
            "volumeBindingMode": "WaitForFirstConsumer",
        }))
        .await;
        Storage { bed, namespace, class }
    }

    fn wish(&self) -> Value {
        json!({
            "storageClassName": self.class,
            "accessModes": ["ReadWriteMany"],
            "resources": { "requests": { "storage": "1Gi" } },
        })
    }

    async fn claim(&self, name: &str) {
        self.bed
            .create(json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": { "name": name, "namespace": self.namespace },
                "spec": self.wish(),
            }))
            .await;
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.bed.admin.clone(), &self.namespace)
    }

    /// Waits until the volume of the only claim is asked for; the claim, and for which node.
    async fn asked(&self) -> (PersistentVolumeClaim, String) {
        wait("a volume is asked for", async || {
            let claim = self.claims().list(&ListParams::default()).await.ok()?.items.pop()?;
            let notes = claim.metadata.annotations.clone().unwrap_or_default();
            // The controller manager's word that it is our turn.
            let ours = notes.get("volume.kubernetes.io/storage-provisioner")? == PROVISIONER;
            let node = notes.get(SELECTED_NODE).filter(|_| ours)?.clone();
            Some((claim, node))
        })
        .await
    }

    /// Has no room on the node that was chosen.
    async fn give_back(&self, claim: &PersistentVolumeClaim) {
        let name = claim.metadata.name.as_deref().expect("claims have names");
        let patch = json!({ "metadata": { "annotations": { SELECTED_NODE: null } } });
        let patch = Patch::Merge(patch);
        let patched = self.claims().patch(name, &PatchParams::default(), &patch).await;
        patched.expect("the claim is changed");
    }

    /// Makes the volume of a claim, for one node or for all.
    async fn make(&self, claim: &PersistentVolumeClaim, node: Option<&str>) {
        let (meta, uid) = (&claim.metadata, claim.metadata.uid.as_deref().unwrap_or_default());
        let mut volume = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": format!("{}-{uid}", self.class),
                "annotations": { "pv.kubernetes.io/provisioned-by": PROVISIONER },
            },
            "spec": {
                "capacity": { "storage": "1Gi" },
                "accessModes": ["ReadWriteMany"],
                "storageClassName": self.class,
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": meta.namespace,
                    "name": meta.name,
                    "uid": uid,
                },
                "csi": { "driver": PROVISIONER, "volumeHandle": uid },
            },
        });
        if let Some(node) = node {
            let here = json!({
                "key": "kubernetes.io/hostname", "operator": "In", "values": [node],
            });
            volume["spec"]["nodeAffinity"] =
                json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } });
        }
        self.bed.create(volume).await;
    }

    /// Takes down what belongs to no namespace.
    async fn end(self) {
        let volumes: Api<PersistentVolume> = Api::all(self.bed.admin.clone());
        let classes: Api<StorageClass> = Api::all(self.bed.admin.clone());
        let none = DeleteParams::default();
        let all = ListParams::default();
        volumes.delete_collection(&none, &all).await.expect("volumes are deleted");
        classes.delete(&self.class, &none).await.expect("the class is deleted");
    }
}

/// A pod with a volume of this claim.
fn with_claim(pod: PodDraft, claim: &str) -> PodDraft {
    let source = json!({ "claimName": claim });
    pod.spec("volumes", json!([{ "name": "data", "persistentVolumeClaim": source }]))
}

/// All members wait for the volume that they share, though their scheduler dies meanwhile.
async fn a_gang_is_bound_when_its_volume_has_been_made_whoever_schedules_by_then(bed: &Bed) {
    let mut stage = Stage::set(bed, "made", nodes(2, 2)).await;
    stage.tenant("red", 4, &json!({})).await;
    let storage = Storage::of(bed, &stage, "red").await;
    storage.claim("data").await;
    let lease = "[lease]\nduration_s = 3\nrenew_deadline_s = 2\nretry_s = 0.5\n";
    let mut scheduler = scheduling(bed, lease).await;
    stage.submit("red", &gang(with_claim(whole("train", 2), "data"), 2)).await;
    let (claim, node) = storage.asked().await;
    let message = waits_for(&stage, "red", "train", "AwaitingVolumes").await;
    assert!(message.contains("data"), "{message}");
    scheduler.kill();
    scheduler.start_again();
    scheduler.until_ready().await;
    let (_, still) = storage.asked().await;
    assert_eq!(still, node, "its provisioner is at work there");
    let pods = stage.pods("red", "train").await;
    assert!(pods.iter().all(|pod| node_of(pod).is_none()), "not before the volume is there");
    storage.make(&claim, None).await;
    stage.running("red", "train", 2).await;
    end(stage, scheduler).await;
    storage.end().await;
}

/// The claim of an ephemeral volume is made by the controller manager, after its pod.
async fn a_node_that_a_provisioner_gives_back_is_left_for_another(bed: &Bed) {
    let mut stage = Stage::set(bed, "back", nodes(2, 1)).await;
    stage.tenant("red", 2, &json!({})).await;
    let storage = Storage::of(bed, &stage, "red").await;
    let scheduler = scheduling(bed, "").await;
    let template = json!({ "volumeClaimTemplate": { "spec": storage.wish() } });
    let volumes = json!([{ "name": "scratch", "ephemeral": template }]);
    stage.submit("red", &alone(whole("train", 1).spec("volumes", volumes))).await;
    let (claim, first) = storage.asked().await;
    storage.give_back(&claim).await;
    let second = wait("another node is chosen", async || {
        let (_, node) = storage.asked().await;
        (node != first).then_some(node)
    })
    .await;
    storage.make(&claim, Some(&second)).await;
    let pods = stage.running("red", "train", 1).await;
    assert_eq!(node_of(&pods[0]), Some(&*second));
    end(stage, scheduler).await;
    storage.end().await;
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(
        beds,
        a_gang_is_bound_when_its_volume_has_been_made_whoever_schedules_by_then,
        a_node_that_a_provisioner_gives_back_is_left_for_another
    )
}
