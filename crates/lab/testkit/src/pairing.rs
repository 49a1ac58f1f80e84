//! How policies pair jobs and how jobs train, drawn.

use crate::chance::{chance, one};
use deepshare_model::{IterationTime, Training, TrainingMemory};
use deepshare_policies::{PairOrder, Partners, PolicyConfig, SharingMode, SlowdownCheck};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Draws how the policies decide that pair jobs.
pub(crate) fn sharing(rng: &mut Pcg64Mcg, policy: &mut PolicyConfig) {
    match policy {
        PolicyConfig::SjfBsbf(sharing) => {
            sharing.order =
                one(rng, &[PairOrder::Completion, PairOrder::Benefit, PairOrder::BenefitPerGpu]);
            sharing.split = chance(rng, 80);
        }
        PolicyConfig::SjfFfs { split } => *split = chance(rng, 80),
        PolicyConfig::TensorShare(sharing) => {
            let modes = [
                SharingMode::Predicted,
                SharingMode::Predicted,
                SharingMode::Ordinary,
                SharingMode::Reactive,
                SharingMode::Never,
                SharingMode::Always,
            ];
            sharing.mode = one(rng, &modes);
            sharing.limit_milli = one(rng, &[1_000, 1_100, 1_300, 2_000]);
            sharing.check = one(rng, &[SlowdownCheck::Steady, SlowdownCheck::TimeAware]);
            sharing.chance = one(rng, &[50, 70, 90]);
            sharing.guard = chance(rng, 70);
            sharing.mu_milli = one(rng, &[0, 1_000]);
            sharing.partners = one(rng, &[Partners::Both, Partners::Waiting, Partners::Running]);
            sharing.window = one(rng, &[1, 4, 24]);
        }
        _ => {}
    }
}

/// How a job trains, where that is to be known.
pub(crate) fn training(rng: &mut Pcg64Mcg) -> Option<Training> {
    let batch = one(rng, &[1, 3, 8, 12, 64]);
    chance(rng, 50).then(|| Training {
        batch,
        iterations: rng.random_range(1..=1_000),
        time: IterationTime {
            compute_fixed_us: rng.random_range(0..=200_000),
            compute_per_sample_ns: rng.random_range(0..=50_000_000),
            communication_us: one(rng, &[0, 0, 100_000]),
            overlap_milli: one(rng, &[1_000, 3_000, 10_000]),
        },
        memory: TrainingMemory {
            fixed_mib: rng.random_range(100..=6_000),
            // Alone it fits any device there is.
            per_sample_kib: rng.random_range(0..=10_000 * 1_024 / batch),
        },
    })
}
