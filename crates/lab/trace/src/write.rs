//! Writes a trace in our own CSV format, which [`crate::read_trace`] reads back to the microsecond.

use crate::trace::{Trace, TraceJob};
use std::borrow::Cow;
use std::io::{self, Write};

/// The header of the format; see `docs/formats/trace.md`.
const HEADER: &str = "job_id,tenant,gpus,submit_s,duration_s,user,class,priority,gpu_type,cpus,\
                      memory_mib,gpu_memory_mib,requested_s,state,cancel_s,hold_until_s,gpu_sla";

/// Writes `trace` as CSV, in trace order. Unknown values are left empty; the jobs of an array are
/// written one by one.
///
/// # Errors
/// If `out` fails, or if a name holds a line break, which the format cannot express.
pub fn write_trace(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for job in &trace.jobs {
        write_job(trace, job, out)?;
    }
    Ok(())
}

fn write_job(trace: &Trace, job: &TraceJob, out: &mut impl Write) -> io::Result<()> {
    let tenant = field(&trace.tenants[job.tenant.index()])?;
    let user = field(&trace.users[job.user.index()])?;
    let gpu_type = match job.gpu_type {
        Some(t) => field(&trace.gpu_types[t.index()])?,
        None => Cow::Borrowed(""),
    };
    writeln!(
        out,
        "{},{tenant},{},{},{},{user},{},{},{gpu_type},{},{},{},{},{},{},{},{}",
        field(&job.id)?,
        job.gpus,
        decimal(job.submit.0, 6),
        decimal(job.duration.0, 6),
        job.class.map_or("", |class| class.name()),
        job.priority,
        known(job.cpu_milli, 3),
        known(job.memory_mib, 0),
        known(u64::from(job.gpu_memory_mib), 0),
        job.requested_time.map_or(String::new(), |span| decimal(span.0, 6)),
        job.outcome.name(),
        job.cancel.map_or(String::new(), |time| decimal(time.0, 6)),
        job.hold_until.map_or(String::new(), |time| decimal(time.0, 6)),
        known(u64::from(job.slowdown_limit_milli), 3),
    )
}

/// `value` divided by ten to the `scale`, without trailing zeros.
fn decimal(value: u64, scale: usize) -> String {
    let unit = 10_u64.pow(scale as u32);
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let fraction = format!("{rest:0scale$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

/// A decimal, or nothing if it is 0 for unknown.
fn known(value: u64, scale: usize) -> String {
    if value == 0 { String::new() } else { decimal(value, scale) }
}

/// A name as a field, quoted if it must be.
fn field(name: &str) -> io::Result<Cow<'_, str>> {
    if name.contains(['\n', '\r']) {
        let what = format!("the name {name:?} holds a line break, which the format cannot express");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    if name.contains([',', '"']) || name.trim_ascii().len() != name.len() {
        return Ok(Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))));
    }
    Ok(Cow::Borrowed(name))
}
