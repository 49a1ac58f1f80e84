//! DeepShare: one signal, the quota assurance degree, behind order, borrowing and reclaim.
//!
//! Source: the DeepShare paper (arXiv 2609.16682), Algorithms 1 and 2 without colocation; readings
//! of what it leaves open are numbered as in the specification (D4–D9, D13–D15).
//! Objective: guaranteed jobs within quota start at once or as soon as victims are gone; idle
//! capacity is borrowed by best-effort jobs; inside equal assurance, short jobs go first.
//!
//! One round: (0) spilled jobs are charged to quota that came free; (1) guaranteed jobs in the
//! order (Q̃ of their tenant in buckets, T̂, submission), each placed on free devices or, failing
//! that, on those of the victims of least Φ; (2) best-effort jobs in the same order, on free
//! devices only.
//!
//! Deviations, each with a switch where it changes decisions: "equal" Q̃ is equal in buckets of
//! `qad_bucket` (D4); inside a tenant the queue is in the order (priority, T̂, submission) and a
//! job that does not fit is passed over (D5); the cap is checked against what is used, so a job
//! that finds no place does not hold its share of the cap against those behind it; a job preempted
//! `preemption_cap` times within an hour is a victim only when no other set of victims exists; nodes
//! are set aside for a gang that has waited `gang_guard` (see `guard.rs`).
//! Cost: O(keys for which something changed + placed) a round; a search for victims looks at few
//! attempts for a job that fits one node, at every whole node for a wider one.

mod colocate;
mod guard;
mod hopes;
mod memo;
pub(crate) mod order;
mod partner;
mod room;
mod victims;

use colocate::Pressure;
pub use colocate::{ColocationSettings, PressureDemand};
use deepshare_engine::{
    AskId, Draft, Job, PairBar, Placer, Policy, Preemption, Rank, Reason, State,
};
use deepshare_model::{Class, JobId, Resources, Retention, Span, TenantId};
use order::{Order, Sleeping, Starter, serve};
use serde::{Deserialize, Serialize};
use victims::Search;

/// What the policy can be told. Defaults are the paper's where it has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeepShareSettings {
    /// Weight of past preemptions in Φ, thousandths (α).
    pub alpha_milli: u32,
    /// Weight of the number of victims in Φ, thousandths (β).
    pub beta_milli: u32,
    /// Width of a bucket of equal Q̃, thousandths; 0 = literal.
    pub qad_bucket_milli: u32,
    /// Order tenants by Q̃. Off: ablation `-ord`.
    pub order_by_qad: bool,
    /// Evict best-effort jobs for guaranteed ones. Off: ablation `-rec`.
    pub reclaim: bool,
    /// Order jobs by T̂. Off: by submission.
    pub order_by_time: bool,
    /// Let guaranteed jobs beyond their quota start as best-effort.
    pub spill: bool,
    /// A gang wider than a node has nodes set aside for it after waiting this long; 0 = never.
    pub gang_guard: Span,
    /// Shrink best-effort jobs' CPU and memory in place for guaranteed ones.
    pub shrink: bool,
    /// Give shrunk jobs back what they ask for once nobody lacks CPU or memory. Off in the lab, whose
    /// results are older; on where a cluster is scheduled.
    pub grow: bool,
    /// When two jobs share devices (spec §5).
    pub colocation: ColocationSettings,
    /// Preemptions within an hour after which a job is a victim only if there is no other; 0 = none.
    pub preemption_cap: u32,
}

impl Default for DeepShareSettings {
    fn default() -> Self {
        DeepShareSettings {
            alpha_milli: 500,
            beta_milli: 300,
            qad_bucket_milli: 10,
            order_by_qad: true,
            reclaim: true,
            order_by_time: true,
            spill: false,
            gang_guard: Span::from_secs(5_400),
            preemption_cap: 3,
            shrink: true,
            grow: false,
            colocation: ColocationSettings::default(),
        }
    }
}

/// The policy.
#[derive(Clone, Debug, Default)]
pub struct DeepShare {
    /// What it was told.
    pub settings: DeepShareSettings,
}

impl Policy for DeepShare {
    fn name(&self) -> &'static str {
        "deepshare"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        let entry = state.job(job);
        let priority = i64::from(i32::MAX) - i64::from(entry.spec.priority);
        let left = entry.left_at_start().map_or(u64::MAX, |left| left.max(Span::SECOND).0);
        let time = if self.settings.order_by_time { left } else { 0 };
        Rank([priority as u64, time, entry.spec.submit.0])
    }

    fn spills(&self) -> bool {
        self.settings.spill
    }

    fn shares(&self) -> bool {
        self.colocates()
    }

    fn grows(&self) -> bool {
        self.settings.grow
    }

    /// What is asked at no pressure: more cannot be known of a pair that was formed before.
    fn bar_of_found(&self, _: &State, _: [JobId; 2]) -> PairBar {
        match self.colocation().by_prediction {
            true => PairBar::both(Retention::from_ratio(self.rho_min())),
            false => PairBar::NONE,
        }
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let spill = self.settings.spill;
        if spill {
            promote_spilled(draft);
        }
        let order = Order {
            qad_bucket_milli: self.settings.qad_bucket_milli,
            by_qad: self.settings.order_by_qad,
        };
        guard::refresh(draft, self.settings.gang_guard, spill);
        draft.hold_back(true);
        let shares = self.colocates() && draft.state().looks_for_partners(draft.pool());
        if shares {
            self.revoke_degraded(draft);
            self.hear_of_hosts(draft);
        }
        let new = draft.take_new_asks();
        let mut pressure = Pressure::default();
        let mut phase = |draft: &mut Draft<'_>, charge: Class| {
            pressure.begin(charge);
            let mut phase = Phase { policy: self, shares, pressure: &mut pressure };
            let sleeping = match shares {
                true => self.sleeping(draft, &new, phase.pressure),
                false => Sleeping::default(),
            };
            serve(draft, order, charge, sleeping, &mut phase);
        };
        phase(draft, Class::Guaranteed);
        self.serve_guarded(draft);
        phase(draft, Class::BestEffort);
        // Whoever joins a queue before the next slot; all others have reasons of their own.
        if draft.free_gpus() == 0 {
            draft.refuse_rest(Reason::NotEnoughFree { need: 1, free: 0 });
        }
    }
}

/// Half a round: the jobs charged to one class.
struct Phase<'a> {
    policy: &'a DeepShare,
    shares: bool,
    pressure: &'a mut Pressure,
}

impl Starter for Phase<'_> {
    fn start(&mut self, draft: &mut Draft<'_>, job: JobId) -> Result<(), Reason> {
        match self.pressure.phase {
            Class::Guaranteed => self.policy.start_guaranteed(draft, job, self.pressure),
            Class::BestEffort => self.policy.start_best_effort(draft, job, self.pressure),
        }
    }

    fn shares(&self) -> bool {
        self.shares
    }

    fn has_hope(&mut self, draft: &mut Draft<'_>, tenant: TenantId, ask: AskId) -> bool {
        self.policy.has_hope(draft, tenant, ask, self.pressure)
    }

    fn keep_hopeful(&mut self, draft: &mut Draft<'_>, of: (TenantId, u32), asks: &mut Vec<AskId>) {
        self.policy.keep_hopeful(draft, of, asks, self.pressure);
    }

    fn share(&mut self, draft: &mut Draft<'_>, job: JobId) -> bool {
        let (policy, pressure) = (self.policy, &mut *self.pressure);
        match pressure.phase {
            Class::Guaranteed => policy.share_or_shrink(draft, job, false, pressure),
            Class::BestEffort => policy.share(draft, job, pressure),
        }
    }
}

/// Charges running jobs beyond their quota to quota that came free, in order of submission.
pub(crate) fn promote_spilled(draft: &mut Draft<'_>) {
    let freed = draft.take_freed_quotas();
    let (state, pool) = (draft.state(), draft.pool());
    let mut spilled: Vec<_> =
        freed.into_iter().flat_map(|tenant| state.spilled(pool, tenant)).collect();
    spilled.sort_unstable();
    for (_, attempt) in spilled {
        // Whoever does not fit keeps running as it is.
        let _ = draft.promote(attempt);
    }
}

impl DeepShare {
    /// Places a guaranteed job, least disruptive first: on free devices, on free devices of nodes
    /// set aside for a gang, beside another job, on either once best-effort jobs have been shrunk, on
    /// the devices of victims.
    fn start_guaranteed(
        &self,
        draft: &mut Draft<'_>,
        job: JobId,
        pressure: &mut Pressure,
    ) -> Result<(), Reason> {
        let refused = match draft.place_as(job, Class::Guaranteed) {
            Err(reason) if !reason.is_quota() => reason,
            other => return other,
        };
        let guarded = draft.state().pool(draft.pool()).guard().is_some();
        draft.hold_back(false);
        if guarded && draft.place_as(job, Class::Guaranteed).is_ok() {
            draft.hold_back(true);
            return Ok(());
        }
        let host_short = matches!(refused, Reason::NotEnoughHost { .. });
        let placed =
            self.share_or_shrink(draft, job, host_short, pressure) || self.reclaim_for(draft, job);
        draft.hold_back(true);
        if placed { Ok(()) } else { Err(refused) }
    }

    /// Lets a guaranteed job join a running one, if need be once best-effort jobs have been shrunk,
    /// which is tried also if it is `host_short` of CPU or memory beside free devices.
    fn share_or_shrink(
        &self,
        draft: &mut Draft<'_>,
        job: JobId,
        host_short: bool,
        pressure: &mut Pressure,
    ) -> bool {
        // Hopes of guaranteed jobs count on what shrinking gives.
        self.share(draft, job, pressure)
            || ((host_short || self.would_share(draft, job, pressure))
                && self.shrink_for(draft, job, pressure))
    }

    /// Lets a job that found no free devices join a running one; why it found none is noted with those
    /// like it.
    fn share(&self, draft: &mut Draft<'_>, job: JobId, pressure: &mut Pressure) -> bool {
        let Job { key, ask, .. } = *draft.state().job(job);
        let Some(ask) = ask else { return false };
        // Whoever was told why it has none, and may not hope for another, need not be told again.
        let told = draft.state().has_asked(key, ask, pressure.phase);
        if told && !self.would_share(draft, job, pressure) {
            return false;
        }
        let found = self.find_partner(draft, job, pressure);
        found.map_err(|why| draft.refuse_partner(job, pressure.phase, why)).is_ok()
    }

    /// Shrinks best-effort jobs, in place, as far as it takes to place a job that lacks CPU or memory
    /// on free devices or beside another job; the others keep what they have.
    fn shrink_for(&self, draft: &mut Draft<'_>, job: JobId, pressure: &mut Pressure) -> bool {
        if !self.settings.shrink
            || draft.state().job(job).spec.demand.per_gpu == Resources::default()
        {
            return false;
        }
        let mark = draft.mark();
        let state = draft.state();
        let running = state.reclaimable(draft.pool()).map(|(_, attempt)| attempt.id);
        let mut shrunk: Vec<_> = running.filter(|&id| state.shrinks_to(id).is_some()).collect();
        // Who would run longest gives first.
        shrunk.retain(|&id| draft.shrink(id));
        let placed = !shrunk.is_empty()
            && (draft.place_as(job, Class::Guaranteed).is_ok()
                || self.find_partner(draft, job, pressure).is_ok());
        if !placed {
            draft.undo_to(mark);
            return false;
        }
        for id in shrunk.into_iter().rev() {
            draft.unshrink(id);
        }
        true
    }

    /// Evicts the victims of least Φ and places the job on their devices, if there are any.
    fn reclaim_for(&self, draft: &mut Draft<'_>, job: JobId) -> bool {
        if !self.settings.reclaim {
            return false;
        }
        let search = Search::new(&self.settings, draft.state(), draft.pool());
        let (choice, retry_at) = search.victims_for(job);
        let Some(choice) = choice else {
            // A job that has not run its minimum time yet may become a victim.
            if let Some(at) = retry_at {
                draft.wake_sleepers_at(at);
            }
            return false;
        };
        let preemption = Preemption { beneficiary: job, phi_nano: Some(choice.phi_nano()) };
        let mark = draft.mark();
        for &victim in &choice.victims {
            draft.evict_for(victim, Some(preemption));
        }
        if draft.place_as(job, Class::Guaranteed).is_err() {
            draft.undo_to(mark);
            return false;
        }
        if draft.state().settings().placer != Placer::Consolidate {
            // The search is for consolidated places; others may leave a victim's devices alone.
            for victim in choice.victims {
                draft.spare(victim);
            }
        }
        true
    }

    /// Places the guarded gang if its nodes, or others, have come to be free.
    fn serve_guarded(&self, draft: &mut Draft<'_>) {
        let Some(guard) = draft.state().pool(draft.pool()).guard() else { return };
        let job = guard.job;
        if !draft.state().job(job).is_waiting() {
            draft.set_guard(None);
            return;
        }
        let Some(charge) = guard::charge_of(draft.state(), job, self.settings.spill) else {
            return;
        };
        draft.hold_back(false);
        if draft.place_as(job, charge).is_ok() {
            draft.set_guard(None);
        } else {
            draft.hold_back(true);
        }
    }

    /// Places a job charged as best-effort on free devices, or beside another job; says so if only
    /// the nodes set aside for a gang are in its way.
    fn start_best_effort(
        &self,
        draft: &mut Draft<'_>,
        job: JobId,
        pressure: &mut Pressure,
    ) -> Result<(), Reason> {
        let refused = match draft.place_as(job, Class::BestEffort) {
            Err(reason) if !reason.is_quota() => reason,
            other => return other,
        };
        if self.share(draft, job, pressure) {
            return Ok(());
        }
        let Some(guard) = draft.state().pool(draft.pool()).guard() else { return Err(refused) };
        let would_delay = Reason::WouldDelay { head: guard.job, at: guard.expected };
        draft.hold_back(false);
        let fits = draft.refusal(job, Class::BestEffort).is_none();
        draft.hold_back(true);
        Err(if fits { would_delay } else { refused })
    }
}
