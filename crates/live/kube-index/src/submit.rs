//! Pods into jobs: read, refused with a reason, gathered into gangs, submitted, or taken up where an
//! earlier scheduler left them.

use crate::accounting::requests;
use crate::action::Action;
use crate::devices::GpuKind;
use crate::gangs::{group_of, title};
use crate::index::{Index, Named};
use crate::jobs::{GroupKey, JobEntry, Member, Uid};
use crate::pods::{PodFacts, Wish};
use crate::read;
use crate::refusal;
use crate::tenants::class_for;
use crate::watched::Pod;
use deepshare_engine::Event;
use deepshare_kube_api::DeviceSlot;
use deepshare_model::{
    Class, Demand, GpuTypeId, JobId, JobSpec, Layout, ProfileClassId, Resources, Sharing, Time,
    TrustDomainId, UserId,
};
use std::sync::Arc;

impl Index {
    /// Reads what matters of a pod; `None`: a pod that is no business of ours beyond the room it takes.
    pub(crate) fn read_pod(&mut self, pod: &Arc<Pod>) -> Option<PodFacts> {
        let ours = *pod.spec.scheduler_name == *self.config.scheduler;
        let takes = requests(pod);
        let gpus = read::gpus(pod, &takes);
        if !ours && gpus.is_none() {
            return None;
        }
        let mut facts = read::facts(pod, ours, &takes, gpus);
        if ours && !facts.is_terminal() {
            // What is fixed once the last gate is open is read once.
            let known = self.pods.get(&facts.uid).filter(|known| !known.gated);
            facts.wish = known
                .and_then(|known| known.wish.clone())
                .filter(|wish| wish.refusal.is_none())
                .or_else(|| Some(Arc::new(self.read_wish(pod, facts.kind))));
        }
        if ours && facts.node.is_none() && facts.kind.is_some() {
            facts.whole = Some(pod.clone());
        }
        Some(facts)
    }

    fn read_wish(&mut self, pod: &Pod, kind: Option<GpuKind>) -> Wish {
        let (mut wish, mut refusal) = read::wish(pod, kind);
        match group_of(pod) {
            Ok(group) => wish.group = group,
            Err(why) => refusal = refusal.or(Some(why)),
        }
        if let Some(profile) = wish.profile.as_deref()
            && !self.config.profiles.iter().any(|known| known == profile)
        {
            // A profile that nobody has measured is no profile: it shares with nobody.
            wish.profile = None;
        }
        let in_gang = wish.group.is_some();
        // What cannot be served at all comes before what is written wrongly.
        let unserved = refusal::refusal(pod, in_gang);
        let unserved = unserved.map(|refusal| (refusal.kind.to_string(), refusal.message));
        wish.refusal = unserved.or(refusal).or_else(|| self.places.volume_refusal(pod));
        if let Some(kind) = kind.filter(|_| wish.refusal.is_none()) {
            wish.site = self.places.site_of(pod, kind);
        }
        wish
    }

    /// Finds a pod's place: a member of a job, a newcomer, somebody else's.
    pub(crate) fn place_pod(&mut self, now: Time, uid: &Uid) {
        if let Some(&job) = self.jobs.by_pod.get(uid) {
            return self.observe(now, job, uid);
        }
        let Some(pod) = self.pods.get(uid) else { return };
        if let Some(node) = pod.node.clone() {
            let gpus = if pod.is_terminal() { 0 } else { pod.gpus };
            let slots = decided(pod);
            let known = self.strangers.contains(uid);
            let decision = pod.decision.clone().filter(|_| pod.ours && gpus > 0 && !known);
            // Withheld until somebody answers for it.
            self.node_entry(&node).set_foreign(uid, gpus, &slots);
            self.touched.insert(node);
            return match decision {
                Some(decision) => self.orphan(now, uid, &decision),
                None => self.forget_orphan(uid),
            };
        }
        if !pod.ours || pod.gated || pod.deleting || pod.is_terminal() {
            return;
        }
        self.newcomer(now, uid);
    }

    /// A pod that waits to be scheduled and belongs to no job yet.
    fn newcomer(&mut self, now: Time, uid: &Uid) {
        let (verdict, group, lineage) = {
            let pod = &self.pods[uid];
            let Some(wish) = &pod.wish else { return };
            let verdict = wish.refusal.clone().or_else(|| self.admission(pod).err());
            let group = wish.group.as_ref();
            let group = group.map(|group| self.groups.resolve(group, &pod.namespace)).transpose();
            let (verdict, group) = match group {
                Ok(group) => (verdict, group.flatten()),
                Err(why) => (verdict.or(Some(why)), None),
            };
            let group = group.map(|group| (pod.namespace.clone(), group));
            (verdict, group, self.lineage_of(pod))
        };
        if let Some((reason, message)) = verdict {
            return self.refuse(uid, &reason, &message);
        }
        if let Some((namespace, group)) = group {
            let key: GroupKey = (namespace, group.name);
            if let Some(&job) = self.jobs.by_group.get(&key) {
                if self.wants_heir(job) {
                    return self.succeed(now, job, uid);
                }
            } else {
                let gathered = self.gathering.entry(key.clone()).or_default();
                if !gathered.contains(uid) {
                    gathered.push(uid.clone());
                }
                if gathered.len() < group.size as usize {
                    let message = format!(
                        "waits for its gang: {} of {} pods are there",
                        gathered.len(),
                        group.size
                    );
                    let first = gathered.len() == 1;
                    self.say(uid, "GangIncomplete", &message);
                    if first {
                        self.announce(uid, "GangIncomplete", &message, false);
                    }
                    return;
                }
                let pods = self.gathering.remove(&key).unwrap_or_default();
                return self.submit(now, pods, Some(key));
            }
        } else if let Some(lineage) = lineage {
            let jobs = self.jobs.by_lineage.get(&lineage);
            let job = jobs.and_then(|jobs| jobs.iter().find(|&&job| self.wants_heir(job)).copied());
            if let Some(job) = job {
                return self.succeed(now, job, uid);
            }
        }
        self.submit(now, vec![uid.clone()], None);
    }

    /// A job without an attempt: goes on waiting, is held, or is over.
    pub(crate) fn review_waiting(&mut self, now: Time, job: JobId) {
        let entry = self.jobs.get(job);
        let held = entry.held_until;
        let gone = |member: &Member| {
            let pod = member.pod.as_deref().and_then(|uid| self.pods.get(uid));
            pod.is_none_or(|pod| pod.deleting || pod.is_terminal())
        };
        let lacking = entry.members.iter().any(gone);
        let empty = entry.members.iter().all(gone);
        match (held, lacking) {
            (Some(_), false) => {
                self.jobs.get_mut(job).held_until = None;
                self.jobs.forget_successor(job);
                self.events.push(Event::Unheld { job });
            }
            (Some(until), true) if until <= now => {
                self.events.push(Event::Cancelled { job });
                self.dissolve(now, job);
            }
            (None, true) if empty => {
                self.events.push(Event::Cancelled { job });
                self.close(now, job);
            }
            (None, true) => {
                self.events.push(Event::Held { job });
                self.hold(now, job);
            }
            _ => {}
        }
    }

    /// Gives up a job whose members did not all come: those that are there start anew.
    pub(crate) fn dissolve(&mut self, now: Time, job: JobId) {
        let pods: Vec<Uid> =
            self.jobs.get(job).members.iter().filter_map(|member| member.pod.clone()).collect();
        self.close(now, job);
        for uid in pods {
            self.place_pod(now, &uid);
        }
    }

    /// Forgets a job that is over. Pods that waited to take a place in it are on their own.
    pub(crate) fn close(&mut self, now: Time, job: JobId) {
        let entry = self.jobs.get_mut(job);
        let heirs = std::mem::take(&mut entry.heirs);
        if !entry.over {
            self.places.leave_site(entry.site);
        }
        self.jobs.close(job);
        self.bind_verdict.remove(&job);
        self.history.remove(&job);
        self.why.unblock(job);
        for uid in heirs {
            self.jobs.by_pod.remove(&uid);
            self.place_pod(now, &uid);
        }
    }

    /// Why a pod may not be a job of its namespace's tenant.
    pub(crate) fn admission(&self, pod: &PodFacts) -> Result<Class, (String, String)> {
        let Some(wish) = &pod.wish else { return Ok(Class::Guaranteed) };
        let (_, quota) = self.tenants.of(&pod.namespace).map_err(|_| {
            let message = format!(
                "namespace {} belongs to no tenant: name it in a TenantQuota",
                pod.namespace
            );
            ("NoTenant".to_owned(), message)
        })?;
        let class = class_for(quota, wish.class.as_deref())
            .map_err(|message| ("ClassNotAllowed".to_owned(), message))?;
        if wish.never_preempts && class == Class::Guaranteed {
            let message = "preemptionPolicy Never is not served for guaranteed pods, which reclaim \
                           what is lent: make the pod best-effort, or drop the policy";
            return Err(("NeverPreempts".to_owned(), message.to_owned()));
        }
        Ok(class)
    }

    pub(crate) fn refuse(&mut self, uid: &Uid, reason: &str, message: &str) {
        self.refused.insert(uid.clone());
        if self.say(uid, reason, message) {
            self.announce(uid, "Refused", message, true);
        }
    }

    /// Writes the condition of a pod that the engine does not know; true if it is news.
    pub(crate) fn say(&mut self, uid: &Uid, reason: &str, message: &str) -> bool {
        let Some(pod) = self.pods.get_mut(uid) else { return false };
        let same = pod.said.as_ref().is_some_and(|(r, m)| (&**r, &**m) == (reason, message));
        if same {
            return false;
        }
        pod.said = Some((reason.into(), message.into()));
        let pod = pod.pod_ref();
        let (reason, message) = (reason.to_owned(), message.to_owned());
        self.actions.push(Action::Explain { pod, reason, message });
        true
    }

    /// Looks again at pods that were refused: quotas have changed.
    pub(crate) fn recheck_refused(&mut self, now: Time) {
        for uid in std::mem::take(&mut self.refused) {
            self.look_again(now, &uid);
        }
    }

    /// Reads anew what a refused pod wishes, as far as others decide about it, and places it.
    fn look_again(&mut self, now: Time, uid: &Uid) {
        let refused =
            |pod: &&PodFacts| pod.wish.as_ref().is_some_and(|wish| wish.refusal.is_some());
        let read = self.pods.get(uid).filter(refused);
        let read = read.and_then(|pod| Some((pod.whole.clone()?, pod.kind)));
        if let Some((pod, kind)) = read {
            let wish = Arc::new(self.read_wish(&pod, kind));
            if let Some(facts) = self.pods.get_mut(uid) {
                facts.wish = Some(wish);
                facts.site().into_iter().for_each(|site| self.places.use_site(site));
            }
        }
        self.place_pod(now, uid);
    }

    /// Looks again at pods of a namespace that were refused: a PodGroup or a claim has come.
    pub(crate) fn recheck_namespace(&mut self, now: Time, namespace: &str) {
        let concerned =
            |uid: &&Uid| self.pods.get(*uid).is_some_and(|p| *p.namespace == *namespace);
        let pods: Vec<Uid> = self.refused.iter().filter(concerned).cloned().collect();
        for uid in pods {
            self.refused.remove(&uid);
            self.look_again(now, &uid);
        }
    }

    /// Submits pods as one job.
    fn submit(&mut self, now: Time, pods: Vec<Uid>, group: Option<GroupKey>) {
        if let Some(job) = self.enter(pods, group) {
            self.review(now, job);
        }
    }

    /// Makes pods one job and tells the engine; `None` if they are refused, each with the reason.
    pub(crate) fn enter(&mut self, mut pods: Vec<Uid>, group: Option<GroupKey>) -> Option<JobId> {
        let order = |uid: &Uid| {
            let pod = &self.pods[uid];
            (pod.created, pod.name.clone())
        };
        pods.sort_by_key(order);
        let first = &self.pods[&pods[0]];
        if let Some(other) = pods.iter().find(|uid| !alike(first, &self.pods[*uid])) {
            let message = format!(
                "the pods of a gang have to ask for the same GPUs, class, volume claims and kind of node: \
                 {} and {} do not",
                first.name, self.pods[other].name
            );
            for uid in &pods {
                self.refuse(uid, "UnequalGang", &message);
            }
            return None;
        }
        let spec = self.spec_of(&pods)?;
        let id = self.jobs.next_id();
        let first = &self.pods[&pods[0]];
        let (Some(wish), Some(kind)) = (&first.wish, first.kind) else { return None };
        let name = match &group {
            Some((_, name)) => title(name).to_owned(),
            None => first.name.to_string(),
        };
        let entry = JobEntry {
            namespace: first.namespace.clone(),
            name,
            tenant: spec.tenant,
            submitted: spec.submit,
            kind,
            site: wish.site,
            gpus: first.gpus,
            lineage: if group.is_some() { None } else { self.lineage_of(first) },
            group: group.clone(),
            members: pods.iter().map(|uid| Member::new(uid.clone())).collect(),
            run: None,
            heirs: Vec::new(),
            held_until: None,
            shielded: false,
            cancelled: false,
            over: false,
        };
        let run_time = wish.run_time;
        // What is the same in every term of leadership, and never again once the job is over.
        let unique = wish.owner.as_ref().filter(|_| pods.len() > 1).unwrap_or(&first.uid).clone();
        self.places.use_site(wish.site);
        self.jobs.push(entry);
        for uid in pods {
            self.jobs.by_pod.insert(uid, id);
        }
        if let Some(group) = group {
            self.jobs.by_group.insert(group, id);
        }
        self.named.push(Named::Job(id, format!("{}#{unique}", self.job_name(id))));
        self.tell_sites();
        let (user, tenant) = (spec.user, spec.tenant);
        self.events.push(Event::Submitted { job: id, spec });
        if let Some(run_time) = run_time.or_else(|| self.means.estimate(user, tenant)) {
            self.events.push(Event::Estimated { job: id, run_time });
        }
        self.why.look_at(id);
        Some(id)
    }

    /// What a job of these pods asks for.
    fn spec_of(&mut self, pods: &[Uid]) -> Option<JobSpec> {
        let first = &self.pods[&pods[0]];
        let class = self.admission(first).ok()?;
        let (tenant, quota) = self.tenants.of(&first.namespace).ok()?;
        let wish = first.wish.as_ref()?;
        let sharing = &quota.spec.colocation;
        let allowed = sharing.allowed && (class == Class::BestEffort || sharing.guaranteed);
        let domain = sharing.trust_domain.clone();
        let domain = domain.unwrap_or_else(|| format!("tenant/{}", self.tenants.name(tenant)));
        // An MPS server serves one user at a time: pairs are of one, and of a known one.
        let consent = first.kind == Some(GpuKind::Slot)
            && wish.colocation
            && allowed
            && wish.run_as.is_some()
            && pods.len() == 1;
        let domain = format!("{domain}#{}", wish.run_as.unwrap_or(-1));
        let most = pods.iter().fold(Resources::default(), |most, uid| {
            let host = self.pods[uid].asked_host();
            Resources {
                cpu_milli: most.cpu_milli.max(host.cpu_milli),
                memory_mib: most.memory_mib.max(host.memory_mib),
            }
        });
        let each = |amount: u64| amount.div_ceil(u64::from(first.gpus.max(1)));
        let share = |all: Resources| Resources {
            cpu_milli: each(all.cpu_milli),
            memory_mib: each(all.memory_mib),
        };
        let submit = match first.decision.as_ref().and_then(|d| parse_time(&d.submitted)) {
            Some(before) => before,
            None => Time(u64::try_from(first.created).unwrap_or(0).saturating_mul(1_000_000)),
        };
        let profile = wish
            .profile
            .as_deref()
            .and_then(|profile| self.config.profiles.iter().position(|known| known == profile));
        let (site, gpus, priority, gpu_memory_mib, slowdown_limit_milli, recommended, run_time) = (
            wish.site,
            first.gpus,
            wish.priority,
            wish.gpu_memory_mib,
            wish.slowdown_limit_milli,
            wish.recommended.map(share),
            wish.run_time,
        );
        let (gpu_type, user) = (wish.gpu_type.clone(), first.namespace.clone());
        let gpu_type = gpu_type.map(|name| {
            let (id, new) = self.types.intern(&name);
            if new {
                self.named.push(Named::GpuType(id, name.to_string()));
            }
            GpuTypeId(u16::try_from(id).unwrap_or(u16::MAX))
        });
        let (id, new) = self.users.intern(&user);
        if new {
            self.named.push(Named::User(UserId(id), user.to_string()));
        }
        Some(JobSpec {
            tenant,
            user: UserId(id),
            class,
            priority,
            submit,
            demand: Demand {
                gpus: gpus * pods.len() as u32,
                layout: Layout::Members(gpus),
                gpu_type,
                gpu_memory_mib,
                per_gpu: share(most),
                site: Some(site),
            },
            sharing: Sharing {
                consent,
                trust_domain: TrustDomainId(self.domains.intern(&domain).0),
                slowdown_limit_milli,
            },
            profile: profile.map(ProfileClassId::from_index),
            training: None,
            recommended,
            requested_time: run_time,
        })
    }
}

/// The devices that a pod's decision names.
pub(crate) fn decided(pod: &PodFacts) -> Vec<DeviceSlot> {
    let containers = pod.decision.iter().flat_map(|decision| &decision.containers);
    containers.flat_map(|container| container.devices.iter().cloned()).collect()
}

fn alike(one: &PodFacts, other: &PodFacts) -> bool {
    let key = |pod: &PodFacts| {
        let wish = pod.wish.as_ref()?;
        Some((pod.kind, pod.gpus, wish.class.clone(), wish.site, wish.gpu_type.clone()))
    };
    key(one) == key(other)
}

pub(crate) fn parse_time(text: &str) -> Option<Time> {
    text.parse().ok().and_then(read::instant)
}
