//! Heavy jobs, one after another as there is room.

use super::calendar::Calendar;
use super::nodes::{NODE_GPUS, Nodes};
use super::seconds;
use crate::generate::stream::Stream;
use crate::trace::TraceJob;
use deepshare_model::{Span, Time};

/// Part of the period over which heavy jobs are wanted.
const SPREAD: f64 = 0.82;
/// How often a user pauses after a heavy job, and for how many seconds on average.
const PAUSE: (f64, f64) = (0.33, 36_000.0);
/// In a virtual cluster that heavy jobs fill to the brim, pauses are this part of those elsewhere,
/// and of this many times its slack in one between.
const PAUSE_WHEN_FULL: (f64, f64) = (0.8, 4.0);
/// A job that waits for room is submitted this many seconds before there is, on average.
const LEAD_S: f64 = 2_500.0;
/// From this load on, the period ends in the middle of the heaviest job.
const FULL: f64 = 0.95;
/// Users go on submitting for less than this many seconds.
const AWAKE_S: u64 = 600;
/// Users who have submitted nothing for this long are not asleep, but few.
const NIGHT: Span = Span::from_secs(4 * 3_600);
/// Waiting jobs that are looked at.
const LOOK: usize = 256;

/// Submits the jobs of `heavy`, in this order where room allows; one that has no room yet lets
/// others past that do not delay it. Returns those that found none before `end`. `times` are the
/// submissions of the virtual cluster, whose rhythm of day and week the jobs keep to where they
/// do not wait for others.
pub(super) fn take(
    jobs: &mut [TraceJob],
    heavy: &[usize],
    times: &[Time],
    end: Time,
    calendar: &mut Calendar,
    stream: &mut Stream,
) -> Vec<usize> {
    let capacity = (calendar.nodes() * usize::from(NODE_GPUS)) as f64 * seconds(end);
    let load = heavy.iter().map(|&job| gpu_seconds(&jobs[job])).sum::<f64>() / capacity;
    let pause = PAUSE.1 * ((1.0 - load) * PAUSE_WHEN_FULL.1).clamp(PAUSE_WHEN_FULL.0, 1.0);
    let lead = LEAD_S * pause / PAUSE.1;
    let wishes = wishes(jobs, heavy, load, capacity, times, end);
    let mut coming = wishes.iter().copied().peekable();
    let mut nodes = Nodes::new(calendar.nodes());
    let mut waiting: Vec<(Time, usize)> = Vec::new();
    loop {
        let wish = coming.peek().map(|&(wanted, _)| wanted);
        let Some(now) = wish.into_iter().chain(nodes.next_end()).min() else { break };
        if now >= end {
            break;
        }
        nodes.release(now);
        while let Some(wish) = coming.next_if(|&(wanted, _)| wanted <= now) {
            waiting.push(wish);
        }
        let mut reserved = None;
        let mut looked = 0;
        waiting.retain(|&(wanted, job)| {
            looked += 1;
            if looked > LOOK {
                return true;
            }
            let idle = if stream.unit() < PAUSE.0 { stream.exponential(pause) } else { 0.0 };
            let until = now + jobs[job].duration + Span::from_secs(idle as u64);
            let Some(parts) = nodes.fit(jobs[job].gpus, until, reserved.as_mut()) else {
                if reserved.is_none() {
                    reserved = nodes.reserve(jobs[job].gpus);
                }
                return true;
            };
            jobs[job].submit = now;
            calendar.add(&jobs[job], &parts);
            nodes.start(until, parts);
            let early = stream.exponential(lead) as u64;
            let ready = Time(now.0.saturating_sub(early * 1_000_000));
            jobs[job].submit = awake(times, ready, Span::from_secs(early % AWAKE_S)).max(wanted);
            false
        });
    }
    waiting.into_iter().chain(coming).map(|(_, job)| job).collect()
}

/// A time up to `time` at which the virtual cluster's users are about: `past` after one of their
/// submissions, unless that was long before.
fn awake(times: &[Time], time: Time, past: Span) -> Time {
    let next = times.partition_point(|&submit| submit <= time);
    let last = times[..next].last().filter(|&&submit| submit + NIGHT > time);
    last.map_or(time, |&submit| time.min(submit + past))
}

/// When each job is wanted, ascending.
fn wishes(
    jobs: &[TraceJob],
    heavy: &[usize],
    load: f64,
    capacity: f64,
    times: &[Time],
    end: Time,
) -> Vec<(Time, usize)> {
    let mut order = heavy.to_vec();
    let work = |job: usize| jobs[job].duration.on(jobs[job].gpus);
    let heaviest = (0..order.len()).max_by_key(|&at| work(order[at]));
    if load > FULL
        && let Some(at) = heaviest
    {
        let last = order.remove(at);
        order.push(last);
    }
    let mut before = 0.0;
    let wish = |job: usize| {
        let wanted = SPREAD * seconds(end) * before / (load * capacity);
        before += gpu_seconds(&jobs[job]);
        let at = Time::from_secs(wanted as u64);
        let next = times.partition_point(|&time| time < at);
        (times.get(next).copied().unwrap_or(at), job)
    };
    order.into_iter().map(wish).collect()
}

fn gpu_seconds(job: &TraceJob) -> f64 {
    job.duration.on(job.gpus).as_gpu_secs()
}
