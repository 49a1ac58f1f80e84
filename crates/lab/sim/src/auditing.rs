//! The auditor that knows what a policy promises.

use deepshare_audit::{Auditor, PressureOf, ReclaimRules, ShareRules, ToleranceRules};
use deepshare_engine::EngineSettings;
use deepshare_policies::{DeepShareSettings, PolicyConfig, PressureDemand};

/// An auditor of an engine under these settings and this policy, which has seen no event yet.
pub fn auditor_of(engine: &EngineSettings, policy: &PolicyConfig) -> Auditor {
    let auditor = Auditor::new(engine);
    let settings = match policy {
        PolicyConfig::DeepShare(settings) => settings,
        PolicyConfig::Lucid(_) if policy.shares() => return auditor.shares(LUCID),
        PolicyConfig::SjfBsbf(_) | PolicyConfig::SjfFfs { .. } => return auditor.shares(SJF),
        PolicyConfig::TensorShare(settings) if policy.shares() => {
            return auditor.shares(ShareRules { by_limit: settings.guard, ..EVEN });
        }
        PolicyConfig::Gandiva {} => return auditor.shares(EVEN),
        _ => return auditor,
    };
    let auditor = match share_rules(settings) {
        Some(rules) => auditor.shares(rules),
        None => auditor,
    };
    match settings.reclaim {
        true => auditor.reclaims(ReclaimRules { preemption_cap: settings.preemption_cap }),
        false => auditor,
    }
}

/// What Lucid promises of pairs: they are narrow. It knows no classes and predicts no speed.
const LUCID: ShareRules = ShareRules {
    both_guaranteed: true,
    floor_ppm: 0,
    most_gpus: 8,
    by_prediction: false,
    in_part: false,
    by_limit: false,
    tolerance: None,
};

/// What TensorShare and Gandiva promise of pairs beyond what holds of all: what is agreed is kept as far
/// as is known.
const EVEN: ShareRules = ShareRules { most_gpus: 0, by_prediction: true, ..LUCID };

/// What the SJF policies promise of pairs: the same, and gangs may share in part.
const SJF: ShareRules = ShareRules { in_part: true, ..EVEN };

/// What DeepShare promises of pairs; `None` if it lets nobody share.
fn share_rules(settings: &DeepShareSettings) -> Option<ShareRules> {
    let colocation = &settings.colocation;
    let demand = match colocation.demand {
        PressureDemand::Promoted => PressureOf::Promoted,
        PressureDemand::GuaranteedOnly => PressureOf::GuaranteedOnly,
        PressureDemand::AllPending => PressureOf::AllPending,
    };
    (colocation.residents > 1).then_some(ShareRules {
        both_guaranteed: false,
        floor_ppm: colocation.guaranteed_floor_milli * 1_000,
        most_gpus: colocation.max_gpus,
        by_prediction: colocation.by_prediction,
        in_part: false,
        by_limit: false,
        tolerance: Some(ToleranceRules {
            rho_min_milli: colocation.rho_min_milli,
            gamma_milli: colocation.gamma_milli,
            eps_share_milli: colocation.eps_share_milli,
            demand,
            by_qad: colocation.by_qad,
            spill: settings.spill,
            guards: !settings.gang_guard.is_zero(),
        }),
    })
}
