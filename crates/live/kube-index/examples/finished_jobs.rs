//! What a job that is over leaves behind in a scheduler that goes on: `cargo run --release -p
//! deepshare-kube-index --example finished_jobs`. Resident memory is read from `/proc`, so on Linux only.

use deepshare_engine::{Attempt, Engine, EngineSettings, Job};
use deepshare_kube_index::{Action, Change, Config, Driver, Outcome};
use deepshare_model::{Epoch, Span, Time};
use deepshare_policies::PolicyConfig;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const JOBS: u32 = 50_000;
/// The first ones make room for what is reused.
const WARM: u32 = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = PolicyConfig::by_name("deepshare").ok_or("no such policy")?;
    let settings = EngineSettings {
        capacity: deepshare_engine::CapacityMode::Elastic,
        ..policy.engine_settings()
    };
    let mut driver = Driver::new(Engine::new(settings, policy.build()), Config::default());
    let mut now = Time::from_secs(1_767_225_600);
    driver.lead(now, Epoch(1), &mut ());
    for change in [
        Change::Quota(Box::new(read(&json!({
            "apiVersion": "deepshare.io/v1alpha1", "kind": "TenantQuota",
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"gpus": {"*": 8}, "namespaces": ["a"]}}))?)),
        Change::Namespace(read(&json!({"metadata": {"name": "a"}}))?),
        Change::Node(Box::new(read(&json!({
            "metadata": {"name": "n", "uid": "n"},
            "status": {
                "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110",
                    "nvidia.com/gpu": "8"},
                "conditions": [{"type": "Ready", "status": "True"}]}}))?)),
        Change::Synced,
    ] {
        driver.change(now, change, &mut ());
    }
    let mut warm = 0;
    for job in 0..JOBS {
        if job == WARM {
            warm = resident_bytes()?;
        }
        now = now + Span::SECOND;
        run(&mut driver, now, job)?;
    }
    let (resident, each) = (resident_bytes()? - warm, u64::from(JOBS - WARM));
    println!("a job: {} bytes, an attempt: {}", size_of::<Job>(), size_of::<Attempt>());
    println!("resident, by finished job: {} bytes", resident / each);
    let snapshot = serde_json::to_string(&driver.engine().snapshot())?;
    println!("in a snapshot: {} bytes", snapshot.len() as u64 / u64::from(JOBS));
    Ok(())
}

/// A pod comes, is bound, runs, ends and is deleted.
fn run(driver: &mut Driver, now: Time, job: u32) -> Result<(), Box<dyn std::error::Error>> {
    let mut pod = json!({
        "metadata": {"name": format!("train-{job}"), "namespace": "a", "uid": format!("u{job}"),
            "creationTimestamp": "2026-05-01T10:00:00Z"},
        "spec": {"schedulerName": "deepshare", "containers": [{"name": "main",
            "resources": {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}}]},
        "status": {"phase": "Pending"}});
    driver.change(now, Change::Pod(Box::new(read(&pod)?)), &mut ());
    driver.decide(now, &mut ());
    let actions = driver.take_actions();
    let (to, node, annotations) = actions
        .iter()
        .find_map(|action| match action {
            Action::Bind { pod, node, annotations } => Some((pod, node, annotations)),
            _ => None,
        })
        .ok_or("it was not bound")?;
    driver.outcome(now, &Outcome::Bound { pod: to.clone() }, &mut ());
    pod["spec"]["nodeName"] = json!(node);
    pod["metadata"]["annotations"] = json!(annotations);
    for phase in ["Running", "Succeeded"] {
        pod["status"] = json!({"phase": phase, "startTime": "2026-05-01T10:00:00Z"});
        driver.change(now, Change::Pod(Box::new(read(&pod)?)), &mut ());
        driver.decide(now, &mut ());
    }
    driver.change(now, Change::PodGone { uid: format!("u{job}").into() }, &mut ());
    driver.decide(now, &mut ());
    driver.take_actions();
    Ok(())
}

/// An object as an API server serves it.
fn read<T: DeserializeOwned>(object: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(object)
}

fn resident_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).ok_or("no VmRSS in /proc")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("VmRSS without a number")?.parse()?;
    Ok(kib * 1_024)
}
