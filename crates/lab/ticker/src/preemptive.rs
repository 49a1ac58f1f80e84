//! SRTF and Tiresias: who should run is chosen afresh, by GPU count alone, and running jobs that
//! are not chosen are preempted.

use crate::virtual_cluster::VirtualCluster;

impl VirtualCluster {
    /// Counts one second of work for each running job, and ends those that have none left.
    ///
    /// The artifact looks before it counts, which costs every job a second more on its GPUs.
    pub(crate) fn count_down(&mut self) {
        for job in self.running.clone() {
            let plain = self.is_plain();
            let live = &mut self.jobs[job];
            if !plain && live.remain_s == 0 {
                self.end(job);
                continue;
            }
            live.remain_s -= 1;
            live.attained_gpu_s += u64::from(live.job.gpus);
            if plain && live.remain_s == 0 {
                self.end(job);
            }
        }
    }

    pub(crate) fn select_by_remaining(&mut self) {
        let mut list = self.list_for_selection(Pending::First);
        let jobs = &self.jobs;
        list.sort_by_key(|&job| jobs[job].remain_s);
        self.preempt_and_start(&list);
    }

    pub(crate) fn select_by_attained(&mut self) {
        if !self.is_plain() && !self.now_s.is_multiple_of(60) {
            return;
        }
        let mut list = self.list_for_selection(Pending::Last);
        let (jobs, plain, threshold) = (&self.jobs, self.is_plain(), self.settings.demotion_gpu_s);
        list.sort_by_key(|&job| {
            let attained = jobs[job].attained_gpu_s;
            let demoted = if plain { attained >= threshold } else { attained > threshold };
            (demoted, jobs[job].job.submit_s)
        });
        self.preempt_and_start(&list);
    }

    /// All jobs in the order that decides between equal keys: the sorts above are stable.
    fn list_for_selection(&self, artifact: Pending) -> Vec<usize> {
        let (running, pending) = (self.running.clone(), self.pending.clone());
        match artifact {
            Pending::First if !self.is_plain() => [pending, running].concat(),
            _ => [running, pending].concat(),
        }
    }

    /// Walks the list, giving GPUs out by number until none are left; then preempts, then starts.
    ///
    /// The count is blind to the shapes of nodes: a chosen job may not fit after all, and waits
    /// on although others were preempted for it.
    fn preempt_and_start(&mut self, list: &[usize]) {
        let mut quota = self.cluster.gpus();
        let (mut to_preempt, mut to_start) = (Vec::new(), Vec::new());
        for &job in list {
            let runs = self.running.contains(&job);
            let gpus = self.jobs[job].job.gpus;
            if gpus <= quota {
                quota -= gpus;
                if !runs {
                    to_start.push(job);
                }
            } else if runs {
                to_preempt.push(job);
            }
        }
        for job in to_preempt {
            self.preempt(job);
        }
        for job in to_start {
            self.try_start(job);
        }
    }

    fn preempt(&mut self, job: usize) {
        self.stop(job);
        self.pending.push(job);
        let settings = &self.settings;
        let live = &mut self.jobs[job];
        live.preemptions += 1;
        live.last_preempted_s = self.now_s;
        live.remain_s += if live.job.gpus <= settings.gpus_per_node {
            settings.preemption_cost_s
        } else {
            settings.wide_preemption_cost_s
        };
    }
}

/// Where the artifact puts pending jobs relative to running ones before it sorts.
enum Pending {
    First,
    Last,
}
