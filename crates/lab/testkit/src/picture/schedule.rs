//! What happened, as a picture shows it: who was on which device, who waited and why.

use deepshare_engine::{Command, Event, Placement, Reason};
use deepshare_model::{AttemptId, JobId, NodeId, Time};
use std::collections::BTreeMap;

/// What happened to jobs on devices, from the beginning to `end`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// GPUs of each node.
    pub nodes: Vec<u32>,
    /// Jobs in the order of their numbers.
    pub jobs: Vec<ShownJob>,
    /// In the order in which they began.
    pub stays: Vec<Stay>,
    /// The last instant.
    pub end: Time,
}

/// A job and its waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownJob {
    /// Its name.
    pub name: String,
    /// When it came.
    pub submitted: Time,
    /// In order of time; those of no length are left out.
    pub waits: Vec<Wait>,
}

/// A stretch of waiting for one kind of reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When it began.
    pub from: Time,
    /// When it ended or the reason became another.
    pub to: Time,
    /// The word for the reason.
    pub word: &'static str,
}

/// An attempt on its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Whose.
    pub job: JobId,
    /// Nodes and the numbers of their devices.
    pub devices: Vec<(NodeId, u32)>,
    /// When it was started.
    pub placed: Time,
    /// When it began to work, if it did.
    pub running: Option<Time>,
    /// When it was sent away, if it was.
    pub evicted: Option<Time>,
    /// When it let go of the devices; `None` if it was there at the end.
    pub released: Option<Time>,
}

/// Puts a schedule together from what an engine hears and says.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    schedule: Schedule,
    /// Positions in `schedule.stays`.
    stays: BTreeMap<AttemptId, usize>,
    /// Why and since when each job waits, by its number.
    waiting: Vec<Option<(Time, &'static str)>>,
}

impl Recorder {
    /// The engine hears something. What it hears twice or late changes nothing.
    pub fn event(&mut self, now: Time, event: &Event) {
        match event {
            Event::NodeAdded { node, spec } => {
                let nodes = &mut self.schedule.nodes;
                nodes.resize(nodes.len().max(node.index() + 1), 0);
                nodes[node.index()] = spec.gpus;
            }
            Event::Submitted { job, .. } if job.index() == self.schedule.jobs.len() => {
                let shown = ShownJob { submitted: now, ..ShownJob::default() };
                self.schedule.jobs.push(shown);
                self.waiting.push(None);
            }
            Event::Running { attempt } => self.change(*attempt, |stay| {
                stay.running.get_or_insert(now);
            }),
            Event::EvictionRefused { attempt } => self.change(*attempt, |stay| stay.evicted = None),
            Event::BindFailed { attempt, .. }
            | Event::Rejected { attempt }
            | Event::DevicesReleased { attempt } => self.change(*attempt, |stay| {
                stay.released.get_or_insert(now);
            }),
            _ => {}
        }
    }

    /// The engine asks for something.
    pub fn command(&mut self, now: Time, command: &Command) {
        match command {
            Command::Start { attempt, job, placement, .. } => {
                self.stays.insert(*attempt, self.schedule.stays.len());
                self.schedule.stays.push(Stay {
                    job: *job,
                    devices: devices(placement),
                    placed: now,
                    running: None,
                    evicted: None,
                    released: None,
                });
            }
            Command::Evict { attempt, .. } => self.change(*attempt, |stay| {
                stay.evicted.get_or_insert(now);
            }),
            _ => {}
        }
    }

    /// What the engine says at the end of an instant of a job: why it waits, or that it does not.
    pub fn waits(&mut self, now: Time, job: JobId, why: Option<&Reason>) {
        let Some(waiting) = self.waiting.get_mut(job.index()) else { return };
        let word = why.map(Reason::name);
        if waiting.map(|(_, word)| word) == word {
            return;
        }
        let before = std::mem::replace(waiting, word.map(|word| (now, word)));
        self.note_wait(job, before, now);
    }

    /// The schedule up to `now`, of jobs with these names.
    pub fn finish(mut self, now: Time, names: &[String]) -> Schedule {
        for (job, name) in self.schedule.jobs.iter_mut().zip(names) {
            job.name.clone_from(name);
        }
        for (index, began) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            self.note_wait(JobId::from_index(index), began, now);
        }
        self.schedule.end = now;
        self.schedule
    }

    fn note_wait(&mut self, job: JobId, began: Option<(Time, &'static str)>, to: Time) {
        let waits = &mut self.schedule.jobs[job.index()].waits;
        waits.extend(began.filter(|&(from, _)| from < to).map(|(from, word)| Wait {
            from,
            to,
            word,
        }));
    }

    /// Changes a stay that is not over.
    fn change(&mut self, attempt: AttemptId, change: impl FnOnce(&mut Stay)) {
        let stay = self.stays.get(&attempt).map(|&at| &mut self.schedule.stays[at]);
        if let Some(stay) = stay.filter(|stay| stay.released.is_none()) {
            change(stay);
        }
    }
}

fn devices(placement: &Placement) -> Vec<(NodeId, u32)> {
    let of_slice = placement.iter().flat_map(|slice| {
        let node = slice.node;
        slice.devices.iter().map(move |device| (node, device))
    });
    of_slice.collect()
}
