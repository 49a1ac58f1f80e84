//! The guard of wide gangs: after a time, nodes are set aside for the one that has waited longest.
//!
//! A gang wider than a node needs whole nodes, which a busy cluster never has at once: something
//! small is always placed on them first. The guard keeps nodes, never quota (a gang over its
//! tenant's quota or best-effort cap is not guarded; holding back quota for it was measured to
//! delay everyone and help nobody, spec §3). The nodes are those expected to be empty first;
//! best-effort jobs are not placed there, guaranteed ones only where nothing else is free.

use deepshare_engine::{Draft, Guard, NodeCondition, State};
use deepshare_model::{Class, Demand, GpuTypeId, JobId, Layout, NodeId, PoolId, Span, Time};

/// How long nodes stay chosen before better ones are looked for, and how often the oldest gang is
/// looked for.
const LOOK_AGAIN: Span = Span::from_secs(600);

/// A job that outlived its estimate is expected to run on as long as it has outlived it, and at
/// least this long.
const AT_LEAST: Span = Span::from_secs(60);

/// Brings the pool's guard up to date: drops one whose gang is gone, looks for a gang that has
/// waited `after` since it was queued, and chooses its nodes.
pub(super) fn refresh(draft: &mut Draft<'_>, after: Span, spill: bool) {
    let (now, pool) = (draft.now(), draft.pool());
    if after.is_zero() {
        return;
    }
    let state = draft.state();
    let kept = state.pool(pool).guard().filter(|guard| is_blocked(state, guard.job, spill));
    let job = match kept {
        Some(guard) if now < look_again_at(guard) && !is_outdone(state, pool, guard) => return,
        Some(guard) => Some(guard.job),
        None => {
            if now < state.pool(pool).guard_idle_until() {
                return;
            }
            let (job, next) = oldest(state, pool, after, spill);
            if job.is_none() {
                // Gangs that a quota holds back are looked at again now and then: in every round
                // it would cost more than it is worth to them.
                let at = next.unwrap_or(now + after.min(LOOK_AGAIN)).max(now + AT_LEAST);
                draft.set_guard_idle_until(at);
                if next.is_some() {
                    draft.wake_sleepers_at(at);
                }
            }
            job
        }
    };
    let guard = job.and_then(|job| {
        let charge = charge_of(draft.state(), job, spill)?;
        match draft.refusal(job, charge) {
            // It is served in this round, and needs nothing set aside.
            None => Some(Guard { job, nodes: Vec::new(), since: now, expected: now }),
            Some(_) => {
                draft.refresh_emptying();
                choose(draft.state(), pool, job)
            }
        }
    });
    draft.set_guard(guard);
}

/// True if a node that was not chosen came to be wholly free before the chosen ones are.
fn is_outdone(state: &State, pool: PoolId, guard: &Guard) -> bool {
    let Some(node) = guard.nodes.first() else { return false };
    let gpu_type = state.nodes()[node.index()].spec.gpu_type;
    let Some(index) = state.pool(pool).free(gpu_type) else { return false };
    let size = index.levels();
    let open = |node: &&NodeId| state.nodes()[node.index()].open().count() == size;
    let chosen = guard.nodes.iter().filter(open).count();
    chosen < guard.nodes.len() && chosen < index.nodes_with(size) as usize
}

/// When better nodes are looked for: the longer the wait, the more rarely.
fn look_again_at(guard: &Guard) -> Time {
    let wait = guard.expected.saturating_since(guard.since);
    guard.since + LOOK_AGAIN.max(Span(wait.0 / 8))
}

/// True if the job waits, and no quota keeps it from starting.
fn is_blocked(state: &State, job: JobId, spill: bool) -> bool {
    state.job(job).is_waiting() && charge_of(state, job, spill).is_some()
}

/// The class whose quota has room for the job, its own first.
pub(super) fn charge_of(state: &State, job: JobId, spill: bool) -> Option<Class> {
    let spec = &state.job(job).spec;
    let spilled = (spill && spec.class == Class::Guaranteed).then_some(Class::BestEffort);
    let types = (0..state.gpu_types()).map(GpuTypeId::from_index);
    let has_room = |class: &Class| {
        let wanted = |gpu_type: &GpuTypeId| spec.demand.gpu_type.is_none_or(|t| t == *gpu_type);
        let mut types = types.clone().filter(wanted);
        types.any(|gpu_type| state.allows((spec.tenant, *class), gpu_type, spec.demand.gpus))
    };
    [Some(spec.class), spilled].into_iter().flatten().find(has_room)
}

/// The gang wider than a node that has waited longest and at least `after`, among those that no
/// quota holds back; and when another may have, if none has yet.
fn oldest(state: &State, pool: PoolId, after: Span, spill: bool) -> (Option<JobId>, Option<Time>) {
    let now = state.now();
    let mut best: Option<(Time, JobId)> = None;
    let mut next: Option<Time> = None;
    for key in state.active_keys(pool) {
        let demand = &state.key(key).demand;
        if demand.gpus <= node_size(state, pool, demand) {
            continue;
        }
        let Some(oldest) = state.oldest_waiting(key) else { continue };
        let due = oldest.0 + after;
        if due > now {
            next = Some(next.map_or(due, |earlier| earlier.min(due)));
        } else if best.is_none_or(|best| oldest < best) && is_blocked(state, oldest.1, spill) {
            best = Some(oldest);
        }
    }
    (best.map(|(_, job)| job), next.filter(|_| best.is_none()))
}

/// GPUs of the pool's largest nodes that the demand may use.
fn node_size(state: &State, pool: PoolId, demand: &Demand) -> u32 {
    let types = (0..state.gpu_types()).map(GpuTypeId::from_index);
    let wanted = types.filter(|gpu_type| demand.gpu_type.is_none_or(|t| t == *gpu_type));
    wanted.filter_map(|t| state.pool(pool).free(t)).map(|index| index.levels()).max().unwrap_or(0)
}

/// The nodes of one GPU type that are expected to be empty first and together hold the gang.
fn choose(state: &State, pool: PoolId, job: JobId) -> Option<Guard> {
    let demand = &state.job(job).spec.demand;
    let types = (0..state.gpu_types()).map(GpuTypeId::from_index);
    let wanted = types.filter(|gpu_type| demand.gpu_type.is_none_or(|t| t == *gpu_type));
    let choices = wanted.filter_map(|gpu_type| choose_of_type(state, pool, demand, gpu_type));
    let (expected, nodes) = choices.min()?;
    Some(Guard { job, nodes, since: state.now(), expected })
}

fn choose_of_type(
    state: &State,
    pool: PoolId,
    demand: &Demand,
    gpu_type: GpuTypeId,
) -> Option<(Time, Vec<NodeId>)> {
    let size = state.pool(pool).free(gpu_type)?.levels();
    let each = match demand.layout {
        Layout::Consolidated => size,
        Layout::Members(each) => each,
    };
    let room = |id: NodeId| {
        let usable = state.nodes()[id.index()].usable().count();
        usable.min(state.admitted_gpus(id, demand)) / each * each
    };
    let mut nodes: Vec<(Time, NodeId)> = state
        .pool(pool)
        .nodes
        .iter()
        .filter(|&&id| {
            let node = &state.nodes()[id.index()];
            let ready = node.condition == NodeCondition::Ready;
            ready && node.spec.gpu_type == gpu_type && room(id) >= each
        })
        .map(|&node| (empty_at(state, node), node))
        .collect();
    nodes.sort_unstable();
    let mut chosen = Vec::new();
    let mut left = demand.gpus;
    for (at, node) in nodes {
        chosen.push(node);
        left = left.saturating_sub(room(node));
        if left == 0 {
            return Some((at, chosen));
        }
    }
    None
}

/// When the last of a node's residents is expected to end.
fn empty_at(state: &State, node: NodeId) -> Time {
    let (node, now) = (&state.nodes()[node.index()], state.now());
    match node.empties_at() {
        _ if node.held().is_empty() => now,
        at if at > now => at,
        outlived => now + now.saturating_since(outlived).max(AT_LEAST),
    }
}
