//! What a pair does to each of two jobs, against simulations of random pairs.

#[path = "pair/two_jobs.rs"]
mod two_jobs;

use deepshare_policies::{Member, Past, SlowdownCheck, extra_s, gain, overlap_s, ratio, span_s};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use two_jobs::{Job, ends};

#[track_caller]
fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1.0), "{left} {right}");
}

#[test]
fn closed_forms_are_what_the_simulation_comes_to() {
    let mut random = Pcg64Mcg::seed_from_u64(42);
    for _ in 0..20_000 {
        let pair = [(); 2].map(|()| Member {
            solo_s: random.random_range(1.0..5_000.0),
            slowdown: random.random_range(1.0..4.0),
        });
        let jobs = pair.map(|member| Job {
            work: member.solo_s,
            beside: member.slowdown.recip(),
            start: 0.0,
        });
        let ends = ends(jobs);
        let worked_s = random.random_range(0.0..5_000.0);
        let past = Past { ran_s: worked_s * random.random_range(1.0..2.0), worked_s };
        for (own, other) in [(0, 1), (1, 0)] {
            let (own, other, end) = (pair[own], pair[other], ends[own]);
            assert_close(extra_s(own, other), end - own.solo_s);
            let new = ratio(SlowdownCheck::TimeAware, Past::default(), own, other);
            assert_close(new, end / own.solo_s);
            // A whole life: what it has run and what the simulation adds.
            let whole = (past.ran_s + end) / (past.worked_s + own.solo_s);
            assert_close(ratio(SlowdownCheck::TimeAware, past, own, other), whole);
            assert!(new <= ratio(SlowdownCheck::Steady, past, own, other) * (1.0 + 1e-12));
        }
        let [one, other] = pair;
        let (first, last) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        assert_close(overlap_s(one, other), first);
        assert_close(span_s(one, other), last);
        let solo = one.solo_s + other.solo_s;
        let expected = 8.0 * (solo - last) - 3.0 * (ends[0] + ends[1] - solo);
        assert_close(gain(8, 3.0, one, other), expected);
    }
}
