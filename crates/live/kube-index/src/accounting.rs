//! What a pod takes of its node.
//!
//! The rules are the scheduler's and the kubelet's (`resourcehelper.PodRequests`): what runs at the
//! same time adds up, what runs one after another does not, and a resize under way counts at its
//! larger end.

use crate::watched::{ConditionKind, Container, ContainerStatus, Pod, PodStatus, ResourceList};
use std::collections::BTreeMap;

/// Amounts by resource name, as in [`ResourceList`]. `pods` is one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amounts(BTreeMap<Box<str>, u64>);

impl Amounts {
    /// The amount of `resource`; 0 where it is not named.
    pub fn get(&self, resource: &str) -> u64 {
        self.0.get(resource).copied().unwrap_or(0)
    }

    /// All amounts, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, amount)| (&**name, *amount))
    }

    /// Thousandths of a CPU core.
    pub fn cpu_milli(&self) -> u64 {
        self.get("cpu")
    }

    /// Bytes of memory.
    pub fn memory(&self) -> u64 {
        self.get("memory")
    }

    /// Adds, never beyond what the type holds.
    pub fn add(&mut self, resource: &str, amount: u64) {
        if let Some(sum) = self.0.get_mut(resource) {
            *sum = sum.saturating_add(amount);
        } else {
            self.0.insert(resource.into(), amount);
        }
    }

    /// Takes away what was added, and forgets resources of which nothing is left.
    pub fn subtract(&mut self, other: &Amounts) {
        for (resource, amount) in &other.0 {
            if let Some(sum) = self.0.get_mut(resource) {
                *sum = sum.saturating_sub(*amount);
                if *sum == 0 {
                    self.0.remove(resource);
                }
            }
        }
    }

    /// Adds every amount of `other`.
    pub fn add_all(&mut self, other: &Amounts) {
        for (resource, amount) in other.iter() {
            self.add(resource, amount);
        }
    }

    fn raise_to(&mut self, other: &Amounts) {
        for (resource, amount) in other.iter() {
            if self.get(resource) < amount {
                self.0.insert(resource.into(), amount);
            }
        }
    }
}

impl From<&ResourceList> for Amounts {
    fn from(list: &ResourceList) -> Amounts {
        Amounts(list.iter().map(|(name, amount)| (name.into(), amount)).collect())
    }
}

/// What the pod takes of its node, or would take: nothing once it is over.
///
/// - The larger of what its main containers ask for in sum, and of what any step of its start asks
///   for. A sidecar (restartable init container) runs on, so it counts in both: with the main
///   containers, and with every init container after it.
/// - Requests of the pod as a whole stand instead of that, for the resources that they name.
/// - What it costs to run it (`spec.overhead`) comes on top.
/// - During a resize, the largest of what a container asks for, was granted and has; not what it asks
///   for where that can never be granted (KEP-1287).
pub fn requests(pod: &Pod) -> Amounts {
    if pod.status.phase.is_terminal() {
        return Amounts::default();
    }
    let (spec, status) = (&pod.spec, &pod.status);
    let infeasible = resize_is_infeasible(status);
    let mut beside = Amounts::default();
    let mut start = Amounts::default();
    for container in &spec.init_containers {
        let own = container_requests(container, &status.init_container_statuses, infeasible);
        let mut step = beside.clone();
        step.add_all(&own);
        if container.sidecar {
            beside = step.clone();
        }
        start.raise_to(&step);
    }
    let mut total = beside;
    for container in &spec.containers {
        total.add_all(&container_requests(container, &status.container_statuses, infeasible));
    }
    total.raise_to(&start);
    for (resource, amount) in spec.requests.iter() {
        total.0.insert(resource.into(), amount);
    }
    total.add_all(&Amounts::from(&spec.overhead));
    total.0.retain(|_, amount| *amount > 0);
    total.add("pods", 1);
    total
}

/// True while the pod's node says that its resize can never be granted.
pub fn resize_is_infeasible(status: &PodStatus) -> bool {
    let pending = status.condition(ConditionKind::PodResizePending);
    pending.is_some_and(|pending| pending.holds && &*pending.reason == "Infeasible")
}

fn container_requests(
    container: &Container,
    statuses: &[ContainerStatus],
    infeasible: bool,
) -> Amounts {
    let asked = Amounts::from(&container.requests);
    let Some(status) = statuses.iter().find(|status| status.name == container.name) else {
        return asked;
    };
    // A kubelet that reports neither has not been asked to resize anything.
    if status.allocated.is_empty() && status.requests.is_empty() {
        return asked;
    }
    let mut largest = Amounts::from(&status.allocated);
    largest.raise_to(&Amounts::from(&status.requests));
    for (resource, amount) in asked.iter() {
        // Only CPU and memory can be resized; what the status leaves out is as asked for.
        let reported = largest.0.contains_key(resource);
        if !reported || (!infeasible && largest.get(resource) < amount) {
            largest.0.insert(resource.into(), amount);
        }
    }
    largest
}

#[cfg(test)]
mod tests;
