//! `reproduce` on the published data, where they are.

use crate::running::{root, run};
use serde_json::json;

#[test]
fn the_published_month_is_reproduced_job_by_job() {
    let folder = std::env::var_os("DEEPSHARE_DATA")
        .map_or_else(|| root().join("../shared/data"), |folder| root().join(folder));
    if !folder.join("helios_venus").is_dir() {
        eprintln!("skipped: no data folder (set DEEPSHARE_DATA)");
        return;
    }
    let args = ["reproduce", "venus", "--json", "--data", folder.to_str().unwrap()];
    let object = run(&args).json();
    let runs = object["runs"].as_array().unwrap();
    for run in runs[..5].iter().chain(&runs[6..7]) {
        assert_eq!(run["agreement"]["every"], json!(23_859), "{}", run["name"]);
        assert_eq!(run["jct_mean_s"], run["artifact_jct_mean_s"], "{}", run["name"]);
    }
    for run in [&runs[5], &runs[7]] {
        assert_eq!(run["agreement"], json!(null), "its log was not published");
    }
    assert_eq!(runs[7]["within_range"], json!(true), "{}", runs[7]);
    let delay = runs[5]["queueing_delay_mean_s"].as_f64().unwrap();
    assert!((delay - 7_028.2).abs() < 0.06, "{delay}");
}
