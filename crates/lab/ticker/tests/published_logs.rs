//! Compares the oracle with the logs of the simulator it imitates, for every job of a real month.
//!
//! Slow and in need of data that may not be shipped, so it is run by hand:
//! `cargo test --release -p deepshare-ticker -- --ignored --nocapture`. `DEEPSHARE_DATA` names
//! the data folder; without it, `../shared/data` beside the workspace is tried.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use deepshare_ticker::{
    OracleJob, OraclePolicy, OracleResult, OracleSettings, Semantics, simulate,
};

/// The first second of the published runs: 153 days after their first job of April.
const START_S: u64 = 13_219_200;

/// Jobs in the month. Fewer would make "every job agrees" a weaker claim than it sounds.
const JOBS: usize = 23_859;

#[test]
#[ignore = "slow; run by hand in release"]
fn fifo_matches_the_published_log_for_every_job() {
    compare(OraclePolicy::Fifo, "fifo");
}

#[test]
#[ignore = "slow; run by hand in release"]
fn sjf_matches_the_published_log_for_every_job() {
    compare(OraclePolicy::Sjf, "sjf");
}

#[test]
#[ignore = "slow; run by hand in release"]
fn qssf_matches_the_published_log_for_every_job() {
    compare(OraclePolicy::Qssf, "qssf");
}

#[test]
#[ignore = "slow; run by hand in release"]
fn srtf_matches_the_published_log_for_every_job() {
    compare(OraclePolicy::Srtf, "srtf");
}

#[test]
#[ignore = "slow; run by hand in release"]
fn tiresias_matches_the_published_log_for_every_job() {
    compare(OraclePolicy::Tiresias, "tiresias");
}

fn compare(policy: OraclePolicy, name: &str) {
    let Some(data) = data_folder() else {
        eprintln!("skipped: no data folder; set DEEPSHARE_DATA");
        return;
    };
    let (vcs, jobs) = read_month(&data);
    let log = read_log(&data.join(format!("lucid_sim_results/{name}_consolidate_all_log.csv.zst")));
    assert_eq!(jobs.len(), JOBS);
    assert_eq!(log.len(), JOBS);

    let settings = OracleSettings::new(policy, Semantics::Artifact);
    let ours = simulate(&settings, &vcs, &jobs, START_S);

    let mut differ: Vec<(u64, usize)> = (0..jobs.len())
        .filter(|&i| log[&jobs[i].id] != ours[i])
        .map(|i| (log[&jobs[i].id].start_s.min(ours[i].start_s), i))
        .collect();
    differ.sort();
    let jct_s: u64 = (0..jobs.len()).map(|i| ours[i].end_s - jobs[i].submit_s).sum();
    let queue_s: u64 = ours.iter().map(|r| r.queue_s).sum();
    let preemptions: u32 = ours.iter().map(|r| r.preemptions).sum();
    let n = jobs.len() as f64;
    eprintln!(
        "{name}: {} of {JOBS} jobs agree; mean jct {:.2} s, mean queue {:.2} s, {preemptions} \
         preemptions",
        JOBS - differ.len(),
        jct_s as f64 / n,
        queue_s as f64 / n,
    );
    for &(_, i) in differ.iter().take(5) {
        eprintln!("  {:?}\n    ours {:?}\n    log  {:?}", jobs[i], ours[i], log[&jobs[i].id]);
    }
    assert!(differ.is_empty(), "{name}: {} jobs differ, the earliest printed above", differ.len());
}

/// The virtual clusters' sizes in nodes, and the jobs in the order of the published runs.
fn read_month(data: &Path) -> (Vec<u32>, Vec<OracleJob>) {
    let vc_rows = rows(&data.join("helios_venus/vc_config.csv"));
    let vcs = vc_rows.iter().map(|row| number(row, "num")).collect();
    let vc_names: Vec<String> = vc_rows.iter().map(|row| row[""].clone()).collect();

    let mut estimates: BTreeMap<u32, i64> = BTreeMap::new();
    for row in rows(&data.join("lucid_venus/Venus_Sept_ebm_weekly_updated.csv")) {
        let estimate_s = number(&row, "priority");
        // As the published runs did when they loaded this file.
        let replaced = if estimate_s < 0 { 1000 } else { estimate_s };
        estimates.insert(number(&row, "job_id"), replaced);
    }
    let mut by_id = BTreeMap::new();
    for row in rows(&data.join("helios_venus/venus_sept2020_jobs.csv.zst")) {
        let id = number(&row, "job_id");
        let vc = vc_names.iter().position(|name| *name == row["vc"]);
        let job = OracleJob {
            id,
            vc: vc.expect("every job's virtual cluster is configured"),
            gpus: number(&row, "gpu_num"),
            submit_s: number(&row, "submit_time"),
            duration_s: number(&row, "duration"),
            estimate_s: estimates[&id],
        };
        by_id.insert(id, job);
    }
    let order = rows(&data.join("helios_venus/venus_sept2020_trace_order.csv.zst"));
    let next = |row| by_id.remove(&number(row, "job_id")).expect("the order names each job once");
    (vcs, order.iter().map(next).collect())
}

fn read_log(path: &Path) -> BTreeMap<u32, OracleResult> {
    let result = |row: &Row| OracleResult {
        start_s: whole(row, "start_time"),
        end_s: whole(row, "end_time"),
        queue_s: whole(row, "queue"),
        preemptions: number(row, "ckpt_times"),
    };
    rows(path).iter().map(|row| (number(row, "job_id"), result(row))).collect()
}

/// A row by column name.
type Row = BTreeMap<String, String>;

fn number<T: FromStr>(row: &Row, column: &str) -> T {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: {} is no number", row[column]))
}

/// The logs write whole seconds as floats, such as `13219203.0`.
fn whole(row: &Row, column: &str) -> u64 {
    let value: f64 = number(row, column);
    assert_eq!(value.fract(), 0.0, "{column}: {value} is not a whole number of seconds");
    value as u64
}

/// The rows of a CSV file, plain or zstd.
fn rows(path: &Path) -> Vec<Row> {
    let cannot_read = |e: &dyn std::error::Error| -> ! { panic!("{}: {e}", path.display()) };
    let bytes = std::fs::read(path).unwrap_or_else(|e| cannot_read(&e));
    let text = if path.extension().is_some_and(|ext| ext == "zst") {
        zstd::decode_all(bytes.as_slice()).unwrap_or_else(|e| cannot_read(&e))
    } else {
        bytes
    };
    csv::Reader::from_reader(text.as_slice())
        .deserialize()
        .map(|row| row.unwrap_or_else(|e| cannot_read(&e)))
        .collect()
}

fn data_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("DEEPSHARE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        PathBuf::from,
    );
    folder.is_dir().then_some(folder)
}
