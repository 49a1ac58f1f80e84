//! Two jobs on the same devices: who may, on what terms, and who has to leave.

use crate::hand::*;
use deepshare_audit::{Auditor, PressureOf, ShareRules, ToleranceRules, Violation};
use deepshare_engine::{
    CapacityMode, Command, EngineSettings, Event, EvictReason, PairBar, Preemption, RetentionTable,
};
use deepshare_model::{
    AttemptId, Class, Demand, Epoch, JobId, JobSpec, NodeSpec, PoolId, ProfileClassId, Quota,
    Resources, Retention, Sharing, Span, TenantSpec, Time, TrustDomainId,
};

const A3: AttemptId = AttemptId(3);
const ON: On<'static> = &[(N0, 0b11)];

fn settings() -> EngineSettings {
    EngineSettings { capacity: CapacityMode::Elastic, ..EngineSettings::default() }
}

fn rules() -> ShareRules {
    ShareRules {
        both_guaranteed: false,
        floor_ppm: 900_000,
        most_gpus: 0,
        by_prediction: true,
        in_part: false,
        by_limit: false,
        tolerance: None,
    }
}

fn kept(ratio: f64) -> Retention {
    Retention::from_ratio(ratio)
}

/// Two jobs of class 0 keep 0.95 each; one of class 1 keeps 0.8, and leaves 0.85 to one of class 0.
fn table(version: u64) -> Event {
    let rows = vec![vec![kept(0.95), kept(0.85)], vec![kept(0.8)]];
    Event::Retentions { table: RetentionTable { version, rows, ..Default::default() } }
}

fn under(rules: ShareRules, node: NodeSpec) -> Hand {
    let mut hand = Hand::beside(Auditor::new(&settings()).shares(rules));
    hand.tenant(TenantSpec::new(PoolId(0), Quota::uniform(4, 1)));
    hand.node(node);
    hand.sees(table(1));
    hand
}

fn sharer(class: Class, gpus: u32) -> JobSpec {
    JobSpec {
        class,
        sharing: Sharing { consent: true, ..Sharing::default() },
        profile: Some(ProfileClassId(0)),
        ..job_of(Demand::gpus(gpus))
    }
}

/// A job of two GPUs that runs and would share them.
fn with_host(rules: ShareRules, spec: JobSpec, node: NodeSpec) -> Hand {
    let mut hand = under(rules, node);
    let job = hand.submit(spec);
    hand.start(A0, job, ON).expect("breaks no rule");
    hand.sees(Event::Running { attempt: A0 });
    hand
}

fn guaranteed_host() -> Hand {
    with_host(rules(), sharer(Class::Guaranteed, 2), node_of(4))
}

fn watch(
    hand: &mut Hand,
    attempt: AttemptId,
    partner: AttemptId,
    at: f64,
) -> Result<(), Violation> {
    hand.command(Command::Watch { attempt, partner, bar: PairBar::both(kept(at)) })
}

/// A best-effort job beside the first one.
fn pair() -> Hand {
    let mut hand = guaranteed_host();
    joins(&mut hand, A1);
    hand
}

fn joins(hand: &mut Hand, attempt: AttemptId) -> JobId {
    let job = hand.submit(sharer(Class::BestEffort, 2));
    hand.start(attempt, job, ON).expect("breaks no rule");
    watch(hand, attempt, A0, 0.7).expect("breaks no rule");
    hand.sees(Event::Running { attempt });
    job
}

/// What a job may not be told when it joins the first one.
fn joining(hand: &mut Hand, spec: JobSpec) -> Result<(), Violation> {
    let job = hand.submit(spec);
    hand.start(A1, job, ON)
}

#[test]
fn two_jobs_may_share_and_a_third_may_not() {
    let mut hand = pair();
    let third = hand.submit(sharer(Class::BestEffort, 2));
    let full = hand.start(A2, third, ON);
    breaks!(full, Violation::DeviceFull { device: 0, holders: [A0, A1], .. });
    breaks!(hand.reserve(A2, third, ON), Violation::DeviceFull { .. });
    // Who is left may take another partner.
    hand.finished(A1);
    hand.released(A1);
    hand.start(A2, third, ON).unwrap();
    watch(&mut hand, A2, A0, 0.7).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn a_policy_that_shares_nothing_has_one_holder_a_device() {
    let mut hand = Hand::new(&[4]);
    let job = hand.submit(sharer(Class::BestEffort, 2));
    hand.start(A0, job, ON).unwrap();
    let shared = joining(&mut hand, sharer(Class::BestEffort, 2));
    breaks!(shared, Violation::DeviceHeld { holder: A0, .. });
}

#[test]
fn a_pair_shares_all_devices_or_none() {
    let mut hand = guaranteed_host();
    let one = hand.submit(sharer(Class::BestEffort, 1));
    breaks!(hand.start(A1, one, &[(N0, 1)]), Violation::PairUneven { partner: A0, .. });
    let two = hand.submit(sharer(Class::BestEffort, 2));
    breaks!(hand.start(A1, two, &[(N0, 0b110)]), Violation::PairUneven { partner: A0, .. });
    let three = hand.submit(sharer(Class::BestEffort, 3));
    breaks!(hand.start(A1, three, &[(N0, 0b111)]), Violation::PairUneven { partner: A0, .. });
}

#[test]
fn both_agreed_to_share() {
    let unwilling = |class| JobSpec { sharing: Sharing::default(), ..sharer(class, 2) };
    let asked = joining(&mut guaranteed_host(), unwilling(Class::BestEffort));
    breaks!(asked, Violation::PairUnwilling { partner: A0, .. });
    let mut hand = with_host(rules(), unwilling(Class::Guaranteed), node_of(4));
    let asked = joining(&mut hand, sharer(Class::BestEffort, 2));
    breaks!(asked, Violation::PairUnwilling { .. });
}

#[test]
fn both_are_of_one_trust_domain() {
    let sharing = Sharing { consent: true, trust_domain: TrustDomainId(1), ..Sharing::default() };
    let stranger = JobSpec { sharing, ..sharer(Class::BestEffort, 2) };
    breaks!(joining(&mut guaranteed_host(), stranger), Violation::PairOfStrangers { .. });
}

#[test]
fn one_of_the_two_was_submitted_as_best_effort() {
    let both = joining(&mut guaranteed_host(), sharer(Class::Guaranteed, 2));
    breaks!(both, Violation::PairGuaranteed { .. });
    // Being charged as best-effort does not make it so.
    let mut hand = guaranteed_host();
    let job = hand.submit(sharer(Class::Guaranteed, 2));
    let spilled = hand.command(Command::Start {
        attempt: A1,
        epoch: Epoch(0),
        job,
        charged: Class::BestEffort,
        placement: placement(ON),
        steps: 1,
    });
    breaks!(spilled, Violation::PairGuaranteed { .. });
    let lax = ShareRules { both_guaranteed: true, ..rules() };
    let mut hand = with_host(lax, sharer(Class::Guaranteed, 2), node_of(4));
    joining(&mut hand, sharer(Class::Guaranteed, 2)).unwrap();
}

#[test]
fn wide_jobs_keep_to_themselves_where_a_limit_says_so() {
    let narrow = ShareRules { most_gpus: 1, ..rules() };
    let mut hand = with_host(narrow, sharer(Class::Guaranteed, 2), node_of(4));
    let wide = joining(&mut hand, sharer(Class::BestEffort, 2));
    breaks!(wide, Violation::PairTooWide { gpus: 2, most: 1, .. });
}

fn needing(class: Class, gpu_memory_mib: u32) -> JobSpec {
    let spec = sharer(class, 2);
    JobSpec { demand: Demand { gpu_memory_mib, ..spec.demand }, ..spec }
}

#[test]
fn both_fit_the_devices_memory_and_say_what_they_need() {
    let host = |needs| {
        let node = NodeSpec { gpu_memory_mib: 16_000, ..node_of(4) };
        with_host(rules(), needing(Class::Guaranteed, needs), node)
    };
    let short = joining(&mut host(10_000), needing(Class::BestEffort, 6_001));
    breaks!(short, Violation::PairMemoryShort { needs: [6_001, 10_000], has: 16_000, .. });
    joining(&mut host(10_000), needing(Class::BestEffort, 6_000)).unwrap();
    let silent = joining(&mut host(0), needing(Class::BestEffort, 6_000));
    breaks!(silent, Violation::PairMemoryShort { .. });
    let silent = joining(&mut host(10_000), needing(Class::BestEffort, 0));
    breaks!(silent, Violation::PairMemoryShort { .. });
}

#[test]
fn the_node_has_cpus_for_both() {
    let with_cores = |cores: u64| {
        let spec = sharer(Class::BestEffort, 2);
        let per_gpu = Resources { cpu_milli: cores * 1_000, memory_mib: 0 };
        JobSpec { demand: Demand { per_gpu, ..spec.demand }, ..spec }
    };
    let capacity = Resources { cpu_milli: 8_000, memory_mib: 0 };
    let host = || with_host(rules(), with_cores(3), NodeSpec { capacity, ..node_of(4) });
    let short = joining(&mut host(), with_cores(2));
    breaks!(short, Violation::HostShort { used, .. } if used.cpu_milli == 10_000);
    joining(&mut host(), with_cores(1)).unwrap();
}

fn of_profile(class: Class, profile: Option<u32>) -> JobSpec {
    JobSpec { profile: profile.map(ProfileClassId), ..sharer(class, 2) }
}

#[test]
fn what_both_keep_is_predicted() {
    let joins = |profile| joining(&mut guaranteed_host(), of_profile(Class::BestEffort, profile));
    breaks!(joins(None), Violation::PairUnpredicted { .. });
    breaks!(joins(Some(7)), Violation::PairUnpredicted { .. });
    // The second row ends before its second entry.
    let mut hand = with_host(rules(), of_profile(Class::BestEffort, Some(1)), node_of(4));
    let blank = joining(&mut hand, of_profile(Class::BestEffort, Some(1)));
    breaks!(blank, Violation::PairUnpredicted { .. });
    let blind = ShareRules { by_prediction: false, ..rules() };
    let mut hand = with_host(blind, of_profile(Class::BestEffort, Some(1)), node_of(4));
    joining(&mut hand, of_profile(Class::BestEffort, Some(1))).unwrap();
}

#[test]
fn a_guaranteed_job_keeps_the_floor() {
    let below = joining(&mut guaranteed_host(), of_profile(Class::BestEffort, Some(1)));
    breaks!(below, Violation::PairBelowFloor { keeps, .. } if *keeps == kept(0.85));
    let mut hand = with_host(rules(), sharer(Class::BestEffort, 2), node_of(4));
    joining(&mut hand, of_profile(Class::BestEffort, Some(1))).unwrap();
    watch(&mut hand, A1, A0, 0.8).unwrap();
}

#[test]
fn both_keep_what_is_tolerated() {
    let mut hand = with_host(rules(), sharer(Class::BestEffort, 2), node_of(4));
    joining(&mut hand, of_profile(Class::BestEffort, Some(1))).unwrap();
    let below = watch(&mut hand, A1, A0, 0.800_001);
    breaks!(below, Violation::PairBelowTolerance { keeps, .. } if *keeps == kept(0.8));
}

#[test]
fn what_a_broken_pair_kept_lowers_what_is_predicted() {
    let mut hand = pair();
    bad_samples(&mut hand, 3);
    hand.evict(A1, EvictReason::Degraded).unwrap();
    hand.released(A1);
    let job = hand.submit(sharer(Class::BestEffort, 2));
    let again = hand.start(A2, job, ON);
    breaks!(again, Violation::PairBelowFloor { keeps, .. } if *keeps == kept(0.5));
}

#[test]
fn whoever_starts_beside_another_is_watched_at_once() {
    let mut hand = guaranteed_host();
    joining(&mut hand, sharer(Class::BestEffort, 2)).unwrap();
    breaks!(hand.next_step(), Violation::NotWatched { attempt: A1, partner: A0 });
    let other = hand.preempt(A1);
    breaks!(other, Violation::NotWatched { .. });
    watch(&mut hand, A1, A0, 0.7).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn nobody_is_watched_but_a_pair_that_begins() {
    let mut hand = guaranteed_host();
    breaks!(watch(&mut hand, A0, A0, 0.7), Violation::WatchedForNothing { .. });
    joining(&mut hand, sharer(Class::BestEffort, 2)).unwrap();
    breaks!(watch(&mut hand, A0, A1, 0.7), Violation::WatchedForNothing { .. });
    watch(&mut hand, A1, A0, 0.7).unwrap();
    breaks!(watch(&mut hand, A1, A0, 0.7), Violation::WatchedForNothing { .. });
}

fn tolerance() -> ToleranceRules {
    ToleranceRules {
        rho_min_milli: 700,
        gamma_milli: 1_000,
        eps_share_milli: 1_000,
        demand: PressureOf::Promoted,
        by_qad: true,
        spill: false,
        guards: false,
    }
}

#[test]
fn tolerance_is_between_its_least_and_one() {
    let rules = ShareRules { tolerance: Some(tolerance()), ..rules() };
    let mut hand = with_host(rules, sharer(Class::BestEffort, 2), node_of(4));
    joining(&mut hand, sharer(Class::BestEffort, 2)).unwrap();
    breaks!(watch(&mut hand, A1, A0, 0.69), Violation::ToleranceDiffers { .. });
    watch(&mut hand, A1, A0, 0.7).unwrap();
}

/// One of 4 GPUs is wanted by somebody else, so with 2 free of 4: P = 1 / (2 + 4).
#[test]
fn tolerance_follows_from_pressure() {
    let rules = ShareRules { tolerance: Some(tolerance()), ..rules() };
    let auditor = Auditor::new(&settings()).shares(rules).checks_assurance();
    let start = || {
        let mut hand = Hand::beside(auditor.clone());
        hand.tenant(TenantSpec::new(PoolId(0), Quota::uniform(4, 1)));
        hand.node(node_of(4));
        hand.sees(table(1));
        let job = hand.submit(sharer(Class::BestEffort, 2));
        hand.start(A0, job, ON).expect("breaks no rule");
        hand.submit(job_of(Demand::gpus(1)));
        joining(&mut hand, sharer(Class::BestEffort, 2)).expect("breaks no rule");
        hand
    };
    breaks!(watch(&mut start(), A1, A0, 0.7), Violation::ToleranceDiffers { .. });
    breaks!(watch(&mut start(), A1, A0, 0.775), Violation::ToleranceDiffers { .. });
    watch(&mut start(), A1, A0, 0.75).unwrap();
}

fn sample(hand: &mut Hand, kept: [f64; 2]) {
    let retentions = kept.map(Retention::from_ratio);
    hand.sees(Event::PairSampled { attempts: [A0, A1], retentions, taken: hand.now });
}

fn bad_samples(hand: &mut Hand, count: u32) {
    for _ in 0..count {
        hand.passes(1);
        sample(hand, [0.5, 0.5]);
    }
}

#[test]
fn a_pair_is_broken_up_after_enough_bad_samples_in_a_row() {
    let early = |hand: &mut Hand| hand.evict(A1, EvictReason::Degraded);
    let mut hand = pair();
    breaks!(early(&mut hand), Violation::RevokedTooSoon { bad: 0, needed: 3, .. });
    bad_samples(&mut hand, 2);
    // Told twice, or late, it is still one.
    sample(&mut hand, [0.5, 0.5]);
    breaks!(early(&mut hand), Violation::RevokedTooSoon { bad: 2, .. });
    hand.passes(1);
    sample(&mut hand, [0.64, 0.9]);
    bad_samples(&mut hand, 2);
    breaks!(early(&mut hand), Violation::RevokedTooSoon { bad: 2, .. });
    bad_samples(&mut hand, 1);
    early(&mut hand).unwrap();
}

#[test]
fn the_guaranteed_one_of_a_pair_stays() {
    let mut hand = pair();
    bad_samples(&mut hand, 3);
    let wrong = hand.evict(A0, EvictReason::Degraded);
    breaks!(wrong, Violation::RevokedGuaranteed { attempt: A0, partner: A1 });
}

#[test]
fn nobody_is_sent_away_from_devices_of_its_own() {
    let mut hand = pair();
    bad_samples(&mut hand, 3);
    hand.finished(A0);
    hand.released(A0);
    let alone = hand.evict(A1, EvictReason::Degraded);
    breaks!(alone, Violation::EvictedWithoutCause { attempt: A1, .. });
}

fn evict_for(hand: &mut Hand, attempt: AttemptId, beneficiary: JobId) {
    let preemption = Some(Preemption { beneficiary, phi_nano: None });
    let (epoch, grace, reason) = (Epoch(0), Span::ZERO, EvictReason::Preempted);
    hand.command(Command::Evict { attempt, epoch, reason, grace, preemption })
        .expect("breaks no rule");
}

#[test]
fn devices_of_a_pair_are_given_away_when_both_leave() {
    let host = || with_host(rules(), sharer(Class::BestEffort, 2), node_of(2));
    let mut hand = host();
    joins(&mut hand, A1);
    let job = hand.job(2);
    evict_for(&mut hand, A1, job);
    breaks!(hand.reserve(A2, job, ON), Violation::DeviceFull { holders: [A0, A1], .. });
    evict_for(&mut hand, A0, job);
    hand.reserve(A2, job, ON).unwrap();
    hand.released(A0);
    breaks!(hand.start(A2, job, ON), Violation::DeviceHeld { holder: A1, .. });
    hand.released(A1);
    hand.start(A2, job, ON).unwrap();
}

#[test]
fn a_promised_place_beside_a_job_is_for_one_and_beside_that_job_only() {
    let mut hand = guaranteed_host();
    let (job, other) =
        (hand.submit(sharer(Class::BestEffort, 2)), hand.submit(sharer(Class::BestEffort, 2)));
    // Something else in its way is leaving; the one it joins stays.
    let leaving = hand.submit(sharer(Class::BestEffort, 2));
    hand.start(A1, leaving, &[(N0, 0b1100)]).unwrap();
    hand.preempt(A1).unwrap();
    hand.reserve(A2, job, ON).unwrap();
    breaks!(hand.start(A3, other, ON), Violation::DevicePromised { claimant: A2, .. });
    hand.released(A1);
    hand.start(A2, job, ON).unwrap();
    watch(&mut hand, A2, A0, 0.7).unwrap();
}

#[test]
fn gpu_time_of_a_shared_device_counts_once() {
    let mut hand = pair();
    hand.passes(10);
    let shares = hand.auditor.finish(Time::from_secs(10)).unwrap().gpu_time;
    let seconds = |seconds| Span::from_secs(seconds).on(1);
    assert_eq!((shares.held, shares.shared), (seconds(20), seconds(20)));
    assert_eq!((shares.free, shares.installed), (seconds(20), seconds(40)));
}
