//! Pods.

use super::scheduling::Affinity;
use super::volumes::{Volume, of_nodes};
use super::{
    Labels, Metadata, NodeSelector, PodAffinityTerm, PodStatus, ResourceList, Toleration,
    TopologySpreadConstraint, or_default,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Pod {
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// What it asks for.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: PodSpec,
    /// How it is doing.
    #[serde(default, deserialize_with = "or_default")]
    pub status: PodStatus,
}

/// What a pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WireSpec")]
pub struct PodSpec {
    /// The node it is bound to.
    pub node_name: Option<Box<str>>,
    /// Who is to bind it.
    pub scheduler_name: Box<str>,
    /// Names of what it waits for before anybody may bind it.
    pub scheduling_gates: Box<[Box<str>]>,
    /// Its priority, 0 where none is given.
    pub priority: i32,
    /// `preemptionPolicy: Never`: nobody is evicted for it.
    pub never_preempts: bool,
    /// Labels that its node must have.
    pub node_selector: Labels,
    /// Required node affinity.
    pub node_affinity: Option<Box<NodeSelector>>,
    /// Required pod affinity.
    pub pod_affinity: Box<[PodAffinityTerm]>,
    /// Required pod anti-affinity.
    pub pod_anti_affinity: Box<[PodAffinityTerm]>,
    /// Taints that it tolerates.
    pub tolerations: Box<[Toleration]>,
    /// Hard spread constraints.
    pub topology_spread: Box<[TopologySpreadConstraint]>,
    /// What running it costs beside its containers.
    pub overhead: ResourceList,
    /// Requests of the pod as a whole: they stand instead of the sum over containers.
    pub requests: ResourceList,
    /// Its containers.
    pub containers: Box<[Container]>,
    /// What runs before them, and beside them where it is a sidecar.
    pub init_containers: Box<[Container]>,
    /// Volumes that depend on a node.
    pub volumes: Box<[Volume]>,
    /// Number of resource claims (dynamic resource allocation).
    pub resource_claims: u32,
    /// `spec.schedulingGroup.podGroupName`, since 1.36.
    pub pod_group: Option<Box<str>>,
    /// User id of its processes where containers say nothing; `None`: the image's.
    pub run_as_user: Option<i64>,
    /// Seconds that it may take to stop.
    pub termination_grace_period_seconds: u32,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WireContainer")]
pub struct Container {
    /// Its name.
    pub name: Box<str>,
    /// What it asks for. The API server has already taken limits for what is not requested.
    pub requests: ResourceList,
    /// Ports of the node that it takes.
    pub host_ports: Box<[HostPort]>,
    /// An init container with `restartPolicy: Always`: it goes on beside the main ones.
    pub sidecar: bool,
    /// A resize of its CPU or memory restarts it.
    pub restarts_on_resize: bool,
    /// User id of its processes, where it differs from the pod's.
    pub run_as_user: Option<i64>,
}

/// A port of the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Its number.
    pub port: u16,
    /// Over which protocol.
    pub protocol: Protocol,
    /// On which address; empty: on all.
    pub address: Box<str>,
}

/// Transport protocol of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSpec {
    #[serde(default)]
    node_name: Option<Box<str>>,
    #[serde(default)]
    scheduler_name: Option<Box<str>>,
    #[serde(default, deserialize_with = "or_default")]
    scheduling_gates: Vec<Named>,
    #[serde(default)]
    priority: Option<i32>,
    #[serde(default)]
    preemption_policy: Option<Box<str>>,
    #[serde(default, deserialize_with = "or_default")]
    node_selector: Labels,
    #[serde(default, deserialize_with = "or_default")]
    affinity: Affinity,
    #[serde(default, deserialize_with = "or_default")]
    tolerations: Box<[Toleration]>,
    #[serde(default, deserialize_with = "or_default")]
    topology_spread_constraints: Vec<TopologySpreadConstraint>,
    #[serde(default, deserialize_with = "or_default")]
    overhead: ResourceList,
    #[serde(default, deserialize_with = "or_default")]
    resources: Requests,
    #[serde(default, deserialize_with = "or_default")]
    containers: Box<[Container]>,
    #[serde(default, deserialize_with = "or_default")]
    init_containers: Box<[Container]>,
    #[serde(default, deserialize_with = "of_nodes")]
    volumes: Box<[Volume]>,
    #[serde(default, deserialize_with = "or_default")]
    resource_claims: Vec<IgnoredAny>,
    #[serde(default)]
    scheduling_group: Option<SchedulingGroup>,
    #[serde(default, deserialize_with = "or_default")]
    security_context: SecurityContext,
    #[serde(default)]
    termination_grace_period_seconds: Option<u32>,
}

#[derive(Deserialize)]
struct Named {
    name: Box<str>,
}

#[derive(Default, Deserialize)]
pub(super) struct Requests {
    #[serde(default, deserialize_with = "or_default")]
    pub requests: ResourceList,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SchedulingGroup {
    #[serde(default)]
    pod_group_name: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecurityContext {
    #[serde(default)]
    run_as_user: Option<i64>,
}

impl From<WireSpec> for PodSpec {
    fn from(wire: WireSpec) -> PodSpec {
        // A word other than `ScheduleAnyway` may be a new kind of hard constraint: kept, refused.
        let hard =
            |spread: &TopologySpreadConstraint| &*spread.when_unsatisfiable != "ScheduleAnyway";
        PodSpec {
            node_name: wire.node_name.filter(|name| !name.is_empty()),
            scheduler_name: wire.scheduler_name.unwrap_or_default(),
            scheduling_gates: wire.scheduling_gates.into_iter().map(|gate| gate.name).collect(),
            priority: wire.priority.unwrap_or(0),
            never_preempts: wire.preemption_policy.as_deref() == Some("Never"),
            node_selector: wire.node_selector,
            node_affinity: wire.affinity.node_affinity.required,
            pod_affinity: wire.affinity.pod_affinity.required,
            pod_anti_affinity: wire.affinity.pod_anti_affinity.required,
            tolerations: wire.tolerations,
            topology_spread: wire.topology_spread_constraints.into_iter().filter(hard).collect(),
            overhead: wire.overhead,
            requests: wire.resources.requests,
            containers: wire.containers,
            init_containers: wire.init_containers,
            volumes: wire.volumes,
            resource_claims: wire.resource_claims.len() as u32,
            pod_group: wire.scheduling_group.and_then(|group| group.pod_group_name),
            run_as_user: wire.security_context.run_as_user,
            termination_grace_period_seconds: wire.termination_grace_period_seconds.unwrap_or(30),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireContainer {
    name: Box<str>,
    #[serde(default, deserialize_with = "or_default")]
    resources: Requests,
    #[serde(default, deserialize_with = "host_ports")]
    ports: Box<[HostPort]>,
    #[serde(default)]
    restart_policy: Option<Box<str>>,
    #[serde(default, deserialize_with = "or_default")]
    resize_policy: Vec<ResizePolicy>,
    #[serde(default, deserialize_with = "or_default")]
    security_context: SecurityContext,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResizePolicy {
    restart_policy: Box<str>,
}

impl From<WireContainer> for Container {
    fn from(wire: WireContainer) -> Container {
        let restarts = |policy: &ResizePolicy| &*policy.restart_policy == "RestartContainer";
        Container {
            name: wire.name,
            requests: wire.resources.requests,
            host_ports: wire.ports,
            sidecar: wire.restart_policy.as_deref() == Some("Always"),
            restarts_on_resize: wire.resize_policy.iter().any(restarts),
            run_as_user: wire.security_context.run_as_user,
        }
    }
}

fn host_ports<'de, D: Deserializer<'de>>(input: D) -> Result<Box<[HostPort]>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Port {
        #[serde(default)]
        host_port: u16,
        #[serde(default)]
        protocol: Protocol,
        #[serde(default, rename = "hostIP")]
        host_ip: Box<str>,
    }
    let ports = Option::<Vec<Port>>::deserialize(input)?.unwrap_or_default();
    let of_the_node = ports.into_iter().filter(|port| port.host_port != 0);
    // `0.0.0.0` and no address at all are the same to the kubelet.
    Ok(of_the_node
        .map(|port| HostPort {
            port: port.host_port,
            protocol: port.protocol,
            address: if &*port.host_ip == "0.0.0.0" { "".into() } else { port.host_ip },
        })
        .collect())
}
