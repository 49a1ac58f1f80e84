//! The Lucid artifact's peculiarities as named switches, for matching its published logs.
//!
//! Source: the Lucid artifact (ASPLOS '23); behaviour in its own words in `docs/compat-lucid.md`.
//! Not a second simulator: the same engine and policies, with these settings:
//!
//! | setting | artifact | default |
//! | --- | --- | --- |
//! | `engine.cycle` | decisions at whole seconds, one round each | at every event |
//! | `engine.placer` | remainder of a wide job on the next most free node | snuggest node |
//! | `sim.finish_lag` | SRTF and Tiresias notice an end one second late | at once |
//! | `restart.overhead_accumulates` | unpaid restart overhead adds up | it does not |
//! | `srtf.ties` | a waiting job preempts an equal running one | it does not |
//! | `srtf/tiresias.spare_unneeded` | evicts in vain | takes that back |
//! | `tiresias.interval` | decides every 60 s | at every event and crossing |
//! | `tiresias.demotion` | above the threshold | at the threshold |
//! | `qssf.first_second_by_gpus` | a fresh batch goes by GPU count for a second | by estimate |

use crate::settings::SimSettings;
use deepshare_engine::Placer;
use deepshare_model::Span;
use deepshare_policies::{Demotion, PolicyConfig, TieOrder};

/// What a negative run-time estimate counts as in the artifact.
pub const LUCID_NEGATIVE_ESTIMATE: Span = Span::from_secs(1_000);

/// Sets every switch as the Lucid artifact has it.
pub fn lucid(settings: &mut SimSettings) {
    settings.engine.cycle = Span::SECOND;
    settings.engine.placer = Placer::ConsolidateArtifact;
    settings.restart.overhead_accumulates = true;
    if settings.policy.preempts() {
        settings.finish_lag = Span::SECOND;
    }
    match &mut settings.policy {
        PolicyConfig::Srtf { ties, spare_unneeded } => {
            *ties = TieOrder::WaitingFirst;
            *spare_unneeded = false;
        }
        PolicyConfig::Tiresias { interval, demotion, spare_unneeded, .. } => {
            *interval = Span::from_secs(60);
            *demotion = Demotion::AboveThreshold;
            *spare_unneeded = false;
        }
        PolicyConfig::Qssf { first_second_by_gpus } => *first_second_by_gpus = true,
        PolicyConfig::Fifo { .. }
        | PolicyConfig::Sjf { .. }
        | PolicyConfig::Lucid(_)
        | PolicyConfig::EasyBackfill {}
        | PolicyConfig::ConservativeBackfill {}
        | PolicyConfig::ElasticQuota {}
        | PolicyConfig::SjfBsbf(_)
        | PolicyConfig::SjfFfs { .. }
        | PolicyConfig::TensorShare(_)
        | PolicyConfig::Gandiva {}
        | PolicyConfig::DeepShare(_) => {}
    }
}
