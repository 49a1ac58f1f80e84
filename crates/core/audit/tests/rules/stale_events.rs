//! Doubled, late and stale events are part of life: no violation, and no change.

use crate::hand::*;
use deepshare_engine::{BindFailure, Event, EvictReason};
use deepshare_model::{AttemptId, Demand, Outcome, PoolId, Time};

/// Everything that can be said about an attempt.
fn news_of(attempt: AttemptId) -> Vec<Event> {
    vec![
        Event::Bound { attempt },
        Event::Running { attempt },
        Event::BindFailed { attempt, failure: BindFailure::Transient },
        Event::BindFailed { attempt, failure: BindFailure::Permanent },
        Event::Rejected { attempt },
        Event::StartOverdue { attempt },
        Event::EvictionRefused { attempt },
        Event::Terminating { attempt, until: Time::ZERO },
        Event::DevicesReleased { attempt },
        Event::Finished { attempt, outcome: Outcome::Failed },
    ]
}

#[test]
fn news_of_a_past_attempt_touches_neither_its_job_nor_its_devices() {
    let mut hand = Hand::new(&[4]);
    let job = hand.running(4, A0, &[(N0, 0xf)]);
    hand.preempt(A0).unwrap();
    hand.released(A0);
    hand.start(A1, job, &[(N0, 0xf)]).unwrap();
    for event in news_of(A0) {
        hand.sees(event);
    }
    // The second attempt still holds every device, and the job is not over.
    let other = hand.job(1);
    breaks!(hand.start(A2, other, &[(N0, 1)]), deepshare_audit::Violation::DeviceHeld { .. });
    assert_eq!(hand.auditor.finish(hand.now).unwrap().jobs.active, 1);
}

#[test]
fn news_of_an_attempt_that_never_was_is_nothing() {
    let mut hand = Hand::new(&[4]);
    for event in news_of(AttemptId(77)) {
        hand.sees(event);
    }
    assert_eq!(hand.auditor.finish(hand.now).unwrap().attempts, 0);
}

#[test]
fn a_reservation_hears_nothing_but_its_holders_leaving() {
    let mut hand = Hand::new(&[4]);
    hand.running(4, A0, &[(N0, 0xf)]);
    let job = hand.job(4);
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0xf)]).unwrap();
    for event in news_of(A1) {
        hand.sees(event);
    }
    hand.released(A0);
    hand.start(A1, job, &[(N0, 0xf)]).unwrap();
}

#[test]
fn doubled_acknowledgements_count_once() {
    let mut hand = Hand::new(&[4]);
    let job = hand.job(4);
    hand.start(A0, job, &[(N0, 0xf)]).unwrap();
    for _ in 0..2 {
        hand.sees(Event::Running { attempt: A0 });
        hand.sees(Event::Bound { attempt: A0 });
    }
    // It runs: refusals to start it came too late to be true.
    hand.sees(Event::Rejected { attempt: A0 });
    hand.sees(Event::StartOverdue { attempt: A0 });
    hand.passes(10);
    for _ in 0..2 {
        hand.finished(A0);
    }
    for _ in 0..2 {
        hand.released(A0);
        hand.passes(10);
    }
    let report = hand.auditor.finish(hand.now).unwrap();
    assert_eq!(report.gpu_time.held.as_gpu_secs(), 40.0);
    assert_eq!(report.jobs.ended, 1);
}

#[test]
fn a_doubled_submission_node_or_loss_changes_nothing() {
    let mut hand = Hand::new(&[4]);
    let job = hand.job(4);
    hand.sees(Event::Submitted { job, spec: job_of(Demand::gpus(1)) });
    hand.sees(Event::NodeAdded { node: N0, spec: node_of(8) });
    hand.start(A0, job, &[(N0, 0xf)]).unwrap();
    hand.sees(Event::NodeLost { node: N0 });
    hand.evict(A0, EvictReason::NodeLost).unwrap();
    hand.sees(Event::NodeLost { node: N0 });
    hand.released(A0);
    hand.sees(Event::NodeRecovered { node: N0 });
    hand.sees(Event::NodeCordoned { node: N0, cordoned: true });
    // A doubled recovery does not open what was closed since.
    hand.sees(Event::NodeRecovered { node: N0 });
    let closed = hand.start(A1, job, &[(N0, 0xf)]);
    breaks!(closed, deepshare_audit::Violation::NodeClosed { .. });
}

#[test]
fn a_release_that_overtakes_the_end_loses_no_job() {
    let mut hand = Hand::new(&[4]);
    hand.running(4, A0, &[(N0, 0xf)]);
    hand.released(A0);
    assert_eq!(hand.auditor.finish(hand.now).unwrap().jobs.waiting, 1);
    hand.finished(A0);
    assert_eq!(hand.auditor.finish(hand.now).unwrap().jobs.ended, 1);
}

#[test]
fn a_refused_eviction_that_comes_after_the_end_is_nothing() {
    let mut hand = Hand::new(&[4]);
    hand.running(4, A0, &[(N0, 0xf)]);
    hand.preempt(A0).unwrap();
    hand.finished(A0);
    hand.sees(Event::EvictionRefused { attempt: A0 });
    // Still ending, so its devices can be promised.
    let job = hand.job(4);
    hand.reserve(A1, job, &[(N0, 0xf)]).unwrap();
}

#[test]
fn a_moved_node_keeps_what_runs_there() {
    let mut hand = Hand::new(&[4]);
    let job = hand.running(2, A0, &[(N0, 0b11)]);
    hand.sees(Event::NodeMoved { node: N0, pool: PoolId(1) });
    hand.passes(10);
    hand.finished(A0);
    hand.released(A0);
    hand.sees(Event::Cancelled { job });
    assert_eq!(hand.auditor.finish(hand.now).unwrap().gpu_time.held.as_gpu_secs(), 20.0);
}
