//! Evictions, reservations given up, and what must end in a step.

use crate::hand::*;
use deepshare_audit::{Auditor, Duty, Violation};
use deepshare_engine::{AttemptState, EngineSettings, Event, EvictReason};
use deepshare_model::{Class, Demand, JobSpec, NodeSpec, PoolId, Quota, Resources, TenantSpec};

#[test]
fn only_a_started_attempt_that_goes_on_is_evicted() {
    let mut hand = Hand::new(&[8]);
    hand.running(4, A0, &[(N0, 0x0f)]);
    let job = hand.job(4);
    hand.preempt(A0).unwrap();
    let twice = hand.preempt(A0);
    breaks!(twice, Violation::NotEvictable { state: AttemptState::Terminating, .. });
    hand.reserve(A1, job, &[(N0, 0x0f)]).unwrap();
    breaks!(hand.preempt(A1), Violation::NotEvictable { state: AttemptState::Reserved, .. });
    hand.released(A0);
    breaks!(hand.preempt(A0), Violation::NotEvictable { state: AttemptState::Released, .. });
}

#[test]
fn a_finished_attempt_is_not_evicted() {
    let mut hand = Hand::new(&[8]);
    hand.running(4, A0, &[(N0, 0x0f)]);
    hand.finished(A0);
    breaks!(hand.preempt(A0), Violation::NotEvictable { .. });
}

#[test]
fn a_reason_to_evict_holds() {
    let mut hand = Hand::new(&[8]);
    hand.running(4, A0, &[(N0, 0x0f)]);
    for reason in [EvictReason::Cancelled, EvictReason::NodeLost, EvictReason::StartOverdue] {
        breaks!(hand.evict(A0, reason), Violation::EvictedWithoutCause { .. });
    }
}

#[test]
fn guaranteed_jobs_are_spared_where_the_policy_must_spare_them() {
    let auditor = Auditor::new(&EngineSettings::default()).preempts_guaranteed(false);
    let mut hand = Hand::beside(auditor);
    hand.tenant(TenantSpec::new(PoolId(0), Quota::default()));
    hand.node(node_of(8));
    hand.running(4, A0, &[(N0, 0x0f)]);
    breaks!(hand.preempt(A0), Violation::GuaranteedPreempted { job: J0, .. });
    let best_effort = JobSpec { class: Class::BestEffort, ..job_of(Demand::gpus(1)) };
    let job = hand.submit(best_effort);
    hand.start(A1, job, &[(N0, 0x10)]).unwrap();
    hand.preempt(A1).unwrap();
    // Its owner may always end it.
    hand.sees(Event::Cancelled { job: J0 });
    hand.evict(A0, EvictReason::Cancelled).unwrap();
}

#[test]
fn only_reservations_are_given_up() {
    let mut hand = Hand::new(&[8]);
    hand.running(4, A0, &[(N0, 0x0f)]);
    let job = hand.job(4);
    breaks!(hand.give_up(A0), Violation::NotAReservation { .. });
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0x0f)]).unwrap();
    hand.give_up(A1).unwrap();
    breaks!(hand.give_up(A1), Violation::NotAReservation { state: AttemptState::Released, .. });
    // The job waits again, and the devices are nobody's promise.
    hand.start(A2, job, &[(N0, 0xf0)]).unwrap();
}

#[test]
fn a_cancelled_job_is_ended_in_the_same_step() {
    let mut hand = Hand::new(&[8]);
    let job = hand.running(4, A0, &[(N0, 0x0f)]);
    hand.sees(Event::Cancelled { job });
    breaks!(hand.next_step(), Violation::DutyMissed { duty: Duty::Cancelled, .. });
    hand.evict(A0, EvictReason::Cancelled).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn whatever_was_on_a_lost_node_is_ended_in_the_same_step() {
    let mut hand = Hand::new(&[4, 4]);
    hand.running(8, A0, &[(N0, 0xf), (N1, 0xf)]);
    hand.sees(Event::NodeLost { node: N1 });
    breaks!(hand.next_step(), Violation::DutyMissed { duty: Duty::NodeLost(N1), .. });
    hand.evict(A0, EvictReason::NodeLost).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn a_promise_on_a_lost_node_is_given_up_in_the_same_step() {
    let mut hand = Hand::new(&[4]);
    hand.running(4, A0, &[(N0, 0xf)]);
    let job = hand.job(4);
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0xf)]).unwrap();
    hand.sees(Event::NodeLost { node: N0 });
    breaks!(hand.next_step(), Violation::DutyMissed { attempt: A1, .. });
    hand.give_up(A1).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn an_overdue_start_is_ended_in_the_same_step() {
    let mut hand = Hand::new(&[4]);
    let job = hand.job(4);
    hand.start(A0, job, &[(N0, 0xf)]).unwrap();
    hand.sees(Event::StartOverdue { attempt: A0 });
    breaks!(hand.next_step(), Violation::DutyMissed { duty: Duty::StartOverdue, .. });
    hand.evict(A0, EvictReason::StartOverdue).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn promises_end_when_the_eviction_they_rest_on_is_refused() {
    let mut hand = Hand::new(&[4]);
    hand.running(4, A0, &[(N0, 0xf)]);
    let job = hand.job(4);
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0xf)]).unwrap();
    hand.sees(Event::EvictionRefused { attempt: A0 });
    breaks!(
        hand.next_step(),
        Violation::DutyMissed { attempt: A1, duty: Duty::EvictionRefused(A0), .. }
    );
    hand.give_up(A1).unwrap();
    hand.next_step().unwrap();
    hand.preempt(A0).unwrap();
}

#[test]
fn promised_cpu_is_given_up_when_the_eviction_it_rests_on_is_refused() {
    let mut hand = Hand::new(&[]);
    let capacity = Resources { cpu_milli: 4_000, memory_mib: 0 };
    hand.node(NodeSpec { capacity, ..node_of(8) });
    let per_gpu = Resources { cpu_milli: 4_000, memory_mib: 0 };
    let demand = Demand { per_gpu, ..Demand::gpus(1) };
    let (first, second) = (hand.submit(job_of(demand)), hand.submit(job_of(demand)));
    hand.start(A0, first, &[(N0, 1)]).unwrap();
    hand.preempt(A0).unwrap();
    hand.reserve(A1, second, &[(N0, 2)]).unwrap();
    hand.sees(Event::EvictionRefused { attempt: A0 });
    breaks!(hand.next_step(), Violation::HostOverdrawn { node: N0, .. });
    hand.give_up(A1).unwrap();
    hand.next_step().unwrap();
}
