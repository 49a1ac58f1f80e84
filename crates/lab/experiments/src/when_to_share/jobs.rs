//! Jobs of Philly's busiest windows, squeezed until they offer a load.

use super::JOBS;
use crate::ExperimentError;
use deepshare_model::{Span, Time};
use deepshare_trace::{ReadOptions, Trace, TraceJob, read_trace};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Most GPUs of a job: all there are.
const WIDEST: u32 = 64;
/// Most solo work of a job.
const MOST_GPU_HOURS: u64 = 100;
/// How many windows of a size there are, one for each seed.
const WINDOWS: usize = 20;
/// Windows begin this many jobs apart.
const STRIDE: usize = 60;

/// So many jobs that followed each other.
pub(super) struct Window {
    jobs: Range<usize>,
    /// Solo work over what 64 GPUs can do from the first arrival to the last.
    pub(super) offered: f64,
}

/// A history, and its busiest windows.
pub(super) struct Windows {
    /// Those of its jobs that windows may have.
    jobs: Vec<TraceJob>,
    /// The history without its jobs.
    rest: Trace,
    /// By how many jobs they have; of each, the busiest first.
    busiest: BTreeMap<usize, Vec<Window>>,
}

impl Windows {
    /// Reads the history.
    ///
    /// # Errors
    /// If the folder does not have the file.
    pub(super) fn read(data: &Path) -> Result<Windows, ExperimentError> {
        let path = data.join("philly/philly.csv.zst");
        Ok(Windows::of(read_trace(&path, &ReadOptions::default())?))
    }

    /// The jobs of the busiest window of so many, of the next, and so on.
    pub(super) fn of_seed(&self, count: usize, seed: u64) -> Trace {
        let busiest = self.busiest(count);
        self.trace(&busiest[(seed as usize - 1) % busiest.len()])
    }

    fn of(history: Trace) -> Windows {
        let mut rest = eligible(history);
        let jobs = std::mem::take(&mut rest.jobs);
        let busiest = JOBS.map(|count| (count, busiest(&jobs, count, WINDOWS)));
        Windows { jobs, rest, busiest: busiest.into() }
    }

    /// The windows of so many jobs that offer most, the busiest first.
    pub(super) fn busiest(&self, count: usize) -> &[Window] {
        &self.busiest[&count]
    }

    /// The jobs of a window.
    fn trace(&self, window: &Window) -> Trace {
        Trace { jobs: self.jobs[window.jobs.clone()].to_vec(), ..self.rest.clone() }
    }

    /// GPUs that jobs of windows can ask for, and their solo work, GPU-hours.
    pub(super) fn limits() -> (u32, u64) {
        (WIDEST, MOST_GPU_HOURS)
    }
}

/// The windows of so many jobs that offer most, the busiest first; none has a job of another.
fn busiest(jobs: &[TraceJob], count: usize, windows: usize) -> Vec<Window> {
    if jobs.len() < count {
        return Vec::new();
    }
    let window = |from: usize| {
        let within = &jobs[from..from + count];
        let work: u128 = within.iter().map(|job| job.duration.on(job.gpus).0).sum();
        let span = within[count - 1].submit.0 - within[0].submit.0;
        Window { jobs: from..from + count, offered: work as f64 / (64.0 * span.max(1) as f64) }
    };
    let last = jobs.len() - count;
    let mut all: Vec<Window> = (0..=last).step_by(STRIDE).map(window).collect();
    all.sort_by(|one, other| other.offered.total_cmp(&one.offered));
    let mut chosen: Vec<Window> = Vec::new();
    for window in all {
        let apart = |other: &Window| {
            window.jobs.end <= other.jobs.start || other.jobs.end <= window.jobs.start
        };
        if chosen.len() < windows && chosen.iter().all(apart) {
            chosen.push(window);
        }
    }
    chosen
}

fn eligible(history: Trace) -> Trace {
    let most = Span::from_secs(MOST_GPU_HOURS * 3_600).on(1);
    let mut history = history;
    history.jobs.retain(|job| {
        job.gpus <= WIDEST && !job.duration.is_zero() && job.duration.on(job.gpus) <= most
    });
    history
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
        rows += "wide,t,65,60000,10\nlong,t,1,60001,360001\nempty,t,1,60002,0\n";
        for job in 0..500 {
            rows += &format!("b{job},t,2,{},3600\n", 86_400 + job);
        }
        rows += "late,t,1,172800,1000\n";
        read_trace_from("t.csv", Cursor::new(rows), &ReadOptions::default()).unwrap()
    }

    #[test]
    fn the_busiest_windows_have_no_job_in_common_and_none_that_may_not_be_there() {
        let windows = Windows::of(history());
        assert_eq!(windows.jobs.len(), 600 + 500 + 1);
        let busiest = busiest(&windows.jobs, 240, 3);
        assert!(busiest.is_sorted_by(|one, other| one.offered >= other.offered));
        // The 500 jobs of an hour on two GPUs each, one a second.
        assert!(busiest[0].jobs.start >= 600 && busiest[0].jobs.end <= 1_100);
        let trace = windows.trace(&busiest[0]);
        assert!(trace.jobs.len() == 240 && trace.jobs.iter().all(|job| job.gpus == 2));
        let mut starts: Vec<usize> = busiest.iter().map(|window| window.jobs.start).collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[0] + 240 <= pair[1]));
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
