//! What a pod takes of its node.

use super::observed::{Container, PodSpec, Resources};
use deepshare_kube_api::names;
use deepshare_kube_api::quantity::Quantity;
use std::collections::BTreeMap;

/// CPU and memory, each in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compute {
    /// Thousandths of a CPU.
    pub cpu: i128,
    /// Thousandths of a byte.
    pub memory: i128,
}

impl Compute {
    fn of(amounts: &BTreeMap<String, String>) -> Compute {
        let amount = |name| amounts.get(name).map_or(0, |text| milli(text));
        Compute { cpu: amount("cpu"), memory: amount("memory") }
    }

    /// The sum.
    pub fn plus(self, other: Compute) -> Compute {
        Compute { cpu: self.cpu + other.cpu, memory: self.memory + other.memory }
    }

    /// The larger of each.
    pub fn max(self, other: Compute) -> Compute {
        Compute { cpu: self.cpu.max(other.cpu), memory: self.memory.max(other.memory) }
    }
}

/// Thousandths of what a quantity says; a text that is none, or below zero, asks for nothing.
fn milli(text: &str) -> i128 {
    let quantity = text.parse::<Quantity>().ok();
    quantity.and_then(|quantity| quantity.as_milli().ok()).map_or(0, i128::from)
}

/// Requests of a pod: its containers side by side, or its init containers one after another beside
/// the sidecars started before them, whichever is more; the pod's own resources win over both; and
/// its overhead.
pub fn compute(spec: &PodSpec) -> Compute {
    let sum = |containers: &[Container]| {
        containers.iter().fold(Compute::default(), |sum, container| {
            sum.plus(Compute::of(&container.resources.requests))
        })
    };
    let (mut sidecars, mut peak) = (Compute::default(), Compute::default());
    for container in &spec.init_containers {
        let own = Compute::of(&container.resources.requests);
        if is_sidecar(container) {
            sidecars = sidecars.plus(own);
            peak = peak.max(sidecars);
        } else {
            peak = peak.max(sidecars.plus(own));
        }
    }
    let mut total = sum(&spec.containers).plus(sidecars).max(peak);
    if let Some(Resources { requests, .. }) = &spec.resources {
        let pod = Compute::of(requests);
        total.cpu = if requests.contains_key("cpu") { pod.cpu } else { total.cpu };
        total.memory = if requests.contains_key("memory") { pod.memory } else { total.memory };
    }
    total.plus(Compute::of(&spec.overhead))
}

/// Whether an init container stays.
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// GPUs that one container asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuRequest {
    /// The container.
    pub container: String,
    /// Whole GPUs of DeepShare's.
    pub whole: usize,
    /// Slots.
    pub slots: usize,
    /// Whole GPUs of NVIDIA's device plugin.
    pub nvidia: usize,
}

/// GPU requests of the containers that have any. Init containers that end give their devices to
/// the containers after them, so they count only where they ask for more than all of those.
pub fn gpus(spec: &PodSpec) -> Vec<GpuRequest> {
    let asking = |containers: &[&Container]| -> Vec<GpuRequest> {
        let requests = containers.iter().map(|container| {
            let requests = &container.resources.requests;
            let count = |name| {
                let amount = requests.get(name).map_or(0, |text| milli(text));
                usize::try_from(amount / 1000).unwrap_or(0)
            };
            GpuRequest {
                container: container.name.clone(),
                whole: count(names::GPU),
                slots: count(names::GPU_SLOT),
                nvidia: count(names::NVIDIA_GPU),
            }
        });
        requests.filter(|one| one.whole + one.slots + one.nvidia > 0).collect()
    };
    let total = |all: &[GpuRequest]| {
        all.iter().map(|one| one.whole + one.slots + one.nvidia).sum::<usize>()
    };
    let lasting = spec.init_containers.iter().filter(|one| is_sidecar(one)).chain(&spec.containers);
    let lasting = asking(&lasting.collect::<Vec<_>>());
    let first = spec.init_containers.iter().filter(|one| !is_sidecar(one));
    let largest = first.map(|one| asking(&[one])).max_by_key(|one| total(one)).unwrap_or_default();
    if total(&largest) > total(&lasting) { largest } else { lasting }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> PodSpec {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn sidecars_count_beside_containers_and_before_later_init_containers() {
        let pod = spec(
            "
initContainers:
- {name: side, restartPolicy: Always, resources: {requests: {cpu: 1}}}
- {name: unpack, resources: {requests: {cpu: 4, memory: 1Ki}}}
containers:
- {name: main, resources: {requests: {cpu: 3500m}}}
overhead: {cpu: 100m}
",
        );
        assert_eq!(compute(&pod), Compute { cpu: 5100, memory: 1_024_000 });
    }

    #[test]
    fn resources_of_the_pod_win_over_its_containers() {
        let pod = spec(
            "
resources: {requests: {cpu: 2}}
containers:
- {name: main, resources: {requests: {cpu: 1, memory: 1}}}
",
        );
        assert_eq!(compute(&pod), Compute { cpu: 2000, memory: 1000 });
    }

    #[test]
    fn gpus_are_counted_by_container() {
        let pod = spec(
            "
containers:
- {name: log}
- {name: main, resources: {requests: {deepshare.io/gpu: 2}}}
",
        );
        let main = GpuRequest { container: "main".into(), whole: 2, ..GpuRequest::default() };
        assert_eq!(gpus(&pod), [main]);
    }
}
