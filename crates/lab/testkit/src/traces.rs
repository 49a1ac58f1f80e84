//! Traces made of nothing but numbers, for tests that need no file.

use deepshare_model::{Outcome, Span, TenantId, Time, UserId};
use deepshare_trace::{ImportReport, Trace, TraceJob};

/// A job of tenant 0 and user 0 that asks for GPUs and nothing else.
pub fn plain_job(index: usize, gpus: u32, submit: Time, duration: Span) -> TraceJob {
    TraceJob {
        id: format!("job-{index}"),
        tenant: TenantId(0),
        user: UserId(0),
        gpus,
        gpu_type: None,
        cpu_milli: 0,
        memory_mib: 0,
        gpu_memory_mib: 0,
        submit,
        duration,
        outcome: Outcome::Succeeded,
        class: None,
        priority: 0,
        requested_time: None,
        cancel: None,
        hold_until: None,
        slowdown_limit_milli: 0,
        row: index as u64 + 1,
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
