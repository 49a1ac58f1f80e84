//! Everything a run depends on beside files: one table of keys, from files, `--set` and flags.
//!
//! Precedence, weakest first: defaults, `compat`, the settings file, `--set`, flags. Every problem
//! of every source is reported at once. [`KEYS`] is the only list of keys: reading, writing, the
//! reference and suggestions all come from it.

mod check;
mod choices;
mod key;
mod keys;
mod keys_of_sharing;
mod kind;
mod reference;
mod source;
#[cfg(test)]
mod tests;
mod write;

pub use check::generated as problems_of_generated;
pub use choices::{
    Capacity, ClassesFrom, Compat, EstimatesFrom, Preset, PresetWord, ProfilesFrom, TableFrom,
    shipped_names,
};
pub use deepshare_settings_file::Problem;
pub use key::Key;
pub use keys::KEYS;
pub use kind::Kind;
pub use reference::reference;
pub use source::{Assignment, Raw, from_file, from_text};
pub use write::{to_json, to_toml};

use deepshare_interference::Mechanism;
use deepshare_model::Span;
use deepshare_policies::PolicyConfig;
use deepshare_sim::{SimSettings, compat};
use deepshare_trace::{Format, TimeOptions, TimeUnit};
use std::path::{Path, PathBuf};

/// Seed of the built-in month and of every random stream, if none is given.
const DEFAULT_SEED: u64 = 1;

/// Everything a run depends on beside the contents of files.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whose peculiarities to copy.
    pub compat: Compat,
    /// Which policies to run, in this order; names are those of [`PolicyConfig::NAMES`].
    pub policies: Vec<&'static str>,
    /// Where run-time estimates come from.
    pub estimates: EstimatesFrom,
    /// How quotas bind.
    pub capacity: Capacity,
    /// Which jobs are best-effort.
    pub classes: ClassesFrom,
    /// Share of best-effort jobs, thousandths; the usual one if `None`.
    pub best_effort_milli: Option<u32>,
    /// What a negative estimate of a file counts as; refused if `None`.
    pub negative_estimate: Option<Span>,
    /// The job history.
    pub trace: TraceSettings,
    /// The cluster.
    pub cluster: ClusterSettings,
    /// What is known of jobs beside the history.
    pub tables: TableSettings,
    /// Jobs that share GPUs.
    pub sharing: SharingSettings,
    /// The history that needs no file.
    pub generate: GenerateSettings,
    /// Node failures.
    pub outages: OutageSettings,
    /// The simulator's settings for each policy, in the order of [`PolicyConfig::NAMES`]. What
    /// other fields decide (capacity, classes, estimates, outages) is not in here yet.
    pub runs: Vec<SimSettings>,
}

/// The job history.
#[derive(Clone, Debug, Default)]
pub struct TraceSettings {
    /// Its file; `None` for the built-in month.
    pub file: Option<PathBuf>,
    /// The event log of a live scheduler, in place of a file.
    pub log: Option<PathBuf>,
    /// A file that orders simultaneous jobs.
    pub order_file: Option<PathBuf>,
    /// Its format; recognised if `None`.
    pub format: Option<Format>,
    /// The unit of its times; seconds, checked, if `None`.
    pub time_unit: Option<TimeUnit>,
    /// Where the clock starts and what is kept.
    pub times: TimeOptions,
}

impl TraceSettings {
    /// The history that was named: a trace file, or an event log.
    pub fn named(&self) -> Option<&Path> {
        self.file.as_deref().or(self.log.as_deref())
    }
}

/// The cluster.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Its file; `None` for that of the built-in month.
    pub file: Option<PathBuf>,
    /// GPUs of each node of a `vc_config.csv`.
    pub gpus_per_node: u64,
}

/// Files about jobs and workloads.
#[derive(Clone, Debug, Default)]
pub struct TableSettings {
    /// What jobs compute.
    pub profiles: Option<PathBuf>,
    /// What jobs draw their training from.
    pub configurations: Option<TableFrom>,
    /// Measured speeds of pairs.
    pub pairs: Option<TableFrom>,
    /// Lucid's sharing scores.
    pub workloads: Option<PathBuf>,
    /// Lucid's forecast of arrivals.
    pub forecast: Option<PathBuf>,
    /// The GPU type of the pairs to take.
    pub pairs_gpu: Option<String>,
}

/// What jobs that share GPUs do to each other.
#[derive(Clone, Debug)]
pub struct SharingSettings {
    /// Where profiles come from if no file gives them.
    pub profiles: ProfilesFrom,
    /// How they share.
    pub mechanism: Mechanism,
    /// R² of what policies are told, thousandths.
    pub prediction_r2_milli: Option<u32>,
    /// Mean absolute error of slowdowns that they are told, thousandths. Checked settings have this or
    /// R².
    pub prediction_mae_milli: Option<u32>,
    /// Noise of readings, thousandths.
    pub noise_milli: u32,
    /// Time between readings.
    pub sample_period: Span,
    /// Memory of GPUs whose node does not say.
    pub gpu_memory_mib: u32,
}

impl Default for SharingSettings {
    fn default() -> Self {
        SharingSettings {
            profiles: ProfilesFrom::Drawn,
            mechanism: Mechanism::Mps,
            prediction_r2_milli: Some(902),
            prediction_mae_milli: None,
            noise_milli: 30,
            sample_period: Span::from_secs(10),
            gpu_memory_mib: 24_576,
        }
    }
}

/// The history that needs no file.
#[derive(Clone, Debug)]
pub struct GenerateSettings {
    /// Which one.
    pub preset: Preset,
    /// Number of jobs; the usual one, for the month by its days, if `None`.
    pub jobs: Option<u64>,
    /// Days over which those of the month are submitted; the usual 26 if `None`.
    pub days: Option<u64>,
}

/// Node failures.
#[derive(Clone, Debug, Default)]
pub struct OutageSettings {
    /// A file that lists them.
    pub file: Option<PathBuf>,
    /// Mean time a node stays up.
    pub mean_up: Option<Span>,
    /// Mean time it then is away.
    pub mean_down: Option<Span>,
}

impl Settings {
    /// The defaults under this compatibility setting.
    pub fn new(compatibility: Compat) -> Settings {
        let runs = PolicyConfig::NAMES.map(|name| {
            let policy = PolicyConfig::by_name(name).expect("it is in the list of names");
            let mut run = SimSettings::new(policy);
            run.seed = DEFAULT_SEED;
            if compatibility == Compat::Lucid {
                compat::lucid(&mut run);
            }
            run
        });
        let mut settings = Settings {
            compat: compatibility,
            policies: PolicyConfig::NAMES.to_vec(),
            estimates: EstimatesFrom::Default,
            capacity: Capacity::Auto,
            classes: ClassesFrom::Trace,
            best_effort_milli: None,
            negative_estimate: None,
            trace: TraceSettings::default(),
            cluster: ClusterSettings { file: None, gpus_per_node: 8 },
            tables: TableSettings::default(),
            sharing: SharingSettings::default(),
            generate: GenerateSettings { preset: Preset::Venus, jobs: None, days: None },
            outages: OutageSettings::default(),
            runs: runs.into(),
        };
        if compatibility == Compat::Lucid {
            // It runs outside the engine, and needs files.
            settings.policies.retain(|&policy| policy != crate::lucid::POLICY);
            settings.trace.times = TimeOptions::lucid();
            settings.negative_estimate = Some(compat::LUCID_NEGATIVE_ESTIMATE);
        }
        settings
    }

    /// The settings that `assignments`, weakest first, amount to.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn of(assignments: &[Assignment]) -> Result<Settings, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut probe = Settings::new(Compat::None);
        for assignment in assignments.iter().filter(|one| one.key.name == "compat") {
            // Read again below, where what is wrong with it is reported.
            let _ = (assignment.key.set)(&mut probe, &assignment.value);
        }
        let mut settings = Settings::new(probe.compat);
        let said = |name: &str| assignments.iter().any(|one| one.key.name == name);
        for Assignment { key, value, place } in assignments {
            if (key.set)(&mut settings, value).is_err() {
                let what = format!("{} = {value}: expected {}", key.name, (key.kind)());
                problems.push(Problem { place: place.clone(), what });
            }
        }
        if settings.best_effort_milli.is_some() && !said("classes") {
            settings.classes = ClassesFrom::Coin;
        }
        if settings.sharing.prediction_mae_milli.is_some() && !said("sharing.prediction_r2") {
            settings.sharing.prediction_r2_milli = None;
        }
        if problems.is_empty() {
            problems = check::problems(&settings, assignments);
        }
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    /// The simulator's settings for a policy.
    pub fn run(&self, policy: &str) -> &SimSettings {
        let run = self.runs.iter().find(|run| run.policy.name() == policy);
        run.expect("there are settings for every policy")
    }

    /// The seed of every random stream.
    pub fn seed(&self) -> u64 {
        self.runs[0].seed
    }
}

/// The key of this name, in which hyphens may stand for underscores.
///
/// # Errors
/// What to say if there is none, with the nearest name.
pub fn find_key(name: &str) -> Result<&'static Key, String> {
    let name = &name.replace('-', "_");
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(key);
    }
    let near = |key: &&Key| strsim::damerau_levenshtein(key.name, name);
    let nearest = KEYS.iter().min_by_key(near).expect("there are keys");
    // A name within a third of its length is a slip; one whose last part is right is misplaced.
    let slip = strsim::damerau_levenshtein(nearest.name, name) <= name.len().div_ceil(3);
    let table = format!("{name}.");
    if let Some(inside) = KEYS.iter().find(|key| key.name.starts_with(&table)) {
        return Err(format!("`{name}` is a group of keys; did you mean `{}`?", inside.name));
    }
    let misplaced = KEYS.iter().find(|key| key.name.rsplit('.').next() == name.rsplit('.').next());
    let hint = match (slip, misplaced) {
        (true, _) => format!("did you mean `{}`?", nearest.name),
        (false, Some(key)) => format!("did you mean `{}`?", key.name),
        (false, None) => "`deepshare settings` lists all keys".to_owned(),
    };
    Err(format!("unknown key `{name}`; {hint}"))
}
