//! The engine and the index, stepped together: what a live scheduler is, without its I/O.

use crate::action::{Action, Outcome};
use crate::index::{Change, Config, Index, Named};
use deepshare_engine::{Command, Engine, Event, Illegal, State};
use deepshare_model::{Epoch, Time};

/// Is told every step of the engine: an event log, an auditor, or nobody.
pub trait Record {
    /// The engine was told `event` at `now`, and answered with `commands`.
    fn step(
        &mut self,
        now: Time,
        event: &Event,
        commands: &[Command],
        state: &State,
        illegal: Option<&Illegal>,
    );

    /// Something has a number from now on.
    fn name(&mut self, named: &Named);
}

/// Nobody listens.
impl Record for () {
    fn step(&mut self, _: Time, _: &Event, _: &[Command], _: &State, _: Option<&Illegal>) {}

    fn name(&mut self, _: &Named) {}
}

/// An engine that schedules what an index sees.
pub struct Driver {
    engine: Engine,
    index: Index,
    now: Time,
    commands: Vec<Command>,
    illegal: u64,
}

impl Driver {
    /// Nothing seen, nothing decided.
    pub fn new(engine: Engine, config: Config) -> Driver {
        let index = Index::new(config);
        Driver { engine, index, now: Time::ZERO, commands: Vec::new(), illegal: 0 }
    }

    /// The engine's books.
    pub fn state(&self) -> &State {
        self.engine.state()
    }

    /// The engine, for a snapshot.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Proposals of the policy that broke a rule, refused so far.
    pub fn illegal(&self) -> u64 {
        self.illegal
    }

    /// This process leads from now on.
    pub fn lead(&mut self, now: Time, epoch: Epoch, record: &mut impl Record) {
        self.index.push_event(Event::Leadership { epoch });
        self.drain(now, record);
    }

    /// A watch told something.
    pub fn change(&mut self, now: Time, change: Change, record: &mut impl Record) {
        let now = self.not_before(now);
        self.index.apply(now, change);
        self.drain(now, record);
    }

    /// A write ended.
    pub fn outcome(&mut self, now: Time, outcome: &Outcome, record: &mut impl Record) {
        let now = self.not_before(now);
        self.index.outcome(now, outcome);
        self.drain(now, record);
    }

    /// All that was known at this instant has been told: decide, and say why others wait.
    pub fn decide(&mut self, now: Time, record: &mut impl Record) {
        let now = self.not_before(now);
        self.index.tick(now);
        self.drain(now, record);
        if self.index.is_synced() && self.engine.next_wakeup().is_some_and(|at| at <= now) {
            self.step(now, &Event::Wake, record);
            self.drain(now, record);
        }
        self.index.report(now, self.engine.state());
    }

    /// When [`Driver::decide`] is due if nothing happens before.
    pub fn next_wakeup(&self) -> Option<Time> {
        let engine = self.engine.next_wakeup().filter(|_| self.index.is_synced());
        [engine, self.index.next_tick()].into_iter().flatten().min()
    }

    /// What is to be written, in order.
    pub fn take_actions(&mut self) -> Vec<Action> {
        self.index.take_actions()
    }

    /// Time never runs backwards, whatever the clock does.
    fn not_before(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    fn drain(&mut self, now: Time, record: &mut impl Record) {
        let now = self.not_before(now);
        loop {
            for named in self.index.take_names() {
                record.name(&named);
            }
            let events = self.index.take_events();
            if events.is_empty() {
                break;
            }
            for event in events {
                self.step(now, &event, record);
            }
        }
    }

    fn step(&mut self, now: Time, event: &Event, record: &mut impl Record) {
        let mut commands = std::mem::take(&mut self.commands);
        let verdict = self.engine.step(now, event, &mut commands);
        let illegal = verdict.err();
        self.illegal += u64::from(illegal.is_some());
        record.step(now, event, &commands, self.engine.state(), illegal.as_ref());
        self.index.stepped(now, event, self.engine.state());
        for command in commands.drain(..) {
            self.index.command(now, &command);
        }
        self.commands = commands;
    }
}
