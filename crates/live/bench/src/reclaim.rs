//! A cluster full of best-effort pods and a guaranteed gang of eight times eight GPUs.

use crate::Failure;
use crate::audit::ms;
use crate::check;
use crate::ground::{Contender, Draft, Ground};
use std::time::Duration;

/// Pods of the gang, and GPUs of each.
const GANG: u32 = 8;

/// Nothing happens any more if nothing was written for so long.
const QUIET: Duration = Duration::from_millis(500);

/// One reclaim.
pub struct Reclaim {
    /// Pods that had to go.
    pub victims: usize,
    /// From the gang's last pod created to its last binding, in milliseconds.
    pub waited_ms: f64,
    /// Of that, from the last victim's end to the last binding.
    pub after_release_ms: f64,
}

/// Fills the nodes with best-effort pods of one GPU, and lets gangs come, one after the other, whose
/// place must be made. The nodes must be simulated: somebody has to end the victims.
///
/// # Errors
/// If somebody is not bound, or a device has two pods.
pub async fn reclaims(
    ground: &mut Ground,
    nodes: usize,
    count: usize,
) -> Result<Vec<Reclaim>, Failure> {
    let by = Contender::DeepShare;
    let borrowers = nodes * check::GPUS as usize;
    ground.start(by)?;
    let mut next = 0;
    let mut borrow = |more: usize| {
        next += more;
        let draft = |index| {
            let name = format!("borrower-{index}");
            Draft { name, by, gpus: 1, class: "best-effort", group: "borrower", gang: 1 }.pod()
        };
        (next - more..next).map(draft).collect::<Vec<_>>()
    };
    let mut missing = borrowers;
    let mut reclaims = Vec::new();
    for round in 0..count {
        ground.audit.begin()?;
        ground.create(borrow(missing).into_iter()).await?;
        ground.until_bound(missing, by).await?;
        // All of them run, and nothing is written any more.
        ground.settle(QUIET).await?;
        ground.audit.begin()?;
        let group = format!("gang-{round}");
        let member = |index| {
            let name = format!("gang-{round}-{index}");
            let draft = Draft { name, by, gpus: 8, class: "guaranteed", group: &group, gang: GANG };
            draft.pod()
        };
        ground.create((0..GANG).map(member)).await?;
        ground.until_bound(GANG as usize, by).await?;
        // What follows the last binding is written, too.
        ground.settle(QUIET).await?;
        reclaims.push(measured(ground, &format!("gang-{round}-"))?);
        check::devices(ground).await?;
        missing = reclaims[reclaims.len() - 1].victims;
        ground.remove(&format!("group={group}")).await?;
    }
    ground.stop(by);
    ground.remove("group=borrower").await?;
    Ok(reclaims)
}

fn measured(ground: &Ground, prefix: &str) -> Result<Reclaim, Failure> {
    let pods = ground.audit.pods();
    let (gang, others): (Vec<_>, Vec<_>) =
        pods.iter().partition(|(name, _)| name.starts_with(prefix));
    let victims: Vec<_> = others.iter().filter(|(_, pod)| pod.deleted.is_some()).collect();
    // A node says that a pod has ended before it removes it: the scheduler may act on that.
    let released = victims.iter().filter_map(|(_, pod)| pod.status).max();
    let created = gang.iter().filter_map(|(_, pod)| pod.created).max();
    let bound = gang.iter().filter_map(|(_, pod)| pod.bound).max();
    let (Some(released), Some(created), Some(bound)) = (released, created, bound) else {
        return Err("the gang was bound without a victim".into());
    };
    Ok(Reclaim {
        victims: victims.len(),
        waited_ms: ms(created, bound),
        after_release_ms: ms(released, bound),
    })
}
