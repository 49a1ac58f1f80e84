//! `deepshare replay`.

use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::output::json_line;
use crate::terminal;
use deepshare_event_log::{AuditorFor, Ended, Mismatch, Replay, replay};
use deepshare_sim::auditor_of;
use serde::Serialize;
use std::fmt::Write;

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    deepshare: &'static str,
    same: bool,
    segments: u64,
    starts: u64,
    events: u64,
    commands: u64,
    snapshots: u64,
    lost: u64,
    audited: u64,
    /// Seconds from the first step to the last.
    span_s: f64,
    /// Where the log is cut: segment and byte.
    cut: Option<(u32, u64)>,
    mismatch: &'a Option<Mismatch>,
}

/// Runs the command.
///
/// # Errors
/// If the log cannot be read, or the replay differs from it.
pub fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let auditor: Option<AuditorFor<'_>> = args.audit.then_some(&auditor_of);
    let report = replay(&args.log, auditor)?;
    terminal::print(&match args.json {
        true => json_line(&document(&report)),
        false => account(&report, args.audit),
    })?;
    match &report.mismatch {
        None => Ok(()),
        Some(mismatch) => Err(Failure::Differs(format!(
            "the replay differs from the log in {mismatch}\n  another release may decide \
             otherwise: compare with the one that wrote the log"
        ))),
    }
}

/// Seconds from the first step to the last.
fn span_s(report: &Replay) -> f64 {
    let span = report.last.zip(report.first).and_then(|(last, first)| last.since(first));
    span.unwrap_or_default().as_secs_f64()
}

fn document(report: &Replay) -> Document<'_> {
    Document {
        deepshare: env!("CARGO_PKG_VERSION"),
        same: report.mismatch.is_none(),
        segments: report.segments,
        starts: report.starts,
        events: report.events,
        commands: report.commands,
        snapshots: report.snapshots,
        lost: report.lost,
        audited: report.audited,
        span_s: span_s(report),
        cut: match report.ended {
            Ended::Whole => None,
            Ended::Cut { segment, offset } => Some((segment, offset)),
        },
        mismatch: &report.mismatch,
    }
}

fn account(report: &Replay, audit: bool) -> String {
    let Replay { segments, starts, events, commands, snapshots, lost, audited, .. } = report;
    let mut text = format!(
        "log       {segments} segments, {starts} starts of a scheduler, {:.1} s from first to last \
         step\nreplayed  {events} events, {commands} commands, {snapshots} snapshots compared\n",
        span_s(report)
    );
    let mut say = |line: String| writeln!(text, "{line}").expect("strings take everything");
    if audit {
        say(format!("audited   {audited} steps; none of a segment that begins with a snapshot"));
    }
    if *lost > 0 {
        say(format!("gaps      {lost} steps are not in the log: they could not be written"));
    }
    if let Ended::Cut { segment, offset } = report.ended {
        say(format!(
            "cut       at byte {offset} of segment {segment:08}: the scheduler was killed while \
             writing, and what it did last is not in the log"
        ));
    }
    if report.mismatch.is_none() {
        say("same      every command is the one in the log".to_owned());
    }
    text
}
