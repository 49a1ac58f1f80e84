//! Puts submissions on the trace's clock and keeps the part of the log that was asked for.

use crate::civil;
use crate::options::{Origin, TimeOptions};
use crate::report::{DropReason, ImportReport};
use crate::trace::TraceJob;
use deepshare_model::Time;

const MICROS: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * MICROS;

/// Sets the submission of jobs, which come ordered with their time on the file's own clock, and
/// leaves out those that the options exclude, each of which is shown to `dropped`.
pub(crate) fn place(
    mut jobs: Vec<(i64, TraceJob)>,
    dated: bool,
    options: &TimeOptions,
    report: &mut ImportReport,
    mut dropped: impl FnMut(&TraceJob),
) -> Vec<TraceJob> {
    let mut leave_out = |jobs: &mut Vec<(i64, TraceJob)>, reason, keep: &dyn Fn(i64) -> bool| {
        let before = jobs.len();
        jobs.retain(|(submit, job)| {
            if !keep(*submit) {
                dropped(job);
            }
            keep(*submit)
        });
        report.drop_rows(reason, (before - jobs.len()) as u64);
    };
    if dated && let Some(start) = options.not_before.and_then(civil::micros) {
        leave_out(&mut jobs, DropReason::TooEarly, &|submit| submit >= start);
    }
    let first = jobs.first().map_or(0, |(submit, _)| *submit);
    let mut origin = match options.origin {
        _ if !dated => 0,
        Origin::FirstDay => first.div_euclid(DAY_US) * DAY_US,
        Origin::FirstJob => first,
        Origin::At(time) => civil::micros(time).unwrap_or(0),
    };
    let mut window = options.window_s.filter(|_| dated || !options.dated_only);
    let inside = |submit: i64, origin: i64, (from, to): (u64, u64)| {
        let t = submit.saturating_sub(origin);
        let from = i64::try_from(from).unwrap_or(i64::MAX).saturating_mul(MICROS);
        let to = i64::try_from(to).unwrap_or(i64::MAX).saturating_mul(MICROS);
        (from..=to).contains(&t)
    };
    let mut note = None;
    if dated
        && let Some(range) = window
        && let Some(other) = options.origin_if_empty.and_then(civil::micros)
        && !jobs.iter().any(|(submit, _)| inside(*submit, origin, range))
    {
        // A job before that zero would have no time; such a log keeps its own.
        origin = if other <= first { other } else { first };
        if !jobs.iter().any(|(submit, _)| inside(*submit, origin, range)) {
            window = None;
        }
        note = Some(format!(
            "the window of {} s to {} s after the first job holds no job; {}",
            range.0,
            range.1,
            if window.is_some() { "it was counted from time zero" } else { "it was not applied" }
        ));
    }
    leave_out(&mut jobs, DropReason::TooEarly, &|submit| submit >= origin);
    if let Some(range) = window {
        leave_out(&mut jobs, DropReason::OutsideWindow, &|submit| inside(submit, origin, range));
    }
    report.notes.extend(note);
    if dated {
        report.origin = Some(civil::show(origin));
    }
    let on_clock = |(submit, mut job): (i64, TraceJob)| {
        job.submit = Time(submit.abs_diff(origin));
        job
    };
    jobs.into_iter().map(on_clock).collect()
}
