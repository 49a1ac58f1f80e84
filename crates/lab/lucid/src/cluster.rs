//! Nodes of one virtual cluster or of the profiler, and where a job is put on them.

/// GPUs of a node. The artifact knows no other.
pub(crate) const NODE_GPUS: u32 = 8;

/// GPUs of one node that a job has: bit `i` is the node's `i`-th.
pub(crate) type Share = (usize, u8);

/// Nodes in the order in which placement looks at them.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    /// Every node there ever was.
    nodes: Vec<Node>,
    /// Those that are there, in order.
    order: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Node {
    name: u32,
    /// Jobs on each GPU.
    load: [u8; NODE_GPUS as usize],
    /// GPUs without a job.
    free: u8,
}

impl Node {
    fn new(name: u32) -> Node {
        Node { name, load: [0; NODE_GPUS as usize], free: u8::MAX }
    }

    fn is_idle(&self) -> bool {
        self.free == u8::MAX
    }
}

impl Nodes {
    /// So many idle nodes, named from 0.
    pub(crate) fn new(count: u32) -> Nodes {
        Nodes { nodes: (0..count).map(Node::new).collect(), order: (0..count as usize).collect() }
    }

    pub(crate) fn gpus(&self) -> u32 {
        self.order.len() as u32 * NODE_GPUS
    }

    pub(crate) fn free(&self) -> u32 {
        self.order.iter().map(|&node| self.free_on(node)).sum()
    }

    fn free_on(&self, node: usize) -> u32 {
        self.nodes[node].free.count_ones()
    }

    /// Takes free GPUs for a job, or none if it fits nowhere.
    pub(crate) fn place(&mut self, gpus: u32) -> Option<Vec<Share>> {
        let chosen = if gpus <= NODE_GPUS { self.snuggest(gpus) } else { self.emptiest(gpus) }?;
        let shares: Vec<Share> =
            chosen.into_iter().map(|(node, count)| (node, self.lowest(node, count))).collect();
        self.take(&shares);
        Some(shares)
    }

    /// Of the nodes with room, one with the fewest free GPUs, the first of equals.
    fn snuggest(&self, gpus: u32) -> Option<Vec<(usize, u32)>> {
        let roomy = self.order.iter().filter(|&&node| self.free_on(node) >= gpus);
        // Of equal minima `min_by_key` gives the first.
        roomy.min_by_key(|&&node| self.free_on(node)).map(|&node| vec![(node, gpus)])
    }

    /// Whole nodes, and what is left over on whichever node has the most free GPUs after them; if
    /// that one is too small, the job fits nowhere, even if no node at all would have had to be
    /// whole.
    fn emptiest(&self, gpus: u32) -> Option<Vec<(usize, u32)>> {
        let whole = (gpus / NODE_GPUS) as usize;
        let rest = gpus % NODE_GPUS;
        let idle: Vec<usize> =
            self.order.iter().copied().filter(|&node| self.nodes[node].is_idle()).collect();
        let (mine, spare) = idle.split_at_checked(whole)?;
        let mut chosen: Vec<_> = mine.iter().map(|&node| (node, NODE_GPUS)).collect();
        if rest > 0 {
            let next = spare.first().copied().or_else(|| {
                let others = self.order.iter().copied().filter(|node| !mine.contains(node));
                // Of equal maxima `max_by_key` gives the last.
                others.rev().max_by_key(|&node| self.free_on(node))
            })?;
            if self.free_on(next) < rest {
                return None;
            }
            chosen.push((next, rest));
        }
        Some(chosen)
    }

    fn lowest(&self, node: usize, count: u32) -> u8 {
        let mut rest = self.nodes[node].free;
        for _ in 0..count {
            rest &= rest.wrapping_sub(1);
        }
        self.nodes[node].free & !rest
    }

    /// A job joins these GPUs, whoever else is on them.
    pub(crate) fn take(&mut self, shares: &[Share]) {
        self.change(shares, |load| load + 1);
    }

    /// A job leaves these GPUs.
    pub(crate) fn release(&mut self, shares: &[Share]) {
        self.change(shares, |load| load - 1);
    }

    fn change(&mut self, shares: &[Share], by: impl Fn(u8) -> u8) {
        for &(node, gpus) in shares {
            let node = &mut self.nodes[node];
            for (gpu, load) in node.load.iter_mut().enumerate() {
                let bit = 1 << gpu;
                if gpus & bit != 0 {
                    *load = by(*load);
                    node.free = if *load == 0 { node.free | bit } else { node.free & !bit };
                }
            }
        }
    }

    /// Nodes that are there.
    pub(crate) fn count(&self) -> usize {
        self.order.len()
    }

    /// The position of the node of this name.
    pub(crate) fn position(&self, name: u32) -> Option<usize> {
        self.order.iter().position(|&node| self.nodes[node].name == name)
    }

    /// The position of the idle node with the largest name.
    pub(crate) fn last_idle(&self) -> Option<usize> {
        let idle = (0..self.order.len()).filter(|&at| self.is_idle(at));
        idle.max_by_key(|&at| self.name(at))
    }

    pub(crate) fn is_idle(&self, position: usize) -> bool {
        self.nodes[self.order[position]].is_idle()
    }

    pub(crate) fn name(&self, position: usize) -> u32 {
        self.nodes[self.order[position]].name
    }

    /// Two nodes swap names; jobs stay where they are.
    pub(crate) fn swap_names(&mut self, a: usize, b: usize) {
        let (a_name, b_name) = (self.name(a), self.name(b));
        self.nodes[self.order[a]].name = b_name;
        self.nodes[self.order[b]].name = a_name;
    }

    /// Takes an idle node away.
    pub(crate) fn remove(&mut self, position: usize) {
        debug_assert!(self.is_idle(position), "only idle nodes are taken away");
        self.order.remove(position);
    }

    /// Adds an idle node behind the others.
    pub(crate) fn add(&mut self, name: u32) {
        self.order.push(self.nodes.len());
        self.nodes.push(Node::new(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_job_takes_the_snuggest_node_and_a_wide_one_idle_nodes() {
        let mut nodes = Nodes::new(3);
        let first = nodes.place(5).unwrap();
        assert_eq!(first, [(0, 0b0001_1111)]);
        assert_eq!(nodes.place(4).unwrap(), [(1, 0b1111)]);
        assert_eq!(nodes.place(3).unwrap(), [(0, 0b1110_0000)]);
        nodes.release(&first);
        assert_eq!(nodes.place(4).unwrap(), [(1, 0b1111_0000)], "the first of the snuggest");
        assert_eq!(nodes.place(16), None);
        assert_eq!(nodes.place(8).unwrap(), [(2, 0xff)]);
    }

    #[test]
    fn the_rest_of_a_wide_job_goes_to_the_most_free_node_or_nowhere() {
        let mut nodes = Nodes::new(3);
        nodes.place(4).unwrap();
        assert_eq!(nodes.place(12).unwrap(), [(1, 0xff), (2, 0b1111)], "not on the snug node");
        let mut nodes = Nodes::new(2);
        nodes.place(6).unwrap();
        assert_eq!(nodes.place(11), None);
        assert_eq!(nodes.place(10).unwrap(), [(1, 0xff), (0, 0b1100_0000)]);
        assert_eq!(nodes.free(), 0);
    }

    #[test]
    fn a_shared_gpu_is_free_only_after_both() {
        let mut nodes = Nodes::new(1);
        let held = nodes.place(8).unwrap();
        nodes.take(&held);
        nodes.release(&held);
        assert_eq!((nodes.free(), nodes.place(1)), (0, None));
        nodes.release(&held);
        assert_eq!(nodes.free(), 8);
    }
}
