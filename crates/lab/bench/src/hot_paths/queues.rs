//! The simulator's event queue.

use super::queue::{Due, EventQueue};
use deepshare_model::{AttemptId, Time};

pub(super) fn event_queue(units: u32) {
    let mut queue = EventQueue::default();
    let mut chance = 1_u64;
    let mut later = |now: Time| {
        chance =
            chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Time(now.0 + 1 + (chance >> 40))
    };
    for index in 0..10_000 {
        queue.push(later(Time::ZERO), Due::WorkDone(AttemptId(index), 0));
    }
    let mut last = Time::ZERO;
    for index in 0..units {
        let now = queue.next_at().expect("as many are pushed as popped");
        assert!(now >= last, "events come in order");
        last = now;
        queue.pop_at(now).expect("the next event is due at its own instant");
        queue.push(later(now), Due::WorkDone(AttemptId(index), 0));
    }
}
