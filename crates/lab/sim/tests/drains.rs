//! Nodes that drain and nodes in maintenance.

use deepshare_engine::CapacityMode;
use deepshare_metrics::{RunRecord, Summary};
use deepshare_model::{NodeId, Time};
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Outage, OutageKind, Outages, SimSettings, Watch, simulate};
use deepshare_trace::{ClusterOptions, ReadOptions, read_cluster_from, read_trace_from};
use std::io::Cursor;

/// Two jobs that each fill the node: one at 0 for 100 s, one at 1 for 50 s.
fn run(kind: OutageKind) -> RunRecord {
    let rows = "job_id,tenant,gpus,submit_s,duration_s\na,t,8,0,100\nb,t,8,1,50\n";
    let trace = read_trace_from("t.csv", Cursor::new(rows), &ReadOptions::default())
        .expect("the test's own input is sound");
    let cluster = Cursor::new("[[node]]\ngpus = 8\n");
    let cluster = read_cluster_from("c.toml", cluster, ClusterOptions::default())
        .expect("the test's own input is sound");
    let mut settings =
        SimSettings::new(PolicyConfig::by_name("fifo").expect("the test's own input is sound"));
    settings.engine.capacity = CapacityMode::Pool;
    settings.audit = true;
    let (from, until) = (Time::from_secs(60), Time::from_secs(200));
    settings.outages = Outages::Listed(vec![Outage { node: NodeId(0), from, until, kind }]);
    simulate(&trace, &cluster, &settings, &Watch::default()).expect("the test's own input is sound")
}

fn ends(record: &RunRecord) -> Vec<f64> {
    record
        .jobs
        .iter()
        .map(|job| job.end.expect("the test's own input is sound").as_secs_f64())
        .collect()
}

#[test]
fn what_runs_on_a_draining_node_goes_on_and_nothing_new_starts_there() {
    let record = run(OutageKind::Drain);
    assert_eq!(ends(&record), [100.0, 250.0]);
    assert_eq!(record.jobs[0].restarts_by_failure, 0);
    let held = Summary::of(&record, &["t"]).value("allocated_gpu_s").as_f64();
    assert_eq!(held, Some(8.0 * 150.0), "GPUs in use on a closed node are held");
}

#[test]
fn maintenance_closes_the_node_before_it_takes_it_away() {
    let failed = run(OutageKind::Failure);
    assert_eq!(failed.jobs[0].restarts_by_failure, 1);
    let unannounced = run(OutageKind::Maintenance { cordon: Time::from_secs(60) });
    assert_eq!(ends(&unannounced), ends(&failed));
    // Closed before anything starts: both jobs wait, and nothing is lost.
    let announced = run(OutageKind::Maintenance { cordon: Time::ZERO });
    assert_eq!(ends(&announced), [300.0, 350.0]);
    assert_eq!(announced.jobs[0].restarts_by_failure, 0);
}
