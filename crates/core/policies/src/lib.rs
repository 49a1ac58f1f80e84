//! Scheduling policies, one file each. A file's header is its manual page: source, objective,
//! deviations, cost.
//!
//! To add one: write `my_policy.rs` with a type that implements [`Policy`]; add a variant to
//! [`PolicyConfig`] and a line to [`PolicyConfig::build`]; give it a scenario in `scenarios/`.
//! See CONTRIBUTING.md for the checklist.

mod backfill;
mod budget;
mod config;
mod conservative_backfill;
mod deepshare;
mod easy_backfill;
mod elastic_quota;
mod fifo;
mod in_order;
mod lucid;
mod qssf;
mod sjf;
mod srtf;
mod tiresias;

pub use config::PolicyConfig;
pub use conservative_backfill::ConservativeBackfill;
pub use deepshare::{ColocationSettings, DeepShare, DeepShareSettings, PressureDemand};
pub use deepshare_engine::Policy;
pub use easy_backfill::EasyBackfill;
pub use elastic_quota::ElasticQuota;
pub use fifo::Fifo;
pub use lucid::{Lucid, LucidSettings, LucidSharing};
pub use qssf::Qssf;
pub use sjf::Sjf;
pub use srtf::{Srtf, TieOrder};
pub use tiresias::{Demotion, Tiresias};
