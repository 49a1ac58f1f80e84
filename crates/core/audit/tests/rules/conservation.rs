//! What must add up: GPU time, running time, work.

use crate::hand::*;
use deepshare_audit::{Violation, WorkLedger};
use deepshare_engine::Event;
use deepshare_model::Span;

fn secs(s: u64) -> Span {
    Span::from_secs(s)
}

#[test]
fn gpu_time_is_held_promised_free_or_closed() {
    let mut hand = Hand::new(&[4, 4]);
    hand.running(4, A0, &[(N0, 0xf)]);
    hand.passes(10);
    hand.sees(Event::NodeCordoned { node: N1, cordoned: true });
    let job = hand.job(2);
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0b11)]).unwrap();
    hand.passes(10);
    hand.released(A0);
    hand.passes(10);
    // Late, but this is a check of sums: the reservation stood on empty devices for a while.
    hand.sees(Event::Wake);
    hand.start(A1, job, &[(N0, 0b11)]).unwrap();
    hand.passes(10);
    let time = hand.auditor.finish(hand.now).unwrap().gpu_time;
    assert_eq!(time.installed, secs(40).on(8));
    assert_eq!(time.held, secs(20).on(4) + secs(10).on(2));
    assert_eq!(time.promised, secs(10).on(2));
    assert_eq!(time.closed, secs(30).on(4));
    assert_eq!(time.free, secs(10).on(4) + secs(20).on(2));
}

const WORK: WorkLedger = WorkLedger {
    slowed: Span::ZERO,
    work: Span::from_secs(100),
    progressed: Span::from_secs(130),
    lost: Span::from_secs(30),
    restarts: Span::from_secs(10),
    ran: Span::from_secs(140),
    completed: true,
};

/// A job that held its device for 140 seconds.
fn hand_after_140_s() -> Hand {
    let mut hand = Hand::new(&[4]);
    hand.running(1, A0, &[(N0, 1)]);
    hand.passes(140);
    hand.finished(A0);
    hand.released(A0);
    hand
}

#[test]
fn a_completed_job_did_its_work_and_nothing_else() {
    let mut hand = hand_after_140_s();
    hand.auditor.work(J0, &WORK).unwrap();
    assert_eq!(hand.auditor.finish(hand.now).unwrap().ledgers, 1);
    let free_lunch = WorkLedger { lost: secs(31), ..WORK };
    breaks!(hand.auditor.work(J0, &free_lunch), Violation::WorkNotConserved { .. });
    let idle = WorkLedger { ran: secs(141), ..WORK };
    breaks!(hand.auditor.work(J0, &idle), Violation::RunTimeNotConserved { .. });
    breaks!(hand.auditor.work(J1, &WORK), Violation::UnknownJob { .. });
}

#[test]
fn an_unfinished_job_did_at_most_its_work() {
    let mut hand = hand_after_140_s();
    let part = WorkLedger { work: secs(200), completed: false, ..WORK };
    hand.auditor.work(J0, &part).unwrap();
    let beyond = WorkLedger { work: secs(99), ..part };
    breaks!(hand.auditor.work(J0, &beyond), Violation::WorkNotConserved { .. });
    let lost_more_than_made = WorkLedger { lost: secs(131), ..part };
    breaks!(hand.auditor.work(J0, &lost_more_than_made), Violation::WorkNotConserved { .. });
}

#[test]
fn a_ledger_of_absurd_figures_is_a_violation_not_an_overflow() {
    let mut hand = hand_after_140_s();
    let huge = WorkLedger { progressed: Span::MAX, restarts: Span::MAX, lost: Span::ZERO, ..WORK };
    breaks!(hand.auditor.work(J0, &huge), Violation::WorkNotConserved { .. });
}

#[test]
fn nobody_runs_without_devices() {
    let mut hand = hand_after_140_s();
    let longer = WorkLedger { restarts: secs(11), ran: secs(141), ..WORK };
    hand.auditor.work(J0, &longer).unwrap();
    breaks!(hand.auditor.finish(hand.now), Violation::RanWithoutDevices { job: J0, .. });
}
