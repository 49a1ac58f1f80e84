//! Every policy with its settings, by name.

use crate::srtf::TieOrder;
use crate::tiresias::{Demotion, Tiresias};
use crate::{
    BsbfSettings, ConservativeBackfill, DeepShare, DeepShareSettings, EasyBackfill, ElasticQuota,
    Fifo, Gandiva, Lucid, LucidSettings, Qssf, SharingMode, Sjf, SjfSharing, Srtf, TensorShare,
    TensorShareSettings,
};
use deepshare_engine::{EngineSettings, Policy};
use deepshare_model::{GpuTime, Span};
use serde::{Deserialize, Serialize};

/// A policy and its settings. The defaults are those of [`PolicyConfig::by_name`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PolicyConfig {
    /// First come, first served.
    Fifo {
        /// Pass over a job that does not fit instead of blocking those behind it.
        skip: bool,
    },
    /// Shortest job first.
    Sjf {
        /// Pass over a job that does not fit instead of blocking those behind it.
        skip: bool,
    },
    /// Shortest remaining time first, preemptive.
    Srtf {
        /// Who goes first at equal remaining time.
        ties: TieOrder,
        /// Let a victim run on if nobody could use its devices.
        spare_unneeded: bool,
    },
    /// Quasi-shortest-service first.
    Qssf {
        /// Serve a batch that arrives to an empty queue by GPU count in its first second.
        first_second_by_gpus: bool,
    },
    /// Discretised two-dimensional least attained service, preemptive.
    Tiresias {
        /// Attained service, GPU time, at which a job drops to the next queue; ascending.
        #[serde(with = "gpu_microseconds")]
        thresholds: Vec<GpuTime>,
        /// Decide only at multiples of this; zero: at every event.
        interval: Span,
        /// Back to the first queue after waiting this many thousandths of its running time;
        /// `None`: never.
        promote_after_milli: Option<u64>,
        /// Whether attaining exactly the threshold demotes.
        demotion: Demotion,
        /// Let a victim run on if nobody could use its devices.
        spare_unneeded: bool,
    },
    /// Packing by sharing score, in order of estimated GPU time.
    Lucid(LucidSettings),
    /// FIFO with a reservation for the first blocked job.
    EasyBackfill {},
    /// FIFO with a reservation for every waiting job.
    ConservativeBackfill {},
    /// In or out of quota, as a binary signal.
    ElasticQuota {},
    /// Shortest job first, sharing where both end sooner on the mean.
    SjfBsbf(BsbfSettings),
    /// Shortest job first, sharing wherever it fits.
    SjfFfs {
        /// Iterations may be done in several steps where memory does not hold both jobs.
        split: bool,
    },
    /// Sharing within a limit of slowdown for each job.
    #[serde(rename = "tensorshare")]
    TensorShare(TensorShareSettings),
    /// Packing at random under overload.
    Gandiva {},
    /// The quota assurance degree behind order, borrowing and reclaim.
    #[serde(rename = "deepshare")]
    DeepShare(DeepShareSettings),
}

/// GPU times as numbers of 64 bits: serde has no more for what it reads by its tag.
mod gpu_microseconds {
    use deepshare_model::GpuTime;
    use serde::de::Deserialize;
    use serde::ser::{Error, Serialize};
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(times: &[GpuTime], serializer: S) -> Result<S::Ok, S::Error> {
        let numbers: Result<Vec<u64>, _> = times.iter().map(|time| u64::try_from(time.0)).collect();
        numbers.map_err(|_| S::Error::custom("more than 500,000 GPU-years"))?.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<GpuTime>, D::Error> {
        let numbers = Vec::<u64>::deserialize(from)?;
        Ok(numbers.into_iter().map(|number| GpuTime(number.into())).collect())
    }
}

impl PolicyConfig {
    /// Every policy's name, in the order tables list them.
    pub const NAMES: [&'static str; 14] = [
        "fifo",
        "sjf",
        "srtf",
        "qssf",
        "tiresias",
        "lucid",
        "easy-backfill",
        "conservative-backfill",
        "elastic-quota",
        "sjf-bsbf",
        "sjf-ffs",
        "tensorshare",
        "gandiva",
        "deepshare",
    ];

    /// The policy of this name with default settings.
    pub fn by_name(name: &str) -> Option<PolicyConfig> {
        Some(match name {
            "fifo" => PolicyConfig::Fifo { skip: false },
            "sjf" => PolicyConfig::Sjf { skip: false },
            "srtf" => PolicyConfig::Srtf { ties: TieOrder::RunningFirst, spare_unneeded: true },
            "qssf" => PolicyConfig::Qssf { first_second_by_gpus: false },
            "tiresias" => PolicyConfig::Tiresias {
                thresholds: vec![Span::from_secs(18_000).on(1)],
                interval: Span::ZERO,
                promote_after_milli: None,
                demotion: Demotion::AtThreshold,
                spare_unneeded: true,
            },
            "lucid" => PolicyConfig::Lucid(LucidSettings::default()),
            "easy-backfill" => PolicyConfig::EasyBackfill {},
            "conservative-backfill" => PolicyConfig::ConservativeBackfill {},
            "elastic-quota" => PolicyConfig::ElasticQuota {},
            "sjf-bsbf" => PolicyConfig::SjfBsbf(BsbfSettings::default()),
            "sjf-ffs" => PolicyConfig::SjfFfs { split: true },
            "tensorshare" => PolicyConfig::TensorShare(TensorShareSettings::default()),
            "gandiva" => PolicyConfig::Gandiva {},
            "deepshare" => PolicyConfig::DeepShare(DeepShareSettings::default()),
            _ => return None,
        })
    }

    /// Its name in settings and results.
    pub fn name(&self) -> &'static str {
        match self {
            PolicyConfig::Fifo { .. } => "fifo",
            PolicyConfig::Sjf { .. } => "sjf",
            PolicyConfig::Srtf { .. } => "srtf",
            PolicyConfig::Qssf { .. } => "qssf",
            PolicyConfig::Tiresias { .. } => "tiresias",
            PolicyConfig::Lucid(_) => "lucid",
            PolicyConfig::EasyBackfill {} => "easy-backfill",
            PolicyConfig::ConservativeBackfill {} => "conservative-backfill",
            PolicyConfig::ElasticQuota {} => "elastic-quota",
            PolicyConfig::SjfBsbf(_) => "sjf-bsbf",
            PolicyConfig::SjfFfs { .. } => "sjf-ffs",
            PolicyConfig::TensorShare(_) => "tensorshare",
            PolicyConfig::Gandiva {} => "gandiva",
            PolicyConfig::DeepShare(_) => "deepshare",
        }
    }

    /// True if it orders or plans by run-time estimates.
    pub fn uses_estimates(&self) -> bool {
        !matches!(
            self,
            PolicyConfig::Fifo { .. }
                | PolicyConfig::Tiresias { .. }
                | PolicyConfig::ElasticQuota {}
                | PolicyConfig::Gandiva {}
        )
    }

    /// True if it goes by what jobs are predicted to keep beside each other. Others are told that they
    /// keep all, and learn.
    pub fn predicts_pairs(&self) -> bool {
        match self {
            PolicyConfig::TensorShare(settings) => {
                matches!(settings.mode, SharingMode::Predicted | SharingMode::Always)
            }
            PolicyConfig::Gandiva {} => false,
            _ => true,
        }
    }

    /// True if it lets jobs share devices.
    pub fn shares(&self) -> bool {
        self.build().shares()
    }

    /// True if it evicts running jobs.
    pub fn preempts(&self) -> bool {
        match self {
            PolicyConfig::Srtf { .. }
            | PolicyConfig::Tiresias { .. }
            | PolicyConfig::ElasticQuota {} => true,
            PolicyConfig::DeepShare(settings) => settings.reclaim,
            PolicyConfig::Lucid(settings) => settings.profiler_nodes > 0,
            _ => false,
        }
    }

    /// Engine settings that suit the policy. DeepShare decides in slots of 50 ms (spec §2, cycle),
    /// and a job that was reclaimed before pauses; everything else is the engine's default.
    pub fn engine_settings(&self) -> EngineSettings {
        let plain = EngineSettings::default();
        match self {
            PolicyConfig::DeepShare(_) => EngineSettings {
                cycle: Span(50_000),
                preempted_pause: Span::from_secs(30),
                ..plain
            },
            // The guard looks at each sample itself.
            PolicyConfig::TensorShare(settings) if settings.mode == SharingMode::Predicted => {
                EngineSettings { pair_samples: 0, pair_slack_ppm: 0, ..plain }
            }
            // A minute of samples, held against the limits as they are.
            PolicyConfig::TensorShare(_) => {
                EngineSettings { pair_samples: 6, pair_slack_ppm: 0, ..plain }
            }
            PolicyConfig::Gandiva {} => EngineSettings { pair_slack_ppm: 0, ..plain },
            _ => plain,
        }
    }

    /// A fresh value of the policy.
    pub fn build(&self) -> Box<dyn Policy> {
        match self {
            PolicyConfig::Fifo { skip } => Box::new(Fifo { skip: *skip }),
            PolicyConfig::Sjf { skip } => Box::new(Sjf { skip: *skip }),
            PolicyConfig::Srtf { ties, spare_unneeded } => {
                Box::new(Srtf { ties: *ties, spare_unneeded: *spare_unneeded })
            }
            PolicyConfig::Qssf { first_second_by_gpus } => {
                Box::new(Qssf { first_second_by_gpus: *first_second_by_gpus })
            }
            PolicyConfig::Tiresias {
                thresholds,
                interval,
                promote_after_milli,
                demotion,
                spare_unneeded,
            } => Box::new(Tiresias {
                thresholds: thresholds.clone(),
                interval: *interval,
                promote_after_milli: *promote_after_milli,
                demotion: *demotion,
                spare_unneeded: *spare_unneeded,
            }),
            PolicyConfig::Lucid(settings) => Box::new(Lucid { settings: settings.clone() }),
            PolicyConfig::EasyBackfill {} => Box::new(EasyBackfill),
            PolicyConfig::ConservativeBackfill {} => Box::new(ConservativeBackfill::default()),
            PolicyConfig::ElasticQuota {} => Box::new(ElasticQuota),
            PolicyConfig::SjfBsbf(settings) => {
                Box::new(SjfSharing { wise: Some(settings.order), split: settings.split })
            }
            PolicyConfig::SjfFfs { split } => Box::new(SjfSharing { wise: None, split: *split }),
            PolicyConfig::TensorShare(settings) => Box::new(TensorShare { settings: *settings }),
            PolicyConfig::Gandiva {} => Box::new(Gandiva),
            PolicyConfig::DeepShare(settings) => Box::new(DeepShare { settings: settings.clone() }),
        }
    }
}
