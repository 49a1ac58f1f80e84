//! Every policy, ideal and faulty worlds: the same results twice, whatever the threads.

use deepshare_bench::determinism::hashes;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

#[test]
fn a_week_gives_the_same_results_on_one_thread_and_on_two() {
    let threads = |count| NonZeroUsize::new(count).unwrap();
    let one = hashes(threads(1)).unwrap();
    let two = hashes(threads(2)).unwrap();
    assert_eq!(one, two);
    let lines: Vec<&str> = one.lines().collect();
    let results: BTreeSet<&str> = lines.iter().map(|line| &line[..32]).collect();
    assert_eq!(
        lines.len(),
        42,
        "fourteen policies in two worlds each, ten as Lucid's, two that lend"
    );
    assert!(results.len() >= 14, "policies and faults make a difference:\n{one}");
}
