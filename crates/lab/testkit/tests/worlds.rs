//! Random worlds: whatever the cluster, load, policy and faults, the properties hold.
//!
//! `DEEPSHARE_WORLDS=N` tries seeds 0 to N; the default is what CI can afford.

use deepshare_testkit::RandomWorld;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const WORLDS: u64 = 800;

fn worlds() -> u64 {
    let given = std::env::var("DEEPSHARE_WORLDS").ok();
    given.map_or(WORLDS, |text| text.parse().expect("DEEPSHARE_WORLDS is a number of seeds"))
}

#[test]
fn no_random_world_breaks_a_property() {
    let (next, worlds) = (AtomicU64::new(0), worlds());
    let failed: Mutex<Vec<u64>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= worlds {
                        break;
                    }
                    if RandomWorld::draw(seed).check().is_err() {
                        failed.lock().expect("no panics in between").push(seed);
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().expect("all threads are done");
    failed.sort_unstable();
    if let Some(&seed) = failed.first() {
        let world = RandomWorld::draw(seed).shrink();
        let why = world.check().expect_err("shrinking keeps the failure");
        panic!(
            "{} of {worlds} worlds fail, seeds {failed:?}; the first:\n{why}\n{world}",
            failed.len()
        );
    }
}

#[test]
fn a_smaller_world_is_the_same_world_without_the_rest() {
    let world = RandomWorld::draw(3);
    let smaller = world.clone().with_jobs(&[0, 2]).with_jobs(&[2]);
    assert_eq!(smaller.trace().jobs, [world.trace().jobs[2].clone()]);
    assert!(smaller.to_string().starts_with("RandomWorld::draw(3).with_jobs(&[2]).check()"));
}
