//! Which pods are alike to every node.

use super::*;
use serde_json::{Value, json};

fn pod(name: &str, labels: Value, spec: Value) -> Pod {
    let meta = json!({"name": name, "namespace": "vision", "labels": labels});
    serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
}

fn of(pod: &Pod) -> Requirements {
    Requirements::of(pod, &Namespaces::new())
}

#[test]
fn pods_that_differ_only_in_what_no_node_cares_about_require_the_same() {
    let spec = |cpu: &str, zones: Value, keys: [&str; 2]| {
        json!({
            "containers": [{"name": "main", "resources": {"requests": {
                "cpu": cpu, "deepshare.io/gpu": "1", "ephemeral-storage": "1Gi"}}}],
            "tolerations": [{"key": keys[0], "operator": "Exists"},
                            {"key": keys[1], "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": "In", "values": zones}]}]}}}})
    };
    let one = pod("a", json!({"job-name": "a"}), spec("1", json!(["x", "y"]), ["k", "l"]));
    let same = pod("b", json!({"job-name": "b"}), spec("4", json!(["y", "x"]), ["l", "k"]));
    let other = pod("b", json!({}), spec("1", json!(["x"]), ["k", "l"]));
    assert_eq!(of(&one), of(&same));
    assert_ne!(of(&one), of(&other));
    let resources: Vec<_> = of(&one).resources.iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(resources, ["ephemeral-storage"], "not GPUs, CPU, memory or its place");
}

#[test]
fn whether_a_pod_meets_its_own_rule_is_part_of_what_it_requires() {
    let spec = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}]}}});
    let one = of(&pod("a", json!({"app": "a"}), spec.clone()));
    let other = of(&pod("b", json!({"app": "b"}), spec));
    assert_eq!(one.anti_affinity[0].0, other.anti_affinity[0].0);
    assert_eq!((one.anti_affinity[0].1, other.anti_affinity[0].1), (true, false));
}

#[test]
fn match_label_keys_narrow_a_selector_to_the_pods_own_value() {
    let spec = json!({"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["version", "absent"]}]});
    let spread = &of(&pod("a", json!({"app": "a", "version": "2"}), spec)).spread[0];
    let labels =
        |version: &str| -> Labels { [("app", "a"), ("version", version)].into_iter().collect() };
    let counted =
        |version: &str| spread.term.matches("vision", &labels(version), &Namespaces::new());
    assert!(spread.counts_itself);
    assert_eq!((counted("2"), counted("1")), (true, false));
}

#[test]
fn namespaces_of_a_term_are_its_own_the_listed_and_the_selected_ones() {
    let namespaces: Namespaces =
        [("speech".into(), [("team", "s")].into_iter().collect())].into_iter().collect();
    let cases = [
        (json!({}), [true, false, false]),
        (json!({"namespaces": ["text"]}), [false, true, false]),
        (json!({"namespaceSelector": {}}), [true, true, true]),
        (
            json!({"namespaceSelector": {"matchLabels": {"team": "s"}}, "namespaces": ["text"]}),
            [false, true, true],
        ),
        (json!({"labelSelector": null}), [false, false, false]),
    ];
    for (fields, expected) in cases {
        let mut term = json!({"topologyKey": "zone", "labelSelector": {}});
        term.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let spec = json!({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
        let requirements = Requirements::of(&pod("a", json!({}), spec), &namespaces);
        let meant = ["vision", "text", "speech"].map(|namespace| {
            requirements.affinity[0].matches(namespace, &Labels::default(), &namespaces)
        });
        assert_eq!(meant, expected, "{fields}");
    }
}
