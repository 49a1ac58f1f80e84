//! A refused job is truly too large.

use crate::hand::*;
use deepshare_audit::Violation;
use deepshare_engine::{Command, EngineSettings, Event, Placer, Reason};
use deepshare_model::{Demand, GpuTypeId, JobId, Layout, PoolId, Quota, Resources, TenantSpec};

impl Hand {
    fn refuse(&mut self, job: JobId, reason: Reason) -> Result<(), Violation> {
        self.command(Command::Refuse { job, reason })
    }

    fn too_large(&mut self, demand: Demand, pool: u32) -> Result<(), Violation> {
        let job = self.submit(job_of(demand));
        self.refuse(job, Reason::LargerThanPool { need: demand.gpus, pool })
    }
}

#[test]
fn a_job_larger_than_its_pool_may_be_refused_and_waits_for_more_nodes() {
    let mut hand = Hand::new(&[4, 4]);
    let job = hand.job(9);
    hand.refuse(job, Reason::LargerThanPool { need: 9, pool: 8 }).unwrap();
    assert_eq!(hand.auditor.finish(hand.now).unwrap().jobs.refused, 1);
    let n2 = hand.node(node_of(4));
    hand.start(A0, job, &[(N0, 0xf), (N1, 0xf), (n2, 1)]).unwrap();
    assert_eq!(hand.auditor.finish(hand.now).unwrap().jobs.active, 1);
}

#[test]
fn a_job_that_an_empty_pool_would_take_is_not_refused() {
    let mut hand = Hand::new(&[4, 4]);
    hand.running(8, A0, &[(N0, 0xf), (N1, 0xf)]);
    for demand in
        [Demand::gpus(8), Demand::gpus(5), Demand { layout: Layout::Members(2), ..Demand::gpus(8) }]
    {
        breaks!(hand.too_large(demand, 8), Violation::FalseRefusal { .. });
    }
}

#[test]
fn shape_model_memory_and_host_can_make_a_job_too_large() {
    let mut hand = Hand::new(&[]);
    let capacity = Resources { cpu_milli: 4_000, memory_mib: 0 };
    let spec = deepshare_model::NodeSpec { gpu_memory_mib: 16_000, capacity, ..node_of(4) };
    hand.node(spec.clone());
    hand.node(spec);
    let per_gpu = Resources { cpu_milli: 2_000, memory_mib: 0 };
    hand.too_large(Demand { layout: Layout::Members(3), ..Demand::gpus(9) }, 8).unwrap();
    hand.too_large(Demand { gpu_memory_mib: 24_000, ..Demand::gpus(1) }, 8).unwrap();
    hand.too_large(Demand { per_gpu, ..Demand::gpus(3) }, 8).unwrap();
    hand.too_large(Demand { gpu_type: Some(GpuTypeId(1)), ..Demand::gpus(1) }, 0).unwrap();
    let fits = hand.too_large(Demand { per_gpu, ..Demand::gpus(2) }, 8);
    breaks!(fits, Violation::FalseRefusal { .. });
}

#[test]
fn unusable_devices_do_not_make_a_pool_larger() {
    let mut hand = Hand::new(&[4, 4]);
    hand.sees(Event::NodeCordoned { node: N1, cordoned: true });
    hand.sees(Event::DeviceHealth { node: N0, device: 0, healthy: false });
    hand.too_large(Demand::gpus(4), 3).unwrap();
    breaks!(hand.too_large(Demand::gpus(3), 3), Violation::FalseRefusal { .. });
}

#[test]
fn node_order_takes_a_job_wherever_there_are_gpus() {
    let placer = Placer::NodeOrder;
    let settings = EngineSettings { placer, ..EngineSettings::default() };
    let mut hand = Hand::with_nodes(settings, &[4, 4]);
    hand.sees(Event::DeviceHealth { node: N0, device: 0, healthy: false });
    breaks!(hand.too_large(Demand::gpus(7), 7), Violation::FalseRefusal { .. });
    hand.too_large(Demand::gpus(8), 7).unwrap();
}

#[test]
fn a_refusal_gives_the_right_figures() {
    let mut hand = Hand::new(&[4, 4]);
    breaks!(hand.too_large(Demand::gpus(9), 7), Violation::FalseRefusal { .. });
    let job = hand.job(9);
    let reason = Reason::LargerThanPool { need: 10, pool: 8 };
    breaks!(hand.refuse(job, reason), Violation::FalseRefusal { .. });
    breaks!(hand.refuse(job, Reason::Held), Violation::FalseRefusal { .. });
    // Quotas do not bind in this capacity mode.
    let reason = Reason::LargerThanQuota { tenant: T0, need: 9, quota: 1_000 };
    breaks!(hand.refuse(job, reason), Violation::FalseRefusal { .. });
}

#[test]
fn a_job_larger_than_its_quota_may_be_refused_where_quotas_are_hard() {
    let mut hand = Hand::bare(hard());
    hand.tenant(TenantSpec::new(PoolId(0), Quota::uniform(2, 1)));
    hand.node(node_of(8));
    let (large, fine) = (hand.job(3), hand.job(2));
    let reason = |need, quota| Reason::LargerThanQuota { tenant: T0, need, quota };
    breaks!(hand.refuse(large, reason(3, 1)), Violation::FalseRefusal { .. });
    hand.refuse(large, reason(3, 2)).unwrap();
    breaks!(hand.refuse(fine, reason(2, 2)), Violation::FalseRefusal { .. });
}

#[test]
fn a_job_with_an_attempt_or_at_its_end_is_not_refused() {
    let mut hand = Hand::new(&[4]);
    let job = hand.running(4, A0, &[(N0, 0xf)]);
    let reason = Reason::LargerThanPool { need: 4, pool: 0 };
    breaks!(hand.refuse(job, reason.clone()), Violation::FalseRefusal { .. });
    hand.finished(A0);
    breaks!(hand.refuse(job, reason), Violation::FalseRefusal { .. });
}
