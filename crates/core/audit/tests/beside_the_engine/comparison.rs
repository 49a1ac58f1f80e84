//! Told different stories, the two disagree, and the auditor says where.

use crate::pair::*;
use deepshare_audit::Violation;
use deepshare_engine::{CapacityMode, Command, EngineSettings, Event, Slice};
use deepshare_model::{AttemptId, Devices, JobId, JobSpec, NodeId, PoolId, TenantId};

const J0: JobId = JobId(0);
const J1: JobId = JobId(1);
const N0: NodeId = NodeId(0);

fn pair() -> Pair {
    Pair::new(EngineSettings::default())
}

#[test]
fn told_the_same_they_agree() {
    let mut pair = pair();
    pair.submit(J0, 4, 0).unwrap();
    pair.submit(J1, 8, 1).unwrap();
    pair.tell(Event::DevicesReleased { attempt: AttemptId(0) }).unwrap();
    assert_eq!(pair.auditor.finish(pair.now).unwrap().jobs.active, 1);
}

#[test]
fn a_job_that_only_the_engine_knows() {
    let mut pair = pair();
    pair.tell_engine(&Event::Submitted { job: J0, spec: job_of(1, 0) });
    breaks!(pair.check(), Violation::CountDiffers { what: "jobs", .. });
}

#[test]
fn a_node_in_another_condition_or_health() {
    let mut pair = pair();
    let broken = Event::DeviceHealth { node: N0, device: 0, healthy: false };
    breaks!(pair.tell_apart(broken, Event::Wake), Violation::NodeNotConserved { free: 3, .. });
    let cordoned = Event::NodeCordoned { node: N0, cordoned: true };
    breaks!(pair.tell_apart(cordoned, Event::Wake), Violation::ConditionDiffers { .. });
}

#[test]
fn health_of_a_device_in_use() {
    let mut pair = pair();
    pair.submit(J0, 4, 0).unwrap();
    let broken = Event::DeviceHealth { node: N0, device: 0, healthy: false };
    breaks!(pair.tell_apart(broken, Event::Wake), Violation::NodeDiffers { what: "healthy", .. });
}

#[test]
fn a_node_in_another_pool() {
    let mut pair = pair();
    let moved = Event::NodeMoved { node: N0, pool: PoolId(1) };
    breaks!(pair.tell_apart(moved, Event::Wake), Violation::PoolDiffers { what: "free", .. });
}

#[test]
fn a_job_or_attempt_in_another_state() {
    let mut pair = pair();
    pair.submit(J0, 4, 0).unwrap();
    let running = Event::Running { attempt: AttemptId(0) };
    breaks!(pair.tell_apart(running, Event::Wake), Violation::AttemptDiffers { .. });
    pair.auditor.event(pair.now, &Event::Running { attempt: AttemptId(0) }).unwrap();
    pair.tell(Event::Submitted { job: J1, spec: job_of(1, 0) }).unwrap();
    breaks!(
        pair.tell_apart(
            Event::Held { job: J1 },
            Event::Estimated { job: J1, run_time: deepshare_model::Span::SECOND }
        ),
        Violation::JobDiffers { .. }
    );
}

#[test]
fn two_jobs_on_each_others_devices() {
    let mut pair = pair();
    for job in [J0, J1] {
        pair.tell(Event::Submitted { job, spec: job_of(1, 0) }).unwrap();
    }
    pair.auditor.event(pair.now, &Event::Wake).unwrap();
    for mut command in pair.tell_engine(&Event::Wake) {
        let Command::Start { placement, .. } = &mut command else { panic!("{command:?}") };
        *placement = vec![Slice { node: N0, devices: Devices(placement[0].devices.0 ^ 0b11) }];
        pair.auditor.command(pair.now, &command).unwrap();
    }
    breaks!(pair.check(), Violation::HolderDiffers { device: 0, .. });
}

#[test]
fn a_job_charged_to_another_tenant() {
    let mut pair = pair();
    let spec = JobSpec { tenant: TenantId(1), ..job_of(1, 0) };
    let told = |spec| Event::Submitted { job: J0, spec };
    pair.tell_apart(told(job_of(1, 0)), told(spec)).unwrap();
    breaks!(pair.tell(Event::Wake), Violation::UsedDiffers { audited: 1, engine: 0, .. });
}

#[test]
fn a_job_still_refused_that_could_run_by_now() {
    let capacity = CapacityMode::Hard;
    let mut pair = Pair::new(EngineSettings { capacity, ..EngineSettings::default() });
    pair.tell(Event::NodeAdded { node: NodeId(2), spec: node_of(4) }).unwrap();
    pair.submit(J0, 9, 0).unwrap();
    let raised = Event::TenantSet { tenant: TenantId(0), spec: terms(9, None) };
    breaks!(pair.tell_apart(Event::Wake, raised), Violation::LeftRefused { job: J0 });
}

#[test]
fn a_sampled_comparison_looks_at_everything_in_its_turn() {
    let mut pair = pair();
    pair.auditor = pair.auditor.check_every(3);
    pair.tell_engine(&Event::NodeCordoned { node: N0, cordoned: true });
    // The step touches nothing, so only the full comparison sees the node.
    let mut compare = || {
        pair.auditor.event(pair.now, &Event::Wake).unwrap();
        pair.auditor.compare(pair.engine.state())
    };
    let seen: Vec<bool> = (0..3).map(|_| compare().is_err()).collect();
    assert_eq!(seen.iter().filter(|&&seen| seen).count(), 1, "{seen:?}");
}
