//! Elastic quotas: which class a job is charged to, and who may be evicted.

use crate::hand::*;
use deepshare_audit::{Auditor, Violation};
use deepshare_engine::{CapacityMode, Command, EngineSettings};
use deepshare_model::{AttemptId, Class, Demand, Epoch, JobId, JobSpec, PoolId, Quota, TenantSpec};

fn elastic() -> Hand {
    let settings = EngineSettings { capacity: CapacityMode::Elastic, ..EngineSettings::default() };
    let mut hand = Hand::beside(Auditor::new(&settings));
    // Quota 4; best-effort up to 8.
    hand.tenant(TenantSpec::new(PoolId(0), Quota::uniform(4, 1)));
    hand.node(node_of(16));
    hand
}

fn best_effort(hand: &mut Hand, gpus: u32) -> JobId {
    hand.submit(JobSpec { class: Class::BestEffort, ..job_of(Demand::gpus(gpus)) })
}

fn start_as(hand: &mut Hand, a: AttemptId, job: JobId, charged: Class, bits: u64) -> Outcome {
    let placement = placement(&[(N0, bits)]);
    hand.command(Command::Start { attempt: a, epoch: Epoch(0), job, charged, placement, steps: 1 })
}

type Outcome = Result<(), Violation>;

#[test]
fn each_class_has_a_cap_of_its_own() {
    let mut hand = elastic();
    let (fits, over) = (hand.job(4), hand.job(1));
    hand.start(A0, fits, &[(N0, 0b1111)]).unwrap();
    breaks!(
        hand.start(A1, over, &[(N0, 0b1_0000)]),
        Violation::OverQuota { used: 5, quota: 4, .. }
    );
    let borrows = best_effort(&mut hand, 8);
    hand.start(A1, borrows, &[(N0, 0xff0)]).unwrap();
    let more = best_effort(&mut hand, 1);
    breaks!(hand.start(A2, more, &[(N0, 0x1000)]), Violation::OverQuota { used: 9, quota: 8, .. });
}

#[test]
fn a_guaranteed_job_may_spill_and_be_promoted_when_quota_has_room() {
    let mut hand = elastic();
    let (first, second) = (hand.job(3), hand.job(3));
    hand.start(A0, first, &[(N0, 0b111)]).unwrap();
    start_as(&mut hand, A1, second, Class::BestEffort, 0b11_1000).unwrap();
    let promote = Command::Promote { attempt: A1 };
    breaks!(hand.command(promote.clone()), Violation::OverQuota { used: 6, .. });
    hand.sees(deepshare_engine::Event::DevicesReleased { attempt: A0 });
    hand.command(promote.clone()).unwrap();
    breaks!(hand.command(promote), Violation::WrongCharge { .. });
    breaks!(hand.preempt(A1), Violation::GuaranteedPreempted { .. });
}

#[test]
fn only_jobs_charged_as_best_effort_are_evicted_for_others() {
    let mut hand = elastic();
    let (guaranteed, spilled) = (hand.job(2), hand.job(2));
    hand.start(A0, guaranteed, &[(N0, 0b11)]).unwrap();
    start_as(&mut hand, A1, spilled, Class::BestEffort, 0b1100).unwrap();
    hand.preempt(A1).unwrap();
    breaks!(hand.preempt(A0), Violation::GuaranteedPreempted { .. });
}

#[test]
fn a_best_effort_job_is_never_charged_to_quota() {
    let mut hand = elastic();
    let job = best_effort(&mut hand, 1);
    let charged = start_as(&mut hand, A0, job, Class::Guaranteed, 1);
    breaks!(charged, Violation::WrongCharge { charged: Class::Guaranteed, .. });
}
