//! How the world changes the books. What is doubled, late or stale changes nothing.

use super::attempt::Ending;
use super::found::Finding;
use super::job::Job;
use super::node::Node;
use super::{After, Books, Step};
use crate::violation::{Duty, Violation};
use deepshare_engine::{AttemptState, BindFailure, Event, EvictReason, NodeCondition};
use deepshare_model::{
    AttemptId, Devices, JobId, JobSpec, NodeId, NodeSpec, Outcome, PoolId, Resources, SiteId,
    TenantId, TenantSpec, Time,
};

fn changes_what_can_run(event: &Event) -> bool {
    matches!(
        event,
        Event::NodeAdded { .. }
            | Event::NodeCordoned { .. }
            | Event::NodeLost { .. }
            | Event::NodeRecovered { .. }
            | Event::NodeMoved { .. }
            | Event::DeviceHealth { .. }
            | Event::NodeChanged { .. }
            | Event::Admitted { .. }
            | Event::TenantSet { .. }
    )
}

impl Books {
    /// Lets time pass, and begins a step.
    pub fn begin_step(&mut self, now: Time) -> Result<(), Violation> {
        let Some(passed) = now.since(self.now) else {
            return Err(Violation::TimeRanBackwards { now, last: self.now });
        };
        self.gpu_times.pass(passed);
        if let Some(assurance) = &mut self.assurance {
            assurance.pass(now);
        }
        self.now = now;
        self.step = Step::default();
        Ok(())
    }

    pub fn apply(&mut self, event: &Event) -> Result<(), Violation> {
        match event {
            Event::Submitted { job, spec } => self.submit(*job, spec)?,
            Event::Estimated { job, .. } => {
                self.job(*job)?;
            }
            Event::Checkpoint { .. } => {}
            Event::Carried { job, preempted_at, .. } => self.carry(*job, preempted_at),
            Event::Found { job, charged, placement, per_gpu, running_since } => {
                let (job, charged, per_gpu) = (*job, *charged, *per_gpu);
                let running_since = *running_since;
                self.find(&Finding { job, charged, placement, per_gpu, running_since });
            }
            Event::Shielded { job, shielded } => self.job_mut(*job)?.shielded = *shielded,
            Event::Broken { attempt } => self.break_up(*attempt),
            Event::NodeChanged { node, gpus, capacity } => {
                self.resize_node(*node, *gpus, *capacity);
            }
            Event::Admitted { site, nodes, members } => self.admit(*site, nodes, *members),
            Event::AssuranceRestored { tenant, gpu_type, smoothed } => {
                let known = self.tenants.get(*tenant).is_some();
                if let Some(assurance) = self.assurance.as_mut().filter(|_| known) {
                    assurance.restore((*tenant, *gpu_type), smoothed.as_f64());
                }
            }
            Event::Resized { attempt } => self.resize(*attempt, true),
            Event::ResizeRefused { attempt } => self.resize(*attempt, false),
            Event::Retentions { table } => self.learn(table),
            Event::PairSampled { attempts, retentions, taken } => {
                self.sample(*attempts, *retentions, *taken);
            }
            Event::Cancelled { job } => self.cancel(*job)?,
            Event::Held { job } => {
                let job = self.job_mut(*job)?;
                job.held = true;
                job.backing_off = None;
            }
            Event::Unheld { job } => self.job_mut(*job)?.held = false,
            Event::Finished { attempt, outcome } => self.finish(*attempt, *outcome),
            Event::Bound { attempt } => self.advance(*attempt, AttemptState::Starting),
            Event::Running { attempt } => self.advance(*attempt, AttemptState::Running),
            Event::BindFailed { attempt, failure } => self.fail_start(
                *attempt,
                match failure {
                    BindFailure::Permanent => After::End(Outcome::Failed),
                    BindFailure::Transient | BindFailure::Conflict => After::BackOff,
                },
            ),
            Event::Rejected { attempt } => self.fail_start(*attempt, After::BackOff),
            Event::StartOverdue { attempt } => self.overdue(*attempt),
            Event::EvictionRefused { attempt } => self.refuse_eviction(*attempt),
            Event::Terminating { .. } => {}
            Event::Wake => self.step.woken = true,
            Event::DevicesReleased { attempt } => self.let_go(*attempt),
            Event::NodeAdded { node, spec } => self.add_node(*node, spec)?,
            Event::NodeCordoned { node, cordoned } => self.cordon(*node, *cordoned)?,
            Event::NodeLost { node } => self.lose_node(*node)?,
            Event::NodeRecovered { node } => {
                if self.node(*node)?.condition == NodeCondition::Lost {
                    self.change_node(*node, |node| node.condition = NodeCondition::Ready);
                }
            }
            Event::NodeMoved { node, pool } => self.move_node(*node, *pool)?,
            Event::DeviceHealth { node, device, healthy } => {
                self.set_health(*node, *device, *healthy)?;
            }
            Event::TenantSet { tenant, spec } => self.set_tenant(*tenant, spec)?,
            Event::Leadership { epoch } => self.epoch = self.epoch.max(*epoch),
        }
        if self.assurance.is_some() && changes_what_can_run(event) {
            self.look_again_at_refused();
        }
        Ok(())
    }

    /// An attempt is asked to make do with less, or given more.
    pub fn resize_to(&mut self, id: AttemptId, to: Resources) {
        let attempt = &mut self.attempts[id.index()];
        attempt.resizes_from = Some(std::mem::replace(&mut attempt.per_gpu, to));
        self.step.attempts.push(id);
    }

    /// A resize is visible, or cannot be done.
    fn resize(&mut self, id: AttemptId, done: bool) {
        let live = self.attempts.get_mut(id.index()).filter(|attempt| attempt.is_live());
        let Some(attempt) = live else { return };
        let shrank = attempt.is_shrinking();
        let Some(before) = attempt.resizes_from.take() else { return };
        if shrank && done {
            attempt.shrunk_at = Some(self.now);
        }
        if !done {
            (attempt.per_gpu, attempt.rigid) = (before, true);
            let nodes = attempt.placement.iter().map(|slice| slice.node);
            self.step.host_due.extend(nodes);
        }
        self.step.attempts.push(id);
    }

    fn let_go(&mut self, id: AttemptId) {
        let Some(attempt) = self.attempts.get(id.index()).filter(|a| a.holds()) else { return };
        let preempted =
            matches!(attempt.ending, Some(Ending::Evicted(reason)) if reason.is_chosen());
        let job = attempt.job;
        let over = self.jobs[job.index()].ended.is_some();
        let broke = attempt.ending == Some(Ending::Evicted(EvictReason::Broken));
        let failed = broke && !attempt.has_run && !over;
        self.release(id, if failed { After::BackOff } else { After::Requeue });
        if preempted && !over {
            self.note_preemption(job);
        }
    }

    /// Jobs refused as too large wait from now on if they could run by now.
    fn look_again_at_refused(&mut self) {
        for index in 0..self.jobs.len() {
            let job = &self.jobs[index];
            if job.refused && job.ended.is_none() && self.could_run(job) {
                self.jobs[index].refused = false;
            }
        }
    }

    fn submit(&mut self, job: JobId, spec: &JobSpec) -> Result<(), Violation> {
        let expected = JobId::from_index(self.jobs.len());
        if job < expected {
            return Ok(());
        }
        if job > expected {
            return Err(Violation::JobIdOutOfOrder { job, expected });
        }
        if spec.demand.gpus == 0 {
            return Err(Violation::NoGpus { job });
        }
        let tenant = spec.tenant;
        let pool = self.tenants.get(tenant).ok_or(Violation::UnknownTenant { tenant })?.pool;
        self.jobs.push(Job::new(spec.clone(), pool));
        self.step.jobs.push(job);
        Ok(())
    }

    fn cancel(&mut self, id: JobId) -> Result<(), Violation> {
        let job = self.job_mut(id)?;
        if job.ended.is_some() {
            return Ok(());
        }
        job.cancelled = true;
        match job.live {
            None => job.end(Outcome::Cancelled),
            Some(attempt) => self.step.duties.push((attempt, Duty::Cancelled)),
        }
        Ok(())
    }

    fn finish(&mut self, id: AttemptId, outcome: Outcome) {
        let Some(attempt) = self.attempts.get_mut(id.index()) else { return };
        let job = &mut self.jobs[attempt.job.index()];
        match attempt.reached {
            AttemptState::Reserved => return,
            // Its release overtook the news. The work is done, unless it was begun again.
            AttemptState::Released if job.last != Some(id) || job.live.is_some() => return,
            AttemptState::Released => {}
            _ => attempt.ending = Some(Ending::Finished),
        }
        job.end(outcome);
        self.step.attempts.push(id);
        self.step.jobs.push(attempt.job);
    }

    fn advance(&mut self, id: AttemptId, to: AttemptState) {
        let Some(attempt) = self.attempts.get_mut(id.index()).filter(|a| a.holds()) else { return };
        attempt.reached = attempt.reached.max(to);
        self.step.attempts.push(id);
        if to == AttemptState::Running && !attempt.has_run {
            attempt.has_run = true;
            attempt.ran_since = Some(self.now);
            self.jobs[attempt.job.index()].failed_starts = 0;
        }
    }

    fn fail_start(&mut self, id: AttemptId, after: After) {
        if self.attempts.get(id.index()).is_some_and(|a| a.holds() && !a.has_run) {
            self.release(id, after);
        }
    }

    fn overdue(&mut self, id: AttemptId) {
        let Some(attempt) = self.attempts.get(id.index()) else { return };
        if matches!(attempt.state(), AttemptState::Binding | AttemptState::Starting) {
            self.step.overdue.push(id);
            self.step.duties.push((id, Duty::StartOverdue));
        }
    }

    fn refuse_eviction(&mut self, id: AttemptId) {
        let Some(attempt) = self.attempts.get_mut(id.index()).filter(|a| a.is_live()) else {
            return;
        };
        // Other evictions are deletions, which nobody refuses.
        let refusable =
            matches!(attempt.ending, Some(Ending::Evicted(reason)) if reason.is_chosen());
        if !refusable {
            return;
        }
        attempt.ending = None;
        attempt.spared_until = self.now + self.settings.backoff_max;
        if attempt.broken {
            self.step.duties.push((id, Duty::Broken));
        }
        let attempt = &self.attempts[id.index()];
        let waiters = self.claimants_over(id);
        self.step.host_due.extend(attempt.placement.iter().map(|slice| slice.node));
        let refused = |waiter| (waiter, Duty::EvictionRefused(id));
        self.step.duties.extend(waiters.into_iter().map(refused));
        self.step.attempts.push(id);
    }

    /// A member of an attempt is gone: it ends.
    fn break_up(&mut self, id: AttemptId) {
        let Some(attempt) = self.attempts.get_mut(id.index()).filter(|a| a.holds()) else { return };
        attempt.broken = true;
        self.step.duties.push((id, Duty::Broken));
    }

    fn resize_node(&mut self, id: NodeId, gpus: u32, capacity: Resources) {
        let Some(before) = self.nodes.get(id.index()).map(|node| node.spec.gpus) else { return };
        let gpus = gpus.clamp(before, Devices::MAX_PER_NODE);
        self.change_node(id, |node| node.resize(gpus, capacity));
        self.gpu_times.install(gpus - before);
        self.step.host_due.push(id);
    }

    fn admit(&mut self, site: SiteId, nodes: &[NodeId], members: u32) {
        for &node in nodes.iter().filter(|node| node.index() < self.nodes.len()) {
            self.sites.say(site, node, members);
            self.step.sites_due.push((site, node));
        }
    }

    fn add_node(&mut self, node: NodeId, spec: &NodeSpec) -> Result<(), Violation> {
        let expected = NodeId::from_index(self.nodes.len());
        if node < expected {
            return Ok(());
        }
        if node > expected {
            return Err(Violation::NodeIdOutOfOrder { node, expected });
        }
        if spec.gpus > Devices::MAX_PER_NODE {
            return Err(Violation::NoSuchDevice {
                node,
                device: spec.gpus - 1,
                gpus: Devices::MAX_PER_NODE,
            });
        }
        self.nodes.push(Node::new(spec.clone()));
        self.gpu_times.install(spec.gpus);
        self.enter_sums(node);
        self.step.nodes.push(node);
        Ok(())
    }

    fn cordon(&mut self, id: NodeId, cordoned: bool) -> Result<(), Violation> {
        if self.node(id)?.condition != NodeCondition::Lost {
            let to = if cordoned { NodeCondition::Cordoned } else { NodeCondition::Ready };
            self.change_node(id, |node| node.condition = to);
        }
        Ok(())
    }

    fn lose_node(&mut self, id: NodeId) -> Result<(), Violation> {
        if self.node(id)?.condition == NodeCondition::Lost {
            return Ok(());
        }
        self.change_node(id, |node| node.condition = NodeCondition::Lost);
        let lost = self.attempts_on(id).into_iter().map(|attempt| (attempt, Duty::NodeLost(id)));
        self.step.duties.extend(lost);
        Ok(())
    }

    fn move_node(&mut self, id: NodeId, pool: PoolId) -> Result<(), Violation> {
        self.node(id)?;
        self.change_node(id, |node| node.spec.pool = pool);
        Ok(())
    }

    fn set_health(&mut self, id: NodeId, device: u32, healthy: bool) -> Result<(), Violation> {
        let gpus = self.node(id)?.spec.gpus;
        if device >= gpus {
            return Err(Violation::NoSuchDevice { node: id, device, gpus });
        }
        let device = Devices(1 << device);
        self.change_node(id, |node| {
            node.healthy = match healthy {
                true => node.healthy.union(device),
                false => node.healthy.minus(device),
            };
        });
        Ok(())
    }

    fn set_tenant(&mut self, id: TenantId, spec: &TenantSpec) -> Result<(), Violation> {
        let expected = TenantId::from_index(self.tenants.specs.len());
        if id > expected {
            return Err(Violation::TenantIdOutOfOrder { tenant: id, expected });
        }
        if id == expected {
            self.tenants.specs.push(spec.clone());
            return Ok(());
        }
        let before = self.tenants.lineage(id);
        self.tenants.specs[id.index()] = spec.clone();
        let after = self.tenants.lineage(id);
        if before != after {
            // What it uses counts for its new ancestors from now on, and not for the old ones.
            let charges: Vec<_> = self
                .live_attempts()
                .map(|(_, attempt)| {
                    let spec = &self.jobs[attempt.job.index()].spec;
                    ((spec.tenant, attempt.charged), attempt.gpu_type, attempt.gpus)
                })
                .collect();
            self.tenants.recount(charges.into_iter());
            self.step.tenants.extend(before);
        }
        self.step.tenants.push(id);
        Ok(())
    }
}
