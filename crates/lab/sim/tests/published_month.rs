//! The published logs of the Lucid artifact on the real Venus month: every job, to the second.
//!
//! Needs the data folder (`DEEPSHARE_DATA`, default `../shared/data`); says that it was skipped
//! where that is absent.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its input has failed")]

use deepshare_metrics::{JobRecord, RunRecord};
use deepshare_model::Span;
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Estimator, SimSettings, Watch, compat, simulate};
use deepshare_trace::{
    Cluster, ClusterOptions, ReadOptions, Trace, read_cluster, read_estimates, read_trace,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn data() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folder = std::env::var_os("DEEPSHARE_DATA")
        .map_or_else(|| root.join("../shared/data"), |folder| root.join(folder));
    let found = folder.join("helios_venus").is_dir();
    if !found {
        eprintln!("skipped: no data folder (set DEEPSHARE_DATA)");
    }
    found.then_some(folder)
}

fn month(data: &Path) -> (Trace, Cluster) {
    let venus = data.join("helios_venus");
    let cluster = read_cluster(&venus.join("vc_config.csv"), ClusterOptions::default()).unwrap();
    let options = ReadOptions {
        known_tenants: Some(cluster.tenant_names()),
        order: Some(venus.join("venus_sept2020_trace_order.csv.zst")),
        ..ReadOptions::default()
    };
    let trace = read_trace(&venus.join("venus_sept2020_jobs.csv.zst"), &options).unwrap();
    (trace, cluster)
}

fn replay(trace: &Trace, cluster: &Cluster, policy: &str, estimates: Estimator) -> RunRecord {
    let mut settings = SimSettings::new(PolicyConfig::by_name(policy).unwrap());
    compat::lucid(&mut settings);
    settings.estimates = estimates;
    settings.audit = true;
    simulate(trace, cluster, &settings, &Watch::default()).unwrap()
}

fn given(data: &Path, file: &str, trace: &Trace) -> Estimator {
    let path = data.join("lucid_venus").join(file);
    let read = read_estimates(&path, trace, Some(compat::LUCID_NEGATIVE_ESTIMATE)).unwrap();
    Estimator::Given { name: file.to_owned(), values: Arc::from(read.values) }
}

/// Start, end, waiting and preemptions of every job in a published log.
fn published(data: &Path, policy: &str) -> BTreeMap<String, (u64, u64, u64, u32)> {
    let path = data.join(format!("lucid_sim_results/{policy}_consolidate_all_log.csv.zst"));
    let file = std::fs::File::open(path).unwrap();
    let mut reader = csv::Reader::from_reader(zstd::Decoder::new(file).unwrap());
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let columns = ["start_time", "end_time", "queue", "ckpt_times"].map(column);
    let id = column("job_id");
    let number = |text: &str| text.parse::<f64>().unwrap() as u64;
    reader
        .records()
        .map(|record| {
            let record = record.unwrap();
            let [start, end, queue, preemptions] = columns.map(|column| number(&record[column]));
            (record[id].to_owned(), (start, end, queue, preemptions as u32))
        })
        .collect()
}

fn seconds(span: Span) -> u64 {
    assert_eq!(span.0 % 1_000_000, 0, "the artifact knows whole seconds only");
    span.0 / 1_000_000
}

fn outcome(record: &JobRecord) -> (u64, u64, u64, u32) {
    let start = record.first_start.unwrap().0 / 1_000_000;
    let end = record.end.unwrap().0 / 1_000_000;
    (start, end, seconds(record.waited), record.preemptions)
}

fn assert_every_job_equal(policy: &str, estimates: Option<&str>, means: (f64, f64)) {
    let Some(data) = data() else { return };
    let (trace, cluster) = month(&data);
    let estimates = match estimates {
        Some(file) => given(&data, file, &trace),
        None => Estimator::Oracle,
    };
    let run = replay(&trace, &cluster, policy, estimates);
    let golden = published(&data, policy);
    assert_eq!((run.jobs.len(), golden.len()), (23_859, 23_859));
    let differing: Vec<_> = trace
        .jobs
        .iter()
        .zip(&run.jobs)
        .filter(|(job, record)| golden[&job.id] != outcome(record))
        .map(|(job, record)| (job.id.clone(), golden[&job.id], outcome(record)))
        .collect();
    let first: Vec<_> = differing.iter().take(5).collect();
    assert!(differing.is_empty(), "{} jobs differ, first {first:?}", differing.len());
    assert_means(&run, means);
}

fn assert_means(run: &RunRecord, (jct_s, delay_s): (f64, f64)) {
    let mean = |values: &mut dyn Iterator<Item = Span>| {
        let micros: u128 = values.map(|span| u128::from(span.0)).sum();
        micros as f64 / 1e6 / run.jobs.len() as f64
    };
    let jct = mean(&mut run.jobs.iter().map(|job| job.jct().unwrap()));
    let delay = mean(&mut run.jobs.iter().map(|job| job.waited));
    assert!((jct - jct_s).abs() < 0.06, "mean JCT {jct}, published {jct_s}");
    assert!((delay - delay_s).abs() < 0.06, "mean delay {delay}, published {delay_s}");
}

#[test]
fn fifo_equals_the_published_log_for_every_job() {
    assert_every_job_equal("fifo", None, (65_720.5, 53_951.3));
}

#[test]
fn sjf_equals_the_published_log_for_every_job() {
    assert_every_job_equal("sjf", None, (21_095.0, 9_325.8));
}

#[test]
fn srtf_equals_the_published_log_for_every_job() {
    assert_every_job_equal("srtf", None, (12_609.9, 829.7));
}

#[test]
fn tiresias_equals_the_published_log_for_every_job() {
    assert_every_job_equal("tiresias", None, (14_700.0, 2_916.0));
}

#[test]
fn qssf_with_ebm_estimates_equals_the_published_log_for_every_job() {
    let file = "Venus_Sept_ebm_weekly_updated.csv";
    assert_every_job_equal("qssf", Some(file), (15_548.9, 3_779.6));
}

#[test]
fn qssf_with_lightgbm_estimates_has_the_published_means() {
    let Some(data) = data() else { return };
    let (trace, cluster) = month(&data);
    let estimates = given(&data, "Venus_Sept_lgb.csv.zst", &trace);
    let run = replay(&trace, &cluster, "qssf", estimates);
    assert_means(&run, (18_797.5, 7_028.2));
}
