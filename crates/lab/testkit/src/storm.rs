//! Random events straight on an engine: in legal order, out of order, doubled, stale, and about
//! attempts that never were. The auditor checks every step, and a twin that was restored from a
//! snapshot must ask for the same.
//!
//! The driver keeps only its part of the contract: time does not run back, ids are dense, and an
//! instant ends with the wake that the engine asks for. Everything else it makes up.

mod events;

use crate::pairing::sharing;
use crate::told::Told;
use deepshare_audit::Auditor;
use deepshare_engine::{CapacityMode, Command, Engine, EngineSettings, Event, PairCounts, Placer};
use deepshare_model::{JobId, Span, Time};
use deepshare_policies::{ColocationSettings, DeepShareSettings, PolicyConfig, PressureDemand};
use deepshare_sim::auditor_of;
use events::Source;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the twin is called in messages.
const TWIN: &str = "restored from a snapshot";

/// Replays tried at most to leave events out.
const PATIENCE: u32 = 1_500;

/// Wakes between two recorded events after which a replay goes on without more.
const MOST_WAKES: u32 = 200;

/// A stream of random events for one engine.
#[derive(Clone, Debug)]
pub struct Storm {
    seed: u64,
    policy: PolicyConfig,
    settings: EngineSettings,
    /// One step in so many is followed by a snapshot, from which a twin goes on.
    snapshot_every: u32,
}

/// Why a storm failed, and the events that make it fail again.
#[derive(Debug)]
pub struct StormDamage {
    /// What does not hold.
    pub why: String,
    /// What happened, in order.
    pub events: Vec<(Time, Event)>,
}

fn any_policy(rng: &mut Pcg64Mcg) -> PolicyConfig {
    let name = PolicyConfig::NAMES[rng.random_range(0..PolicyConfig::NAMES.len())];
    let mut policy = PolicyConfig::by_name(name).expect("a listed name");
    match &mut policy {
        PolicyConfig::Tiresias { thresholds, promote_after_milli, .. } => {
            *thresholds = vec![Span::from_secs(rng.random_range(1..100)).on(1)];
            *promote_after_milli = rng.random_bool(0.5).then_some(2_000);
        }
        PolicyConfig::Fifo { skip } | PolicyConfig::Sjf { skip } => *skip = rng.random_bool(0.5),
        other => sharing(rng, other),
    }
    policy
}

fn deepshare(rng: &mut Pcg64Mcg) -> PolicyConfig {
    PolicyConfig::DeepShare(DeepShareSettings {
        alpha_milli: [0, 500, 3_000][rng.random_range(0..3)],
        beta_milli: [0, 300, 3_000][rng.random_range(0..3)],
        qad_bucket_milli: [0, 10, 500][rng.random_range(0..3)],
        order_by_qad: rng.random_bool(0.8),
        order_by_time: rng.random_bool(0.8),
        reclaim: rng.random_bool(0.9),
        spill: rng.random_bool(0.5),
        gang_guard: Span::from_secs([0, 1, 30, 3_600][rng.random_range(0..4)]),
        preemption_cap: rng.random_range(0..4),
        shrink: rng.random_bool(0.8),
        grow: rng.random_bool(0.7),
        colocation: colocation(rng),
    })
}

fn colocation(rng: &mut Pcg64Mcg) -> ColocationSettings {
    let demands =
        [PressureDemand::Promoted, PressureDemand::GuaranteedOnly, PressureDemand::AllPending];
    ColocationSettings {
        residents: if rng.random_bool(0.8) { 2 } else { 1 },
        rho_min_milli: [0, 500, 700, 950][rng.random_range(0..4)],
        gamma_milli: [0, 500, 1_000, 2_000][rng.random_range(0..4)],
        eps_share_milli: [0, 500, 2_000, 50_000][rng.random_range(0..4)],
        demand: demands[rng.random_range(0..3)],
        guaranteed_floor_milli: [0, 600, 900][rng.random_range(0..3)],
        candidates: [0, 1, 2, 64][rng.random_range(0..4)],
        by_qad: rng.random_bool(0.7),
        by_prediction: rng.random_bool(0.8),
        max_gpus: [0, 0, 0, 1, 4][rng.random_range(0..5)],
    }
}

impl Storm {
    /// The storm of this seed. More than half of them are DeepShare's, with elastic capacity.
    pub fn draw(seed: u64) -> Storm {
        let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0x5707_3a11);
        let one =
            |rng: &mut Pcg64Mcg, choices: &[Span]| choices[rng.random_range(0..choices.len())];
        let modes = [
            CapacityMode::Partition,
            CapacityMode::Hard,
            CapacityMode::Pool,
            CapacityMode::Elastic,
        ];
        let placers = [Placer::Consolidate, Placer::ConsolidateArtifact, Placer::NodeOrder];
        let ours = rng.random_bool(0.6);
        let policy = if ours { deepshare(&mut rng) } else { any_policy(&mut rng) };
        let settings = EngineSettings {
            capacity: if ours { CapacityMode::Elastic } else { modes[rng.random_range(0..4)] },
            placer: if ours { placers[0] } else { placers[rng.random_range(0..3)] },
            cycle: one(&mut rng, &[Span::ZERO, Span::ZERO, Span(50_000), Span::SECOND]),
            grace: Span::from_secs(30),
            backoff_first: one(&mut rng, &[Span::SECOND, Span(1)]),
            backoff_max: one(&mut rng, &[Span::from_secs(60), Span::from_secs(2)]),
            preempted_pause: one(&mut rng, &[Span::from_secs(30), Span::ZERO]),
            qad_lambda_milli: [300, 300, 700][rng.random_range(0..3)],
            pair_samples: [0, 1, 3, 3][rng.random_range(0..4)],
            pair_slack_ppm: [0, 60_000, 300_000][rng.random_range(0..3)],
        };
        Storm { seed, policy, settings, snapshot_every: 40 }
    }

    /// The auditor that knows what this policy promises.
    fn auditor(&self) -> Auditor {
        auditor_of(&self.settings, &self.policy).check_every(32).checks_assurance()
    }

    /// The policy's name and the settings, for messages.
    pub fn describe(&self) -> String {
        format!("storm {} under {:?}, {:?}", self.seed, self.policy, self.settings)
    }

    /// Lets so many events happen, and says what became of pairs meanwhile.
    ///
    /// # Errors
    /// What does not hold, with the fewest events found that show it.
    pub fn blow(&self, steps: u32) -> Result<PairCounts, StormDamage> {
        let mut source = Source::new(self.seed, self.settings.capacity);
        let mut events: Vec<(Time, Event)> = Vec::new();
        let run = catch_unwind(AssertUnwindSafe(|| {
            let mut watched = Watched::new(self);
            for _ in 0..steps {
                let (now, event) = source.next(&watched.engine);
                events.push((now, event));
                let (now, event) = events.last().expect("just pushed");
                watched.step(*now, event)?;
            }
            let state = watched.engine.state();
            let checked = watched.auditor.check_all(state).map_err(|v| v.to_string());
            checked.map(|()| state.pair_counts())
        }));
        match run.unwrap_or_else(|panic| Err(said(panic.as_ref()))) {
            Ok(pairs) => Ok(pairs),
            Err(why) => {
                // A twin as young as can be differs soonest, whatever is left out; where it is not
                // the twin that differs, it only takes time.
                let snapshot_every = if why.contains(TWIN) { 1 } else { u32::MAX };
                let storm = Storm { snapshot_every, ..self.clone() };
                Err(storm.calm(StormDamage { why, events }))
            }
        }
    }

    /// So many of the storm's events, unchecked.
    pub fn told(&self, steps: u32) -> Told {
        let mut source = Source::new(self.seed, self.settings.capacity);
        let mut engine = Engine::new(self.settings, self.policy.build());
        let mut commands = Vec::new();
        let mut events = Vec::new();
        for _ in 0..steps {
            let (now, event) = source.next(&engine);
            // What a policy may not propose is not this storm's concern: `blow` is there for that.
            let _ = engine.step(now, &event, &mut commands);
            events.push((now, event));
        }
        Told { policy: self.policy.clone(), settings: self.settings, events }
    }

    /// Plays recorded events, with a wake wherever the engine asks for one.
    ///
    /// # Errors
    /// What does not hold.
    pub fn replay(&self, events: &[(Time, Event)]) -> Result<(), String> {
        let run = catch_unwind(AssertUnwindSafe(|| {
            let mut watched = Watched::new(self);
            for (now, event) in events {
                watched.go_to(*now)?;
                watched.step(*now, event)?;
            }
            watched.auditor.check_all(watched.engine.state()).map_err(|v| v.to_string())
        }));
        run.unwrap_or_else(|panic| Err(said(panic.as_ref())))
    }

    /// Leaves out events while the storm still does damage.
    fn calm(&self, damage: StormDamage) -> StormDamage {
        let mut events = damage.events;
        let mut left = PATIENCE;
        let mut fails = |events: &[(Time, Event)]| {
            left = left.saturating_sub(1);
            left > 0 && self.replay(events).is_err()
        };
        let mut size = events.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < events.len() {
                let end = (at + size).min(events.len());
                let kept = |event: &Event| events::is_dense(event);
                let mut fewer = events[..at].to_vec();
                fewer.extend(events[at..end].iter().filter(|(_, event)| kept(event)).cloned());
                let kept = fewer.len() - at;
                fewer.extend_from_slice(&events[end..]);
                if fewer.len() < events.len() && fails(&fewer) {
                    events = fewer;
                    at += kept;
                } else {
                    at = end;
                }
            }
            size /= 2;
        }
        for job in (0..events.len()).rev().map(JobId::from_index) {
            let fewer = events::without_job(&events, job);
            if fewer.len() < events.len() && fails(&fewer) {
                events = fewer;
            }
        }
        match self.replay(&events) {
            Err(why) => StormDamage { why, events },
            // It shows with the twin's help only: as it was is all there is.
            Ok(()) => StormDamage { why: damage.why, events },
        }
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without words"))
}

/// An engine, its auditor, and the twin restored from its last snapshot.
struct Watched<'a> {
    storm: &'a Storm,
    engine: Engine,
    auditor: Auditor,
    twin: Option<Engine>,
    now: Time,
    steps: u32,
}

impl<'a> Watched<'a> {
    fn new(storm: &'a Storm) -> Watched<'a> {
        Watched {
            storm,
            engine: Engine::new(storm.settings, storm.policy.build()),
            auditor: storm.auditor(),
            twin: None,
            now: Time::ZERO,
            steps: 0,
        }
    }

    /// Wakes the engine whenever it asks for it, up to `next`.
    fn go_to(&mut self, next: Time) -> Result<(), String> {
        for _ in 0..MOST_WAKES {
            let due = self.engine.next_wakeup().map(|at| at.max(self.now));
            let Some(due) = due.filter(|&due| due < next) else { break };
            self.step(due, &Event::Wake)?;
        }
        Ok(())
    }

    fn step(&mut self, now: Time, event: &Event) -> Result<(), String> {
        self.now = now;
        self.auditor.event(now, event).map_err(|violation| violation.to_string())?;
        let mut commands: Vec<Command> = Vec::new();
        let stepped = self.engine.step(now, event, &mut commands);
        stepped.map_err(|illegal| illegal.to_string())?;
        for command in &commands {
            self.auditor.command(now, command).map_err(|violation| violation.to_string())?;
        }
        self.auditor.compare(self.engine.state()).map_err(|violation| violation.to_string())?;
        if let Some(twin) = &mut self.twin {
            let mut again = Vec::new();
            twin.step(now, event, &mut again).map_err(|illegal| format!("twin: {illegal}"))?;
            if again != commands {
                return Err(format!(
                    "{event:?} at {now}: the engine asks for {commands:?}, and {TWIN} for {again:?}"
                ));
            }
        }
        self.steps += 1;
        if self.steps.is_multiple_of(self.storm.snapshot_every) {
            let text = serde_json::to_string(&self.engine.snapshot());
            let text = text.map_err(|error| format!("saving: {error}"))?;
            let saved = serde_json::from_str(&text).map_err(|error| format!("reading: {error}"))?;
            let twin = Engine::restore(saved, self.storm.policy.build());
            self.twin = Some(twin.map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}
