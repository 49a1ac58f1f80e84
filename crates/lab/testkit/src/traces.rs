//! Traces made of nothing but numbers, for tests that need no file.

use deepshare_model::{Span, Time};
use deepshare_trace::{ImportReport, Trace, TraceJob};

/// [`TraceJob::plain`] with the name and row of its position.
pub fn plain_job(index: usize, gpus: u32, submit: Time, duration: Span) -> TraceJob {
    TraceJob {
        id: format!("job-{index}"),
        row: index as u64 + 1,
        ..TraceJob::plain(gpus, submit, duration)
    }
}

/// A trace of these jobs, which must be in order of submission.
pub fn trace_of(jobs: Vec<TraceJob>, tenants: Vec<String>) -> Trace {
    let rows = jobs.len() as u64;
    let zero_durations = jobs.iter().filter(|job| job.duration.is_zero()).count() as u64;
    let users = jobs.iter().map(|job| job.user.index() + 1).max().unwrap_or(0);
    Trace {
        jobs,
        tenants,
        users: (0..users).map(|index| format!("u{index}")).collect(),
        gpu_types: Vec::new(),
        report: ImportReport {
            file: String::new(),
            format: None,
            rows,
            kept: rows,
            dropped: Vec::new(),
            imputed: Vec::new(),
            origin: None,
            zero_durations,
            notes: Vec::new(),
        },
    }
}
