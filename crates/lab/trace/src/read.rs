//! Reads a job history: rows become jobs, and what cannot be a job becomes a problem.

mod arrays;
mod checks;
mod columns;
mod fields;

use crate::civil;
use crate::error::{Problem, Problems, TraceError};
use crate::names::Names;
use crate::number::parse_scaled;
use crate::options::{Format, ReadOptions, TimeUnit};
use crate::order;
use crate::report::{DropReason, ImportReport};
use crate::source::Lines;
use crate::table::{Row, Table};
use crate::times;
use crate::trace::{Trace, TraceJob};
use columns::Columns;
use deepshare_model::{GpuTypeId, Span, TenantId, Time, UserId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// Most GPUs one job may ask for.
const MAX_GPUS: u64 = 1_000_000;
/// A hundred years in microseconds: the longest duration accepted.
const MAX_DURATION_US: u64 = 100 * 31_557_600 * 1_000_000;
/// A hundred thousand years in microseconds: the latest submission accepted. Far enough for dates
/// of any origin, near enough that sums stay in range.
const MAX_SUBMIT_US: u64 = 1_000 * MAX_DURATION_US;
/// Remedy for figures that may be in another unit.
const UNIT_HINT: &str = "give seconds, or name the unit with --set trace.time-unit=ms (or us)";

/// Reads the job history in `path`. `options` say how; the defaults recognise the format.
///
/// # Errors
/// If the file cannot be read or if any row cannot be a job. All problems up to a limit are named
/// together, each with line, column and remedy.
pub fn read_trace(path: &Path, options: &ReadOptions) -> Result<Trace, TraceError> {
    read(Lines::open(path, options.max_lines)?, options)
}

/// As [`read_trace`], from something open that messages call `name`.
///
/// # Errors
/// As [`read_trace`].
pub fn read_trace_from(
    name: &str,
    input: impl Read + 'static,
    options: &ReadOptions,
) -> Result<Trace, TraceError> {
    read(Lines::new(name.to_owned(), input, options.max_lines)?, options)
}

fn read(lines: Lines, options: &ReadOptions) -> Result<Trace, TraceError> {
    let mut table = Table::new(lines)?;
    let (columns, imputed) = Columns::find(&table, options.format)?;
    let mut report = ImportReport::of(table.file(), Some(columns.format));
    report.imputed = imputed;
    let mut problems = Problems::of(table.file());
    let mut reader = Reader::new(&columns, options);
    while let Some(row) = table.next_row(&mut problems)? {
        report.rows += 1;
        match reader.job(&row, &mut problems) {
            Verdict::Job | Verdict::Bad => {}
            Verdict::Drop(reason) => {
                report.drop_rows(reason, 1);
                if options.order.is_some() {
                    reader.dropped_ids.insert(reader.name_of(&row));
                }
            }
        }
    }
    checks::whole_file(&reader.jobs, report.rows, &columns, options, &mut problems);
    problems.check()?;
    if table.cut_short() {
        report.notes.push("the last line has no line break: the file may be cut short".to_owned());
    }
    reader.finish(options, report)
}

/// A submission as the file has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// Seconds (or another unit) on a clock of its own.
    Numeric,
    /// A civil date and time.
    Dated,
}

/// What became of a row.
enum Verdict {
    /// A job was added.
    Job,
    /// A problem was reported.
    Bad,
    /// The row is no job of this trace.
    Drop(DropReason),
}

/// A job whose submission is not yet on the trace's clock.
struct RawJob {
    /// Microseconds since 1970 or since the file's own zero.
    submit: i64,
    job: TraceJob,
}

/// Turns rows into jobs.
struct Reader<'a> {
    columns: &'a Columns,
    scale: u32,
    /// How the first row writes its submission, and that row's line.
    clock: Option<(Clock, u64)>,
    filter: bool,
    tenants: Names,
    users: Names,
    gpu_types: Names,
    jobs: Vec<RawJob>,
    /// Jobs of each row that is an array, by line.
    arrays: BTreeMap<u64, u32>,
    dropped_ids: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    fn new(columns: &'a Columns, options: &ReadOptions) -> Reader<'a> {
        Reader {
            columns,
            scale: options.time_unit.unwrap_or(TimeUnit::Seconds).scale(),
            clock: None,
            filter: options.known_tenants.is_some(),
            tenants: Names::starting_with(options.known_tenants.as_deref().unwrap_or(&[])),
            users: Names::default(),
            gpu_types: Names::starting_with(&options.known_gpu_types),
            jobs: Vec::new(),
            arrays: BTreeMap::new(),
            dropped_ids: BTreeSet::new(),
        }
    }

    /// Adds the job of a row. Every field is checked even if another one is wrong.
    fn job(&mut self, row: &Row<'_>, problems: &mut Problems) -> Verdict {
        let c = self.columns;
        let remedy = "give the number of GPUs the job runs on";
        let gpus = match row.whole(c.gpus, MAX_GPUS, remedy) {
            Ok(0) => return Verdict::Drop(DropReason::NoGpu),
            Ok(n) => Ok(n),
            Err(problem) => Err(problem),
        };
        let tenant = row.name(c.tenant, "name the tenant (virtual cluster) that pays");
        if let Ok(name) = tenant
            && self.filter
            && self.tenants.get(name).is_none()
        {
            return Verdict::Drop(DropReason::UnknownTenant);
        }
        let mut failed = false;
        let mut note = |problem| {
            problems.push(problem);
            failed = true;
        };
        let id = match c.id {
            Some(column) => row.name(column, "give every job a name of its own").map(str::to_owned),
            None => Ok(self.name_of(row)),
        };
        let id = id.map_err(&mut note);
        let gpus = gpus.map_err(&mut note);
        let tenant = tenant.map_err(&mut note);
        let user = c.user.map_or(Ok(None), |u| row.optional_name(u)).map_err(&mut note);
        let submit = self.submit(row).map_err(&mut note);
        let duration =
            row.scaled(c.duration, self.scale, MAX_DURATION_US, UNIT_HINT).map_err(&mut note);
        let extra = fields::Extra::read(row, c, self.scale, &mut note);
        if let Ok(submit) = submit {
            extra.check_times(row, c, submit, &mut note);
        }
        let (Ok(id), Ok(gpus), Ok(tenant), Ok(user), Ok(submit), Ok(duration), false) =
            (id, gpus, tenant, user, submit, duration, failed)
        else {
            return Verdict::Bad;
        };
        let user = user.unwrap_or(tenant);
        let job = TraceJob {
            id,
            tenant: TenantId(self.tenants.number(tenant)),
            user: UserId(self.users.number(user)),
            gpus: u32::try_from(gpus).expect("within the limit on GPUs"),
            gpu_type: extra.gpu_type.map(|name| {
                // The id's width limits types; a file with more is refused by `checks`.
                GpuTypeId(u16::try_from(self.gpu_types.number(name)).unwrap_or(u16::MAX))
            }),
            cpu_milli: extra.cpu_milli,
            memory_mib: extra.memory_mib,
            gpu_memory_mib: extra.gpu_memory_mib,
            submit: Time::ZERO,
            duration: Span(duration),
            outcome: extra.outcome,
            class: extra.class,
            priority: extra.priority,
            requested_time: extra.requested_time,
            cancel: extra.cancel,
            hold_until: extra.hold_until,
            slowdown_limit_milli: extra.slowdown_limit_milli,
            row: row.line,
        };
        if let Some(tasks) = extra.tasks {
            self.arrays.insert(row.line, tasks);
        }
        self.jobs.push(RawJob { submit, job });
        Verdict::Job
    }

    /// What a row calls its job; in a format without names its number, from 1 below the header.
    fn name_of(&self, row: &Row<'_>) -> String {
        match self.columns.id {
            Some(column) => row.text(column).to_owned(),
            None => row.line.saturating_sub(1).to_string(),
        }
    }

    /// The submission in microseconds, of a kind that all rows must share.
    fn submit(&mut self, row: &Row<'_>) -> Result<i64, Problem> {
        let column = self.columns.submit;
        let text = row.text(column);
        if self.columns.format != Format::DeepShare
            && let Some(micros) = civil::parse(text)
        {
            self.same_clock(Clock::Dated, row)?;
            return Ok(micros);
        }
        if self.clock.is_some_and(|(clock, _)| clock == Clock::Dated) {
            let is_number = parse_scaled(text, self.scale).is_ok();
            let why = if is_number {
                "is a number where earlier rows have dates"
            } else {
                "is not a date and time"
            };
            return Err(row.problem(column, why, "write times as 2020-09-01 00:02:34"));
        }
        let remedy = if text.contains('-') && text.contains(':') {
            "give seconds since the start of the log, or 2020-09-01 00:02:34 in a helios log"
        } else {
            UNIT_HINT
        };
        let micros = row.scaled(column, self.scale, MAX_SUBMIT_US, remedy)?;
        self.same_clock(Clock::Numeric, row)?;
        Ok(i64::try_from(micros).expect("within the limit on submission"))
    }

    fn same_clock(&mut self, clock: Clock, row: &Row<'_>) -> Result<(), Problem> {
        let (first, line) = *self.clock.get_or_insert((clock, row.line));
        if first == clock {
            return Ok(());
        }
        let why = format!("is a date where line {line} has a number");
        Err(row.problem(self.columns.submit, &why, "write all times alike"))
    }

    /// Puts the jobs in order on the trace's clock.
    fn finish(self, options: &ReadOptions, mut report: ImportReport) -> Result<Trace, TraceError> {
        let dated = self.clock.is_some_and(|(clock, _)| clock == Clock::Dated);
        let mut dropped_ids = self.dropped_ids;
        let mut jobs = self.jobs;
        jobs.sort_by_key(|raw| (raw.submit, raw.job.row));
        let kept = times::place(
            jobs.into_iter().map(|raw| (raw.submit, raw.job)).collect(),
            dated,
            &options.times,
            &mut report,
            |job| {
                if options.order.is_some() {
                    dropped_ids.extend(arrays::ids(job, &self.arrays));
                }
            },
        );
        report.kept = kept.len() as u64;
        if kept.is_empty() {
            return Err(checks::nothing_left(&report));
        }
        let kept = arrays::expand(kept, &self.arrays, options.max_lines, &mut report)?;
        report.zero_durations = kept.iter().filter(|job| job.duration.is_zero()).count() as u64;
        let mut trace = Trace {
            jobs: kept,
            tenants: self.tenants.into_list(),
            users: self.users.into_list(),
            gpu_types: self.gpu_types.into_list(),
            report,
        };
        if let Some(path) = &options.order {
            order::apply(&mut trace, path, options.max_lines, &dropped_ids)?;
        }
        renumber(&mut trace, options.known_tenants.is_some());
        Ok(trace)
    }
}

/// Numbers users, and tenants unless the cluster does, by their first job.
pub(crate) fn renumber(trace: &mut Trace, tenants_known: bool) {
    let (mut tenants, mut users) = (Names::default(), Names::default());
    for job in &mut trace.jobs {
        job.user = UserId(users.number(&trace.users[job.user.index()]));
        if !tenants_known {
            job.tenant = TenantId(tenants.number(&trace.tenants[job.tenant.index()]));
        }
    }
    trace.users = users.into_list();
    if !tenants_known {
        trace.tenants = tenants.into_list();
    }
}
