//! A job history in memory.

use crate::report::ImportReport;
use deepshare_model::{Class, GpuTime, GpuTypeId, Outcome, Span, TenantId, Time, UserId};

/// Jobs in trace order, and the names their ids stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Jobs by submission; simultaneous ones by row of the file, or by the order file.
    pub jobs: Vec<TraceJob>,
    /// Names of tenants, by id.
    pub tenants: Vec<String>,
    /// Names of users, by id.
    pub users: Vec<String>,
    /// Names of GPU types, by id.
    pub gpu_types: Vec<String>,
    /// How the file became this trace.
    pub report: ImportReport,
}

/// One job of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// The name the file gives it; unique in the trace.
    pub id: String,
    /// Who pays.
    pub tenant: TenantId,
    /// Who submitted.
    pub user: UserId,
    /// GPUs, at least 1.
    pub gpus: u32,
    /// The only GPU type that will do, if any.
    pub gpu_type: Option<GpuTypeId>,
    /// Thousandths of a CPU core for the whole job; 0 = unknown.
    pub cpu_milli: u64,
    /// Host memory for the whole job, MiB; 0 = unknown.
    pub memory_mib: u64,
    /// GPU memory needed on each GPU, MiB; 0 = unknown.
    pub gpu_memory_mib: u32,
    /// When it was submitted.
    pub submit: Time,
    /// How long it runs alone, without waiting.
    pub duration: Span,
    /// How it ended.
    pub outcome: Outcome,
    /// Its class, where the file has one.
    pub class: Option<Class>,
    /// Order inside a tenant: higher first.
    pub priority: i32,
    /// The run time its owner asked for, where the file has one.
    pub requested_time: Option<Span>,
    /// When its owner withdraws it, if it has not ended by then.
    pub cancel: Option<Time>,
    /// Its owner asks that it not start before this.
    pub hold_until: Option<Time>,
    /// The largest slowdown beside others that its owner accepts, thousandths (1,000 and more); 0 = not
    /// said.
    pub slowdown_limit_milli: u32,
    /// Line of the file, from 1 (the header); for a generated job its position, from 1.
    pub row: u64,
}

impl TraceJob {
    /// A job without a name, of the first tenant and user, that asks for GPUs and nothing else.
    pub fn plain(gpus: u32, submit: Time, duration: Span) -> TraceJob {
        TraceJob {
            id: String::new(),
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
            row: 0,
        }
    }
}

impl Trace {
    /// GPU time of all jobs run alone.
    pub fn gpu_time(&self) -> GpuTime {
        let mut sum = GpuTime::default();
        for job in &self.jobs {
            sum += job.duration.on(job.gpus);
        }
        sum
    }

    /// Positions of the jobs in the order of their ids, for look-ups by binary search.
    pub(crate) fn by_id(&self) -> Vec<usize> {
        let mut positions: Vec<usize> = (0..self.jobs.len()).collect();
        positions.sort_by(|&a, &b| self.jobs[a].id.cmp(&self.jobs[b].id));
        positions
    }
}
