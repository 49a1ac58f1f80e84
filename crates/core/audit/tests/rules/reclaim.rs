//! Who is evicted for whom, and who may wait, where quotas are elastic.

use crate::hand::*;
use deepshare_audit::{Auditor, ReclaimRules, Violation};
use deepshare_engine::{
    CapacityMode, Command, Draft, Engine, EngineSettings, Event, EvictReason, Policy, Preemption,
    Rank, State,
};
use deepshare_model::{
    AttemptId, Class, Demand, Epoch, JobId, JobSpec, PoolId, Quota, Span, TenantSpec, Time,
};

const A3: AttemptId = AttemptId(3);

fn settings() -> EngineSettings {
    EngineSettings {
        capacity: CapacityMode::Elastic,
        preempted_pause: Span::from_secs(30),
        ..EngineSettings::default()
    }
}

/// Quota 4 and best-effort up to 8, on one node of 4.
fn under(rules: ReclaimRules, min_run_time: Span) -> Hand {
    let mut hand = Hand::beside(Auditor::new(&settings()).reclaims(rules));
    let terms = TenantSpec::new(PoolId(0), Quota::uniform(4, 1));
    hand.tenant(TenantSpec { min_run_time, ..terms });
    hand.node(node_of(4));
    hand
}

fn watched() -> Hand {
    under(ReclaimRules { preemption_cap: 1 }, Span::ZERO)
}

fn best_effort(hand: &mut Hand, gpus: u32) -> JobId {
    hand.submit(JobSpec { class: Class::BestEffort, ..job_of(Demand::gpus(gpus)) })
}

fn borrows(hand: &mut Hand, attempt: AttemptId, gpus: u32, bits: u64) -> JobId {
    let job = best_effort(hand, gpus);
    hand.start(attempt, job, &[(N0, bits)]).expect("breaks no rule");
    hand.sees(Event::Running { attempt });
    job
}

fn evict_for(hand: &mut Hand, attempt: AttemptId, beneficiary: JobId) -> Result<(), Violation> {
    hand.command(Command::Evict {
        attempt,
        epoch: Epoch(0),
        reason: EvictReason::Preempted,
        grace: Span::ZERO,
        preemption: Some(Preemption { beneficiary, phi_nano: None }),
    })
}

#[test]
fn whoever_others_are_evicted_for_is_given_devices_in_the_same_step() {
    let mut hand = watched();
    borrows(&mut hand, A0, 4, 0xf);
    let job = hand.job(4);
    evict_for(&mut hand, A0, job).unwrap();
    breaks!(hand.next_step(), Violation::EvictedForNobody { victims: 1, .. });
    hand.reserve(A1, job, &[(N0, 0xf)]).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn nobody_is_evicted_for_a_best_effort_job() {
    let mut hand = watched();
    borrows(&mut hand, A0, 4, 0xf);
    let job = best_effort(&mut hand, 4);
    breaks!(evict_for(&mut hand, A0, job), Violation::EvictedForBestEffort { .. });
}

#[test]
fn a_victim_gives_devices_to_the_job_it_is_evicted_for() {
    let mut hand = watched();
    borrows(&mut hand, A0, 2, 0b11);
    let job = hand.job(2);
    evict_for(&mut hand, A0, job).unwrap();
    let elsewhere = hand.start(A1, job, &[(N0, 0b1100)]);
    breaks!(elsewhere, Violation::VictimNotNeeded { victim: A0, .. });
}

#[test]
fn no_victim_could_have_stayed() {
    let mut hand = watched();
    borrows(&mut hand, A0, 2, 0b11);
    borrows(&mut hand, A1, 2, 0b1100);
    let job = hand.job(2);
    evict_for(&mut hand, A0, job).unwrap();
    evict_for(&mut hand, A1, job).unwrap();
    // It takes one GPU of each, and either of the two would have been enough.
    let of_both = hand.reserve(A2, job, &[(N0, 0b0110)]);
    breaks!(of_both, Violation::VictimNotNeeded { .. });
}

#[test]
fn two_victims_are_needed_where_neither_alone_is_enough() {
    let mut hand = watched();
    borrows(&mut hand, A0, 2, 0b11);
    borrows(&mut hand, A1, 2, 0b1100);
    let job = hand.job(3);
    evict_for(&mut hand, A0, job).unwrap();
    evict_for(&mut hand, A1, job).unwrap();
    hand.reserve(A2, job, &[(N0, 0b0111)]).unwrap();
    hand.next_step().unwrap();
}

#[test]
fn a_minimum_run_time_is_waited_for() {
    let mut hand = under(ReclaimRules { preemption_cap: 0 }, Span::from_secs(60));
    borrows(&mut hand, A0, 4, 0xf);
    let job = hand.job(4);
    hand.passes(59);
    hand.sees(Event::Wake);
    let early = evict_for(&mut hand, A0, job);
    breaks!(early, Violation::PreemptedTooSoon { from, .. } if *from == Time::from_secs(60));
    hand.passes(1);
    hand.sees(Event::Wake);
    evict_for(&mut hand, A0, job).unwrap();
}

#[test]
fn a_refused_eviction_is_not_repeated_at_once() {
    let mut hand = watched();
    borrows(&mut hand, A0, 4, 0xf);
    let job = hand.job(4);
    evict_for(&mut hand, A0, job).unwrap();
    hand.reserve(A1, job, &[(N0, 0xf)]).unwrap();
    hand.sees(Event::EvictionRefused { attempt: A0 });
    hand.give_up(A1).unwrap();
    breaks!(evict_for(&mut hand, A0, job), Violation::PreemptedTooSoon { .. });
}

/// Two borrowers of 2 GPUs each, of which the first was preempted a moment ago.
fn one_is_tired() -> Hand {
    let mut hand = watched();
    let tired = borrows(&mut hand, A0, 2, 0b11);
    let first = hand.job(2);
    borrows(&mut hand, A1, 2, 0b1100);
    evict_for(&mut hand, A0, first).expect("breaks no rule");
    hand.reserve(A2, first, &[(N0, 0b11)]).expect("breaks no rule");
    hand.released(A0);
    hand.start(A2, first, &[(N0, 0b11)]).expect("breaks no rule");
    hand.finished(A2);
    hand.released(A2);
    hand.start(A3, tired, &[(N0, 0b11)]).expect("breaks no rule");
    hand.sees(Event::Running { attempt: A3 });
    hand
}

#[test]
fn a_job_over_its_hourly_cap_is_spared_if_others_can_go() {
    let mut hand = one_is_tired();
    let job = hand.job(2);
    evict_for(&mut hand, A3, job).unwrap();
    let again = hand.reserve(AttemptId(4), job, &[(N0, 0b11)]);
    breaks!(again, Violation::VictimNotSpared { victim: A3, times: 1, .. });
}

#[test]
fn a_job_over_its_hourly_cap_goes_if_nobody_else_can_or_the_hour_is_over() {
    let mut hand = one_is_tired();
    let job = hand.job(3);
    evict_for(&mut hand, A3, job).unwrap();
    evict_for(&mut hand, A1, job).unwrap();
    hand.reserve(AttemptId(4), job, &[(N0, 0b111)]).unwrap();
    let mut hand = one_is_tired();
    hand.passes(3_600);
    let job = hand.job(2);
    evict_for(&mut hand, A3, job).unwrap();
    hand.reserve(AttemptId(4), job, &[(N0, 0b11)]).unwrap();
}

#[test]
fn a_job_preempted_twice_in_an_hour_pauses() {
    let mut hand = one_is_tired();
    let job = hand.job(3);
    evict_for(&mut hand, A3, job).unwrap();
    evict_for(&mut hand, A1, job).unwrap();
    hand.reserve(AttemptId(4), job, &[(N0, 0b111)]).unwrap();
    hand.released(A3);
    hand.passes(29);
    let soon = hand.start(AttemptId(5), J0, &[(N0, 0b1000)]);
    breaks!(soon, Violation::CommandOffStep { .. });
    hand.sees(Event::Wake);
    breaks!(hand.start(AttemptId(5), J0, &[(N0, 0b11)]), Violation::NotStartable { .. });
}

#[test]
fn a_start_does_not_count_on_what_a_victim_of_its_tenant_still_uses() {
    let mut hand = watched();
    hand.node(node_of(8));
    let held = best_effort(&mut hand, 8);
    hand.start(A0, held, &[(N1, 0xff)]).unwrap();
    let (job, more) = (hand.job(4), best_effort(&mut hand, 1));
    hand.start(A1, job, &[(N0, 0xf)]).unwrap();
    hand.preempt(A0).unwrap();
    hand.node(node_of(4));
    let over = hand.start(A2, more, &[(deepshare_model::NodeId(2), 1)]);
    breaks!(over, Violation::OverQuota { used: 9, quota: 8, .. });
}

/// Places what fits, and evicts nobody.
struct Gentle;

impl Policy for Gentle {
    fn name(&self) -> &'static str {
        "gentle"
    }

    fn rank(&self, _: &State, job: JobId) -> Rank {
        Rank([0, 0, job.index() as u64])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let mut walk = draft.state().walk(draft.pool());
        while let Some(job) = walk.next(draft.state()) {
            let _ = draft.place(job);
        }
    }
}

/// An engine that has a tenant with a quota of 4 and one node of 4, beside an auditor.
fn pair() -> (Engine, Auditor) {
    let rules = ReclaimRules { preemption_cap: 0 };
    let auditor = Auditor::new(&settings()).reclaims(rules).checks_assurance();
    let mut both = (Engine::new(settings(), Box::new(Gentle)), auditor);
    let spec = TenantSpec::new(PoolId(0), Quota::uniform(4, 1));
    step(&mut both, &Event::TenantSet { tenant: T0, spec }).expect("breaks no rule");
    step(&mut both, &Event::NodeAdded { node: N0, spec: node_of(4) }).expect("breaks no rule");
    both
}

fn step(both: &mut (Engine, Auditor), event: &Event) -> Result<(), Violation> {
    let (engine, auditor) = both;
    let mut commands = Vec::new();
    auditor.event(Time::ZERO, event)?;
    engine.step(Time::ZERO, event, &mut commands).expect("a lawful policy");
    commands.iter().try_for_each(|command| auditor.command(Time::ZERO, command))?;
    auditor.compare(engine.state())
}

fn submitted(job: JobId, class: Class, gpus: u32) -> Event {
    Event::Submitted { job, spec: JobSpec { class, ..job_of(Demand::gpus(gpus)) } }
}

#[test]
fn a_guaranteed_job_that_could_be_placed_by_evicting_does_not_wait() {
    let mut both = pair();
    for event in [submitted(J0, Class::BestEffort, 2), Event::Wake] {
        step(&mut both, &event).unwrap();
    }
    // 2 GPUs are free: the first is placed. The second needs those that J0 borrows.
    for event in [submitted(J1, Class::Guaranteed, 2), Event::Wake] {
        step(&mut both, &event).unwrap();
    }
    step(&mut both, &submitted(JobId(2), Class::Guaranteed, 2)).unwrap();
    let waits = step(&mut both, &Event::Wake);
    breaks!(waits, Violation::LeftWaiting { job: JobId(2), .. });
}

#[test]
fn a_guaranteed_job_waits_if_only_guaranteed_jobs_are_in_its_way() {
    let mut both = pair();
    for event in [
        submitted(J0, Class::Guaranteed, 2),
        submitted(J1, Class::Guaranteed, 2),
        Event::Wake,
        submitted(JobId(2), Class::Guaranteed, 2),
        Event::Wake,
    ] {
        step(&mut both, &event).unwrap();
    }
}

#[test]
fn the_engines_assurance_degree_is_that_of_the_stream() {
    let (mut engine, mut auditor) = pair();
    let submitted = submitted(J0, Class::Guaranteed, 2);
    auditor.event(Time::ZERO, &submitted).unwrap();
    engine.step(Time::ZERO, &submitted, &mut Vec::new()).unwrap();
    auditor.compare(engine.state()).unwrap();
    // Held, a job demands nothing; this engine was not told.
    auditor.event(Time::ZERO, &Event::Held { job: J0 }).unwrap();
    let differs = auditor.compare(engine.state());
    breaks!(differs, Violation::AssuranceDiffers { audited: 1_000_000, engine: 0, .. });
}
