//! Which runs the tables of sharing have.

use crate::cases::{Case, Mode};
use deepshare_policies::{DeepShareSettings, PressureDemand};

fn without_sharing(settings: &mut DeepShareSettings) {
    settings.colocation.residents = 1;
}

/// Literal, spill, each with sharing off and on.
pub fn both() -> Vec<Case> {
    let modes = Mode::BOTH.into_iter();
    modes
        .flat_map(|mode| [mode.case(", off", without_sharing), mode.case(", on", |_| {})])
        .collect()
}

/// Literal with sharing.
pub fn literal_on() -> Case {
    Mode::Literal.case(", on", |_| {})
}

/// Only narrow jobs share.
pub fn narrow() -> Vec<Case> {
    let up_to = |gpus: u32, name: &str| {
        Mode::Literal.case(name, |settings| settings.colocation.max_gpus = gpus)
    };
    vec![up_to(1, ", on, jobs of 1 GPU"), up_to(8, ", on, jobs of up to 8 GPUs")]
}

/// Switches turned off one by one.
pub fn ablations() -> Vec<Case> {
    let case = |name: &str, turn: fn(&mut DeepShareSettings)| Mode::Literal.case(name, turn);
    vec![
        literal_on(),
        case(", off (no sharing)", without_sharing),
        case(", on, memory fit only", |s| s.colocation.by_prediction = false),
        case(", on, -colo", |s| s.colocation.by_qad = false),
        case(", on, -ord", |s| s.order_by_qad = false),
        case(", on, -rec", |s| s.reclaim = false),
        case(", on, -all", |s| {
            s.colocation.by_qad = false;
            s.order_by_qad = false;
            s.reclaim = false;
        }),
        case(", on, order by submission", |s| s.order_by_time = false),
        case(", off, order by submission", |s| {
            s.order_by_time = false;
            s.colocation.residents = 1;
        }),
        case(", on, pressure of guaranteed jobs", |s| {
            s.colocation.demand = PressureDemand::GuaranteedOnly;
        }),
        case(", on, pressure of all that wait", |s| {
            s.colocation.demand = PressureDemand::AllPending;
        }),
        case(", on, ρ_min 0.5", |s| s.colocation.rho_min_milli = 500),
        case(", on, ρ_min 0.8", |s| s.colocation.rho_min_milli = 800),
        case(", on, ρ_min 0.9", |s| s.colocation.rho_min_milli = 900),
        case(", on, γ 1", |s| s.colocation.gamma_milli = 1_000),
        case(", on, 4 candidates", |s| s.colocation.candidates = 4),
    ]
}

/// Multiples of all GPUs, thousandths.
pub const EPS_MILLI: [u32; 7] = [1, 250, 1_000, 2_000, 4_000, 8_000, 16_000];

/// The name of a line of a sweep.
pub fn eps_name(milli: u32) -> String {
    format!("ε = {}", f64::from(milli) / 1_000.0)
}

/// Literal over ε.
pub fn sweep(floor_milli: u32) -> Vec<Case> {
    let case = |milli: u32| {
        Case::deepshare(&eps_name(milli), |settings| {
            settings.colocation.eps_share_milli = milli;
            settings.colocation.guaranteed_floor_milli = floor_milli;
        })
    };
    let mut cases = vec![Case::deepshare("off", without_sharing)];
    cases.extend(EPS_MILLI.into_iter().map(case));
    cases
}
