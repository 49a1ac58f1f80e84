//! An empty cluster and as many one-GPU pods as it has GPUs: how many are bound in a second.

use crate::Failure;
use crate::audit::ms;
use crate::check;
use crate::ground::{Contender, Draft, Ground};
use crate::process::Cost;

/// One fill.
pub struct Fill {
    /// Who filled.
    pub by: Contender,
    /// Pods.
    pub pods: usize,
    /// From the first accepted binding to the last, in seconds.
    pub binding_s: f64,
    /// From the start of the scheduler's process to the last, in seconds.
    pub in_all_s: f64,
    /// What the scheduler has cost.
    pub cost: Cost,
    /// CPU time of the API server and its database meanwhile, in seconds.
    pub server_cpu_s: f64,
}

impl Fill {
    /// Bindings in a second.
    pub fn per_second(&self) -> f64 {
        (self.pods - 1) as f64 / self.binding_s
    }
}

/// Creates the pods, then starts the scheduler, stops it when all are bound, checks what it did and
/// clears up.
///
/// # Errors
/// If a pod is not bound, or a device has two.
pub async fn fill(ground: &mut Ground, by: Contender, pods: usize) -> Result<Fill, Failure> {
    let draft = |index| {
        let name = format!("fill-{index}");
        Draft { name, by, gpus: 1, class: "guaranteed", group: "fill", gang: 1 }.pod()
    };
    ground.create((0..pods).map(draft)).await?;
    ground.audit.begin()?;
    let (begun, server) = (k8s_openapi::jiff::Timestamp::now(), ground.server_cpu_s());
    ground.start(by)?;
    ground.until_bound(pods, by).await?;
    let cost = ground.cost(by.program());
    let server_cpu_s = ground.server_cpu_s() - server;
    ground.stop(by);
    let bindings = ground.audit.bindings();
    let (first, last) = (bindings[0], bindings[bindings.len() - 1]);
    check::devices(ground).await?;
    ground.remove("group=fill").await?;
    let seconds = |from| ms(from, last) / 1_000.0;
    Ok(Fill { by, pods, binding_s: seconds(first), in_all_s: seconds(begun), cost, server_cpu_s })
}
