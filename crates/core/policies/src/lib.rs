//! Scheduling policies, one file each. A file's header is its manual page: source, objective,
//! deviations, cost.
//!
//! To add one: write `my_policy.rs` with a type that implements [`Policy`]; add a variant to
//! [`PolicyConfig`] and a line to [`PolicyConfig::build`]; give it a scenario in `scenarios/`.
//! See CONTRIBUTING.md for the checklist.

mod backfill;
mod bsbf;
mod budget;
mod config;
mod conservative_backfill;
mod deepshare;
mod easy_backfill;
mod elastic_quota;
mod fifo;
mod gandiva;
mod in_order;
mod lucid;
mod pairing;
mod qssf;
mod sjf;
mod srtf;
mod tensorshare;
mod tiresias;
mod whole_pairs;

pub use bsbf::{BsbfSettings, PairOrder, SjfSharing};
pub use config::PolicyConfig;
pub use conservative_backfill::ConservativeBackfill;
pub use deepshare::{ColocationSettings, DeepShare, DeepShareSettings, PressureDemand};
pub use deepshare_engine::Policy;
pub use easy_backfill::EasyBackfill;
pub use elastic_quota::ElasticQuota;
pub use fifo::Fifo;
pub use gandiva::Gandiva;
pub use lucid::{Lucid, LucidSettings, LucidSharing};
pub use pairing::{
    EXACT_UP_TO, Edge, Member, Past, SlowdownCheck, Split, best_split, extra_s, gain, is_within,
    max_weight_matching, overlap_s, ratio, sharing_pays, span_s, t_apart, t_together,
    t_together_split, t_together_until_alone,
};
pub use qssf::Qssf;
pub use sjf::Sjf;
pub use srtf::{Srtf, TieOrder};
pub use tensorshare::{Partners, SharingMode, TensorShare, TensorShareSettings};
pub use tiresias::{Demotion, Tiresias};
