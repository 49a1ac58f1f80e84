//! Writing `jobs.csv`.

use super::JOB_COLUMNS;
use crate::job_record::signed;
use crate::{ExactSeconds, JobRecord};
use deepshare_model::{Span, Time};
use std::io::{self, Write};

/// The names behind the ids in records, by position.
#[derive(Clone, Debug)]
pub struct Names<'a, S> {
    /// Ids of jobs in the trace.
    pub jobs: &'a [S],
    /// Tenants.
    pub tenants: &'a [S],
    /// Users.
    pub users: &'a [S],
}

/// Writes one line for each record, in the order given, with `\n` line ends. A name that is
/// missing from `names` is replaced by the id's own form, such as `j7`.
///
/// # Errors
/// Those of `writer`.
pub fn write_jobs_csv<W: Write, S: AsRef<str>>(
    writer: W,
    names: &Names<'_, S>,
    jobs: &[JobRecord],
) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(writer);
    csv.write_record(JOB_COLUMNS.map(|column| column.name))?;
    for job in jobs {
        csv.write_record(fields(names, job))?;
    }
    csv.flush()
}

fn fields<S: AsRef<str>>(names: &Names<'_, S>, job: &JobRecord) -> [String; JOB_COLUMNS.len()] {
    let ended = job.end.is_some();
    let name = |table: &[S], at: usize, id: String| match table.get(at) {
        Some(name) => name.as_ref().to_owned(),
        None => id,
    };
    [
        name(names.jobs, job.job.index(), job.job.to_string()),
        name(names.tenants, job.tenant.index(), job.tenant.to_string()),
        job.gpus.to_string(),
        instant(Some(job.submit)),
        instant(job.first_start),
        instant(job.end),
        span(ended.then_some(job.waited)),
        span(job.jct()),
        job.preemptions.to_string(),
        span(Some(job.duration)),
        span(job.first_wait()),
        seconds(job.jct_minus_duration_micros()),
        job.jct_over_duration(Span::SECOND).map_or(String::new(), |ratio| format!("{ratio:.6}")),
        job.class.name().to_owned(),
        name(names.users, job.user.index(), job.user.to_string()),
        job.outcome.name().to_owned(),
        span(Some(job.work_lost)),
        span(Some(job.restart_overhead)),
        job.restarts_by_failure.to_string(),
        job.refused.to_string(),
        span(Some(job.shared)),
        span(Some(job.slowed)),
        job.profile.map_or(String::new(), |class| class.to_string()),
        ratio(job.slowdown_limit_milli),
        job.execution_ratio().map_or(String::new(), |ratio| format!("{ratio:.6}")),
    ]
}

/// Thousandths as a plain number; nothing for 0.
fn ratio(milli: u32) -> String {
    seconds((milli > 0).then(|| i64::from(milli) * 1_000))
}

fn instant(time: Option<Time>) -> String {
    span(time.map(|time| Span(time.0)))
}

fn span(span: Option<Span>) -> String {
    seconds(span.map(signed))
}

fn seconds(micros: Option<i64>) -> String {
    micros.map_or(String::new(), |micros| ExactSeconds(micros).to_string())
}
