//! Gangs with several partners, iterations in steps, and limits of slowdown.

use crate::hand::*;
use deepshare_audit::{Auditor, ShareRules, Violation};
use deepshare_engine::{Command, EngineSettings, Event, EvictReason, PairBar, RetentionTable};
use deepshare_model::{
    AttemptId, Demand, Epoch, IterationTime, JobId, JobSpec, NodeSpec, PoolId, ProfileClassId,
    Quota, Retention, Sharing, TenantSpec, Training, TrainingMemory,
};

fn rules() -> ShareRules {
    ShareRules {
        both_guaranteed: true,
        floor_ppm: 0,
        most_gpus: 0,
        by_prediction: true,
        in_part: true,
        by_limit: true,
        tolerance: None,
    }
}

/// Batch 8, in up to 8 steps: 1,000 MiB and as much a sample.
fn trains(gpus: u32) -> JobSpec {
    let training = Training {
        batch: 8,
        iterations: 100,
        time: IterationTime {
            compute_fixed_us: 100_000,
            compute_per_sample_ns: 10_000_000,
            communication_us: 0,
            overlap_milli: 1_000,
        },
        memory: TrainingMemory { fixed_mib: 1_000, per_sample_kib: 1_024_000 },
    };
    JobSpec {
        sharing: Sharing { consent: true, ..Sharing::default() },
        profile: Some(ProfileClassId(0)),
        training: Some(training),
        ..job_of(Demand { gpu_memory_mib: training.memory_mib(1), ..Demand::gpus(gpus) })
    }
}

/// A job on the first GPU, one on the second; the other two are free.
fn two_hosts(rules: ShareRules, gpu_memory_mib: u32) -> Hand {
    let mut hand = Hand::beside(Auditor::new(&EngineSettings::default()).shares(rules));
    hand.tenant(TenantSpec::new(PoolId(0), Quota::uniform(4, 1)));
    hand.node(NodeSpec { gpu_memory_mib, ..node_of(4) });
    let rows = vec![vec![Retention::from_ratio(0.8)]];
    hand.sees(Event::Retentions {
        table: RetentionTable { version: 1, rows, ..Default::default() },
    });
    for (attempt, device) in [(A0, 0b1), (A1, 0b10)] {
        let job = hand.submit(trains(1));
        hand.start(attempt, job, &[(N0, device)]).expect("breaks no rule");
        hand.sees(Event::Running { attempt });
    }
    hand
}

fn start(hand: &mut Hand, job: JobId, on: On<'_>, steps: u32) -> Result<(), Violation> {
    hand.command(Command::Start {
        attempt: A2,
        epoch: Epoch(0),
        job,
        charged: deepshare_model::Class::Guaranteed,
        placement: placement(on),
        steps,
    })
}

fn watch(hand: &mut Hand, partner: AttemptId) -> Result<(), Violation> {
    hand.command(Command::Watch { attempt: A2, partner, bar: PairBar::NONE })
}

#[test]
fn a_gang_may_share_some_of_its_gpus_with_several_and_each_pair_is_watched() {
    let mut hand = two_hosts(rules(), 40_000);
    let gang = hand.submit(trains(3));
    start(&mut hand, gang, &[(N0, 0b111)], 1).unwrap();
    watch(&mut hand, A0).unwrap();
    breaks!(hand.next_step(), Violation::NotWatched { attempt: A2, partner: A1 });
    watch(&mut hand, A1).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn memory_holds_the_newcomer_as_it_runs_and_who_is_there() {
    // 9,000 each at one step, 3,000 in four.
    let mut hand = two_hosts(rules(), 12_000);
    let job = hand.submit(trains(1));
    breaks!(start(&mut hand, job, &[(N0, 1)], 1), Violation::PairMemoryShort { .. });
    breaks!(start(&mut hand, job, &[(N0, 1)], 2), Violation::PairMemoryShort { .. });
    start(&mut hand, job, &[(N0, 1)], 4).unwrap();
}

#[test]
fn steps_divide_the_batch_and_are_for_company_only() {
    let mut hand = two_hosts(rules(), 40_000);
    let job = hand.submit(trains(1));
    breaks!(start(&mut hand, job, &[(N0, 1)], 3), Violation::WrongSteps { steps: 3, .. });
    breaks!(start(&mut hand, job, &[(N0, 0b100)], 2), Violation::WrongSteps { alone: true, .. });
    start(&mut hand, job, &[(N0, 1)], 2).unwrap();
    watch(&mut hand, A0).unwrap();
    // Left alone it goes back to one.
    hand.finished(A0);
    hand.released(A0);
    breaks!(hand.next_step(), Violation::WrongSteps { attempt: A2, steps: 2, alone: true, .. });
    let back = |steps| Command::Accumulate { attempt: A2, epoch: Epoch(0), steps };
    breaks!(hand.command(back(4)), Violation::WrongSteps { steps: 4, .. });
    hand.command(back(1)).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn a_slowdown_limit_parts_pairs_where_the_policy_has_limits_and_lowers_what_is_predicted() {
    let pair = |rules: ShareRules| {
        let mut hand = two_hosts(rules, 40_000);
        let job = hand.submit(trains(1));
        start(&mut hand, job, &[(N0, 1)], 1).unwrap();
        watch(&mut hand, A0).unwrap();
        hand
    };
    let mut hand = pair(rules());
    breaks!(hand.evict(A1, EvictReason::SlowdownLimit), Violation::EvictedWithoutCause { .. });
    hand.evict(A2, EvictReason::SlowdownLimit).unwrap();
    let mut hand = pair(ShareRules { by_limit: false, ..rules() });
    breaks!(hand.evict(A2, EvictReason::SlowdownLimit), Violation::EvictedWithoutCause { .. });
}
