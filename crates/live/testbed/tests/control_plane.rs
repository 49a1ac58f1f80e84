//! The control plane comes up, serves its users what they may do, and leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use deepshare_testbed::{ControlPlane, Options, User, assets_or_skip, manifests};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;

const ACCOUNT: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: deepshare-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: deepshare-scheduler, namespace: deepshare-system}
";

#[tokio::test]
async fn it_serves_pods_and_holds_service_accounts_to_their_role() {
    let Some(assets) = assets_or_skip().unwrap() else { return };
    let plane = ControlPlane::start(&assets, Options::default()).await.unwrap();
    let admin = plane.admin().await.unwrap();
    plane.create_namespace("team").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(admin.clone(), "team");
    let pod = json!({
        "metadata": { "name": "first" },
        "spec": { "containers": [{ "name": "main", "image": "none" }] },
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();

    manifests::apply(&admin, ACCOUNT).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "deepshare-system");
    accounts.get("deepshare-scheduler").await.unwrap();
    let scheduler = plane.client(&User::scheduler()).await.unwrap();
    let refused = Api::<Node>::all(scheduler).list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("deepshare-system:deepshare-scheduler"), "{refused}");

    let folder = plane.folder().to_owned();
    drop(plane);
    assert!(!folder.exists(), "{} is left", folder.display());
}

#[tokio::test]
async fn a_failed_start_quotes_the_log_that_says_why() {
    let Some(assets) = assets_or_skip().unwrap() else { return };
    let flags = vec!["--no-such-flag".to_owned()];
    let options = Options { apiserver_flags: flags, ..Options::default() };
    let error = ControlPlane::start(&assets, options).await.unwrap_err().to_string();
    assert!(error.contains("kube-apiserver"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
}
