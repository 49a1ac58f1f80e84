//! The file `jobs.csv`: one line for each job of a run, in trace order.
//!
//! The columns and their order are a contract with scripts (`docs/formats/results.md`): new ones
//! are added at the end, none is ever moved or renamed.

mod read;
mod write;

pub use read::{JobTable, JobsCsvError, read_jobs_csv};
pub use write::{Names, write_jobs_csv};

/// A column of `jobs.csv` as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobColumn {
    /// Its header.
    pub name: &'static str,
    /// What it holds.
    pub definition: &'static str,
}

const fn column(name: &'static str, definition: &'static str) -> JobColumn {
    JobColumn { name, definition }
}

/// Every column, in order.
pub const JOB_COLUMNS: [JobColumn; 22] = [
    column("job_id", "the job's id in the trace, unique"),
    column("tenant", "who pays"),
    column("gpus", "GPUs, all held at once"),
    column("submit_s", "submission"),
    column("start_s", "first start; empty if it never started"),
    column("end_s", "end; empty if it had not ended when the run stopped"),
    column("queueing_delay_s", "all time in a queue; empty before the end"),
    column("jct_s", "`end_s - submit_s`; empty before the end"),
    column("preemptions", "times a policy took its GPUs away"),
    column("duration_s", "solo work"),
    column("first_wait_s", "`start_s - submit_s`; empty if it never started"),
    column("jct_minus_duration_s", "`jct_s - duration_s`; empty before the end"),
    column("slowdown", "`jct_s / max(duration_s, 1)`, six decimals; empty before the end"),
    column("class", "`guaranteed` or `best-effort`"),
    column("user", "who submitted"),
    column(
        "outcome",
        "how it ended in the trace: `succeeded`, `failed`, `out-of-memory`, `cancelled`, \
         `timeout` or `node-fail`",
    ),
    column("work_lost_s", "solo work done again after a preemption or failure"),
    column("restart_overhead_s", "time on its GPUs spent loading, restoring or warming up"),
    column("restarts_by_failure", "times a failed node took its GPUs away"),
    column("refused", "`true` if this cluster can never run it, else `false`"),
    column("shared_s", "time on its GPUs beside another job"),
    column(
        "slowed_s",
        "time of that lost to the other job: `shared_s` less the solo work done in it",
    ),
];

/// Columns from this one on came later: a file may lack all of them, and then they read as zero.
const FIRST_LATER_COLUMN: usize = 20;

#[cfg(test)]
mod tests;
