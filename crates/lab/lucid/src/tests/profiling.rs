//! The profiler, what it takes from virtual clusters, and what it does to figures.

use super::world::{fates, inputs, job, records};
use crate::outcome::Scaling;
use crate::{LucidJob, LucidOutcome, LucidSettings, Sharing, simulate};

fn off() -> LucidSettings {
    LucidSettings { sharing: Sharing::Off, ..LucidSettings::default() }
}

#[test]
fn a_short_job_ends_in_the_profiler_and_a_long_one_waits_twice_at_once() {
    let mut world = inputs(&[3]);
    world.jobs = vec![job(0, 8, 200), job(0, 8, 300), job(1, 8, 201), job(2, 16, 50)];
    let records = records(&world, &off());
    let fates: Vec<_> = records.iter().map(|one| (one.start_s, one.end_s, one.queue_s)).collect();
    // Both nodes are busy until 200. The third is profiled then, having run since 1.
    assert_eq!(fates, [(0, 200, 0), (0, 301, 0), (1, 203, 199), (203, 254, 201)]);
    assert_eq!(records[2].jct_s, 202, "profiling costs nothing");
    let finished: Vec<_> = records.iter().map(|one| one.profiled.map(|p| p.finished)).collect();
    assert_eq!(finished, [Some(true), Some(false), Some(false), None]);
}

#[test]
fn narrow_jobs_are_profiled_first_and_the_first_that_does_not_fit_blocks() {
    let mut world = inputs(&[3]);
    let at = |gpus| job(5, gpus, 100);
    world.jobs = vec![job(0, 8, 50), job(0, 6, 100), at(8), at(3), at(2)];
    let starts: Vec<u64> = fates(&world, &off()).iter().map(|fate| fate.0).collect();
    // The two go beside the six; there is room for the three at 50, and a whole node only at 105.
    assert_eq!(starts, [0, 0, 105, 50, 5]);
}

/// 27 jobs of 8 GPUs for a profiler of two nodes, in a virtual cluster that can hold them.
fn crowd(forecast_gpus: f64, echo: &str) -> LucidOutcome {
    let mut world = inputs(&[4]);
    for row in &mut world.forecast.rows {
        row.gpus = forecast_gpus;
    }
    world.forecast.rows.truncate(8);
    world.jobs = (0..27).map(|_| job(1_003, 8, 50)).collect();
    simulate(&world, &LucidSettings { echo: Some(echo.to_owned()), ..off() }).unwrap()
}

#[test]
fn the_profiler_grows_with_its_queue_and_shrinks_when_few_gpus_are_forecast() {
    let steps = |forecast| crowd(forecast, "none").scaling;
    let grew = Scaling { at_s: 1_010, grew: true };
    // Of 25 that wait, three start every 50 s from 1,053 on; the last three at 1,403.
    assert_eq!(steps(40.0), [grew, Scaling { at_s: 1_500, grew: false }]);
    // Rows end at 4,200; the mean of none is no number, and after that there is no forecast.
    assert_eq!(steps(41.0), [grew, Scaling { at_s: 4_300, grew: false }]);
}

#[test]
fn the_extra_node_is_used_from_the_next_second_on() {
    let starts: Vec<u64> =
        crowd(0.0, "none").records.iter().map(|record| record.unwrap().start_s).collect();
    assert_eq!(starts[..4], [1_003, 1_003, 1_011, 1_053]);
}

#[test]
fn lenders_miss_a_node_and_who_cannot_run_then_is_named() {
    let mut world = inputs(&[3, 1]);
    world.jobs = vec![job(0, 24, 10), job(1, 1, 10)];
    assert!(simulate(&world, &off()).is_ok());
    let lent = LucidSettings { lenders: vec!["vc0".to_owned()], ..off() };
    let said = simulate(&world, &lent).unwrap_err().to_string();
    let expected = "1 jobs can never run on this cluster, first at-0-for-10 (line 2): it asks for \
                    24 GPUs, and vc0 has 2 nodes of 8 beside the one that the profiler has";
    assert!(said.starts_with(expected), "{said}");
    let skip = LucidSettings { skip_oversize: true, ..lent };
    let records = simulate(&world, &skip).unwrap().records;
    assert!(records[0].is_none() && records[1].is_some());
}

#[test]
fn the_cluster_that_lends_on_demand_gets_its_node_back() {
    let most = |outcome: &LucidOutcome, at: u64| {
        let mut levels = outcome.levels.iter().filter(|level| level.pool == 0 && level.at_s <= at);
        levels.next_back().unwrap().gpus
    };
    let mut world = inputs(&[2]);
    for row in &mut world.forecast.rows {
        row.gpus = 0.0;
    }
    world.jobs = (0..27).map(|_| job(1_003, 8, 50)).collect();
    // One that needs the whole cluster, and waits for the node that is away.
    world.jobs.push(LucidJob { gpus: 16, ..job(1_020, 8, 500) });
    let echo = LucidSettings { echo: Some("vc0".to_owned()), ..off() };
    let outcome = simulate(&world, &echo).unwrap();
    assert_eq!((most(&outcome, 1_009), most(&outcome, 1_010)), (16, 8));
    assert_eq!(most(&outcome, 1_600), 16);
    assert_eq!(outcome.records[27].unwrap().start_s, 1_501, "in the second after the node is back");
}
