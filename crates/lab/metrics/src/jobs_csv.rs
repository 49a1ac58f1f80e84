//! The file `jobs.csv`: one line for each job of a run, in trace order.
//!
//! The columns and their order are a contract with scripts (`docs/formats/results.md`): new ones
//! are added at the end, none is ever moved or renamed.

mod read;
mod write;

pub use read::{JobTable, JobsCsvError, read_jobs_csv};
pub use write::{Names, write_jobs_csv};

use std::ops::Range;

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
pub const JOB_COLUMNS: [JobColumn; 25] = [
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
    column("profile", "class of its hardware profile, such as `c3`; empty if the policy knew none"),
    column(
        "slowdown_limit",
        "the most that `execution_ratio` may be, to the thousandth; empty if it set no limit",
    ),
    column(
        "execution_ratio",
        "`(jct_s - queueing_delay_s) / duration_s`, six decimals; empty if it did not finish or \
         had nothing to do",
    ),
];

/// Columns that came later, by the change they came with: a file may lack all of one change, and
/// then they read as zero or none.
const LATER_COLUMNS: [Range<usize>; 2] = [20..22, 22..25];

#[cfg(test)]
mod tests;
