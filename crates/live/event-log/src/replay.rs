//! The same events once more: the same commands?

use crate::error::LogError;
use crate::reader::{Ended, Log, Segment};
use crate::record::{Begins, Record, Step};
use deepshare_audit::Auditor;
use deepshare_engine::{Command, Engine, EngineSettings, Event};
use deepshare_model::Time;
use deepshare_policies::PolicyConfig;
use serde::Serialize;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Makes the auditor that knows what a policy promises under these settings.
pub type AuditorFor<'a> = &'a dyn Fn(&EngineSettings, &PolicyConfig) -> Auditor;

/// What became of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Segments read.
    pub segments: u64,
    /// Times a scheduler started: segments that begin with an empty engine.
    pub starts: u64,
    /// Steps replayed.
    pub events: u64,
    /// Commands compared.
    pub commands: u64,
    /// Snapshots at the head of a segment compared with the replayed engine.
    pub snapshots: u64,
    /// Steps that the log says it could not write.
    pub lost: u64,
    /// Steps that the auditor checked, if it was asked to.
    pub audited: u64,
    /// Instant of the first step.
    pub first: Option<Time>,
    /// Instant of the last one.
    pub last: Option<Time>,
    /// How the log ends.
    pub ended: Ended,
    /// Where the replay first differs from the log; nothing after it was replayed.
    pub mismatch: Option<Mismatch>,
}

/// Where a replay differs from its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The segment.
    pub segment: u32,
    /// The line in it, from 1, the header.
    pub record: u64,
    /// When; of a snapshot, the step before it.
    pub at: Time,
    /// What differs.
    pub what: Difference,
    /// What the log has.
    pub expected: String,
    /// What the replay has.
    pub got: String,
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The commands of a step.
    Commands,
    /// A proposal that was refused.
    Illegal,
    /// The engine's state at the head of a segment.
    Snapshot,
    /// The auditor found a broken rule.
    Rule,
    /// No engine can be told this.
    Impossible,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { segment, record, at, what, expected, got } = self;
        let what = match what {
            Difference::Commands => "other commands",
            Difference::Illegal => "another verdict on the policy's proposals",
            Difference::Snapshot => "another state",
            Difference::Rule => "a broken rule",
            Difference::Impossible => "an event that cannot be",
        };
        write!(f, "segment {segment:08}, record {record}, at {at}: {what}\n  the log has  ")?;
        write!(f, "{expected}\n  replayed     {got}")
    }
}

/// Steps an engine through the log in `dir` and compares what it asks for, byte for byte, until the
/// end or the first difference. With an auditor, every step from an empty engine on is checked,
/// too.
///
/// # Errors
/// If the log cannot be read. A difference is none: it is in the report.
pub fn replay(dir: &Path, auditor: Option<AuditorFor<'_>>) -> Result<Replay, LogError> {
    let log = Log::open(dir)?;
    let mut run = Run { engine: None, auditor: None, auditor_for: auditor, report: empty() };
    let ended = log.read(|segment| run.segment(segment))?;
    Ok(Replay { ended, ..run.report })
}

fn empty() -> Replay {
    Replay {
        segments: 0,
        starts: 0,
        events: 0,
        commands: 0,
        snapshots: 0,
        lost: 0,
        audited: 0,
        first: None,
        last: None,
        ended: Ended::Whole,
        mismatch: None,
    }
}

struct Run<'a> {
    engine: Option<Engine>,
    auditor: Option<Auditor>,
    auditor_for: Option<AuditorFor<'a>>,
    report: Replay,
}

impl Run<'_> {
    fn segment(&mut self, segment: &mut Segment) -> Result<(), LogError> {
        if self.report.mismatch.is_some() {
            return Ok(());
        }
        self.report.segments += 1;
        match (segment.header.begins, self.engine.is_some()) {
            (Begins::Continued, true) => {
                self.compare_snapshot(segment)?;
                if self.report.mismatch.is_some() {
                    return Ok(());
                }
            }
            (begins, _) => {
                if let Begins::AfterGap { lost } = begins {
                    self.report.lost += lost;
                }
                self.report.starts += u64::from(begins == Begins::Empty);
                self.engine = Some(segment.engine()?);
                // It has to see everything from the beginning on.
                let fresh = self.auditor_for.filter(|_| begins == Begins::Empty);
                let header = &segment.header;
                self.auditor = fresh.map(|make| make(&header.settings, &header.policy));
            }
        }
        while let Some(record) = segment.next_record()? {
            let Record::Step(step) = record else { continue };
            if let Some((what, expected, got)) = self.step(&step, segment)? {
                let (number, record) = (segment.number, segment.record());
                let at = step.at;
                self.report.mismatch =
                    Some(Mismatch { segment: number, record, at, what, expected, got });
                break;
            }
        }
        Ok(())
    }

    /// Replays a step. What differs, what the log has and what the replay has.
    fn step(
        &mut self,
        step: &Step,
        segment: &Segment,
    ) -> Result<Option<(Difference, String, String)>, LogError> {
        let Some(engine) = &mut self.engine else { return Ok(None) };
        let differs =
            |what, expected: &str, got: String| Ok(Some((what, expected.to_owned(), got)));
        let event = || serde_json::to_string(&step.event).unwrap_or_default();
        if let Some(why) = impossible(engine, step) {
            return differs(Difference::Impossible, &event(), why);
        }
        if let Some(Err(why)) =
            self.auditor.as_mut().map(|auditor| auditor.event(step.at, &step.event))
        {
            return differs(Difference::Rule, &event(), why.to_string());
        }
        let mut commands: Vec<Command> = Vec::new();
        // An engine stops where its driver breaks the contract; a log that was tampered with may.
        let stepped =
            catch_unwind(AssertUnwindSafe(|| engine.step(step.at, &step.event, &mut commands)));
        let Ok(verdict) = stepped else {
            return differs(Difference::Impossible, &event(), "the engine stopped".to_owned());
        };
        self.report.events += 1;
        self.report.commands += commands.len() as u64;
        self.report.first.get_or_insert(step.at);
        self.report.last = Some(step.at);
        let got = serde_json::to_string(&commands).map_err(|error| segment.fault(error))?;
        if got != step.commands_text() {
            return differs(Difference::Commands, step.commands_text(), got);
        }
        let illegal = verdict.err().map(|illegal| illegal.to_string());
        if illegal != step.illegal {
            let word = |text: Option<String>| text.unwrap_or_else(|| "nothing refused".to_owned());
            return differs(Difference::Illegal, &word(step.illegal.clone()), word(illegal));
        }
        if let Some(auditor) = &mut self.auditor {
            let checked = commands.iter().try_for_each(|one| auditor.command(step.at, one));
            if let Err(why) = checked.and_then(|()| auditor.compare(engine.state())) {
                return differs(Difference::Rule, step.commands_text(), why.to_string());
            }
            self.report.audited += 1;
        }
        Ok(None)
    }

    fn compare_snapshot(&mut self, segment: &mut Segment) -> Result<(), LogError> {
        let (Some(engine), Some(expected)) = (&self.engine, segment.take_snapshot()) else {
            return Ok(());
        };
        let text = |value| serde_json::to_string(&value).map_err(|error| segment.fault(error));
        let (expected, got) = (text(expected)?, text(engine.snapshot())?);
        self.report.snapshots += 1;
        if expected != got {
            let at = self.report.last.unwrap_or(Time::ZERO);
            let (expected, got) = around(&expected, &got);
            let (number, record) = (segment.number, segment.record());
            let what = Difference::Snapshot;
            self.report.mismatch =
                Some(Mismatch { segment: number, record, at, what, expected, got });
        }
        Ok(())
    }
}

/// The surroundings of the first difference of two long texts.
fn around(a: &str, b: &str) -> (String, String) {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| {
        let bytes = text.as_bytes();
        let from = same.saturating_sub(60);
        let to = (same + 60).min(bytes.len());
        format!("…{}…", String::from_utf8_lossy(&bytes[from..to]))
    };
    (part(a), part(b))
}

/// Why no driver that keeps the engine's contract can have told this, if so.
fn impossible(engine: &Engine, step: &Step) -> Option<String> {
    let state = engine.state();
    let (jobs, nodes, tenants) = (state.jobs().len(), state.nodes().len(), state.tenant_count());
    if step.at < state.now() {
        return Some(format!("time ran backwards: the step before was at {}", state.now()));
    }
    let unknown = |what: &str, index: usize, known: usize| {
        (index >= known).then(|| format!("{what} {index} is not known; {known} are"))
    };
    match &step.event {
        Event::Submitted { job, spec } => unknown("job", job.index(), jobs + 1)
            .or_else(|| unknown("tenant", spec.tenant.index(), tenants)),
        Event::Estimated { job, .. }
        | Event::Cancelled { job }
        | Event::Held { job }
        | Event::Unheld { job }
        | Event::Carried { job, .. }
        | Event::Found { job, .. }
        | Event::Shielded { job, .. } => unknown("job", job.index(), jobs),
        // Nodes that the engine does not know make it ignore these: the world may know better.
        Event::NodeChanged { .. } | Event::Admitted { .. } => None,
        Event::NodeAdded { node, .. } => unknown("node", node.index(), nodes + 1),
        Event::NodeCordoned { node, .. }
        | Event::NodeLost { node }
        | Event::NodeRecovered { node }
        | Event::NodeMoved { node, .. }
        | Event::DeviceHealth { node, .. } => unknown("node", node.index(), nodes),
        Event::TenantSet { tenant, .. } => unknown("tenant", tenant.index(), tenants + 1),
        Event::AssuranceRestored { tenant, .. } => unknown("tenant", tenant.index(), tenants),
        _ => None,
    }
}
