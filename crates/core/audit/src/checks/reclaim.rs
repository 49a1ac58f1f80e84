//! Who is evicted for whom: nobody in vain, nobody too soon, and nobody too often if others can go.

use crate::auditor::ReclaimRules;
use crate::books::Books;
use crate::books::attempt::Attempt;
use crate::books::job::Job;
use crate::books::node::Node;
use crate::feasible::Offer;
use crate::violation::Violation;
use deepshare_engine::{CapacityMode, Placement, Placer, Preemption};
use deepshare_model::{AttemptId, Class, Devices, GpuTypeId, JobId, Resources, Time};

impl Books {
    /// A victim chosen for a job: the job is guaranteed, and the victim's time has come.
    pub fn check_reclaim(
        &self,
        id: AttemptId,
        preemption: Preemption,
        rules: Option<ReclaimRules>,
    ) -> Result<(), Violation> {
        let beneficiary = preemption.beneficiary;
        let elastic = self.settings.capacity == CapacityMode::Elastic;
        if elastic && self.job(beneficiary)?.spec.class == Class::BestEffort {
            return Err(Violation::EvictedForBestEffort { attempt: id, beneficiary });
        }
        let from = self.victim_from(self.attempt(id)?);
        if rules.is_some() && from > self.now {
            return Err(Violation::PreemptedTooSoon { attempt: id, from });
        }
        Ok(())
    }

    /// From when an attempt may be a victim.
    fn victim_from(&self, attempt: &Attempt) -> Time {
        let tenant = self.jobs[attempt.job.index()].spec.tenant;
        let least = self.tenants.get(tenant).map(|spec| spec.min_run_time).unwrap_or_default();
        attempt.spared_until.max(attempt.ran_since.unwrap_or(self.now) + least)
    }

    /// A job is placed for which others were evicted: each of them was needed.
    pub fn check_victims(
        &self,
        job: JobId,
        placement: &Placement,
        rules: Option<ReclaimRules>,
    ) -> Result<(), Violation> {
        // With hard quotas a victim may make room in its tenant's quota instead.
        if self.settings.capacity != CapacityMode::Elastic {
            return Ok(());
        }
        let reclaims = &self.step.reclaims;
        let Some(at) = reclaims.iter().position(|reclaim| reclaim.beneficiary == job) else {
            return Ok(());
        };
        let (beneficiary, victims) = (job, &reclaims[at].victims);
        for &victim in victims {
            if !self.makes_room(victim, job, placement) {
                return Err(Violation::VictimNotNeeded { victim, beneficiary });
            }
        }
        // Only the default placer's shapes are searched for victims in full.
        let Some(rules) = rules.filter(|_| self.settings.placer == Placer::Consolidate) else {
            return Ok(());
        };
        let before: Vec<AttemptId> =
            reclaims[..at].iter().flat_map(|reclaim| reclaim.victims.iter().copied()).collect();
        let entry = self.job(job)?;
        for &victim in victims {
            let gone =
                |id: AttemptId| before.contains(&id) || (id != victim && victims.contains(&id));
            if self.could_be_placed(entry, gone) {
                return Err(Violation::VictimNotNeeded { victim, beneficiary });
            }
        }
        let shielded = |id: AttemptId| self.jobs[self.attempts[id.index()].job.index()].shielded;
        if let Some(&victim) = victims.iter().find(|&&victim| shielded(victim)) {
            let gone = |id: AttemptId| {
                before.contains(&id) || (!shielded(id) && self.was_evictable(id, at))
            };
            return match self.could_be_placed(entry, gone) {
                true => Err(Violation::ShieldedNotSpared { victim, beneficiary }),
                false => Ok(()),
            };
        }
        let often = |id: AttemptId| self.times_preempted(id);
        let cap = rules.preemption_cap as usize;
        let tired = victims.iter().find(|&&victim| cap > 0 && often(victim) >= cap);
        if let Some(&victim) = tired {
            let gone = |id: AttemptId| {
                let spared = shielded(id) || often(id) >= cap;
                before.contains(&id) || (!spared && self.was_evictable(id, at))
            };
            if self.could_be_placed(entry, gone) {
                let times = often(victim);
                return Err(Violation::VictimNotSpared { victim, beneficiary, times });
            }
        }
        Ok(())
    }

    /// Everyone in whose favour somebody was evicted has got devices.
    pub fn check_served(&self) -> Result<(), Violation> {
        match self.step.reclaims.iter().find(|reclaim| !reclaim.served) {
            None => Ok(()),
            Some(reclaim) => {
                let (beneficiary, victims) = (reclaim.beneficiary, reclaim.victims.len());
                Err(Violation::EvictedForNobody { beneficiary, victims })
            }
        }
    }

    /// No guaranteed job within its quota waits that free devices would place, or free ones and
    /// those of whoever may be evicted. A round has just been held.
    pub fn check_nobody_left_waiting(&self) -> Result<(), Violation> {
        if self.settings.capacity != CapacityMode::Elastic
            || self.settings.placer != Placer::Consolidate
        {
            return Ok(());
        }
        let mut seen: Vec<(&Job, [bool; 2])> = Vec::new();
        for (index, job) in self.jobs.iter().enumerate() {
            if !job.waits(self.now) || job.spec.class != Class::Guaranteed {
                continue;
            }
            let like = |other: &&(&Job, _)| {
                let (a, b) = (&other.0.spec, &job.spec);
                (a.tenant, a.demand) == (b.tenant, b.demand) && other.0.pool == job.pool
            };
            let fits = match seen.iter().find(like) {
                Some(&(_, fits)) => fits,
                None => {
                    let freely = self.could_be_placed(job, |_| false);
                    let evictable = |id: AttemptId| self.is_evictable(id);
                    let fits = [freely, self.could_be_placed(job, evictable)];
                    seen.push((job, fits));
                    fits
                }
            };
            let id = JobId::from_index(index);
            match fits {
                [true, _] => {
                    return Err(Violation::LeftWaiting { job: id, with: "free devices" });
                }
                [false, true] => {
                    let with = "devices of best-effort jobs";
                    return Err(Violation::LeftWaiting { job: id, with });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn times_preempted(&self, id: AttemptId) -> usize {
        let job = &self.jobs[self.attempts[id.index()].job.index()];
        job.preempted_within_hour(self.now)
    }

    /// True if the attempt may be evicted for a guaranteed job now, and is worth looking at.
    fn is_evictable(&self, id: AttemptId) -> bool {
        let attempt = &self.attempts[id.index()];
        attempt.is_evictable() && self.may_go(attempt) && !self.is_tangled(id)
    }

    /// True if the attempt was found on some of the devices of another one, and not on all. Pairs that
    /// policies form are never like that, and no search for victims has to see through them.
    fn is_tangled(&self, id: AttemptId) -> bool {
        let slices = |id: AttemptId| &self.attempts[id.index()].placement;
        let partner = |(joined, host)| if joined == id { host } else { joined };
        let mut partners = self.pairs_of(id).map(|(pair, _)| partner(pair));
        partners.any(|partner| {
            let (ours, theirs) = (slices(id), slices(partner));
            ours.len() != theirs.len() || ours.iter().any(|slice| !theirs.contains(slice))
        })
    }

    /// True if the attempt could be evicted when the victims of a reclaim were chosen.
    fn was_evictable(&self, id: AttemptId, at: usize) -> bool {
        let chosen = |reclaim: &crate::books::Reclaim| reclaim.victims.contains(&id);
        let attempt = &self.attempts[id.index()];
        let since = self.step.reclaims[at..].iter().any(chosen);
        self.is_evictable(id) || (since && self.may_go(attempt))
    }

    fn may_go(&self, attempt: &Attempt) -> bool {
        attempt.charged == Class::BestEffort && self.victim_from(attempt) <= self.now
    }

    /// A victim makes room with its devices, or with CPU and memory of a node it shares.
    fn makes_room(&self, victim: AttemptId, job: JobId, placement: &Placement) -> bool {
        let host = self.jobs[job.index()].spec.demand.per_gpu != Resources::default();
        self.attempts[victim.index()].placement.iter().any(|theirs| {
            let shared = placement.iter().filter(|ours| ours.node == theirs.node);
            shared
                .into_iter()
                .any(|ours| host || !ours.devices.intersect(theirs.devices).is_empty())
        })
    }

    /// True if the job fits within its quota on what is free, were some attempts gone.
    fn could_be_placed(&self, job: &Job, gone: impl Fn(AttemptId) -> bool) -> bool {
        self.types_for(job).any(|gpu_type| {
            self.within_quota(job, gpu_type)
                && self.fits(job, gpu_type, |id, node| {
                    let members = self.sites.left(&job.spec.demand, id);
                    Offer { members, ..self.offer_without(node, &gone) }
                })
        })
    }

    fn within_quota(&self, job: &Job, gpu_type: GpuTypeId) -> bool {
        let class = job.spec.class;
        self.tenants.lineage(job.spec.tenant).into_iter().all(|tenant| {
            let used = self.tenants.used_by_class(tenant, class, gpu_type);
            used + job.gpus() <= self.tenants.cap(tenant, class, gpu_type)
        })
    }

    fn offer_without(&self, node: &Node, gone: &impl Fn(AttemptId) -> bool) -> Offer {
        let mut devices = node.usable();
        let (mut cpu, mut memory) = (0u64, 0u64);
        for device in 0..node.spec.gpus as usize {
            // Of two that share a device, both have to go before it is free.
            let stay = || node.holders[device].iter().copied().filter(|&id| !gone(id));
            if stay().next().is_some() || node.claimant[device].is_some() {
                devices = devices.minus(Devices(1 << device));
            }
            for id in stay().chain(node.claimant[device]) {
                let each = self.attempts[id.index()].per_gpu;
                cpu = cpu.saturating_add(each.cpu_milli);
                memory = memory.saturating_add(each.memory_mib);
            }
        }
        let all = node.spec.capacity;
        let host = Resources {
            cpu_milli: all.cpu_milli.saturating_sub(cpu),
            memory_mib: all.memory_mib.saturating_sub(memory),
        };
        Offer { devices, host, members: u32::MAX }
    }
}
