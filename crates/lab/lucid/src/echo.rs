//! The profiler's extra node, and the virtual cluster that lends it.

use crate::cluster::Nodes;
use crate::outcome::Scaling;
use std::collections::VecDeque;

/// Name of the extra node. Any name does that is larger than those of the cluster's own.
pub(crate) const EXTRA: u32 = u32::MAX;

/// The lending side: it does the opposite of what the profiler did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echo {
    /// The profiler's steps to come, in order of time.
    steps: VecDeque<Scaling>,
    /// A node was taken before.
    has_lent: bool,
}

impl Echo {
    pub(crate) fn new(steps: &[Scaling]) -> Echo {
        Echo { steps: steps.iter().copied().collect(), has_lent: false }
    }

    /// When the next step is.
    pub(crate) fn next(&self) -> Option<u64> {
        self.steps.front().map(|step| step.at_s)
    }

    /// Does what is due. True if there are more nodes than before.
    pub(crate) fn follow(&mut self, now: u64, nodes: &mut Nodes) -> bool {
        let mut grew = false;
        while let Some(&step) = self.steps.front()
            && step.at_s <= now
        {
            self.steps.pop_front();
            if step.grew {
                self.lend(nodes);
            } else if nodes.position(EXTRA).is_none() {
                nodes.add(EXTRA);
                grew = true;
            }
        }
        grew
    }

    /// Takes the idle node with the largest name, if any is idle: the profiler has its extra node
    /// either way. From the second time on, the one taken is first made the one called extra.
    fn lend(&mut self, nodes: &mut Nodes) {
        let Some(position) = nodes.last_idle() else { return };
        if self.has_lent
            && nodes.name(position) < EXTRA
            && let Some(extra) = nodes.position(EXTRA)
        {
            nodes.swap_names(position, extra);
        }
        nodes.remove(position);
        self.has_lent = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(signs: &[bool]) -> Vec<Scaling> {
        let step = |(at, &grew): (u64, &bool)| Scaling { at_s: at * 100, grew };
        (0..).zip(signs).map(step).collect()
    }

    fn names(nodes: &Nodes) -> Vec<u32> {
        (0..nodes.count()).map(|at| nodes.name(at)).collect()
    }

    #[test]
    fn a_node_goes_and_comes_back_at_the_end_of_the_list() {
        let mut nodes = Nodes::new(3);
        let mut echo = Echo::new(&steps(&[true, false]));
        assert!(!echo.follow(0, &mut nodes));
        assert_eq!((names(&nodes), echo.next()), (vec![0, 1], Some(100)));
        assert!(echo.follow(100, &mut nodes));
        assert_eq!((names(&nodes), echo.next()), (vec![0, 1, EXTRA], None));
    }

    #[test]
    fn from_the_second_time_on_the_lent_node_takes_the_extra_name() {
        let mut nodes = Nodes::new(3);
        let mut echo = Echo::new(&steps(&[true, false, true]));
        echo.follow(100, &mut nodes);
        nodes.place(8).unwrap();
        nodes.place(8).unwrap();
        nodes.place(8).unwrap();
        nodes.release(&[(1, 0xff)]);
        echo.follow(200, &mut nodes);
        assert_eq!(names(&nodes), [0, 1], "node 1 went as the extra one, which is now node 1");
    }

    #[test]
    fn without_an_idle_node_nothing_is_lent_and_the_cluster_grows_for_a_while() {
        let mut nodes = Nodes::new(1);
        nodes.place(1).unwrap();
        let mut echo = Echo::new(&steps(&[true, false, true, false]));
        echo.follow(0, &mut nodes);
        assert_eq!(names(&nodes), [0]);
        assert!(echo.follow(100, &mut nodes));
        assert_eq!(names(&nodes), [0, EXTRA], "bigger than it was");
        nodes.release(&[(0, 1)]);
        nodes.place(8).unwrap();
        echo.follow(200, &mut nodes);
        assert_eq!(names(&nodes), [0]);
        assert!(echo.follow(300, &mut nodes));
        assert_eq!(names(&nodes), [0, EXTRA]);
    }
}
