//! A run in the form of every other run.

use super::world::{bare, inputs, job};
use crate::{Sharing, run_record, simulate};
use deepshare_metrics::Summary;
use deepshare_model::Outcome;
use deepshare_trace::{ReadOptions, read_trace_from};

#[test]
fn shared_gpus_count_once_and_jobs_that_were_cancelled_count_as_run() {
    let mut world = inputs(&[1]);
    // Faster together than alone.
    world.speeds.insert((0, 0), (1.25, 1.25));
    world.jobs = vec![job(0, 2, 100), job(10, 2, 90)];
    let outcome = simulate(&world, &bare(Sharing::On)).unwrap();
    let text = "job_id,user,vc,gpu_num,submit_time,duration,state\n\
                a,u,vc0,2,0,100,COMPLETED\nb,u,vc0,2,10,90,CANCELLED\n";
    let trace = read_trace_from("jobs.csv", text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(trace.jobs[1].outcome, Outcome::Cancelled);
    let record = run_record(&trace, &outcome, "file.csv".to_owned());
    let summary = Summary::of(&record, &trace.tenants);
    let figure = |name: &str| summary.value(name).as_f64().unwrap();
    // 90 s at 1.25 are 72; both end at 83.
    assert_eq!(figure("jct_mean_s"), f64::from(83 + 73) / 2.0);
    assert_eq!(figure("cancelled"), 0.0);
    assert_eq!(figure("allocated_gpu_s"), 2.0 * 83.0);
    assert_eq!(figure("capacity_gpu_s"), 8.0 * 83.0);
    assert_eq!((record.residents_per_gpu, record.pool_gpus), (2, vec![8, 0]));
}
