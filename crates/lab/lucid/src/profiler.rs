//! The profiler: every narrow job runs there for a short while before anything else, and one that
//! is done by then never goes further.

use crate::cluster::{NODE_GPUS, Nodes, Share};
use crate::echo::EXTRA;
use crate::forecast::Outlook;
use crate::inputs::LucidInputs;
use crate::outcome::{Level, Profiled, Scaling};
use crate::settings::ProfilerSettings;
use crate::simulate::Pace;

/// What the artifact takes for the forecast of GPUs where there is none.
const NO_FORECAST_GPUS: f64 = -1.0;

/// The profiling pass.
pub(crate) struct Profiler<'a> {
    inputs: &'a LucidInputs,
    settings: &'a ProfilerSettings,
    nodes: Nodes,
    outlook: Outlook<'a>,
    pending: Vec<usize>,
    running: Vec<Run>,
    /// What came of it.
    pub(crate) result: Profiling,
}

/// What the profiling pass leaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profiling {
    /// By job.
    pub(crate) jobs: Vec<Option<Profiled>>,
    pub(crate) scaling: Vec<Scaling>,
    pub(crate) levels: Vec<Level>,
    pub(crate) ticks: u64,
}

struct Run {
    end_s: u64,
    shares: Vec<Share>,
}

impl<'a> Profiler<'a> {
    pub(crate) fn new(inputs: &'a LucidInputs, settings: &'a ProfilerSettings) -> Profiler<'a> {
        let rows = &inputs.forecast.rows;
        let first = inputs.forecast_start_s;
        Profiler {
            inputs,
            settings,
            nodes: Nodes::new(settings.nodes),
            outlook: Outlook::new(rows, first, |row| row.gpus, NO_FORECAST_GPUS),
            pending: Vec::new(),
            running: Vec::new(),
            result: Profiling { jobs: vec![None; inputs.jobs.len()], ..Profiling::default() },
        }
    }

    /// Profiles `jobs`, which are in trace order, but for those that are too wide.
    ///
    /// The artifact stops after the last profile, and gives up altogether if the extra node is
    /// still there. Here the profiler idles until it can give the node back.
    pub(crate) fn run(mut self, pace: Pace, jobs: impl Iterator<Item = usize>) -> Profiling {
        let widest = self.settings.widest.min(NODE_GPUS);
        let all = &self.inputs.jobs;
        let mut to_come = jobs.filter(|&job| all[job].gpus <= widest).peekable();
        if self.settings.nodes == 0 {
            return self.result;
        }
        self.level(self.inputs.start_s);
        loop {
            let event = self.next(to_come.peek().map(|&job| all[job].submit_s));
            let before = self.result.levels.last().map_or(0, |level| level.at_s);
            let Some(now) = pace.next(before, event) else { break };
            self.result.ticks += 1;
            self.end(now);
            while let Some(job) = to_come.next_if(|&job| all[job].submit_s <= now) {
                self.pending.push(job);
            }
            self.place(now);
            self.scale(now);
            self.level(now);
        }
        self.result
    }

    /// The next second in which anything can happen.
    fn next(&self, arrival: Option<u64>) -> Option<u64> {
        let now = self.result.levels.last().map_or(0, |level| level.at_s);
        let after = |every: u64| (now / every.max(1) + 1) * every.max(1);
        let grows = self.pending.len() > self.settings.grow_above && !self.is_grown();
        let grown = self.result.scaling.last().is_some_and(|step| step.grew);
        // A node that has just come is used in the next second.
        let just_grown = grown && self.result.scaling.last().is_some_and(|step| step.at_s == now);
        let instants = [
            arrival,
            self.running.iter().map(|run| run.end_s).min(),
            grows.then(|| after(self.settings.grow_every_s)),
            grown.then(|| after(self.settings.shrink_every_s)),
            (just_grown && !self.pending.is_empty()).then_some(now + 1),
        ];
        instants.into_iter().flatten().min()
    }

    fn is_grown(&self) -> bool {
        self.nodes.count() > self.settings.nodes as usize
    }

    fn end(&mut self, now: u64) {
        let nodes = &mut self.nodes;
        self.running.retain(|run| {
            let ends = run.end_s == now;
            if ends {
                nodes.release(&run.shares);
            }
            !ends
        });
    }

    /// Narrow jobs first; the first that does not fit blocks the others.
    fn place(&mut self, now: u64) {
        let jobs = &self.inputs.jobs;
        self.pending.sort_by_key(|&job| jobs[job].gpus);
        let mut placed = 0;
        for &job in &self.pending {
            let Some(shares) = self.nodes.place(jobs[job].gpus) else { break };
            let finished = jobs[job].duration_s <= self.settings.limit_s;
            let end_s = now + jobs[job].duration_s.min(self.settings.limit_s);
            self.running.push(Run { end_s, shares });
            self.result.jobs[job] = Some(Profiled { start_s: now, end_s, finished });
            placed += 1;
        }
        self.pending.drain(..placed);
    }

    fn scale(&mut self, now: u64) {
        let settings = self.settings;
        let waiting = self.pending.len();
        if !self.is_grown() {
            if now.is_multiple_of(settings.grow_every_s) && waiting > settings.grow_above {
                self.nodes.add(EXTRA);
                self.result.scaling.push(Scaling { at_s: now, grew: true });
            }
            return;
        }
        let extra = self.nodes.position(EXTRA).expect("it is grown");
        if now.is_multiple_of(settings.shrink_every_s)
            && waiting < settings.shrink_below
            && self.nodes.is_idle(extra)
            && self.outlook.ask(now) <= settings.shrink_up_to_gpus
        {
            self.nodes.remove(extra);
            self.result.scaling.push(Scaling { at_s: now, grew: false });
        }
    }

    fn level(&mut self, now: u64) {
        let gpus = self.nodes.gpus();
        self.result.levels.push(Level {
            at_s: now,
            pool: self.inputs.vcs.len(),
            gpus,
            allocated: gpus - self.nodes.free(),
            waiting: self.pending.len() as u32,
        });
    }
}
