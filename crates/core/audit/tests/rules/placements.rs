//! Where an attempt may be.

use crate::hand::*;
use deepshare_audit::Violation;
use deepshare_engine::{EngineSettings, Event, NodeCondition, Placer};
use deepshare_model::{Demand, GpuTypeId, Layout, NodeSpec, PoolId, Resources};

#[test]
fn a_device_has_one_holder() {
    let mut hand = Hand::new(&[8]);
    hand.running(4, A0, &[(N0, 0x0f)]);
    let job = hand.job(2);
    let shared = hand.start(A1, job, &[(N0, 0x18)]);
    breaks!(shared, Violation::DeviceHeld { device: 3, holder: A0, .. });
    // Not even a promise, while the holder is not on its way out.
    breaks!(hand.reserve(A1, job, &[(N0, 0x18)]), Violation::DeviceHeld { .. });
}

#[test]
fn a_device_is_promised_once() {
    let mut hand = Hand::new(&[8]);
    hand.running(4, A0, &[(N0, 0x0f)]);
    let (job, other) = (hand.job(4), hand.job(2));
    hand.preempt(A0).unwrap();
    hand.reserve(A1, job, &[(N0, 0x1e)]).unwrap();
    let twice = hand.reserve(A2, other, &[(N0, 0x03)]);
    breaks!(twice, Violation::DevicePromised { device: 1, claimant: A1, .. });
    // The vacant part of the promise cannot be started on, either.
    let taken = hand.start(A2, other, &[(N0, 0x30)]);
    breaks!(taken, Violation::DevicePromised { device: 4, .. });
    hand.start(A2, other, &[(N0, 0x60)]).unwrap();
}

#[test]
fn a_gang_starts_whole() {
    let mut hand = Hand::new(&[8]);
    let job = hand.job(4);
    let part = hand.start(A0, job, &[(N0, 0x07)]);
    breaks!(part, Violation::NotWhole { given: 3, asked: 4, .. });
    breaks!(hand.start(A0, job, &[(N0, 0x1f)]), Violation::NotWhole { given: 5, .. });
    breaks!(hand.start(A0, job, &[]), Violation::NotWhole { given: 0, .. });
    breaks!(hand.start(A0, job, &[(N0, 3), (N0, 12)]), Violation::MalformedPlacement { .. });
    breaks!(hand.start(A0, job, &[(N0, 15), (N0, 0)]), Violation::MalformedPlacement { .. });
}

#[test]
fn devices_exist() {
    let mut hand = Hand::new(&[4]);
    let job = hand.job(2);
    breaks!(hand.start(A0, job, &[(N0, 0x18)]), Violation::DeviceMissing { gpus: 4, .. });
}

#[test]
fn nothing_is_placed_on_closed_nodes_or_failed_devices() {
    let mut hand = Hand::new(&[8]);
    let job = hand.job(1);
    hand.sees(Event::DeviceHealth { node: N0, device: 0, healthy: false });
    breaks!(hand.start(A0, job, &[(N0, 1)]), Violation::DeviceFailed { .. });
    hand.sees(Event::NodeCordoned { node: N0, cordoned: true });
    let closed = hand.start(A0, job, &[(N0, 2)]);
    breaks!(closed, Violation::NodeClosed { condition: NodeCondition::Cordoned, .. });
    hand.sees(Event::NodeLost { node: N0 });
    breaks!(hand.start(A0, job, &[(N0, 2)]), Violation::NodeClosed { .. });
    hand.sees(Event::NodeRecovered { node: N0 });
    hand.start(A0, job, &[(N0, 2)]).unwrap();
}

#[test]
fn a_reservation_may_start_on_a_device_that_failed_since_but_not_on_a_lost_node() {
    let mut hand = Hand::new(&[8, 8]);
    hand.running(1, A0, &[(N0, 1)]);
    hand.running(1, A1, &[(N1, 1)]);
    let (job, other) = (hand.job(1), hand.job(1));
    hand.preempt(A0).unwrap();
    hand.preempt(A1).unwrap();
    hand.reserve(A2, job, &[(N0, 1)]).unwrap();
    let a3 = deepshare_model::AttemptId(3);
    hand.reserve(a3, other, &[(N1, 1)]).unwrap();
    hand.sees(Event::DeviceHealth { node: N0, device: 0, healthy: false });
    hand.released(A0);
    hand.start(A2, job, &[(N0, 1)]).unwrap();
    hand.released(A1);
    hand.sees(Event::NodeLost { node: N1 });
    let lost = hand.start(a3, other, &[(N1, 1)]);
    breaks!(lost, Violation::NodeClosed { condition: NodeCondition::Lost, .. });
}

#[test]
fn a_job_runs_in_its_tenants_pool() {
    let mut hand = Hand::new(&[8]);
    let job = hand.job(1);
    hand.sees(Event::NodeMoved { node: N0, pool: PoolId(1) });
    let stray = hand.start(A0, job, &[(N0, 1)]);
    breaks!(stray, Violation::OtherPool { pool: PoolId(1), wanted: PoolId(0), .. });
}

#[test]
fn a_job_gets_the_gpu_model_it_asks_for_and_one_only() {
    let mut hand = Hand::new(&[4]);
    hand.node(NodeSpec { gpu_type: GpuTypeId(1), ..node_of(4) });
    let demand = Demand { gpu_type: Some(GpuTypeId(1)), ..Demand::gpus(1) };
    let job = hand.submit(job_of(demand));
    let wrong = hand.start(A0, job, &[(N0, 1)]);
    breaks!(wrong, Violation::WrongGpuType { given: GpuTypeId(0), .. });
    let wide = hand.job(8);
    let mixed = hand.start(A0, wide, &[(N0, 0xf), (N1, 0xf)]);
    breaks!(mixed, Violation::WrongGpuType { node: N1, .. });
}

#[test]
fn a_device_has_the_memory_asked_for() {
    let mut hand = Hand::new(&[]);
    hand.node(NodeSpec { gpu_memory_mib: 16_000, ..node_of(4) });
    let job = hand.submit(job_of(Demand { gpu_memory_mib: 24_000, ..Demand::gpus(1) }));
    let short = hand.start(A0, job, &[(N0, 1)]);
    breaks!(short, Violation::GpuMemoryShort { need: 24_000, has: 16_000, .. });
}

fn per_gpu(gpus: u32, cpu_milli: u64) -> Demand {
    Demand { per_gpu: Resources { cpu_milli, memory_mib: 0 }, ..Demand::gpus(gpus) }
}

fn hand_with_cores(cores: u64) -> Hand {
    let mut hand = Hand::new(&[]);
    let capacity = Resources { cpu_milli: cores * 1_000, memory_mib: 1_000 };
    hand.node(NodeSpec { capacity, ..node_of(8) });
    hand
}

#[test]
fn cpu_and_memory_of_a_node_are_never_exceeded() {
    let mut hand = hand_with_cores(8);
    let first = hand.submit(job_of(per_gpu(2, 3_000)));
    let second = hand.submit(job_of(per_gpu(1, 3_000)));
    hand.start(A0, first, &[(N0, 0b11)]).unwrap();
    let short = hand.start(A1, second, &[(N0, 0b100)]);
    breaks!(short, Violation::HostShort { used, .. } if used.cpu_milli == 9_000);
    // A promise may count on what is leaving; a start may not.
    hand.preempt(A0).unwrap();
    breaks!(hand.start(A1, second, &[(N0, 0b100)]), Violation::HostShort { .. });
    hand.reserve(A1, second, &[(N0, 0b100)]).unwrap();
    breaks!(hand.start(A1, second, &[(N0, 0b100)]), Violation::HostShort { .. });
    hand.released(A0);
    hand.start(A1, second, &[(N0, 0b100)]).unwrap();
}

#[test]
fn promised_cpu_and_memory_are_not_given_to_others() {
    let mut hand = hand_with_cores(8);
    let first = hand.submit(job_of(per_gpu(2, 3_000)));
    let second = hand.submit(job_of(per_gpu(1, 6_000)));
    let third = hand.submit(job_of(per_gpu(1, 3_000)));
    hand.start(A0, first, &[(N0, 0b11)]).unwrap();
    hand.preempt(A0).unwrap();
    hand.reserve(A1, second, &[(N0, 0b1)]).unwrap();
    let short = hand.reserve(A2, third, &[(N0, 0b10)]);
    breaks!(short, Violation::HostShort { used, .. } if used.cpu_milli == 9_000);
}

#[test]
fn a_member_never_spans_nodes() {
    let mut hand = Hand::new(&[4, 4]);
    let job = hand.submit(job_of(Demand { layout: Layout::Members(2), ..Demand::gpus(4) }));
    let split = hand.start(A0, job, &[(N0, 0b111), (N1, 0b1)]);
    breaks!(split, Violation::MemberSplit { member: 2, .. });
    hand.start(A0, job, &[(N0, 0b11), (N1, 0b11)]).unwrap();
}

#[test]
fn a_consolidated_job_is_no_wider_than_it_must_be() {
    let mut hand = Hand::new(&[4, 4, 4]);
    let small = hand.job(4);
    let spread = hand.start(A0, small, &[(N0, 0b11), (N1, 0b11)]);
    breaks!(spread, Violation::Spread { gpus: 4, node_size: 4, .. });
    let wide = hand.job(6);
    let parts = hand.start(A0, wide, &[(N0, 0b111), (N1, 0b111)]);
    breaks!(parts, Violation::Spread { parts: 2, .. });
    hand.start(A0, wide, &[(N0, 0b1111), (N1, 0b11)]).unwrap();
}

#[test]
fn node_order_may_spread() {
    let placer = Placer::NodeOrder;
    let settings = EngineSettings { placer, ..EngineSettings::default() };
    let mut hand = Hand::with_nodes(settings, &[4, 4]);
    let job = hand.job(4);
    hand.start(A0, job, &[(N0, 0b11), (N1, 0b11)]).unwrap();
}
