//! Devices on which a job could start beside others: those of jobs that have them alone.

use crate::pairing::Member;
use crate::whole_pairs::predicted;
use deepshare_engine::{
    Attempt, PairBar, PairBound, PairRefusal, PairTerms, PairTest, Placement, Placer, Slice, State,
};
use deepshare_model::{AttemptId, Devices, GpuTypeId, JobId, Layout, NodeId, PoolId, Retention};
use std::collections::BTreeMap;

/// An attempt, and the devices that it has alone.
pub(super) struct Lone {
    id: AttemptId,
    on: Vec<Slice>,
}

/// Who has devices alone, in order of the attempt.
pub(super) struct Field {
    lone: BTreeMap<AttemptId, Lone>,
}

impl Field {
    /// Devices of a pool that work, are promised to nobody, and have one resident who stays and agreed
    /// to share.
    pub(super) fn of(state: &State, pool: PoolId) -> Field {
        let mut lone: BTreeMap<AttemptId, Lone> = BTreeMap::new();
        for &node in &state.pool(pool).nodes {
            let shareable = state.nodes()[node.index()].shareable();
            for device in shareable.iter() {
                let [id] = *state.nodes()[node.index()].residents(device) else { continue };
                let attempt = state.attempt(id);
                let spec = &state.job(attempt.job).spec;
                if !attempt.is_evictable()
                    || !spec.sharing.consent
                    || state.pool_of(attempt.job) != pool
                {
                    continue;
                }
                let on = &mut lone.entry(id).or_insert_with(|| Lone { id, on: Vec::new() }).on;
                let device = Devices(1 << device);
                match on.last_mut().filter(|slice| slice.node == node) {
                    Some(slice) => slice.devices = slice.devices.union(device),
                    None => on.push(Slice { node, devices: device }),
                }
            }
        }
        Field { lone }
    }

    pub(super) fn lone(&self) -> impl Iterator<Item = &Lone> {
        self.lone.values()
    }

    /// True if nobody has any.
    pub(super) fn is_empty(&self) -> bool {
        self.lone.is_empty()
    }

    /// Devices that have come to be shared.
    pub(super) fn take(&mut self, devices: &[(AttemptId, Slice)]) {
        for (host, taken) in devices {
            let Some(lone) = self.lone.get_mut(host) else { continue };
            for slice in lone.on.iter_mut().filter(|slice| slice.node == taken.node) {
                slice.devices = slice.devices.minus(taken.devices);
            }
            lone.on.retain(|slice| !slice.devices.is_empty());
        }
        self.lone.retain(|_, lone| !lone.on.is_empty());
    }
}

/// A waiting job and one that it could join.
pub(super) struct Pair {
    pub(super) job: JobId,
    host: AttemptId,
    pub(super) host_gpus: u32,
    /// The newcomer and the one that is there.
    pub(super) members: [Member; 2],
    keeps: [Retention; 2],
    /// GPU memory left on each device; the most there is where nodes do not say.
    pub(super) memory_left_mib: u32,
}

impl Pair {
    pub(super) fn refusal(&self, state: &State, test: PairTest, bound: PairBound) -> PairRefusal {
        let partner = state.attempt(self.host).job;
        PairRefusal { test, partner, retentions: self.keeps, bound }
    }
}

/// A device to share.
pub(super) struct Offer {
    /// The least goes first.
    pub(super) key: u64,
    pub(super) node: NodeId,
    pub(super) device: u32,
    host: AttemptId,
    keeps: [Retention; 2],
    steps: u32,
}

impl Lone {
    /// A job beside this one, if the two may share at all and it is known what they would keep.
    pub(super) fn beside(&self, state: &State, job: JobId) -> Option<Pair> {
        let host = state.attempt(self.id);
        let (spec, theirs) = (&state.job(job).spec, &state.job(host.job).spec);
        let consolidated =
            [spec, theirs].iter().all(|spec| spec.demand.layout == Layout::Consolidated);
        let agrees = spec.sharing.consent
            && consolidated
            && spec.sharing.trust_domain == theirs.sharing.trust_domain
            && spec.demand.gpu_type.is_none_or(|wanted| wanted == self.gpu_type(state));
        let keeps = predicted(state, [job, host.job])?;
        let left = state.remaining(host.job)?;
        // In more steps than one it takes longer, as long as it is not alone.
        let members = [
            Member::new(state.job(job).left_at_start()?, keeps[0]),
            Member::new(theirs.pace(host.steps).time_for(left), keeps[1]),
        ];
        let memory_left_mib = self.memory_left(state, host, spec.demand.gpu_memory_mib)?;
        let (host_gpus, host) = (theirs.demand.gpus, self.id);
        agrees.then_some(Pair { job, host, host_gpus, members, keeps, memory_left_mib })
    }

    fn gpu_type(&self, state: &State) -> GpuTypeId {
        state.nodes()[self.on[0].node.index()].spec.gpu_type
    }

    /// GPU memory left on each of its devices; `None` where memory counts and one of the two does not
    /// say what it needs.
    fn memory_left(&self, state: &State, host: &Attempt, need: u32) -> Option<u32> {
        let held = state.gpu_memory_of(host);
        let memories = self.on.iter().map(|slice| &state.nodes()[slice.node.index()].spec);
        let known = memories.map(|node| node.gpu_memory_mib).filter(|&memory| memory > 0);
        match known.min() {
            None => Some(u32::MAX),
            Some(_) if held == 0 || need == 0 => None,
            Some(memory) => Some(memory.saturating_sub(held)),
        }
    }

    pub(super) fn offers(&self, pair: &Pair, key: u64, steps: u32) -> impl Iterator<Item = Offer> {
        let devices = self
            .on
            .iter()
            .flat_map(|slice| slice.devices.iter().map(|device| (slice.node, device)));
        let (host, keeps) = (self.id, pair.keeps);
        devices.map(move |(node, device)| Offer { key, node, device, host, keeps, steps })
    }
}

/// Where a job is to start, and beside whom.
pub(super) struct Choice {
    pub(super) placement: Placement,
    pub(super) partners: Vec<(AttemptId, PairTerms)>,
    pub(super) steps: u32,
    /// What was offered and taken.
    pub(super) devices: Vec<(AttemptId, Slice)>,
}

/// Free devices and the best offers, in the shape that the placer gives jobs: where it keeps them
/// together, on one node or on whole nodes and a part of one. All on GPUs of one type.
pub(super) fn choose(state: &State, pool: PoolId, job: JobId, offers: &[Offer]) -> Option<Choice> {
    let gpus = state.job(job).gpus();
    let gpu_types = (0..state.gpu_types()).map(GpuTypeId::from_index);
    let of_type = |node: NodeId, gpu_type| state.nodes()[node.index()].spec.gpu_type == gpu_type;
    let mut found = gpu_types.filter_map(|gpu_type| {
        let offers: Vec<&Offer> =
            offers.iter().filter(|offer| of_type(offer.node, gpu_type)).collect();
        // Without an offer there is nothing that the placer has not seen.
        offers.first()?;
        let mut nodes: Vec<NodeId> = state.pool(pool).nodes.iter().copied().collect();
        nodes.retain(|&node| of_type(node, gpu_type));
        let widest = nodes.iter().map(|node| state.nodes()[node.index()].spec.gpus).max()?;
        let by_node = Ground::of(state, job, &nodes, &offers);
        match state.settings().placer {
            Placer::NodeOrder => {
                let one = (gpus <= widest).then(|| by_node.cheapest(gpus, &[])).flatten();
                one.map(|node| vec![(node, gpus)])
                    .and_then(|nodes| by_node.gather(&nodes))
                    .or_else(|| gather(state, job, &nodes, &offers))
            }
            Placer::Consolidate | Placer::ConsolidateArtifact => {
                by_node.gather(&by_node.whole_nodes(gpus, widest)?)
            }
        }
    });
    found.next()
}

/// Nodes with what is offered on each.
struct Ground<'a> {
    state: &'a State,
    job: JobId,
    offers: BTreeMap<NodeId, Vec<&'a Offer>>,
}

impl<'a> Ground<'a> {
    fn of(state: &'a State, job: JobId, nodes: &[NodeId], offers: &[&'a Offer]) -> Ground<'a> {
        let mut by_node: BTreeMap<NodeId, Vec<&Offer>> =
            nodes.iter().map(|&node| (node, Vec::new())).collect();
        for &offer in offers {
            by_node.entry(offer.node).or_default().push(offer);
        }
        Ground { state, job, offers: by_node }
    }

    /// The key of the last offer taken if so many devices of a node are; `None` if it has fewer.
    fn cost(&self, node: NodeId, gpus: u32) -> Option<u64> {
        let books = &self.state.nodes()[node.index()];
        let demand = &self.state.job(self.job).spec.demand;
        let admitted = self.state.admitted_gpus(node, demand);
        if books.host_room_for(demand.per_gpu).min(admitted) < gpus {
            return None;
        }
        match gpus.saturating_sub(books.open().count()) {
            0 => Some(0),
            shared => Some(self.offers[&node].get(shared as usize - 1)?.key),
        }
    }

    /// The node on which so many devices cost least.
    fn cheapest(&self, gpus: u32, but: &[(NodeId, u32)]) -> Option<NodeId> {
        let others = self.offers.keys().filter(|node| but.iter().all(|(taken, _)| taken != *node));
        let costs = others.filter_map(|&node| Some((self.cost(node, gpus)?, node)));
        costs.min().map(|(_, node)| node)
    }

    /// Whole nodes, and one for what is left, those that cost least; one node if the job fits one.
    fn whole_nodes(&self, gpus: u32, widest: u32) -> Option<Vec<(NodeId, u32)>> {
        let (wholes, rest) = match gpus <= widest {
            true => (0, gpus),
            false => (gpus / widest, gpus % widest),
        };
        let mut nodes = Vec::new();
        for _ in 0..wholes {
            nodes.push((self.cheapest(widest, &nodes)?, widest));
        }
        if rest > 0 {
            nodes.push((self.cheapest(rest, &nodes)?, rest));
        }
        Some(nodes)
    }

    /// So many devices of each node; `None` if nobody's are among them.
    fn gather(&self, nodes: &[(NodeId, u32)]) -> Option<Choice> {
        let mut basket = Basket::default();
        for &(node, gpus) in nodes {
            let until = basket.count + gpus;
            let open = self.state.nodes()[node.index()].open();
            open.iter().for_each(|device| basket.take_free(node, device, until));
            self.offers[&node].iter().for_each(|offer| basket.take(offer, until));
        }
        basket.choice(self.state.job(self.job).gpus())
    }
}

/// Devices taken so far.
#[derive(Default)]
struct Basket<'a> {
    count: u32,
    devices: BTreeMap<NodeId, Devices>,
    used: Vec<&'a Offer>,
}

impl<'a> Basket<'a> {
    fn take_free(&mut self, node: NodeId, device: u32, until: u32) {
        if self.count < until {
            self.count += 1;
            let devices = self.devices.entry(node).or_insert(Devices::NONE);
            *devices = devices.union(Devices(1 << device));
        }
    }

    fn take(&mut self, offer: &'a Offer, until: u32) {
        if self.count < until {
            self.take_free(offer.node, offer.device, until);
            self.used.push(offer);
        }
    }

    /// Where the job is to start, if these are all its devices and some are shared.
    fn choice(self, gpus: u32) -> Option<Choice> {
        if self.count < gpus || self.used.is_empty() {
            return None;
        }
        let terms = |offer: &Offer| {
            let [own, theirs] = offer.keeps;
            PairTerms { bar: PairBar::NONE, own, theirs }
        };
        let partners: BTreeMap<AttemptId, PairTerms> =
            self.used.iter().map(|offer| (offer.host, terms(offer))).collect();
        let slice = |(node, devices)| Slice { node, devices };
        let taken = self.used.iter();
        let taken = taken.map(|o| (o.host, slice((o.node, Devices(1 << o.device)))));
        Some(Choice {
            partners: partners.into_iter().collect(),
            steps: self.used.iter().map(|offer| offer.steps).max().unwrap_or(1),
            devices: taken.collect(),
            placement: self.devices.into_iter().map(slice).collect(),
        })
    }
}

/// Free devices of these nodes, then what is offered, in order, wherever it is.
fn gather(state: &State, job: JobId, nodes: &[NodeId], offers: &[&Offer]) -> Option<Choice> {
    let demand = &state.job(job).spec.demand;
    let mut room: BTreeMap<NodeId, u32> = nodes
        .iter()
        .map(|&node| {
            let room = state.nodes()[node.index()].host_room_for(demand.per_gpu);
            (node, room.min(state.admitted_gpus(node, demand)))
        })
        .collect();
    let mut has_room = |node: NodeId| {
        let left = room.get_mut(&node).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let mut basket = Basket::default();
    for &node in nodes {
        for device in state.nodes()[node.index()].open().iter() {
            if basket.count < demand.gpus && has_room(node) {
                basket.take_free(node, device, demand.gpus);
            }
        }
    }
    for offer in offers {
        if basket.count < demand.gpus && has_room(offer.node) {
            basket.take(offer, demand.gpus);
        }
    }
    basket.choice(demand.gpus)
}
