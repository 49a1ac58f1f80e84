//! Quota assurance degrees, worked out slot by slot from who waits and who holds what.

use super::Books;
use crate::violation::{Standing, Violation};
use deepshare_engine::{EngineSettings, State};
use deepshare_model::{Class, GpuTypeId, Span, TenantId, Time};
use std::collections::BTreeMap;

/// Slot length where the engine's rounds have none (spec §1).
const CYCLE: Span = Span(50_000);
/// After so many slots nothing is left of what was before.
const FORGOTTEN: u64 = 200;
/// Largest difference from the engine's fixed-point figure, millionths.
const TOLERANCE: u32 = 1;

/// Q and its moving average.
#[derive(Clone, Copy, Debug)]
struct Degree {
    now: f64,
    smoothed: f64,
}

/// Every tenant's, by GPU model.
#[derive(Clone, Debug)]
pub(crate) struct Assurance {
    cycle: Span,
    weight: f64,
    slot: u64,
    degrees: BTreeMap<(TenantId, GpuTypeId), Degree>,
}

impl Assurance {
    pub fn new(settings: &EngineSettings) -> Assurance {
        let cycle = if settings.cycle.is_zero() { CYCLE } else { settings.cycle };
        let weight = f64::from(settings.qad_lambda_milli) / 1_000.0;
        Assurance { cycle, weight, slot: 0, degrees: BTreeMap::new() }
    }

    /// One step of the average at the start of each slot up to now.
    pub fn pass(&mut self, now: Time) {
        let slot = now.0 / self.cycle.0;
        for _ in 0..(slot - self.slot).min(FORGOTTEN) {
            for degree in self.degrees.values_mut() {
                let kept = (1.0 - self.weight) * degree.smoothed;
                degree.smoothed = self.weight * degree.now + kept;
            }
        }
        self.slot = slot;
    }

    /// Takes over Q̃ from an earlier engine.
    pub fn restore(&mut self, account: (TenantId, GpuTypeId), smoothed: f64) {
        let fresh = Degree { now: 1.0, smoothed };
        self.degrees.entry(account).or_insert(fresh).smoothed = smoothed.min(1.0);
    }

    /// Q and Q̃ of a tenant.
    pub fn of(&self, tenant: TenantId) -> (f64, f64) {
        let mine = self.degrees.iter().filter(|((owner, _), _)| *owner == tenant);
        mine.fold((1.0, 1.0), |(now, smoothed), (_, degree)| {
            (degree.now.min(now), degree.smoothed.min(smoothed))
        })
    }
}

impl Books {
    /// Takes stock of demand and use, and holds the degrees that follow against the engine's.
    pub fn check_assurance(&mut self, state: &State) -> Result<(), Violation> {
        let Some(mut assurance) = self.assurance.take() else { return Ok(()) };
        for (account, now) in self.degrees_now(&assurance) {
            let fresh = Degree { now, smoothed: 1.0 };
            assurance.degrees.entry(account).or_insert(fresh).now = now;
        }
        let tenants = (0..self.tenants.specs.len()).map(TenantId::from_index);
        let verdict = tenants.into_iter().try_for_each(|tenant| {
            let (now, smoothed) = assurance.of(tenant);
            let (engine_now, engine_smoothed) = state.qad(tenant);
            let pairs = [
                ("momentary", now, engine_now.as_f64()),
                ("smoothed", smoothed, engine_smoothed.as_f64()),
            ];
            for (what, audited, engine) in pairs {
                let (audited, engine) = (millionths(audited), millionths(engine));
                if audited.abs_diff(engine) > TOLERANCE {
                    return Err(Violation::AssuranceDiffers { tenant, what, audited, engine });
                }
            }
            Ok(())
        });
        self.assurance = Some(assurance);
        verdict
    }

    /// Q of every account that has, or ever had, demand or use.
    fn degrees_now(&self, known: &Assurance) -> BTreeMap<(TenantId, GpuTypeId), f64> {
        let mut counts: BTreeMap<(TenantId, GpuTypeId), (u32, u32)> =
            known.degrees.keys().map(|&account| (account, (0, 0))).collect();
        for job in self.jobs.iter().filter(|job| job.spec.class == Class::Guaranteed) {
            let account = |gpu_type| (job.spec.tenant, gpu_type);
            let live = job.live.map(|id| &self.attempts[id.index()]);
            let live = live.filter(|attempt| attempt.charged == Class::Guaranteed);
            if let Some(attempt) = live.filter(|attempt| attempt.holds()) {
                counts.entry(account(attempt.gpu_type)).or_default().1 += attempt.gpus;
            }
            // A spilled job demands nothing until it is promoted or preempted.
            let demands = match job.standing() {
                Standing::Waiting => {
                    let largest = || self.tenants.largest(job.spec.tenant);
                    Some(job.spec.demand.gpu_type.unwrap_or_else(largest))
                }
                Standing::Active(_) => live.map(|attempt| attempt.gpu_type),
                Standing::Ended(_) | Standing::Held | Standing::Refused => None,
            };
            if let Some(gpu_type) = demands {
                counts.entry(account(gpu_type)).or_default().0 += job.gpus();
            }
        }
        let degree = |((tenant, gpu_type), (demand, held))| {
            let entitled = self.tenants.quota(tenant, gpu_type).min(demand);
            let degree = match entitled {
                0 => 1.0,
                _ => (f64::from(held) / f64::from(entitled)).min(1.0),
            };
            ((tenant, gpu_type), degree)
        };
        counts.into_iter().map(degree).collect()
    }
}

fn millionths(degree: f64) -> u32 {
    (degree * 1e6).round() as u32
}
