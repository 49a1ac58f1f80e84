//! What costs most, each by itself and from the same state.

use super::steady::{Steady, Times};
use super::world::{STEP, World, lends};
use deepshare_engine::{AttemptState, Event};
use deepshare_model::{
    AttemptId, Class, Demand, GpuTypeId, JobSpec, NodeId, PoolId, Quota, Sharing, Span, TenantId,
    Time, UserId,
};
use std::time::Duration;

/// Times that each is done.
pub const REPETITIONS: usize = 20;
/// Jobs of the array.
const ARRAY: u32 = 1_000;
/// GPUs of the gang.
const GANG: u32 = 256;

/// What was measured.
pub struct Worst {
    /// What happened.
    pub what: String,
    /// The engine's time for its instant.
    pub times: Times,
    /// What came of it, the last time.
    pub came_of_it: String,
}

/// Measures every case.
///
/// # Panics
/// If the state is not as each case needs it: the figures would say nothing.
pub fn measure(from: &Steady) -> Vec<Worst> {
    let state = from.world.engine().state();
    let by_quota = |wanted: &dyn Fn(TenantId) -> bool| {
        let all = (0..state.tenant_count()).map(TenantId::from_index);
        let mut tenants: Vec<TenantId> = all.filter(|&tenant| wanted(tenant)).collect();
        tenants.sort_by_key(|&tenant| std::cmp::Reverse(state.tenant(tenant).quota.total()));
        tenants
    };
    let backlogged = by_quota(&|tenant| !lends(tenant));
    let lending = by_quota(&lends);
    let nodes = most_crowded(&from.world);
    let of = |tenants: &[TenantId], time: usize| tenants[time % tenants.len()];
    vec![
        case(from, "a node is lost, those with most jobs in turn", |world, time| {
            world.tell(Event::NodeLost { node: nodes[time % nodes.len()] });
        }),
        case(from, "a quota is cut to half, the largest in turn", |world, time| {
            halve(world, of(&backlogged, time));
        }),
        case(from, "1,000 guaranteed jobs of a tenant whose quota is used up", |world, time| {
            array(world, of(&backlogged, time), ARRAY);
        }),
        case(from, "1,000 guaranteed jobs of the tenant that lends most", |world, _| {
            array(world, lending[0], ARRAY);
        }),
        gang_case(from),
    ]
}

/// Measures one case; `happen` is given a world of its own and which time it is.
fn case(from: &Steady, what: &str, happen: impl Fn(&mut World, usize)) -> Worst {
    let mut came_of_it = String::new();
    let times = (0..REPETITIONS).map(|time| {
        let mut world = ready(from);
        let before = world.tally();
        happen(&mut world, time);
        let spent = world.decide();
        let after = world.tally();
        came_of_it = format!(
            "{} started, {} evicted for others",
            after.starts - before.starts,
            after.victims - before.victims
        );
        spent
    });
    let times = Times::of(times.collect());
    Worst { what: what.to_owned(), times, came_of_it }
}

/// A copy of the world at its next instant.
fn ready(from: &Steady) -> World {
    let mut world = from.world.fork();
    let at = world.now() + STEP;
    world.advance_to(at, &mut Vec::new());
    world
}

/// Nodes with most attempts, most first.
fn most_crowded(world: &World) -> Vec<NodeId> {
    let mut attempts = vec![0_u32; world.engine().state().nodes().len()];
    for attempt in world.engine().state().live(PoolId(0)) {
        attempt.placement.iter().for_each(|slice| attempts[slice.node.index()] += 1);
    }
    let mut nodes: Vec<usize> = (0..attempts.len()).collect();
    nodes.sort_by_key(|&node| std::cmp::Reverse(attempts[node]));
    nodes.into_iter().map(NodeId::from_index).collect()
}

fn halve(world: &mut World, tenant: TenantId) {
    let mut spec = world.engine().state().tenant(tenant).clone();
    let types = world.engine().state().gpu_types();
    let mut quota = Quota::default();
    for of in (0..types).map(GpuTypeId::from_index) {
        quota.set(of, spec.quota.of(of) / 2);
    }
    spec.quota = quota;
    world.tell(Event::TenantSet { tenant, spec });
}

fn guaranteed(tenant: TenantId, gpus: u32) -> JobSpec {
    JobSpec {
        tenant,
        user: UserId(0),
        class: Class::Guaranteed,
        priority: 0,
        submit: Time::ZERO,
        demand: Demand::gpus(gpus),
        sharing: Sharing::default(),
        profile: None,
        training: None,
        recommended: None,
        requested_time: None,
    }
}

/// Submits so many guaranteed jobs of one GPU at one instant.
pub fn array(world: &mut World, tenant: TenantId, jobs: u32) {
    for _ in 0..jobs {
        world.submit(guaranteed(tenant, 1), Span::from_secs(3_600));
    }
}

/// A wide gang of the tenant whose quota is all lent.
fn gang_case(from: &Steady) -> Worst {
    let mut victims = 0;
    let times = (0..REPETITIONS).map(|_| {
        let mut world = ready(from);
        let started = gang(&mut world, GANG);
        victims = started.victims;
        started.spent
    });
    Worst {
        what: format!("a guaranteed gang of {GANG} GPUs, all of them lent"),
        times: Times::of(times.collect()),
        came_of_it: format!("the gang started, {victims} evicted for it"),
    }
}

/// A gang that took its devices from others.
pub struct Started {
    /// The engine's time.
    pub spent: Duration,
    /// Attempts evicted for it.
    pub victims: u64,
    /// Its own.
    pub attempt: AttemptId,
}

/// A gang of the first tenant is submitted, evicts and starts.
///
/// # Panics
/// If it does not.
pub fn gang(world: &mut World, gpus: u32) -> Started {
    let before = world.tally();
    let job = world.submit(guaranteed(TenantId(0), gpus), Span::from_secs(3_600));
    let spent = world.decide();
    let victims = world.tally().victims - before.victims;
    assert!(victims > 0, "the gang's GPUs are lent");
    assert!(world.tally().reservations > before.reservations, "they are reserved for it");
    let state = world.engine().state();
    let runs = |id: &AttemptId| state.attempt(*id).state == AttemptState::Running;
    let attempt = state.job(job).active().filter(runs);
    Started { spent, victims, attempt: attempt.expect("it starts once they are released") }
}
