//! The stream itself: time, ids, names.

use crate::hand::*;
use deepshare_audit::Violation;
use deepshare_engine::{EngineSettings, Event};
use deepshare_model::{
    AttemptId, Demand, Epoch, JobId, NodeId, PoolId, Quota, TenantId, TenantSpec, Time,
};

#[test]
fn time_never_runs_backwards() {
    let mut hand = Hand::new(&[8]);
    hand.passes(10);
    hand.sees(Event::Wake);
    hand.now = Time::from_secs(9);
    breaks!(hand.event(Event::Wake), Violation::TimeRanBackwards { .. });
    breaks!(hand.auditor.finish(Time::from_secs(9)), Violation::TimeRanBackwards { .. });
}

#[test]
fn a_command_is_dated_like_its_event() {
    let mut hand = Hand::new(&[8]);
    let job = hand.job(1);
    hand.passes(1);
    breaks!(hand.start(A0, job, &[(N0, 1)]), Violation::CommandOffStep { .. });
}

#[test]
fn ids_come_in_order() {
    let mut hand = Hand::new(&[8]);
    let spec = job_of(Demand::gpus(1));
    breaks!(
        hand.event(Event::Submitted { job: JobId(1), spec }),
        Violation::JobIdOutOfOrder { job: JobId(1), expected: J0 }
    );
    breaks!(
        hand.event(Event::NodeAdded { node: NodeId(2), spec: node_of(8) }),
        Violation::NodeIdOutOfOrder { .. }
    );
    let spec = TenantSpec::new(PoolId(0), Quota::default());
    breaks!(
        hand.event(Event::TenantSet { tenant: TenantId(2), spec }),
        Violation::TenantIdOutOfOrder { .. }
    );
    let job = hand.job(1);
    breaks!(hand.start(A1, job, &[(N0, 1)]), Violation::AttemptIdOutOfOrder { expected: A0, .. });
    breaks!(hand.reserve(A2, job, &[(N0, 1)]), Violation::AttemptIdOutOfOrder { .. });
}

#[test]
fn names_of_what_never_was_are_caught() {
    let mut hand = Hand::new(&[8]);
    breaks!(hand.event(Event::Cancelled { job: J0 }), Violation::UnknownJob { job: J0 });
    breaks!(hand.event(Event::NodeLost { node: N1 }), Violation::UnknownNode { node: N1 });
    breaks!(hand.start(A0, J0, &[(N0, 1)]), Violation::UnknownJob { .. });
    breaks!(hand.preempt(A0), Violation::UnknownAttempt { attempt: A0 });
    let event = Event::DeviceHealth { node: N0, device: 8, healthy: false };
    breaks!(hand.event(event), Violation::NoSuchDevice { device: 8, gpus: 8, .. });
    let job = hand.job(1);
    breaks!(hand.start(A0, job, &[(N1, 1)]), Violation::UnknownNode { node: N1 });

    let mut bare = Hand::bare(EngineSettings::default());
    let event = Event::Submitted { job: J0, spec: job_of(Demand::gpus(1)) };
    breaks!(bare.event(event), Violation::UnknownTenant { tenant: T0 });
}

#[test]
fn a_job_asks_for_a_gpu_at_least() {
    let mut hand = Hand::new(&[8]);
    let event = Event::Submitted { job: J0, spec: job_of(Demand::gpus(0)) };
    breaks!(hand.event(event), Violation::NoGpus { job: J0 });
}

#[test]
fn commands_carry_the_term_that_decided_them() {
    let mut hand = Hand::new(&[8]);
    let job = hand.job(1);
    hand.sees(Event::Leadership { epoch: Epoch(3) });
    breaks!(hand.start(A0, job, &[(N0, 1)]), Violation::WrongEpoch { current: Epoch(3), .. });
    hand.start_under(Epoch(3), A0, job, &[(N0, 1)]).unwrap();
    // An older term's news comes late: the newer one still leads.
    hand.sees(Event::Leadership { epoch: Epoch(2) });
    breaks!(hand.preempt(A0), Violation::WrongEpoch { given: Epoch(0), .. });
}

#[test]
fn a_reservation_starts_under_the_term_that_made_it_or_a_later_one() {
    let mut hand = Hand::new(&[8]);
    hand.running(8, A0, &[(N0, 0xff)]);
    let job = hand.job(8);
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0xff)]).unwrap();
    hand.sees(Event::Leadership { epoch: Epoch(2) });
    hand.released(A0);
    let late = hand.start_under(Epoch(3), A1, job, &[(N0, 0xff)]);
    breaks!(late, Violation::WrongEpoch { attempt: AttemptId(1), .. });
    hand.start_under(Epoch(0), A1, job, &[(N0, 0xff)]).unwrap();
}
