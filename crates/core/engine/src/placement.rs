//! Which devices a job gets: apart from the order of jobs, and chosen by its own setting.

use crate::attempt::{Placement, Slice};
use crate::books::{FreeIndex, Node};
use crate::site::Sites;
use deepshare_model::{Demand, Devices, Layout, NodeId, Resources};
use serde::{Deserialize, Serialize};

/// How devices are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placer {
    /// Best fit: a job that fits one node goes to the node with the fewest free GPUs that are
    /// enough (first in node order among equals). A wider job takes wholly free nodes, and its
    /// remainder the snuggest other node. Never spread wider than necessary.
    #[default]
    Consolidate,
    /// `Consolidate` as the Lucid artifact has it: the remainder of a wide job goes to the node
    /// that is next by most free GPUs, and the job does not fit if that one is too small
    /// (research/lucid-simulator.md §3 rule 4).
    ConsolidateArtifact,
    /// First fit in node order, spreading over nodes as needed.
    NodeOrder,
}

/// Why no devices were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Too few free devices.
    TooFew,
    /// Enough, in the wrong shape.
    Shape,
    /// Enough in the right shape, without host resources beside them.
    Host,
    /// Enough in the right shape, on nodes that do not admit it.
    Site,
}

/// What a search looks at: the books as they are, those of an empty pool, or a forecast.
pub(crate) trait Ground {
    fn index(&self) -> &FreeIndex;
    fn open(&self, node: NodeId) -> Devices;
    /// How many GPUs the node's host resources are enough for, at `per_gpu` each.
    fn host_room_for(&self, node: NodeId, per_gpu: Resources) -> u32;
    fn gpu_memory_mib(&self, node: NodeId) -> u32;
    /// How many of the demand's GPUs the node takes as its requirements go.
    fn admitted_gpus(&self, node: NodeId, demand: &Demand) -> u32;

    /// Devices of the node that can be used, given the host resources each needs and what the node
    /// admits.
    fn usable_count(&self, node: NodeId, demand: &Demand) -> u32 {
        let with_host = self.open(node).count().min(self.host_room_for(node, demand.per_gpu));
        match demand.site {
            None => with_host,
            Some(_) => with_host.min(self.admitted_gpus(node, demand)),
        }
    }

    /// True if the node can take `gpus` of the demand's GPUs.
    fn takes(&self, node: NodeId, gpus: u32, demand: &Demand) -> bool {
        let memory = self.gpu_memory_mib(node);
        let memory_fits = memory == 0 || demand.gpu_memory_mib <= memory;
        memory_fits && self.usable_count(node, demand) >= gpus
    }

    fn slice(&self, node: NodeId, gpus: u32) -> Slice {
        Slice { node, devices: self.open(node).lowest(gpus) }
    }

    /// The node with the fewest free devices that can take `gpus`, first in node order.
    fn snuggest(&self, gpus: u32, demand: &Demand, not: &[Slice]) -> Option<NodeId> {
        (gpus..=self.index().levels())
            .flat_map(|level| self.index().at(level))
            .find(|&node| self.takes(node, gpus, demand) && !not.iter().any(|s| s.node == node))
    }
}

/// The books: free devices, or those that an empty pool would offer.
pub(crate) struct Offer<'a> {
    pub(crate) nodes: &'a [Node],
    pub(crate) sites: &'a Sites,
    pub(crate) index: &'a FreeIndex,
    /// True: look at what an empty pool would offer.
    pub(crate) empty: bool,
}

impl Ground for Offer<'_> {
    fn index(&self) -> &FreeIndex {
        self.index
    }

    fn open(&self, node: NodeId) -> Devices {
        let node = &self.nodes[node.index()];
        if self.empty { node.usable() } else { node.open() }
    }

    fn host_room_for(&self, node: NodeId, per_gpu: Resources) -> u32 {
        let node = &self.nodes[node.index()];
        if self.empty { node.host_capacity_for(per_gpu) } else { node.host_room_for(per_gpu) }
    }

    fn gpu_memory_mib(&self, node: NodeId) -> u32 {
        self.nodes[node.index()].spec.gpu_memory_mib
    }

    fn admitted_gpus(&self, node: NodeId, demand: &Demand) -> u32 {
        self.sites.gpus(node, demand, self.empty)
    }
}

impl Placer {
    /// Devices for `demand`, or why there are none.
    pub(crate) fn find<G: Ground>(self, offer: &G, demand: &Demand) -> Result<Placement, Misfit> {
        if offer.index().total() < demand.gpus {
            return Err(Misfit::TooFew);
        }
        let found = match (self, demand.layout) {
            (Placer::NodeOrder, Layout::Consolidated) => in_node_order(offer, demand, 1),
            (Placer::NodeOrder, Layout::Members(each)) => in_node_order(offer, demand, each),
            (_, Layout::Members(each)) => pack_members(offer, demand, each),
            (Placer::Consolidate, Layout::Consolidated) => consolidate(offer, demand, snug),
            (Placer::ConsolidateArtifact, Layout::Consolidated) => {
                consolidate(offer, demand, next_most_free)
            }
        };
        found.ok_or_else(|| why(offer, demand))
    }
}

/// Tells a wrong shape from missing host resources and nodes that do not admit it: would it fit but
/// for those?
fn why<G: Ground>(offer: &G, demand: &Demand) -> Misfit {
    let fits = |other: Demand| Placer::Consolidate.find(offer, &other).is_ok();
    if demand.site.is_some() && fits(Demand { site: None, ..*demand }) {
        return Misfit::Site;
    }
    let bare = Demand { per_gpu: Default::default(), site: None, ..*demand };
    if bare.per_gpu == demand.per_gpu || !fits(bare) { Misfit::Shape } else { Misfit::Host }
}

type Remainder<G> = fn(&G, u32, &Demand, &[Slice]) -> Option<NodeId>;

fn consolidate<G: Ground>(
    offer: &G,
    demand: &Demand,
    remainder: Remainder<G>,
) -> Option<Placement> {
    if let Some(node) = offer.snuggest(demand.gpus, demand, &[]) {
        return Some(vec![offer.slice(node, demand.gpus)]);
    }
    // The largest node of this pool and type is what "a node" means to a wide job.
    let size = offer.index().levels();
    if demand.gpus <= size {
        return None;
    }
    let whole = demand.gpus / size;
    if offer.index().nodes_with(size) < whole {
        return None;
    }
    let mut slices: Placement = offer
        .index()
        .at(size)
        .filter(|&node| offer.takes(node, size, demand))
        .take(whole as usize)
        .map(|node| offer.slice(node, size))
        .collect();
    if slices.len() < whole as usize {
        return None;
    }
    let rest = demand.gpus % size;
    if rest > 0 {
        let node = remainder(offer, rest, demand, &slices)?;
        slices.push(offer.slice(node, rest));
    }
    Some(slices)
}

fn snug<G: Ground>(offer: &G, gpus: u32, demand: &Demand, taken: &[Slice]) -> Option<NodeId> {
    offer.snuggest(gpus, demand, taken)
}

fn next_most_free<G: Ground>(
    offer: &G,
    gpus: u32,
    demand: &Demand,
    taken: &[Slice],
) -> Option<NodeId> {
    (1..=offer.index().levels())
        .rev()
        .flat_map(|level| offer.index().at(level))
        .find(|&node| !taken.iter().any(|slice| slice.node == node))
        .filter(|&node| offer.takes(node, gpus, demand))
}

/// Members of `each` GPUs on as few nodes as a greedy choice finds: the snuggest node that takes
/// all that are left, else the one that takes most of them.
fn pack_members<G: Ground>(offer: &G, demand: &Demand, each: u32) -> Option<Placement> {
    let mut slices = Placement::new();
    let mut left = demand.gpus;
    while left > 0 {
        if let Some(node) = offer.snuggest(left, demand, &slices) {
            slices.push(offer.slice(node, left));
            break;
        }
        let (node, gpus) = (1..=offer.index().levels())
            .rev()
            .flat_map(|level| offer.index().at(level))
            .filter(|&node| !slices.iter().any(|slice| slice.node == node))
            .filter(|&node| offer.takes(node, each, demand))
            .map(|node| (node, offer.usable_count(node, demand) / each * each))
            // `max_by_key` prefers the last of equals; the first in node order is wanted.
            .reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        slices.push(offer.slice(node, gpus.min(left)));
        left -= gpus.min(left);
    }
    Some(slices)
}

fn in_node_order<G: Ground>(offer: &G, demand: &Demand, each: u32) -> Option<Placement> {
    let mut nodes: Vec<NodeId> =
        (1..=offer.index().levels()).flat_map(|level| offer.index().at(level)).collect();
    nodes.sort_unstable();
    let mut slices = Placement::new();
    let mut left = demand.gpus;
    for node in nodes {
        if !offer.takes(node, each, demand) {
            continue;
        }
        let gpus = left.min(offer.usable_count(node, demand) / each * each);
        slices.push(offer.slice(node, gpus));
        left -= gpus;
        if left == 0 {
            return Some(slices);
        }
    }
    None
}
