//! Who may be reserved for, and who may start.

use crate::hand::*;
use deepshare_audit::{Unstartable, Violation};
use deepshare_engine::{AttemptState, BindFailure, Event};
use deepshare_model::{Outcome, Span, Time};

#[test]
fn a_job_waits_runs_ends_and_leaves_its_devices_to_the_next() {
    let mut hand = Hand::new(&[8]);
    hand.running(8, A0, &[(N0, 0xff)]);
    let next = hand.job(4);
    hand.passes(100);
    hand.finished(A0);
    hand.passes(5);
    hand.released(A0);
    hand.start(A1, next, &[(N0, 0x0f)]).unwrap();
    let report = hand.auditor.finish(hand.now).unwrap();
    assert_eq!((report.jobs.ended, report.jobs.active), (1, 1));
    assert_eq!(report.gpu_time.held, Span::from_secs(105).on(8));
}

#[test]
fn a_job_that_ended_never_starts_again() {
    let mut hand = Hand::new(&[8]);
    let job = hand.running(1, A0, &[(N0, 1)]);
    hand.finished(A0);
    let again = hand.start(A1, job, &[(N0, 2)]);
    breaks!(again, Violation::NotStartable { why: Unstartable::Ended(Outcome::Succeeded), .. });
    hand.released(A0);
    let again = hand.start(A1, job, &[(N0, 1)]);
    breaks!(again, Violation::NotStartable { why: Unstartable::Ended(_), .. });
}

#[test]
fn a_cancelled_job_does_not_start() {
    let mut hand = Hand::new(&[8]);
    let job = hand.job(1);
    hand.sees(Event::Cancelled { job });
    let start = hand.start(A0, job, &[(N0, 1)]);
    breaks!(start, Violation::NotStartable { why: Unstartable::Ended(Outcome::Cancelled), .. });
}

#[test]
fn a_job_cancelled_while_reserved_does_not_start() {
    let mut hand = Hand::new(&[8]);
    hand.running(8, A0, &[(N0, 0xff)]);
    let job = hand.job(8);
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0xff)]).unwrap();
    hand.sees(Event::Cancelled { job });
    let start = hand.start(A1, job, &[(N0, 0xff)]);
    breaks!(start, Violation::NotStartable { why: Unstartable::Cancelled, .. });
}

#[test]
fn a_held_job_starts_only_when_its_owner_lets_it() {
    let mut hand = Hand::new(&[8]);
    let job = hand.job(1);
    hand.sees(Event::Held { job });
    let start = hand.start(A0, job, &[(N0, 1)]);
    breaks!(start, Violation::NotStartable { why: Unstartable::Held, .. });
    breaks!(hand.reserve(A0, job, &[(N0, 1)]), Violation::NotStartable { .. });
    hand.sees(Event::Unheld { job });
    hand.start(A0, job, &[(N0, 1)]).unwrap();
}

#[test]
fn a_failed_start_pauses_the_job_longer_each_time_and_no_more_once_it_ran() {
    let mut hand = Hand::new(&[8]);
    let job = hand.job(1);
    hand.start(A0, job, &[(N0, 1)]).unwrap();
    hand.sees(Event::BindFailed { attempt: A0, failure: BindFailure::Transient });
    let early = hand.start(A1, job, &[(N0, 1)]);
    let until = Time::from_secs(1);
    breaks!(early, Violation::NotStartable { why: Unstartable::BackingOff { until: u }, .. }
        if *u == until);
    hand.passes(1);
    hand.sees(Event::Wake);
    hand.start(A1, job, &[(N0, 1)]).unwrap();
    hand.sees(Event::Rejected { attempt: A1 });
    hand.passes(1);
    hand.sees(Event::Wake);
    breaks!(hand.start(A2, job, &[(N0, 1)]), Violation::NotStartable { .. });
    hand.passes(1);
    hand.sees(Event::Wake);
    hand.start(A2, job, &[(N0, 1)]).unwrap();
}

#[test]
fn a_job_has_one_live_attempt() {
    let mut hand = Hand::new(&[8]);
    let job = hand.running(1, A0, &[(N0, 1)]);
    let second = hand.start(A1, job, &[(N0, 2)]);
    breaks!(second, Violation::TwoLiveAttempts { live: A0, second: A1, .. });
    hand.preempt(A0).unwrap();
    breaks!(hand.reserve(A1, job, &[(N0, 2)]), Violation::TwoLiveAttempts { .. });
    hand.released(A0);
    hand.start(A1, job, &[(N0, 2)]).unwrap();
}

#[test]
fn an_attempt_starts_once() {
    let mut hand = Hand::new(&[8]);
    let job = hand.running(1, A0, &[(N0, 1)]);
    let again = hand.start(A0, job, &[(N0, 1)]);
    breaks!(again, Violation::StartedTwice { state: AttemptState::Running, .. });
}

#[test]
fn a_reservation_starts_where_it_was_made_when_its_holders_are_gone() {
    let mut hand = Hand::new(&[8]);
    hand.running(4, A0, &[(N0, 0x0f)]);
    let (job, other) = (hand.job(4), hand.job(4));
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0x0f)]).unwrap();
    let early = hand.start(A1, job, &[(N0, 0x0f)]);
    breaks!(early, Violation::DeviceHeld { holder: A0, .. });
    hand.released(A0);
    breaks!(hand.start(A1, job, &[(N0, 0xf0)]), Violation::ReservationChanged { .. });
    breaks!(hand.start(A1, other, &[(N0, 0x0f)]), Violation::ReservationChanged { .. });
    hand.start(A1, job, &[(N0, 0x0f)]).unwrap();
}

#[test]
fn a_reservation_that_waits_for_nobody_is_stuck() {
    let mut hand = Hand::new(&[8]);
    hand.running(4, A0, &[(N0, 0x0f)]);
    let job = hand.job(4);
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0x0f)]).unwrap();
    assert!(hand.auditor.finish(hand.now).is_ok());
    hand.released(A0);
    breaks!(hand.auditor.finish(hand.now), Violation::ReservationStuck { attempt: A1, .. });
}
