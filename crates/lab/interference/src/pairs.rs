//! Measured pairs: what two jobs kept of their speed on one device.
//!
//! Four shapes are read, told apart by how the file begins: our own table, the table of Lucid's
//! artifact, Gavel's JSON and Blox's table. See `docs/formats/pairs.md`.

mod blox;
mod gavel;
mod lucid;
mod own;

use crate::contention::Mechanism;
use crate::workload::Workload;
use deepshare_trace::tables::{Lines, Row, Table, read_text};
use deepshare_trace::{Problem, Problems, TraceError};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

const MAX_LINES: u64 = 10_000_000;
const MAX_JSON_BYTES: usize = 256 << 20;

/// Shape of a file of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairFormat {
    /// Our own CSV table.
    Own,
    /// `colocate_info.csv` of Lucid's artifact.
    Lucid,
    /// Throughputs of Gavel, JSON.
    Gavel,
    /// `norm_speed.csv` of Blox.
    Blox,
}

/// How to read a file of pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairOptions {
    /// The file's shape; by default as the file looks.
    pub format: Option<PairFormat>,
    /// The GPU type to take of a file that has several (Gavel).
    pub gpu_type: Option<String>,
}

/// One measured pair.
#[derive(Clone, Debug, PartialEq)]
pub struct PairRow {
    /// One job.
    pub one: Workload,
    /// The other.
    pub other: Workload,
    /// What each kept of its solo speed, in order; as measured, so noise may take it above 1.
    /// `None` if both together did not fit into memory.
    pub retention: Option<(f64, f64)>,
    /// Line of the file; 0 where the format has no lines.
    pub line: u64,
}

/// What a table says of a job beside another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measured {
    /// What it keeps of its solo speed: the mean, if the pair was measured more than once.
    Retention(f64),
    /// Both together do not fit into memory.
    DoesNotFit,
}

/// A table of measured pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct PairTable {
    /// The file as it was named.
    pub file: String,
    /// Its shape.
    pub format: PairFormat,
    /// How jobs shared the device, where the source says so.
    pub mechanism: Option<Mechanism>,
    /// Entries that are no pair on one device: jobs alone (Blox), gangs (Gavel).
    pub left_out: u64,
    rows: Vec<PairRow>,
    /// By (own, other): sum and number of retentions, pairs that did not fit.
    of_pair: BTreeMap<(Workload, Workload), (f64, u32, u32)>,
}

/// Reads the pairs in `path`.
///
/// # Errors
/// If the file cannot be read, has none of the known shapes, has a value that is none, or holds
/// several GPU types and `options` names none of them.
pub fn read_pairs(path: &Path, options: &PairOptions) -> Result<PairTable, TraceError> {
    read(|| Lines::open(path, MAX_LINES), options)
}

/// As [`read_pairs`], from bytes in memory that messages call `name`.
///
/// # Errors
/// As [`read_pairs`].
pub fn read_pairs_from(
    name: &str,
    bytes: &[u8],
    options: &PairOptions,
) -> Result<PairTable, TraceError> {
    let open = || {
        let input: Box<dyn Read> = Box::new(std::io::Cursor::new(bytes.to_vec()));
        Lines::new(name.to_owned(), input, MAX_LINES)
    };
    read(open, options)
}

fn read(
    open: impl Fn() -> Result<Lines, TraceError>,
    options: &PairOptions,
) -> Result<PairTable, TraceError> {
    let is_json = match options.format {
        Some(format) => format == PairFormat::Gavel,
        None => {
            let mut lines = open()?;
            lines.next_line()?.is_some_and(|line| line.trim_ascii_start().starts_with(b"{"))
        }
    };
    let lines = open()?;
    let file = lines.file().to_owned();
    if is_json {
        let text = read_text(lines, MAX_JSON_BYTES)?;
        return gavel::read(&file, &text, options.gpu_type.as_deref());
    }
    let mut table = Table::new(lines)?;
    let has = |name: &str| table.header().iter().any(|column| column == name);
    let format = match options.format {
        Some(format) => format,
        None if has("retention_a") || has("model_a") => PairFormat::Own,
        None if has("pipeline_strategy") => PairFormat::Blox,
        None if has("batchsize1") && has("speed1") => PairFormat::Lucid,
        None => {
            let what = "the header is of no known table of pairs".to_owned();
            let remedy = format!("give a CSV file with the columns {}", own::COLUMNS.join(","));
            return Err(Problems::of(&file).fatal(Problem::at(1, what, remedy)));
        }
    };
    let mut problems = Problems::of(&file);
    let mut pairs = PairTable::new(file, format, None);
    match format {
        PairFormat::Own => own::read(&mut table, &mut pairs, &mut problems)?,
        PairFormat::Lucid => lucid::read(&mut table, &mut pairs, &mut problems)?,
        PairFormat::Blox => blox::read(&mut table, &mut pairs, &mut problems)?,
        PairFormat::Gavel => unreachable!("read as JSON above"),
    }
    if pairs.rows.is_empty() && problems.is_empty() {
        problems.push(Problem::of_file("there is no pair in it", "add rows, or leave it out"));
    }
    problems.check()?;
    Ok(pairs)
}

impl PairTable {
    fn new(file: String, format: PairFormat, mechanism: Option<Mechanism>) -> PairTable {
        PairTable {
            file,
            format,
            mechanism,
            left_out: 0,
            rows: Vec::new(),
            of_pair: BTreeMap::new(),
        }
    }

    fn push(&mut self, row: PairRow) {
        let key = |own: &Workload, other: &Workload| (own.clone(), other.clone());
        let (there, back) = (key(&row.one, &row.other), key(&row.other, &row.one));
        let of_pair = &mut self.of_pair;
        let mut add = |pair: (Workload, Workload), retention: Option<f64>| {
            let (sum, fits, unfit) = of_pair.entry(pair).or_default();
            match retention {
                Some(retention) => {
                    *sum += retention;
                    *fits += 1;
                }
                None => *unfit += 1,
            }
        };
        add(there, row.retention.map(|(one, _)| one));
        add(back, row.retention.map(|(_, other)| other));
        self.rows.push(row);
    }

    /// Pairs as the file has them, in its order.
    pub fn rows(&self) -> &[PairRow] {
        &self.rows
    }

    /// What the table says of `own` beside `other`. A pair measured both ways, more than once or
    /// with itself counts with the mean; one that fitted at least once fits.
    pub fn find(&self, own: &Workload, other: &Workload) -> Option<Measured> {
        // Ids of catalogues are few, so the clone does not matter.
        let &(sum, fits, _) = self.of_pair.get(&(own.clone(), other.clone()))?;
        Some(match fits {
            0 => Measured::DoesNotFit,
            _ => Measured::Retention(sum / f64::from(fits)),
        })
    }

    /// Workloads of the table, in order.
    pub fn workloads(&self) -> Vec<&Workload> {
        let mut all: Vec<&Workload> = self.of_pair.keys().map(|(own, _)| own).collect();
        all.dedup();
        all
    }
}

/// The columns of these names, all of which must be there.
fn columns<const N: usize>(
    table: &Table,
    names: [&str; N],
    problems: &mut Problems,
) -> Result<[deepshare_trace::tables::Column; N], TraceError> {
    let remedy = format!("give a CSV file with the columns {}", names.join(","));
    table.columns(names, &remedy, problems)
}

/// A retention in millionths as a share.
fn retention(row: &Row<'_>, column: deepshare_trace::tables::Column) -> Result<f64, Problem> {
    let remedy = "give shared over solo speed, 0 to 100; 0 if both do not fit";
    Ok(row.scaled(column, 6, 100_000_000, remedy)? as f64 / 1e6)
}

/// Both retentions; `None` if both are 0, which says that the pair does not fit.
fn both(
    row: &Row<'_>,
    columns: [deepshare_trace::tables::Column; 2],
) -> Result<Option<(f64, f64)>, Problem> {
    let (one, other) = (retention(row, columns[0])?, retention(row, columns[1])?);
    match (one > 0.0, other > 0.0) {
        (true, true) => Ok(Some((one, other))),
        (false, false) => Ok(None),
        (one_runs, _) => {
            let column = columns[usize::from(one_runs)];
            let why = "is 0 where the other's is not";
            Err(row.problem(column, why, "give both, or 0 for both if they do not fit"))
        }
    }
}

/// A model's name with the number of GPUs that it ran on, if that is not one.
fn on_gpus(model: &str, gpus: u64) -> String {
    if gpus == 1 { model.to_owned() } else { format!("{model} ({gpus} GPUs)") }
}
