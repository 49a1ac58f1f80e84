//! Settings that are one of a few words, or a list of policies.

use super::kind::{self, Kind};
use super::source::Raw;
use deepshare_engine::{CapacityMode, Placer};
use deepshare_interference::{Mechanism, SHIPPED_CONFIGURATIONS, SHIPPED_PAIRS, Shipped};
use deepshare_policies::{
    Demotion, PairOrder, Partners, PolicyConfig, SharingMode, SlowdownCheck, TieOrder,
};
use deepshare_policies::{LucidSharing, PressureDemand};
use deepshare_sim::Oversize;
use deepshare_trace::{Format, Origin, TimeUnit};
use std::path::PathBuf;
use toml_edit::Value;

/// Whose peculiarities to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compat {
    /// Nobody's.
    None,
    /// The Lucid artifact's.
    Lucid,
}

/// How quotas bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// As the cluster's description suggests.
    Auto,
    /// As said.
    Mode(CapacityMode),
}

/// A history that needs no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A month like a published one.
    Venus,
    /// A million jobs on ten thousand GPUs.
    Scale,
    /// Fifty jobs on sixteen GPUs.
    Testbed,
}

impl Preset {
    /// Its name in settings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Venus => "venus",
            Preset::Scale => "scale",
            Preset::Testbed => "testbed",
        }
    }
}

/// Where the classes of jobs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassesFrom {
    /// The trace.
    Trace,
    /// A coin.
    Coin,
    /// Whether the tenant's quota is taken.
    Overflow,
}

/// What DeepShare does without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ablation {
    /// Nothing.
    None,
    /// Order by quota assurance.
    Order,
    /// Tolerance of pairs by it.
    Colocation,
    /// Reclaim.
    Reclaim,
    /// All three.
    All,
}

impl Ablation {
    const ALL: [Ablation; 5] =
        [Ablation::None, Ablation::Order, Ablation::Colocation, Ablation::Reclaim, Ablation::All];

    /// The word for these switches, if there is one.
    pub fn of(switches: [bool; 3]) -> Option<Ablation> {
        Ablation::ALL.into_iter().find(|ablation| ablation.switches() == switches)
    }

    /// Whether tenants are ordered by quota assurance, whether the tolerance of pairs follows it, and
    /// whether there is reclaim.
    pub fn switches(self) -> [bool; 3] {
        match self {
            Ablation::None => [true, true, true],
            Ablation::Order => [false, true, true],
            Ablation::Colocation => [true, false, true],
            Ablation::Reclaim => [true, true, false],
            Ablation::All => [false, false, false],
        }
    }
}

/// Where hardware profiles come from if no file gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfilesFrom {
    /// Drawn from a built-in catalogue.
    Drawn,
    /// From nowhere: nobody shares.
    None,
}

/// Where run-time estimates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EstimatesFrom {
    /// Each policy's usual source.
    Default,
    /// The true duration.
    Oracle,
    /// The mean of the user's jobs that have ended.
    RunningMean,
    /// A file.
    File(PathBuf),
}

/// A table that comes with the program, or a file of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableFrom {
    /// One that comes with the program.
    Shipped(Shipped),
    /// A file.
    File(PathBuf),
}

impl TableFrom {
    /// The name or path, as people gave it.
    pub fn shown(&self) -> String {
        match self {
            TableFrom::Shipped(shipped) => shipped.name.to_owned(),
            TableFrom::File(path) => path.display().to_string(),
        }
    }

    fn read(raw: &Raw, shipped: &[Shipped]) -> Option<Option<TableFrom>> {
        let named = raw.word().and_then(|word| shipped.iter().find(|one| one.name == word));
        match (raw.word(), named) {
            (Some("none"), _) => Some(None),
            (_, Some(&shipped)) => Some(Some(TableFrom::Shipped(shipped))),
            _ => raw.path().map(|path| Some(TableFrom::File(path))),
        }
    }

    fn show(table: Option<&TableFrom>) -> Value {
        match table {
            None => Value::from("none"),
            Some(TableFrom::Shipped(shipped)) => Value::from(shipped.name),
            Some(TableFrom::File(path)) => kind::show_path(path),
        }
    }

    fn in_words(shipped: &[Shipped]) -> String {
        format!("the path of a file, or one of {}, or `none`", shipped_names(shipped))
    }
}

/// Names of what comes with the program, in words.
pub fn shipped_names(shipped: &[Shipped]) -> String {
    let names = shipped.iter().map(|one| format!("`{}`", one.name));
    names.collect::<Vec<_>>().join(", ")
}

/// Implements a kind of tables of which some come with the program.
macro_rules! tables {
    ($name:ident, $shipped:expr, $doc:literal) => {
        #[doc = $doc]
        pub struct $name;

        impl Kind for $name {
            type Of = Option<TableFrom>;
            const IN_WORDS: &'static str = "the path of a file, or a name, or `none`";
            fn in_words() -> String {
                TableFrom::in_words(&$shipped)
            }
            fn read(raw: &Raw) -> Option<Option<TableFrom>> {
                TableFrom::read(raw, &$shipped)
            }
            fn show(value: &Option<TableFrom>) -> Value {
                TableFrom::show(value.as_ref())
            }
        }
    };
}

tables!(ConfigurationsOrNone, SHIPPED_CONFIGURATIONS, "A pool of training configurations.");
tables!(PairsOrNone, SHIPPED_PAIRS, "A table of measured pairs.");

/// Implements a kind whose values are words.
macro_rules! words {
    ($name:ident, $of:ty, $doc:literal, $first:literal => $first_value:expr
     $(, $word:literal => $value:expr)*) => {
        #[doc = $doc]
        pub struct $name;

        impl Kind for $name {
            type Of = $of;
            const IN_WORDS: &'static str =
                concat!("`", $first, "`" $(, " or `", $word, "`")*);
            fn read(raw: &Raw) -> Option<$of> {
                match raw.word()? {
                    $first => Some($first_value),
                    $($word => Some($value),)*
                    _ => None,
                }
            }
            fn show(value: &$of) -> Value {
                let words = [($first_value, $first) $(, ($value, $word))*];
                let found = words.iter().find(|(one, _)| one == value);
                Value::from(found.map_or("", |&(_, word)| word))
            }
        }
    };
}

words!(CompatWord, Compat, "Whose peculiarities to copy.",
    "none" => Compat::None, "lucid" => Compat::Lucid);
words!(CapacityWord, Capacity, "How quotas bind.",
    "auto" => Capacity::Auto,
    "partition" => Capacity::Mode(CapacityMode::Partition),
    "hard" => Capacity::Mode(CapacityMode::Hard),
    "elastic" => Capacity::Mode(CapacityMode::Elastic),
    "pool" => Capacity::Mode(CapacityMode::Pool));
words!(ClassesWord, ClassesFrom, "Where the classes of jobs come from.",
    "trace" => ClassesFrom::Trace, "coin" => ClassesFrom::Coin,
    "overflow" => ClassesFrom::Overflow);
words!(PresetWord, Preset, "A history that needs no file.",
    "venus" => Preset::Venus, "scale" => Preset::Scale, "testbed" => Preset::Testbed);
words!(AblationWord, Ablation, "What DeepShare does without.",
    "none" => Ablation::None, "ord" => Ablation::Order, "colo" => Ablation::Colocation,
    "rec" => Ablation::Reclaim, "all" => Ablation::All);
words!(PlacementWord, Placer, "How devices are chosen.",
    "consolidate" => Placer::Consolidate,
    "consolidate-artifact" => Placer::ConsolidateArtifact,
    "node-order" => Placer::NodeOrder);
words!(OversizeWord, Oversize, "What to do about jobs that can never run.",
    "error" => Oversize::Error, "skip" => Oversize::Skip);
words!(TiesWord, TieOrder, "Who goes first at equal rank.",
    "running-first" => TieOrder::RunningFirst, "waiting-first" => TieOrder::WaitingFirst);
words!(DemotionWord, Demotion, "Whether attaining exactly the threshold demotes.",
    "at-threshold" => Demotion::AtThreshold, "above-threshold" => Demotion::AboveThreshold);
words!(SharingWord, LucidSharing, "When Lucid lets jobs share GPUs.",
    "forecast" => LucidSharing::Forecast, "on" => LucidSharing::On, "off" => LucidSharing::Off);
words!(PairOrderWord, PairOrder, "In which order jobs to share with are tried.",
    "completion" => PairOrder::Completion, "benefit" => PairOrder::Benefit,
    "benefit-per-gpu" => PairOrder::BenefitPerGpu);
words!(SharingModeWord, SharingMode, "Which pairs TensorShare forms.",
    "predicted" => SharingMode::Predicted, "ordinary" => SharingMode::Ordinary,
    "reactive" => SharingMode::Reactive, "never" => SharingMode::Never,
    "always" => SharingMode::Always);
words!(SlowdownCheckWord, SlowdownCheck, "How a prediction is held against a limit.",
    "steady" => SlowdownCheck::Steady, "time-aware" => SlowdownCheck::TimeAware);
words!(PartnersWord, Partners, "Between whom pairs are formed.",
    "both" => Partners::Both, "waiting" => Partners::Waiting, "running" => Partners::Running);
words!(PressureWord, PressureDemand, "Whose demand makes contention pressure.",
    "promoted" => PressureDemand::Promoted,
    "guaranteed-only" => PressureDemand::GuaranteedOnly,
    "all-pending" => PressureDemand::AllPending);
words!(ProfilesWord, ProfilesFrom, "Where profiles come from.",
    "drawn" => ProfilesFrom::Drawn, "none" => ProfilesFrom::None);
words!(MechanismWord, Mechanism, "How jobs share a GPU.",
    "mps" => Mechanism::Mps, "time-slicing" => Mechanism::TimeSlicing);
words!(FormatWord, Option<Format>, "A family of column names.",
    "auto" => None, "helios" => Some(Format::Helios), "philly" => Some(Format::Philly),
    "deepshare" => Some(Format::DeepShare));
words!(TimeUnitWord, Option<TimeUnit>, "The unit of numeric times.",
    "auto" => None, "s" => Some(TimeUnit::Seconds), "ms" => Some(TimeUnit::Millis),
    "us" => Some(TimeUnit::Micros));

/// Time zero of a log with dates.
pub struct OriginWord;

impl Kind for OriginWord {
    type Of = Origin;
    const IN_WORDS: &'static str =
        "`first-day` or `first-job` or a date and time as `2020-09-01 00:00:00`";
    fn read(raw: &Raw) -> Option<Origin> {
        match raw.word() {
            Some("first-day") => Some(Origin::FirstDay),
            Some("first-job") => Some(Origin::FirstJob),
            _ => kind::date_time(raw).map(Origin::At),
        }
    }
    fn show(value: &Origin) -> Value {
        match value {
            Origin::FirstDay => Value::from("first-day"),
            Origin::FirstJob => Value::from("first-job"),
            Origin::At(time) => kind::show_date_time(time),
        }
    }
}

/// Where run-time estimates come from.
pub struct EstimatesWord;

impl Kind for EstimatesWord {
    type Of = EstimatesFrom;
    const IN_WORDS: &'static str = "`default` or `oracle` or `running-mean` or the path of a file";
    fn read(raw: &Raw) -> Option<EstimatesFrom> {
        match raw.word() {
            Some("default") => Some(EstimatesFrom::Default),
            Some("oracle") => Some(EstimatesFrom::Oracle),
            Some("running-mean") => Some(EstimatesFrom::RunningMean),
            _ => raw.path().map(EstimatesFrom::File),
        }
    }
    fn show(value: &EstimatesFrom) -> Value {
        match value {
            EstimatesFrom::Default => Value::from("default"),
            EstimatesFrom::Oracle => Value::from("oracle"),
            EstimatesFrom::RunningMean => Value::from("running-mean"),
            EstimatesFrom::File(path) => kind::show_path(path),
        }
    }
}

/// A list of policies.
pub struct Policies;

impl Kind for Policies {
    type Of = Vec<&'static str>;
    const IN_WORDS: &'static str = "`all`, or one or more policies";
    fn in_words() -> String {
        let all = PolicyConfig::NAMES.join(", ");
        format!("`all`, or one or more of {all}")
    }
    fn read(raw: &Raw) -> Option<Vec<&'static str>> {
        let mut names: Vec<&'static str> = Vec::new();
        for item in raw.items() {
            let word = item.as_str()?.trim();
            let known = PolicyConfig::NAMES.iter().filter(|&&name| word == "all" || name == word);
            let before = names.len();
            let mut matched = false;
            for &name in known {
                matched = true;
                if !names[..before].contains(&name) {
                    names.push(name);
                }
            }
            if !matched {
                return None;
            }
        }
        (!names.is_empty()).then_some(names)
    }
    fn show(value: &Vec<&'static str>) -> Value {
        Value::Array(value.iter().copied().collect())
    }
}
