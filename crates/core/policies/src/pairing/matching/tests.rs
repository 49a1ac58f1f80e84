//! Tests of matchings against exhaustive search, and of what both methods promise.

use super::near::Search;
use super::{EXACT_UP_TO, Edge, components, in_order, max_weight_matching, near, renumbered};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn edges(list: &[(u32, u32, i64)]) -> Vec<Edge> {
    list.iter().map(|&(a, b, weight)| Edge { a, b, weight }).collect()
}

fn sum(matching: &[Edge]) -> i128 {
    matching.iter().map(|edge| i128::from(edge.weight)).sum()
}

/// Each possible edge with chance `percent` %, weights -10 ..= 100, ids apart.
fn random_graph(random: &mut Pcg64Mcg, vertices: u32, percent: u32) -> Vec<Edge> {
    let pairs = (0..vertices).flat_map(|a| (0..a).map(move |b| (a, b)));
    let mut graph = Vec::new();
    for (a, b) in pairs {
        if random.random_range(0..100) < percent {
            graph.push(Edge { a: 7 * a, b: 7 * b, weight: random.random_range(-10..=100) });
        }
    }
    graph
}

/// The greatest sum, by trying every matching.
fn exhaustive(edges: &[Edge], taken: u64) -> i128 {
    let Some((first, rest)) = edges.split_first() else { return 0 };
    let ends = 1 << (first.a / 7) | 1 << (first.b / 7);
    let without = exhaustive(rest, taken);
    if taken & ends != 0 {
        return without;
    }
    without.max(i128::from(first.weight) + exhaustive(rest, taken | ends))
}

#[track_caller]
fn assert_is_matching(matching: &[Edge], graph: &[Edge]) {
    let mut ends: Vec<u32> = matching.iter().flat_map(|edge| [edge.a, edge.b]).collect();
    ends.sort_unstable();
    ends.dedup();
    assert_eq!(ends.len(), 2 * matching.len(), "{matching:?}");
    assert!(matching.is_sorted());
    for edge in matching {
        let turned = Edge { a: edge.b, b: edge.a, ..*edge };
        assert!(edge.a < edge.b && edge.weight > 0, "{edge:?}");
        assert!(graph.contains(edge) || graph.contains(&turned), "{edge:?}");
    }
}

#[test]
fn small_graphs_are_matched_as_exhaustive_search_does() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    for round in 0..600 {
        let vertices = random.random_range(0..=10);
        // All matchings of ten vertices that are all neighbours are many: not too often.
        let percent = if round % 20 == 0 { 100 } else { random.random_range(5..80) };
        let graph = random_graph(&mut random, vertices, percent);
        let matching = max_weight_matching(&graph);
        assert_is_matching(&matching, &graph);
        assert_eq!(sum(&matching), exhaustive(&graph, 0), "{graph:?}");
    }
}

#[test]
fn exact_is_never_below_2_opt_and_2_opt_never_below_greedy() {
    let mut random = Pcg64Mcg::seed_from_u64(2);
    let mut lifted = 0;
    for _ in 0..300 {
        let vertices = random.random_range(2..=EXACT_UP_TO as u32);
        let percent = random.random_range(5..=100);
        let graph = random_graph(&mut random, vertices, percent);
        let mut sums = [0; 2];
        for component in components(in_order(&graph)) {
            let (vertices, local) = renumbered(&component);
            let of = |chosen: Vec<usize>| -> i128 {
                chosen.into_iter().map(|at| i128::from(local[at].weight)).sum()
            };
            let mut search = Search::greedy(vertices, &local);
            sums[0] += of(search.chosen());
            search.improve();
            sums[1] += of(search.chosen());
        }
        let exact = sum(&max_weight_matching(&graph));
        assert!(sums[0] <= sums[1] && sums[1] <= exact, "{sums:?} {exact}");
        lifted += usize::from(sums[0] < sums[1]);
    }
    assert!(lifted > 100, "2-opt bettered only {lifted} of 300");
}

#[test]
fn large_graphs_get_a_matching_that_no_order_of_edges_changes() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    for round in 0..60 {
        let vertices = random.random_range(2..90);
        // Sparse ones have many components, dense ones only one.
        let percent = if round % 2 == 0 { 2 } else { random.random_range(10..=100) };
        let graph = random_graph(&mut random, vertices, percent);
        let matching = max_weight_matching(&graph);
        assert_is_matching(&matching, &graph);
        let mut mixed = graph;
        mixed.shuffle(&mut random);
        for edge in mixed.iter_mut().step_by(2) {
            (edge.a, edge.b) = (edge.b, edge.a);
        }
        assert_eq!(max_weight_matching(&mixed), matching);
    }
}

/// The sums of greedy and of 2-opt after it.
fn greedy_and_2_opt(graph: &[Edge]) -> [i128; 2] {
    let (vertices, local) = renumbered(&in_order(graph));
    let of = |search: &Search<'_>| -> i128 {
        search.chosen().into_iter().map(|at| i128::from(local[at].weight)).sum()
    };
    let mut search = Search::greedy(vertices, &local);
    let greedy = of(&search);
    search.improve();
    [greedy, of(&search)]
}

#[test]
fn an_edge_is_exchanged_for_two() {
    // A path: greedy takes its middle.
    assert_eq!(greedy_and_2_opt(&edges(&[(0, 1, 3), (1, 2, 4), (2, 3, 3)])), [4, 6]);
}

#[test]
fn two_edges_are_exchanged_for_two() {
    let square = [(0, 1, 10), (2, 3, 1), (0, 2, 8), (1, 3, 8)];
    assert_eq!(greedy_and_2_opt(&edges(&square)), [11, 16]);
}

#[test]
fn two_edges_are_exchanged_for_three() {
    let path = [(0, 1, 6), (1, 2, 7), (2, 3, 6), (3, 4, 7), (4, 5, 6)];
    assert_eq!(greedy_and_2_opt(&edges(&path)), [14, 18]);
}

#[test]
fn two_left_behind_want_the_same_vertex() {
    // Taking 0-1 leaves 2 and 3, and both like 4 best; 3 has 5 as well.
    let graph = [(0, 1, 9), (0, 2, 10), (1, 3, 10), (2, 4, 8), (3, 4, 9), (3, 5, 6)];
    assert_eq!(greedy_and_2_opt(&edges(&graph)), [20, 23]);
    // The same with 2 and 3 exchanged.
    let graph = [(0, 1, 9), (0, 2, 10), (1, 3, 10), (3, 4, 8), (2, 4, 9), (2, 5, 6)];
    assert_eq!(greedy_and_2_opt(&edges(&graph)), [20, 23]);
}

#[test]
fn worthless_edges_loops_and_doubles_make_no_difference() {
    let graph = [(5, 5, 90), (1, 2, 0), (3, 4, -5), (9, 8, 3), (8, 9, 4), (9, 8, 2)];
    assert_eq!(max_weight_matching(&edges(&graph)), edges(&[(8, 9, 4)]));
    assert_eq!(max_weight_matching(&[]), []);
}

#[test]
fn the_largest_weights_do_not_overflow() {
    let path: Vec<Edge> = (0..40).map(|a| Edge { a, b: a + 1, weight: i64::MAX }).collect();
    assert_eq!(max_weight_matching(&path).len(), 20);
    assert_eq!(max_weight_matching(&path[..23]).len(), 12);
}

#[test]
fn the_exact_bound_is_one_of_a_component() {
    // Twenty paths of four on which greedy alone would take the middle.
    let paths = (0..20).flat_map(|p| [(0, 3), (1, 4), (2, 3)].map(|(v, w)| (4 * p + v, w)));
    let graph: Vec<Edge> = paths.map(|(a, weight)| Edge { a, b: a + 1, weight }).collect();
    assert_eq!(sum(&max_weight_matching(&graph)), 20 * 6);
}

#[test]
fn a_component_at_the_bound_of_vertices_that_are_all_neighbours_is_exact() {
    // Of weight (a + 1)(b + 1): neighbours in rank belong together.
    let pairs = (0..24_u32).flat_map(|b| (0..b).map(move |a| (a, b)));
    let graph: Vec<Edge> =
        pairs.map(|(a, b)| Edge { a, b, weight: i64::from((a + 1) * (b + 1)) }).collect();
    let matching = max_weight_matching(&graph);
    assert!((0..12).zip(&matching).all(|(k, edge)| (edge.a, edge.b) == (2 * k, 2 * k + 1)));
}

#[test]
fn near_comes_close() {
    let mut random = Pcg64Mcg::seed_from_u64(4);
    let (mut close, mut best) = (0, 0);
    for _ in 0..100 {
        let graph = in_order(&random_graph(&mut random, 20, 60));
        let (vertices, local) = renumbered(&graph);
        let chosen = near::matching(vertices, &local);
        close += chosen.into_iter().map(|at| i128::from(local[at].weight)).sum::<i128>();
        best += sum(&max_weight_matching(&graph));
    }
    assert!(close * 100 > best * 97, "{close} of {best}");
}
