//! Light jobs, where heavy ones leave room.

use super::calendar::{Calendar, Place};
use super::nodes::NODE_GPUS;
use crate::generate::stream::Stream;
use crate::trace::TraceJob;
use deepshare_model::{Span, Time};
use std::cmp::Reverse;

/// Submissions of other jobs that a job tries before it takes the best.
const TRIES: u32 = 30;
/// Ends of other jobs that a wide job tries then.
const ENDS: u32 = 40;
/// Part of the virtual cluster's GPUs from which on a job is wide.
const WIDE: f64 = 0.1;

/// Lets the jobs of `light` trade their submissions, heaviest first, until each has room or the
/// least bad of several times. Wide jobs that find none follow another job; `ends` are those of
/// the jobs so far.
pub(super) fn fill(
    jobs: &mut [TraceJob],
    mut light: Vec<usize>,
    mut ends: Vec<Time>,
    end: Time,
    calendar: &mut Calendar,
    stream: &mut Stream,
) {
    let step = Span::from_secs(Calendar::STEP_S);
    let wide = WIDE * (calendar.nodes() * usize::from(NODE_GPUS)) as f64;
    let weight = |job: &TraceJob| job.duration.max(step).on(job.gpus);
    light.sort_by_key(|&job| (Reverse(weight(&jobs[job])), job));
    for (at, &job) in light.iter().enumerate() {
        if jobs[job].gpus == 1 && jobs[job].duration < step {
            // Fits anywhere, soon.
            continue;
        }
        // Jobs before `at` keep the time they have found.
        let rest = &light[at..];
        let mut best = (calendar.find(&jobs[job], jobs[job].submit), job);
        for _ in 0..TRIES {
            if best.0.crowd == 0 {
                break;
            }
            let other = rest[stream.below(rest.len() as u64) as usize];
            let place = calendar.find_below(best.0.crowd, &jobs[job], jobs[other].submit);
            if place.crowd < best.0.crowd {
                best = (place, other);
            }
        }
        let (mut place, other) = best;
        let follows = (f64::from(jobs[job].gpus) >= wide)
            .then(|| follow(&jobs[job], &mut place, &ends, end, calendar, stream))
            .flatten();
        if let Some(time) = follows {
            jobs[job].submit = time;
        } else {
            let own = jobs[job].submit;
            jobs[job].submit = jobs[other].submit;
            jobs[other].submit = own;
        }
        calendar.add(&jobs[job], &place.parts);
        ends.push(Calendar::after(&jobs[job]));
    }
}

/// A time at which `job` follows another one, if that is better than `place`, which it replaces.
fn follow(
    job: &TraceJob,
    place: &mut Place,
    ends: &[Time],
    end: Time,
    calendar: &Calendar,
    stream: &mut Stream,
) -> Option<Time> {
    let mut best = None;
    for _ in 0..ENDS {
        if place.crowd == 0 || ends.is_empty() {
            break;
        }
        let after = ends[stream.below(ends.len() as u64) as usize];
        // Time for the step to pass.
        let time = after + Span::from_secs(stream.below(Calendar::STEP_S));
        if time >= end {
            continue;
        }
        let found = calendar.find_below(place.crowd, job, after);
        if found.crowd < place.crowd {
            *place = found;
            best = Some(time);
        }
    }
    best
}
