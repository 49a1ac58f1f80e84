//! The measurements that coefficients are fitted on: Gavel and Blox, and counters of MISO.

use deepshare_interference::{PairOptions, PairTable, Workload, read_pairs};
use std::collections::BTreeMap;
use std::path::Path;

/// One measured retention.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Whose it is; position in [`Measurements::jobs`].
    pub own: usize,
    /// Its partner.
    pub other: usize,
    /// Position in [`Measurements::sources`].
    pub source: usize,
    /// What was measured.
    pub retention: f64,
}

/// A job type on one kind of GPU.
#[derive(Clone, Debug)]
pub struct Job {
    /// Name of the model in lower case without punctuation, so that it is the same in all sources.
    pub model: String,
    /// Measured shares of compute and bandwidth, where there are counters.
    pub counters: Option<(f64, f64)>,
}

/// All that is fitted on.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    /// Names of sources.
    pub sources: Vec<String>,
    /// Job types.
    pub jobs: Vec<Job>,
    /// What was measured.
    pub observations: Vec<Observation>,
}

/// Files of Gavel, and their kinds of GPU. The `_unconsolidated` kinds repeat the others' pairs.
const GAVEL: [(&str, &str); 2] = [
    ("simulation", "gavel/simulation_throughputs.json.zst"),
    ("physical", "gavel/physical_cluster_throughputs.json.zst"),
];
const GPU_TYPES: [&str; 3] = ["k80", "p100", "v100"];
const BLOX: &str = "blox_llm_colocation/norm_speed.csv";
/// Pairs that are never fitted on.
const LUCID: &str = "lucid_venus/colocate_info.csv";

/// Compute and bandwidth of a model with a batch.
type Counters = BTreeMap<(String, u32), (f64, f64)>;

/// Everything to fit on.
pub fn load(data: &Path) -> Result<Measurements, String> {
    let mut all = Measurements::default();
    let mut known: BTreeMap<(String, Workload), usize> = BTreeMap::new();
    let counters = counters(data)?;
    for (name, file) in GAVEL {
        for gpu_type in GPU_TYPES {
            let options = PairOptions { gpu_type: Some(gpu_type.to_owned()), format: None };
            let table = read(&data.join(file), &options)?;
            let source = format!("Gavel, {name}, {gpu_type}");
            all.add(&table, source, gpu_type, &mut known, &counters);
        }
    }
    let blox = read(&data.join(BLOX), &PairOptions::default())?;
    all.add(&blox, "Blox".to_owned(), "blox", &mut known, &counters);
    Ok(all)
}

/// Lucid's pairs, to test on.
pub fn lucid(data: &Path) -> Result<PairTable, String> {
    read(&data.join(LUCID), &PairOptions::default())
}

fn read(path: &Path, options: &PairOptions) -> Result<PairTable, String> {
    read_pairs(path, options).map_err(|error| error.to_string())
}

impl Measurements {
    fn add(
        &mut self,
        table: &PairTable,
        source: String,
        device: &str,
        known: &mut BTreeMap<(String, Workload), usize>,
        counters: &Counters,
    ) {
        let index = self.sources.len();
        self.sources.push(source);
        let jobs = &mut self.jobs;
        let mut job = |workload: &Workload| -> usize {
            let key = (device.to_owned(), workload.clone());
            *known.entry(key).or_insert_with(|| {
                let model = plain_name(&workload.model);
                let counters = counters.get(&(model.clone(), workload.batch)).copied();
                jobs.push(Job { model, counters });
                jobs.len() - 1
            })
        };
        for row in table.rows() {
            let Some((one_keeps, other_keeps)) = row.retention else { continue };
            let (one, other) = (job(&row.one), job(&row.other));
            let mut add = |own, other, retention: f64| {
                let retention = retention.min(1.0);
                self.observations.push(Observation { own, other, source: index, retention });
            };
            add(one, other, one_keeps);
            // Gavel has every pair both ways.
            if index + 1 > GAVEL.len() * GPU_TYPES.len() {
                add(other, one, other_keeps);
            }
        }
    }

    /// Names of models, each once, in order.
    pub fn models(&self) -> Vec<String> {
        let mut models: Vec<String> = self.jobs.iter().map(|job| job.model.clone()).collect();
        models.sort();
        models.dedup();
        models
    }
}

/// `ResNet-50` and `resnet50 (2 GPUs)` are both `resnet50`.
fn plain_name(model: &str) -> String {
    let name = model.split(" (").next().unwrap_or(model);
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// MISO's counters of the job types that Gavel has too: model and batch to (compute, bandwidth).
/// Its other models have Gavel's names at most, not their data sets.
fn counters(data: &Path) -> Result<Counters, String> {
    let mut counters = BTreeMap::new();
    for model in ["cyclegan", "transformer"] {
        let file = |counter: &str| -> Result<BTreeMap<String, f64>, String> {
            let path = data.join(format!("miso_util_collection/util_{counter}_{model}.json"));
            let shown = path.display();
            let text = std::fs::read_to_string(&path);
            let text = text.map_err(|error| format!("cannot read {shown}: {error}"))?;
            serde_json::from_str(&text).map_err(|error| format!("{shown}: {error}"))
        };
        let (compute, bandwidth) = (file("sm")?, file("mem")?);
        for (batch, compute) in compute {
            let used = bandwidth.get(&batch).copied().unwrap_or(0.0);
            let mut size: u32 = batch.parse().map_err(|_| format!("{model}: batch {batch}"))?;
            // Gavel's CycleGAN has a batch of 1, which its name does not say.
            if model == "cyclegan" {
                if size != 1 {
                    continue;
                }
                size = 0;
            }
            counters.insert((model.to_owned(), size), (compute / 100.0, used / 100.0));
        }
    }
    Ok(counters)
}
