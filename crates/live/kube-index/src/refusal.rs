//! What DeepShare does not do, said of a pod instead of being ignored.

use crate::accounting::{Amounts, requests};
use crate::selector::{check_labels, check_nodes, check_toleration};
use crate::watched::{LabelSelector, Pod, PodAffinityTerm};
use deepshare_kube_api::names;
use std::fmt;

/// Why a pod is not scheduled at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// In a word.
    pub kind: RefusalKind,
    /// In a sentence, with what to do.
    pub message: String,
}

/// Kinds of refusal; [`Display`](fmt::Display) is the reason of the pod's condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalKind {
    /// It asks for no GPU.
    NoGpu,
    /// It asks for GPUs of several kinds.
    MixedGpus,
    /// It asks for more than one slot.
    SeveralSlots,
    /// An init container asks for GPUs that nobody needs afterwards.
    GpusOfInitContainer,
    /// It has resource claims.
    ResourceClaims,
    /// It compares in a way that this version does not know.
    UnknownCondition,
    /// Its gang would have to be placed by rules about pods that do not run yet.
    GangTopology,
    /// A volume of a kind that is bound by hand.
    VolumeUnsupported,
    /// A claim, its class or its volume is not there, or not bound: this may pass by itself.
    VolumeNotReady,
}

impl fmt::Display for RefusalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RefusalKind::NoGpu => "NoGpuRequested",
            RefusalKind::MixedGpus => "MixedGpuRequests",
            RefusalKind::SeveralSlots => "SeveralSlotsRequested",
            RefusalKind::GpusOfInitContainer => "GpusOfInitContainer",
            RefusalKind::ResourceClaims => "ResourceClaimsUnsupported",
            RefusalKind::UnknownCondition => "UnknownCondition",
            RefusalKind::GangTopology => "GangTopologyUnsupported",
            RefusalKind::VolumeUnsupported => "VolumeUnsupported",
            RefusalKind::VolumeNotReady => "VolumeNotReady",
        })
    }
}

/// GPUs that a pod asks for, in the one way that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuRequest {
    /// The resource: one of [`names::GPU`], [`names::GPU_SLOT`], [`names::NVIDIA_GPU`].
    pub resource: &'static str,
    /// How many; of slots always 1.
    pub count: u32,
}

/// GPUs that the pod asks for, over all its containers.
///
/// # Errors
/// Where it asks for none, for several kinds, for more than a slot, or for more during its start than
/// afterwards.
pub fn gpu_request(pod: &Pod) -> Result<GpuRequest, Refusal> {
    gpu_request_of(pod, &requests(pod))
}

/// As [`gpu_request`], of a pod that takes so much in all.
pub(crate) fn gpu_request_of(pod: &Pod, total: &Amounts) -> Result<GpuRequest, Refusal> {
    let kinds = [names::GPU, names::GPU_SLOT, names::NVIDIA_GPU];
    let mut asked = kinds.into_iter().filter(|kind| total.get(kind) > 0);
    let Some(resource) = asked.next() else {
        return refuse(
            RefusalKind::NoGpu,
            format!(
                "the pod asks for no GPU: request `{}`, `{}` or `{}` in a container, or leave \
             `schedulerName` out",
                names::GPU,
                names::GPU_SLOT,
                names::NVIDIA_GPU
            ),
        );
    };
    if let Some(other) = asked.next() {
        return refuse(
            RefusalKind::MixedGpus,
            format!("the pod asks for `{resource}` and for `{other}`: request one of them only"),
        );
    }
    let peak = total.get(resource);
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.sidecar);
    let lasting: u64 = sidecars
        .chain(&pod.spec.containers)
        .filter_map(|container| container.requests.get(resource))
        .fold(0, u64::saturating_add);
    if peak > lasting {
        return refuse(
            RefusalKind::GpusOfInitContainer,
            format!(
                "an init container asks for more of `{resource}` ({peak}) than the containers after it \
             ({lasting}): the GPUs would idle; request them in the main containers"
            ),
        );
    }
    if resource == names::GPU_SLOT && peak > 1 {
        return refuse(
            RefusalKind::SeveralSlots,
            format!(
                "the pod asks for {peak} of `{resource}`, and a job shares one GPU only: request one \
             slot, or whole GPUs with `{}`",
                names::GPU
            ),
        );
    }
    Ok(GpuRequest { resource, count: u32::try_from(peak).unwrap_or(u32::MAX) })
}

/// User id of the processes that use the pod's GPUs, as far as the pod says: an MPS daemon serves one
/// user at a time, so pods that share a GPU must agree. `None`: left to the image.
pub fn gpu_user(pod: &Pod) -> Option<i64> {
    let asks = |name: &str| name == names::GPU || name == names::GPU_SLOT;
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let mut with_gpus = containers.filter(|one| one.requests.iter().any(|(name, _)| asks(name)));
    with_gpus.next().and_then(|one| one.run_as_user).or(pod.spec.run_as_user)
}

/// Why this pod cannot be scheduled, whatever the cluster is like. Its volumes are judged by
/// [`Sites::volume_refusal`](crate::sites::Sites::volume_refusal).
pub fn refusal(pod: &Pod, in_gang: bool) -> Option<Refusal> {
    let spec = &pod.spec;
    if let Err(refusal) = gpu_request(pod) {
        return Some(refusal);
    }
    if spec.resource_claims > 0 {
        return refuse::<()>(RefusalKind::ResourceClaims, format!(
            "the pod has resource claims (dynamic resource allocation), which DeepShare does not \
             allocate: request `{}` or `{}` instead",
            names::GPU, names::GPU_SLOT
        ))
        .err();
    }
    if let Err(sentence) = check_conditions(pod) {
        return Some(Refusal { kind: RefusalKind::UnknownCondition, message: sentence });
    }
    let spreads = !spec.topology_spread.is_empty();
    let beyond_nodes = |term: &PodAffinityTerm| &*term.topology_key != HOSTNAME;
    if in_gang
        && (spreads
            || !spec.pod_affinity.is_empty()
            || spec.pod_anti_affinity.iter().any(beyond_nodes))
    {
        return refuse::<()>(
            RefusalKind::GangTopology,
            format!(
                "the pod belongs to a gang and has hard rules about other pods' places: gangs are \
             placed as a whole; use anti-affinity over `{HOSTNAME}`, node affinity, or preferred \
             rules"
            ),
        )
        .err();
    }
    None
}

/// The label that is different on every node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

fn check_conditions(pod: &Pod) -> Result<(), String> {
    let spec = &pod.spec;
    if let Some(nodes) = &spec.node_affinity {
        check_nodes(nodes)?;
    }
    spec.tolerations.iter().try_for_each(check_toleration)?;
    let labels = |selector: &Option<LabelSelector>| selector.as_ref().map_or(Ok(()), check_labels);
    for term in spec.pod_affinity.iter().chain(&spec.pod_anti_affinity) {
        labels(&term.label_selector)?;
        labels(&term.namespace_selector)?;
    }
    for constraint in &spec.topology_spread {
        if &*constraint.when_unsatisfiable != "DoNotSchedule" {
            return Err(format!(
                "`whenUnsatisfiable` of a spread constraint is `{}`: use `DoNotSchedule` or \
                 `ScheduleAnyway`",
                constraint.when_unsatisfiable
            ));
        }
        labels(&constraint.label_selector)?;
    }
    Ok(())
}

fn refuse<T>(kind: RefusalKind, message: String) -> Result<T, Refusal> {
    Err(Refusal { kind, message })
}

#[cfg(test)]
mod tests;
