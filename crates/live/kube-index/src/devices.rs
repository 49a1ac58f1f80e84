//! Nodes and their GPUs: which device is which bit, who is on which slot, what may be used.
//!
//! A node is served by our agent (a `GpuNode` names its devices) or by NVIDIA's device plugin
//! (anonymous devices, never shared). A device is withheld from the engine while it is unhealthy, its
//! MPS daemon has faulted, or somebody is on it whom the engine did not put there: a pod of another
//! scheduler, or one of ours that outlived its attempt.

use crate::interner::Interner;
use crate::watched::Node;
use deepshare_engine::Event;
use deepshare_kube_api::{DeviceSlot, GpuNodeSpec, GpuNodeStatus, MpsState, names};
use deepshare_model::{Devices, GpuTypeId, NodeId, NodeSpec, PoolId, Resources};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which resource a pod asks for, and a node serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GpuKind {
    /// `deepshare.io/gpu`: whole devices.
    Whole,
    /// `deepshare.io/gpu-slot`: one slot of a device.
    Slot,
    /// `nvidia.com/gpu`: whole devices that NVIDIA's plugin hands out as it likes.
    Nvidia,
}

impl GpuKind {
    /// Every kind.
    pub const ALL: [GpuKind; 3] = [GpuKind::Whole, GpuKind::Slot, GpuKind::Nvidia];

    /// The resource's name.
    pub fn resource(self) -> &'static str {
        match self {
            GpuKind::Whole => names::GPU,
            GpuKind::Slot => names::GPU_SLOT,
            GpuKind::Nvidia => names::NVIDIA_GPU,
        }
    }
}

/// What the API server says of a node, as far as GPUs go.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeFacts {
    pub(crate) gpu_type: Option<Box<str>>,
    pub(crate) nvidia_gpus: u32,
    pub(crate) nvidia_memory_mib: u32,
    pub(crate) ready: bool,
    pub(crate) unschedulable: bool,
    /// CPU and memory, less what pods use that the engine does not know.
    pub(crate) capacity: Resources,
}

/// Who is on a device beside those whom the engine put there.
type PodUid = Arc<str>;

#[derive(Clone, Debug, Default)]
struct Device {
    uuid: Box<str>,
    present: bool,
    healthy: bool,
    mps: MpsState,
    slots: [Option<PodUid>; names::SLOTS_PER_GPU as usize],
}

/// What the engine has been told of a node.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    gpus: u32,
    memory_mib: u32,
    capacity: Resources,
    usable: Devices,
    cordoned: bool,
    lost: bool,
}

/// A node and its devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeEntry {
    pub(crate) name: Box<str>,
    pub(crate) facts: Option<NodeFacts>,
    agent: Option<(GpuNodeSpec, GpuNodeStatus)>,
    devices: Vec<Device>,
    /// GPUs of pods that are bound here without the engine's doing, by pod.
    foreign: BTreeMap<PodUid, Foreign>,
    id: Option<(NodeId, GpuTypeId)>,
    told: Option<Told>,
    pub(crate) lost: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Foreign {
    gpus: u32,
    /// Where they are, if anybody knows.
    on: Devices,
}

impl NodeEntry {
    pub(crate) fn new(name: &str) -> NodeEntry {
        NodeEntry { name: name.into(), ..NodeEntry::default() }
    }

    pub(crate) fn set_facts(&mut self, node: &Node) {
        let labels = &node.metadata.labels;
        let gpu_type = labels.get(names::GPU_TYPE).or_else(|| labels.get(names::NVIDIA_PRODUCT));
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let nvidia = node.status.allocatable.get(names::NVIDIA_GPU).unwrap_or(0);
        let capacity = self.facts.take().map(|facts| facts.capacity).unwrap_or_default();
        self.facts = Some(NodeFacts {
            gpu_type: gpu_type.map(Into::into),
            nvidia_gpus: u32::try_from(nvidia).unwrap_or(u32::MAX),
            nvidia_memory_mib: number(labels.get(names::NVIDIA_MEMORY)),
            ready: node.status.ready,
            unschedulable: node.spec.unschedulable,
            capacity,
        });
    }

    pub(crate) fn id(&self) -> Option<NodeId> {
        self.id.map(|(id, _)| id)
    }

    /// True if a pod that asks for `kind` can get it here.
    pub(crate) fn serves(&self, kind: GpuKind) -> bool {
        match (&self.agent, kind) {
            (Some(_), GpuKind::Whole) => true,
            (Some(_), GpuKind::Slot) => {
                self.devices.iter().any(|device| device.mps == MpsState::Ready)
            }
            (None, GpuKind::Nvidia) => self.nvidia_gpus() > 0,
            _ => false,
        }
    }

    fn nvidia_gpus(&self) -> u32 {
        self.facts.as_ref().map_or(0, |facts| facts.nvidia_gpus).min(Devices::MAX_PER_NODE)
    }

    pub(crate) fn set_agent(&mut self, agent: Option<(GpuNodeSpec, GpuNodeStatus)>) {
        self.agent = agent;
        if let Some((_, status)) = &self.agent {
            for device in &mut self.devices {
                device.present = false;
            }
            for seen in status.devices.iter().take(Devices::MAX_PER_NODE as usize) {
                let known = self.devices.iter().position(|device| *device.uuid == *seen.uuid);
                let at = match known {
                    Some(at) => at,
                    None if self.devices.len() < Devices::MAX_PER_NODE as usize => {
                        self.devices
                            .push(Device { uuid: (*seen.uuid).into(), ..Device::default() });
                        self.devices.len() - 1
                    }
                    None => continue,
                };
                let device = &mut self.devices[at];
                (device.present, device.healthy, device.mps) = (true, seen.healthy, seen.mps);
            }
            for allocation in &status.allocations {
                let on = self.devices_of(&allocation.devices);
                if let Some(foreign) = self.foreign.get_mut(&*allocation.pod_uid) {
                    foreign.on = on;
                }
            }
        }
    }

    /// Devices by UUID.
    pub(crate) fn devices_of(&self, slots: &[DeviceSlot]) -> Devices {
        let index = |slot: &DeviceSlot| self.devices.iter().position(|d| *d.uuid == *slot.uuid);
        slots.iter().filter_map(index).fold(Devices::NONE, |all, at| all.union(Devices(1 << at)))
    }

    /// A pod is bound here that the engine does not know, or is gone (0 GPUs).
    pub(crate) fn set_foreign(&mut self, pod: &PodUid, gpus: u32, decided: &[DeviceSlot]) {
        if gpus == 0 {
            self.foreign.remove(pod);
            return;
        }
        let reported = self.agent.iter().flat_map(|(_, status)| &status.allocations);
        let reported = reported.filter(|allocation| *allocation.pod_uid == **pod);
        let reported = reported
            .fold(Devices::NONE, |all, allocation| all.union(self.devices_of(&allocation.devices)));
        let on = if reported.is_empty() { self.devices_of(decided) } else { reported };
        self.foreign.insert(pod.clone(), Foreign { gpus, on });
    }

    /// Gives a pod a slot of a device: the lowest that nobody has, or all of it. `None` if somebody is
    /// in the way.
    pub(crate) fn take(&mut self, device: u32, kind: GpuKind, pod: &PodUid) -> Option<DeviceSlot> {
        let device = self.devices.get_mut(device as usize)?;
        let uuid = device.uuid.to_string();
        if kind == GpuKind::Slot {
            let free = device.slots.iter().position(Option::is_none)?;
            device.slots[free] = Some(pod.clone());
            return Some(DeviceSlot { uuid, slot: u32::try_from(free).ok() });
        }
        if device.slots.iter().any(Option::is_some) {
            return None;
        }
        device.slots.fill(Some(pod.clone()));
        Some(DeviceSlot { uuid, slot: None })
    }

    /// Books slots that a pod was found to hold.
    pub(crate) fn take_as_decided(&mut self, decided: &[DeviceSlot], pod: &PodUid) {
        for slot in decided {
            let Some(device) = self.devices.iter_mut().find(|d| *d.uuid == *slot.uuid) else {
                continue;
            };
            match slot.slot {
                None => device.slots.fill(Some(pod.clone())),
                Some(index) => {
                    if let Some(place) = device.slots.get_mut(index as usize) {
                        *place = Some(pod.clone());
                    }
                }
            }
        }
    }

    /// Frees whatever a pod has.
    pub(crate) fn give_back(&mut self, pod: &str) {
        for slot in self.devices.iter_mut().flat_map(|device| &mut device.slots) {
            if slot.as_deref() == Some(pod) {
                *slot = None;
            }
        }
    }

    /// Devices that the engine may use.
    fn usable(&self) -> Devices {
        let mut usable = Devices::NONE;
        for (index, device) in self.devices.iter().enumerate() {
            let works = device.present && device.healthy && device.mps != MpsState::Faulted;
            if works {
                usable = usable.union(Devices(1 << index));
            }
        }
        for foreign in self.foreign.values() {
            usable = usable.minus(foreign.on);
        }
        // Somebody holds devices, and nobody knows which: the last ones that none of ours is on.
        for foreign in self.foreign.values().filter(|foreign| foreign.on.is_empty()) {
            for _ in 0..foreign.gpus {
                let ours =
                    |index: u32| self.devices[index as usize].slots.iter().any(Option::is_some);
                let last = usable.iter().filter(|&index| !ours(index)).last();
                let Some(last) = last else { break };
                usable = usable.minus(Devices(1 << last));
            }
        }
        usable
    }

    /// What the engine has to hear, now that something about the node may have changed. `next` is the
    /// id of the next new node.
    pub(crate) fn tell(&mut self, next: &mut u32, types: &mut Interner) -> Vec<Event> {
        let mut events = Vec::new();
        if self.agent.is_none() {
            let nvidia = self.nvidia_gpus() as usize;
            for index in self.devices.len()..nvidia {
                let uuid = format!("{}-{index}", names::NVIDIA_GPU).into();
                self.devices.push(Device { uuid, ..Device::default() });
            }
            for (index, device) in self.devices.iter_mut().enumerate() {
                (device.present, device.healthy) = (index < nvidia, true);
            }
        }
        let Some(facts) = &self.facts else {
            // The node is gone.
            if let (Some((id, _)), Some(told)) = (self.id, &mut self.told)
                && !told.lost
            {
                told.lost = true;
                events.push(Event::NodeLost { node: id });
            }
            return events;
        };
        if self.devices.is_empty() {
            return events;
        }
        let of_agent = self.agent.as_ref().map(|(spec, _)| spec.gpu_type.as_str());
        let named = of_agent.or(facts.gpu_type.as_deref()).unwrap_or("gpu").to_owned();
        let gpu_type = GpuTypeId(u16::try_from(types.intern(&named).0).unwrap_or(u16::MAX));
        let memory = self
            .agent
            .as_ref()
            .and_then(|(_, status)| status.devices.iter().map(|device| device.memory_mib).min());
        let now = Told {
            gpus: self.devices.len() as u32,
            memory_mib: memory.unwrap_or(facts.nvidia_memory_mib),
            capacity: facts.capacity,
            usable: self.usable(),
            // A node that is not ready takes nobody new (see `sites`), and keeps its promises until it
            // is lost: most are back in a moment.
            cordoned: facts.unschedulable,
            lost: self.lost,
        };
        // Other GPUs in the old chassis: another node, to the engine.
        let replaced = match (&self.told, self.id) {
            (Some(told), Some((_, known))) => {
                known != gpu_type || told.memory_mib != now.memory_mib
            }
            _ => false,
        };
        if replaced {
            if let (Some((id, _)), Some(told)) = (self.id, &self.told)
                && !told.lost
            {
                events.push(Event::NodeLost { node: id });
            }
            (self.id, self.told) = (None, None);
        }
        let (id, told) = match (self.id, self.told.take()) {
            (Some((id, _)), Some(told)) => (id, told),
            _ => {
                let id = NodeId(*next);
                *next += 1;
                self.id = Some((id, gpu_type));
                let spec = NodeSpec {
                    pool: PoolId(0),
                    gpu_type,
                    gpus: now.gpus,
                    gpu_memory_mib: now.memory_mib,
                    capacity: now.capacity,
                };
                events.push(Event::NodeAdded { node: id, spec });
                let usable = Devices::first(now.gpus);
                (id, Told { usable, cordoned: false, lost: false, ..now.clone() })
            }
        };
        if now.lost != told.lost {
            events.push(match now.lost {
                true => Event::NodeLost { node: id },
                false => Event::NodeRecovered { node: id },
            });
        }
        if (now.gpus, now.capacity) != (told.gpus, told.capacity) {
            let (gpus, capacity) = (now.gpus, now.capacity);
            events.push(Event::NodeChanged { node: id, gpus, capacity });
        }
        // Devices that were not there before count as usable until told otherwise.
        let added = Devices::first(now.gpus).minus(Devices::first(told.gpus));
        let before = told.usable.union(added);
        for (changed, healthy) in
            [(before.minus(now.usable), false), (now.usable.minus(before), true)]
        {
            for device in changed.iter() {
                events.push(Event::DeviceHealth { node: id, device, healthy });
            }
        }
        // A node that is back is ready in the engine's eyes.
        let came_back = told.lost && !now.lost;
        let cordoned_before = told.cordoned && !came_back;
        if now.cordoned != cordoned_before && !now.lost {
            events.push(Event::NodeCordoned { node: id, cordoned: now.cordoned });
        }
        self.told = Some(now);
        events
    }

    /// GPUs that work, by the engine's books.
    pub(crate) fn working(&self) -> Option<(GpuTypeId, u32)> {
        let told = self.told.as_ref().filter(|told| !told.lost)?;
        Some((self.id?.1, told.usable.count()))
    }

    /// The samples of the node's agent.
    pub(crate) fn samples(&self) -> &[deepshare_kube_api::PairSample] {
        self.agent.as_ref().map_or(&[], |(_, status)| &status.samples)
    }
}
