//! A pool of named training configurations from a CSV file, from which jobs draw what they run.
//!
//! Iteration time and memory are in the form of [`deepshare_model::Training`]. Beside that a pool
//! knows what a job does not: how long communication takes inside a node and across nodes. Which of
//! the two a job gets is settled by its GPUs against those of a node ([`TrainingProfile::of_job`]).

use crate::workload::{Profile, Workload};
use crate::workload_columns::{WorkloadColumns, share};
use deepshare_model::{IterationTime, Span, Training, TrainingMemory};
use deepshare_trace::tables::{Column, Lines, Row, Table};
use deepshare_trace::{Problem, Problems, TraceError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

const MAX_LINES: u64 = 1_000_000;
/// Longest part of an iteration, s.
const MAX_SECONDS: u64 = 3_600;
/// Largest weight.
const MAX_WEIGHT: u64 = 1_000_000;
const REQUIRED: [&str; 10] = [
    "model",
    "batchsize",
    "weight",
    "gpu_util",
    "gmem_util",
    "memory_fixed_mib",
    "memory_sample_kib",
    "compute_fixed_s",
    "compute_sample_s",
    "source",
];

/// How the batch, memory and speed of a configuration hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingProfile {
    /// Samples a GPU works off in one iteration, at least 1.
    pub batch: u32,
    /// Of a forward and backward pass whatever its samples, µs.
    pub compute_fixed_us: u32,
    /// Of each sample, ns.
    pub compute_per_sample_ns: u64,
    /// Of adding up gradients between GPUs of one node, µs.
    pub inside_node_us: u32,
    /// Of adding them up between GPUs of several nodes, µs.
    pub across_nodes_us: u32,
    /// How computing and communicating overlap (δ), thousandths, 1,000 to 10,000.
    pub overlap_milli: u32,
    /// What it needs on each GPU.
    pub memory: TrainingMemory,
}

impl TrainingProfile {
    /// The training of a job with these GPUs that runs so long alone. Its communication is that
    /// inside a node if it fits into one with `node_gpus` GPUs, as placement then keeps it there; a
    /// job of one GPU has none. Iterations are the duration over the time of one, rounded, at least 1.
    ///
    /// Deviation: a job that would fit into one node and is spread all the same communicates as if it
    /// were not.
    pub fn of_job(&self, gpus: u32, node_gpus: u32, duration: Span) -> Training {
        let communication_us = match gpus {
            0 | 1 => 0,
            _ if gpus <= node_gpus => self.inside_node_us,
            _ => self.across_nodes_us,
        };
        let time = IterationTime {
            compute_fixed_us: self.compute_fixed_us,
            compute_per_sample_ns: self.compute_per_sample_ns,
            communication_us,
            overlap_milli: self.overlap_milli,
        };
        let one = Training { batch: self.batch, iterations: 1, time, memory: self.memory };
        let iterations = libm::round(duration.as_secs_f64() / one.iteration_s(1)).max(1.0);
        Training { iterations: iterations as u64, ..one }
    }
}

/// One configuration of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// What it asks of a GPU; its training is always known.
    pub profile: Profile,
    /// Chance to be drawn relative to the others', thousandths, at least 1.
    pub weight_milli: u64,
    /// Fewest GPUs of jobs that draw it.
    pub least_gpus: u32,
    /// Most GPUs of jobs that draw it.
    pub most_gpus: u32,
    /// Where its figures come from.
    pub source: String,
    /// Line of the file.
    pub line: u64,
}

/// A pool as a file gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigurationsFile {
    /// The file as it was named.
    pub file: String,
    /// Its rows, in order; at least one.
    pub configurations: Vec<Configuration>,
}

/// Reads the pool in `path`.
///
/// # Errors
/// If the file cannot be read, lacks a column, has no row, names a configuration twice or has a value
/// that is none.
pub fn read_configurations(path: &Path) -> Result<ConfigurationsFile, TraceError> {
    read(Lines::open(path, MAX_LINES)?)
}

/// As [`read_configurations`], from something open that messages call `name`.
///
/// # Errors
/// As [`read_configurations`].
pub fn read_configurations_from(
    name: &str,
    input: impl Read + 'static,
) -> Result<ConfigurationsFile, TraceError> {
    read(Lines::new(name.to_owned(), input, MAX_LINES)?)
}

fn read(lines: Lines) -> Result<ConfigurationsFile, TraceError> {
    let mut table = Table::new(lines)?;
    let file = table.file().to_owned();
    let mut problems = Problems::of(&file);
    let columns = Columns::of(&table, &mut problems)?;
    let mut configurations: Vec<Configuration> = Vec::new();
    let mut lines: BTreeMap<Workload, u64> = BTreeMap::new();
    while let Some(row) = table.next_row(&mut problems)? {
        match columns.configuration(&row) {
            Ok(found) => {
                if let Some(line) = lines.insert(found.profile.workload.clone(), row.line) {
                    let why = format!("with this dataset, batchsize and amp is on line {line} too");
                    let remedy = "give one row a configuration";
                    problems.push(row.problem(columns.workload.model, &why, remedy));
                }
                configurations.push(found);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if configurations.is_empty() && problems.is_empty() {
        let remedy = "add a row a configuration, or leave the file out";
        problems.push(Problem::of_file("there is no configuration in it", remedy));
    }
    problems.check()?;
    Ok(ConfigurationsFile { file, configurations })
}

struct Columns {
    workload: WorkloadColumns,
    weight: Column,
    compute: Column,
    bandwidth: Column,
    memory: [Column; 2],
    time: [Column; 2],
    overlap: Option<Column>,
    source: Column,
    least: Option<Column>,
    most: Option<Column>,
    batch: Option<Column>,
    inside: Option<Column>,
    across: Option<Column>,
}

impl Columns {
    fn of(table: &Table, problems: &mut Problems) -> Result<Columns, TraceError> {
        let remedy = format!("give a CSV file with the columns {}", REQUIRED.join(","));
        let [
            model,
            batch,
            weight,
            compute,
            bandwidth,
            fixed_memory,
            sample_memory,
            fixed_time,
            sample_time,
            source,
        ] = table.columns(REQUIRED, &remedy, problems)?;
        let mut optional = |name| table.column(name, problems);
        let (dataset, amp) = (optional("dataset"), optional("amp"));
        Ok(Columns {
            workload: WorkloadColumns { model, dataset, batch, amp },
            weight,
            compute,
            bandwidth,
            memory: [fixed_memory, sample_memory],
            time: [fixed_time, sample_time],
            overlap: optional("overlap"),
            source,
            least: optional("gpus_min"),
            most: optional("gpus_max"),
            batch: optional("batch_gpu"),
            inside: optional("comm_node_s"),
            across: optional("comm_nodes_s"),
        })
    }

    fn configuration(&self, row: &Row<'_>) -> Result<Configuration, Problem> {
        let workload = self.workload.workload(row)?;
        let training = self.training(row, workload.batch)?;
        let (least_gpus, most_gpus) = self.gpus(row)?;
        let remedy = "give the chance to be drawn relative to other rows'";
        let weight_milli = row.scaled(self.weight, 3, MAX_WEIGHT * 1_000, remedy)?;
        if weight_milli == 0 {
            return Err(row.problem(self.weight, "is no chance", "leave the row out instead"));
        }
        let alone = training.of_job(1, 1, Span::ZERO);
        let profile = Profile {
            workload,
            compute: share(row, self.compute)?,
            bandwidth: share(row, self.bandwidth)?,
            memory_mib: alone.memory_mib(1),
            throughput: Some(f64::from(training.batch) / alone.iteration_s(1)),
            training: Some(training),
        };
        let source =
            row.name(self.source, "say where the figures come from, or that they are yours")?;
        let source = source.to_owned();
        Ok(Configuration { profile, weight_milli, least_gpus, most_gpus, source, line: row.line })
    }

    fn training(&self, row: &Row<'_>, named_batch: u32) -> Result<TrainingProfile, Problem> {
        let memory = |column, remedy| row.whole(column, u64::from(u32::MAX), remedy).map(small);
        let memory = TrainingMemory {
            fixed_mib: memory(self.memory[0], "give MiB of weights, optimiser and framework")?,
            per_sample_kib: memory(self.memory[1], "give KiB of activations a sample")?,
        };
        let time = |column: Option<Column>, scale| match filled(row, column) {
            Some(column) => {
                let most = MAX_SECONDS * 10_u64.pow(scale);
                row.scaled(column, scale, most, "give seconds of an iteration")
            }
            None => Ok(0),
        };
        let training = TrainingProfile {
            batch: self.batch(row, named_batch)?,
            compute_fixed_us: small(time(Some(self.time[0]), 6)?),
            compute_per_sample_ns: time(Some(self.time[1]), 9)?,
            inside_node_us: small(time(self.inside, 6)?),
            across_nodes_us: small(time(self.across, 6)?),
            overlap_milli: self.overlap(row)?,
            memory,
        };
        if training.compute_fixed_us == 0 && training.compute_per_sample_ns == 0 {
            let what = "an iteration takes no time".to_owned();
            let remedy =
                "give compute_fixed_s or compute_sample_s, to the microsecond and nanosecond";
            return Err(row.problem_with(self.time[0], what, remedy));
        }
        Ok(training)
    }

    /// Samples a GPU and iteration: as said, else the batch that the configuration is named by.
    fn batch(&self, row: &Row<'_>, named: u32) -> Result<u32, Problem> {
        let remedy = "give samples a GPU and iteration in `batch_gpu`, 1 or more";
        let (column, batch) = match filled(row, self.batch) {
            Some(column) => (column, small(row.whole(column, u64::from(u32::MAX), remedy)?)),
            None => (self.workload.batch, named),
        };
        match batch {
            0 => Err(row.problem(column, "is no batch to compute with", remedy)),
            _ => Ok(batch),
        }
    }

    fn overlap(&self, row: &Row<'_>) -> Result<u32, Problem> {
        let remedy = "give 1 (computing and communicating do not overlap) to 10 (nearly all does)";
        let Some(column) = filled(row, self.overlap) else { return Ok(1_000) };
        let milli = small(row.scaled(column, 3, 10_000, remedy)?);
        match milli {
            ..1_000 => Err(row.problem(column, "is below 1", remedy)),
            _ => Ok(milli),
        }
    }

    /// Fewest and most GPUs of jobs that draw it; any if empty.
    fn gpus(&self, row: &Row<'_>) -> Result<(u32, u32), Problem> {
        let remedy = "give a number of GPUs, or leave it empty for any";
        let bound = |column: Option<Column>, any: u32| match filled(row, column) {
            Some(column) => row.whole(column, u64::from(u32::MAX), remedy).map(small),
            None => Ok(any),
        };
        let (least, most) = (bound(self.least, 1)?, bound(self.most, u32::MAX)?);
        match self.most.or(self.least) {
            Some(column) if least > most || most == 0 => {
                let why = format!("leaves no jobs: at least {least} GPUs, at most {most}");
                Err(row.problem_with(column, why, "give gpus_min of at most gpus_max"))
            }
            _ => Ok((least, most)),
        }
    }
}

/// The column, if the file has it and the row fills it.
fn filled(row: &Row<'_>, column: Option<Column>) -> Option<Column> {
    column.filter(|&column| !row.text(column).is_empty())
}

/// A number that was read with a limit of 32 bits.
fn small(number: u64) -> u32 {
    u32::try_from(number).expect("limited where it was read")
}
