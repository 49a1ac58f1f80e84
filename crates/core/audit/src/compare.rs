//! The engine's public view, held against what the stream says.

use crate::books::Books;
use crate::violation::{Standing, Violation};
use deepshare_engine::{JobState, State};
use deepshare_model::{AttemptId, GpuTypeId, JobId, NodeId, PoolId, TenantId};

impl Books {
    /// What the step touched. Costs O(touched).
    pub fn compare_touched(&self, state: &State) -> Result<(), Violation> {
        self.compare_counts(state)?;
        for &node in &self.step.nodes {
            self.compare_node(state, node)?;
            self.compare_pool(state, self.nodes[node.index()].spec.pool)?;
        }
        for &attempt in &self.step.attempts {
            self.compare_attempt(state, attempt)?;
        }
        for &job in &self.step.jobs {
            self.compare_job(state, job)?;
        }
        for &tenant in &self.step.tenants {
            self.compare_tenant(state, tenant)?;
        }
        match self.step.retentions {
            true => self.compare_retentions(state),
            false => Ok(()),
        }
    }

    /// Everything.
    pub fn compare_all(&self, state: &State) -> Result<(), Violation> {
        self.compare_counts(state)?;
        self.compare_retentions(state)?;
        (0..self.nodes.len()).try_for_each(|i| self.compare_node(state, NodeId::from_index(i)))?;
        (0..self.pools.len()).try_for_each(|i| self.compare_pool(state, PoolId::from_index(i)))?;
        (0..self.attempts.len())
            .try_for_each(|i| self.compare_attempt(state, AttemptId::from_index(i)))?;
        (0..self.jobs.len()).try_for_each(|i| self.compare_job(state, JobId::from_index(i)))?;
        (0..self.tenants.specs.len())
            .try_for_each(|i| self.compare_tenant(state, TenantId::from_index(i)))?;
        self.compare_refused(state)
    }

    fn compare_retentions(&self, state: &State) -> Result<(), Violation> {
        match state.retentions() == &self.retentions {
            true => Ok(()),
            false => Err(Violation::RetentionsDiffer),
        }
    }

    fn compare_counts(&self, state: &State) -> Result<(), Violation> {
        let counts = [
            ("nodes", self.nodes.len(), state.nodes().len()),
            ("tenants", self.tenants.specs.len(), state.tenant_count()),
            ("jobs", self.jobs.len(), state.jobs().len()),
            ("attempts", self.attempts.len(), state.attempts().len()),
        ];
        for (what, audited, engine) in counts {
            if audited != engine {
                return Err(Violation::CountDiffers { what, audited, engine });
            }
        }
        Ok(())
    }

    fn compare_node(&self, state: &State, id: NodeId) -> Result<(), Violation> {
        let (node, other) = (&self.nodes[id.index()], &state.nodes()[id.index()]);
        if node.condition != other.condition {
            let (audited, engine) = (node.condition, other.condition);
            return Err(Violation::ConditionDiffers { node: id, audited, engine });
        }
        self.check_node(id, other.open())?;
        let shares = node.shares();
        let sets = [
            ("healthy", node.healthy, other.healthy),
            ("free", shares.free, other.open()),
            ("held", shares.held, other.held()),
            ("usable", node.usable(), other.usable()),
        ];
        for (what, audited, engine) in sets {
            if audited != engine {
                return Err(Violation::NodeDiffers { node: id, what, audited, engine });
            }
        }
        for (device, holders) in node.holders.iter().enumerate() {
            let residents = other.residents(device as u32);
            if residents != holders.as_slice() {
                return Err(Violation::HolderDiffers {
                    node: id,
                    device: device as u32,
                    audited: holders.clone(),
                    engine: residents.to_vec(),
                });
            }
        }
        Ok(())
    }

    fn compare_pool(&self, state: &State, pool: PoolId) -> Result<(), Violation> {
        let (count, other) = (self.pools[pool.index()], state.pool(pool));
        let figures = [
            ("free", count.free, other.free_gpus()),
            ("usable", count.usable, other.usable_gpus()),
        ];
        for (what, audited, engine) in figures {
            if audited != engine {
                return Err(Violation::PoolDiffers { pool, what, audited, engine });
            }
        }
        Ok(())
    }

    fn compare_attempt(&self, state: &State, attempt: AttemptId) -> Result<(), Violation> {
        let audited = self.attempts[attempt.index()].state();
        let engine = state.attempt(attempt).state;
        if audited != engine {
            return Err(Violation::AttemptDiffers { attempt, audited, engine });
        }
        let audited = self.attempts[attempt.index()].per_gpu;
        let engine = state.attempt(attempt).per_gpu;
        if audited != engine {
            return Err(Violation::HeldDiffers { attempt, audited, engine });
        }
        let audited = self.partners_of(attempt);
        let beside = state.attempt(attempt).beside.iter();
        let mut engine: Vec<_> = beside.map(|beside| (beside.partner, beside.retention)).collect();
        engine.sort_unstable_by_key(|&(partner, _)| partner);
        if engine != audited {
            return Err(Violation::BesideDiffers { attempt, audited, engine });
        }
        Ok(())
    }

    fn compare_job(&self, state: &State, job: JobId) -> Result<(), Violation> {
        let entry = &self.jobs[job.index()];
        let (audited, engine) = (entry.standing(), &state.job(job).state);
        let agree = match (audited, engine) {
            (Standing::Ended(outcome), JobState::Ended(other)) => outcome == *other,
            (Standing::Active(attempt), JobState::Active(other)) => attempt == *other,
            (Standing::Waiting, JobState::Waiting | JobState::BackingOff { .. }) => true,
            (Standing::Held, JobState::Held) => true,
            // Refused and then held: both keep it out.
            (Standing::Held, JobState::Unrunnable(_)) => entry.refused,
            (Standing::Refused, JobState::Unrunnable(_)) => true,
            // It was looked at again when inventory or quotas changed.
            (Standing::Refused, JobState::Waiting) => true,
            _ => false,
        };
        if !agree {
            return Err(Violation::JobDiffers { job, audited, engine: engine.clone() });
        }
        Ok(())
    }

    /// No job is kept out as too large that could run by now.
    fn compare_refused(&self, state: &State) -> Result<(), Violation> {
        for (index, job) in self.jobs.iter().enumerate() {
            let id = JobId::from_index(index);
            let kept_out = matches!(state.job(id).state, JobState::Unrunnable(_));
            if kept_out && self.could_run(job) {
                return Err(Violation::LeftRefused { job: id });
            }
        }
        Ok(())
    }

    fn compare_tenant(&self, state: &State, id: TenantId) -> Result<(), Violation> {
        for tenant in self.tenants.lineage(id) {
            for gpu_type in (0..self.gpu_types).map(GpuTypeId::from_index) {
                let audited = self.tenants.used(tenant, gpu_type);
                let engine = state.used(tenant, gpu_type);
                if audited != engine {
                    return Err(Violation::UsedDiffers { tenant, gpu_type, audited, engine });
                }
            }
        }
        Ok(())
    }
}
