//! The published month: what others got from the artifact, job by job and in the mean. The data are
//! not part of this repository; without them these tests say so and pass.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use deepshare_interference::{PairOptions, read_pairs, read_profiles};
use deepshare_lucid::{
    LucidInputs, LucidOutcome, LucidRecord, LucidSettings, Sharing, Tables, read_forecast,
    read_scores, run_record, simulate,
};
use deepshare_metrics::Summary;
use deepshare_model::Span;
use deepshare_trace::{Trace, read_estimates, read_venus_month};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const JOBS: usize = 23_859;

fn data() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folder = std::env::var_os("DEEPSHARE_DATA")
        .map_or_else(|| root.join("../shared/data"), |folder| root.join(folder));
    let found = folder.join("lucid_venus").is_dir().then_some(folder);
    if found.is_none() {
        eprintln!("skipped: no data folder (set DEEPSHARE_DATA)");
    }
    found
}

fn month(data: &Path) -> (Trace, LucidInputs) {
    let (trace, cluster) = read_venus_month(data).unwrap();
    let venus = data.join("lucid_venus");
    let tables = Tables {
        profiles: read_profiles(&venus.join("venus_sept2020_profiles.csv.zst")).unwrap(),
        pairs: read_pairs(&venus.join("colocate_info.csv"), &PairOptions::default()).unwrap(),
        scores: read_scores(&venus.join("single_data.csv")).unwrap(),
        forecast: read_forecast(&venus.join("Venus_throughput_pred.csv")).unwrap(),
    };
    let ebm = venus.join("Venus_Sept_ebm_weekly_updated.csv");
    let estimates = read_estimates(&ebm, &trace, Some(Span::from_secs(1_000))).unwrap();
    let inputs = LucidInputs::new(&trace, &cluster, tables, &estimates.values).unwrap();
    assert_eq!(inputs.start_s, 13_219_200);
    (trace, inputs)
}

fn run(inputs: &LucidInputs, sharing: Sharing) -> LucidOutcome {
    let settings = LucidSettings { sharing, ..LucidSettings::default() };
    let outcome = simulate(inputs, &settings).unwrap();
    assert_eq!(outcome.records.len(), JOBS);
    outcome
}

fn records(outcome: &LucidOutcome) -> Vec<LucidRecord> {
    outcome.records.iter().map(|record| record.unwrap()).collect()
}

fn mean(records: &[LucidRecord], of: fn(&LucidRecord) -> u64) -> f64 {
    records.iter().map(of).sum::<u64>() as f64 / records.len() as f64
}

#[test]
fn without_sharing_every_job_is_as_in_the_published_log() {
    let Some(data) = data() else { return };
    let (_, inputs) = month(&data);
    let ours = records(&run(&inputs, Sharing::Off));
    let log = data.join("lucid_sim_results/lucid_consolidate_all_log.csv.zst");
    let plain = zstd::Decoder::new(std::fs::File::open(log).unwrap()).unwrap();
    let mut reader = csv::Reader::from_reader(plain);
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let columns = ["start_time", "end_time", "queue", "jct", "profiled"].map(at);
    let id = at("job_id");
    let mut theirs: BTreeMap<String, [u64; 5]> = BTreeMap::new();
    for row in reader.records() {
        let row = row.unwrap();
        let numbers = columns.map(|column| row[column].trim_end_matches(".0").parse().unwrap_or(0));
        theirs.insert(row[id].to_owned(), numbers);
    }
    assert_eq!(theirs.len(), JOBS);
    let differ: Vec<String> = (inputs.jobs.iter().zip(&ours))
        .map(|(job, record)| {
            let LucidRecord { start_s, end_s, queue_s, jct_s, profiled, .. } = *record;
            (job, [start_s, end_s, queue_s, jct_s, u64::from(profiled.is_some())])
        })
        .filter(|(job, ours)| theirs[&job.id] != *ours)
        .map(|(job, ours)| {
            format!("{} ({} GPUs): {ours:?}, {:?}", job.id, job.gpus, theirs[&job.id])
        })
        .collect();
    assert!(
        differ.is_empty(),
        "{} differ, first {:#?}",
        differ.len(),
        &differ[..10.min(differ.len())]
    );
}

#[test]
fn as_published_the_month_has_the_published_means() {
    let Some(data) = data() else { return };
    let (trace, inputs) = month(&data);
    let outcome = run(&inputs, Sharing::Forecast);
    let ours = records(&outcome);
    let jct = mean(&ours, |record| record.jct_s);
    let queue = mean(&ours, |record| record.queue_s);
    // In the row order of the log that the artifact was run on.
    assert_eq!(
        (format!("{jct:.2}"), format!("{queue:.2}")),
        ("12886.13".to_owned(), "915.24".to_owned())
    );
    let mut queues: Vec<u64> = ours.iter().map(|record| record.queue_s).collect();
    queues.sort_unstable();
    let at = 0.999 * (JOBS - 1) as f64;
    let (below, above) = (queues[at.floor() as usize] as f64, queues[at.ceil() as usize] as f64);
    let p999 = below + (above - below) * at.fract();
    assert_eq!(p999.trunc(), 93_756.0, "{p999}");
    assert_eq!(*queues.last().unwrap(), 473_120);
    let first = inputs.jobs.iter().map(|job| job.submit_s).min().unwrap();
    let last = ours.iter().map(|record| record.end_s).max().unwrap();
    assert_eq!(last - first, 3_441_969);
    assert_eq!(ours.iter().filter(|record| record.profiled.is_some()).count(), 21_417);
    let finished = ours.iter().filter(|record| record.profiled.is_some_and(|p| p.finished));
    assert_eq!(finished.count(), 10_644);
    assert_eq!(outcome.scaling.len(), 56);

    let record = run_record(&trace, &outcome, "ebm".to_owned());
    let summary = Summary::of(&record, &trace.tenants);
    let figure = |name: &str| summary.value(name).as_f64().unwrap();
    assert!((figure("jct_mean_s") - jct).abs() < 1e-6);
    assert!((figure("queueing_delay_mean_s") - queue).abs() < 1e-6);
    assert_eq!(figure("makespan_s"), 3_441_969.0);
    assert!(figure("jct_mean_s") > figure("bound_jct_mean_s"));
    let less_duration = figure("jct_minus_duration_mean_s");
    assert!((less_duration - 1_117.0).abs() < 1.0, "{less_duration}");
    assert!((0.5..1.0).contains(&figure("allocation_ratio")));
}

#[test]
fn sharing_always_is_worth_a_little_less_than_sharing_by_forecast() {
    let Some(data) = data() else { return };
    let (_, inputs) = month(&data);
    let ours = records(&run(&inputs, Sharing::On));
    let means = [mean(&ours, |record| record.jct_s), mean(&ours, |record| record.queue_s)];
    assert_eq!(means.map(f64::trunc), [12_931.0, 961.0], "{means:?}");
}

#[test]
fn other_constants_give_what_they_give_in_the_artifact() {
    let Some(data) = data() else { return };
    let (_, inputs) = month(&data);
    let published = LucidSettings::default;
    let bare = || LucidSettings { profiler: None, ..published() };
    let full = || LucidSettings { lenders: Vec::new(), ..bare() };
    let score = |score_limit| LucidSettings { score_limit, ..published() };
    for (settings, expected) in [
        (bare(), [13_132.0, 1_103.0]),
        (full(), [13_113.0, 1_084.0]),
        (score(1), [13_505.0, 1_602.0]),
        (score(0), [13_856.0, 2_053.0]),
        (LucidSettings { priority_factor: u32::MAX, ..published() }, [13_023.0, 1_093.0]),
        (LucidSettings { lenders: Vec::new(), ..published() }, [12_873.0, 902.0]),
    ] {
        let ours = records(&simulate(&inputs, &settings).unwrap());
        let means = [mean(&ours, |record| record.jct_s), mean(&ours, |record| record.queue_s)];
        assert_eq!(means.map(f64::trunc), expected, "{settings:?}");
    }
}
