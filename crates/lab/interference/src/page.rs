//! The page about the fit, and the source file with its coefficients.

use crate::fit::{Fit, Free, Quality};
use crate::measurements::{self, Measurements, Observation};
use deepshare_interference::{Coefficients, ContentionModel, Mechanism, PairTable, read_profiles};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Seed of the choice of probes.
const SEED: u64 = 1;
/// Pairs of a model left out that are shown, in per cent.
const PROBES: u32 = 25;

/// The page, and the coefficients.
pub fn page(data: &Path) -> Result<(String, Coefficients), String> {
    let all = measurements::load(data)?;
    let mut fit = Fit::new(&all);
    fit.minimise(&all.observations, Free::All);
    let fitted = rounded(&fit.coefficients());
    let mut page = String::new();
    let k = fitted;
    let line = format!(
        "Fitted on {} retentions of {} job types. Coefficients: `compute` {}, `bandwidth` {}, \
         exponents `own` {}, `other` {}.\n\n",
        all.observations.len(),
        all.jobs.len(),
        k.compute,
        k.bandwidth,
        k.own,
        k.other,
    );
    page.push_str(&line);
    by_source(&all, &fit, &mut page);
    held_out(&all, &mut page);
    out_of_sample(data, fitted, &mut page)?;
    Ok((page, fitted))
}

/// The source file with these coefficients.
pub fn source(k: &Coefficients) -> String {
    let Coefficients { compute, bandwidth, own, other } = k;
    format!(
        "//! Coefficients fitted by `cargo xtask contention --write`, which writes this file.\n\n\
         use super::Coefficients;\n\n\
         /// Fitted on measurements under MPS.\n\
         pub(super) const MPS: Coefficients =\n    \
         Coefficients {{ compute: {compute:?}, bandwidth: {bandwidth:?}, own: {own:?}, \
         other: {other:?} }};\n"
    )
}

/// Three decimals are more than the data can tell.
fn rounded(k: &Coefficients) -> Coefficients {
    let round = |value: f64| libm::round(value * 1e3) / 1e3;
    Coefficients {
        compute: round(k.compute),
        bandwidth: round(k.bandwidth),
        own: round(k.own),
        other: round(k.other),
    }
}

fn quality(pairs: &[(f64, f64)]) -> String {
    let Quality { count, mean, r_squared, error, bias } = Quality::of(pairs);
    format!("{count} | {mean:.3} | {r_squared:.3} | {error:.3} | {bias:+.3} |")
}

const HEAD: &str = "retentions | mean | R² | mean absolute error | bias |";
const RULE: &str = "---: | ---: | ---: | ---: | ---: |";

fn by_source(all: &Measurements, fit: &Fit, page: &mut String) {
    let say = |page: &mut String, text: String| page.push_str(&text);
    say(page, "### Fitted: demand and coefficients on all measurements\n\n".to_owned());
    say(page, format!("| source | gain | {HEAD}\n| --- | ---: | {RULE}\n"));
    let pairs = |keep: &dyn Fn(&Observation) -> bool, gain| -> Vec<(f64, f64)> {
        let seen = all.observations.iter().filter(|seen| keep(seen));
        seen.map(|seen| (seen.retention, fit.predict(seen, gain))).collect()
    };
    for (index, name) in all.sources.iter().enumerate() {
        let row = quality(&pairs(&|seen| seen.source == index, true));
        say(page, format!("| {name} | {:.2} | {row}\n", fit.gain(index)));
    }
    say(page, format!("| all | | {}\n", quality(&pairs(&|_| true, true))));
    say(page, format!("| all, without gains | 1 | {}\n\n", quality(&pairs(&|_| true, false))));
}

/// Each model left out in turn: coefficients, gains and the demand of all others are fitted
/// without any pair of it.
fn held_out(all: &Measurements, page: &mut String) {
    let _ = write!(
        page,
        "### Left out: coefficients fitted without any pair of the model\n\n\
         | model | known of it | {HEAD}\n| --- | --- | {RULE}\n"
    );
    let mut of_source: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    let mut rng = Pcg64Mcg::seed_from_u64(SEED);
    let mut everything = Vec::new();
    for model in all.models() {
        let left_out: Vec<bool> = all.jobs.iter().map(|job| job.model == model).collect();
        let touches = |seen: &Observation| left_out[seen.own] || left_out[seen.other];
        let (of_model, rest): (Vec<Observation>, Vec<Observation>) =
            all.observations.iter().partition(|seen| touches(seen));
        let mut fit = Fit::new(all);
        fit.minimise(&rest, Free::All);
        let predicted = |fit: &Fit, seen: &[Observation]| -> Vec<(f64, f64)> {
            seen.iter().map(|seen| (seen.retention, fit.predict(seen, true))).collect()
        };
        let with_counters = of_model.iter().filter(|seen| {
            [seen.own, seen.other]
                .iter()
                .all(|&job| !left_out[job] || all.jobs[job].counters.is_some())
        });
        let with_counters: Vec<Observation> = with_counters.copied().collect();
        if !with_counters.is_empty() {
            let row = quality(&predicted(&fit, &with_counters));
            let _ = writeln!(page, "| {model} | counters | {row}");
        }
        let (probes, others): (Vec<Observation>, Vec<Observation>) =
            of_model.iter().partition(|_| rng.random_range(0..100_u32) < PROBES);
        fit.minimise(&probes, Free::Demand(&left_out));
        let pairs = predicted(&fit, &others);
        let _ = writeln!(page, "| {model} | {PROBES} % of its pairs | {}", quality(&pairs));
        for (seen, pair) in others.iter().zip(&pairs) {
            of_source.entry(seen.source).or_default().push(*pair);
        }
        everything.extend(pairs);
    }
    for (source, pairs) in of_source {
        let name = &all.sources[source];
        let _ = writeln!(page, "| all, {name} | {PROBES} % of its pairs | {}", quality(&pairs));
    }
    let _ = writeln!(page, "| all | {PROBES} % of its pairs | {}\n", quality(&everything));
}

/// Lucid's pairs, which are never fitted on, from the counters of its jobs.
fn out_of_sample(data: &Path, fitted: Coefficients, page: &mut String) -> Result<(), String> {
    let table: PairTable = measurements::lucid(data)?;
    let profiles = read_profiles(&data.join("lucid_venus/venus_sept2020_profiles.csv.zst"));
    let profiles = profiles.map_err(|error| error.to_string())?;
    let known: BTreeMap<_, _> = profiles.of_job.values().map(|p| (&p.workload, p)).collect();
    let model = ContentionModel { mps: fitted, ..ContentionModel::default() };
    let _ = write!(
        page,
        "### Out of sample: pairs of the Lucid artifact (time slicing), from its counters\n\n\
         | setting | {HEAD}\n| --- | {RULE}\n"
    );
    for (name, mechanism) in [("time slicing", Mechanism::TimeSlicing), ("MPS", Mechanism::Mps)] {
        let mut pairs = Vec::new();
        for row in table.rows() {
            let (Some(one), Some(other)) = (known.get(&row.one), known.get(&row.other)) else {
                return Err(format!("no counters of {} or {}", row.one, row.other));
            };
            let Some(seen) = row.retention else { continue };
            let said = model.pair(one, other, mechanism);
            pairs.extend([(seen.0.min(1.0), said.0), (seen.1.min(1.0), said.1)]);
        }
        let _ = writeln!(page, "| {name} | {}", quality(&pairs));
    }
    Ok(())
}
