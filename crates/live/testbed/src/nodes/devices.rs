//! One node's devices and who holds them.

use super::requests::GpuRequest;
use super::spec::GpuResource;
use deepshare_kube_api::{Allocation, Decision, DeviceSlot, names};
use std::collections::{BTreeMap, BTreeSet};

const SLOTS: usize = names::SLOTS_PER_GPU as usize;

/// One GPU.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its UUID.
    pub uuid: String,
    /// Whether it works.
    pub healthy: bool,
    /// UID of the pod that has it whole.
    whole: Option<String>,
    /// UIDs of pods in its slots.
    slots: [Option<String>; SLOTS],
}

impl Device {
    fn is_free(&self) -> bool {
        self.whole.is_none() && self.slots.iter().all(Option::is_none)
    }

    fn has_room(&self, slot: Option<usize>) -> bool {
        match slot {
            None => self.is_free(),
            Some(slot) => self.whole.is_none() && self.slots[slot].is_none(),
        }
    }
}

/// The GPUs of a node. A whole GPU and its slots are the same device: who takes one keeps
/// others from the other.
#[derive(Clone, Debug)]
pub struct Devices {
    resource: GpuResource,
    devices: Vec<Device>,
}

impl Devices {
    /// Free devices.
    pub fn new(resource: GpuResource, uuids: impl IntoIterator<Item = String>) -> Devices {
        let device = |uuid| Device { uuid, healthy: true, whole: None, slots: Default::default() };
        Devices { resource, devices: uuids.into_iter().map(device).collect() }
    }

    /// All of them, in order.
    pub fn all(&self) -> &[Device] {
        &self.devices
    }

    /// Number that work.
    pub fn healthy(&self) -> usize {
        self.devices.iter().filter(|device| device.healthy).count()
    }

    /// Says which ones do not work, by position or UUID. Whether that changed anything.
    pub fn set_unhealthy(&mut self, list: &BTreeSet<&str>) -> bool {
        let mut changed = false;
        for (index, device) in self.devices.iter_mut().enumerate() {
            let index = index.to_string();
            let healthy = !list.contains(index.as_str()) && !list.contains(device.uuid.as_str());
            changed |= device.healthy != healthy;
            device.healthy = healthy;
        }
        changed
    }

    /// Gives a pod what it asks for: the devices of its decision, or any where it has none.
    ///
    /// # Errors
    /// If it asks for what the node does not offer, more than is free, or its decision does not fit
    /// its requests or names devices that are unknown, broken or held. Nothing is given then.
    pub fn take(
        &mut self,
        uid: &str,
        requests: &[GpuRequest],
        decision: Option<&Decision>,
    ) -> Result<(), String> {
        self.offered(requests)?;
        let taken = match decision {
            Some(decision) if self.resource == GpuResource::Deepshare => {
                self.take_decided(uid, requests, decision)
            }
            _ => self.take_any(uid, requests),
        };
        if taken.is_err() {
            self.release(uid);
        }
        taken
    }

    fn offered(&self, requests: &[GpuRequest]) -> Result<(), String> {
        let foreign = |one: &GpuRequest| match self.resource {
            GpuResource::Deepshare => (one.nvidia > 0).then_some(names::NVIDIA_GPU),
            GpuResource::Nvidia if one.whole > 0 => Some(names::GPU),
            GpuResource::Nvidia => (one.slots > 0).then_some(names::GPU_SLOT),
        };
        match requests.iter().find_map(foreign) {
            None => Ok(()),
            Some(name) => Err(format!("Allocate failed: the node does not offer {name}")),
        }
    }

    fn take_any(&mut self, uid: &str, requests: &[GpuRequest]) -> Result<(), String> {
        let whole: usize = requests.iter().map(|one| one.whole + one.nvidia).sum();
        let slots: usize = requests.iter().map(|one| one.slots).sum();
        for _ in 0..whole {
            let name = match self.resource {
                GpuResource::Deepshare => names::GPU,
                GpuResource::Nvidia => names::NVIDIA_GPU,
            };
            let free = self.devices.iter_mut().find(|device| device.healthy && device.is_free());
            free.ok_or_else(|| unavailable(name, whole))?.whole = Some(uid.to_owned());
        }
        for _ in 0..slots {
            let free = self.devices.iter_mut().filter(|one| one.healthy && one.whole.is_none());
            let free = free.flat_map(|device| &mut device.slots).find(|slot| slot.is_none());
            *free.ok_or_else(|| unavailable(names::GPU_SLOT, slots))? = Some(uid.to_owned());
        }
        Ok(())
    }

    fn take_decided(
        &mut self,
        uid: &str,
        requests: &[GpuRequest],
        decision: &Decision,
    ) -> Result<(), String> {
        let mut given: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for container in &decision.containers {
            let (whole, slots) = given.entry(&container.name).or_default();
            for device in &container.devices {
                *if device.slot.is_some() { &mut *slots } else { &mut *whole } += 1;
                self.take_one(uid, device)?;
            }
        }
        given.retain(|_, given| *given != (0, 0));
        let asked = requests.iter().map(|one| (one.container.as_str(), (one.whole, one.slots)));
        let asked: BTreeMap<&str, (usize, usize)> = asked.collect();
        if given == asked {
            return Ok(());
        }
        Err(format!(
            "annotation {}: gives (whole GPUs, slots) {given:?}, the pod asks for {asked:?}",
            names::DECISION
        ))
    }

    fn take_one(&mut self, uid: &str, wanted: &DeviceSlot) -> Result<(), String> {
        let id = wanted.id();
        let bad = |what: &str| Err(format!("annotation {}: {id} {what}", names::DECISION));
        let slot = wanted.slot.map(|slot| slot as usize);
        if slot.is_some_and(|slot| slot >= SLOTS) {
            return bad("is no slot of a device of this node");
        }
        let Some(device) = self.devices.iter_mut().find(|device| device.uuid == wanted.uuid) else {
            return bad("is no device of this node");
        };
        if !device.healthy {
            return bad("is not healthy");
        }
        if !device.has_room(slot) {
            return bad("is held by another pod");
        }
        let place = slot.map_or(&mut device.whole, |slot| &mut device.slots[slot]);
        *place = Some(uid.to_owned());
        Ok(())
    }

    /// Takes everything back from a pod. Whether it had anything.
    pub fn release(&mut self, uid: &str) -> bool {
        let mut held = false;
        for device in &mut self.devices {
            for place in device.slots.iter_mut().chain([&mut device.whole]) {
                if place.as_deref() == Some(uid) {
                    *place = None;
                    held = true;
                }
            }
        }
        held
    }

    /// Who holds what, by UID.
    pub fn allocations(&self) -> Vec<Allocation> {
        let mut held: BTreeMap<&str, Vec<DeviceSlot>> = BTreeMap::new();
        for device in &self.devices {
            let slots = (0..).zip(&device.slots).map(|(slot, uid)| (uid, Some(slot)));
            for (uid, slot) in [(&device.whole, None)].into_iter().chain(slots) {
                let Some(uid) = uid else { continue };
                held.entry(uid).or_default().push(DeviceSlot { uuid: device.uuid.clone(), slot });
            }
        }
        let allocation =
            |(uid, devices): (&str, _)| Allocation { pod_uid: uid.to_owned(), devices };
        held.into_iter().map(allocation).collect()
    }

    /// Different pods that share a device, by UID.
    pub fn pairs(&self) -> Vec<[&str; 2]> {
        let pairs = self.devices.iter().filter_map(|device| match &device.slots {
            [Some(one), Some(other)] if one != other => Some([one.as_str(), other.as_str()]),
            _ => None,
        });
        pairs.collect()
    }
}

fn unavailable(name: &str, requested: usize) -> String {
    format!(
        "Allocate failed due to requested number of devices unavailable for {name}. Requested: \
         {requested}, which is unexpected"
    )
}
