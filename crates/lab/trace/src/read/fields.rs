//! The optional fields of a row.

use super::columns::Columns;
use super::{MAX_DURATION_US, MAX_SUBMIT_US, UNIT_HINT};
use crate::error::Problem;
use crate::table::{Column, Row};
use deepshare_model::{Class, Outcome, Span, Time};

/// Most CPU cores of a job, in thousandths.
const MAX_CPU_MILLI: u64 = 1_000_000_000_000;
/// Most host memory of a job: an exbibyte.
const MAX_MEMORY_MIB: u64 = 1 << 40;
/// Most jobs of one array.
const MAX_TASKS: u64 = 1_000_000;
/// Most memory of one GPU: a tebibyte.
const MAX_GPU_MEMORY_MIB: u64 = 1 << 20;
/// Largest slowdown a job can accept, in thousandths.
const MAX_SLOWDOWN_MILLI: u64 = 1_000_000;

/// What a job's row may say beyond the required columns. Empty fields leave the default.
#[derive(Default)]
pub(super) struct Extra<'a> {
    pub cpu_milli: u64,
    pub memory_mib: u64,
    pub gpu_memory_mib: u32,
    pub gpu_type: Option<&'a str>,
    pub outcome: Outcome,
    pub class: Option<Class>,
    pub priority: i32,
    pub requested_time: Option<Span>,
    pub cancel: Option<Time>,
    pub hold_until: Option<Time>,
    /// Jobs of the array; `None` if the row is a single job.
    pub tasks: Option<u32>,
    /// Thousandths; 0 if the row does not say.
    pub slowdown_limit_milli: u32,
}

impl<'a> Extra<'a> {
    pub(super) fn read(
        row: &'a Row<'_>,
        columns: &Columns,
        scale: u32,
        note: &mut impl FnMut(Problem),
    ) -> Extra<'a> {
        // The column, if the file has it and the row fills it.
        let filled = |column: Option<Column>| column.filter(|&c| !row.text(c).is_empty());
        let mut extra = Extra::default();
        let mut number = |column, scale, most, remedy| {
            let value = filled(column).map(|c| row.scaled(c, scale, most, remedy));
            value.transpose().unwrap_or_else(|problem| {
                note(problem);
                None
            })
        };
        let remedy = "give the CPU cores of the whole job, or leave it empty";
        extra.cpu_milli = number(columns.cpus, 3, MAX_CPU_MILLI, remedy).unwrap_or(0);
        let remedy = "give MiB of host memory for the whole job, or leave it empty";
        extra.memory_mib = number(columns.memory, 0, MAX_MEMORY_MIB, remedy).unwrap_or(0);
        let remedy = "give MiB of memory on each GPU, or leave it empty";
        extra.gpu_memory_mib = number(columns.gpu_memory, 0, MAX_GPU_MEMORY_MIB, remedy)
            .map_or(0, |mib| u32::try_from(mib).expect("within the limit on GPU memory"));
        extra.requested_time =
            number(columns.requested, scale, MAX_DURATION_US, UNIT_HINT).map(Span);
        extra.cancel = number(columns.cancel, scale, MAX_SUBMIT_US, UNIT_HINT).map(Time);
        extra.hold_until = number(columns.hold_until, scale, MAX_SUBMIT_US, UNIT_HINT).map(Time);
        if let Some(column) = filled(columns.tasks) {
            let remedy = "give the number of jobs of the array, or leave it empty for a single job";
            match row.whole(column, MAX_TASKS, remedy) {
                Ok(0) => note(row.problem(column, "is an array without jobs", remedy)),
                Ok(tasks) => extra.tasks = u32::try_from(tasks).ok(),
                Err(problem) => note(problem),
            }
        }
        if let Some(column) = filled(columns.gpu_sla) {
            match slowdown_limit(row, column) {
                Ok(milli) => extra.slowdown_limit_milli = milli,
                Err(problem) => note(problem),
            }
        }
        extra.gpu_type = match columns.gpu_type.map_or(Ok(None), |c| row.optional_name(c)) {
            Ok(name) => name,
            Err(problem) => {
                note(problem);
                None
            }
        };
        if let Some(c) = filled(columns.state) {
            match outcome(row.text(c)) {
                Some(outcome) => extra.outcome = outcome,
                None => note(row.problem(
                    c,
                    "is not a known state",
                    "use COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL or OUT_OF_MEMORY",
                )),
            }
        }
        if let Some(c) = filled(columns.class) {
            match [Class::Guaranteed, Class::BestEffort].iter().find(|k| k.name() == row.text(c)) {
                Some(&class) => extra.class = Some(class),
                None => {
                    note(row.problem(c, "is not a class", "use guaranteed or best-effort"));
                }
            }
        }
        if let Some(c) = filled(columns.priority) {
            match row.text(c).parse() {
                Ok(priority) => extra.priority = priority,
                Err(_) => note(row.problem(
                    c,
                    "is not a priority",
                    "give a whole number from -2147483648 to 2147483647",
                )),
            }
        }
        extra
    }
}

impl Extra<'_> {
    /// Reports times that are before the submission.
    pub(super) fn check_times(
        &self,
        row: &Row<'_>,
        columns: &Columns,
        submit: i64,
        note: &mut impl FnMut(Problem),
    ) {
        let times = [(self.cancel, columns.cancel), (self.hold_until, columns.hold_until)];
        for (time, column) in times {
            if let (Some(time), Some(column)) = (time, column)
                && i64::try_from(time.0).is_ok_and(|time| time < submit)
            {
                let remedy = "give a time on the same clock as the submission, not before it";
                note(row.problem(column, "is before the submission", remedy));
            }
        }
    }
}

/// The largest slowdown that a job accepts, thousandths.
fn slowdown_limit(row: &Row<'_>, column: Column) -> Result<u32, Problem> {
    let remedy = "give the largest accepted run time beside others over that alone, 1 to 1000 with up \
                  to three decimals, or leave it empty";
    let milli = row.scaled(column, 3, MAX_SLOWDOWN_MILLI, remedy)?;
    match u32::try_from(milli) {
        Ok(milli) if milli >= 1_000 => Ok(milli),
        _ => Err(row.problem(column, "is below 1, which no job beside others can keep", remedy)),
    }
}

/// The outcome a state stands for: Slurm's words, as Helios has them, or ours.
fn outcome(state: &str) -> Option<Outcome> {
    let word: String =
        state.chars().map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect();
    match word.as_str() {
        "completed" => Some(Outcome::Succeeded),
        "canceled" => Some(Outcome::Cancelled),
        // Slurm says by whom.
        by if by.starts_with("cancelled by ") => Some(Outcome::Cancelled),
        name => Outcome::ALL.into_iter().find(|o| o.name() == name),
    }
}
