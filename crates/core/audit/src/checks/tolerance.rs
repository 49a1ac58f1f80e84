//! ρ_tol, worked out from who waits, what is free and how tenants are served.

use crate::books::Books;
use crate::share_rules::{PressureOf, ShareRules, ToleranceRules};
use deepshare_engine::CapacityMode;
use deepshare_model::{AttemptId, Class, Devices, GpuTypeId, JobId, PoolId, Retention, TenantId};

/// The engine rounds assurance to 2⁻³² and tolerance to the millionth; the auditor's figures have
/// errors of their own.
const ROUNDING_PPM: f64 = 4.0;

impl Books {
    /// The least and the most that the tolerance of a job's pair can be at this point of a round.
    pub fn tolerance_of(
        &self,
        job: JobId,
        charged: Class,
        tenants: [TenantId; 2],
        rules: ShareRules,
    ) -> [Retention; 2] {
        let Some(tolerance) = rules.tolerance else {
            return [Retention::from_ppm(1), Retention::WHOLE];
        };
        if !rules.by_prediction {
            return [Retention::from_ppm(1); 2];
        }
        let rho_min = f64::from(tolerance.rho_min_milli) / 1_000.0;
        let known = self.assurance.as_ref();
        let known = known.filter(|_| self.settings.capacity == CapacityMode::Elastic);
        let Some(assurance) = known else {
            return [Retention::from_ratio(rho_min), Retention::WHOLE];
        };
        let served = match tolerance.by_qad {
            true => tenants.iter().map(|&tenant| assurance.of(tenant).1).fold(1.0, f64::min),
            false => 1.0,
        };
        let pool = self.jobs[job.index()].pool;
        let pending = self.pending(pool, charged, tolerance);
        let others = pending.saturating_sub(u64::from(self.jobs[job.index()].gpus()));
        let free = self.free_in_round(pool);
        // Nodes set aside only add to pressure.
        let least_free = if tolerance.guards { 0 } else { free };
        let at = |free: u32| {
            let base = rho_min + self.pressure(pool, others, free, tolerance) * (1.0 - rho_min);
            (base * (2.0 - served)).min(1.0) * 1e6
        };
        let (least, most) = (at(free) - ROUNDING_PPM, at(least_free) + ROUNDING_PPM);
        [least, most].map(|ppm| Retention::from_ppm(ppm.round() as u32))
    }

    /// P, at most 1.
    fn pressure(&self, pool: PoolId, pending: u64, free: u32, rules: ToleranceRules) -> f64 {
        let usable = self.pools.get(pool.index()).map_or(0, |pool| pool.usable);
        let eps = f64::from(rules.eps_share_milli) / 1_000.0 * f64::from(usable);
        let free = f64::from(free) + eps;
        if pending == 0 {
            return 0.0;
        }
        if free <= 0.0 {
            return 1.0;
        }
        libm::pow(pending as f64 / free, f64::from(rules.gamma_milli) / 1_000.0).min(1.0)
    }

    /// G_p, the job's own demand included.
    fn pending(&self, pool: PoolId, phase: Class, rules: ToleranceRules) -> u64 {
        let tenants = (0..self.tenants.specs.len()).map(TenantId::from_index);
        let here = tenants.filter(|tenant| self.tenants.specs[tenant.index()].pool == pool);
        let of = |tenant: TenantId| {
            let waiting = |class: Class| self.waiting_gpus(tenant, class);
            let (guaranteed, best_effort) =
                (waiting(Class::Guaranteed), waiting(Class::BestEffort));
            if rules.demand == PressureOf::AllPending {
                return guaranteed + best_effort;
            }
            let within_quota = guaranteed.min(self.room_in_round(tenant, Class::Guaranteed));
            if phase == Class::Guaranteed || rules.demand == PressureOf::GuaranteedOnly {
                return within_quota;
            }
            let beyond = if rules.spill { guaranteed - within_quota } else { 0 };
            within_quota + (best_effort + beyond).min(self.room_in_round(tenant, Class::BestEffort))
        };
        here.map(of).sum()
    }

    fn waiting_gpus(&self, tenant: TenantId, class: Class) -> u64 {
        let waits = self.jobs.iter().filter(|job| {
            let theirs = (job.spec.tenant, job.spec.class) == (tenant, class);
            theirs && job.waits(self.now)
        });
        waits.map(|job| u64::from(job.gpus())).sum()
    }

    /// What a tenant's class may still be given, over all GPU models, with what was evicted so far
    /// in this round gone.
    fn room_in_round(&self, tenant: TenantId, class: Class) -> u64 {
        let types = (0..self.gpu_types).map(GpuTypeId::from_index);
        let room = |gpu_type: GpuTypeId| {
            let left = self.tenants.lineage(tenant).into_iter().map(|above| {
                let used = self.tenants.used_by_class(above, class, gpu_type);
                let gone = self.gone_in_round(|id| {
                    let attempt = &self.attempts[id.index()];
                    let theirs = self.jobs[attempt.job.index()].spec.tenant;
                    (attempt.charged, attempt.gpu_type) == (class, gpu_type)
                        && self.tenants.lineage(theirs).contains(&above)
                });
                let gone = gone.map(|id| self.attempts[id.index()].gpus);
                let used = used.saturating_sub(gone.sum());
                self.tenants.cap(above, class, gpu_type).saturating_sub(used)
            });
            left.min().unwrap_or(u32::MAX)
        };
        types.map(|gpu_type| u64::from(room(gpu_type))).sum()
    }

    /// Attempts evicted at this point of the round: from degraded pairs, and for jobs that have
    /// been placed by now.
    fn gone_in_round(&self, counts: impl Fn(AttemptId) -> bool) -> impl Iterator<Item = AttemptId> {
        let served = self.step.reclaims.iter().filter(|reclaim| reclaim.served);
        let victims = served.flat_map(|reclaim| &reclaim.victims);
        let gone: Vec<AttemptId> =
            self.step.revoked.iter().chain(victims).copied().filter(|&id| counts(id)).collect();
        gone.into_iter()
    }

    /// GPUs free at this point of the round.
    fn free_in_round(&self, pool: PoolId) -> u32 {
        let gone: Vec<AttemptId> = self.gone_in_round(|_| true).collect();
        let here = self.nodes.iter().filter(|node| node.spec.pool == pool);
        let freed = here.map(|node| {
            let left = (0..node.spec.gpus).filter(|&device| {
                let holders = &node.holders[device as usize];
                let leave = !holders.is_empty() && holders.iter().all(|id| gone.contains(id));
                leave && node.claimant[device as usize].is_none()
            });
            let left = left.fold(Devices::NONE, |set, device| set.union(Devices(1 << device)));
            left.intersect(node.usable()).count()
        });
        self.pools.get(pool.index()).map_or(0, |pool| pool.free) + freed.sum::<u32>()
    }
}
