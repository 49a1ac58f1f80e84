//! The engine loop: what the watches and the writers told goes into the index and the engine, what
//! they want goes to the writers, and then it sleeps.
//!
//! One turn takes in all that has gathered, up to a bound, and decides once: a burst of thousands of
//! pods is one round, not thousands. Nothing here waits for the API server or the disk.

use crate::feeds::{FEEDS, News};
use crate::health::Health;
use crate::leadership::Leadership;
use crate::metrics::{Metrics, Phase};
use crate::recorder::Recorder;
use crate::writes::Writers;
use deepshare_engine::Engine;
use deepshare_kube_index::{Change, Config, Driver, Outcome};
use deepshare_model::{Epoch, Time};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;

/// Most news of one turn.
const BATCH: usize = 4_096;
/// How often figures are shown and the log is written out, if anything happened.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// Everything the loop touches.
pub struct RunLoop {
    /// The engine and the index.
    driver: Driver,
    recorder: Recorder,
    writers: Writers,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    leadership: Leadership,
    /// Which feeds have delivered their list.
    listed: [bool; FEEDS],
    kept_house: Instant,
}

/// What a turn begins with.
enum Input {
    News(News),
    Outcome(Outcome),
}

impl RunLoop {
    /// A loop around a fresh engine.
    pub fn new(
        engine: Engine,
        config: Config,
        recorder: Recorder,
        writers: Writers,
        (metrics, health, leadership): (Arc<Metrics>, Arc<Health>, Leadership),
    ) -> RunLoop {
        RunLoop {
            driver: Driver::new(engine, config),
            recorder,
            writers,
            metrics,
            health,
            leadership,
            listed: [false; FEEDS],
            kept_house: Instant::now(),
        }
    }

    /// Runs until the leadership ends. Returns the writers, which may still have requests in flight.
    pub async fn run(
        mut self,
        mut news: mpsc::Receiver<News>,
        mut outcomes: mpsc::UnboundedReceiver<Outcome>,
    ) -> Writers {
        let leadership = self.leadership.clone();
        let ended = leadership.ended();
        tokio::pin!(ended);
        let epoch = Epoch(self.leadership.epoch());
        self.driver.lead(unix_now(), epoch, &mut self.recorder);
        let mut inputs = Vec::new();
        loop {
            let pause = self.pause();
            tokio::select! {
                biased;
                _ = &mut ended => break,
                // The sender of outcomes lives in the writers, that of news in the watches: both
                // end only with the leadership.
                Some(outcome) = outcomes.recv() => inputs.push(Input::Outcome(outcome)),
                Some(told) = news.recv() => inputs.push(Input::News(told)),
                () = tokio::time::sleep(pause) => {}
            }
            while inputs.len() < BATCH
                && let Ok(outcome) = outcomes.try_recv()
            {
                inputs.push(Input::Outcome(outcome));
            }
            while inputs.len() < BATCH
                && let Ok(told) = news.try_recv()
            {
                inputs.push(Input::News(told));
            }
            self.metrics.news_waiting.set(news.len() as u64);
            self.turn(unix_now(), inputs.drain(..));
        }
        self.recorder.flush();
        self.writers
    }

    /// How long there is nothing to do unless something comes in.
    fn pause(&self) -> Duration {
        let decides = !self.listed.contains(&false);
        let due = self.driver.next_wakeup().filter(|_| decides);
        let due = due.map(|at| at.saturating_since(unix_now()));
        let due = due.map_or(Duration::MAX, |span| Duration::from_micros(span.0));
        match self.recorder.is_unflushed() {
            true => due.min(HOUSEKEEPING.saturating_sub(self.kept_house.elapsed())),
            false => due.min(Duration::from_secs(10)),
        }
    }

    fn turn(&mut self, now: Time, inputs: impl Iterator<Item = Input>) {
        let begun = Instant::now();
        for input in inputs {
            match input {
                Input::News(News::Change(change)) => {
                    self.driver.change(now, change, &mut self.recorder);
                }
                Input::News(News::Listed(feed)) => self.listed(now, feed),
                Input::Outcome(outcome) => {
                    if let Outcome::Evicting { .. } = outcome {
                        self.metrics.evictions.add(1);
                    }
                    self.driver.outcome(now, &outcome, &mut self.recorder);
                }
            }
        }
        let applied = Instant::now();
        self.metrics.phase(Phase::Apply, applied - begun);
        self.driver.decide(now, &mut self.recorder);
        self.metrics.phase(Phase::Decide, applied.elapsed());
        for action in self.driver.take_actions() {
            self.writers.submit(action);
        }
        self.recorder.rotate(self.driver.engine());
        self.metrics.turns.add(1);
        self.metrics.rejected.set(self.driver.index().rejections());
        self.health.turned();
        if self.kept_house.elapsed() >= HOUSEKEEPING {
            self.kept_house = Instant::now();
            self.recorder.show_tenants(self.driver.state());
            self.recorder.flush();
        }
    }

    /// A feed has delivered its list. Nothing is decided before all have: an engine that saw half of
    /// the pods would give away what the other half holds.
    fn listed(&mut self, now: Time, feed: usize) {
        if std::mem::replace(&mut self.listed[feed], true) || self.listed.contains(&false) {
            return;
        }
        self.driver.change(now, Change::Synced, &mut self.recorder);
        self.health.synced();
        let state = self.driver.state();
        let (nodes, jobs) = (state.nodes().len(), state.jobs().len());
        tracing::info!(nodes, jobs, "the cluster is known; scheduling begins");
    }
}

/// The time of day. The driver sees to it that it does not run backwards.
fn unix_now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
