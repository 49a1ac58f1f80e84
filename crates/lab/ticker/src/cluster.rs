//! Nodes and GPUs of one virtual cluster, and the `consolidate` placement.

/// The GPUs of one virtual cluster: `busy[node][gpu]`.
pub(crate) struct Cluster {
    gpus_per_node: u32,
    busy: Vec<Vec<bool>>,
}

/// GPUs held by a job, as (node, gpu).
pub(crate) type Held = Vec<(usize, usize)>;

impl Cluster {
    pub(crate) fn new(nodes: u32, gpus_per_node: u32) -> Self {
        let node = vec![false; gpus_per_node as usize];
        Cluster { gpus_per_node, busy: vec![node; nodes as usize] }
    }

    pub(crate) fn gpus(&self) -> u32 {
        self.busy.len() as u32 * self.gpus_per_node
    }

    /// Takes `gpus` GPUs, or none if they are not to be had in an allowed shape.
    pub(crate) fn place(&mut self, gpus: u32) -> Option<Held> {
        let shares = self.choose(gpus)?;
        let mut held = Held::new();
        for (node, share) in shares {
            let before = held.len();
            for gpu in 0..self.busy[node].len() {
                if !self.busy[node][gpu] && held.len() - before < share as usize {
                    self.busy[node][gpu] = true;
                    held.push((node, gpu));
                }
            }
            assert_eq!(held.len() - before, share as usize, "chosen nodes have room");
        }
        Some(held)
    }

    pub(crate) fn release(&mut self, held: &Held) {
        for &(node, gpu) in held {
            assert!(self.busy[node][gpu], "only held gpus are released");
            self.busy[node][gpu] = false;
        }
    }

    /// Which nodes give how many GPUs.
    ///
    /// A job no wider than a node takes the fullest node that has room and never spans two. A
    /// wider one takes whole nodes from the emptiest-first list, and the rest from whichever
    /// node is next in that list, even if a fuller one would fit better.
    fn choose(&self, gpus: u32) -> Option<Vec<(usize, u32)>> {
        let mut nodes: Vec<(usize, u32)> =
            (0..self.busy.len()).map(|node| (node, self.free_on(node))).collect();
        nodes.retain(|&(_, free)| free > 0);
        if gpus <= self.gpus_per_node {
            nodes.sort_by_key(|&(_, free)| free);
            let &(node, _) = nodes.iter().find(|&&(_, free)| free >= gpus)?;
            return Some(vec![(node, gpus)]);
        }
        nodes.sort_by_key(|&(_, free)| std::cmp::Reverse(free));
        let whole = (gpus / self.gpus_per_node) as usize;
        let rest = gpus % self.gpus_per_node;
        let mut shares = vec![self.gpus_per_node; whole];
        if rest > 0 {
            shares.push(rest);
        }
        let mut chosen = Vec::new();
        for (i, share) in shares.into_iter().enumerate() {
            let &(node, free) = nodes.get(i)?;
            if free < share {
                return None;
            }
            chosen.push((node, share));
        }
        Some(chosen)
    }

    fn free_on(&self, node: usize) -> u32 {
        self.busy[node].iter().filter(|&&busy| !busy).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_job_takes_the_fullest_node_that_has_room() {
        let mut cluster = Cluster::new(3, 8);
        cluster.place(2).unwrap();
        let on_idle_node = cluster.place(7).unwrap();
        assert_eq!(on_idle_node[0], (1, 0));
        assert_eq!(cluster.place(1).unwrap(), vec![(1, 7)]);
        assert_eq!(cluster.place(6).unwrap()[0], (0, 2));
    }

    #[test]
    fn a_narrow_job_does_not_span_nodes() {
        let mut cluster = Cluster::new(2, 8);
        cluster.place(5).unwrap();
        cluster.place(5).unwrap();
        assert_eq!(cluster.place(4), None);
        assert_eq!(cluster.place(3).unwrap(), vec![(0, 5), (0, 6), (0, 7)]);
    }

    #[test]
    fn a_wide_job_takes_its_rest_from_an_idle_node_before_a_snug_one() {
        let mut cluster = Cluster::new(3, 8);
        cluster.place(4).unwrap();
        let held = cluster.place(12).unwrap();
        assert_eq!(held.iter().filter(|(node, _)| *node == 1).count(), 8);
        assert_eq!(held.iter().filter(|(node, _)| *node == 2).count(), 4);
    }

    #[test]
    fn a_wide_job_fails_without_whole_nodes_and_leaves_nothing_taken() {
        let mut cluster = Cluster::new(3, 8);
        let first = cluster.place(1).unwrap();
        assert_eq!(cluster.place(24), None);
        cluster.release(&first);
        assert_eq!(cluster.place(24).unwrap().len(), 24);
    }

    #[test]
    fn released_gpus_are_the_first_to_be_taken_again() {
        let mut cluster = Cluster::new(1, 4);
        let first = cluster.place(2).unwrap();
        cluster.place(1).unwrap();
        cluster.release(&first);
        assert_eq!(cluster.place(3).unwrap(), vec![(0, 0), (0, 1), (0, 3)]);
    }
}
