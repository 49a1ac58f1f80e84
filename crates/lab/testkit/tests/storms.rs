//! Random events straight on the engine: whatever comes in whatever order, every rule holds, and
//! an engine restored from a snapshot goes on as the one it was taken from.
//!
//! `DEEPSHARE_STORM_STEPS=N` lets N events happen in all; the default is what CI can afford.

use deepshare_testkit::Storm;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

const STEPS: u64 = 100_000;
const STEPS_EACH: u32 = 1_000;

#[test]
fn no_random_events_break_a_rule() {
    let given = std::env::var("DEEPSHARE_STORM_STEPS").ok();
    let steps = given.map_or(STEPS, |text| text.parse().expect("a number of steps"));
    let storms = steps.div_ceil(u64::from(STEPS_EACH));
    let (next, first) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let (formed, revoked) = (AtomicU64::new(0), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= storms.min(first.load(Ordering::Relaxed)) {
                        break;
                    }
                    match Storm::draw(seed).blow(STEPS_EACH) {
                        Ok(pairs) => {
                            formed.fetch_add(pairs.formed, Ordering::Relaxed);
                            revoked.fetch_add(pairs.revoked, Ordering::Relaxed);
                        }
                        Err(_) => _ = first.fetch_min(seed, Ordering::Relaxed),
                    }
                }
            });
        }
    });
    let seed = first.into_inner();
    if seed < u64::MAX {
        let storm = Storm::draw(seed);
        let damage = storm.blow(STEPS_EACH).expect_err("it failed before");
        let mut events = String::new();
        for (now, event) in &damage.events {
            writeln!(events, "  {now} {event:?}").expect("strings take everything");
        }
        panic!("{}: {}\n{events}", storm.describe(), damage.why);
    }
    let (formed, revoked) = (formed.into_inner(), revoked.into_inner());
    eprintln!("{storms} storms: {formed} pairs formed, {revoked} revoked");
    assert!(formed > storms && revoked > storms / 10, "storms form and break up pairs");
}
