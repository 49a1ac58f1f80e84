//! An idle cluster and one pod at a time: how long a user waits who has nobody to wait for.

use crate::Failure;
use crate::audit::ms;
use crate::ground::{Contender, Draft, Ground};
use std::time::Duration;

/// Between two pods, so that what follows a binding is over.
const REST: Duration = Duration::from_millis(60);
/// Pods before the measured ones: connections are opened, caches filled.
const WARM_UP: usize = 10;

/// Creates pods one after the other; milliseconds from created to bound of each, in order.
///
/// # Errors
/// If one is not bound.
pub async fn singles(
    ground: &mut Ground,
    by: Contender,
    count: usize,
) -> Result<Vec<f64>, Failure> {
    ground.start(by)?;
    let mut waits = Vec::with_capacity(count);
    for index in 0..WARM_UP + count {
        ground.audit.begin()?;
        let name = format!("single-{index}");
        let draft = Draft { name, by, gpus: 1, class: "guaranteed", group: "single", gang: 1 };
        ground.create(std::iter::once(draft.pod())).await?;
        ground.until_bound(1, by).await?;
        // Of two answers at once, either may be written first.
        let (created, bound) = loop {
            let times = ground.audit.pods().values().find_map(|pod| pod.created.zip(pod.bound));
            match times {
                Some(times) => break times,
                None => ground.settle(REST).await?,
            }
        };
        if index >= WARM_UP {
            waits.push(ms(created, bound));
        }
        ground.remove("group=single").await?;
        tokio::time::sleep(REST).await;
    }
    ground.stop(by);
    Ok(waits)
}
