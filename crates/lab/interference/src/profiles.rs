//! Profiles of jobs from a CSV file, which may be a whole job log with these columns among others.

use crate::workload::Profile;
use crate::workload_columns::{WorkloadColumns, share};
use deepshare_trace::tables::{Column, Lines, Row, Table};
use deepshare_trace::{Problem, Problems, TraceError};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

const MAX_LINES: u64 = 50_000_000;
const COLUMNS: &str = "job_id,dataset,model,batchsize,amp,speed,gpu_util,gmem_util,gmem";

/// Profiles as a file gives them, by job.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfilesFile {
    /// The file as it was named.
    pub file: String,
    /// The profile of each job, by its id.
    pub of_job: BTreeMap<String, Profile>,
}

/// Reads the profile of every job in `path`. Rows without a model are passed over.
///
/// # Errors
/// If the file cannot be read, lacks a column, names a job twice or has a value that is none.
pub fn read_profiles(path: &Path) -> Result<ProfilesFile, TraceError> {
    read(Lines::open(path, MAX_LINES)?)
}

/// As [`read_profiles`], from something open that messages call `name`.
///
/// # Errors
/// As [`read_profiles`].
pub fn read_profiles_from(
    name: &str,
    input: impl Read + 'static,
) -> Result<ProfilesFile, TraceError> {
    read(Lines::new(name.to_owned(), input, MAX_LINES)?)
}

fn read(lines: Lines) -> Result<ProfilesFile, TraceError> {
    let mut table = Table::new(lines)?;
    let file = table.file().to_owned();
    let mut problems = Problems::of(&file);
    let columns = Columns::of(&table, &mut problems)?;
    let mut of_job: BTreeMap<String, (Profile, u64)> = BTreeMap::new();
    while let Some(row) = table.next_row(&mut problems)? {
        // Job logs have rows of jobs without GPUs, which run nothing that could share one.
        if row.text(columns.workload.model).is_empty() {
            continue;
        }
        match columns.profile(&row) {
            Ok((id, profile)) => {
                if let Some((_, line)) = of_job.get(id) {
                    let why = format!("is on line {line} too");
                    problems.push(row.problem(columns.job, &why, "give one profile a job"));
                } else {
                    of_job.insert(id.to_owned(), (profile, row.line));
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    problems.check()?;
    Ok(ProfilesFile { file, of_job: of_job.into_iter().map(|(id, (p, _))| (id, p)).collect() })
}

struct Columns {
    job: Column,
    workload: WorkloadColumns,
    speed: Option<Column>,
    compute: Column,
    bandwidth: Column,
    memory: Column,
}

impl Columns {
    fn of(table: &Table, problems: &mut Problems) -> Result<Columns, TraceError> {
        let names = ["job_id", "model", "batchsize", "gpu_util", "gmem_util", "gmem"];
        let remedy = format!("give a CSV file with the columns {COLUMNS}");
        let [job, model, batch, compute, bandwidth, memory] =
            table.columns(names, &remedy, problems)?;
        let mut optional = |name| table.column(name, problems);
        let (dataset, amp, speed) = (optional("dataset"), optional("amp"), optional("speed"));
        let workload = WorkloadColumns { model, dataset, batch, amp };
        Ok(Columns { job, workload, speed, compute, bandwidth, memory })
    }

    fn profile<'a>(&self, row: &'a Row<'_>) -> Result<(&'a str, Profile), Problem> {
        let id = row.name(self.job, "give the id that the job has in the trace")?;
        let workload = self.workload.workload(row)?;
        let throughput = match self.speed.filter(|&column| !row.text(column).is_empty()) {
            None => None,
            Some(column) => {
                let remedy = "give samples a second alone, or leave it empty";
                Some(row.scaled(column, 3, 1 << 50, remedy)? as f64 / 1e3)
            }
        };
        let memory = row.scaled(
            self.memory,
            3,
            u64::from(u32::MAX) * 1_000,
            "give the device memory that the job holds, in MiB",
        )?;
        let profile = Profile {
            workload,
            compute: share(row, self.compute)?,
            bandwidth: share(row, self.bandwidth)?,
            // Rounded up: memory is what must fit.
            memory_mib: u32::try_from(memory.div_ceil(1_000)).expect("limited just above"),
            throughput,
            training: None,
        };
        Ok((id, profile))
    }
}
