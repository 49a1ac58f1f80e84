//! What the pods show after a measurement: a fast scheduler that books a device twice is worth
//! nothing.

use crate::Failure;
use crate::ground::Ground;
use deepshare_kube_api::{Decision, names};
use kube::api::ListParams;
use std::collections::{BTreeMap, BTreeSet};

/// GPUs of each node.
pub const GPUS: u32 = 8;

/// Holds all pods that are bound against the nodes' devices.
///
/// # Errors
/// If a node has more pods than GPUs, or a device is decided for two.
pub async fn devices(ground: &Ground) -> Result<(), Failure> {
    let mut held: BTreeMap<String, u32> = BTreeMap::new();
    let mut decided = BTreeSet::new();
    for pod in ground.pods().list(&ListParams::default()).await? {
        let name = pod.metadata.name.unwrap_or_default();
        let Some(spec) = pod.spec else { continue };
        let Some(node) = spec.node_name else { continue };
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        if phase == "Succeeded" || phase == "Failed" {
            continue;
        }
        let limits =
            spec.containers.into_iter().filter_map(|container| container.resources?.limits);
        let gpus = limits.filter_map(|mut limits| limits.remove(names::GPU));
        let gpus: u32 = gpus.filter_map(|amount| amount.0.parse::<u32>().ok()).sum();
        let sum = held.entry(node.clone()).or_default();
        *sum += gpus;
        if *sum > GPUS {
            return Err(format!("{node} has {GPUS} GPUs, and its pods hold {sum}").into());
        }
        let annotations = pod.metadata.annotations.unwrap_or_default();
        let Some(text) = annotations.get(names::DECISION) else { continue };
        let uid = pod.metadata.uid.unwrap_or_default();
        let decision = Decision::read(text, &uid).map_err(|error| format!("{name}: {error}"))?;
        let devices = decision.containers.into_iter().flat_map(|container| container.devices);
        for device in devices {
            let device = device.id();
            if !decided.insert(device.clone()) {
                return Err(format!("{device} is decided for {name} and for another pod").into());
            }
        }
    }
    Ok(())
}
