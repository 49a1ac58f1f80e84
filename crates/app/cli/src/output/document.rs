//! The JSON object of a simulation.

use super::{Report, Run};
use crate::inputs::one_capacity;
use crate::settings::to_json;
use deepshare_engine::CapacityMode;
use deepshare_trace::ImportReport;
use serde::Serialize;
use std::path::Path;

/// What `--json` prints and `run.json` holds; `docs/formats/results.md` has the figures.
#[derive(Serialize)]
struct Document<'a> {
    deepshare: &'static str,
    trace: TracePart<'a>,
    cluster: ClusterPart,
    settings: serde_json::Value,
    seed: u64,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct TracePart<'a> {
    /// `null` for the built-in month.
    file: Option<String>,
    jobs: usize,
    tenants: usize,
    users: usize,
    first_submit_s: Option<f64>,
    last_submit_s: Option<f64>,
    work_gpu_s: f64,
    import: &'a ImportReport,
}

#[derive(Serialize)]
struct ClusterPart {
    /// `null` for that of the built-in month.
    file: Option<String>,
    nodes: usize,
    gpus: u64,
    tenants: usize,
    /// `null` where policies differ; each run has its own.
    capacity: Option<&'static str>,
}

impl Report<'_> {
    /// The whole report as one line of JSON.
    pub fn json(&self) -> String {
        let settings = to_json(self.settings);
        let capacity = one_capacity(self.runs).map(CapacityMode::name);
        let (trace, cluster) = (&self.inputs.trace, &self.inputs.cluster);
        let path = |file: Option<&Path>| file.map(|path| path.display().to_string());
        let document = Document {
            deepshare: env!("CARGO_PKG_VERSION"),
            trace: TracePart {
                file: path(self.settings.trace.named()),
                jobs: trace.jobs.len(),
                tenants: trace.tenants.len(),
                users: trace.users.len(),
                first_submit_s: trace.jobs.first().map(|job| job.submit.as_secs_f64()),
                last_submit_s: trace.jobs.last().map(|job| job.submit.as_secs_f64()),
                work_gpu_s: trace.gpu_time().as_gpu_secs(),
                import: &trace.report,
            },
            cluster: ClusterPart {
                file: path(self.settings.cluster.file.as_deref()),
                nodes: cluster.nodes.len(),
                gpus: cluster.nodes.iter().map(|node| u64::from(node.gpus)).sum(),
                tenants: cluster.tenants.len(),
                capacity,
            },
            settings,
            seed: self.settings.seed(),
            runs: self.runs(),
        };
        line(&document)
    }
}

/// A value as one line of JSON.
pub fn line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).expect("names are text and no map has other keys");
    text.push('\n');
    text
}
