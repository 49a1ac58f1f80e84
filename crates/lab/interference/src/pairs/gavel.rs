//! Throughputs of Gavel: GPU type → job type → steps a second alone (`null`) or beside another.

use super::{PairFormat, PairRow, PairTable};
use crate::contention::Mechanism;
use crate::workload::Workload;
use deepshare_trace::tables::quote;
use deepshare_trace::{Problem, Problems, TraceError};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Steps a second.
#[derive(Deserialize)]
#[serde(untagged)]
enum Speed {
    Alone(f64),
    Shared([f64; 2]),
}

type Jobs = BTreeMap<String, BTreeMap<String, Speed>>;

/// The key under which a job runs alone.
const ALONE: &str = "null";

pub(super) fn read(
    file: &str,
    text: &str,
    gpu_type: Option<&str>,
) -> Result<PairTable, TraceError> {
    let mut problems = Problems::of(file);
    let types: BTreeMap<String, Jobs> = match serde_json::from_str(text) {
        Ok(types) => types,
        Err(error) => {
            let line = error.line() as u64;
            let what = format!("no throughputs by GPU type and job type: {error}");
            let problem = Problem::at(line, what, "check that this is the file that was meant");
            return Err(problems.fatal(problem.in_column(error.column().saturating_sub(1), "")));
        }
    };
    let known = types.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let chosen = match (gpu_type, types.len()) {
        (Some(name), _) => types.get(name).ok_or_else(|| format!("no GPU type {}", quote(name))),
        (None, 1) => types.values().next().ok_or_else(String::new),
        (None, count) => Err(format!("{count} GPU types, and none is chosen")),
    };
    let jobs = match chosen {
        Ok(jobs) => jobs,
        Err(what) => {
            let remedy = format!("choose one of {known}");
            return Err(problems.fatal(Problem::of_file(what, remedy)));
        }
    };
    let mut pairs = PairTable::new(file.to_owned(), PairFormat::Gavel, Some(Mechanism::Mps));
    for (one, beside) in jobs {
        if let Err(problem) = pairs_of(one, beside, jobs, &mut pairs) {
            problems.push(problem);
        }
    }
    if pairs.rows().is_empty() && problems.is_empty() {
        problems.push(Problem::of_file("there is no pair in it", "choose another GPU type"));
    }
    problems.check()?;
    Ok(pairs)
}

/// The pairs of a job type; those of gangs are counted and left out.
fn pairs_of(
    name: &str,
    beside: &BTreeMap<String, Speed>,
    jobs: &Jobs,
    pairs: &mut PairTable,
) -> Result<(), Problem> {
    for (other, speed) in beside.iter().filter(|(other, _)| other.as_str() != ALONE) {
        let of = |what: &str| format!("{} beside {}: {what}", quote(name), quote(other));
        let wrong = |what: &str| Problem::of_file(of(what), "correct or remove the entry");
        let Speed::Shared([one_shared, other_shared]) = *speed else {
            return Err(wrong("one speed where there should be two"));
        };
        if gpus(name) > Some(1) && gpus(name) == gpus(other) {
            pairs.left_out += 1;
            continue;
        }
        let (one, second) = (workload(name), workload(other));
        let (Some(one), Some(second)) = (one, second) else {
            return Err(wrong("a name that is not ('MODEL (batch size N)', 1)"));
        };
        if !(one_shared >= 0.0 && other_shared >= 0.0) {
            return Err(wrong("a negative speed"));
        }
        let retention = if one_shared > 0.0 && other_shared > 0.0 {
            let (Some(one_alone), Some(other_alone)) = (alone(jobs, name), alone(jobs, other))
            else {
                return Err(wrong("no speed alone"));
            };
            Some((one_shared / one_alone, other_shared / other_alone))
        } else if one_shared + other_shared > 0.0 {
            return Err(wrong("one speed is 0 where the other is not"));
        } else {
            None
        };
        pairs.push(PairRow { one, other: second, retention, line: 0 });
    }
    Ok(())
}

/// A job's speed alone. A job that does not fit even alone has 0, and is in no pair that fits.
fn alone(jobs: &Jobs, name: &str) -> Option<f64> {
    match jobs.get(name)?.get(ALONE)? {
        Speed::Alone(speed) if *speed > 0.0 && speed.is_finite() => Some(*speed),
        _ => None,
    }
}

/// The number of GPUs of `('A3C', 2)`.
fn gpus(key: &str) -> Option<u32> {
    key.rsplit_once("', ")?.1.strip_suffix(')')?.parse().ok()
}

/// `('ResNet-18 (batch size 16)', 1)` and `('A3C', 1)`: one GPU.
fn workload(key: &str) -> Option<Workload> {
    let name = key.strip_prefix("('")?.strip_suffix("', 1)")?;
    let (model, batch) = match name.strip_suffix(')').and_then(|n| n.split_once(" (batch size ")) {
        Some((model, batch)) => (model, batch.parse().ok()?),
        None => (name, 0),
    };
    let (model, dataset) = (model.to_owned(), String::new());
    Some(Workload { model, dataset, batch, mixed_precision: false })
}
