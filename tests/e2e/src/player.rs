//! A script of the lab, on a real cluster: a second of the script is a second.

use crate::bed::Bed;
use crate::decisions::{decided, expected, matches};
use crate::evidence::Evidence;
use crate::objects::{JobDraft, PodDraft, quota_with};
use crate::scheduler::Scheduler;
use crate::script::{Line, lines};
use deepshare_testbed::{NodeSimulator, NodeSpec};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// After the end of a script, for what was decided last to happen.
const AFTERMATH: Duration = Duration::from_secs(1);

/// What became of a script.
pub struct Played {
    /// What the API server's objects showed all along.
    pub evidence: Evidence,
    /// The scheduler, stopped; its log is there as long as this is.
    pub scheduler: Scheduler,
}

/// Plays a script and holds the decisions against those of the lab.
///
/// # Errors
/// Where they differ, or the script says something that means nothing on a cluster.
///
/// # Panics
/// If the cluster does not do as asked.
pub async fn play(bed: &Bed, program: &str, path: &Path) -> Result<Played, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path:?}: {error}"))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().replace('_', "-");
    let lines = lines(&text);
    let mut player = Player::new(bed, &stem);
    player.prepare(&lines).await;
    let evidence = Evidence::watch(&bed.admin).await;
    let settings = player.settings(&lines);
    let mut scheduler = Scheduler::start(bed, program, &settings);
    scheduler.until_ready().await;
    let begun = Instant::now();
    for line in &lines {
        tokio::time::sleep(line.at.saturating_sub(begun.elapsed())).await;
        player.obey(line).await?;
    }
    tokio::time::sleep(AFTERMATH).await;
    scheduler.stop();
    let evidence = evidence.end().await;
    player.clear().await;
    if std::env::var_os("DEEPSHARE_TRACE").is_some() {
        crate::decisions::trace(&scheduler.event_log());
    }
    let decided = decided(&scheduler.event_log()).map_err(|error| error.to_string())?;
    matches(&expected(&text), &decided).map_err(|what| format!("{}: {what}", path.display()))?;
    Ok(Played { evidence, scheduler })
}

struct Player<'a> {
    bed: &'a Bed,
    stem: String,
    nodes: Vec<String>,
    simulators: Vec<NodeSimulator>,
    spaces: BTreeSet<String>,
    /// The tenant of each job.
    jobs: BTreeMap<String, String>,
    slow_stops: BTreeMap<String, String>,
    /// What the scheduler reads.
    files: TempDir,
    /// Jobs of the script that are pods of another scheduler.
    strangers: BTreeSet<String>,
}

impl<'a> Player<'a> {
    fn new(bed: &'a Bed, stem: &str) -> Player<'a> {
        Player {
            bed,
            stem: stem.to_owned(),
            nodes: Vec::new(),
            simulators: Vec::new(),
            spaces: BTreeSet::new(),
            jobs: BTreeMap::new(),
            slow_stops: BTreeMap::new(),
            files: TempDir::new().expect("a folder for the scheduler's files"),
            strangers: BTreeSet::new(),
        }
    }

    /// What has to be there before the first second, and what each job will do in its life.
    async fn prepare(&mut self, lines: &[Line]) {
        for line in lines {
            match line.verb.as_str() {
                "cluster" if line.at.is_zero() => self.cluster(line).await,
                "tenant" if line.at.is_zero() => self.tenant(line).await,
                "submit" => _ = self.space(line.value("tenant", "t")).await,
                "slow-stop" => {
                    let seconds = crate::script::time(line.word(1)).unwrap_or_default();
                    let seconds = seconds.as_secs_f64().to_string();
                    self.slow_stops.insert(line.word(0).to_owned(), seconds);
                }
                "found" => _ = self.strangers.insert(line.word(0).to_owned()),
                _ => {}
            }
        }
    }

    fn settings(&self, lines: &[Line]) -> String {
        let predictions: Vec<&Line> = lines.iter().filter(|line| line.verb == "predict").collect();
        if predictions.is_empty() {
            return String::new();
        }
        let mut pairs: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
        for line in predictions {
            let (one, other) = (line.word(0), line.word(1));
            let kept = |at: usize| line.word(at).parse::<f64>().unwrap_or(1.0);
            pairs.entry(one).or_default().insert(other, kept(2));
            pairs.entry(other).or_default().insert(one, kept(3));
        }
        let file = self.files.path().join("retentions.json");
        let text = json!({ "version": 1, "keeps": pairs }).to_string();
        std::fs::write(&file, text).expect("the retention file");
        format!("[retentions]\nfile = {file:?}\n")
    }

    fn namespace(&self, tenant: &str) -> String {
        format!("{}-{tenant}", self.stem)
    }

    async fn space(&mut self, tenant: &str) -> String {
        let namespace = self.namespace(tenant);
        if self.spaces.insert(namespace.clone()) {
            self.bed.namespace(&namespace).await;
        }
        namespace
    }

    async fn cluster(&mut self, line: &Line) {
        let number = |at: usize| line.word(at).parse::<usize>().unwrap_or(0);
        let (count, gpus) = (number(0), number(3));
        let memory = line.values.get("memory").and_then(|mib| mib.parse::<u32>().ok());
        let prefix = format!("{}-{}", self.stem, self.simulators.len());
        let defaults = NodeSpec::default();
        let spec = NodeSpec {
            prefix,
            count,
            gpus,
            gpu_type: line.value("type", "A100").to_owned(),
            cpus: line.value("cpus", "128").parse().unwrap_or(128),
            memory_gib: memory.map_or(1_024, |mib| mib / 1_024),
            gpu_memory_mib: line.value("gpu-memory", "81920").parse().unwrap_or(81_920),
            sample: Duration::from_millis(500),
            heartbeat: Duration::from_secs(1),
            ..defaults
        };
        self.nodes.extend((0..count).map(|at| spec.name(at)));
        self.simulators.push(self.bed.nodes(spec).await);
    }

    async fn tenant(&mut self, line: &Line) {
        let name = line.word(0).to_owned();
        let namespace = self.space(&name).await;
        let quota = line.value("quota", "0");
        let gpus: serde_json::Map<String, Value> = match quota.contains(':') {
            false => {
                [("*".to_owned(), json!(quota.parse::<u32>().unwrap_or(0)))].into_iter().collect()
            }
            true => quota
                .split(',')
                .filter_map(|part| part.split_once(':'))
                .map(|(of, gpus)| (of.to_owned(), json!(gpus.parse::<u32>().unwrap_or(0))))
                .collect(),
        };
        let domain = json!({ "allowed": true, "guaranteed": true, "trustDomain": "all" });
        let mut more = json!({ "colocation": domain });
        if let Some(multiple) = line.values.get("best-effort") {
            more["bestEffortMultiple"] = json!(multiple.parse::<f64>().unwrap_or(2.0));
        }
        if let Some(lending) = line.values.get("lending").and_then(|n| n.parse::<u32>().ok()) {
            more["lendingLimit"] = json!(lending);
        }
        if let Some(least) = line.values.get("min-run").and_then(|t| crate::script::time(t)) {
            more["minRunSeconds"] = json!(least.as_secs());
        }
        if let Some(parent) = line.values.get("parent") {
            more["parent"] = json!(self.namespace(parent));
        }
        let quota = quota_with(&self.namespace(&name), &namespace, &Value::Object(gpus), &more);
        self.bed.create(quota).await;
    }

    async fn obey(&mut self, line: &Line) -> Result<(), String> {
        match line.verb.as_str() {
            "cluster" if !line.at.is_zero() => self.cluster(line).await,
            "tenant" if !line.at.is_zero() => self.tenant(line).await,
            "policy" if line.word(0) == "deepshare" && line.values.is_empty() => {}
            "cluster" | "tenant" | "predict" | "truth" | "slow-stop" | "run" | "show"
            | "explain" | "refuse-eviction" => {}
            "submit" => self.submit(line).await,
            "found" => self.found(line).await,
            "finish" => {
                let pods = self.bed.pods(&self.namespace(&self.jobs[line.word(0)]));
                let now = DeleteParams::default().grace_period(0);
                pods.delete(line.word(0), &now).await.expect("a pod goes");
            }
            "cancel" => {
                let jobs = self.jobs_of(line.word(0));
                jobs.delete(line.word(0), &DeleteParams::background()).await.expect("a Job goes");
            }
            "quota" => {
                let quotas: Api<deepshare_kube_api::TenantQuota> = Api::all(self.bed.admin.clone());
                let gpus: u32 = line.word(1).parse().unwrap_or(0);
                let patch = Patch::Merge(json!({ "spec": { "gpus": { "*": gpus } } }));
                let name = self.namespace(line.word(0));
                quotas
                    .patch(&name, &PatchParams::default(), &patch)
                    .await
                    .expect("a quota changes");
            }
            "lose" => self.bed.burn_node(&self.node(line.word(0))).await,
            "cordon" | "uncordon" => {
                let shut = line.verb == "cordon";
                let node = self.node(line.word(0));
                self.bed.patch_node(&node, json!({ "spec": { "unschedulable": shut } })).await;
            }
            "device" => {
                let (node, device) = line.word(0).split_once('.').unwrap_or((line.word(0), "0"));
                let bad = if line.word(1) == "bad" { device } else { "" };
                self.bed.node_behaves(&self.node(node), "unhealthy", bad).await;
            }
            "shield" => self.shield(line.word(0)).await,
            "sample" => {
                for (job, kept) in [(0, 2), (1, 3)] {
                    self.pods_behave(line.word(job), "keeps", line.word(kept)).await;
                }
            }
            other => {
                return Err(format!("line {}: {other} means nothing on a cluster", line.number));
            }
        }
        Ok(())
    }

    async fn submit(&mut self, line: &Line) {
        let name = line.word(0).to_owned();
        let tenant = line.value("tenant", "t").to_owned();
        let namespace = self.space(&tenant).await;
        let members = line.value("members", "");
        let (pods, gpus) = match members.split_once('x') {
            Some((pods, gpus)) => (pods.parse().unwrap_or(1), gpus.parse().unwrap_or(1)),
            None => (1, line.value("gpus", "1").parse::<u32>().unwrap_or(1)),
        };
        let seconds = |key: &str| line.values.get(key).and_then(|text| crate::script::time(text));
        let mut pod = PodDraft::new(&name).deepshare("class", line.value("class", "guaranteed"));
        pod = match line.values.get("profile") {
            Some(profile) => pod.slot().deepshare("profile", profile),
            None => pod.gpus(gpus),
        };
        if let Some(run) = seconds("run") {
            pod = pod.behaves("run-seconds", &run.as_secs_f64().to_string());
        }
        if let Some(estimate) = seconds("estimate").or(seconds("run")) {
            pod = pod.deepshare("run-time", &estimate.as_secs_f64().to_string());
        }
        if let Some(memory) = line.values.get("gpu-memory") {
            pod = pod.deepshare("gpu-memory", &format!("{memory}Mi"));
        }
        if let Some(cpus) = line.values.get("cpus").and_then(|n| n.parse::<f64>().ok()) {
            pod = pod.request("cpu", &format!("{}m", (cpus * 1_000.0) as u64 * u64::from(gpus)));
        }
        if let Some(memory) = line.values.get("memory").and_then(|n| n.parse::<u64>().ok()) {
            pod = pod.request("memory", &format!("{}Mi", memory * u64::from(gpus)));
        }
        if let Some(enough) = line.values.get("enough-cpus").and_then(|n| n.parse::<f64>().ok()) {
            let milli = (enough * 1_000.0) as u64 * u64::from(gpus);
            let memory = line.value("memory", "0").parse::<u64>().unwrap_or(0) * u64::from(gpus);
            pod = pod
                .deepshare("recommended-cpu", &format!("{milli}m"))
                .deepshare("recommended-memory", &format!("{memory}Mi"));
        }
        if let Some(slow) = self.slow_stops.get(&name) {
            pod = pod.behaves("stop-seconds", slow);
        }
        if pods > 1 {
            pod = pod.deepshare("gang-size", &pods.to_string());
        }
        self.jobs.insert(name.clone(), tenant);
        if self.strangers.contains(&name) {
            let mut pod = pod.spec("schedulerName", json!("another")).pod();
            pod["metadata"]["namespace"] = json!(namespace);
            return self.bed.create(pod).await;
        }
        self.bed.create(JobDraft { pod, pods }.job(&namespace)).await;
    }

    /// Another scheduler binds its pod, and leaves the choice of devices to the node.
    async fn found(&self, line: &Line) {
        let (name, on) = (line.word(0), line.words.last().map_or("", String::as_str));
        let node = self.node(on.split('.').next().unwrap_or(on));
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": name },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        let pods = self.bed.pods(&self.namespace(&self.jobs[name]));
        pods.create_subresource::<Value, Value>("binding", name, &PostParams::default(), &binding)
            .await
            .expect("a pod is bound");
    }

    fn jobs_of(&self, job: &str) -> Api<Job> {
        let tenant = self.jobs.get(job).map_or("t", String::as_str);
        Api::namespaced(self.bed.admin.clone(), &self.namespace(tenant))
    }

    /// The node that the script calls `n0`, `n1`, ….
    fn node(&self, name: &str) -> String {
        let at: usize = name.trim_start_matches('n').parse().unwrap_or(0);
        self.nodes[at].clone()
    }

    /// No pod of this job may be disrupted from now on.
    async fn shield(&self, job: &str) {
        let namespace = self.namespace(&self.jobs[job]);
        let selector = json!({ "matchLabels": { "job-name": job } });
        self.bed
            .create(json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": { "name": job, "namespace": namespace },
                "spec": { "maxUnavailable": 0, "selector": selector },
            }))
            .await;
    }

    async fn pods_behave(&self, job: &str, key: &str, value: &str) {
        let pods = self.bed.pods(&self.namespace(&self.jobs[job]));
        let theirs = kube::api::ListParams::default().labels(&format!("job-name={job}"));
        let key = format!("testbed.deepshare.io/{key}");
        for pod in pods.list(&theirs).await.expect("pods are listed") {
            let patch = Patch::Merge(json!({ "metadata": { "annotations": { &key: value } } }));
            let name = pod.metadata.name.unwrap_or_default();
            let _ = pods.patch(&name, &PatchParams::default(), &patch).await;
        }
    }

    async fn clear(self) {
        let spaces: Vec<String> = self.spaces.into_iter().collect();
        self.bed.clear(&spaces).await;
        for simulator in self.simulators {
            simulator.remove().await.expect("the nodes go");
        }
    }
}
