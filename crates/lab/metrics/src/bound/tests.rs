//! The bound against hand-made cases, exhaustive search and any schedule at all.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const SECOND: u128 = 1_000_000;

fn job(gpus: u32, submit_s: u64, duration_s: u64) -> BoundJob {
    BoundJob {
        pool: PoolId(0),
        gpus,
        submit: Time::from_secs(submit_s),
        duration: Span::from_secs(duration_s),
    }
}

/// The least possible sum of completion times in seconds, by trying every set of jobs in every
/// second. Preemption is free, at whole seconds.
fn optimum(jobs: &[BoundJob], gpus: u32) -> u64 {
    fn search(
        jobs: &[BoundJob],
        gpus: u32,
        now: u64,
        left: Vec<u64>,
        known: &mut HashMap<(u64, Vec<u64>), u64>,
    ) -> u64 {
        if left.iter().all(|&left| left == 0) {
            return 0;
        }
        if let Some(&cost) = known.get(&(now, left.clone())) {
            return cost;
        }
        let ready = |at: usize| left[at] > 0 && jobs[at].submit <= Time::from_secs(now);
        let present = (0..jobs.len()).filter(|&at| ready(at)).count() as u64;
        let waits_for_release = present == 0;
        let mut best = u64::MAX;
        for set in 0u32..1 << jobs.len() {
            let members: Vec<usize> = (0..jobs.len()).filter(|at| set >> at & 1 == 1).collect();
            let fits = members.iter().map(|&at| jobs[at].gpus).sum::<u32>() <= gpus;
            if !fits || !members.iter().all(|&at| ready(at)) {
                continue;
            }
            if members.is_empty() && !waits_for_release {
                continue;
            }
            let mut after = left.clone();
            members.iter().for_each(|&at| after[at] -= 1);
            best = best.min(present + search(jobs, gpus, now + 1, after, known));
        }
        known.insert((now, left), best);
        best
    }
    let left = jobs.iter().map(|job| job.duration.0 / 1_000_000).collect();
    search(jobs, gpus, 0, left, &mut HashMap::new())
}

#[test]
fn srpt_preempts_the_long_job_for_the_short_one() {
    // 10 s of work from 0, 2 s from 1: the short one ends at 3, the long one at 12.
    let bound = Bound::of(&[job(1, 0, 10), job(1, 1, 2)], &[1], 1);
    assert_eq!(bound.srpt_micros, 14 * SECOND);
    assert_eq!(bound.best_micros, 14 * SECOND);
    assert_eq!(bound.mean_s(), Some(7.0));
}

#[test]
fn with_gpus_to_spare_the_bound_is_the_durations() {
    let bound = Bound::of(&[job(1, 0, 10), job(2, 0, 4)], &[100], 1);
    assert_eq!(bound.best_micros, 14 * SECOND);
    assert!(bound.srpt_micros < SECOND);
}

#[test]
fn narrow_jobs_in_a_queue_are_bounded_above_both_srpt_and_duration() {
    // Four jobs of 10 s on two GPUs: two end at 10 s and two at 20 s. SRPT on a machine of twice
    // the speed says 5 + 10 + 15 + 20 = 50, durations 40; busy times find the true 60.
    let bound = Bound::of(&[job(1, 0, 10); 4], &[2], 1);
    assert_eq!(bound.duration_micros, 40 * SECOND);
    assert_eq!(bound.srpt_micros, 50 * SECOND);
    assert_eq!(bound.best_micros, 60 * SECOND);
    assert_eq!(optimum(&[job(1, 0, 10); 4], 2), 60);
}

#[test]
fn pools_do_not_lend_each_other_speed() {
    let crowded = BoundJob { pool: PoolId(1), ..job(4, 0, 10) };
    let jobs = [job(4, 0, 10), crowded, crowded];
    let by_pool = Bound::by_pool(&jobs, &[4, 4], 1);
    assert_eq!(by_pool[0].best_micros, 10 * SECOND);
    assert_eq!(by_pool[1].best_micros, 30 * SECOND);
    let total = Bound::of(&jobs, &[4, 4], 1);
    assert_eq!((total.jobs, total.best_micros), (3, 40 * SECOND));
}

#[test]
fn a_calm_spell_does_not_dilute_a_busy_one() {
    let mut jobs = vec![job(4, 0, 10); 3];
    jobs.extend(vec![job(1, 1000, 500); 2]);
    let bound = Bound::of(&jobs, &[4], 1);
    // 10 + 20 + 30 in the queue, 500 each in the calm; neither bound alone sees both.
    assert_eq!(bound.best_micros, 1060 * SECOND);
    assert!(bound.best_micros > bound.duration_micros.max(bound.srpt_micros));
}

#[test]
fn one_long_job_does_not_hide_the_queue_of_short_ones_beside_it() {
    // Alone, the short ones are bounded by 60 as above. The long one makes all one busy period, in
    // which its own duration is far beyond its mean busy time.
    let mut jobs = vec![job(1, 0, 10); 4];
    jobs.push(job(1, 0, 1000));
    assert_eq!(Bound::of(&jobs, &[2], 1).best_micros, 1060 * SECOND);
}

#[test]
fn sharing_doubles_the_speed_that_must_be_assumed() {
    let bound = Bound::of(&[job(4, 0, 10); 2], &[4], 2);
    assert_eq!(bound.best_micros, 20 * SECOND);
}

#[test]
fn empty_pools_and_jobs_without_size_leave_the_durations() {
    let nothing = Bound::of(&[], &[8], 1);
    assert_eq!((nothing.mean_s(), nothing.best_micros), (None, 0));
    let bound = Bound::of(&[job(0, 5, 7), job(3, 0, 0)], &[8], 1);
    assert_eq!(bound.best_micros, 7 * SECOND);
    assert_eq!(Bound::of(&[job(1, 0, 9)], &[0], 1).best_micros, 9 * SECOND);
}

#[test]
fn times_near_the_end_of_the_clock_do_not_overflow() {
    let far = BoundJob {
        pool: PoolId(0),
        gpus: u32::MAX,
        submit: Time(u64::MAX / 2),
        duration: Span(u64::MAX / 2),
    };
    let bound = Bound::of(&[far, far], &[u32::MAX], 2);
    assert!(bound.best_micros >= u128::from(u64::MAX / 2) * 2);
}

fn tiny_jobs(widest: u32) -> impl Strategy<Value = Vec<BoundJob>> {
    let any_job = (1..=widest, 0..5u64, 1..4u64).prop_map(|(g, r, d)| job(g, r, d));
    prop::collection::vec(any_job, 1..5)
}

/// Runs jobs in the order of `rank` whenever enough GPUs are free, never stopping one, and
/// returns the sum of completion times in microseconds.
fn list_schedule(jobs: &[BoundJob], rank: &[u32], gpus: u32) -> u128 {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&at| rank[at]);
    let mut running: Vec<(u64, u32)> = Vec::new();
    let (mut now, mut sum) = (0u64, 0u128);
    while !order.is_empty() {
        running.retain(|&(end, _)| end > now);
        order.retain(|&at| {
            let free = gpus - running.iter().map(|&(_, gpus)| gpus).sum::<u32>();
            let starts = jobs[at].submit.0 <= now && jobs[at].gpus <= free;
            if starts {
                let end = now + jobs[at].duration.0;
                running.push((end, jobs[at].gpus));
                sum += u128::from(end - jobs[at].submit.0);
            }
            !starts
        });
        let ends = running.iter().map(|&(end, _)| end);
        let submits = order.iter().map(|&at| jobs[at].submit.0);
        now = ends.chain(submits).filter(|&at| at > now).min().unwrap_or(now + 1);
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_schedule_of_a_tiny_instance_beats_the_bound(jobs in tiny_jobs(3)) {
        let best = u128::from(optimum(&jobs, 3)) * SECOND;
        let bound = Bound::of(&jobs, &[3], 1);
        prop_assert!(bound.best_micros <= best, "{bound:?} above the optimum {best}");
        prop_assert!(bound.srpt_micros.max(bound.mean_busy_micros) <= bound.best_micros);
    }

    #[test]
    fn on_a_single_gpu_srpt_is_the_optimum(jobs in tiny_jobs(1)) {
        let best = u128::from(optimum(&jobs, 1)) * SECOND;
        prop_assert_eq!(Bound::of(&jobs, &[1], 1).srpt_micros, best);
    }

    #[test]
    fn no_list_schedule_in_any_order_beats_the_bound(
        jobs in prop::collection::vec(
            ((1..9u32), (0..400_000_000u64), (0..90_000_000u64), any::<u32>()),
            1..60,
        ),
    ) {
        let ranks: Vec<u32> = jobs.iter().map(|job| job.3).collect();
        let jobs: Vec<BoundJob> = jobs
            .iter()
            .map(|&(gpus, submit, duration, _)| BoundJob {
                pool: PoolId(0), gpus, submit: Time(submit), duration: Span(duration),
            })
            .collect();
        let bound = Bound::of(&jobs, &[8], 1);
        prop_assert!(bound.best_micros <= list_schedule(&jobs, &ranks, 8));
    }
}
