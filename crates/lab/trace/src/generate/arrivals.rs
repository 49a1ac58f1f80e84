//! When jobs are submitted, and by whom: users come in batches, by day more than by night.

use super::statistics::{FIRST_WEEKDAY, HOURS, WEEKDAY_COUNTS, WEEKDAYS};
use super::stream::{Stream, cumulative};

/// Kinds of batches: their share, and the mean number of jobs after the first, which is
/// exponential. Most are single jobs; sweeps of a hundred make the busiest hours.
pub(super) const KINDS: [(f64, f64); 3] = [(0.6, 0.0), (0.39, 5.0), (0.01, 100.0)];
/// Share of a batch's jobs that come in the same second as the one before.
pub(super) const SAME_SECOND: f64 = 0.18;
/// Mean gap between the others, in seconds: in a short batch, and in a sweep.
const GAPS_S: [f64; 3] = [0.0, 150.0, 15.0];
/// Deviation of the logarithm of a day's activity, beyond the day of the week.
const DAY_SPREAD: f64 = 0.2;
/// Share of jobs that come at any time: the heavy ones that wait for room. The others make up for
/// them.
const ANY_TIME: f64 = 0.15;
/// Jobs of a virtual cluster's users fall with rank to this power: five users have over a third.
const USER_SKEW: f64 = 1.5;

/// Jobs that one user submits in a row.
pub(super) struct Batch {
    /// Rank of the user in the virtual cluster, busiest first.
    pub user: usize,
    /// Submissions in seconds, ascending.
    pub times: Vec<u64>,
}

/// Weights of the hours of the whole period, for [`Stream::pick`].
pub(super) fn rhythm(days: u32, stream: &mut Stream) -> Vec<f64> {
    let day = |number: usize, noise: f64| {
        let weekday = (FIRST_WEEKDAY + number) % 7;
        WEEKDAYS[weekday] / WEEKDAY_COUNTS[weekday] * libm::exp(DAY_SPREAD * noise)
    };
    let days: Vec<f64> = (0..days as usize).map(|d| day(d, stream.normal())).collect();
    let weights: Vec<f64> = days.iter().flat_map(|d| HOURS.iter().map(move |h| d * h)).collect();
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    cumulative(weights.iter().map(|weight| (weight - ANY_TIME * mean).max(0.1 * weight)))
}

/// Batches with `jobs` jobs in all, of `users` users.
pub(super) fn batches(jobs: u32, users: u32, hours: &[f64], stream: &mut Stream) -> Vec<Batch> {
    let skew = cumulative((1..=users).map(|rank| libm::pow(f64::from(rank), -USER_SKEW)));
    let kinds = cumulative(KINDS.iter().map(|kind| kind.0));
    let end = hours.len() as u64 * 3600;
    let mut batches = Vec::new();
    let mut left = jobs;
    while left > 0 {
        let kind = stream.pick(&kinds);
        // Truncation to u32 saturates.
        let size = (1 + stream.exponential(KINDS[kind].1) as u32).min(left);
        left -= size;
        let start = stream.pick(hours) as u64 * 3600 + stream.below(3600);
        let mut time = start;
        let mut times = vec![start];
        for _ in 1..size {
            if stream.unit() >= SAME_SECOND {
                time += 1 + stream.exponential(GAPS_S[kind]) as u64;
            }
            times.push(time.min(end - 1));
        }
        // Everyone has at least one batch.
        let user = if batches.len() < skew.len() { batches.len() } else { stream.pick(&skew) };
        batches.push(Batch { user, times });
    }
    batches
}
