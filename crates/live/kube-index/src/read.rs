//! What a pod says, read once: GPUs, annotations, and what is wrong with them.

use crate::accounting;
use crate::devices::GpuKind;
use crate::pods::{PodFacts, Wish};
use crate::quantity::Quantity;
use crate::refusal::{gpu_request_of, gpu_user};
use crate::resize::Amounts;
use crate::watched::{self, ConditionKind, ContainerState, Phase, Pod};
use deepshare_kube_api::{Decision, names};
use deepshare_model::{Resources, SiteId, Span, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which GPUs a pod that takes so much asks for, and how many, if it does in a way that makes sense.
pub(crate) fn gpus(pod: &Pod, takes: &accounting::Amounts) -> Option<(GpuKind, u32)> {
    let asked = gpu_request_of(pod, takes).ok()?;
    let kind = GpuKind::ALL.into_iter().find(|kind| kind.resource() == asked.resource)?;
    Some((kind, asked.count))
}

/// CPU and memory, as the engine counts them.
fn host(takes: &accounting::Amounts) -> Resources {
    Resources { cpu_milli: takes.cpu_milli(), memory_mib: takes.memory().div_ceil(1 << 20) }
}

/// What is known of a pod that takes so much, and these GPUs, apart from what it wishes.
pub(crate) fn facts(
    pod: &Pod,
    ours: bool,
    takes: &accounting::Amounts,
    asked: Option<(GpuKind, u32)>,
) -> PodFacts {
    let (metadata, spec, status) = (&pod.metadata, &pod.spec, &pod.status);
    let uid: Arc<str> = (*metadata.uid).into();
    let phase = status.phase;
    let states = || status.container_statuses.iter().map(|container| &container.state);
    let since = states().filter_map(|state| match state {
        ContainerState::Running { since } => since.and_then(instant),
        _ => None,
    });
    let started = since.max().filter(|_| phase == Phase::Running);
    let out_of_memory = states().any(|state| {
        matches!(state, ContainerState::Terminated { reason, .. } if &**reason == "OOMKilled")
    });
    let said = status.condition(ConditionKind::PodScheduled).filter(|condition| !condition.holds);
    let preempted = status.condition(ConditionKind::DisruptionTarget);
    let decision = metadata.annotations.get(names::DECISION);
    let decision = decision.and_then(|text| Decision::read(text, &uid).ok());
    PodFacts {
        namespace: (*metadata.namespace).into(),
        name: metadata.name.clone(),
        created: metadata.creation_timestamp.map_or(0, |at| at.as_second()),
        ours,
        node: spec.node_name.as_deref().map(Arc::from),
        preempted: preempted.is_some_and(|at| at.holds && &*at.reason == names::PREEMPTED),
        deleting: metadata.deletion_timestamp.is_some(),
        phase,
        status_reason: status.reason.clone(),
        out_of_memory,
        started: started.or_else(|| {
            // Some runtimes do not say since when.
            let runs = phase == Phase::Running;
            runs.then(|| status.start_time.and_then(instant)).flatten()
        }),
        gated: !spec.scheduling_gates.is_empty(),
        labels: metadata.labels.clone(),
        whole: None,
        decision: decision.map(Box::new),
        asked: None,
        kind: asked.map(|(kind, _)| kind),
        gpus: asked.map_or(0, |(_, gpus)| gpus),
        host: host(takes),
        visible: visible(pod),
        said: said.map(|condition| (condition.reason.clone(), condition.message.clone())),
        nominated: status.nominated_node_name.is_some(),
        wish: None,
        uid,
    }
}

/// Requests of all containers as their kubelet shows them; `None` until it shows every one.
fn visible(pod: &Pod) -> Option<Resources> {
    let mut sum = Resources::default();
    for container in &pod.spec.containers {
        let shown = pod.status.container_statuses.iter().find(|s| s.name == container.name)?;
        if shown.requests.is_empty() {
            return None;
        }
        sum.cpu_milli += shown.requests.get("cpu").unwrap_or(0);
        sum.memory_mib += shown.requests.get("memory").unwrap_or(0).div_ceil(1 << 20);
    }
    Some(sum)
}

fn requested(container: &watched::Container) -> Resources {
    let cpu_milli = container.requests.get("cpu").unwrap_or(0);
    let memory_mib = container.requests.get("memory").unwrap_or(0).div_ceil(1 << 20);
    Resources { cpu_milli, memory_mib }
}

/// What the containers of a pod that was shrunk requested before, by name.
fn original(pod: &Pod) -> BTreeMap<String, Resources> {
    let text = pod.metadata.annotations.get(names::ORIGINAL_REQUESTS).unwrap_or("{}");
    let amounts: Amounts = serde_json::from_str(text).unwrap_or_default();
    let read = |amounts: &BTreeMap<String, String>, resource: &str| {
        let amount = amounts.get(resource)?.parse::<Quantity>().ok()?;
        crate::quantity::base_units(resource, amount).ok()
    };
    let containers = amounts.into_iter().filter_map(|(name, amounts)| {
        let cpu_milli = read(&amounts, "cpu")?;
        let memory_mib = read(&amounts, "memory")?.div_ceil(1 << 20);
        Some((name, Resources { cpu_milli, memory_mib }))
    });
    containers.collect()
}

pub(crate) fn instant(at: jiff::Timestamp) -> Option<Time> {
    u64::try_from(at.as_microsecond()).ok().map(Time)
}

/// What a pod of ours wishes, and the first thing that is wrong with it: a word and a sentence.
pub(crate) fn wish(pod: &Pod, kind: Option<GpuKind>) -> (Wish, Option<(String, String)>) {
    let (metadata, spec) = (&pod.metadata, &pod.spec);
    let mut refusal: Option<(String, String)> = None;
    let mut note = |annotation: &str, text: &str, remedy: &str| {
        let message = format!("annotation {annotation} is {text:?}: {remedy}");
        refusal.get_or_insert(("BadAnnotation".to_owned(), message));
    };
    let annotation = |name: &'static str| Some((name, metadata.annotations.get(name)?));
    let run_time = annotation(names::RUN_TIME).and_then(|(name, text)| {
        let span = duration(text);
        if span.is_none() {
            note(name, text, "write a duration such as 90m, 1h30m or a number of seconds");
        }
        span
    });
    let mut quantity = |name: &'static str, resource: &str, remedy: &str| {
        let (name, text) = annotation(name)?;
        let amount = text.parse::<Quantity>().ok();
        let amount = amount.and_then(|amount| crate::quantity::base_units(resource, amount).ok());
        if amount.is_none() {
            note(name, text, remedy);
        }
        amount
    };
    let gpu_memory = quantity(names::GPU_MEMORY, "memory", "write a quantity such as 16Gi");
    let cpu = quantity(names::RECOMMENDED_CPU, "cpu", "write a quantity such as 500m");
    let memory = quantity(names::RECOMMENDED_MEMORY, "memory", "write a quantity such as 4Gi");
    let colocation = match annotation(names::COLOCATION) {
        None | Some((_, "true")) => true,
        Some((_, "false")) => false,
        Some((name, text)) => {
            note(name, text, "write true or false");
            false
        }
    };
    let slowdown_limit_milli = annotation(names::SLOWDOWN_LIMIT).map_or(0, |(name, text)| {
        let limit = text.parse::<f64>().ok().filter(|limit| (1.0..=1_000.0).contains(limit));
        if limit.is_none() {
            note(name, text, "write a factor from 1 to 1000, such as 1.5");
        }
        limit.map_or(0, |limit| (limit * 1_000.0).round() as u32)
    });
    let containers = spec.containers.iter().filter_map(|container| {
        let gpus = container.requests.get(kind?.resource()).filter(|gpus| *gpus > 0)?;
        Some((container.name.clone(), gpus as u32))
    });
    // A change of requests must not change the quality-of-service class: only Burstable pods shrink,
    // and only those that no resize restarts.
    let shrinks = pod.status.qos_class.as_deref() == Some("Burstable")
        && spec.requests.is_empty()
        && !spec.containers.iter().any(|container| container.restarts_on_resize);
    let before = original(pod);
    let resizable = spec.containers.iter().filter(|_| shrinks).map(|container| {
        let own = before.get(&*container.name).copied();
        (container.name.clone(), own.unwrap_or_else(|| requested(container)))
    });
    let recommended = match (cpu, memory) {
        (Some(cpu_milli), Some(memory)) if shrinks => {
            Some(Resources { cpu_milli, memory_mib: memory.div_ceil(1 << 20) })
        }
        _ => None,
    };
    let gpu_memory_mib =
        gpu_memory.map_or(0, |bytes| u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX));
    let wish = Wish {
        refusal: None,
        site: SiteId(0),
        class: metadata.annotations.get(names::CLASS).map(Into::into),
        group: None,
        owner: metadata.controller().map(|owner| Arc::from(&*owner.uid)),
        priority: spec.priority,
        never_preempts: spec.never_preempts,
        run_time,
        profile: metadata.annotations.get(names::PROFILE).map(Into::into),
        gpu_memory_mib,
        gpu_type: metadata.annotations.get(names::GPU_TYPE).map(Into::into),
        colocation,
        run_as: gpu_user(pod),
        slowdown_limit_milli,
        recommended,
        grace_s: spec.termination_grace_period_seconds,
        containers: containers.collect(),
        resizable: resizable.collect(),
    };
    (wish, refusal)
}

/// `90m`, `1h30m`, `2d`, or a number of seconds.
fn duration(text: &str) -> Option<Span> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Span::from_secs_f64(seconds);
    }
    let mut seconds = 0.0;
    let mut number = String::new();
    for character in text.chars() {
        if character.is_ascii_digit() || character == '.' {
            number.push(character);
            continue;
        }
        let unit = match character {
            's' => 1.0,
            'm' => 60.0,
            'h' => 3_600.0,
            'd' => 86_400.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        number.clear();
    }
    (number.is_empty() && !text.is_empty()).then(|| Span::from_secs_f64(seconds)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let secs = |text| duration(text).map(|span| span.0 / 1_000_000);
        assert_eq!(secs("90"), Some(90));
        assert_eq!(secs("90m"), Some(5_400));
        assert_eq!(secs("1h30m"), Some(5_400));
        assert_eq!(secs("1.5h"), Some(5_400));
        assert_eq!(secs("2d"), Some(172_800));
        for bad in ["", "m", "1x", "h1", "-5", "1h30", "nan"] {
            assert_eq!(secs(bad), None, "{bad}");
        }
    }
}
