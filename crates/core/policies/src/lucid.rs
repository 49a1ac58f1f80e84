//! Lucid: non-intrusive profiling, packing by sharing score, priority by estimated GPU time.
//!
//! Source: Hu et al., "Lucid: A Non-intrusive, Scalable and Interpretable Scheduler for Deep
//! Learning Training Jobs", ASPLOS '23, and what its artifact's simulator does
//! (research/lucid-simulator.md §8); restated. Inside the engine, with the engine's truth: its
//! artifact's own results, which break conservation, are `compat=lucid`.
//! Objective: mean completion time without preemption. Waiting jobs go in the order estimate × GPUs.
//! While sharing is on, each first looks for a partner, even if GPUs idle: the job that started
//! first among those that run alone on as many GPUs (at most 8), with sharing scores that add up to
//! at most 2, memory for both, and a priority value of at least half its own; then for free GPUs;
//! and nobody blocks those behind. While sharing is off, the first job that does not fit blocks.
//! Sharing is off while few jobs are forecast to come.
//!
//! Profiler: jobs that have never run and ask for at most 8 GPUs first run on nodes of their own,
//! smallest first, for at most 200 s, then make room when somebody waits; one more node while more
//! than 10 wait for it. Never where each tenant has its own nodes, as those nodes would be taken from
//! one of them.
//!
//! Deviations: profiling costs its time and counts as work done as far as restarts allow (in the
//! artifact both are free); the extra node leaves as soon as it is empty and at most 10 wait, since
//! a policy keeps no memory; without a file the forecast is the rate of the last 50 minutes, over
//! which the artifact averages its own; a partner's memory must fit, not leave a byte.
//! Cost: O(keys · hosts of their size + placed) a round.

use crate::in_order::serve_in_order;
use deepshare_engine::{
    CapacityMode, Draft, HostKind, PairBar, PairTerms, Policy, Rank, Reason, Slice, State,
};
use deepshare_model::{AttemptId, Devices, JobId, NodeId, PoolId, Retention, Span, Time};
use serde::{Deserialize, Serialize};

/// When Lucid shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LucidSharing {
    /// While more jobs are forecast than the threshold.
    #[default]
    Forecast,
    /// Always.
    On,
    /// Never.
    Off,
}

/// What the policy can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LucidSettings {
    /// When it shares.
    pub sharing: LucidSharing,
    /// Jobs forecast for ten minutes, thousandths, at or below which it does not share.
    pub quiet_milli: u32,
    /// Nodes for profiling; 0 = profiles are known.
    pub profiler_nodes: u32,
    /// Forecast jobs for each ten minutes, thousandths; empty = what came lately.
    pub forecast_milli: Vec<u64>,
    /// When the first of those ten minutes begins.
    pub forecast_from: Time,
}

impl Default for LucidSettings {
    fn default() -> Self {
        LucidSettings {
            sharing: LucidSharing::Forecast,
            quiet_milli: 2_000,
            profiler_nodes: 0,
            forecast_milli: Vec::new(),
            forecast_from: Time::ZERO,
        }
    }
}

/// Widest job that is profiled or packed.
const WIDEST: u32 = 8;
/// Sharing scores of a pair may add up to this.
const SCORES: u8 = 2;
/// A job's priority value may be this many times its partner's.
const RATIO: u64 = 2;
/// Longest profiling run.
const PROFILED: Span = Span::from_secs(200);
/// More waiting jobs than this get the profiler another node.
const CROWD: usize = 10;
/// What a row of the forecast covers, and how many rows are averaged.
const ROW: Span = Span::from_secs(600);
const ROWS: u64 = 5;

/// Lucid.
#[derive(Clone, Debug, Default)]
pub struct Lucid {
    /// What it was told.
    pub settings: LucidSettings,
}

impl Policy for Lucid {
    fn name(&self) -> &'static str {
        "lucid"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        Rank([priority(state, job), state.job(job).queue_seq, 0])
    }

    fn shares(&self) -> bool {
        self.settings.sharing != LucidSharing::Off
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        // Where each tenant has its own nodes there are none to spare.
        let own_nodes = draft.state().settings().capacity == CapacityMode::Partition;
        let profiles = self.settings.profiler_nodes > 0 && !own_nodes;
        if profiles {
            self.profile(draft);
        }
        if self.packs(draft) {
            pack(draft, profiles);
        } else {
            serve_in_order(draft);
        }
    }
}

/// Estimated GPU time: smaller first.
fn priority(state: &State, job: JobId) -> u64 {
    let entry = state.job(job);
    entry.estimate.map_or(u64::MAX, |time| time.0.saturating_mul(u64::from(entry.gpus())))
}

impl Lucid {
    fn packs(&self, draft: &mut Draft<'_>) -> bool {
        match self.settings.sharing {
            LucidSharing::On => true,
            LucidSharing::Off => false,
            LucidSharing::Forecast => {
                let now = draft.now();
                // The switch is looked at as rows pass, too.
                let into = (now.0 + ROW.0 - self.settings.forecast_from.0 % ROW.0) % ROW.0;
                draft.wake_at(now + Span(ROW.0 - into));
                self.expected_milli(draft.state()) > u64::from(self.settings.quiet_milli)
            }
        }
    }

    /// Jobs expected for ten minutes, thousandths.
    fn expected_milli(&self, state: &State) -> u64 {
        let now = state.now();
        let rows = &self.settings.forecast_milli;
        if rows.is_empty() {
            let since = Time(now.0.saturating_sub(ROWS * ROW.0));
            let recent = state.jobs().iter().rev().take_while(|job| job.spec.submit > since);
            return recent.count() as u64 * 1_000 / ROWS;
        }
        let passed = match now.since(self.settings.forecast_from) {
            Some(since) => since.0 / ROW.0 + 1,
            None => 0,
        };
        let next = usize::try_from(passed).unwrap_or(usize::MAX).min(rows.len());
        let coming = &rows[next..(next + ROWS as usize).min(rows.len())];
        // Beyond its end a forecast says nothing against sharing.
        let sum: u64 = coming.iter().sum();
        sum.checked_div(coming.len() as u64).unwrap_or(u64::MAX)
    }

    /// Ends profiling runs that are over, starts those that find a place, and keeps the profiler's
    /// nodes out of the rest of the round.
    fn profile(&self, draft: &mut Draft<'_>) {
        let pool = draft.pool();
        let (unprofiled, crowd) = unprofiled(draft.state(), pool);
        let nodes = self.nodes(draft.state(), pool, crowd);
        let on = |state: &State, slice: &Slice| {
            nodes.contains(&slice.node) && state.nodes()[slice.node.index()].spec.pool == pool
        };
        let state = draft.state();
        let running = state.evictable(pool).filter(|a| a.placement.iter().any(|s| on(state, s)));
        let running: Vec<_> = running.map(|a| (a.id, a.running_since)).collect();
        let busy = !running.is_empty();
        for (attempt, since) in running {
            let over = since.map_or(draft.now() + PROFILED, |since| since + PROFILED);
            if over <= draft.now() {
                draft.evict(attempt);
            } else {
                draft.wake_at(over);
            }
        }
        for job in unprofiled {
            let Some(slice) = snuggest(draft.state(), &nodes, job) else { break };
            if let Err(reason) = draft.place_on(job, vec![slice]) {
                draft.refuse(job, reason);
            }
        }
        // With nothing to profile they serve everybody: a job may be as wide as the pool.
        if crowd > 0 || busy {
            draft.hold_back_nodes(&nodes);
        }
    }

    /// The profiler's nodes: the last of the pool, one more while many wait for them.
    fn nodes(&self, state: &State, pool: PoolId, crowd: usize) -> Vec<NodeId> {
        let base = self.settings.profiler_nodes as usize;
        let all = &state.pool(pool).nodes;
        // Somebody has to be served too.
        let most = all.len().saturating_sub(1);
        let last: Vec<NodeId> = all.iter().rev().copied().take((base + 1).min(most)).collect();
        let extra = last.get(base).is_some_and(|id| {
            let node = &state.nodes()[id.index()];
            let profiling = |id: &AttemptId| {
                let job = state.job(state.attempt(*id).job);
                job.gpus() <= WIDEST && job.served.is_zero() && job.work.is_zero()
            };
            let mut residents = node.held().iter().flat_map(|device| node.residents(device));
            crowd > CROWD && residents.all(profiling)
        });
        last.into_iter().take(base + usize::from(extra)).collect()
    }
}

/// Waiting jobs that have never run and are to be profiled, smallest first.
fn unprofiled(state: &State, pool: PoolId) -> (Vec<JobId>, usize) {
    let mut jobs: Vec<JobId> = state
        .active_keys(pool)
        .filter(|&key| state.key(key).demand.gpus <= WIDEST)
        .flat_map(|key| state.waiting_of(key))
        .filter(|&job| state.job(job).served.is_zero())
        .collect();
    jobs.sort_by_key(|&job| (state.job(job).gpus(), job));
    let crowd = jobs.len();
    (jobs, crowd)
}

/// Devices of the node with the fewest free ones that are enough.
fn snuggest(state: &State, nodes: &[NodeId], job: JobId) -> Option<Slice> {
    let demand = &state.job(job).spec.demand;
    let fits = |&&id: &&NodeId| {
        let node = &state.nodes()[id.index()];
        let typed = demand.gpu_type.is_none_or(|wanted| wanted == node.spec.gpu_type);
        let memory = node.spec.gpu_memory_mib;
        let memory_fits = memory == 0 || demand.gpu_memory_mib <= memory;
        let room = node.open().count().min(node.host_room_for(demand.per_gpu));
        let room = room.min(state.admitted_gpus(id, demand));
        typed && memory_fits && room >= demand.gpus
    };
    let open = |id: NodeId| state.nodes()[id.index()].open();
    let node = *nodes.iter().filter(fits).min_by_key(|&&id| (open(id).count(), id))?;
    Some(Slice { node, devices: Devices(open(node).lowest(demand.gpus).0) })
}

/// Serves every waiting job that finds a partner or free GPUs, in order of priority.
fn pack(draft: &mut Draft<'_>, profiles: bool) {
    let mut walk = draft.state().walk(draft.pool());
    while let Some(job) = walk.next(draft.state()) {
        if profiles && draft.state().job(job).gpus() <= WIDEST && is_new(draft.state(), job) {
            draft.refuse(job, Reason::BetweenRounds { next: draft.now() + PROFILED });
            continue;
        }
        if let Some(host) = partner(draft.state(), draft.pool(), job) {
            let terms =
                PairTerms { bar: PairBar::NONE, own: Retention::WHOLE, theirs: Retention::WHOLE };
            let class = draft.state().job(job).spec.class;
            if draft.share(job, class, host, terms).is_ok() {
                continue;
            }
        }
        if let Err(reason) = draft.place(job) {
            draft.refuse_key_of(job, reason);
            // Those behind it with the same demand and profile have no smaller priority value.
            walk.skip_key();
        }
    }
}

/// True if the job still has to be profiled.
fn is_new(state: &State, job: JobId) -> bool {
    state.job(job).served.is_zero()
}

/// The job that started first among those that a waiting one may join.
fn partner(state: &State, pool: PoolId, job: JobId) -> Option<AttemptId> {
    let ask = state.ask_kind(pool, state.job(job).ask?);
    let own = state.retentions().score(ask.profile)?;
    if ask.demand.gpus > WIDEST {
        return None;
    }
    let mine = priority(state, job);
    let may = |kind: &HostKind| {
        let score = state.retentions().score(kind.profile);
        score.is_some_and(|score| score + own <= SCORES)
            && kind.layout == ask.demand.layout
            && kind.trust_domain == ask.sharing.trust_domain
            && ask.demand.gpu_type.is_none_or(|wanted| wanted == kind.gpu_type)
            && ask.demand.gpu_memory_mib <= kind.memory_left_mib
    };
    let hosts = state.hosts(pool, ask.demand.gpus).filter(|(kind, _)| may(kind));
    let near = |id: &AttemptId| {
        let attempt = state.attempt(*id);
        mine <= priority(state, attempt.job).saturating_mul(RATIO)
            && state.takes_partner(attempt)
            && state.admits_on(&attempt.placement, &ask.demand)
    };
    hosts.flat_map(|(_, hosts)| hosts.iter().map(|&(_, id)| id)).filter(near).min()
}
