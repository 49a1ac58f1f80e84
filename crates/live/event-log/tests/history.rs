//! A log as a history says for how long jobs ran, whatever the log lacks and whoever wrote it.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use deepshare_engine::{Command, Engine, EngineSettings, Event, Placement, Slice};
use deepshare_event_log::{Header, History, Limits, Opening, Writer};
use deepshare_model::{
    AttemptId, Class, Demand, Devices, Epoch, GpuTypeId, JobId, JobSpec, NodeId, NodeSpec, Outcome,
    PoolId, Quota, Resources, Retention, Sharing, TenantId, TenantSpec, Time, UserId,
};
use deepshare_policies::PolicyConfig;
use std::fs;

/// Parts per million.
const HALF: u32 = 500_000;

fn header() -> Header {
    let policy = PolicyConfig::by_name("deepshare").unwrap();
    Header::new("test".to_owned(), policy, EngineSettings::default(), 0)
}

/// A tenant and a node of eight GPUs.
fn cluster() -> [Event; 2] {
    let spec = TenantSpec::new(PoolId(0), Quota::uniform(8, 1));
    let node = NodeSpec {
        pool: PoolId(0),
        gpu_type: GpuTypeId(0),
        gpus: 8,
        gpu_memory_mib: 81_920,
        capacity: Resources::UNLIMITED,
    };
    [
        Event::TenantSet { tenant: TenantId(0), spec },
        Event::NodeAdded { node: NodeId(0), spec: node },
    ]
}

fn submitted(job: u32) -> Event {
    let spec = JobSpec {
        tenant: TenantId(0),
        user: UserId(0),
        class: Class::BestEffort,
        priority: 0,
        submit: Time::ZERO,
        demand: Demand::gpus(1),
        sharing: Sharing::default(),
        profile: None,
        training: None,
        recommended: None,
        requested_time: None,
    };
    Event::Submitted { job: JobId(job), spec }
}

/// The job was found on the first GPU of a node, where it has run from the start.
fn found_on(node: u32, job: u32) -> Event {
    Event::Found {
        job: JobId(job),
        charged: Class::BestEffort,
        placement: first_gpu(node),
        per_gpu: Resources::default(),
        running_since: Some(Time::ZERO),
    }
}

fn first_gpu(node: u32) -> Placement {
    vec![Slice { node: NodeId(node), devices: Devices::first(1) }]
}

/// Both of two attempts were seen to keep half of their speed.
fn half_speed(a: u32, b: u32, second: u64) -> Event {
    let attempts = [AttemptId(a), AttemptId(b)];
    let retentions = [Retention::from_ppm(HALF); 2];
    Event::PairSampled { attempts, retentions, taken: Time::from_secs(second) }
}

fn finished(attempt: u32) -> Event {
    Event::Finished { attempt: AttemptId(attempt), outcome: Outcome::Succeeded }
}

fn released(attempt: u32) -> Event {
    Event::DevicesReleased { attempt: AttemptId(attempt) }
}

/// What the scheduler was told, by second, and what it answered.
type Told = (u64, Event, Vec<Command>);

fn heard(second: u64, event: Event) -> Told {
    (second, event, Vec::new())
}

/// Seconds that each job ran, as a log of this says.
fn run_times(told: impl IntoIterator<Item = Told>) -> Vec<Option<u64>> {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), header(), Limits::default()).unwrap();
    for event in cluster() {
        writer.step(Time::ZERO, &event, &[], None).unwrap();
    }
    for (second, event, commands) in told {
        writer.step(Time::from_secs(second), &event, &commands, None).unwrap();
    }
    drop(writer);
    seconds(&History::read(dir.path()).unwrap())
}

fn seconds(history: &History) -> Vec<Option<u64>> {
    history.jobs.iter().map(|job| job.run_time.map(|time| time.0 / 1_000_000)).collect()
}

#[test]
fn who_shared_at_the_head_of_a_log_is_alone_when_the_other_has_gone() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 1, ..Limits::default() };
    let mut writer = Writer::create(dir.path(), header(), limits).unwrap();
    let mut engine = Engine::new(header().settings, header().policy.build());
    let mut tell = |second: u64, event: Event| {
        let mut commands = Vec::new();
        engine.step(Time::from_secs(second), &event, &mut commands).unwrap();
        writer.step(Time::from_secs(second), &event, &commands, None).unwrap();
        if matches!(event, Event::PairSampled { .. }) {
            writer.flush().unwrap();
            let opening = || Opening { snapshot: engine.snapshot(), names: Vec::new() };
            writer.rotate_if_due(opening).unwrap();
        }
    };
    cluster().into_iter().for_each(|event| tell(0, event));
    for event in [submitted(0), found_on(0, 0), submitted(1), found_on(0, 1)] {
        tell(0, event);
    }
    tell(0, half_speed(0, 1, 0));
    for (second, event) in [(100, finished(1)), (100, released(1)), (200, finished(0))] {
        tell(second, event);
    }
    drop(writer);
    let whole = History::read(dir.path()).unwrap();
    assert_eq!(seconds(&whole), [Some(150), Some(50)]);
    fs::remove_file(dir.path().join("00000001.dslog")).unwrap();
    let rest = History::read(dir.path()).unwrap();
    assert_eq!(seconds(&rest), seconds(&whole), "the rest begins with both on one GPU");
}

#[test]
fn who_has_a_new_partner_keeps_it_when_the_old_one_gives_back_its_devices() {
    let told = [
        heard(0, submitted(0)),
        heard(0, found_on(0, 0)),
        heard(0, submitted(1)),
        heard(0, found_on(0, 1)),
        heard(0, half_speed(0, 1, 0)),
        heard(100, finished(1)),
        heard(100, submitted(2)),
        heard(100, found_on(0, 2)),
        heard(100, half_speed(0, 2, 100)),
        heard(110, released(1)),
        heard(200, finished(0)),
    ];
    assert_eq!(run_times(told)[0], Some(100));
}

#[test]
fn a_sample_of_a_pair_of_which_one_is_not_known_says_nothing_of_the_other() {
    let told = [
        heard(0, submitted(0)),
        heard(0, found_on(0, 0)),
        heard(0, half_speed(0, 9, 0)),
        heard(200, finished(0)),
    ];
    assert_eq!(run_times(told), [Some(200)]);
}

fn start(attempt: u32, job: u32) -> Command {
    Command::Start {
        attempt: AttemptId(attempt),
        epoch: Epoch(1),
        job: JobId(job),
        charged: Class::BestEffort,
        placement: first_gpu(0),
        steps: 1,
    }
}

#[test]
fn a_job_found_on_devices_that_nobody_knows_takes_no_number_from_others() {
    let told = [
        heard(0, submitted(0)),
        heard(0, found_on(7, 0)),
        heard(0, Event::Cancelled { job: JobId(0) }),
        heard(0, submitted(1)),
        heard(0, submitted(2)),
        heard(0, found_on(0, 2)),
        (0, Event::Wake, vec![start(1, 1)]),
        heard(10, Event::Running { attempt: AttemptId(1) }),
        heard(60, finished(1)),
        heard(80, finished(0)),
    ];
    assert_eq!(run_times(told), [None, Some(50), Some(80)]);
}

#[test]
fn a_found_job_that_the_engine_of_another_release_did_not_take_up_gives_its_number_back() {
    let told = [
        heard(0, submitted(0)),
        heard(0, found_on(0, 0)),
        heard(0, submitted(1)),
        (0, Event::Wake, vec![start(0, 1)]),
        heard(10, Event::Running { attempt: AttemptId(0) }),
        heard(20, submitted(2)),
        heard(20, found_on(0, 2)),
        heard(60, finished(0)),
        heard(80, finished(1)),
    ];
    let ran = run_times(told);
    assert_eq!(ran[1..], [Some(50), Some(80)]);
}
