//! Matching of greatest weight by dynamic programming over the vertices left.
//!
//! The highest vertex left is decided first: alone, or with one of its neighbours that are left. So
//! few of the 2ⁿ sets are ever met: those lack the highest k vertices and at most k of the others,
//! about 121,000 of 16.8 million for 24 vertices that are all neighbours. A bit for each set says
//! which are met, and how many of those are below a set is its place in the table of sums. Nearly
//! all sets met are small numbers, close together.
//!
//! Cost: O(sets met · neighbours + 2ⁿ/32) time; 2ⁿ/4 B and 8 B for each set met.

use super::Edge;

/// Weights count as at most this, so that sums of a dozen fit.
const HEAVIEST: u64 = 1 << 59;

/// Indices of the edges of the best matching. Vertices are below `vertices`; edges are in order,
/// have `a < b`, a weight above 0, and no two have the same ends.
pub(super) fn matching(vertices: usize, edges: &[Edge]) -> Vec<usize> {
    let graph = Graph::new(vertices, edges);
    let sets = Sets::met(&graph);
    let sums = sets.sums(&graph);
    let best = |set: u32| sums[sets.place(set)];
    let mut chosen = Vec::new();
    let mut left = graph.all();
    while let Some((vertex, rest)) = highest(left) {
        let sum = best(left);
        let mut mates = graph.mates(vertex, rest);
        let mate =
            mates.find(|&mate| best(rest & !(1 << mate)) + graph.weight(vertex, mate) == sum);
        left = rest;
        if let Some(mate) = mate {
            left &= !(1 << mate);
            let ends = (mate as u32, vertex as u32);
            chosen.extend(edges.binary_search_by_key(&ends, |edge| (edge.a, edge.b)));
        }
    }
    chosen
}

/// The highest vertex of a set, and the others.
fn highest(set: u32) -> Option<(usize, u32)> {
    let vertex = set.checked_ilog2()?;
    Some((vertex as usize, set & !(1 << vertex)))
}

/// Neighbours as sets, and weights.
struct Graph {
    vertices: usize,
    neighbours: Vec<u32>,
    /// By higher end · vertices + lower.
    weights: Vec<u64>,
}

impl Graph {
    fn new(vertices: usize, edges: &[Edge]) -> Graph {
        let mut neighbours = vec![0; vertices];
        let mut weights = vec![0; vertices * vertices];
        for &Edge { a, b, weight } in edges {
            neighbours[b as usize] |= 1 << a;
            weights[b as usize * vertices + a as usize] = weight.unsigned_abs().min(HEAVIEST);
        }
        Graph { vertices, neighbours, weights }
    }

    fn all(&self) -> u32 {
        (1 << self.vertices) - 1
    }

    /// Those of `rest` that `vertex`, higher than all of them, can be matched with.
    fn mates(&self, vertex: usize, rest: u32) -> impl Iterator<Item = usize> + use<> {
        let mut mates = self.neighbours[vertex] & rest;
        std::iter::from_fn(move || {
            let mate = mates.trailing_zeros();
            // Of no vertices, none is the lowest.
            mates &= mates.checked_sub(1)?;
            Some(mate as usize)
        })
    }

    fn weight(&self, higher: usize, lower: usize) -> u64 {
        self.weights[higher * self.vertices + lower]
    }
}

/// 32 sets with neighbouring numbers.
#[derive(Clone, Copy, Default)]
struct Word {
    /// A bit for each that is met.
    met: u32,
    /// How many are met in the words before.
    before: u32,
}

/// The sets of vertices left that are met.
struct Sets {
    words: Vec<Word>,
    len: u32,
}

impl Sets {
    fn met(graph: &Graph) -> Sets {
        let mut words = vec![Word::default(); 1 << graph.vertices.saturating_sub(5)];
        let mark = |words: &mut [Word], set: u32| words[set as usize / 32].met |= 1 << (set % 32);
        mark(&mut words, graph.all());
        // What follows from a set is a smaller number, so one walk down meets them all.
        for at in (0..words.len()).rev() {
            let mut below = u32::MAX;
            while let Some(bit) = (words[at].met & below).checked_ilog2() {
                below = (1 << bit) - 1;
                let Some((vertex, rest)) = highest(at as u32 * 32 + bit) else { break };
                mark(&mut words, rest);
                for mate in graph.mates(vertex, rest) {
                    mark(&mut words, rest & !(1 << mate));
                }
            }
        }
        let mut len = 0;
        for word in &mut words {
            word.before = len;
            len += word.met.count_ones();
        }
        Sets { words, len }
    }

    /// How many sets met are below this one.
    fn place(&self, set: u32) -> usize {
        let Word { met, before } = self.words[set as usize / 32];
        let below = (1 << (set % 32)) - 1;
        (before + (met & below).count_ones()) as usize
    }

    /// The greatest weight that can be matched in each set, by its place.
    fn sums(&self, graph: &Graph) -> Vec<u64> {
        let mut sums = Vec::with_capacity(self.len as usize);
        for (at, word) in self.words.iter().enumerate() {
            let mut met = word.met;
            while met != 0 {
                let set = at as u32 * 32 + met.trailing_zeros();
                met &= met - 1;
                let best = highest(set).map_or(0, |(vertex, rest)| {
                    let alone = sums[self.place(rest)];
                    let matched = graph.mates(vertex, rest).map(|mate| {
                        sums[self.place(rest & !(1 << mate))] + graph.weight(vertex, mate)
                    });
                    matched.fold(alone, u64::max)
                });
                sums.push(best);
            }
        }
        sums
    }
}
