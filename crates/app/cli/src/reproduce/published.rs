//! The per-job logs that the Lucid artifact leaves behind.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// What became of a job, in the artifact's whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// First start.
    pub start_s: u64,
    /// End.
    pub end_s: u64,
    /// All waiting.
    pub queue_s: u64,
    /// Preemptions.
    pub preemptions: u64,
}

/// A log, by job id.
pub struct Log {
    /// What became of each job.
    pub outcomes: BTreeMap<String, Outcome>,
    /// Mean of the column `jct`.
    pub jct_mean_s: f64,
    /// Mean of the column `queue`.
    pub delay_mean_s: f64,
}

/// Reads a log, a CSV file compressed with zstd.
///
/// # Errors
/// If it cannot be read or a line is not as the artifact writes it.
pub fn read(path: &Path) -> Result<Log, Failure> {
    let name = path.display();
    let fail = |what: String| Failure::Usage(format!("{name}: {what}; is it the published log?"));
    let file = File::open(path).map_err(|error| fail(error.to_string()))?;
    let plain = zstd::Decoder::new(file).map_err(|error| fail(error.to_string()))?;
    let mut reader = csv::Reader::from_reader(plain);
    let header = reader.headers().map_err(|error| fail(error.to_string()))?.clone();
    let column = |wanted: &str| {
        let found = header.iter().position(|column| column == wanted);
        found.ok_or_else(|| fail(format!("line 1: there is no column {wanted}")))
    };
    let id = column("job_id")?;
    let wanted = ["start_time", "end_time", "queue", "ckpt_times", "jct"];
    let mut places = [0; 5];
    for (place, name) in places.iter_mut().zip(wanted) {
        *place = column(name)?;
    }
    let mut outcomes = BTreeMap::new();
    let (mut jct_s, mut delay_s) = (0, 0);
    for record in reader.records() {
        let record = record.map_err(|error| fail(error.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let mut numbers = [0; 5];
        for ((number, &place), name) in numbers.iter_mut().zip(&places).zip(wanted) {
            let text = &record[place];
            let whole = text.strip_suffix(".0").unwrap_or(text).parse();
            *number = whole.map_err(|_| fail(format!("line {line}: {name} is {text:?}")))?;
        }
        let [start_s, end_s, queue_s, preemptions, jct]: [u64; 5] = numbers;
        jct_s += jct;
        delay_s += queue_s;
        let outcome = Outcome { start_s, end_s, queue_s, preemptions };
        outcomes.insert(record[id].to_owned(), outcome);
    }
    let jobs = outcomes.len().max(1) as f64;
    Ok(Log { outcomes, jct_mean_s: jct_s as f64 / jobs, delay_mean_s: delay_s as f64 / jobs })
}
