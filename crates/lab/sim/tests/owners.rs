//! Jobs that their owners hold and withdraw.

use deepshare_engine::CapacityMode;
use deepshare_metrics::{JobRecord, RunRecord};
use deepshare_model::{Outcome, Span, Time};
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Actuation, Delay, SimSettings, Watch, simulate};
use deepshare_trace::{Cluster, ClusterOptions, ReadOptions, read_cluster_from, read_trace_from};
use std::io::Cursor;

fn cluster() -> Cluster {
    let text = "[[node]]\ngpus = 8\n";
    read_cluster_from("c.toml", Cursor::new(text), ClusterOptions::default())
        .expect("the test's own input is sound")
}

fn settings(policy: &str) -> SimSettings {
    let mut settings =
        SimSettings::new(PolicyConfig::by_name(policy).expect("the test's own input is sound"));
    settings.engine.capacity = CapacityMode::Pool;
    settings.audit = true;
    settings
}

fn run(rows: &str, settings: &SimSettings) -> RunRecord {
    let header = "job_id,tenant,gpus,submit_s,duration_s,cancel_s,hold_until_s,tasks";
    let input = Cursor::new(format!("{header}\n{rows}"));
    let trace = read_trace_from("t.csv", input, &ReadOptions::default())
        .expect("the test's own input is sound");
    simulate(&trace, &cluster(), settings, &Watch::default())
        .expect("the test's own input is sound")
}

fn seconds(job: &JobRecord) -> (Option<f64>, Option<f64>) {
    (job.first_start.map(Time::as_secs_f64), job.end.map(Time::as_secs_f64))
}

#[test]
fn a_job_withdrawn_while_it_waits_ends_without_having_started_and_frees_the_way() {
    for policy in PolicyConfig::NAMES {
        let rows = "a,t,8,0,100,,,\nb,t,8,1,50,30,,\nc,t,8,2,10,,,\n";
        let record = run(rows, &settings(policy));
        let b = &record.jobs[1];
        if policy == "fifo" {
            assert_eq!(seconds(&record.jobs[2]), (Some(100.0), Some(110.0)));
            assert_eq!(seconds(b), (None, Some(30.0)));
            assert_eq!((b.waited, b.outcome), (Span::from_secs(29), Outcome::Cancelled));
        }
        assert!(b.end.is_some_and(|end| end <= Time::from_secs(51)), "{policy}: {b:?}");
    }
}

#[test]
fn a_job_withdrawn_while_it_runs_gives_its_gpus_back_at_once() {
    let record = run("a,t,8,0,100,40,,\nb,t,8,1,50,,,\n", &settings("fifo"));
    assert_eq!(seconds(&record.jobs[0]), (Some(0.0), Some(40.0)));
    assert_eq!(record.jobs[0].outcome, Outcome::Cancelled);
    assert_eq!(record.jobs[0].preemptions, 0, "nobody took its GPUs");
    let summary = deepshare_metrics::Summary::of(&record, &["t"]);
    let figure = |name: &str| summary.value(name).as_f64();
    assert_eq!((figure("cancelled"), figure("finished")), (Some(1.0), Some(1.0)));
    assert_eq!(figure("jct_mean_s"), Some(89.0), "of the job that did its work");
    assert!(figure("bound_jct_mean_s") <= figure("jct_mean_s"));
    assert_eq!(seconds(&record.jobs[1]), (Some(40.0), Some(90.0)));
}

#[test]
fn a_withdrawal_after_the_end_changes_nothing() {
    for cancel in ["100", "500"] {
        let record = run(&format!("a,t,8,0,100,{cancel},,\n"), &settings("fifo"));
        assert_eq!(seconds(&record.jobs[0]), (Some(0.0), Some(100.0)));
        assert_eq!(record.jobs[0].outcome, Outcome::Succeeded);
    }
}

#[test]
fn a_held_job_lets_others_pass_and_its_hold_is_nobodys_delay() {
    let record = run("a,t,8,0,10,,60,\nb,t,8,1,50,,,\n", &settings("fifo"));
    assert_eq!(seconds(&record.jobs[1]), (Some(1.0), Some(51.0)));
    let held = &record.jobs[0];
    assert_eq!(seconds(held), (Some(60.0), Some(70.0)));
    assert_eq!((held.waited, held.jct()), (Span::ZERO, Some(Span::from_secs(10))));
}

#[test]
fn a_job_may_be_withdrawn_while_it_is_held() {
    let record = run("a,t,8,0,10,20,60,\n", &settings("fifo"));
    assert_eq!(seconds(&record.jobs[0]), (None, Some(20.0)));
    assert_eq!(record.jobs[0].waited, Span::ZERO);
}

#[test]
fn the_jobs_of_an_array_run_side_by_side() {
    let record = run("a,t,4,0,10,,,3\n", &settings("fifo"));
    let ends: Vec<_> = record.jobs.iter().map(|job| job.end.unwrap().as_secs_f64()).collect();
    assert_eq!(ends, [10.0, 10.0, 20.0]);
}

#[test]
fn withdrawals_hold_their_own_in_a_world_that_is_late_and_forgetful() {
    let mut rows = String::new();
    for job in 0..60 {
        let submit = job * 7;
        let cancel = submit + [5, 40, 90, 1000][job % 4];
        let hold = if job % 5 == 0 { (submit + 30).to_string() } else { String::new() };
        rows += &format!("j{job},t,{},{submit},60,{cancel},{hold},\n", 1 + job % 8);
    }
    for policy in PolicyConfig::NAMES {
        let mut settings = settings(policy);
        settings.actuation = Actuation {
            bind: Delay { min: Span::ZERO, max: Span::from_secs(3) },
            start: Delay { min: Span::ZERO, max: Span::from_secs(9) },
            stop: Delay { min: Span::ZERO, max: Span::from_secs(9) },
            news: Delay { min: Span::ZERO, max: Span::from_secs(4) },
            loss_milli: 50,
            resync: Span::from_secs(20),
            ..Actuation::default()
        };
        let record = run(&rows, &settings);
        assert!(record.jobs.iter().all(|job| job.end.is_some()), "{policy}");
        let ended_late = |job: &&JobRecord| job.end > Some(job.submit + Span::from_secs(1000));
        assert_eq!(record.jobs.iter().find(ended_late), None, "{policy}");
    }
}
