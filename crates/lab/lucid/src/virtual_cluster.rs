//! One virtual cluster: Lucid's main loop, from event to event.

use crate::cluster::{NODE_GPUS, Nodes, Share};
use crate::echo::Echo;
use crate::error::LucidError;
use crate::inputs::{LucidInputs, LucidJob};
use crate::outcome::Level;
use crate::pair_rule::{may_join, speeds};
use crate::progress::Progress;
use crate::settings::LucidSettings;
use crate::simulate::Pace;
use std::iter::Peekable;
use std::slice::Iter;

/// Widest job that shares its GPUs.
const WIDEST_SHARED: u32 = NODE_GPUS;

/// What became of a job in its virtual cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) start_s: u64,
    pub(crate) end_s: u64,
    pub(crate) shared: bool,
}

/// A running job.
struct Run {
    job: usize,
    shares: Vec<Share>,
    progress: Progress,
    end_s: u64,
    /// It can be joined.
    exclusive: bool,
    /// It joined this job, which still runs.
    host: Option<usize>,
}

/// A virtual cluster at work.
pub(crate) struct VirtualCluster<'a> {
    inputs: &'a LucidInputs,
    settings: &'a LucidSettings,
    vc: usize,
    nodes: Nodes,
    echo: Echo,
    switches: Peekable<Iter<'a, (u64, bool)>>,
    sharing: bool,
    /// In trace order.
    to_come: Peekable<std::vec::IntoIter<usize>>,
    pending: Vec<usize>,
    /// In the order of their starts.
    running: Vec<Run>,
    /// Nodes came after this second's placement.
    grew: bool,
    now: u64,
    /// By job of the whole trace.
    fates: &'a mut [Fate],
    pub(crate) levels: Vec<Level>,
    pub(crate) ticks: u64,
}

impl<'a> VirtualCluster<'a> {
    /// The virtual cluster `vc` with `nodes` nodes, for these jobs, which are in trace order. What
    /// becomes of them goes into `fates`, by job of the whole trace.
    pub(crate) fn new(
        (inputs, settings): (&'a LucidInputs, &'a LucidSettings),
        (vc, nodes): (usize, u32),
        jobs: Vec<usize>,
        switches: &'a [(u64, bool)],
        echo: Echo,
        fates: &'a mut [Fate],
    ) -> VirtualCluster<'a> {
        VirtualCluster {
            inputs,
            settings,
            vc,
            nodes: Nodes::new(nodes),
            echo,
            switches: switches.iter().peekable(),
            sharing: false,
            to_come: jobs.into_iter().peekable(),
            pending: Vec::new(),
            running: Vec::new(),
            grew: false,
            now: inputs.start_s,
            fates,
            levels: Vec::new(),
            ticks: 0,
        }
    }

    /// Runs until every job has ended.
    pub(crate) fn run(&mut self, pace: Pace) -> Result<(), LucidError> {
        self.level();
        while self.to_come.peek().is_some() || !self.pending.is_empty() || !self.running.is_empty()
        {
            let event = self.next();
            self.now = pace.next(self.now, event).ok_or_else(|| self.stuck())?;
            self.tick()?;
        }
        Ok(())
    }

    fn job(&self, job: usize) -> &'a LucidJob {
        &self.inputs.jobs[job]
    }

    /// The next second in which anything can change: the artifact looks at every one, but between
    /// these no job that waits can find a place that it did not have before.
    fn next(&mut self) -> Option<u64> {
        let jobs = &self.inputs.jobs;
        let waits = !self.pending.is_empty();
        let switch = self.switches.peek().map(|switch| switch.0).filter(|_| waits);
        let instants = [
            self.to_come.peek().map(|&job| jobs[job].submit_s),
            self.running.iter().map(|run| run.end_s).min(),
            switch,
            self.echo.next(),
            (self.grew && waits).then_some(self.now + 1),
        ];
        instants.into_iter().flatten().min()
    }

    fn tick(&mut self) -> Result<(), LucidError> {
        let now = self.now;
        self.ticks += 1;
        self.end_jobs();
        let jobs = &self.inputs.jobs;
        while let Some(job) = self.to_come.next_if(|&job| jobs[job].submit_s <= now) {
            self.pending.push(job);
        }
        while let Some(&(_, on)) = self.switches.next_if(|switch| switch.0 <= now) {
            self.sharing = on;
        }
        self.pending.sort_by_key(|&job| jobs[job].priority());
        if self.sharing {
            self.place_sharing()?;
        } else {
            self.place_in_order();
        }
        self.grew = self.echo.follow(now, &mut self.nodes);
        self.level();
        Ok(())
    }

    /// Ends jobs in the order of their starts. A guest that ends lets its host go at full speed
    /// again; a host that ends does not: its guest keeps its speed, and is never joined again.
    fn end_jobs(&mut self) {
        let now = self.now;
        let ending: Vec<usize> =
            self.running.iter().filter(|run| run.end_s == now).map(|run| run.job).collect();
        for &job in &ending {
            let at = self.at(job);
            self.fates[job].end_s = now;
            let run = self.running.remove(at);
            self.nodes.release(&run.shares);
            if let Some(host) = run.host {
                let host = self.at(host);
                let host = &mut self.running[host];
                host.exclusive = true;
                host.set_rate(now, 1.0);
            }
            let guest = self.running.iter_mut().find(|other| other.host == Some(job));
            if let Some(guest) = guest {
                guest.host = None;
            }
        }
    }

    fn at(&self, job: usize) -> usize {
        let at = self.running.iter().position(|run| run.job == job);
        at.expect("jobs are asked for only while they run")
    }

    /// The first that does not fit blocks the others.
    fn place_in_order(&mut self) {
        let mut placed = 0;
        while let Some(&job) = self.pending.get(placed)
            && self.start_alone(job)
        {
            placed += 1;
        }
        self.pending.drain(..placed);
    }

    /// Joining comes before a free GPU, and nobody blocks anybody.
    fn place_sharing(&mut self) -> Result<(), LucidError> {
        // Places only become fewer while jobs are placed, so one failure tells for all of that
        // width.
        let mut too_wide: Vec<u32> = Vec::new();
        let mut left = Vec::new();
        for job in std::mem::take(&mut self.pending) {
            let gpus = self.job(job).gpus;
            if gpus <= WIDEST_SHARED
                && let Some(host) = self.partner(job)
            {
                self.join(job, host)?;
            } else if too_wide.contains(&gpus) || !self.start_alone(job) {
                too_wide.push(gpus);
                left.push(job);
            }
        }
        self.pending = left;
        Ok(())
    }

    /// Position of the first running job that this one may join.
    fn partner(&self, job: usize) -> Option<usize> {
        let new = self.job(job);
        self.running.iter().position(|run| {
            let old = self.job(run.job);
            run.exclusive && old.gpus == new.gpus && may_join(self.settings, new, old)
        })
    }

    fn join(&mut self, job: usize, host: usize) -> Result<(), LucidError> {
        let now = self.now;
        let old = self.running[host].job;
        let (new_rate, old_rate) = speeds(self.inputs, self.job(job), self.job(old))?;
        self.running[host].exclusive = false;
        self.running[host].set_rate(now, old_rate);
        self.start(job, self.running[host].shares.clone());
        let guest = self.running.last_mut().expect("it has just started");
        guest.exclusive = false;
        guest.host = Some(old);
        guest.set_rate(now, new_rate);
        self.fates[job].shared = true;
        self.fates[old].shared = true;
        let shares = &self.running.last().expect("it has just started").shares;
        self.nodes.take(shares);
        Ok(())
    }

    fn start_alone(&mut self, job: usize) -> bool {
        let Some(shares) = self.nodes.place(self.job(job).gpus) else { return false };
        self.start(job, shares);
        true
    }

    fn start(&mut self, job: usize, shares: Vec<Share>) {
        self.fates[job].start_s = self.now;
        let progress = Progress::start(self.job(job).duration_s, self.now);
        let end_s = progress.end();
        self.running.push(Run { job, shares, progress, end_s, exclusive: true, host: None });
    }

    fn level(&mut self) {
        let gpus = self.nodes.gpus();
        self.levels.push(Level {
            at_s: self.now,
            pool: self.vc,
            gpus,
            allocated: gpus - self.nodes.free(),
            waiting: self.pending.len() as u32,
        });
    }

    fn stuck(&self) -> LucidError {
        LucidError::Stuck {
            at_s: self.now,
            job: self.pending.first().map_or_else(String::new, |&job| self.job(job).id.clone()),
            vc: self.inputs.vcs[self.vc].name.clone(),
        }
    }
}

impl Run {
    fn set_rate(&mut self, now: u64, rate: f64) {
        self.progress.set_rate(now, rate);
        self.end_s = self.progress.end();
    }
}
