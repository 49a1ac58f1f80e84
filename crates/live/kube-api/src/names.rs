//! Labels, annotations, resources and reasons, each name once.
//!
//! What a tenant writes on a pod is a wish: the tenant comes from the namespace, the class is held
//! against the tenant's [`TenantQuota`](crate::TenantQuota), and [`DECISION`] counts only where the
//! scheduler itself has written it (see the admission policy in `deploy/`).

/// The scheduler's name where a pod names none other (`spec.schedulerName`).
pub const SCHEDULER: &str = "deepshare";

/// Whole GPUs that nobody shares, as served by the node agent.
pub const GPU: &str = "deepshare.io/gpu";
/// A GPU that may be shared: one of the slots of a device.
pub const GPU_SLOT: &str = "deepshare.io/gpu-slot";
/// Whole GPUs as served by NVIDIA's device plugin: never shared.
pub const NVIDIA_GPU: &str = "nvidia.com/gpu";
/// Slots of one device.
pub const SLOTS_PER_GPU: u32 = 2;

/// Pod: `guaranteed` or `best-effort`.
pub const CLASS: &str = "deepshare.io/class";
/// Pod: the gang's name, unique in its namespace.
pub const GANG: &str = "deepshare.io/gang";
/// Pod: how many pods the gang has.
pub const GANG_SIZE: &str = "deepshare.io/gang-size";
/// Pod: expected run time alone on its devices, as in `90m`, `1h30m` or a number of seconds.
pub const RUN_TIME: &str = "deepshare.io/run-time";
/// Pod: name of its hardware profile's class, a row of the retention file.
pub const PROFILE: &str = "deepshare.io/profile";
/// Pod: GPU memory that it needs on each device, as in `16Gi`.
pub const GPU_MEMORY: &str = "deepshare.io/gpu-memory";
/// Pod: `false` keeps a pod that asks for a slot alone on its device.
pub const COLOCATION: &str = "deepshare.io/colocation";
/// Pod: the most that it may be slowed down beside others, as in `1.5`.
pub const SLOWDOWN_LIMIT: &str = "deepshare.io/slowdown-limit";
/// Pod: CPU that would be enough, as a vertical autoscaler recommends.
pub const RECOMMENDED_CPU: &str = "deepshare.io/recommended-cpu";
/// Pod: memory that would be enough, likewise.
pub const RECOMMENDED_MEMORY: &str = "deepshare.io/recommended-memory";
/// Node and pod: model of the GPUs, as in `A100-80GB`. On a node it wins over [`NVIDIA_PRODUCT`].
pub const GPU_TYPE: &str = "deepshare.io/gpu-type";
/// Node: model of the GPUs, as NVIDIA's feature discovery labels it.
pub const NVIDIA_PRODUCT: &str = "nvidia.com/gpu.product";
/// Node: memory of each GPU in MiB, as NVIDIA's feature discovery labels it.
pub const NVIDIA_MEMORY: &str = "nvidia.com/gpu.memory";

/// Pod, written by the scheduler in the Binding: a [`Decision`](crate::Decision).
pub const DECISION: &str = "deepshare.io/decision";
/// Pod, written by the scheduler with a resize: CPU and memory requests of each container before
/// its first shrink, as JSON.
pub const ORIGINAL_REQUESTS: &str = "deepshare.io/original-requests";

/// Volume claim, written by the scheduler: the node that its volume is to be made for. Kubernetes' name.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Condition `DisruptionTarget` of a victim: the reason that Job's `podFailurePolicy` knows.
pub const PREEMPTED: &str = "PreemptionByScheduler";
