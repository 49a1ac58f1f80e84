//! Which submissions are whose, and when heavy jobs come: users wait until there is room.
//!
//! Users do not ask for much more than their virtual cluster has. They submit the next heavy job
//! about when earlier ones have ended, in campaigns of like jobs, and light ones beside them. So
//! heavy jobs take turns on a model of the nodes, at times of their own. Light jobs then trade
//! submissions until they fit into what the heavy ones leave.

mod calendar;
mod gaps;
mod nodes;
mod turns;

use super::stream::Stream;
use crate::trace::TraceJob;
use calendar::Calendar;
use deepshare_model::{Span, Time};
use std::collections::BTreeMap;

/// Jobs that run longer than this are heavy.
const HEAVY: Span = Span::from_secs(3_600);
/// A user's jobs of one size come in campaigns of up to this many.
const CAMPAIGN: usize = 30;
/// Part of the period, at its end, in which heavy jobs come that never found room.
const LATE: f64 = 0.085;
/// Submissions that such a job tries.
const LATE_TRIES: u32 = 20;

/// Moves the submissions of the jobs of one virtual cluster with `nodes` nodes. Sizes, durations,
/// users and, but for heavy jobs and a few wide ones, the times themselves stay as they were.
pub(super) fn place(jobs: &mut [TraceJob], nodes: usize, end: Time, stream: &mut Stream) {
    let mut times: Vec<Time> = jobs.iter().map(|job| job.submit).collect();
    times.sort_unstable();
    let (heavy, light): (Vec<usize>, Vec<usize>) =
        (0..jobs.len()).partition(|&job| jobs[job].duration > HEAVY);
    let heavy = campaigns(jobs, heavy, stream);
    let mut calendar = Calendar::new(nodes);
    let left = turns::take(jobs, &heavy, &times, end, &mut calendar, stream);
    let from = Time::from_secs(((1.0 - LATE) * seconds(end)) as u64);
    let late = &times[times.partition_point(|&time| time < from)..];
    for job in left {
        if !late.is_empty() {
            let tries = (0..LATE_TRIES).map(|_| late[stream.below(late.len() as u64) as usize]);
            let crowd = |&time: &Time| calendar.find(&jobs[job], time).crowd;
            jobs[job].submit = tries.min_by_key(crowd).unwrap_or(jobs[job].submit);
        }
        let parts = calendar.find(&jobs[job], jobs[job].submit).parts;
        calendar.add(&jobs[job], &parts);
    }
    let ends = heavy.iter().map(|&job| Calendar::after(&jobs[job])).collect();
    gaps::fill(jobs, light, ends, end, &mut calendar, stream);
}

/// `jobs` of `heavy` in the order in which they will be wanted.
fn campaigns(jobs: &[TraceJob], mut heavy: Vec<usize>, stream: &mut Stream) -> Vec<usize> {
    heavy.sort_by_key(|&job| (jobs[job].submit, job));
    let mut alike: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for job in heavy {
        alike.entry((jobs[job].user, jobs[job].gpus)).or_default().push(job);
    }
    let mut campaigns: Vec<(f64, &[usize])> = (alike.values())
        .flat_map(|jobs| jobs.chunks(CAMPAIGN))
        .map(|campaign| (stream.unit(), campaign))
        .collect();
    campaigns.sort_by(|a, b| a.0.total_cmp(&b.0));
    campaigns.iter().flat_map(|(_, campaign)| campaign.iter().copied()).collect()
}

/// Seconds from time zero.
fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e6
}
