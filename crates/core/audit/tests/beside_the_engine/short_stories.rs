//! Rules that the engine once broke, each in the shortest story that shows it.

use crate::pair::*;
use deepshare_engine::{EngineSettings, Event};
use deepshare_model::{AttemptId, JobId, JobSpec, NodeId, PoolId, Quota, TenantId, TenantSpec};

const J0: JobId = JobId(0);
const J1: JobId = JobId(1);
const J2: JobId = JobId(2);
const N0: NodeId = NodeId(0);

fn pair() -> Pair {
    Pair::new(EngineSettings::default())
}

#[test]
fn a_job_held_while_it_is_reserved_does_not_start() {
    let mut pair = pair();
    pair.submit(J0, 8, 0).unwrap();
    pair.submit(J1, 8, 1).unwrap();
    pair.tell(Event::Held { job: J1 }).unwrap();
    pair.tell(Event::DevicesReleased { attempt: AttemptId(0) }).unwrap();
}

#[test]
fn a_refused_job_that_is_held_stays_out_of_its_queue() {
    let mut pair = pair();
    pair.submit(J0, 9, 0).unwrap();
    pair.tell(Event::Held { job: J0 }).unwrap();
    pair.tell(Event::NodeAdded { node: NodeId(2), spec: node_of(4) }).unwrap();
}

#[test]
fn a_doubled_recovery_does_not_open_a_cordoned_node() {
    let mut pair = pair();
    pair.tell(Event::NodeLost { node: N0 }).unwrap();
    pair.tell(Event::NodeRecovered { node: N0 }).unwrap();
    pair.tell(Event::NodeCordoned { node: N0, cordoned: true }).unwrap();
    pair.tell(Event::NodeRecovered { node: N0 }).unwrap();
}

#[test]
fn a_tenant_that_changes_parents_takes_its_use_along() {
    let mut pair = pair();
    pair.submit(J0, 4, 0).unwrap();
    let spec = terms(8, Some(TenantId(1)));
    pair.tell(Event::TenantSet { tenant: TenantId(0), spec }).unwrap();
    pair.tell(Event::DevicesReleased { attempt: AttemptId(0) }).unwrap();
}

#[test]
fn a_job_that_fits_a_moved_node_is_not_spread() {
    let mut pair = pair();
    // Each node of pool 1 was moved there with 3 of its 4 GPUs in use.
    pair.submit(J0, 3, 0).unwrap();
    pair.submit(J1, 3, 0).unwrap();
    for node in [N0, NodeId(1)] {
        pair.tell(Event::NodeMoved { node, pool: PoolId(1) }).unwrap();
    }
    let terms = TenantSpec::new(PoolId(1), Quota::uniform(8, 1));
    pair.tell(Event::TenantSet { tenant: TenantId(2), spec: terms }).unwrap();
    let spec = JobSpec { tenant: TenantId(2), ..job_of(2, 0) };
    pair.tell(Event::Submitted { job: J2, spec }).unwrap();
    pair.tell(Event::Wake).unwrap();
}
