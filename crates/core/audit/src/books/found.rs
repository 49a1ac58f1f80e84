//! Jobs that the world turned out to run already.

use super::attempt::Attempt;
use super::pairs::{Joining, Pair};
use super::{Books, job::Job};
use crate::violation::Duty;
use deepshare_engine::{AttemptState, Placement};
use deepshare_model::{AttemptId, Class, Devices, JobId, NodeId, Resources, Retention, Time};
use std::collections::BTreeSet;

/// A job as it was found.
pub(super) struct Finding<'a> {
    pub job: JobId,
    pub charged: Class,
    pub placement: &'a Placement,
    pub per_gpu: Resources,
    pub running_since: Option<Time>,
}

impl Books {
    /// What happened to a job before: counts until it has an attempt.
    pub(super) fn carry(&mut self, id: JobId, preempted_at: &[Time]) {
        let Some(job) = self.jobs.get_mut(id.index()).filter(|job| job.last.is_none()) else {
            return;
        };
        job.preempted_at = preempted_at.to_vec();
    }

    /// Books a found job on its devices, unless it is active or over or the devices are unknown.
    pub(super) fn find(&mut self, found: &Finding<'_>) {
        let idle = |job: &Job| job.live.is_none() && job.ended.is_none();
        if !self.jobs.get(found.job.index()).is_some_and(idle) || !self.exists(found.placement) {
            return;
        }
        let id = AttemptId::from_index(self.attempts.len());
        self.evict_promises(id, found.placement);
        let (joins, others) = self.company_of_found(found.job, found.placement);
        self.step.unwatched = joins.iter().map(|joining| (id, joining.host)).collect();
        for host in others {
            self.pairs.insert((id, host), Pair::of_strangers());
            self.step.attempts.push(host);
        }
        let since = found.running_since.map(|since| since.min(self.now));
        let gpu_type = self.nodes[found.placement[0].node.index()].spec.gpu_type;
        let gpus = found.placement.iter().map(|slice| slice.devices.count()).sum();
        for slice in found.placement {
            self.change_node(slice.node, |node| node.hold(slice.devices, id));
            self.step.host_due.push(slice.node);
        }
        let asked = self.jobs[found.job.index()].spec.demand.per_gpu;
        let shrunk = found.per_gpu.fits(asked) && found.per_gpu != asked;
        self.attempts.push(Attempt {
            job: found.job,
            epoch: self.epoch,
            charged: found.charged,
            placement: found.placement.clone(),
            gpu_type,
            gpus,
            per_gpu: found.per_gpu,
            resizes_from: None,
            shrunk_at: shrunk.then_some(self.now),
            rigid: false,
            reached: match since {
                Some(_) => AttemptState::Running,
                None => AttemptState::Starting,
            },
            ending: None,
            broken: false,
            started_at: Some(self.now),
            has_run: since.is_some(),
            ran_since: since,
            spared_until: Time::ZERO,
            joins,
            steps: 1,
        });
        let job = &mut self.jobs[found.job.index()];
        (job.live, job.last) = (Some(id), Some(id));
        (job.refused, job.backing_off) = (false, None);
        if since.is_some() {
            job.failed_starts = 0;
        }
        let tenant = job.spec.tenant;
        self.tenants.charge((tenant, found.charged), gpu_type, gpus);
        self.step.tenants.push(tenant);
        self.step.jobs.push(found.job);
        self.step.attempts.push(id);
    }

    fn exists(&self, placement: &Placement) -> bool {
        let nodes: BTreeSet<NodeId> = placement.iter().map(|slice| slice.node).collect();
        let known = placement.iter().all(|slice| {
            let all = self.nodes.get(slice.node.index()).map_or(Devices::NONE, |node| node.all());
            !slice.devices.is_empty() && slice.devices.minus(all).is_empty()
        });
        !placement.is_empty() && nodes.len() == placement.len() && known
    }

    /// Whoever was promised one of the devices has to give that up.
    fn evict_promises(&mut self, by: AttemptId, placement: &Placement) {
        let taken = |attempt: &Attempt| {
            attempt.placement.iter().any(|theirs| {
                let mut ours = placement.iter().filter(|ours| ours.node == theirs.node);
                ours.any(|ours| !ours.devices.intersect(theirs.devices).is_empty())
            })
        };
        let promised = self.live_attempts().filter(|(_, a)| a.is_reserved() && taken(a));
        let promised: Vec<AttemptId> = promised.map(|(id, _)| id).collect();
        let duties = promised.into_iter().map(|id| (id, Duty::DevicesTaken(by)));
        self.step.duties.extend(duties);
    }

    /// Who is on the devices: those with whom it becomes a pair, two alone on all that they have in
    /// common, and the others.
    fn company_of_found(
        &self,
        job: JobId,
        placement: &Placement,
    ) -> (Vec<Joining>, Vec<AttemptId>) {
        let (mut there, mut crowded) = (BTreeSet::new(), BTreeSet::new());
        for slice in placement {
            for device in slice.devices.iter() {
                let holders = &self.nodes[slice.node.index()].holders[device as usize];
                there.extend(holders.iter().copied());
                if holders.len() > 1 {
                    crowded.extend(holders.iter().copied());
                }
            }
        }
        let pairs = |host: &AttemptId| {
            let stays = self.attempts[host.index()].is_evictable();
            self.shares.is_some() && stays && !crowded.contains(host)
        };
        let (pairs, others): (Vec<AttemptId>, Vec<AttemptId>) =
            there.iter().partition(|h| pairs(h));
        let joining = |host: AttemptId| Joining {
            host,
            keeps: self.predicted_of_found([job, self.attempts[host.index()].job]),
            tolerance: [Retention::LEAST, Retention::WHOLE],
            found: true,
        };
        (pairs.into_iter().map(joining).collect(), others)
    }

    fn predicted_of_found(&self, jobs: [JobId; 2]) -> [Retention; 2] {
        let [Some(own), Some(other)] = jobs.map(|job| self.profile(job)) else {
            return [Retention::WHOLE; 2];
        };
        let keeps = |own, other| self.retentions.get(own, other).unwrap_or(Retention::WHOLE);
        [keeps(own, other), keeps(other, own)]
    }
}
