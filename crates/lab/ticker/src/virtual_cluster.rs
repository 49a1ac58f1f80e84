//! One virtual cluster and its loop over seconds.

use crate::cluster::{Cluster, Held};
use crate::{OracleJob, OraclePolicy, OracleResult, OracleSettings, Semantics};

/// A job and how far it has come. The other modules of this crate work on these fields directly.
pub(crate) struct Live {
    pub(crate) job: OracleJob,
    /// Seconds of work left, preemption costs included.
    pub(crate) remain_s: u64,
    /// Service received, in GPU-seconds.
    pub(crate) attained_gpu_s: u64,
    /// QSSF's key, once given.
    pub(crate) priority: Option<i64>,
    pub(crate) first_start_s: Option<u64>,
    pub(crate) last_start_s: u64,
    pub(crate) end_s: Option<u64>,
    pub(crate) queue_s: u64,
    pub(crate) last_preempted_s: u64,
    pub(crate) preemptions: u32,
    pub(crate) held: Held,
}

/// The state of one virtual cluster. Jobs are named by their place in `jobs`, which is trace order.
pub(crate) struct VirtualCluster {
    pub(crate) settings: OracleSettings,
    pub(crate) cluster: Cluster,
    pub(crate) jobs: Vec<Live>,
    pub(crate) pending: Vec<usize>,
    pub(crate) running: Vec<usize>,
    /// Jobs that arrived in this second.
    pub(crate) arrived_now: usize,
    pub(crate) now_s: u64,
}

impl VirtualCluster {
    pub(crate) fn new(
        settings: &OracleSettings,
        nodes: u32,
        jobs: Vec<OracleJob>,
        start_s: u64,
    ) -> Self {
        VirtualCluster {
            settings: *settings,
            cluster: Cluster::new(nodes, settings.gpus_per_node),
            jobs: jobs.into_iter().map(Live::new).collect(),
            pending: Vec::new(),
            running: Vec::new(),
            arrived_now: 0,
            now_s: start_s,
        }
    }

    /// Runs second by second until every job has ended.
    pub(crate) fn run(mut self) -> Vec<OracleResult> {
        // Jobs still to come, the last at the front. The sort is stable, so trace order stays.
        let mut to_come: Vec<usize> = (0..self.jobs.len()).collect();
        to_come.sort_by_key(|&job| self.jobs[job].job.submit_s);
        to_come.reverse();

        loop {
            if self.pending.is_empty() && self.running.is_empty() {
                // The one liberty taken: nothing can happen before the next arrival.
                let Some(&next) = to_come.last() else { break };
                self.now_s = self.now_s.max(self.jobs[next].job.submit_s);
            }
            self.tick(&mut to_come);
            self.now_s += 1;
        }
        self.jobs.iter().map(Live::result).collect()
    }

    fn tick(&mut self, to_come: &mut Vec<usize>) {
        match self.settings.policy {
            OraclePolicy::Fifo | OraclePolicy::Sjf | OraclePolicy::Qssf => self.end_at_known_ends(),
            OraclePolicy::Srtf | OraclePolicy::Tiresias => self.count_down(),
        }

        self.arrived_now = 0;
        while let Some(&next) = to_come.last()
            && self.jobs[next].job.submit_s == self.now_s
        {
            to_come.pop();
            self.pending.push(next);
            self.arrived_now += 1;
        }

        match self.settings.policy {
            OraclePolicy::Fifo => self.serve_by_submission(),
            OraclePolicy::Sjf => self.serve_by_duration(),
            OraclePolicy::Qssf => self.serve_by_estimate(),
            OraclePolicy::Srtf => self.select_by_remaining(),
            OraclePolicy::Tiresias => self.select_by_attained(),
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.settings.semantics == Semantics::Plain
    }

    /// Starts a pending job if the cluster has room for it, and says whether it did.
    pub(crate) fn try_start(&mut self, job: usize) -> bool {
        let Some(held) = self.cluster.place(self.jobs[job].job.gpus) else { return false };
        let live = &mut self.jobs[job];
        live.held = held;
        live.last_start_s = self.now_s;
        if live.first_start_s.is_none() {
            live.first_start_s = Some(self.now_s);
            live.queue_s = self.now_s - live.job.submit_s;
        } else {
            live.queue_s += self.now_s - live.last_preempted_s;
        }
        self.pending.retain(|&other| other != job);
        self.running.push(job);
        true
    }

    /// Frees a running job's GPUs and takes it off the running list.
    pub(crate) fn stop(&mut self, job: usize) {
        let held = std::mem::take(&mut self.jobs[job].held);
        self.cluster.release(&held);
        self.running.retain(|&other| other != job);
    }

    pub(crate) fn end(&mut self, job: usize) {
        self.stop(job);
        self.jobs[job].end_s = Some(self.now_s);
    }
}

impl Live {
    fn new(job: OracleJob) -> Self {
        Live {
            remain_s: job.duration_s,
            attained_gpu_s: 0,
            priority: None,
            first_start_s: None,
            last_start_s: 0,
            end_s: None,
            queue_s: 0,
            last_preempted_s: 0,
            preemptions: 0,
            held: Held::new(),
            job,
        }
    }

    fn result(&self) -> OracleResult {
        OracleResult {
            start_s: self.first_start_s.expect("the loop runs until every job has started"),
            end_s: self.end_s.expect("the loop runs until every job has ended"),
            queue_s: self.queue_s,
            preemptions: self.preemptions,
        }
    }
}
