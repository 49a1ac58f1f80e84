//! What nodes are simulated.

use std::collections::BTreeMap;
use std::time::Duration;

/// Label of simulated nodes: the name of their simulator.
pub const SIMULATOR: &str = "testbed.deepshare.io/simulator";

/// Under which resources a node offers its GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum GpuResource {
    /// `deepshare.io/gpu: n` and `deepshare.io/gpu-slot: 2n`, of one set of devices, with a GpuNode
    /// that tells which.
    #[default]
    Deepshare,
    /// `nvidia.com/gpu: n`, as NVIDIA's device plugin does, which tells nothing more.
    Nvidia,
}

/// A set of like nodes.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Begin of the nodes' names (`PREFIX-0`, `PREFIX-1`, …) and value of the label [`SIMULATOR`].
    pub prefix: String,
    /// How many nodes.
    pub count: usize,
    /// GPUs of each.
    pub gpus: usize,
    /// Model of the GPUs.
    pub gpu_type: String,
    /// Memory of each GPU in MiB.
    pub gpu_memory_mib: u32,
    /// How the GPUs are offered.
    pub resource: GpuResource,
    /// CPUs of each node.
    pub cpus: u32,
    /// Memory of each node in GiB.
    pub memory_gib: u32,
    /// Pods that each node takes.
    pub pods: u32,
    /// More labels.
    pub labels: BTreeMap<String, String>,
    /// Same seed, same device UUIDs and start delays.
    pub seed: u64,
    /// A pod runs at a random time in this range after its binding is seen.
    pub start_delay: (Duration, Duration),
    /// Time between two heartbeats of a node.
    pub heartbeat: Duration,
    /// Time between two samples of what pairs keep of their speed.
    pub sample: Duration,
}

impl Default for NodeSpec {
    fn default() -> NodeSpec {
        NodeSpec {
            prefix: "node".to_owned(),
            count: 1,
            gpus: 8,
            gpu_type: "A100-80GB".to_owned(),
            gpu_memory_mib: 81_920,
            resource: GpuResource::Deepshare,
            cpus: 128,
            memory_gib: 1024,
            pods: 110,
            labels: BTreeMap::new(),
            seed: 1,
            start_delay: (Duration::from_millis(20), Duration::from_millis(60)),
            heartbeat: Duration::from_secs(10),
            sample: Duration::from_secs(5),
        }
    }
}

impl NodeSpec {
    /// Name of a node, from 0.
    pub fn name(&self, index: usize) -> String {
        format!("{}-{index}", self.prefix)
    }

    /// UUID of a device: the same for the same seed, node and position.
    pub fn uuid(&self, node: &str, index: usize) -> String {
        let text = format!("{}/{node}/{index}", self.seed);
        let hash = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
        let hex = format!("{hash:032x}");
        let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        format!("GPU-{a}-{b}-{c}-{d}-{e}")
    }

    /// How long a pod takes to start: random, but the same for the same seed and pod.
    pub fn start_delay_of(&self, namespace: &str, pod: &str) -> Duration {
        let (least, most) = self.start_delay;
        let text = format!("{namespace}/{pod}");
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), self.seed);
        let span = u64::try_from(most.saturating_sub(least).as_micros()).unwrap_or(u64::MAX);
        least + Duration::from_micros(hash % span.saturating_add(1).max(1))
    }

    /// # Errors
    /// What is wrong with it and how to write it.
    pub fn check(&self) -> Result<(), String> {
        let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.prefix.is_empty() || self.prefix.len() > 50 || !self.prefix.chars().all(name) {
            return Err(format!(
                "name of nodes {:?}: use up to 50 lower-case letters, digits and dashes",
                self.prefix
            ));
        }
        if self.gpus > 64 {
            return Err(format!("{} GPUs in a node: at most 64", self.gpus));
        }
        if self.start_delay.0 > self.start_delay.1 {
            return Err("start delay: the least is more than the most".to_owned());
        }
        if self.heartbeat.is_zero() || self.sample.is_zero() {
            return Err("times between heartbeats and between samples cannot be 0".to_owned());
        }
        Ok(())
    }
}
