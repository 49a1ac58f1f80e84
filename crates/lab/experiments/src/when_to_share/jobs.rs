//! Jobs of Philly's busiest days, drawn, and squeezed until they offer a load.

use crate::ExperimentError;
use deepshare_model::{Span, Time};
use deepshare_trace::{ReadOptions, Trace, read_trace};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Most GPUs of a job: those of the source's testbed, four servers of four.
const WIDEST: u32 = 16;
/// Most solo work of a job.
const MOST_GPU_HOURS: u64 = 100;
/// How many days there are to draw from; a seed draws from one of them.
const DAYS: usize = 20;
/// A day has at least as many jobs that may be drawn.
const LEAST_JOBS: usize = 480;
const DAY_US: u64 = 86_400_000_000;

/// A busy day.
pub(super) struct Day {
    /// Positions in the history of the jobs that may be drawn.
    jobs: Vec<usize>,
    /// Solo work of all those over what 64 GPUs can do in a day.
    pub(super) offered: f64,
}

/// The busiest days of the history.
pub(super) struct Days {
    history: Trace,
    /// The busiest first.
    pub(super) busiest: Vec<Day>,
}

impl Days {
    /// Reads the history and finds them: by solo work, of those with enough jobs.
    ///
    /// # Errors
    /// If the folder does not have the file.
    pub(super) fn read(data: &Path) -> Result<Days, ExperimentError> {
        let path = data.join("philly/philly.csv.zst");
        let history = read_trace(&path, &ReadOptions::default())?;
        Ok(Days { busiest: busiest(&history), history })
    }

    /// So many jobs of the day of a seed, at random: those with the least hashes.
    pub(super) fn draw(&self, count: usize, seed: u64) -> Trace {
        let day = &self.busiest[(seed as usize - 1) % self.busiest.len()];
        let mut drawn = day.jobs.clone();
        drawn.sort_by_key(|&job| xxh3_64_with_seed(&job.to_le_bytes(), seed));
        drawn.truncate(count);
        drawn.sort_unstable();
        let jobs = drawn.into_iter().map(|job| self.history.jobs[job].clone()).collect();
        Trace { jobs, ..self.history.clone() }
    }

    /// GPUs that drawn jobs can ask for, and their solo work, GPU-hours.
    pub(super) fn limits() -> (u32, u64) {
        (WIDEST, MOST_GPU_HOURS)
    }
}

fn busiest(history: &Trace) -> Vec<Day> {
    let most = Span::from_secs(MOST_GPU_HOURS * 3_600).on(1);
    let mut days: Vec<(u128, Vec<usize>)> = Vec::new();
    for (position, job) in history.jobs.iter().enumerate() {
        let work = job.duration.on(job.gpus);
        if job.gpus > WIDEST || job.duration.is_zero() || work > most {
            continue;
        }
        let day = (job.submit.0 / DAY_US) as usize;
        days.resize_with(days.len().max(day + 1), Default::default);
        days[day].0 += work.0;
        days[day].1.push(position);
    }
    days.retain(|(_, jobs)| jobs.len() >= LEAST_JOBS);
    days.sort_by_key(|&(work, _)| std::cmp::Reverse(work));
    days.truncate(DAYS);
    let capacity = 64.0 * DAY_US as f64;
    let day = |(work, jobs)| Day { jobs, offered: work as f64 / capacity };
    days.into_iter().map(day).collect()
}

/// The same jobs in the same rhythm, from the first to the last in just the time in which `gpus` do
/// the solo work of all at a load of so many thousandths.
pub(super) fn at_load(trace: &Trace, gpus: u64, load_milli: u32) -> Trace {
    let mut trace = trace.clone();
    let (Some(first), Some(last)) = (trace.jobs.first(), trace.jobs.last()) else {
        return trace;
    };
    let (first, last) = (first.submit.0, last.submit.0);
    let span = u128::from((last - first).max(1));
    let squeezed = trace.gpu_time().0 * 1_000 / (u128::from(gpus) * u128::from(load_milli));
    for job in &mut trace.jobs {
        let offset = u128::from(job.submit.0 - first) * squeezed / span;
        job.submit = Time(offset as u64);
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepshare_trace::read_trace_from;
    use std::io::Cursor;

    fn history() -> Trace {
        let mut rows = "job_id,tenant,gpus,submit_s,duration_s\n".to_owned();
        for job in 0..600 {
            rows += &format!("a{job},t,1,{},{}\n", job * 100, 50 + job);
        }
        rows += "wide,t,32,60000,10\nlong,t,1,60001,360001\nempty,t,1,60002,0\n";
        for job in 0..500 {
            rows += &format!("b{job},t,2,{},3600\n", 86_400 + job);
        }
        rows += "late,t,1,172800,1000\n";
        read_trace_from("t.csv", Cursor::new(rows), &ReadOptions::default()).unwrap()
    }

    #[test]
    fn days_with_enough_jobs_go_by_their_solo_work() {
        let days = busiest(&history());
        let jobs: Vec<usize> = days.iter().map(|day| day.jobs.len()).collect();
        assert_eq!(jobs, [500, 600]);
        assert!((days[0].offered - 1_000.0 / (64.0 * 24.0)).abs() < 1e-9);
    }

    #[test]
    fn a_seed_draws_from_its_day_in_order_and_again_the_same() {
        let history = history();
        let days = Days { busiest: busiest(&history), history };
        let [one, other] = [1, 2].map(|seed| days.draw(240, seed));
        assert!(one.jobs.iter().all(|job| job.gpus == 2));
        assert!(other.jobs.iter().all(|job| job.gpus == 1));
        assert_eq!(days.draw(240, 1), one);
        assert_ne!(days.draw(240, 3), one);
        assert!(one.jobs.is_sorted_by_key(|job| job.submit));
        let more = days.draw(480, 1);
        assert!(one.jobs.iter().all(|job| more.jobs.contains(job)));
    }

    #[test]
    fn arrivals_are_squeezed_until_they_offer_the_load() {
        let trace = at_load(&history(), 64, 1_500);
        let span = trace.jobs.last().unwrap().submit.as_secs_f64();
        let offered = trace.gpu_time().as_gpu_secs() / (64.0 * span);
        assert!((offered - 1.5).abs() < 1e-6, "{offered}");
        assert_eq!(trace.jobs[0].submit, Time::ZERO);
    }
}
