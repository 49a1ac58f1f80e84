//! FIFO, SJF and QSSF: a job that has started runs to its end, and nothing passes the head.

use crate::virtual_cluster::VirtualCluster;

impl VirtualCluster {
    pub(crate) fn end_at_known_ends(&mut self) {
        for job in self.running.clone() {
            let live = &self.jobs[job];
            if self.now_s == live.last_start_s + live.job.duration_s {
                self.end(job);
            }
        }
    }

    pub(crate) fn serve_by_submission(&mut self) {
        let jobs = &self.jobs;
        self.pending.sort_by_key(|&job| jobs[job].job.submit_s);
        self.start_until_blocked();
    }

    pub(crate) fn serve_by_duration(&mut self) {
        let jobs = &self.jobs;
        self.pending.sort_by_key(|&job| jobs[job].job.duration_s);
        self.start_until_blocked();
    }

    /// In the artifact a job gets its key only while an older one waits, so a batch that finds
    /// the queue empty is served by GPU count in its first second.
    pub(crate) fn serve_by_estimate(&mut self) {
        if self.is_plain() {
            self.give_priorities();
            let jobs = &self.jobs;
            self.pending.sort_by_key(|&job| (jobs[job].priority, jobs[job].job.gpus, job));
        } else {
            let jobs = &self.jobs;
            self.pending.sort_by_key(|&job| jobs[job].job.gpus);
            if self.pending.len() > self.arrived_now {
                self.give_priorities();
                let jobs = &self.jobs;
                self.pending.sort_by_key(|&job| jobs[job].priority);
            }
        }
        self.start_until_blocked();
    }

    fn give_priorities(&mut self) {
        for &job in &self.pending {
            let live = &mut self.jobs[job];
            live.priority = Some(live.job.estimate_s * i64::from(live.job.gpus));
        }
    }

    fn start_until_blocked(&mut self) {
        for job in self.pending.clone() {
            if !self.try_start(job) {
                break;
            }
        }
    }
}
