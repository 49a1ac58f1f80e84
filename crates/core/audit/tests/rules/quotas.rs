//! Hard quotas, up the tree.

use crate::hand::*;
use deepshare_audit::Violation;
use deepshare_engine::Event;
use deepshare_model::{Demand, JobSpec, PoolId, Quota, TenantId, TenantSpec};

fn terms(quota: u32, parent: Option<TenantId>) -> TenantSpec {
    TenantSpec { parent, ..TenantSpec::new(PoolId(0), Quota::uniform(quota, 1)) }
}

/// A parent with 6 GPUs over two children with 4 each.
fn family() -> Hand {
    let mut hand = Hand::bare(hard());
    hand.tenant(terms(6, None));
    hand.tenant(terms(4, Some(T0)));
    hand.tenant(terms(4, Some(T0)));
    hand.node(node_of(16));
    hand
}

fn job_for(tenant: u32, gpus: u32) -> JobSpec {
    JobSpec { tenant: TenantId(tenant), ..job_of(Demand::gpus(gpus)) }
}

#[test]
fn a_tenant_stays_within_its_quota() {
    let mut hand = family();
    let (first, second) = (hand.submit(job_for(1, 3)), hand.submit(job_for(1, 2)));
    hand.start(A0, first, &[(N0, 0b111)]).unwrap();
    let over = hand.start(A1, second, &[(N0, 0b11000)]);
    breaks!(over, Violation::OverQuota { tenant: TenantId(1), used: 5, quota: 4, .. });
    hand.finished(A0);
    breaks!(hand.start(A1, second, &[(N0, 0b11000)]), Violation::OverQuota { .. });
    hand.released(A0);
    hand.start(A1, second, &[(N0, 0b11000)]).unwrap();
}

#[test]
fn a_parent_caps_the_sum_of_its_children() {
    let mut hand = family();
    let (first, second) = (hand.submit(job_for(1, 4)), hand.submit(job_for(2, 3)));
    hand.start(A0, first, &[(N0, 0b1111)]).unwrap();
    let over = hand.start(A1, second, &[(N0, 0b111_0000)]);
    breaks!(over, Violation::OverQuota { tenant: T0, used: 7, quota: 6, .. });
}

#[test]
fn what_is_promised_counts_like_what_is_held() {
    let mut hand = family();
    let (first, second) = (hand.submit(job_for(1, 4)), hand.submit(job_for(1, 4)));
    let third = hand.submit(job_for(1, 1));
    hand.start(A0, first, &[(N0, 0b1111)]).unwrap();
    hand.preempt(A0).unwrap();
    // The victim's share counts as free to those placed in the same step.
    hand.reserve(A1, second, &[(N0, 0b1111)]).unwrap();
    let over = hand.start(A2, third, &[(N0, 0b10000)]);
    breaks!(over, Violation::OverQuota { used: 5, .. });
}

#[test]
fn a_victim_of_an_earlier_step_still_counts() {
    let mut hand = family();
    let (first, second) = (hand.submit(job_for(1, 4)), hand.submit(job_for(1, 4)));
    hand.start(A0, first, &[(N0, 0b1111)]).unwrap();
    hand.preempt(A0).unwrap();
    hand.sees(Event::Wake);
    breaks!(hand.reserve(A1, second, &[(N0, 0b1111)]), Violation::OverQuota { used: 8, .. });
}

#[test]
fn a_quota_lowered_below_its_use_forbids_new_starts_only() {
    let mut hand = family();
    let (first, second) = (hand.submit(job_for(1, 3)), hand.submit(job_for(1, 1)));
    hand.start(A0, first, &[(N0, 0b111)]).unwrap();
    hand.sees(Event::TenantSet { tenant: TenantId(1), spec: terms(2, Some(T0)) });
    hand.sees(Event::Running { attempt: A0 });
    let over = hand.start(A1, second, &[(N0, 0b1000)]);
    breaks!(over, Violation::OverQuota { used: 4, quota: 2, .. });
}

#[test]
fn a_tenant_that_changes_parents_takes_its_use_along() {
    let mut hand = family();
    hand.tenant(terms(3, None));
    let (first, second) = (hand.submit(job_for(1, 3)), hand.submit(job_for(2, 4)));
    hand.start(A0, first, &[(N0, 0b111)]).unwrap();
    hand.sees(Event::TenantSet { tenant: TenantId(1), spec: terms(4, Some(TenantId(3))) });
    hand.start(A1, second, &[(N0, 0b111_1000)]).unwrap();
    let third = hand.submit(job_for(1, 1));
    let over = hand.start(A2, third, &[(N0, 0b1000_0000)]);
    breaks!(over, Violation::OverQuota { tenant: TenantId(3), used: 4, .. });
}

#[test]
fn quotas_do_not_bind_where_the_capacity_mode_has_none() {
    let mut hand = Hand::new(&[8]);
    hand.sees(Event::TenantSet { tenant: T0, spec: terms(1, None) });
    let job = hand.job(8);
    hand.start(A0, job, &[(N0, 0xff)]).unwrap();
}
