//! Who shares with whom, how fast, and what is left of it.

use super::world::{MEASURED, OTHER, UNMEASURED, bare, fates, inputs, job, records};
use crate::{LucidJob, LucidSettings, Sharing, simulate};
use deepshare_model::Span;

fn on() -> LucidSettings {
    bare(Sharing::On)
}

/// Start and end of two jobs of one GPU, on a node of eight.
fn two(first: LucidJob, second: LucidJob) -> Vec<(u64, u64)> {
    let mut world = inputs(&[1]);
    world.jobs = vec![first, second];
    fates(&world, &on())
}

#[test]
fn a_job_joins_another_though_gpus_are_idle_and_a_guest_that_ends_frees_its_host() {
    // The guest needs 40 s for its 20 and is seen to have ended at 51. The host did 10 s alone and
    // 41 at half speed; 69.5 are left.
    assert_eq!(two(job(0, 1, 100), job(10, 1, 20)), [(0, 51 + 70 + 1), (10, 51)]);
}

#[test]
fn a_guest_whose_host_ended_first_stays_slow_and_alone_for_good() {
    let mut world = inputs(&[1]);
    world.jobs = vec![job(0, 1, 20), job(10, 1, 40), job(40, 1, 10)];
    let records = records(&world, &on());
    let ends: Vec<u64> = records.iter().map(|record| record.end_s).collect();
    // The host ends at 31. The guest goes on at half speed: 80 s for its 40. The third job would
    // like to join it and must not: it has a GPU to itself.
    assert_eq!(ends, [31, 10 + 80 + 1, 40 + 10 + 1]);
    let shared: Vec<bool> = records.iter().map(|record| record.shared).collect();
    assert_eq!(shared, [true, true, false]);
}

#[test]
fn a_host_that_was_freed_is_joined_again() {
    let mut world = inputs(&[1]);
    world.jobs = vec![job(0, 1, 100), job(10, 1, 20), job(60, 1, 5)];
    // Freed at 51 with 69.5 s left; nine seconds later, at 60, it has 60.5. Ten seconds at half
    // speed and the one in which the guest is seen to have ended leave 55.
    assert_eq!(fates(&world, &on()), [(0, 71 + 55 + 1), (10, 51), (60, 71)]);
}

#[test]
fn of_jobs_that_can_be_joined_the_first_to_have_started_is() {
    let mut world = inputs(&[1]);
    // The second does not join the first: together they are too heavy.
    let heavy = |at, duration| LucidJob { score: 2, ..job(at, 1, duration) };
    world.jobs = vec![heavy(0, 50), heavy(1, 50), job(2, 1, 5)];
    let shared: Vec<bool> = records(&world, &on()).iter().map(|record| record.shared).collect();
    assert_eq!(shared, [true, false, true]);
}

#[test]
fn a_pair_must_be_light_small_alike_in_width_and_in_order_of_priority() {
    let alone = [(0, 101), (10, 31)];
    let base = || (job(0, 1, 100), job(10, 1, 20));
    let refused = |change: &dyn Fn(&mut LucidJob, &mut LucidJob)| {
        let (mut old, mut new) = base();
        change(&mut old, &mut new);
        two(old, new) == alone
    };
    assert!(!refused(&|_, _| {}));
    assert!(!refused(&|old, new| (old.score, new.score) = (2, 0)));
    assert!(!refused(&|old, new| (old.score, new.score) = (1, 1)));
    assert!(refused(&|old, new| (old.score, new.score) = (1, 2)));
    // 24,576 MiB together are too much.
    assert!(refused(&|old, _| old.memory_mib = 23_552));
    assert!(!refused(&|old, _| old.memory_mib = 23_551));
    // Twice the host's priority value will do.
    assert!(!refused(&|_, new| new.estimate = Span::from_secs(200)));
    assert!(refused(&|_, new| new.estimate = Span(200_000_001)));
    assert!(refused(&|_, new| new.gpus = 2));
    assert!(refused(&|old, _| old.gpus = 2));
}

#[test]
fn jobs_wider_than_a_node_never_share() {
    let mut world = inputs(&[2]);
    world.jobs = vec![job(0, 16, 100), job(1, 16, 100)];
    assert_eq!(fates(&world, &on()), [(0, 101), (101, 202)]);
}

#[test]
fn speeds_are_found_in_either_order_of_the_pair() {
    let other = |at, duration| LucidJob { workload: OTHER, ..job(at, 1, duration) };
    // The table has workload 1 at 0.5 beside workload 0 at 0.25.
    assert_eq!(two(job(0, 1, 1_000), other(1, 10))[1], (1, 1 + 20 + 1));
    let ends = two(other(0, 1_000), job(5, 1, 10));
    assert_eq!(ends[1], (5, 5 + 40 + 1));
    // 5 s alone, 41 at half speed, then alone again with 974.5 left.
    assert_eq!(ends[0], (0, 46 + 975 + 1));
}

#[test]
fn pairs_that_were_never_measured_run_as_fast_as_alone_or_are_named() {
    let with = |workload| LucidJob { workload, ..job(10, 1, 20) };
    assert_eq!(two(job(0, 1, 100), with(UNMEASURED)), [(0, 101), (10, 31)]);
    let mut world = inputs(&[1]);
    world.speeds.clear();
    world.jobs = vec![job(0, 1, 100), with(MEASURED)];
    let said = simulate(&world, &on()).unwrap_err().to_string();
    assert!(said.starts_with("pairs.csv: there is no row for VGG on d, batch 64 beside"), "{said}");
    assert!(said.contains("at-10-for-20 and at-0-for-100"), "{said}");
    assert!(simulate(&world, &bare(Sharing::Off)).is_ok());
}

#[test]
fn without_sharing_the_first_blocks_the_others_and_with_it_nobody_does() {
    let mut world = inputs(&[1]);
    // Too heavy to share. The wide job is first by priority.
    let heavy = |at, gpus, duration| LucidJob { score: 2, ..job(at, gpus, duration) };
    let short = LucidJob { estimate: Span::from_secs(1), ..heavy(1, 8, 10) };
    world.jobs = vec![heavy(0, 4, 100), short, heavy(2, 1, 10)];
    let starts =
        |sharing| fates(&world, &bare(sharing)).iter().map(|fate| fate.0).collect::<Vec<_>>();
    assert_eq!(starts(Sharing::Off), [0, 101, 112]);
    assert_eq!(starts(Sharing::On), [0, 101, 2]);
}

#[test]
fn sharing_follows_the_forecast_at_whole_hundreds_of_seconds() {
    let mut world = inputs(&[1]);
    for row in &mut world.forecast.rows[..7] {
        row.jobs = 0.0;
    }
    world.jobs = vec![job(0, 8, 5_000), job(10, 8, 3_000)];
    let fate = fates(&world, &bare(Sharing::Forecast));
    // The row of 1,200 s goes then; of the five after it, the last is the first with 9 jobs, and
    // their mean of 1.8 is too few. At 1,800 s it is 3.6.
    assert_eq!(fate[1].0, 1_800);
}
