//! A large cluster and a scheduler that dies: how soon the next one binds, what it needs for that,
//! and what it costs while nothing happens.

use crate::Failure;
use crate::audit::ms;
use crate::check;
use crate::ground::{Contender, Draft, Ground};
use crate::process::Cost;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;

/// GPUs that are free when the next one starts.
const FREE: usize = 100;
/// How long it is watched doing nothing.
const IDLE: Duration = Duration::from_secs(30);

/// Nothing happens any more if nothing was written for so long.
const QUIET: Duration = Duration::from_secs(5);

/// One restart.
pub struct Restart {
    /// Nodes.
    pub nodes: usize,
    /// Pods that are bound.
    pub bound: usize,
    /// Pods that wait.
    pub waiting: usize,
    /// Bindings in a second while it was filled.
    pub filled_per_second: f64,
    /// From the start of the process to its Lease, in seconds: the dead one's has to expire.
    pub lease_s: f64,
    /// From then until every list has arrived, in seconds.
    pub lists_s: f64,
    /// From then to the first binding, in seconds.
    pub first_bind_s: f64,
    /// From its start to its first binding of kube-scheduler, in seconds; it has no Lease to wait for.
    pub kube_first_bind_s: f64,
    /// What it has cost once all is bound that can be.
    pub cost: Cost,
    /// The same of kube-scheduler.
    pub kube_cost: Cost,
    /// CPU while nothing happens, in per cent of one core.
    pub idle_percent: f64,
}

/// Fills so many nodes, leaves the rest of the pods waiting, and crashes. The nodes must be silent: who
/// ends nothing need not be simulated.
///
/// # Errors
/// If somebody is not bound who should be.
pub async fn restart(ground: &mut Ground, nodes: usize, pods: usize) -> Result<Restart, Failure> {
    let by = Contender::DeepShare;
    let gpus = nodes * check::GPUS as usize;
    let draft = |index: usize| {
        let group = if index < FREE { "leaves" } else { "stays" };
        let name = format!("many-{index}");
        Draft { name, by, gpus: 1, class: "guaranteed", group, gang: 1 }.pod()
    };
    // What stays is bound before what waits exists: which pods are bound is known then.
    ground.audit.begin()?;
    ground.create((0..gpus).map(draft)).await?;
    ground.start(by)?;
    ground.until_bound(gpus, by).await?;
    let bindings = ground.audit.bindings();
    let filled_s = ms(bindings[0], bindings[gpus - 1]) / 1_000.0;
    ground.create((gpus..pods).map(draft)).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    ground.kill(by);

    ground.remove("group=leaves").await?;
    let (kube_first_bind_s, kube_cost) = kube(ground).await?;
    ground.audit.begin()?;
    let begun = Timestamp::now();
    ground.start(by)?;
    ground.until_bound(FREE.min(pods - gpus), by).await?;
    let first = ground.audit.bindings()[0];
    let said = ground.said(by);
    let (leads, listed) = (said_at(&said, "this process leads")?, said_at(&said, "is known")?);
    // Whoever waits is told why, a hundred a second: that is not nothing.
    ground.settle(QUIET).await?;
    let cost = ground.cost(by.program());
    tokio::time::sleep(IDLE).await;
    let after = ground.cost(by.program());
    check::devices(ground).await?;
    ground.stop(by);
    Ok(Restart {
        nodes,
        bound: gpus,
        waiting: pods - gpus,
        filled_per_second: (gpus - 1) as f64 / filled_s,
        lease_s: ms(begun, leads) / 1_000.0,
        lists_s: ms(leads, listed) / 1_000.0,
        first_bind_s: ms(listed, first) / 1_000.0,
        kube_first_bind_s,
        cost: after,
        kube_cost,
        idle_percent: 100.0 * (after.cpu_s - cost.cpu_s) / IDLE.as_secs_f64(),
    })
}

/// The same for kube-scheduler, with pods of its own to bind; they are removed again.
async fn kube(ground: &mut Ground) -> Result<(f64, Cost), Failure> {
    let by = Contender::Kube;
    let draft = |index| {
        let name = format!("kube-{index}");
        Draft { name, by, gpus: 1, class: "guaranteed", group: "kube", gang: 1 }.pod()
    };
    ground.create((0..FREE).map(draft)).await?;
    ground.audit.begin()?;
    let begun = Timestamp::now();
    ground.start(by)?;
    ground.until_bound(FREE, by).await?;
    let first = ground.audit.bindings()[0];
    let cost = ground.cost(by.program());
    ground.stop(by);
    ground.remove("group=kube").await?;
    Ok((ms(begun, first) / 1_000.0, cost))
}

/// When the scheduler said something, by its log.
fn said_at(said: &str, what: &str) -> Result<Timestamp, Failure> {
    let line = said.lines().find(|line| line.contains(what));
    // Colours are off: its output is a file.
    let at = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    at.ok_or_else(|| format!("the scheduler did not say {what:?}:\n{said}").into())
}
