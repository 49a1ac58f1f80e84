//! Minutes of chance on a real API server: whatever tenants and nodes do, the recorded log replays to
//! the same commands, and the objects show no broken promise.
//!
//! `DEEPSHARE_MINUTES=60` makes an hour of each.

use crate::SCHEDULER;
use deepshare_e2e::{Bed, Beds, JobDraft, PodDraft, Scheduler, Stage};
use deepshare_testbed::NodeSpec;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use libtest_mimic::Trial;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
const TENANTS: [&str; 3] = ["red", "green", "blue"];
const NODES: usize = 4;
const GPUS: usize = 4;

/// What may go wrong beside what people ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// Nothing.
    None,
    /// Devices fail and recover, nodes are cordoned and reject pods.
    Nodes,
    /// The scheduler is killed and started again.
    Crashes,
}

struct Minute<'a> {
    bed: &'a Bed,
    stage: Stage<'a>,
    chance: Pcg64Mcg,
    /// Tenant and name of every Job.
    jobs: Vec<(&'static str, String)>,
    rejections: u32,
}

impl Minute<'_> {
    fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.chance.random_range(0..these.len())]
    }

    async fn submit(&mut self) {
        let tenant = self.one_of(&TENANTS);
        let name = format!("j{}", self.jobs.len());
        let class = self.one_of(&["guaranteed", "best-effort", "best-effort"]);
        let run: f64 = self.chance.random_range(2.0..15.0);
        let stop: f64 = self.chance.random_range(0.0..2.0);
        let mut pod = PodDraft::new(&name)
            .deepshare("class", class)
            .deepshare("run-time", &format!("{run:.1}"))
            .behaves("run-seconds", &format!("{run:.1}"))
            .behaves("stop-seconds", &format!("{stop:.1}"));
        let mut pods = 1;
        match self.chance.random_range(0..4) {
            0 => {
                let kept = self.one_of(&["0.9", "0.8", "0.4"]);
                let profile = self.one_of(&["low", "medium", "high"]);
                pod = pod.slot().deepshare("profile", profile).deepshare("gpu-memory", "8Gi");
                pod = pod.behaves("keeps", kept);
            }
            1 => {
                pods = self.chance.random_range(2..4);
                let gpus = self.chance.random_range(1..3);
                pod = pod.gpus(gpus).deepshare("gang-size", &pods.to_string());
            }
            _ => {
                let gpus = self.one_of(&[1, 1, 2, 4]);
                pod = pod.gpus(gpus);
            }
        }
        self.stage.submit(tenant, &JobDraft { pod, pods }).await;
        self.jobs.push((tenant, name));
    }

    async fn withdraw(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let at = self.chance.random_range(0..self.jobs.len());
        let (tenant, name) = &self.jobs[at];
        let space = self.stage.namespace(tenant);
        let jobs: Api<Job> = Api::namespaced(self.bed.admin.clone(), &space);
        // It may have been withdrawn before.
        let _ = jobs.delete(name, &DeleteParams::background()).await;
    }

    async fn change_quota(&mut self) {
        let tenant = self.one_of(&TENANTS);
        let gpus = self.one_of(&[3, 5, 8]);
        let quotas: Api<deepshare_kube_api::TenantQuota> = Api::all(self.bed.admin.clone());
        let patch = Patch::Merge(json!({ "spec": { "gpus": { "*": gpus } } }));
        let name = self.stage.namespace(tenant);
        quotas.patch(&name, &PatchParams::default(), &patch).await.expect("a quota changes");
    }

    async fn trouble_a_node(&mut self) {
        let at = self.chance.random_range(0..NODES);
        let node = self.stage.node(at);
        match self.chance.random_range(0..3) {
            0 => {
                let shut: bool = self.chance.random();
                self.bed.patch_node(&node, json!({ "spec": { "unschedulable": shut } })).await;
            }
            1 => {
                let bad = self.one_of(&["", "", "0", "1,2"]);
                self.bed.node_behaves(&node, "unhealthy", bad).await;
            }
            _ => {
                // The node counts anew only when the value changes.
                self.rejections = self.rejections % 2 + 1;
                let next = self.rejections.to_string();
                self.bed.node_behaves(&node, "reject-next", &next).await;
            }
        }
    }

    async fn step(&mut self, trouble: Trouble, scheduler: &mut Scheduler) {
        match self.chance.random_range(0..20) {
            0..=12 => self.submit().await,
            13..=15 => self.withdraw().await,
            16..=17 => self.change_quota().await,
            _ => match trouble {
                Trouble::None => {}
                Trouble::Nodes => self.trouble_a_node().await,
                Trouble::Crashes => {
                    scheduler.kill();
                    self.bed.hand_lease_to("").await;
                    scheduler.start_again();
                }
            },
        }
    }
}

async fn minute(bed: &Bed, seed: u64, trouble: Trouble) {
    let spec = NodeSpec { count: NODES, gpus: GPUS, seed, ..NodeSpec::default() };
    let mut stage = Stage::set(bed, &format!("minute-{seed}"), spec).await;
    for tenant in TENANTS {
        stage.tenant(tenant, 5, &json!({ "colocation": { "allowed": true } })).await;
    }
    let mut scheduler = Scheduler::start(bed, SCHEDULER, "");
    scheduler.until_ready().await;
    let chance = Pcg64Mcg::seed_from_u64(seed);
    let mut minute = Minute { bed, stage, chance, jobs: Vec::new(), rejections: 0 };
    let minutes = std::env::var("DEEPSHARE_MINUTES").map_or(Ok(1), |text| text.parse::<u32>());
    let lasts = MINUTE * minutes.expect("DEEPSHARE_MINUTES is a number");
    let begun = Instant::now();
    while begun.elapsed() < lasts {
        minute.step(trouble, &mut scheduler).await;
        let pause = minute.chance.random_range(50..600);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    let evidence = minute.stage.strike(vec![scheduler]).await.expect("all promises are kept");
    let ran = evidence.pods.values().filter(|pod| pod.phase == "Succeeded").count();
    assert!(ran >= 10, "something hangs: only {ran} pods ran to their end");
}

/// Three of them.
pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    let minutes =
        [("quiet", Trouble::None), ("nodes", Trouble::Nodes), ("crashes", Trouble::Crashes)];
    let named = minutes.into_iter().zip(1..).map(|((name, trouble), seed)| {
        beds.test(&format!("{}::{name}", module_path!()), async move |bed| {
            minute(bed, seed, trouble).await;
        })
    });
    named.collect()
}
