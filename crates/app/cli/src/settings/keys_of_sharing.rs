//! Keys about what jobs that share GPUs run, and what they do to each other.

use super::choices::{ConfigurationsOrNone, MechanismWord, PairsOrNone, ProfilesWord};
use super::key::{Key, WrongKind, key};
use super::kind::{
    Chance, ChanceOrNone, Count32, FactorOrNone, FileOrNone, Kind, Seconds, TextOrNone,
};

pub(super) const PROFILES_FROM: Key = key!(
    "sharing.profiles",
    "",
    ProfilesWord,
    settings.sharing.profiles,
    "hardware profiles of jobs, without which nobody shares: drawn with the seed from a built-in \
     catalogue unless a file gives them, or none; see `profiles.file` and `configurations.file`"
);

pub(super) const MECHANISM: Key = key!(
    "sharing.mechanism",
    "",
    MechanismWord,
    settings.sharing.mechanism,
    "how jobs share a GPU: `mps` or `time-slicing`; decides the slowdown of pairs that no file \
     lists"
);

pub(super) const PREDICTION_R2: Key = key!(
    "sharing.prediction_r2",
    "",
    ChanceOrNone,
    settings.sharing.prediction_r2_milli,
    "R² of the speeds of pairs that policies are told, against the true ones; 1: the truth; \
     `none`, and by default where that is set: as `sharing.prediction_mae` says"
);

pub(super) const PREDICTION_MAE: Key = key!(
    "sharing.prediction_mae",
    "",
    FactorOrNone,
    settings.sharing.prediction_mae_milli,
    "mean absolute error of the slowdowns that policies are told (1 is none), instead of an R² of \
     speeds; 0: the truth; excludes `sharing.prediction_r2`"
);

pub(super) const NOISE: Key = key!(
    "sharing.noise",
    "",
    Chance,
    settings.sharing.noise_milli,
    "standard deviation of readings of a pair, as a share of the true speed"
);

pub(super) const SAMPLE_PERIOD: Key = key!(
    "sharing.sample_period_s",
    "s",
    Seconds,
    settings.sharing.sample_period,
    "time between two readings of a pair"
);

pub(super) const GPU_MEMORY: Key = key!(
    "sharing.gpu_memory_mib",
    "MiB",
    Count32,
    settings.sharing.gpu_memory_mib,
    "memory of GPUs whose node does not say, if jobs have profiles"
);

pub(super) const PAIRS_GPU: Key = key!(
    "pairs.gpu",
    "",
    TextOrNone,
    settings.tables.pairs_gpu,
    "which GPU type to take of a file of pairs that has several"
);

pub(super) const PROFILES_FILE: Key = key!(
    "profiles.file",
    "",
    FileOrNone,
    settings.tables.profiles,
    "what each job runs, its hardware profile, for policies that let jobs share GPUs; `none`: as \
     `configurations.file` or else `sharing.profiles` says; flag `--profiles`"
);

pub(super) const CONFIGURATIONS_FILE: Key = key!(
    "configurations.file",
    "",
    ConfigurationsOrNone,
    settings.tables.configurations,
    "a pool of training configurations from which jobs draw, with the seed, what they run; excludes \
     `profiles.file`; flag `--configurations`"
);

pub(super) const PAIRS_FILE: Key = key!(
    "pairs.file",
    "",
    PairsOrNone,
    settings.tables.pairs,
    "measured speeds of pairs of workloads on one GPU; pairs that it lacks go by the contention \
     model; flag `--pairs`"
);
