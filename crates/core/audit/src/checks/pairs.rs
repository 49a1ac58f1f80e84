//! Who may share devices, and who of a pair may be sent away.

use crate::books::Books;
use crate::books::pairs::{Joining, Pair, enough};
use crate::share_rules::ShareRules;
use crate::violation::Violation;
use deepshare_engine::{CapacityMode, EvictReason, PairBar, Placement};
use deepshare_model::{AttemptId, Class, Epoch, JobId, NodeId, Retention, TenantId};

impl Books {
    /// Who is on the devices of a placement and stays there: nobody, or one attempt on exactly the
    /// same devices, or, where jobs share in part, one at most on each. What leaves makes room for a
    /// reservation (`waits`), if all of it does.
    pub fn check_company(
        &self,
        id: AttemptId,
        placement: &Placement,
        waits: bool,
    ) -> Result<Vec<AttemptId>, Violation> {
        let leaves = |holder: AttemptId| waits && self.attempts[holder.index()].is_leaving();
        let mut hosts: Vec<AttemptId> = Vec::new();
        for slice in placement {
            let node = slice.node;
            for device in slice.devices.iter() {
                let holders = &self.nodes[node.index()].holders[device as usize];
                let Some(&holder) = holders.iter().find(|&&holder| !leaves(holder)) else {
                    continue;
                };
                let taken = self.shares.is_none() || self.attempts[holder.index()].is_leaving();
                if taken {
                    return Err(Violation::DeviceHeld { attempt: id, node, device, holder });
                }
                if let [first, second, ..] = holders[..] {
                    let holders = [first, second];
                    return Err(Violation::DeviceFull { attempt: id, node, device, holders });
                }
                if !hosts.contains(&holder) {
                    hosts.push(holder);
                }
            }
        }
        let Some(&host) = hosts.first() else { return Ok(hosts) };
        let sorted = |placement: &Placement| {
            let mut slices = placement.clone();
            slices.sort_unstable();
            slices
        };
        let uneven = sorted(&self.attempts[host.index()].placement) != sorted(placement);
        if uneven && !self.shares.is_some_and(|rules| rules.in_part) {
            return Err(Violation::PairUneven { attempt: id, partner: host });
        }
        Ok(hosts)
    }

    /// The tests of admission that need no tolerance, and what its tolerance can be.
    pub fn check_pair(
        &self,
        (id, job, charged): (AttemptId, JobId, Class),
        placement: &Placement,
        steps: u32,
        host: AttemptId,
    ) -> Result<Joining, Violation> {
        let Some(rules) = self.shares else {
            return Err(Violation::PairUneven { attempt: id, partner: host });
        };
        let theirs = self.attempts[host.index()].job;
        let pair = [job, theirs].map(|job| &self.jobs[job.index()].spec);
        let (attempt, partner) = (id, host);
        if pair.iter().any(|spec| !spec.sharing.consent) {
            return Err(Violation::PairUnwilling { attempt, partner });
        }
        if pair[0].sharing.trust_domain != pair[1].sharing.trust_domain {
            return Err(Violation::PairOfStrangers { attempt, partner });
        }
        if !rules.both_guaranteed && pair.iter().all(|spec| spec.class == Class::Guaranteed) {
            return Err(Violation::PairGuaranteed { attempt, partner });
        }
        let gpus = pair[0].demand.gpus;
        if rules.most_gpus > 0 && gpus > rules.most_gpus {
            return Err(Violation::PairTooWide { attempt, gpus, most: rules.most_gpus });
        }
        self.check_pair_memory(id, (job, steps), placement, host)?;
        let keeps = self.predicted_for([job, theirs], rules);
        let Some(keeps) = keeps else {
            return Err(Violation::PairUnpredicted { attempt, partner });
        };
        for (spec, keeps) in pair.iter().zip(keeps) {
            if spec.class == Class::Guaranteed && keeps.ppm() < rules.floor_ppm {
                let floor = Retention::from_ppm(rules.floor_ppm);
                return Err(Violation::PairBelowFloor { attempt, partner, keeps, floor });
            }
        }
        let tenants: [TenantId; 2] = [pair[0].tenant, pair[1].tenant];
        let tolerance = self.tolerance_of(job, charged, tenants, rules);
        Ok(Joining { host, keeps, tolerance, found: false })
    }

    fn check_pair_memory(
        &self,
        attempt: AttemptId,
        (job, steps): (JobId, u32),
        placement: &Placement,
        host: AttemptId,
    ) -> Result<(), Violation> {
        let other = &self.attempts[host.index()];
        let need = |job: JobId, steps| self.jobs[job.index()].spec.gpu_memory_mib(steps);
        let needs = [need(job, steps), need(other.job, other.steps)];
        let shared = |node: NodeId| other.placement.iter().any(|slice| slice.node == node);
        for slice in placement.iter().filter(|slice| shared(slice.node)) {
            let (node, has) = (slice.node, self.nodes[slice.node.index()].spec.gpu_memory_mib);
            if has == 0 {
                continue;
            }
            if needs.contains(&0) || u64::from(needs[0]) + u64::from(needs[1]) > u64::from(has) {
                return Err(Violation::PairMemoryShort { attempt, node, needs, has });
            }
        }
        Ok(())
    }

    fn predicted_for(&self, jobs: [JobId; 2], rules: ShareRules) -> Option<[Retention; 2]> {
        let [own, other] = [self.profile(jobs[0])?, self.profile(jobs[1])?];
        if !rules.by_prediction {
            return Some([Retention::WHOLE; 2]);
        }
        let table = &self.retentions;
        Some([table.get(own, other)?, table.get(other, own)?])
    }

    /// A pair is watched when it begins, and nobody else is; both are predicted to keep what is asked
    /// of them.
    pub fn check_watch(
        &self,
        attempt: AttemptId,
        partner: AttemptId,
        bar: PairBar,
    ) -> Result<Pair, Violation> {
        if !self.step.unwatched.contains(&(attempt, partner)) {
            return Err(Violation::WatchedForNothing { attempt, partner });
        }
        let mut joins = self.attempts[attempt.index()].joins.iter();
        let Some(joining) = joins.find(|joins| joins.host == partner) else {
            return Err(Violation::WatchedForNothing { attempt, partner });
        };
        let [least, most] = joining.tolerance;
        for tolerance in bar.each {
            if tolerance < least || tolerance > most {
                let why = Violation::ToleranceDiffers { attempt, partner, tolerance, least, most };
                return Err(why);
            }
        }
        if !joining.found && !enough(bar, joining.keeps, 0) {
            let keeps = joining.keeps[0].min(joining.keeps[1]);
            let tolerance = bar.each[0].max(bar.each[1]);
            return Err(Violation::PairBelowTolerance { attempt, partner, keeps, tolerance });
        }
        Ok(Pair::new(joining, bar))
    }

    /// Whoever started on shared devices is being watched.
    pub fn check_watched(&self) -> Result<(), Violation> {
        match self.step.unwatched.first() {
            None => Ok(()),
            Some(&(attempt, partner)) => Err(Violation::NotWatched { attempt, partner }),
        }
    }

    /// Steps divide the batch; who is alone trains as configured.
    pub fn check_accumulate(
        &self,
        id: AttemptId,
        epoch: Epoch,
        steps: u32,
    ) -> Result<(), Violation> {
        let job = self.check_asked(id, epoch)?.job;
        self.check_steps(id, job, steps, self.pairs_of(id).next().is_none())
    }

    /// As [`Books::check_accumulate`], of an attempt that is to start.
    pub fn check_steps(
        &self,
        attempt: AttemptId,
        job: JobId,
        steps: u32,
        alone: bool,
    ) -> Result<(), Violation> {
        let training = self.job(job)?.spec.training;
        let divides = training.is_some_and(|training| training.steps().any(|s| s == steps));
        match steps {
            1 => Ok(()),
            _ if divides && !alone => Ok(()),
            _ => Err(Violation::WrongSteps { attempt, job, steps, alone }),
        }
    }

    /// Nobody stays alone with iterations in more steps than configured.
    pub fn check_in_steps(&self) -> Result<(), Violation> {
        let left = |&id: &AttemptId| {
            let attempt = &self.attempts[id.index()];
            attempt.is_evictable() && attempt.steps > 1 && self.pairs_of(id).next().is_none()
        };
        match self.step.in_steps.iter().copied().find(left) {
            None => Ok(()),
            Some(id) => {
                let attempt = &self.attempts[id.index()];
                let (job, steps) = (attempt.job, attempt.steps);
                Err(Violation::WrongSteps { attempt: id, job, steps, alone: true })
            }
        }
    }

    /// One of a pair is sent away only after enough bad samples, and never the guaranteed one where
    /// that makes a difference.
    pub fn check_revoked(&self, attempt: AttemptId) -> Result<(), Violation> {
        let needed = self.settings.pair_samples;
        let pairs = || self.pairs_of(attempt);
        let Some(((joined, host), _)) = pairs().find(|(_, pair)| pair.degraded) else {
            let Some(bad) = pairs().map(|(_, pair)| pair.bad).max() else {
                let reason = EvictReason::Degraded;
                return Err(Violation::EvictedWithoutCause { attempt, reason });
            };
            return Err(Violation::RevokedTooSoon { attempt, bad, needed });
        };
        let other = if joined == attempt { host } else { joined };
        let class = |id: AttemptId| {
            let job = self.attempts[id.index()].job;
            self.jobs[job.index()].spec.class
        };
        let ranked = self.shares.is_some_and(|rules| !rules.both_guaranteed);
        if ranked && class(attempt) == Class::Guaranteed && class(other) == Class::BestEffort {
            return Err(Violation::RevokedGuaranteed { attempt, partner: other });
        }
        Ok(())
    }

    /// After a round nobody goes on beside whom its samples speak against, if one of the two can be
    /// asked to leave.
    pub fn check_degraded_part(&self) -> Result<(), Violation> {
        let stays = |id: AttemptId| {
            let attempt = &self.attempts[id.index()];
            attempt.is_evictable() && attempt.spared_until <= self.now
        };
        // Two that were found side by side may both be guaranteed.
        let elastic = self.settings.capacity == CapacityMode::Elastic;
        let safe =
            |id: AttemptId| elastic && self.attempts[id.index()].charged == Class::Guaranteed;
        let parts = |one: AttemptId, other: AttemptId| {
            stays(one) && stays(other) && !(safe(one) && safe(other))
        };
        let mut degraded = self.pairs.iter().filter(|(_, pair)| pair.degraded);
        match degraded.find(|((joined, host), _)| parts(*joined, *host)) {
            None => Ok(()),
            Some((&(attempt, partner), pair)) => {
                Err(Violation::LeftDegraded { attempt, partner, bad: pair.bad })
            }
        }
    }
}
