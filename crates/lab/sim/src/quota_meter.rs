//! Watches a run for what becomes of quotas: assurance, avoidable waiting, preemptions.

mod avoidable;
mod preemptions;

use avoidable::AvoidableMeter;
use deepshare_engine::{CapacityMode, Command, Degree, EngineSettings, Event, State};
use deepshare_metrics::{AssuranceMeter, QuotaRecord, Standing};
use deepshare_model::{GpuTypeId, Span, TenantId, TenantSpec, Time};
use preemptions::PreemptionLog;

/// Most GPUs of a cluster on which avoidable waiting is looked for without being asked to: the
/// search looks at every kind of waiting job at every instant.
pub(crate) const AVOIDABLE_UP_TO_GPUS: u64 = 4_096;

/// Watches a run for what becomes of quotas.
pub(crate) struct QuotaMeter {
    guarantees: bool,
    assurance: Option<Assurance>,
    avoidable: Option<AvoidableMeter>,
    preemptions: PreemptionLog,
}

impl QuotaMeter {
    /// A meter for a run of these tenants whose last job arrives at `arrivals_end`. Preemptions of
    /// a job beyond `preemption_cap` within an hour are counted.
    pub(crate) fn new(
        settings: &EngineSettings,
        tenants: &[TenantSpec],
        arrivals_end: Time,
        preemption_cap: u32,
        look_for_avoidable: bool,
    ) -> QuotaMeter {
        // Partitions keep their promise with nodes, not with numbers.
        let promised = settings.capacity != CapacityMode::Partition
            && tenants.iter().any(|tenant| tenant.quota.total() > 0);
        QuotaMeter {
            guarantees: promised && settings.capacity == CapacityMode::Elastic,
            assurance: promised.then(|| Assurance::new(arrivals_end)),
            avoidable: (promised && look_for_avoidable).then(AvoidableMeter::default),
            preemptions: PreemptionLog::new(preemption_cap),
        }
    }

    /// The engine has heard an event and answered with commands.
    pub(crate) fn stepped(&mut self, state: &State, event: &Event, commands: &[Command]) {
        self.preemptions.heard(state, event);
        for command in commands {
            self.preemptions.obeyed(state, command);
        }
    }

    /// All events and rounds of an instant are over.
    pub(crate) fn measure(&mut self, now: Time, state: &State) {
        if let Some(assurance) = &mut self.assurance {
            assurance.measure(state);
        }
        if let Some(avoidable) = &mut self.avoidable {
            avoidable.measure(now, state);
        }
    }

    /// Closes the accounts at the end of the run.
    pub(crate) fn finish(self, end: Time, state: &State) -> QuotaRecord {
        let assured = self.assurance.map(|assurance| assurance.meter.finish(end));
        let (mut tenants, recoveries) = assured.unwrap_or_default();
        if !tenants.is_empty() {
            tenants.resize(state.tenant_count(), Default::default());
        }
        for (index, tenant) in tenants.iter_mut().enumerate() {
            tenant.quota = state.tenant(TenantId::from_index(index)).quota.total();
        }
        QuotaRecord {
            guarantees: self.guarantees,
            tenants,
            recoveries,
            avoidable: self.avoidable.map(|avoidable| avoidable.finish(end, state)),
            preemptions: self.preemptions.finish(),
        }
    }
}

/// Follows every tenant's account. Costs a look at each tenant an instant, and more only where
/// something changed.
struct Assurance {
    arrivals_end: Time,
    meter: AssuranceMeter,
    /// By tenant and GPU type.
    known: Vec<Vec<Known>>,
    /// Inventory and quotas as of which that holds.
    generation: Option<u64>,
}

/// One GPU type of a tenant as last seen.
#[derive(Clone, Copy, PartialEq)]
struct Known {
    counts: (u32, u32),
    owed: bool,
    now: Degree,
}

impl Assurance {
    fn new(arrivals_end: Time) -> Assurance {
        // The engine knows the cycle; it is asked with the first measurement.
        let meter = AssuranceMeter::new(Span(1), 0, arrivals_end);
        Assurance { arrivals_end, meter, known: Vec::new(), generation: None }
    }

    fn measure(&mut self, state: &State) {
        if self.generation.is_none() {
            let lambda_milli = state.settings().qad_lambda_milli;
            self.meter = AssuranceMeter::new(state.qad_cycle(), lambda_milli, self.arrivals_end);
        }
        let quotas_changed = self.generation.replace(state.generation()) != self.generation;
        self.known.resize_with(state.tenant_count(), Vec::new);
        for index in 0..self.known.len() {
            let tenant = TenantId::from_index(index);
            let counts = state.guaranteed_by_type(tenant);
            let same = counts.eq(self.known[index].iter().map(|known| known.counts));
            if quotas_changed || !same {
                self.look_closer(state, tenant);
            }
        }
    }

    /// Tells the meter if what a tenant is owed or gets has changed, and not only the sums.
    fn look_closer(&mut self, state: &State, tenant: TenantId) {
        let quota = &state.tenant(tenant).quota;
        let types = || (0..).map(GpuTypeId).zip(state.guaranteed_by_type(tenant));
        let seen: Vec<Known> = types()
            .map(|(gpu_type, counts)| Known {
                counts,
                owed: quota.of(gpu_type).min(counts.0) > 0,
                now: state.qad_of_type(tenant, gpu_type).0,
            })
            .collect();
        let known = std::mem::replace(&mut self.known[tenant.index()], seen);
        let seen = &self.known[tenant.index()];
        let standing = |known: &Known| (known.owed, known.now);
        if seen.iter().map(standing).eq(known.iter().map(standing)) {
            return;
        }
        let standings: Vec<Standing> = types()
            .zip(seen)
            .map(|((gpu_type, _), seen)| Standing {
                owed: seen.owed,
                now: fixed(seen.now),
                smoothed: fixed(state.qad_of_type(tenant, gpu_type).1),
            })
            .collect();
        self.meter.set(state.now(), tenant, &standings);
    }
}

/// A degree in units of 2⁻³², which it is kept in.
fn fixed(degree: Degree) -> u64 {
    (degree.as_f64() * (1u64 << 32) as f64) as u64
}

#[cfg(test)]
mod tests;
