//! A month in miniature, to be filled in.

use crate::{
    Forecast, ForecastRow, LucidInputs, LucidJob, LucidRecord, LucidSettings, LucidVc, Sharing,
    simulate,
};
use deepshare_interference::Workload;
use deepshare_model::Span;
use std::collections::BTreeMap;

/// Workload 0, a model that was measured.
pub(super) const MEASURED: usize = 0;
/// Another one.
pub(super) const OTHER: usize = 1;
/// One that was not.
pub(super) const UNMEASURED: usize = 2;

/// Virtual clusters with these nodes, called `vc0`, `vc1` and so on, without jobs. Workload 0 goes
/// at half speed beside its like; beside workload 1 it goes at 0.25 and that at 0.5. For ten days
/// many jobs and GPUs are forecast.
pub(super) fn inputs(nodes: &[u32]) -> LucidInputs {
    let workload = |model: &str| Workload {
        model: model.to_owned(),
        dataset: "d".to_owned(),
        batch: 64,
        mixed_precision: false,
    };
    let vc = |(at, &nodes)| LucidVc { name: format!("vc{at}"), nodes };
    LucidInputs {
        jobs: Vec::new(),
        vcs: nodes.iter().enumerate().map(vc).collect(),
        workloads: ["VGG", "PPO", "NeuMF"].map(workload).to_vec(),
        speeds: BTreeMap::from([((0, 0), (0.5, 0.5)), ((1, 0), (0.5, 0.25))]),
        pairs_file: "pairs.csv".to_owned(),
        forecast: Forecast {
            file: "forecast.csv".to_owned(),
            first: jiff::civil::date(2020, 9, 1).at(0, 0, 0, 0),
            rows: vec![ForecastRow { jobs: 9.0, gpus: 99.0 }; 1_440],
        },
        start_s: 0,
        forecast_start_s: 0,
    }
}

/// A job of `vc0`: estimated at its duration, light, of workload 0, with 1 GiB.
pub(super) fn job(submit_s: u64, gpus: u32, duration_s: u64) -> LucidJob {
    LucidJob {
        id: format!("at-{submit_s}-for-{duration_s}"),
        row: 2,
        vc: 0,
        gpus,
        submit_s,
        duration_s,
        estimate: Span::from_secs(duration_s),
        workload: MEASURED,
        score: 0,
        memory_mib: 1_024,
    }
}

/// No profiler, and sharing as said.
pub(super) fn bare(sharing: Sharing) -> LucidSettings {
    LucidSettings { sharing, profiler: None, ..LucidSettings::default() }
}

/// What became of each job of a run in which each could run.
pub(super) fn records(inputs: &LucidInputs, settings: &LucidSettings) -> Vec<LucidRecord> {
    let outcome = simulate(inputs, settings).unwrap();
    outcome.records.into_iter().map(|record| record.unwrap()).collect()
}

/// Start and end of each job.
pub(super) fn fates(inputs: &LucidInputs, settings: &LucidSettings) -> Vec<(u64, u64)> {
    records(inputs, settings).iter().map(|record| (record.start_s, record.end_s)).collect()
}
