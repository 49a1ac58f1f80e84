//! Matching for components too large to be exact: greedy by weight, then 2-opt.
//!
//! A move takes in an edge, gives up the matched ones that it touches (at most two), and pairs those
//! left behind with each other or with vertices that are free, whichever is worth more. That covers
//! the exchange of two edges for two and of one edge for two. Only moves that gain are made, so no
//! sum is ever lower than the greedy one, which is at least half of the greatest.
//!
//! Cost: O(E log E) for greedy; for each pass over the edges, of which there are at most 64 and few in
//! practice, O(E · (log degree + the lesser of degree and free vertices)).

use super::Edge;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Passes over the edges.
const PASSES: usize = 64;

/// Indices of the matched edges. Vertices are below `vertices`; edges are in order, have `a < b`, a
/// weight above 0, and no two have the same ends.
pub(super) fn matching(vertices: usize, edges: &[Edge]) -> Vec<usize> {
    let mut search = Search::greedy(vertices, edges);
    search.improve();
    search.chosen()
}

/// A matching that is being improved.
pub(super) struct Search<'a> {
    edges: &'a [Edge],
    /// Indices of edges, heaviest first.
    heaviest: Vec<usize>,
    /// The same, for each vertex.
    around: Vec<Vec<usize>>,
    /// Of each vertex, the first edge that has it as its `a`; one more for the end.
    starts: Vec<usize>,
    /// The matched edge of each vertex.
    matched: Vec<Option<usize>>,
    /// Vertices without one.
    free: BTreeSet<usize>,
}

impl<'a> Search<'a> {
    /// Takes edges by weight, ties by their ends.
    pub(super) fn greedy(vertices: usize, edges: &'a [Edge]) -> Search<'a> {
        let mut heaviest: Vec<usize> = (0..edges.len()).collect();
        heaviest.sort_unstable_by_key(|&at| (Reverse(edges[at].weight), at));
        let mut around = vec![Vec::new(); vertices];
        let mut matched = vec![None; vertices];
        for &at in &heaviest {
            let ends = ends(edges[at]);
            ends.iter().for_each(|&end| around[end].push(at));
            if ends.iter().all(|&end| matched[end].is_none()) {
                ends.iter().for_each(|&end| matched[end] = Some(at));
            }
        }
        let first = |vertex| edges.partition_point(|edge| (edge.a as usize) < vertex);
        let starts = (0..=vertices).map(first).collect();
        let free = (0..vertices).filter(|&vertex| matched[vertex].is_none()).collect();
        Search { edges, heaviest, around, starts, matched, free }
    }

    /// Indices of the matched edges.
    pub(super) fn chosen(&self) -> Vec<usize> {
        (0..self.edges.len()).filter(|&at| self.is_matched(at)).collect()
    }

    /// Makes moves until none gains.
    pub(super) fn improve(&mut self) {
        for _ in 0..PASSES {
            let mut gained = false;
            for place in 0..self.heaviest.len() {
                gained |= self.take_in(self.heaviest[place]);
            }
            if !gained {
                break;
            }
        }
        let is_free = |vertex: usize| self.free.contains(&vertex);
        debug_assert!((0..self.matched.len()).all(|v| is_free(v) == self.matched[v].is_none()));
    }

    fn is_matched(&self, at: usize) -> bool {
        self.matched[self.edges[at].a as usize] == Some(at)
    }

    fn weight(&self, at: usize) -> i128 {
        self.edges[at].weight.into()
    }

    fn sum(&self, edges: impl IntoIterator<Item = usize>) -> i128 {
        edges.into_iter().map(|at| self.weight(at)).sum()
    }

    /// Makes the move that takes in an edge, if it gains.
    fn take_in(&mut self, taken: usize) -> bool {
        if self.is_matched(taken) {
            return false;
        }
        let ends = ends(self.edges[taken]);
        let lost = ends.map(|end| self.matched[end]);
        let left = [0, 1]
            .map(|side| lost[side].map(|at| self.edges[at].other(ends[side] as u32) as usize));
        let lost_sum = self.sum(lost.into_iter().flatten());
        let instead = self.instead(ends, left);
        if self.weight(taken) + self.sum(instead.into_iter().flatten()) <= lost_sum {
            return false;
        }
        for vertex in left.into_iter().flatten() {
            self.matched[vertex] = None;
            self.free.insert(vertex);
        }
        for at in instead.into_iter().flatten().chain([taken]) {
            for end in self::ends(self.edges[at]) {
                self.matched[end] = Some(at);
                self.free.remove(&end);
            }
        }
        true
    }

    /// The best edges for those left behind when `ends` are taken.
    fn instead(&self, ends: [usize; 2], left: [Option<usize>; 2]) -> [Option<usize>; 2] {
        let free = |vertex: Option<usize>, besides: Option<usize>| {
            vertex.and_then(|vertex| self.heaviest_to_free(vertex, ends, besides))
        };
        // If both want the same vertex, one of them gets it and the other its second best.
        let [one, other] = left;
        let far = |vertex: Option<usize>, at: Option<usize>| {
            Some(self.edges[at?].other(vertex? as u32) as usize)
        };
        let first = free(one, None);
        let one_first = [first, free(other, far(one, first))];
        let first = free(other, None);
        let other_first = [free(one, far(other, first)), first];
        let between = [one.zip(other).and_then(|(one, other)| self.between(one, other)), None];
        let sum = |edges: &[Option<usize>; 2]| self.sum(edges.iter().copied().flatten());
        let better = if sum(&other_first) > sum(&one_first) { other_first } else { one_first };
        if sum(&between) > sum(&better) { between } else { better }
    }

    /// The heaviest edge from a vertex to one that is free, neither taken nor `besides`.
    fn heaviest_to_free(
        &self,
        vertex: usize,
        taken: [usize; 2],
        besides: Option<usize>,
    ) -> Option<usize> {
        let open = |&other: &usize| !taken.contains(&other) && besides != Some(other);
        let around = &self.around[vertex];
        if self.free.len() < around.len() {
            let edges = self.free.iter().copied().filter(open);
            let edges = edges.filter_map(|other| self.between(vertex, other));
            return edges.min_by_key(|&at| (Reverse(self.edges[at].weight), at));
        }
        let other = |at: usize| self.edges[at].other(vertex as u32) as usize;
        let is_open = |at: usize| self.matched[other(at)].is_none() && open(&other(at));
        around.iter().copied().find(|&at| is_open(at))
    }

    /// The edge between two vertices.
    fn between(&self, one: usize, other: usize) -> Option<usize> {
        let (a, b) = (one.min(other), one.max(other));
        let edges = &self.edges[self.starts[a]..self.starts[a + 1]];
        let at = edges.binary_search_by_key(&(b as u32), |edge| edge.b).ok()?;
        Some(self.starts[a] + at)
    }
}

fn ends(edge: Edge) -> [usize; 2] {
    [edge.a as usize, edge.b as usize]
}
