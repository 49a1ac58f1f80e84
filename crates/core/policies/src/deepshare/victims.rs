//! Whom to evict for a guaranteed job: the set of least Φ that lets it start.
//!
//! ```text
//! Φ(J) = Σ (1 + α·C_p(j)) / T̂(j)  +  β·(|J|−1) / T̄(J)      (spec §4, Algorithm 2)
//! ```
//!
//! Shielded jobs are victims only where no others will do, and then those preempted too often lately.
//! A victim is evicted whole: a gang frees its devices on every node. No strict subset of the
//! chosen set suffices.

use super::DeepShareSettings;
use super::room::{Room, given, has_memory};
use deepshare_engine::{Attempt, Slice, State};
use deepshare_model::{
    AttemptId, Class, Demand, Devices, GpuTypeId, JobId, Layout, NodeId, PoolId, Resources, Span,
    Time,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Most victims on one node whose subsets are all tried; more are taken greedily.
const EXHAUSTIVE: usize = 10;

/// One job that could be evicted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    attempt: AttemptId,
    /// (1 + α·C_p) / T̂, per second.
    cost: f64,
    /// T̂ in seconds, at least 1.
    left_s: f64,
    /// It is to be left alone wherever anybody else will do.
    shielded: bool,
    /// It was preempted so often lately that it should be spared if at all possible.
    spared: bool,
}

impl Candidate {
    /// Who should stay rather than others, whatever they cost.
    fn standing(&self) -> (bool, bool) {
        (self.shielded, self.spared)
    }
}

/// Jobs that can only be evicted together: one, or the pair on the same devices.
type Party = Vec<Candidate>;

/// What evicting a party gives back on one node.
#[derive(Clone, Debug)]
struct Release {
    party: Party,
    /// Devices that come free.
    devices: Devices,
    /// Devices that each of them leaves: CPU and memory come free also beside those that do not.
    left: u32,
}

/// The cost of a set of victims: how many are shielded, how many should have been spared, then Φ.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Price {
    standing: (usize, usize),
    phi: f64,
}

impl Price {
    fn beats(self, other: Price) -> bool {
        let standing = self.standing.cmp(&other.standing);
        standing.then_with(|| self.phi.total_cmp(&other.phi)).is_lt()
    }
}

/// Φ of one victim alone.
pub(super) fn phi(settings: &DeepShareSettings, state: &State, attempt: &Attempt) -> f64 {
    Search::new(settings, state, state.pool_of(attempt.job)).cost(attempt).0
}

/// A set of victims and its price.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    price: Price,
    pub(super) victims: Vec<AttemptId>,
}

impl Choice {
    /// Φ in 10⁻⁹ per second.
    pub(super) fn phi_nano(&self) -> u64 {
        (self.price.phi * 1e9).round() as u64
    }
}

/// A search in one pool at one instant.
pub(super) struct Search<'a> {
    settings: &'a DeepShareSettings,
    state: &'a State,
    pool: PoolId,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        settings: &'a DeepShareSettings,
        state: &'a State,
        pool: PoolId,
    ) -> Search<'a> {
        Search { settings, state, pool }
    }

    /// The victims of least Φ, if there are any; and when to ask again if a job that has not run
    /// its minimum time yet may become one.
    pub(super) fn victims_for(&self, job: JobId) -> (Option<Choice>, Option<Time>) {
        let spec = &self.state.job(job).spec;
        let demand = spec.demand;
        let mut retry_at: Option<Time> = None;
        let mut best: Option<Choice> = None;
        for gpu_type in (0..self.state.gpu_types()).map(GpuTypeId::from_index) {
            if demand.gpu_type.is_some_and(|wanted| wanted != gpu_type) {
                continue;
            }
            let Some(index) = self.state.pool(self.pool).obtainable(gpu_type) else { continue };
            let quota = self.state.allowance(spec.tenant, Class::Guaranteed, gpu_type);
            if index.total() < demand.gpus || quota < demand.gpus {
                continue;
            }
            let mut choices = [None, None];
            let on_one = demand.gpus <= index.largest();
            match demand.layout {
                _ if on_one => {
                    choices[0] =
                        self.on_one_node(gpu_type, &demand, &BTreeSet::new(), &mut retry_at);
                }
                Layout::Consolidated if demand.gpus > index.levels() => {
                    choices[0] = self.on_whole_nodes(gpu_type, &demand, &mut retry_at);
                }
                _ => {}
            }
            if let Layout::Members(_) = demand.layout {
                choices[1] = self.on_any_nodes(gpu_type, &demand, &mut retry_at);
            }
            // Members may find places on other nodes as well.
            let on_one = [on_one && demand.layout == Layout::Consolidated, false];
            for (choice, on_one) in choices.into_iter().zip(on_one) {
                let Some(choice) = choice else { continue };
                let choice = self.needed_of(choice, on_one, gpu_type, &demand);
                if best.as_ref().is_none_or(|best| choice.price.beats(best.price)) {
                    best = Some(choice);
                }
            }
        }
        (best, retry_at)
    }

    /// The choice without those who could stay, most costly first: a victim that spans nodes may
    /// free more than was counted on.
    fn needed_of(
        &self,
        choice: Choice,
        on_one_node: bool,
        gpu_type: GpuTypeId,
        demand: &Demand,
    ) -> Choice {
        if choice.victims.len() < 2 {
            return choice;
        }
        let mut set: Vec<Candidate> = choice
            .victims
            .iter()
            .filter_map(|&id| self.candidate(self.state.attempt(id), &mut None))
            .collect();
        match one_node(self.state, &set).filter(|_| on_one_node) {
            Some(node) => {
                let fits = |gone: &BTreeSet<AttemptId>| {
                    given(self.state, node, demand, &|id| gone.contains(&id)) >= demand.gpus
                };
                spare_from(&mut set, fits);
            }
            None => {
                let victims = set.iter().map(|victim| victim.attempt);
                let room = Room::new(self.state, (self.pool, gpu_type), demand, victims);
                spare_from(&mut set, |gone| room.fits(|id| gone.contains(&id)));
            }
        }
        match set.len() == choice.victims.len() {
            true => choice,
            false => self.choice_of(&set),
        }
    }

    fn choice_of(&self, set: &[Candidate]) -> Choice {
        let victims = set.iter().map(|victim| victim.attempt).collect();
        Choice { price: self.price(set), victims }
    }

    /// What evicting an attempt costs; `None` if it may not be evicted now.
    fn candidate(&self, attempt: &Attempt, retry_at: &mut Option<Time>) -> Option<Candidate> {
        let now = self.state.now();
        let job = self.state.job(attempt.job);
        let from = self.state.evictable_from(attempt);
        if from > now {
            *retry_at = Some(retry_at.map_or(from, |earlier| earlier.min(from)));
            return None;
        }
        let (cost, left_s) = self.cost(attempt);
        let cap = self.settings.preemption_cap as usize;
        let spared = cap > 0 && job.preempted_within_hour(now) >= cap;
        let shielded = job.shielded;
        Some(Candidate { attempt: attempt.id, cost, left_s, shielded, spared })
    }

    /// (1 + α·C_p) / T̂, and T̂ in seconds.
    fn cost(&self, attempt: &Attempt) -> (f64, f64) {
        let left = self.state.remaining(attempt.job);
        // Nobody knows: as long again as it has run.
        let left = left.unwrap_or_else(|| self.state.served(attempt.job)).max(Span::SECOND);
        let left_s = left.as_secs_f64();
        let alpha = f64::from(self.settings.alpha_milli) / 1_000.0;
        ((1.0 + alpha * self.state.preemption_overhead(attempt.job)) / left_s, left_s)
    }

    fn price(&self, set: &[Candidate]) -> Price {
        let beta = f64::from(self.settings.beta_milli) / 1_000.0;
        let count = set.len() as f64;
        let sum: f64 = set.iter().map(|victim| victim.cost).sum();
        let mean_left: f64 = set.iter().map(|victim| victim.left_s).sum::<f64>() / count;
        let spread = if set.len() > 1 { beta * (count - 1.0) / mean_left } else { 0.0 };
        Price { standing: standing_of(set.iter()), phi: sum + spread }
    }

    /// The cheapest set on one node that makes room for the demand there.
    ///
    /// Candidates are looked at from the one that would run longest. A set that holds a candidate
    /// not yet seen costs at least 1/T̂ of that one, so the search ends when the best set found is
    /// cheaper than that: after very few, as a rule. Who leaves devices to a job that may not be evicted
    /// gives CPU and memory only, which is looked at where devices do not lack.
    fn on_one_node(
        &self,
        gpu_type: GpuTypeId,
        demand: &Demand,
        not: &BTreeSet<NodeId>,
        retry_at: &mut Option<Time>,
    ) -> Option<Choice> {
        let mut seen: BTreeMap<NodeId, Vec<Release>> = BTreeMap::new();
        let mut best: Option<Choice> = None;
        let pool = self.state.pool(self.pool);
        let needs_host = demand.per_gpu != Resources::default();
        // Where a node has the devices, CPU and memory alone may be what is missing.
        let host_only =
            needs_host && pool.free(gpu_type).is_some_and(|free| free.largest() >= demand.gpus);
        let leavers = host_only.then(|| self.state.reclaimable(self.pool));
        let leavers =
            leavers.into_iter().flatten().filter(|(_, attempt)| !self.could_free(attempt));
        let parties = self.state.parties(self.pool, gpu_type).map(|party| (party, true));
        let candidates = merged(parties, leavers.map(|leaver| (leaver, false)));
        for ((end, attempt), frees) in candidates {
            // Those without an estimate come first and in no useful order; those that do not run yet
            // have more left than it seems.
            let known = end < Time::MAX;
            let left = match known {
                true => end.saturating_since(self.state.now()),
                false => self.state.served(attempt.job),
            };
            let least = 1.0 / left.max(Span::SECOND).as_secs_f64();
            let beaten = best
                .as_ref()
                .is_some_and(|best| best.price.standing == (0, 0) && least >= best.price.phi);
            if beaten && attempt.running_since.is_some() {
                if known {
                    break;
                }
                continue;
            }
            let mut party: Option<Party> = None;
            for slice in &attempt.placement {
                let node = &self.state.nodes()[slice.node.index()];
                let enough = node.obtainable().count() >= demand.gpus
                    && has_memory(node, demand)
                    && self.state.admitted_gpus(slice.node, demand) >= demand.gpus;
                if not.contains(&slice.node) || node.spec.gpu_type != gpu_type || !enough {
                    continue;
                }
                if party.is_none() {
                    party = self.party(attempt, frees, retry_at);
                }
                let Some(party) = &party else { break };
                let devices = match frees {
                    true => slice.devices.intersect(node.obtainable()),
                    false => Devices::NONE,
                };
                let here = seen.entry(slice.node).or_insert_with(|| {
                    let gives_host = needs_host && !host_only;
                    if gives_host { self.leavers(slice.node, retry_at) } else { Vec::new() }
                });
                here.push(Release { party: party.clone(), devices, left: slice.devices.count() });
                let choice = self.cheapest_on(slice.node, here, demand);
                if let Some(choice) = choice
                    && best.as_ref().is_none_or(|best| choice.price.beats(best.price))
                {
                    best = Some(choice);
                }
            }
        }
        best
    }

    /// True if all who share an attempt's devices could be evicted with it.
    fn could_free(&self, attempt: &Attempt) -> bool {
        attempt.beside.iter().all(|beside| {
            let partner = self.state.attempt(beside.partner);
            partner.charged == Class::BestEffort && partner.is_evictable()
        })
    }

    /// An attempt and, to free its devices, whoever shares them; `None` if one of them may not be
    /// evicted now.
    fn party(&self, attempt: &Attempt, frees: bool, retry_at: &mut Option<Time>) -> Option<Party> {
        let partners = attempt.beside.iter().filter(|_| frees).map(|beside| beside.partner);
        let all = [attempt.id].into_iter().chain(partners);
        all.map(|id| self.candidate(self.state.attempt(id), retry_at)).collect()
    }

    /// What those on a node give of CPU and memory who leave their devices to others.
    fn leavers(&self, node: NodeId, retry_at: &mut Option<Time>) -> Vec<Release> {
        let mut release = |id: AttemptId| {
            let attempt = self.state.attempt(id);
            let leaves = attempt.charged == Class::BestEffort
                && attempt.is_evictable()
                && !self.could_free(attempt);
            let party = leaves.then(|| self.party(attempt, false, retry_at))??;
            let slice = attempt.placement.iter().find(|slice| slice.node == node)?;
            Some(Release { party, devices: Devices::NONE, left: slice.devices.count() })
        };
        let everyone = self.state.nodes()[node.index()].everyone();
        everyone.into_iter().filter_map(&mut release).collect()
    }

    /// The cheapest set among the candidates seen on a node that holds the newest of them. With a
    /// large β a set and one more long job can cost less than the set alone: only sets of which
    /// everyone is needed count.
    fn cheapest_on(&self, node: NodeId, seen: &[Release], demand: &Demand) -> Option<Choice> {
        let (newest, others) = seen.split_last()?;
        let enough = |set: &[&Release]| self.is_enough(node, set, demand);
        // Whoever joins one that suffices alone is not needed.
        if enough(&[newest]) {
            let needed = !enough(&[]);
            return needed.then(|| self.choice_of(&newest.party));
        }
        let all: Vec<&Release> = seen.iter().collect();
        if !enough(&all) {
            return None;
        }
        let is_minimal = |set: &[&Release]| {
            enough(set) && (0..set.len()).all(|index| !enough(&without(set, index)))
        };
        let mut best: Option<Choice> = None;
        let mut consider = |set: &[&Release]| {
            if !is_minimal(set) {
                return;
            }
            let everyone: Vec<Candidate> = everyone_of(set).map(|(_, victim)| *victim).collect();
            let choice = self.choice_of(&everyone);
            if best.as_ref().is_none_or(|best| choice.price.beats(best.price)) {
                best = Some(choice);
            }
        };
        if others.len() <= EXHAUSTIVE {
            let mut set: Vec<&Release> = Vec::with_capacity(seen.len());
            for subset in 1..1u32 << others.len() {
                set.clear();
                set.extend(
                    others.iter().enumerate().filter_map(|(index, release)| {
                        (subset >> index & 1 == 1).then_some(release)
                    }),
                );
                set.push(newest);
                consider(&set);
            }
        } else {
            consider(&without_surplus(all, enough));
        }
        best
    }

    /// True if what these release on a node makes room for the demand there.
    fn is_enough(&self, node: NodeId, set: &[&Release], demand: &Demand) -> bool {
        let node = &self.state.nodes()[node.index()];
        let devices = set.iter().fold(node.open(), |all, release| all.union(release.devices));
        if devices.count() < demand.gpus {
            return false;
        }
        if demand.per_gpu == Resources::default() {
            return true;
        }
        let mut freed = Resources::default();
        for (release, victim) in everyone_of(set) {
            let per_gpu = self.state.attempt(victim.attempt).per_gpu;
            freed.add(per_gpu.times(release.left));
        }
        demand.per_gpu.times(demand.gpus).fits(node.host_room_with(freed))
    }

    /// Whole nodes for a gang wider than a node, each time the one whose victims add least; then
    /// the cheapest node for the remainder.
    fn on_whole_nodes(
        &self,
        gpu_type: GpuTypeId,
        demand: &Demand,
        retry_at: &mut Option<Time>,
    ) -> Option<Choice> {
        let index = self.state.pool(self.pool).obtainable(gpu_type)?;
        let size = index.levels();
        let whole = (demand.gpus / size) as usize;
        let mut crowds: BTreeMap<NodeId, Vec<Candidate>> = BTreeMap::new();
        for node in index.at(size) {
            let entry = &self.state.nodes()[node.index()];
            let host = entry.host_capacity_for(demand.per_gpu) >= size;
            let admitted = self.state.admitted_gpus(node, demand) >= size;
            if !host || !admitted || !has_memory(entry, demand) {
                continue;
            }
            if let Some(crowd) = self.crowd(node, retry_at) {
                crowds.insert(node, crowd);
            }
        }
        if crowds.len() < whole {
            return None;
        }
        let mut chosen: BTreeMap<AttemptId, Candidate> = BTreeMap::new();
        let mut nodes: BTreeSet<NodeId> = BTreeSet::new();
        let added = |crowd: &[Candidate], chosen: &BTreeMap<AttemptId, Candidate>| {
            let new = crowd.iter().filter(|victim| !chosen.contains_key(&victim.attempt));
            let standing = standing_of(new.clone());
            let cost: f64 = new.map(|victim| victim.cost).sum();
            // Costs are not negative, so their bits are ordered as they are.
            (standing, cost.to_bits())
        };
        let mut heap: BinaryHeap<_> =
            crowds.iter().map(|(&node, crowd)| Reverse((added(crowd, &chosen), node))).collect();
        while nodes.len() < whole {
            let Reverse((price, node)) = heap.pop()?;
            if nodes.contains(&node) || price != added(&crowds[&node], &chosen) {
                continue;
            }
            nodes.insert(node);
            for victim in &crowds[&node] {
                if chosen.insert(victim.attempt, *victim).is_some() {
                    continue;
                }
                // Its other nodes have become cheaper.
                for slice in &self.state.attempt(victim.attempt).placement {
                    if let Some(crowd) = crowds.get(&slice.node) {
                        heap.push(Reverse((added(crowd, &chosen), slice.node)));
                    }
                }
            }
        }
        let mut victims: Vec<Candidate> = chosen.into_values().collect();
        let rest = demand.gpus % size;
        if rest > 0 {
            self.add_remainder(gpu_type, demand, rest, &nodes, &mut victims, retry_at)?;
        }
        Some(self.choice_of(&victims))
    }

    /// Everyone who holds a device of the node, if all of them may be evicted.
    fn crowd(&self, node: NodeId, retry_at: &mut Option<Time>) -> Option<Vec<Candidate>> {
        let entry = &self.state.nodes()[node.index()];
        let mut crowd: Vec<Candidate> = Vec::new();
        for device in entry.held().iter() {
            for &holder in entry.residents(device) {
                if !crowd.iter().any(|victim| victim.attempt == holder) {
                    crowd.push(self.candidate(self.state.attempt(holder), retry_at)?);
                }
            }
        }
        Some(crowd)
    }

    fn add_remainder(
        &self,
        gpu_type: GpuTypeId,
        demand: &Demand,
        rest: u32,
        nodes: &BTreeSet<NodeId>,
        victims: &mut Vec<Candidate>,
        retry_at: &mut Option<Time>,
    ) -> Option<()> {
        let part = Demand { gpus: rest, ..*demand };
        let gone = |attempt: AttemptId| victims.iter().any(|victim| victim.attempt == attempt);
        let index = self.state.pool(self.pool).obtainable(gpu_type)?;
        let mut offered = (rest..=index.levels()).flat_map(|level| index.at(level));
        let enough = |node: NodeId| given(self.state, node, &part, &gone) >= rest;
        if offered.any(|node| !nodes.contains(&node) && enough(node)) {
            return Some(());
        }
        let choice = self.on_one_node(gpu_type, &part, nodes, retry_at)?;
        for attempt in choice.victims {
            if !victims.iter().any(|victim| victim.attempt == attempt) {
                victims.push(self.candidate(self.state.attempt(attempt), retry_at)?);
            }
        }
        Some(())
    }

    /// For gangs of members, over any nodes: the longest-running jobs, until enough members fit;
    /// those that are shielded, or should be spared, come last.
    fn on_any_nodes(
        &self,
        gpu_type: GpuTypeId,
        demand: &Demand,
        retry_at: &mut Option<Time>,
    ) -> Option<Choice> {
        let here = |slice: &Slice| self.state.nodes()[slice.node.index()].spec.gpu_type == gpu_type;
        let mut candidates: Vec<Candidate> = self
            .state
            .reclaimable(self.pool)
            .map(|(_, attempt)| attempt)
            .filter(|attempt| attempt.placement.iter().any(here))
            .filter_map(|attempt| self.candidate(attempt, retry_at))
            .collect();
        candidates.sort_by_key(Candidate::standing);
        let victims = candidates.iter().map(|victim| victim.attempt);
        let room = Room::new(self.state, (self.pool, gpu_type), demand, victims);
        let enough = |count: usize| {
            let gone: BTreeSet<AttemptId> =
                candidates[..count].iter().map(|victim| victim.attempt).collect();
            room.fits(|id| gone.contains(&id))
        };
        // More victims make more room: the least number that suffices, by halving.
        if !enough(candidates.len()) {
            return None;
        }
        let (mut few, mut many) = (0, candidates.len());
        while few + 1 < many {
            let middle = few.midpoint(many);
            if enough(middle) {
                many = middle;
            } else {
                few = middle;
            }
        }
        Some(self.choice_of(&candidates[..many]))
    }
}

/// Candidates of two kinds in one order, those with most time left first.
fn merged<'a>(
    parties: impl Iterator<Item = ((Time, &'a Attempt), bool)>,
    leavers: impl Iterator<Item = ((Time, &'a Attempt), bool)>,
) -> impl Iterator<Item = ((Time, &'a Attempt), bool)> {
    let (mut parties, mut leavers) = (parties.peekable(), leavers.peekable());
    std::iter::from_fn(move || {
        let end = |next: Option<&((Time, &Attempt), bool)>| next.map(|((end, _), _)| *end);
        match end(leavers.peek()) > end(parties.peek()) {
            true => leavers.next(),
            false => parties.next(),
        }
    })
}

/// The node that all of these victims are on, if there is only one and each is on no other.
fn one_node(state: &State, set: &[Candidate]) -> Option<NodeId> {
    let mut slices = set.iter().flat_map(|victim| &state.attempt(victim.attempt).placement);
    let node = slices.next()?.node;
    slices.all(|slice| slice.node == node).then_some(node)
}

/// Spares those without whom the job fits: shielded ones first, then the most costly.
fn spare_from(set: &mut Vec<Candidate>, fits: impl Fn(&BTreeSet<AttemptId>) -> bool) {
    set.sort_by(|a, b| {
        let cost = b.cost.total_cmp(&a.cost);
        b.standing().cmp(&a.standing()).then(cost).then(a.attempt.cmp(&b.attempt))
    });
    let mut gone: BTreeSet<AttemptId> = set.iter().map(|victim| victim.attempt).collect();
    set.retain(|victim| {
        gone.remove(&victim.attempt);
        let needed = !fits(&gone);
        if needed {
            gone.insert(victim.attempt);
        }
        needed
    });
}

/// Everyone in these parties and where, once: who was found beside two others may be in two of them.
fn everyone_of<'a>(set: &'a [&'a Release]) -> impl Iterator<Item = (&'a Release, &'a Candidate)> {
    set.iter().enumerate().flat_map(move |(index, &release)| {
        let new = release.party.iter().filter(move |victim| !is_among(&set[..index], victim));
        new.map(move |victim| (release, victim))
    })
}

fn is_among(set: &[&Release], victim: &Candidate) -> bool {
    let mut parties = set.iter().flat_map(|release| &release.party);
    parties.any(|other| other.attempt == victim.attempt)
}

fn without<'a>(set: &[&'a Release], index: usize) -> Vec<&'a Release> {
    let mut rest = set.to_vec();
    rest.remove(index);
    rest
}

/// How many of a set are shielded, and how many should be spared.
fn standing_of<'a>(set: impl Iterator<Item = &'a Candidate>) -> (usize, usize) {
    set.fold((0, 0), |(shielded, spared), victim| {
        (shielded + usize::from(victim.shielded), spared + usize::from(victim.spared))
    })
}

/// Takes out victims that are not needed: shielded ones first, then the most costly.
fn without_surplus<'a>(
    mut set: Vec<&'a Release>,
    enough: impl Fn(&[&'a Release]) -> bool,
) -> Vec<&'a Release> {
    let cost = |party: &Party| party.iter().map(|victim| victim.cost).sum::<f64>();
    let shielded = |release: &Release| standing_of(release.party.iter()).0;
    set.sort_by(|a, b| {
        let first = |release: &Release| release.party[0].attempt;
        let standing = shielded(b).cmp(&shielded(a));
        standing.then(cost(&b.party).total_cmp(&cost(&a.party))).then(first(a).cmp(&first(b)))
    });
    let mut index = 0;
    while index < set.len() {
        let entry = set.remove(index);
        if !enough(&set) {
            set.insert(index, entry);
            index += 1;
        }
    }
    set
}
