//! Pairs of jobs that are worth most together: matching of greatest weight in a general graph.
//!
//! Source: research/seed-systems.md §4.2 (TensorShare's choice of pairs): exact for up to 24 jobs,
//! else greedy by weight, then 2-opt. Each connected component is solved on its own, so the bound
//! is one of jobs that hang together. Weights are integers: sums do not depend on their order.
//!
//! Cost: O(E log E), and for each component what `exact` and `near` say.

mod exact;
mod near;

use std::cmp::Reverse;

/// Vertices of a component up to which its matching is exact.
pub const EXACT_UP_TO: usize = 24;

/// Two that may be matched, and what that is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// One of the two.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// In any unit. An edge that is worth nothing, or less, is never matched.
    pub weight: i64,
}

impl Edge {
    /// The end that is not `end`.
    fn other(self, end: u32) -> u32 {
        self.a ^ self.b ^ end
    }
}

/// Edges without a common end that are worth most together, each with `a < b`, in order of `a`.
///
/// Greatest sum in components of at most [`EXACT_UP_TO`] vertices, where weights above 2⁵⁹ count as
/// 2⁵⁹; in larger ones greedy, bettered by exchanges of up to two edges. Of edges between the same
/// two, the best counts; one from a vertex to itself does not. The order of the input makes no
/// difference.
pub fn max_weight_matching(edges: &[Edge]) -> Vec<Edge> {
    let mut matched = Vec::new();
    for component in components(in_order(edges)) {
        let (vertices, local) = renumbered(&component);
        let chosen = if vertices <= EXACT_UP_TO {
            exact::matching(vertices, &local)
        } else {
            near::matching(vertices, &local)
        };
        matched.extend(chosen.into_iter().map(|at| component[at]));
    }
    matched.sort_unstable();
    matched
}

/// Those worth anything, `a < b`, in order, once each.
fn in_order(edges: &[Edge]) -> Vec<Edge> {
    let useful = edges.iter().filter(|edge| edge.weight > 0 && edge.a != edge.b);
    let turned = useful.map(|&Edge { a, b, weight }| Edge { a: a.min(b), b: a.max(b), weight });
    let mut edges: Vec<Edge> = turned.collect();
    edges.sort_unstable_by_key(|edge| (edge.a, edge.b, Reverse(edge.weight)));
    edges.dedup_by_key(|edge| (edge.a, edge.b));
    edges
}

/// The edges of each connected component, in order.
fn components(edges: Vec<Edge>) -> Vec<Vec<Edge>> {
    let (vertices, local) = renumbered(&edges);
    let mut parent: Vec<u32> = (0..).take(vertices).collect();
    for edge in &local {
        let (a, b) = (root(&mut parent, edge.a), root(&mut parent, edge.b));
        parent[a.max(b) as usize] = a.min(b);
    }
    let mut components = vec![Vec::new(); vertices];
    for (edge, near) in edges.into_iter().zip(local) {
        components[root(&mut parent, near.a) as usize].push(edge);
    }
    components.retain(|component| !component.is_empty());
    components
}

/// The least vertex known to hang together with `vertex`; halves the way there.
fn root(parent: &mut [u32], mut vertex: u32) -> u32 {
    while parent[vertex as usize] != vertex {
        parent[vertex as usize] = parent[parent[vertex as usize] as usize];
        vertex = parent[vertex as usize];
    }
    vertex
}

/// The number of vertices, and the edges with vertices numbered from 0 in the same order.
fn renumbered(edges: &[Edge]) -> (usize, Vec<Edge>) {
    let mut ids: Vec<u32> = edges.iter().flat_map(|edge| [edge.a, edge.b]).collect();
    ids.sort_unstable();
    ids.dedup();
    let number = |id: u32| ids.partition_point(|&other| other < id) as u32;
    let local = edges.iter().map(|e| Edge { a: number(e.a), b: number(e.b), weight: e.weight });
    let local = local.collect();
    (ids.len(), local)
}

#[cfg(test)]
mod tests;
