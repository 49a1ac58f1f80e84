//! Looking only when something can change gives what looking every second gives.

use super::world::{inputs, job};
use crate::simulate::{Pace, simulate_at};
use crate::{LucidInputs, LucidJob, LucidSettings, ProfilerSettings, Sharing};
use deepshare_model::Span;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

struct Dice(Pcg64Mcg);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }
}

/// A few hours on small clusters that are mostly too full.
fn world(dice: &mut Dice) -> LucidInputs {
    let mut world = inputs(&[1 + dice.below(3) as u32, 2, 3]);
    for speeds in [(0, 0), (1, 0), (1, 1)] {
        let mut speed = || (200 + dice.below(1_200)) as f64 / 1_000.0;
        world.speeds.insert(speeds, (speed(), speed()));
    }
    world.forecast.rows.truncate(20);
    for row in &mut world.forecast.rows {
        row.jobs = dice.below(5) as f64;
        row.gpus = 20.0 * dice.below(5) as f64;
    }
    // The clock is first looked at in the second after its start.
    let mut submit_s = 1;
    for _ in 0..40 + dice.below(60) {
        submit_s += if dice.below(3) == 0 { dice.below(200) } else { 0 };
        let vc = dice.below(3) as usize;
        let widest = u64::from(world.vcs[vc].nodes * 8);
        let gpus = if dice.below(8) == 0 { 1 + dice.below(widest) } else { 1 << dice.below(4) };
        let longest = if dice.below(2) == 0 { 300 } else { 1_500 };
        let duration = 1 + dice.below(longest);
        world.jobs.push(LucidJob {
            vc,
            workload: dice.below(3) as usize,
            score: dice.below(3) as u32,
            memory_mib: dice.below(16) as u32 * 1_024,
            estimate: Span::from_secs(dice.below(2_000)),
            ..job(submit_s, gpus as u32, duration)
        });
    }
    world
}

#[test]
fn looking_every_second_changes_nothing() {
    let (mut pairs, mut steps) = (0, 0);
    for seed in 0..60 {
        let dice = &mut Dice(Pcg64Mcg::new(seed));
        let world = world(dice);
        let sharing = [Sharing::Forecast, Sharing::On, Sharing::Off][dice.below(3) as usize];
        let profiler = ProfilerSettings { nodes: 1, ..ProfilerSettings::default() };
        let settings = LucidSettings {
            sharing,
            profiler: (dice.below(4) > 0).then_some(profiler),
            echo: Some("vc2".to_owned()),
            ..LucidSettings::default()
        };
        let quick = simulate_at(Pace::Events, &world, &settings).unwrap();
        let slow = simulate_at(Pace::Seconds, &world, &settings).unwrap();
        for (job, (quick, slow)) in quick.records.iter().zip(&slow.records).enumerate() {
            assert_eq!(quick, slow, "seed {seed}, job {job}");
        }
        assert_eq!(quick.scaling, slow.scaling, "seed {seed}");
        assert!(quick.ticks < slow.ticks, "seed {seed}");
        pairs += quick.records.iter().flatten().filter(|record| record.shared).count();
        steps += quick.scaling.len();
    }
    assert!(pairs > 200 && steps > 20, "{pairs} shared, {steps} steps: too calm to show anything");
}
