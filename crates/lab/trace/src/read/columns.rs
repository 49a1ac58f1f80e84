//! Which column of a file means what.

use crate::error::{Problem, Problems, TraceError};
use crate::options::Format;
use crate::report::Imputed;
use crate::table::{Column, Table};

/// The columns of a trace, as far as the file has them.
pub(super) struct Columns {
    pub format: Format,
    /// `None` if jobs have no name: the number of the row stands for it.
    pub id: Option<Column>,
    pub tenant: Column,
    pub gpus: Column,
    pub submit: Column,
    pub duration: Column,
    pub user: Option<Column>,
    pub cpus: Option<Column>,
    pub state: Option<Column>,
    pub class: Option<Column>,
    pub priority: Option<Column>,
    pub gpu_type: Option<Column>,
    pub memory: Option<Column>,
    pub gpu_memory: Option<Column>,
    pub requested: Option<Column>,
    pub cancel: Option<Column>,
    pub hold_until: Option<Column>,
    pub tasks: Option<Column>,
    pub gpu_sla: Option<Column>,
}

/// Required columns, in the order of [`Columns`].
const HELIOS: [&str; 5] = ["job_id", "vc", "gpu_num", "submit_time", "duration"];
/// Its first is no name of a job, but what tells the format from others.
const PHILLY: [&str; 5] = ["gpu_time", "cluster", "num_gpus", "timestamp", "duration"];
const DEEPSHARE: [&str; 5] = ["job_id", "tenant", "gpus", "submit_s", "duration_s"];

impl Columns {
    /// Finds the columns, and says which of those that both sides care about are missing.
    pub(super) fn find(
        table: &Table,
        wanted: Option<Format>,
    ) -> Result<(Columns, Vec<Imputed>), TraceError> {
        let mut problems = Problems::of(table.file());
        let format = wanted.unwrap_or_else(|| recognise(table));
        let required = match format {
            Format::Helios => &HELIOS,
            Format::Philly => &PHILLY,
            Format::DeepShare => &DEEPSHARE,
        };
        let found = required.map(|name| table.column(name, &mut problems));
        let missing: Vec<&str> = (required.iter().zip(&found))
            .filter(|(_, column)| column.is_none())
            .map(|(&name, _)| name)
            .collect();
        if !missing.is_empty() {
            problems.push(missing_columns(table, format, wanted, &missing));
        }
        let mut optional = |helios: &str, own: &str| match format {
            Format::Philly => None,
            Format::Helios if helios.is_empty() => None,
            Format::Helios => table.column(helios, &mut problems),
            Format::DeepShare => table.column(own, &mut problems),
        };
        let user = optional("user", "user");
        let cpus = optional("cpu_num", "cpus");
        let state = optional("state", "state");
        let class = optional("", "class");
        let priority = optional("", "priority");
        let gpu_type = optional("", "gpu_type");
        let memory = optional("", "memory_mib");
        let gpu_memory = optional("", "gpu_memory_mib");
        let requested = optional("", "requested_s");
        let cancel = optional("", "cancel_s");
        let hold_until = optional("", "hold_until_s");
        let tasks = optional("", "tasks");
        let gpu_sla = optional("", "gpu_sla");
        problems.check()?;
        let [id, tenant, gpus, submit, duration] =
            found.map(|column| column.expect("a missing one is a problem, checked above"));
        let mut imputed = Vec::new();
        let mut note = |column: Option<Column>, name, assumed| {
            if column.is_none() {
                imputed.push(Imputed { column: name, assumed });
            }
        };
        note(user, "user", "each tenant is one user");
        note(state, "state", "every job succeeded");
        note(cpus, if format == Format::Helios { "cpu_num" } else { "cpus" }, "CPU need unknown");
        let columns = Columns {
            format,
            id: (format != Format::Philly).then_some(id),
            tenant,
            gpus,
            submit,
            duration,
            user,
            cpus,
            state,
            class,
            priority,
            gpu_type,
            memory,
            gpu_memory,
            requested,
            cancel,
            hold_until,
            tasks,
            gpu_sla,
        };
        Ok((columns, imputed))
    }

    /// The name of the column with the submission.
    pub(super) fn submit_name(&self) -> &'static str {
        match self.format {
            Format::Helios => HELIOS[3],
            Format::Philly => PHILLY[3],
            Format::DeepShare => DEEPSHARE[3],
        }
    }
}

/// The format that more of the header belongs to.
fn recognise(table: &Table) -> Format {
    let count = |names: &[&str]| {
        names.iter().filter(|name| table.header().iter().any(|h| h == *name)).count()
    };
    let (helios, philly, own) = (count(&HELIOS), count(&PHILLY), count(&DEEPSHARE));
    if own > helios.max(philly) {
        Format::DeepShare
    } else if philly > helios {
        Format::Philly
    } else {
        Format::Helios
    }
}

fn missing_columns(
    table: &Table,
    format: Format,
    wanted: Option<Format>,
    missing: &[&str],
) -> Problem {
    let plural = if missing.len() == 1 { "" } else { "s" };
    let what = format!(
        "the header lacks the column{plural} {} that the {} format needs",
        missing.join(", "),
        format.name()
    );
    let header = table.header();
    let separated = |by: char| header.len() == 1 && header[0].contains(by);
    let remedy = if separated(';') || separated('\t') {
        "separate fields by commas"
    } else if missing.len() == HELIOS.len() {
        "give a file whose first line names the columns as in docs/formats/trace.md"
    } else if wanted.is_some() {
        "add them, or leave the format to be recognised"
    } else {
        "add them, with the names as in docs/formats/trace.md"
    };
    Problem { column: Some((1, String::new())), ..Problem::at(1, what, remedy) }
}
