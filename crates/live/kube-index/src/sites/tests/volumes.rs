//! What volumes ask of nodes.

use super::*;
use crate::refusal::RefusalKind;
use crate::sites::{Selection, Why};

const ANY: i64 = -1;

fn with_claim(name: &str) -> Value {
    pod(
        name,
        json!({}),
        json!({"volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}),
    )
}

fn claim(class: &str, volume: Option<&str>, mode: &str) -> Value {
    json!({"metadata": {"name": "data", "namespace": "vision"},
        "spec": {"storageClassName": class, "volumeName": volume, "accessModes": [mode]},
        "status": {"phase": if volume.is_some() { "Bound" } else { "Pending" }}})
}

fn volume(zone: &str) -> Value {
    json!({"metadata": {"name": "v"}, "spec": {
        "csi": {"driver": "csi.example.com"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "zone", "operator": "In", "values": [zone]}]}]}}}})
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
}

fn two_zones() -> Sites {
    Sites::with(&[node(1, json!({"zone": "a"})), node(2, json!({"zone": "b"}))])
}

#[test]
fn a_pod_goes_where_its_volume_can_be_reached() {
    let mut sites = two_zones();
    assert_eq!(sites.room(&with_claim("p")), [0, 0], "no claim yet");
    sites.apply(Change::Claim(&read(&claim("fast", Some("v"), "ReadWriteOnce"))));
    assert_eq!(sites.room(&with_claim("p")), [0, 0], "no volume yet");
    sites.apply(Change::Volume(&read(&volume("b"))));
    assert_eq!(sites.room(&with_claim("p")), [0, ANY]);
    assert_eq!(sites.volume_refusal(&read(&with_claim("p"))), None);
}

#[test]
fn a_claim_that_waits_for_its_first_pod_leaves_the_choice_until_a_node_is_selected() {
    let mut sites = two_zones();
    let mut fast = class("fast", "csi.example.com", "WaitForFirstConsumer");
    sites.apply(Change::Class(&read(&fast)));
    let mut waiting = claim("fast", None, "ReadWriteOnce");
    sites.apply(Change::Claim(&read(&waiting)));
    let asked: Pod = read(&with_claim("p"));
    assert_eq!(sites.room(&with_claim("p")), [ANY, ANY]);
    assert_eq!(sites.volume_refusal(&asked), None);
    assert_eq!(sites.claims_to_provision(&asked), ["vision/data".into()]);

    waiting["metadata"]["annotations"] = json!({"volume.kubernetes.io/selected-node": "n1"});
    sites.apply(Change::Claim(&read(&waiting)));
    assert_eq!(sites.room(&with_claim("p")), [ANY, 0]);

    sites.apply(Change::Selected("vision/data", Some(&Selection::Any)));
    assert_eq!(sites.room(&with_claim("p")), [ANY, ANY], "that was taken back");
    sites.apply(Change::Selected("vision/data", Some(&Selection::Node("n2".into()))));
    assert_eq!(sites.room(&with_claim("p")), [0, ANY], "another has been chosen since");
    let shut = |shut| Change::Shut { claim: "vision/data", node: "n2", shut };
    sites.apply(shut(true));
    assert_eq!(sites.room(&with_claim("p")), [0, 0], "which it could not be made for");
    sites.apply(shut(false));
    sites.apply(Change::Selected("vision/data", None));
    assert_eq!(sites.room(&with_claim("p")), [ANY, 0], "what the claim says counts");

    fast["allowedTopologies"] =
        json!([{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}]);
    sites.apply(Change::Class(&read(&fast)));
    assert_eq!(sites.room(&with_claim("p")), [0, 0], "selected where it cannot be made");
}

#[test]
fn whoever_was_assumed_on_a_node_is_held_against_what_has_become_of_it() {
    let mut sites = two_zones();
    let asked: Pod = read(&with_claim("p"));
    let fast = class("fast", "csi.example.com", "WaitForFirstConsumer");
    sites.apply(Change::Class(&read(&fast)));
    sites.apply(Change::Claim(&read(&claim("fast", None, "ReadWriteOncePod"))));
    sites.bind(&with_claim("p"), 1);
    assert_eq!(sites.recheck(NodeId(1), &asked), Ok(()), "its own use is not in its way");
    sites.apply(Change::Volume(&read(&volume("b"))));
    sites.apply(Change::Claim(&read(&claim("fast", Some("v"), "ReadWriteOncePod"))));
    let why = sites.recheck(NodeId(1), &asked).unwrap_err();
    assert_eq!(why, Why::Volume { claim: "vision/data".into() });
    assert_eq!(sites.recheck(NodeId(2), &asked), Ok(()));
    let mut cordoned = node(2, json!({"zone": "b"}));
    cordoned["spec"]["unschedulable"] = json!(true);
    sites.put(2, &cordoned);
    assert_eq!(sites.recheck(NodeId(2), &asked), Err(Why::Cordoned));
}

#[test]
fn a_claim_of_one_pod_at_a_time_excludes_others_everywhere() {
    let mut sites = two_zones();
    sites.apply(Change::Volume(&read(&volume("b"))));
    sites.apply(Change::Claim(&read(&claim("fast", Some("v"), "ReadWriteOncePod"))));
    assert_eq!(sites.room(&with_claim("p")), [0, 1]);
    sites.bind(&with_claim("first"), 2);
    assert_eq!(sites.room(&with_claim("p")), [0, 0]);
    let why = sites.check(NodeId(2), &read(&with_claim("p"))).unwrap_err();
    assert_eq!(why, Why::ClaimInUse { claim: "vision/data".into() });
    sites.apply(Change::PodGone("first"));
    assert_eq!(sites.room(&with_claim("p")), [0, 1]);
}

#[test]
fn a_node_attaches_as_many_volumes_as_its_driver_says() {
    let mut sites = two_zones();
    sites.apply(Change::Volume(&read(&volume("b"))));
    sites.apply(Change::Claim(&read(&claim("fast", Some("v"), "ReadWriteOnce"))));
    let drivers = |count: u32| {
        read(&json!({"metadata": {"name": "n2"}, "spec": {"drivers": [
            {"name": "csi.example.com", "allocatable": {"count": count}}]}}))
    };
    sites.apply(Change::Drivers(&drivers(0)));
    assert_eq!(sites.room(&with_claim("p")), [0, 0]);
    sites.apply(Change::Drivers(&drivers(1)));
    assert_eq!(sites.room(&with_claim("p")), [0, ANY], "one volume, shared by all of them");
}

#[test]
fn volumes_that_cannot_be_had_are_refused_with_what_to_do() {
    let mut sites = two_zones();
    sites.apply(Change::Class(&read(&class("now", "csi.example.com", "Immediate"))));
    let by_hand = class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
    sites.apply(Change::Class(&read(&by_hand)));
    for (claimed, kind, word) in [
        (None, RefusalKind::VolumeNotReady, "create it"),
        (Some("now"), RefusalKind::VolumeNotReady, "provisioner is at work"),
        (Some("gone"), RefusalKind::VolumeNotReady, "storage class does not exist"),
        (Some("local"), RefusalKind::VolumeUnsupported, "`volumeName`"),
    ] {
        if let Some(class) = claimed {
            sites.apply(Change::Claim(&read(&claim(class, None, "ReadWriteOnce"))));
        }
        let refusal = sites.volume_refusal(&read(&with_claim("p"))).unwrap();
        assert_eq!(refusal.kind, kind, "{claimed:?}");
        assert!(refusal.message.contains(word), "{}", refusal.message);
        assert_eq!(sites.room(&with_claim("p")), [0, 0], "{claimed:?}");
    }
}
