//! Whether labels, nodes and taints meet what is asked of them.
//!
//! What cannot be judged (an operator of a later version, a bound that is no number) is found by the
//! `check_` functions beforehand; here it matches nothing.

use crate::watched::{
    LabelSelector, Labels, NodeSelector, NodeSelectorTerm, Operator, Requirement, Taint,
    TaintEffect, Toleration,
};

/// True if the labels meet every condition.
pub fn labels_match(selector: &LabelSelector, labels: &Labels) -> bool {
    selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().all(|one| meets(one, labels.get(&one.key)))
}

/// True if the labels have all these values (`spec.nodeSelector`).
pub fn has_all(wanted: &Labels, labels: &Labels) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// True if the node of this name and with these labels meets one of the terms.
pub fn node_matches(selector: &NodeSelector, name: &str, labels: &Labels) -> bool {
    selector.node_selector_terms.iter().any(|term| term_matches(term, name, labels))
}

fn term_matches(term: &NodeSelectorTerm, name: &str, labels: &Labels) -> bool {
    if term.match_expressions.is_empty() && term.match_fields.is_empty() {
        return false;
    }
    let field = |key: &str| (key == "metadata.name").then_some(name);
    term.match_expressions.iter().all(|one| meets(one, labels.get(&one.key)))
        && term.match_fields.iter().all(|one| meets(one, field(&one.key)))
}

fn meets(requirement: &Requirement, value: Option<&str>) -> bool {
    let given = |value: &str| requirement.values.iter().any(|one| **one == *value);
    match &requirement.operator {
        Operator::In => value.is_some_and(given),
        Operator::NotIn => !value.is_some_and(given),
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt | Operator::Lt => {
            let bound = requirement.values.first().and_then(|bound| bound.parse::<i64>().ok());
            match (value.and_then(|value| value.parse::<i64>().ok()), bound) {
                (Some(value), Some(bound)) => match requirement.operator {
                    Operator::Gt => value > bound,
                    _ => value < bound,
                },
                _ => false,
            }
        }
        Operator::Equal | Operator::Unknown(_) => false,
    }
}

/// The first taint that keeps new pods away and that no toleration covers.
pub fn untolerated<'t>(taints: &'t [Taint], tolerations: &[Toleration]) -> Option<&'t Taint> {
    let keeps_away = |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule;
    let mut taints = taints.iter().filter(keeps_away);
    taints.find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// True if the toleration covers the taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    if toleration.effect.is_some_and(|effect| effect != taint.effect)
        || !(toleration.key.is_empty() || toleration.key == taint.key)
    {
        return false;
    }
    let numbers =
        || Some((taint.value.parse::<i64>().ok()?, toleration.value.parse::<i64>().ok()?));
    match toleration.operator.as_ref().unwrap_or(&Operator::Equal) {
        Operator::Exists => true,
        Operator::Equal => !toleration.key.is_empty() && toleration.value == taint.value,
        // Since 1.35: the taint's value is a number above, or below, the one given.
        Operator::Gt => numbers().is_some_and(|(taint, bound)| taint > bound),
        Operator::Lt => numbers().is_some_and(|(taint, bound)| taint < bound),
        _ => false,
    }
}

/// Says what of a selector of labels cannot be judged, and what to do.
///
/// # Errors
/// A sentence for whoever wrote the pod.
pub fn check_labels(selector: &LabelSelector) -> Result<(), String> {
    selector.match_expressions.iter().try_for_each(|one| check(one, false))
}

/// Says what of a selector of nodes cannot be judged, and what to do.
///
/// # Errors
/// A sentence for whoever wrote the pod.
pub fn check_nodes(selector: &NodeSelector) -> Result<(), String> {
    for term in &selector.node_selector_terms {
        term.match_expressions.iter().try_for_each(|one| check(one, true))?;
        for field in &term.match_fields {
            if &*field.key != "metadata.name" {
                return Err(format!(
                    "`matchFields` of a node affinity names `{}`: only `metadata.name` is supported",
                    field.key
                ));
            }
            check(field, false)?;
        }
    }
    Ok(())
}

/// Says what of a toleration cannot be judged, and what to do.
///
/// # Errors
/// A sentence for whoever wrote the pod.
pub fn check_toleration(toleration: &Toleration) -> Result<(), String> {
    match toleration.operator.as_ref().unwrap_or(&Operator::Equal) {
        Operator::Equal | Operator::Exists => Ok(()),
        Operator::Gt | Operator::Lt if toleration.value.parse::<i64>().is_ok() => Ok(()),
        Operator::Gt | Operator::Lt => Err(format!(
            "the toleration of `{}` compares with `{}`: `Gt` and `Lt` take one whole number",
            toleration.key, toleration.value
        )),
        other => Err(format!(
            "the toleration of `{}` has operator `{}`: use `Equal`, `Exists`, `Gt` or `Lt`",
            toleration.key,
            word(other)
        )),
    }
}

fn check(requirement: &Requirement, numeric: bool) -> Result<(), String> {
    let key = &requirement.key;
    let number = || match &*requirement.values {
        [one] => one.parse::<i64>().is_ok(),
        _ => false,
    };
    match &requirement.operator {
        Operator::In | Operator::NotIn | Operator::Exists | Operator::DoesNotExist => Ok(()),
        Operator::Gt | Operator::Lt if numeric && number() => Ok(()),
        Operator::Gt | Operator::Lt if numeric => Err(format!(
            "the condition on `{key}` does not compare with a number: `Gt` and `Lt` take one whole \
             number"
        )),
        other => Err(format!(
            "the condition on `{key}` has operator `{}`: use `In`, `NotIn`, `Exists`{}",
            word(other),
            if numeric { ", `DoesNotExist`, `Gt` or `Lt`" } else { " or `DoesNotExist`" }
        )),
    }
}

fn word(operator: &Operator) -> &str {
    match operator {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::Gt => "Gt",
        Operator::Lt => "Lt",
        Operator::Equal => "Equal",
        Operator::Unknown(word) => word,
    }
}

#[cfg(test)]
mod tests;
