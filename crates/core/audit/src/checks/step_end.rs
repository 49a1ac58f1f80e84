//! What must hold when all commands of a step are done.

use crate::books::Books;
use crate::books::attempt::Attempt;
use crate::violation::Violation;
use deepshare_engine::{AttemptState, CapacityMode};
use deepshare_model::JobId;

impl Books {
    pub fn check_step_end(&self) -> Result<(), Violation> {
        for &(id, duty) in &self.step.duties {
            let state = self.attempts[id.index()].state();
            if state < AttemptState::Terminating {
                return Err(Violation::DutyMissed { attempt: id, duty, state });
            }
        }
        for &node in &self.step.host_due {
            let used = self.host_use(node, Attempt::stays);
            let capacity = self.nodes[node.index()].spec.capacity;
            // What the world overbooks by itself is a fact; nothing may be promised beyond it.
            let promised = self.nodes[node.index()].claimant.iter().flatten();
            let mut asked = promised.map(|id| self.attempts[id.index()].per_gpu);
            if asked.any(|asked| used.is_short_of(capacity, asked)) {
                return Err(Violation::HostOverdrawn { node, used, capacity });
            }
        }
        for &(site, node) in &self.step.sites_due {
            if self.sites.overpromised(site, node) {
                return Err(Violation::PromisedUnadmitted { site, node });
            }
        }
        self.check_watched()?;
        self.check_in_steps()?;
        self.check_served()
    }

    /// No reservation waits while nobody is leaving or shrinking who could be in its way: on its nodes, or in
    /// its tenant's family where quotas bind.
    pub fn check_reservations(&self) -> Result<(), Violation> {
        for (id, attempt) in self.live_attempts().filter(|(_, attempt)| attempt.is_reserved()) {
            let on_nodes = attempt.placement.iter().any(|slice| {
                let holders = self.nodes[slice.node.index()].holders.iter().flatten();
                holders.into_iter().any(|holder| {
                    let holder = &self.attempts[holder.index()];
                    holder.is_leaving() || holder.is_shrinking()
                })
            });
            let awaited = on_nodes || self.quota_is_leaving(attempt.job);
            if !awaited {
                return Err(Violation::ReservationStuck { attempt: id, job: attempt.job });
            }
        }
        Ok(())
    }

    /// True if an attempt that shares a quota with the job is leaving.
    fn quota_is_leaving(&self, job: JobId) -> bool {
        if !matches!(self.settings.capacity, CapacityMode::Hard | CapacityMode::Elastic) {
            return false;
        }
        let line = |job: JobId| self.tenants.lineage(self.jobs[job.index()].spec.tenant);
        let family = line(job);
        self.live_attempts().any(|(_, other)| {
            other.is_leaving() && line(other.job).iter().any(|tenant| family.contains(tenant))
        })
    }
}
