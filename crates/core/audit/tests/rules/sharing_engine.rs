//! Pairs of an engine whose policy never breaks any up, held against the stream.

use crate::hand::*;
use deepshare_audit::{Auditor, ShareRules, Violation};
use deepshare_engine::{
    CapacityMode, Draft, Engine, EngineSettings, Event, PairBar, PairTerms, Policy, Rank,
    RetentionTable, State,
};
use deepshare_model::{
    Class, Demand, JobId, JobSpec, PoolId, ProfileClassId, Quota, Retention, Sharing, TenantSpec,
    Time,
};

/// Places what fits, lets others share with whoever is there, and parts nobody.
struct Clingy;

impl Policy for Clingy {
    fn name(&self) -> &'static str {
        "clingy"
    }

    fn shares(&self) -> bool {
        true
    }

    fn rank(&self, _: &State, job: JobId) -> Rank {
        Rank([0, 0, job.index() as u64])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let mut walk = draft.state().walk(draft.pool());
        while let Some(job) = walk.next(draft.state()) {
            if draft.place(job).is_ok() {
                continue;
            }
            let entry = draft.state().job(job);
            let (gpus, charge) = (entry.gpus(), entry.spec.class);
            let hosts = draft.state().hosts(draft.pool(), gpus).next();
            let host = hosts.and_then(|(_, hosts)| hosts.first()).map(|&(_, host)| host);
            let terms =
                PairTerms { bar: PairBar::both(kept(0.7)), own: kept(0.9), theirs: kept(0.9) };
            if let Some(host) = host {
                let _ = draft.share(job, charge, host, terms);
            }
        }
    }
}

fn kept(ratio: f64) -> Retention {
    Retention::from_ratio(ratio)
}

fn step(both: &mut (Engine, Auditor), event: &Event) -> Result<(), Violation> {
    let (engine, auditor) = both;
    let mut commands = Vec::new();
    auditor.event(Time::ZERO, event)?;
    engine.step(Time::ZERO, event, &mut commands).expect("a lawful policy");
    commands.iter().try_for_each(|command| auditor.command(Time::ZERO, command))?;
    auditor.compare(engine.state())
}

fn submitted(job: JobId, class: Class) -> Event {
    let spec = JobSpec {
        class,
        sharing: Sharing { consent: true, ..Sharing::default() },
        profile: Some(ProfileClassId(0)),
        ..job_of(Demand::gpus(1))
    };
    Event::Submitted { job, spec }
}

/// A guaranteed job and a best-effort one on the only GPU.
fn pair() -> (Engine, Auditor) {
    let settings =
        EngineSettings { capacity: CapacityMode::Elastic, pair_samples: 1, ..Default::default() };
    let rules = ShareRules {
        both_guaranteed: false,
        floor_ppm: 900_000,
        most_gpus: 0,
        by_prediction: true,
        in_part: false,
        by_limit: false,
        tolerance: None,
    };
    let auditor = Auditor::new(&settings).shares(rules).check_every(1);
    let mut both = (Engine::new(settings, Box::new(Clingy)), auditor);
    let table = RetentionTable { version: 1, rows: vec![vec![kept(0.9)]], ..Default::default() };
    for event in [
        Event::TenantSet { tenant: T0, spec: TenantSpec::new(PoolId(0), Quota::uniform(1, 1)) },
        Event::NodeAdded { node: N0, spec: node_of(1) },
        Event::Retentions { table },
        submitted(J0, Class::Guaranteed),
        Event::Wake,
        submitted(J1, Class::BestEffort),
        Event::Wake,
        Event::Running { attempt: A0 },
        Event::Running { attempt: A1 },
    ] {
        step(&mut both, &event).expect("breaks no rule");
    }
    assert_eq!(both.0.state().pair_counts().formed, 1);
    both
}

fn sampled(seen: f64) -> Event {
    let retentions = [kept(0.9), kept(seen)];
    Event::PairSampled { attempts: [A0, A1], retentions, taken: Time::ZERO }
}

#[test]
fn a_pair_that_is_slower_than_it_may_be_is_broken_up_in_the_next_round() {
    let mut both = pair();
    step(&mut both, &sampled(0.5)).unwrap();
    let goes_on = step(&mut both, &Event::Wake);
    breaks!(goes_on, Violation::LeftDegraded { attempt: A1, partner: A0, bad: 1 });
}

#[test]
fn a_pair_that_is_as_fast_as_promised_goes_on() {
    let mut both = pair();
    step(&mut both, &sampled(0.64)).unwrap();
    step(&mut both, &submitted(JobId(2), Class::BestEffort)).unwrap();
    step(&mut both, &Event::Wake).unwrap();
}

#[test]
fn the_engine_believes_what_was_sampled() {
    let (engine, mut auditor) = pair();
    auditor.event(Time::ZERO, &sampled(0.8)).unwrap();
    let differs = auditor.compare(engine.state());
    breaks!(differs, Violation::BesideDiffers { attempt: A1, .. });
}

#[test]
fn the_engine_predicts_what_it_was_told() {
    let (engine, mut auditor) = pair();
    let table = RetentionTable { version: 2, rows: vec![vec![kept(0.8)]], ..Default::default() };
    auditor.event(Time::ZERO, &Event::Retentions { table }).unwrap();
    breaks!(auditor.compare(engine.state()), Violation::RetentionsDiffer);
}
