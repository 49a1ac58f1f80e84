//! The pair theorem against simulations of random pairs.

#[path = "pair/two_jobs.rs"]
mod two_jobs;

use deepshare_model::{IterationTime, Retention, Training, TrainingMemory};
use deepshare_policies::{
    Member, Split, best_split, sharing_pays, t_apart, t_together, t_together_split,
    t_together_until_alone,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use two_jobs::{Job, ends};

const INSTANCES: usize = 100_000;
/// Instants at which the newcomer may start: 0 to the resident's end.
const INSTANTS: u32 = 20;
/// Figures that differ by less than this share of themselves are the same.
const ROUNDING: f64 = 1e-9;

/// Mean completion time of a newcomer that starts at `kappa` and its resident, simulated.
fn simulated(newcomer: Member, pace: f64, resident: Member, kappa: f64) -> f64 {
    let new = Job { work: newcomer.solo_s, beside: pace / newcomer.slowdown, start: kappa };
    let old = Job { work: resident.solo_s, beside: resident.slowdown.recip(), start: 0.0 };
    let [new, old] = ends([new, old]);
    (new + old) / 2.0
}

/// Work of 1 s to 1e5 s, each power of ten as likely; slowdowns from 1 to 3.
fn random_member(random: &mut Pcg64Mcg) -> Member {
    let solo_s = libm::pow(10.0, random.random_range(0.0..5.0));
    Member { solo_s, slowdown: random.random_range(1.0..3.0) }
}

fn are_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
}

#[test]
fn no_start_between_now_and_the_residents_end_beats_both() {
    let mut random = Pcg64Mcg::seed_from_u64(34);
    let (mut pays, mut ties) = (0, 0);
    for _ in 0..INSTANCES {
        let [newcomer, resident] = [(); 2].map(|()| random_member(&mut random));
        let at = |instant: u32| {
            let kappa = resident.solo_s * (f64::from(instant) / f64::from(INSTANTS));
            simulated(newcomer, 1.0, resident, kappa)
        };
        let (now, later) = (at(0), at(INSTANTS));
        for instant in 1..INSTANTS {
            let between = at(instant);
            let least = now.min(later);
            assert!(between >= least * (1.0 - ROUNDING), "{newcomer:?} {resident:?} {instant}");
        }
        assert!(are_same(t_together(newcomer, resident), now), "{newcomer:?} {resident:?}");
        assert!(are_same(t_apart(newcomer, resident), later), "{newcomer:?} {resident:?}");
        if are_same(now, later) {
            ties += 1;
            continue;
        }
        assert_eq!(sharing_pays(newcomer, resident), now < later, "{newcomer:?} {resident:?}");
        pays += usize::from(now < later);
    }
    assert!(ties < 10, "{ties} ties");
    // Both answers have to be common, or the test would show little.
    let share = pays as f64 / INSTANCES as f64;
    assert!((0.2..0.8).contains(&share), "{share}");
}

#[test]
fn without_slowdown_sharing_always_pays() {
    let mut random = Pcg64Mcg::seed_from_u64(35);
    for _ in 0..INSTANCES {
        let [newcomer, resident] =
            [(); 2].map(|()| Member { slowdown: 1.0, ..random_member(&mut random) });
        assert!(sharing_pays(newcomer, resident), "{newcomer:?} {resident:?}");
    }
}

#[test]
fn beyond_a_slowdown_that_depends_on_the_lengths_sharing_never_pays() {
    let mut random = Pcg64Mcg::seed_from_u64(36);
    for _ in 0..INSTANCES {
        let [newcomer, resident] = [(); 2].map(|()| random_member(&mut random));
        let (least, most) = if newcomer.solo_s < resident.solo_s {
            (newcomer.solo_s, resident.solo_s)
        } else {
            (resident.solo_s, newcomer.solo_s)
        };
        let bound = 1.0 + most / (2.0 * least);
        let [newcomer, resident] = [newcomer, resident].map(|member| {
            let slowdown = bound * (1.0 + 1e-6) + random.random_range(0.0..1.0);
            Member { slowdown, ..member }
        });
        assert!(!sharing_pays(newcomer, resident), "{newcomer:?} {resident:?}");
    }
}

#[test]
fn jobs_of_equal_length_share_below_a_slowdown_of_a_half() {
    let member = |slowdown: f64| Member { solo_s: 100.0, slowdown };
    assert!(sharing_pays(member(1.499), member(1.499)));
    assert!(!sharing_pays(member(1.5), member(1.5)), "equal is not less");
    assert!(!sharing_pays(member(f64::NAN), member(1.0)));
    let nothing = Member { solo_s: 0.0, slowdown: 1.0 };
    assert!(!sharing_pays(member(1.0), nothing), "there is nothing to wait for");
}

/// The paper's form for a split newcomer accepts only good pairs (why: `t_together_split`), and
/// refuses some.
#[test]
fn a_split_newcomer_is_never_accepted_wrongly() {
    let mut random = Pcg64Mcg::seed_from_u64(37);
    let (mut good, mut refused) = (0, 0);
    for _ in 0..INSTANCES {
        let [newcomer, resident] = [(); 2].map(|()| random_member(&mut random));
        let pace = Retention::from_ratio(random.random_range(0.4..1.0));
        let now = simulated(newcomer, pace.as_f64(), resident, 0.0);
        let later = simulated(newcomer, pace.as_f64(), resident, resident.solo_s);
        let exact = t_together_until_alone(newcomer, pace, resident);
        let papers = t_together_split(newcomer, pace, resident);
        assert!(are_same(exact, now), "{newcomer:?} {pace} {resident:?}");
        assert!(are_same(t_apart(newcomer, resident), later), "{newcomer:?} {pace} {resident:?}");
        assert!(papers >= exact * (1.0 - ROUNDING), "{newcomer:?} {pace} {resident:?}");
        let accepted = papers < later;
        if are_same(now, later) {
            continue;
        }
        assert!(now < later || !accepted, "{newcomer:?} {pace} {resident:?}");
        good += usize::from(now < later);
        refused += usize::from(now < later && !accepted);
    }
    let share = refused as f64 / good as f64;
    println!("refused {refused} of {good} good pairs: {share:.4}");
    assert!((0.01..0.2).contains(&share), "{share}");
}

/// YOLOv3 on a T4, one GPU (Pollux' profiles): 1,000 iterations of 0.508 s.
fn yolo() -> Training {
    Training {
        batch: 12,
        iterations: 1_000,
        time: IterationTime {
            compute_fixed_us: 216_400,
            compute_per_sample_ns: 24_300_000,
            communication_us: 0,
            overlap_milli: 1_000,
        },
        memory: TrainingMemory { fixed_mib: 2_000, per_sample_kib: 600 * 1_024 },
    }
}

#[test]
fn the_best_split_is_the_fastest_that_fits_and_pays() {
    let newcomer = Member { solo_s: 508.0, slowdown: 1.2 };
    let resident = Member { solo_s: 1_000.0, slowdown: 1.2 };
    // It needs 9,200 MiB whole, 5,600 in two steps and 3,800 in four.
    let split = |memory: u32| best_split(newcomer, &yolo(), memory, resident);
    assert_eq!(split(9_200).map(|split| split.steps), Some(1));
    assert_eq!(split(9_199).map(|split| split.steps), Some(2));
    assert_eq!(split(5_599).map(|split| split.steps), None, "four steps would not pay");
    assert_eq!(split(3_799), None);
    // Two steps stretch 508 s to 724.4, 869.28 beside the resident, which ends last:
    // 500 + 869.28 · (1 − 1/2.4). Apart, it would end at 1,508 and the resident at 1,000.
    let Split { together_s, apart_s, .. } = split(9_199).unwrap();
    assert!((together_s - 1_007.08).abs() < 1e-3, "{together_s}");
    assert!((apart_s - 1_254.0).abs() < 1e-9, "{apart_s}");
}
