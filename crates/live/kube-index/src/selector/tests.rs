//! Labels, node affinity, taints.

use super::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[test]
fn labels_meet_conditions_as_the_api_documents_them() {
    let labels: Labels = read(json!({"app": "web", "tier": "front"}));
    let cases = [
        (json!({}), true),
        (json!({"matchLabels": {"app": "web"}}), true),
        (json!({"matchLabels": {"app": "web", "tier": "back"}}), false),
        (
            json!({"matchExpressions": [
            {"key": "app", "operator": "In", "values": ["db", "web"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
            false,
        ),
        // An absent label is in no list.
        (
            json!({"matchExpressions": [{"key": "gone", "operator": "NotIn", "values": ["web"]}]}),
            true,
        ),
        (json!({"matchExpressions": [{"key": "gone", "operator": "In", "values": [""]}]}), false),
        (json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true),
        (json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false),
        (json!({"matchExpressions": [{"key": "app", "operator": "Near"}]}), false),
    ];
    for (selector, expected) in cases {
        assert_eq!(labels_match(&read(selector.clone()), &labels), expected, "{selector}");
    }
}

#[test]
fn one_term_of_a_node_selector_is_enough_and_an_empty_one_selects_nothing() {
    let labels: Labels = read(json!({"zone": "a", "cores": "64", "model": "x1"}));
    let expressions = |key: &str, operator: &str, values: Value| {
        json!({"nodeSelectorTerms": [{"matchExpressions": [
            {"key": key, "operator": operator, "values": values}]}]})
    };
    let cases = [
        (json!({"nodeSelectorTerms": []}), false),
        (json!({"nodeSelectorTerms": [{}]}), false),
        (
            json!({"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["b"]}]},
            {"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}),
            true,
        ),
        (expressions("cores", "Gt", json!(["63"])), true),
        (expressions("cores", "Gt", json!(["64"])), false),
        (expressions("cores", "Lt", json!(["65"])), true),
        (expressions("model", "Gt", json!(["1"])), false),
        (expressions("gone", "Lt", json!(["1"])), false),
    ];
    for (selector, expected) in cases {
        assert_eq!(node_matches(&read(selector.clone()), "n1", &labels), expected, "{selector}");
    }
}

#[test]
fn tolerations_cover_taints_as_the_api_documents_them() {
    let taint = |effect: &str| json!({"key": "gpu", "value": "8", "effect": effect});
    let cases = [
        (json!({"key": "gpu", "operator": "Equal", "value": "8"}), "NoSchedule", true),
        (json!({"key": "gpu", "value": "8"}), "NoExecute", true),
        (json!({"key": "gpu", "value": "4"}), "NoSchedule", false),
        (json!({"key": "gpu", "operator": "Exists"}), "NoSchedule", true),
        (json!({"operator": "Exists"}), "NoSchedule", true),
        (json!({"key": "other", "operator": "Exists"}), "NoSchedule", false),
        (json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}), "NoSchedule", false),
        (json!({"key": "gpu", "operator": "Gt", "value": "7"}), "NoSchedule", true),
        (json!({"key": "gpu", "operator": "Gt", "value": "8"}), "NoSchedule", false),
        (json!({"key": "gpu", "operator": "Lt", "value": "9"}), "NoSchedule", true),
        (json!({"key": "none", "operator": "Exists"}), "PreferNoSchedule", true),
    ];
    for (toleration, effect, covered) in cases {
        let taints: Vec<Taint> = vec![read(taint(effect))];
        let kept_away = untolerated(&taints, &[read(toleration.clone())]).is_some();
        assert_eq!(!kept_away, covered, "{toleration} {effect}");
    }
}

#[test]
fn what_cannot_be_judged_is_said_with_what_to_write_instead() {
    let near = json!({"matchExpressions": [{"key": "app", "operator": "Near"}]});
    let said = check_labels(&read(near.clone())).unwrap_err();
    assert!(said.contains("`Near`") && said.contains("DoesNotExist"), "{said}");
    // Numbers are compared of nodes only.
    let above = json!({"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]});
    assert!(check_labels(&read(above.clone())).is_err());
    assert_eq!(check_nodes(&read(json!({"nodeSelectorTerms": [above]}))), Ok(()));

    let word = json!({"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["many"]}]});
    assert!(check_nodes(&read(json!({"nodeSelectorTerms": [word]}))).is_err());
    let field = json!({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["1"]}]});
    let said = check_nodes(&read(json!({"nodeSelectorTerms": [field]}))).unwrap_err();
    assert!(said.contains("metadata.name"), "{said}");

    assert!(check_toleration(&read(json!({"key": "a", "operator": "Near"}))).is_err());
    assert!(check_toleration(&read(json!({"key": "a", "operator": "Gt", "value": "x"}))).is_err());
    assert_eq!(
        check_toleration(&read(json!({"key": "a", "operator": "Lt", "value": "3"}))),
        Ok(())
    );
}
