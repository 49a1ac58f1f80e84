//! Readers of what jobs compute (`job_id,model,dataset,batchsize,amp,gmem`) and of measured pairs
//! (`colocate_info.csv`).

use crate::workload::Workload;
use deepshare_trace::tables::{Column, Lines, Row, Table};
use deepshare_trace::{Problem, Problems, TraceError};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Most lines of a file.
const MAX_LINES: u64 = 50_000_000;
/// Largest batch accepted.
const MAX_BATCH: u64 = 1_000_000_000;
/// Most GPU memory accepted, MiB.
const MAX_MEMORY_MIB: u64 = 1_000_000_000;
/// Slowest and fastest speed accepted beside another job, in thousandths of the speed alone.
const SPEEDS_MILLI: std::ops::RangeInclusive<u64> = 50..=100_000;

/// What a job computes and how much GPU memory it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What it computes.
    pub workload: Workload,
    /// GPU memory on each GPU, thousandths of a MiB.
    pub memory_milli_mib: u64,
}

/// Profiles by job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profiles {
    /// The file as it was named.
    pub file: String,
    /// By the job's name.
    pub by_job: BTreeMap<String, Profile>,
}

/// Speeds of two workloads on one GPU, as fractions of their speeds alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// The file as it was named.
    pub file: String,
    /// By pair in the order of the file: the first one's speed, then the second one's.
    pub speeds: BTreeMap<(Workload, Workload), (f64, f64)>,
}

/// Reads profiles: a table with `job_id,model,dataset,batchsize,amp,gmem`, among others a job log.
/// Rows without a model are passed over.
///
/// # Errors
/// If the file cannot be read, lacks a column, names a job twice or has a wrong value.
pub fn read_profiles(path: &Path) -> Result<Profiles, TraceError> {
    profiles(Lines::open(path, MAX_LINES)?)
}

/// As [`read_profiles`], from something open that messages call `name`.
///
/// # Errors
/// As [`read_profiles`].
pub fn read_profiles_from(name: &str, input: impl Read + 'static) -> Result<Profiles, TraceError> {
    profiles(Lines::new(name.to_owned(), input, MAX_LINES)?)
}

fn profiles(lines: Lines) -> Result<Profiles, TraceError> {
    let mut table = Table::new(lines)?;
    let file = table.file().to_owned();
    let mut problems = Problems::of(&file);
    let names = ["job_id", "model", "dataset", "batchsize", "amp", "gmem"];
    let remedy = "give a CSV file with the columns job_id,model,dataset,batchsize,amp,gmem";
    let [id, model, dataset, batch, amp, memory] = columns(&table, names, remedy, &mut problems)?;
    let key = Key { model, dataset, batch, amp };
    let mut by_job: BTreeMap<String, Profile> = BTreeMap::new();
    while let Some(row) = table.next_row(&mut problems)? {
        // Job logs have rows of jobs without GPUs, which compute nothing of interest here.
        if row.text(model).is_empty() {
            continue;
        }
        let most = MAX_MEMORY_MIB * 1_000;
        let memory = row.scaled(memory, 3, most, "give the GPU memory in MiB");
        let memory = memory.map_err(|problem| problems.push(problem));
        let workload = key.read(&row, &mut problems);
        let name = row.name(id, "name the job").map_err(|problem| problems.push(problem));
        let (Ok(memory_milli_mib), Some(workload), Ok(name)) = (memory, workload, name) else {
            continue;
        };
        let profile = Profile { workload, memory_milli_mib };
        if by_job.insert(name.to_owned(), profile).is_some() {
            problems.push(row.problem(id, "is on an earlier line too", "give one row a job"));
        }
    }
    problems.check()?;
    Ok(Profiles { file, by_job })
}

/// Reads pairs: `model1,dataset1,batchsize1,amp1,speed1` and the same with 2.
///
/// # Errors
/// If the file cannot be read, lacks a column, has a pair twice or a wrong value.
pub fn read_pairs(path: &Path) -> Result<Pairs, TraceError> {
    pairs(Lines::open(path, MAX_LINES)?)
}

/// As [`read_pairs`], from something open that messages call `name`.
///
/// # Errors
/// As [`read_pairs`].
pub fn read_pairs_from(name: &str, input: impl Read + 'static) -> Result<Pairs, TraceError> {
    pairs(Lines::new(name.to_owned(), input, MAX_LINES)?)
}

fn pairs(lines: Lines) -> Result<Pairs, TraceError> {
    let mut table = Table::new(lines)?;
    let file = table.file().to_owned();
    let mut problems = Problems::of(&file);
    let remedy = "give a CSV file with the columns model1,dataset1,batchsize1,amp1,speed1 and the \
                  same with 2";
    let names = ["model1", "dataset1", "batchsize1", "amp1", "speed1"];
    let [model, dataset, batch, amp, speed_a] = columns(&table, names, remedy, &mut problems)?;
    let key_a = Key { model, dataset, batch, amp };
    let names = ["model2", "dataset2", "batchsize2", "amp2", "speed2"];
    let [model, dataset, batch, amp, speed_b] = columns(&table, names, remedy, &mut problems)?;
    let key_b = Key { model, dataset, batch, amp };
    let mut speeds = BTreeMap::new();
    while let Some(row) = table.next_row(&mut problems)? {
        let both = [speed_a, speed_b].map(|column| speed(&row, column, &mut problems));
        let (a, b) = (key_a.read(&row, &mut problems), key_b.read(&row, &mut problems));
        let ([Some(speed_a), Some(speed_b)], Some(a), Some(b)) = (both, a, b) else { continue };
        if speeds.insert((a, b), (speed_a, speed_b)).is_some() {
            let what = "this pair is on an earlier line too".to_owned();
            problems.push(row.problem_with(key_a.model, what, "give one row a pair"));
        }
    }
    problems.check()?;
    Ok(Pairs { file, speeds })
}

/// A speed beside another job; the double nearest to the decimal in the file.
fn speed(row: &Row<'_>, column: Column, problems: &mut Problems) -> Option<f64> {
    let remedy = "give the speed beside the other job as a fraction of that alone";
    let micros = row.scaled(column, 6, SPEEDS_MILLI.end() * 1_000, remedy);
    match micros {
        Ok(micros) if micros >= SPEEDS_MILLI.start() * 1_000 => Some(micros as f64 / 1e6),
        Ok(_) => {
            problems.push(row.problem(column, "is below 0.05, and such a pair never ends", remedy));
            None
        }
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

/// Where a workload is in a table.
pub(crate) struct Key {
    pub(crate) model: Column,
    pub(crate) dataset: Column,
    pub(crate) batch: Column,
    pub(crate) amp: Column,
}

impl Key {
    /// The workload of a row, or all that is wrong with it.
    pub(crate) fn read(&self, row: &Row<'_>, problems: &mut Problems) -> Option<Workload> {
        let model = row.name(self.model, "name the model");
        let dataset = row.name(self.dataset, "name the data set");
        let batch = row.whole(self.batch, MAX_BATCH, "give the batch size");
        let amp = row.whole(self.amp, 1, "give 1 for mixed precision, else 0");
        match (model, dataset, batch, amp) {
            (Ok(model), Ok(dataset), Ok(batch), Ok(amp)) => {
                Some(Workload { model: model.to_owned(), dataset: dataset.to_owned(), batch, amp })
            }
            (model, dataset, batch, amp) => {
                let found = [model.err(), dataset.err(), batch.err(), amp.err()];
                found.into_iter().flatten().for_each(|problem| problems.push(problem));
                None
            }
        }
    }
}

/// The columns of these names.
///
/// # Errors
/// If the header lacks any; all are named.
pub(crate) fn columns<const N: usize>(
    table: &Table,
    names: [&str; N],
    remedy: &str,
    problems: &mut Problems,
) -> Result<[Column; N], TraceError> {
    let found = names.map(|name| table.column(name, problems));
    let lacking: Vec<&str> =
        names.iter().zip(&found).filter(|(_, column)| column.is_none()).map(|(n, _)| *n).collect();
    if lacking.is_empty() {
        return Ok(found.map(|column| column.expect("none is lacking")));
    }
    let what = format!("the header lacks {}", lacking.join(", "));
    let problems = std::mem::replace(problems, Problems::of(table.file()));
    Err(problems.fatal(Problem::at(1, what, remedy)))
}
