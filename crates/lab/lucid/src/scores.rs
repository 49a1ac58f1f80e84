//! Lucid's sharing scores, from `single_data.csv`: how much a workload suffers, and makes others
//! suffer, on a shared GPU: 0 little, 2 much.

use deepshare_interference::{Catalogue, Workload, WorkloadColumns};
use deepshare_trace::tables::{Lines, Table};
use deepshare_trace::{Problem, Problems, TraceError};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Most lines of a file.
const MAX_LINES: u64 = 10_000_000;
/// Largest score accepted.
const MAX_SCORE: u64 = 1_000_000;

/// Sharing scores by workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// The file as it was named.
    pub file: String,
    by_workload: BTreeMap<Workload, u32>,
}

impl Scores {
    /// The score of a workload, if the file has it.
    pub fn of(&self, workload: &Workload) -> Option<u32> {
        self.by_workload.get(workload).copied()
    }

    /// The score of every profile of a catalogue, by its class; at most 255.
    ///
    /// # Errors
    /// If the file lacks any of these workloads; all are named.
    pub fn by_class(&self, catalogue: &Catalogue) -> Result<Vec<u8>, TraceError> {
        let mut problems = Problems::of(&self.file);
        let mut scores = Vec::with_capacity(catalogue.len());
        for profile in catalogue.profiles() {
            match self.of(&profile.workload) {
                Some(score) => scores.push(u8::try_from(score).unwrap_or(u8::MAX)),
                None => problems.push(lacking(&profile.workload, "")),
            }
        }
        problems.check()?;
        Ok(scores)
    }
}

/// The problem that there is no score for a workload; `whose` goes on about it.
pub(crate) fn lacking(workload: &Workload, whose: &str) -> Problem {
    let remedy = "add a row with its model, dataset, batchsize, amp and label";
    Problem::of_file(format!("no score for {workload}{whose}"), remedy)
}

/// Reads scores: a table with `model,dataset,batchsize,amp,label`.
///
/// # Errors
/// If the file cannot be read, lacks a column, has a workload twice or a wrong value.
pub fn read_scores(path: &Path) -> Result<Scores, TraceError> {
    read(Lines::open(path, MAX_LINES)?)
}

/// As [`read_scores`], from something open that messages call `name`.
///
/// # Errors
/// As [`read_scores`].
pub fn read_scores_from(name: &str, input: impl Read + 'static) -> Result<Scores, TraceError> {
    read(Lines::new(name.to_owned(), input, MAX_LINES)?)
}

fn read(lines: Lines) -> Result<Scores, TraceError> {
    let mut table = Table::new(lines)?;
    let file = table.file().to_owned();
    let mut problems = Problems::of(&file);
    let names = ["model", "dataset", "batchsize", "amp", "label"];
    let remedy = "give a CSV file with the columns model,dataset,batchsize,amp,label";
    let [model, dataset, batch, amp, label] = table.columns(names, remedy, &mut problems)?;
    let key = WorkloadColumns { model, dataset: Some(dataset), batch, amp: Some(amp) };
    let mut by_workload = BTreeMap::new();
    while let Some(row) = table.next_row(&mut problems)? {
        let score = row.whole(label, MAX_SCORE, "give the sharing score, 0, 1 or 2");
        let score = score.map_err(|problem| problems.push(problem));
        let workload = key.workload(&row).map_err(|problem| problems.push(problem));
        let (Ok(workload), Ok(score)) = (workload, score) else { continue };
        let score = u32::try_from(score).expect("within the limit on scores");
        if by_workload.insert(workload, score).is_some() {
            let what = "this workload is on an earlier line too".to_owned();
            problems.push(row.problem_with(model, what, "give one row a workload"));
        }
    }
    problems.check()?;
    Ok(Scores { file, by_workload })
}
