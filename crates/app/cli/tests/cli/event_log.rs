//! The log of a live scheduler: replayed, and simulated.

use crate::running::{run, run_in};
use deepshare_engine::{CapacityMode, Command, Engine, EngineSettings, Event, Slice};
use deepshare_event_log::{Header, Limits, Name, Named, Writer};
use deepshare_model::{
    AttemptId, Class, Demand, Devices, GpuTypeId, JobId, JobSpec, NodeId, NodeSpec, Outcome,
    PoolId, Quota, Resources, Sharing, TenantId, TenantSpec, Time, UserId,
};
use deepshare_policies::PolicyConfig;
use std::fs;
use std::path::Path;

/// What each job asks for beside a GPU.
const PER_GPU: Resources = Resources { cpu_milli: 4_000, memory_mib: 8_000 };

/// A live scheduler's engine and log, with a clock in seconds.
struct Live {
    engine: Engine,
    writer: Writer,
    attempts: Vec<(AttemptId, JobId)>,
}

impl Live {
    fn start(dir: &Path, zero_s: i64) -> Live {
        let policy = PolicyConfig::by_name("fifo").unwrap();
        let settings = EngineSettings { capacity: CapacityMode::Hard, ..EngineSettings::default() };
        let header = Header::new("test".to_owned(), policy.clone(), settings, zero_s * 1_000_000);
        let mut live = Live {
            engine: Engine::new(settings, policy.build()),
            writer: Writer::create(dir, header, Limits::default()).unwrap(),
            attempts: Vec::new(),
        };
        live.name(Named::Tenant(TenantId(0)), "vision");
        live.name(Named::Node(NodeId(0)), "node-a");
        live.name(Named::GpuType(GpuTypeId(0)), "A100-80GB");
        let spec = TenantSpec::new(PoolId(0), Quota::uniform(8, 1));
        live.tell(0, Event::TenantSet { tenant: TenantId(0), spec });
        let spec = NodeSpec {
            pool: PoolId(0),
            gpu_type: GpuTypeId(0),
            gpus: 8,
            gpu_memory_mib: 81_920,
            capacity: Resources { cpu_milli: 64_000, memory_mib: 512_000 },
        };
        live.tell(0, Event::NodeAdded { node: NodeId(0), spec });
        live
    }

    fn name(&mut self, of: Named, name: &str) {
        self.writer.name(&Name { of, name: name.to_owned() }).unwrap();
    }

    fn tell(&mut self, second: u64, event: Event) {
        self.tell_all(second, vec![event]);
    }

    /// Tells the engine of events, and that the instant is over; every start runs at once.
    fn tell_all(&mut self, second: u64, mut events: Vec<Event>) {
        let now = Time::from_secs(second);
        events.push(Event::Wake);
        while !events.is_empty() {
            let event = events.remove(0);
            let mut commands = Vec::new();
            self.engine.step(now, &event, &mut commands).unwrap();
            self.writer.step(now, &event, &commands, None).unwrap();
            for command in commands {
                if let Command::Start { attempt, job, .. } = command {
                    self.attempts.push((attempt, job));
                    events.extend([Event::Bound { attempt }, Event::Running { attempt }]);
                }
            }
        }
    }

    fn submit(&mut self, second: u64, job: u32, name: &str, gpus: u32) {
        let event = self.submission(second, job, name, gpus);
        self.tell(second, event);
    }

    fn submission(&mut self, second: u64, job: u32, name: &str, gpus: u32) -> Event {
        self.name(Named::Job(JobId(job)), name);
        let per_gpu = PER_GPU;
        let spec = JobSpec {
            tenant: TenantId(0),
            user: UserId(0),
            class: Class::Guaranteed,
            priority: 0,
            submit: Time::from_secs(second),
            demand: Demand { per_gpu, ..Demand::gpus(gpus) },
            sharing: Sharing::default(),
            profile: None,
            training: None,
            recommended: None,
            requested_time: None,
        };
        Event::Submitted { job: JobId(job), spec }
    }

    fn finish(&mut self, second: u64, job: u32) {
        let running = self.attempts.iter().rev().find(|(_, of)| *of == JobId(job));
        let attempt = running.expect("it was started").0;
        self.tell(second, Event::Finished { attempt, outcome: Outcome::Succeeded });
        self.tell(second, Event::DevicesReleased { attempt });
    }
}

/// Two jobs one after the other, one that still runs after 500 s, and one that never does.
fn log(dir: &Path) {
    let mut live = Live::start(dir, 1_767_225_600);
    live.submit(100, 0, "vision/a", 8);
    live.submit(110, 1, "vision/b", 4);
    live.finish(200, 0);
    live.submit(210, 2, "vision/c", 2);
    live.submit(220, 3, "vision/d", 8);
    live.finish(260, 1);
    live.tell(500, Event::Wake);
}

#[test]
fn a_log_is_replayed_and_the_account_says_what_was_compared() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path());
    let path = dir.path().to_str().unwrap();
    let account = run(&["replay", path, "--audit"]).ok();
    assert!(account.contains("same      every command is the one in the log"), "{account}");
    let json = run(&["replay", path, "--audit", "--json"]).json();
    assert_eq!(
        (&json["same"], &json["starts"], &json["cut"]),
        (&true.into(), &1.into(), &().into())
    );
    assert_eq!((json["commands"].as_u64(), json["span_s"].as_f64()), (Some(3), Some(500.0)));
    assert_eq!(json["audited"], json["events"]);
}

#[test]
fn a_changed_log_fails_with_the_place_and_a_cut_one_says_so() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path());
    let path = dir.path().to_str().unwrap();
    let file = dir.path().join("00000001.dslog");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
    let account = run(&["replay", path]).ok();
    assert!(account.contains("cut       at byte"), "{account}");
    let text = String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap();
    let changed = text.replacen("\"devices\":255", "\"devices\":127", 1);
    assert_ne!(text, changed);
    fs::write(&file, zstd::encode_all(changed.as_bytes(), 1).unwrap()).unwrap();
    let ran = run(&["replay", path]);
    assert_eq!(ran.status, 1);
    let place = "differs from the log in segment 00000001, record";
    assert!(ran.err.contains(place) && ran.err.contains("other commands"), "{}", ran.err);
    let said = run(&["replay", "examples"]).fails(2);
    assert!(said.contains("holds no event log"), "{said}");
}

#[test]
fn a_log_is_a_history_with_the_run_times_that_were_seen() {
    let dir = tempfile::tempdir().unwrap();
    log(&dir.path().join("log"));
    let write = ["generate", "--history", "log", "--out", "t.csv", "--cluster-out", "c.toml"];
    let said = run_in(dir.path(), &write);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.err.contains("1 left out: they never ran"), "{}", said.err);
    assert!(said.err.contains("1 had not ended with the log"), "{}", said.err);
    let jobs = fs::read_to_string(dir.path().join("t.csv")).unwrap();
    let rows: Vec<String> = jobs
        .lines()
        .skip(1)
        .map(|row| row.split(',').take(5).collect::<Vec<_>>().join(","))
        .collect();
    // Submitted at 100, 110 and 210 s; b waited for a until 200 s; c ran from 210 s to the end.
    assert_eq!(
        rows,
        ["vision/a,vision,8,0,100", "vision/b,vision,4,10,60", "vision/c,vision,2,110,290"]
    );
    let cluster = fs::read_to_string(dir.path().join("c.toml")).unwrap();
    for part in ["node-a", "A100-80GB", "cpus = 64", "name = \"vision\"", "quota = 8"] {
        assert!(cluster.contains(part), "{part} is not in {cluster}");
    }
    let simulate = ["simulate", "--history", "log", "--policy", "fifo", "--json", "--audit"];
    let json = run_in(dir.path(), &simulate).json();
    assert_eq!((&json["trace"]["jobs"], &json["cluster"]["gpus"]), (&3.into(), &8.into()));
    let own = dir.path().join("c.toml");
    fs::write(&own, cluster.replace("quota = 8", "quota = 4")).unwrap();
    let other = ["--cluster", "c.toml", "--policy", "fifo", "--json"];
    let said = run_in(dir.path(), &[&["simulate", "--history", "log"], &other[..]].concat());
    assert!(said.status != 0 && said.err.contains("vision/a"), "too large for its quota: {said:?}");
}

#[test]
fn a_restarted_scheduler_goes_on_with_the_jobs_that_it_finds() {
    let dir = tempfile::tempdir().unwrap();
    log(&dir.path().join("log"));
    // It comes back 600 s after the first began, and finds c, which ends at 700 s.
    let mut live = Live::start(&dir.path().join("log"), 1_767_225_600);
    let submitted = live.submission(210, 0, "vision/c", 2);
    let found = Event::Found {
        job: JobId(0),
        charged: Class::Guaranteed,
        placement: vec![Slice { node: NodeId(0), devices: Devices::first(2) }],
        per_gpu: PER_GPU,
        running_since: Some(Time::from_secs(210)),
    };
    live.tell_all(600, vec![submitted, found]);
    live.attempts.push((AttemptId(0), JobId(0)));
    live.finish(700, 0);
    drop(live);
    let account = run_in(dir.path(), &["replay", "log"]).ok();
    assert!(account.contains("2 starts of a scheduler"), "{account}");
    let write = ["generate", "--history", "log", "--out", "t.csv"];
    assert_eq!(run_in(dir.path(), &write).status, 0);
    let jobs = fs::read_to_string(dir.path().join("t.csv")).unwrap();
    let c: Vec<&str> = jobs.lines().filter(|row| row.starts_with("vision/c")).collect();
    assert_eq!(c.len(), 1, "{jobs}");
    assert!(c[0].starts_with("vision/c,vision,2,110,490,"), "{jobs}");
}

#[test]
fn a_log_and_a_trace_together_are_refused() {
    let args = ["simulate", "--history", "x", "--trace", "examples/trace.csv"];
    let said = run(&[&args[..], &["--cluster", "examples/cluster.toml"]].concat()).fails(2);
    assert!(said.contains("trace.log") && said.contains("leave one of the two out"), "{said}");
}
