//! What sharing did to jobs, against figures worked out by hand.

use super::*;
use crate::JobFigures;
use crate::sample::{records, shared_records};
use deepshare_model::{Outcome, Time};

fn value(jobs: &[JobRecord], name: &str) -> Option<f64> {
    let figures = JobFigures::of(jobs).figures();
    let (_, value) = figures.iter().find(|(figure, _)| figure.name == name).unwrap();
    value.as_f64()
}

#[test]
fn figures_of_the_shared_sample_are_those_worked_out_by_hand() {
    let jobs = shared_records();
    // Beside each other for 40 s: job 0 does 32 s of work in it, job 1 does 20 s.
    let expected = [
        ("sharing_jobs", 2.0),
        ("jobs_shared_gpu_s", (8 * 40 + 2 * 40) as f64),
        ("jobs_slowed_gpu_s", (8 * 8 + 2 * 20) as f64),
        ("jobs_shared_of_run_time", 400.0 / (8.0 * 108.0 + 2.0 * 100.0)),
        ("slowdown_while_shared_weighted", 400.0 / (400.0 - 104.0)),
        ("slowdown_over_life_weighted", 1064.0 / (1064.0 - 104.0)),
        ("slowdown_while_shared_mean", (1.25 + 2.0) / 2.0),
        ("slowdown_while_shared_max", 2.0),
        ("slowdown_over_life_mean", (1.08 + 1.25) / 2.0),
        ("slowdown_over_life_max", 1.25),
    ];
    for (name, expected) in expected {
        assert_eq!(value(&jobs, name), Some(expected), "{name}");
    }
    let p95 = value(&jobs, "slowdown_while_shared_p95").unwrap();
    assert!((p95 - (1.25 + 0.95 * 0.75)).abs() < 1e-12, "{p95}");
}

#[test]
fn nothing_is_said_of_sharing_where_nobody_shared() {
    let jobs = records();
    for (figure, value) in SharedJobFigures::default().figures() {
        assert_eq!(value, Value::Missing, "{}", figure.name);
        assert_eq!(self::value(&jobs, &figure.name), None, "{}", figure.name);
    }
}

#[test]
fn sharing_that_slows_nobody_is_a_ratio_of_one() {
    let mut jobs = shared_records();
    jobs.iter_mut().for_each(|job| job.slowed = Span::ZERO);
    for name in ["slowdown_while_shared_weighted", "slowdown_over_life_max"] {
        assert_eq!(value(&jobs, name), Some(1.0), "{name}");
    }
    assert_eq!(value(&jobs, "jobs_slowed_gpu_s"), Some(0.0));
}

#[test]
fn a_moment_together_is_counted_but_makes_no_slowdown_of_a_job() {
    let mut jobs = shared_records();
    (jobs[1].shared, jobs[1].slowed) = (Span(3), Span(2));
    assert_eq!(value(&jobs, "sharing_jobs"), Some(2.0));
    assert_eq!(value(&jobs, "slowdown_while_shared_max"), Some(1.25), "not three from rounding");
    assert_eq!(value(&jobs, "jobs_shared_gpu_s"), Some(320.000_006));
}

#[test]
fn all_time_together_that_brought_no_work_has_no_ratio() {
    let mut jobs = shared_records();
    jobs.iter_mut().for_each(|job| job.slowed = job.shared);
    assert_eq!(value(&jobs, "slowdown_while_shared_weighted"), None);
    assert_eq!(value(&jobs, "slowdown_while_shared_max"), None);
    assert_eq!(value(&jobs, "jobs_slowed_gpu_s"), Some(400.0));
}

#[test]
fn jobs_still_running_or_withdrawn_count_by_gpu_time_only() {
    let mut jobs = shared_records();
    jobs[0].end = None;
    jobs[1].outcome = Outcome::Cancelled;
    jobs[1].end = Some(Time::from_secs(100));
    assert_eq!(value(&jobs, "finished"), Some(0.0));
    assert_eq!(value(&jobs, "slowdown_while_shared_weighted"), Some(400.0 / 296.0));
    for name in ["slowdown_while_shared_mean", "slowdown_over_life_weighted"] {
        assert_eq!(value(&jobs, name), None, "{name}");
    }
}
