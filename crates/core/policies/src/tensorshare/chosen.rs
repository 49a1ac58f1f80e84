//! Which pairs save most: a matching among waiting jobs and with those that run alone.

use super::TensorShare;
use crate::pairing::{Edge, Member, Past, gain, is_within, max_weight_matching, ratio};
use crate::tensorshare::{Partners, SharingMode};
use crate::whole_pairs::{fits, hosts_for, predicted, profiles, refuse_pair};
use deepshare_engine::{Draft, PairRefusal, Reason, State};
use deepshare_model::{AttemptId, JobId, ProfileClassId, Span};
use std::collections::BTreeMap;

/// A job that nobody has estimated counts as so much work left.
const UNKNOWN: Span = Span::from_secs(3_600);

/// Whom a waiting job is matched with.
#[derive(Clone, Copy)]
enum Match {
    /// A job that runs alone.
    Running(AttemptId),
    /// A waiting job.
    Waiting(JobId),
}

impl TensorShare {
    /// Serves the first waiting jobs, those of a pair together; then the rest on free GPUs. Pairs of
    /// the kinds `parted` in this round are not formed: what was seen of them is in the table only
    /// after it.
    pub(super) fn serve_chosen(&self, draft: &mut Draft<'_>, parted: &[[ProfileClassId; 2]]) {
        let window = self.first_waiting(draft);
        let free = draft.free_gpus() > 0;
        let (matches, refusals) = self.matches(draft.state(), (&window, free), parted);
        for &job in &window {
            if !draft.state().job(job).is_waiting() {
                continue;
            }
            let placed = match matches.get(&job) {
                Some(&Match::Running(host)) => self.join(draft, job, host),
                Some(&Match::Waiting(other)) if draft.state().job(other).is_waiting() => {
                    self.start_both(draft, [job, other])
                }
                _ => Err(Reason::NotConsidered),
            };
            // A pair that finds no GPUs may still be two jobs of which one does.
            if placed.is_err()
                && let Err(reason) = draft.place(job)
            {
                let refusal = refusals.get(&job).copied();
                let reason = refuse_pair(draft, refusal, reason);
                draft.refuse(job, reason);
            }
        }
        self.serve_rest(draft);
    }

    fn first_waiting(&self, draft: &Draft<'_>) -> Vec<JobId> {
        let mut walk = draft.state().walk(draft.pool());
        let next = std::iter::from_fn(|| walk.next(draft.state()));
        next.take(self.settings.window.max(1) as usize).collect()
    }

    /// Jobs behind the window take free GPUs only.
    fn serve_rest(&self, draft: &mut Draft<'_>) {
        let mut walk = draft.state().walk(draft.pool());
        let mut seen = 0;
        while draft.free_gpus() > 0
            && let Some(job) = walk.next(draft.state())
        {
            seen += 1;
            if seen > self.settings.window.max(1)
                && let Err(reason) = draft.place(job)
            {
                draft.refuse_key_of(job, reason);
                walk.skip_key();
            }
        }
        draft.refuse_rest(Reason::NotEnoughFree { need: 1, free: draft.free_gpus() });
    }

    fn join(&self, draft: &mut Draft<'_>, job: JobId, host: AttemptId) -> Result<(), Reason> {
        let state = draft.state();
        let jobs = [job, state.attempt(host).job];
        let Some(keeps) = predicted(state, jobs) else { return Err(Reason::NotConsidered) };
        let (terms, class) = (self.terms(state, jobs, keeps), state.job(job).spec.class);
        draft.share(job, class, host, terms)
    }

    /// Both of a pair, or neither.
    fn start_both(&self, draft: &mut Draft<'_>, [first, second]: [JobId; 2]) -> Result<(), Reason> {
        let before = draft.mark();
        draft.place(first)?;
        let Some(host) = draft.state().job(first).active() else {
            return Err(Reason::NotConsidered);
        };
        let joined = match draft.is_fresh(host) {
            true => self.join(draft, second, host),
            // Its devices are still being cleared: the other one may join once it runs.
            false => Err(Reason::NotConsidered),
        };
        if joined.is_err() {
            draft.undo_to(before);
        }
        joined
    }

    /// The best matching of the waiting jobs, and why those that could have had a partner have none.
    /// If no GPU is `free`, none of them can start beside another.
    fn matches(
        &self,
        state: &State,
        (window, free): (&[JobId], bool),
        parted: &[[ProfileClassId; 2]],
    ) -> (BTreeMap<JobId, Match>, BTreeMap<JobId, PairRefusal>) {
        let mut edges: Vec<Edge> = Vec::new();
        let mut hosts: BTreeMap<AttemptId, u32> = BTreeMap::new();
        let mut refusals = BTreeMap::new();
        let device = most_gpu_memory(state);
        let waiting = window.len() as u32;
        for (index, &job) in window.iter().enumerate() {
            let mut refuse = |refusal| _ = refusals.entry(job).or_insert(refusal);
            if self.settings.partners != Partners::Waiting {
                for (host, weight) in self.best_hosts(state, job, parted, &mut refuse) {
                    let next = waiting + hosts.len() as u32;
                    let b = *hosts.entry(host).or_insert(next);
                    edges.push(Edge { a: index as u32, b, weight });
                }
            }
            if self.settings.partners != Partners::Running {
                for (other, &second) in window.iter().enumerate().skip(index + 1) {
                    let pair = [job, second];
                    if !are_alike(state, pair, device) || is_one_of(parted, state, pair) {
                        continue;
                    }
                    match self.weigh(state, pair) {
                        Ok(weight) if weight > 0 => {
                            edges.push(Edge { a: index as u32, b: other as u32, weight });
                        }
                        Ok(_) => {}
                        Err(refusal) => refusal.into_iter().for_each(&mut refuse),
                    }
                }
            }
        }
        // What no device is there for need not be matched, and that is most of the cost.
        if hosts.is_empty() && !free {
            return (BTreeMap::new(), refusals);
        }
        let running: Vec<AttemptId> = {
            let mut by_vertex: Vec<_> =
                hosts.iter().map(|(&host, &vertex)| (vertex, host)).collect();
            by_vertex.sort_unstable();
            by_vertex.into_iter().map(|(_, host)| host).collect()
        };
        let mut matches = BTreeMap::new();
        for edge in max_weight_matching(&edges) {
            let first = window[edge.a as usize];
            match edge.b.checked_sub(waiting) {
                Some(host) => _ = matches.insert(first, Match::Running(running[host as usize])),
                None => {
                    let second = window[edge.b as usize];
                    matches.insert(first, Match::Waiting(second));
                    matches.insert(second, Match::Waiting(first));
                }
            }
        }
        (matches, refusals)
    }

    /// The running jobs with which a waiting one saves most.
    fn best_hosts(
        &self,
        state: &State,
        job: JobId,
        parted: &[[ProfileClassId; 2]],
        refuse: &mut impl FnMut(PairRefusal),
    ) -> Vec<(AttemptId, i64)> {
        let mut best: Vec<(i64, AttemptId)> = Vec::new();
        let hosts = hosts_for(state, job);
        for host in hosts.filter(|host| !is_one_of(parted, state, [job, host.job])) {
            match self.weigh(state, [job, host.job]) {
                Ok(weight) if weight > 0 => best.push((weight, host.id)),
                Ok(_) => {}
                Err(refusal) => refusal.into_iter().for_each(&mut *refuse),
            }
        }
        best.sort_unstable_by_key(|&(weight, id)| (std::cmp::Reverse(weight), id));
        best.truncate(self.settings.window.max(1) as usize);
        best.into_iter().map(|(weight, id)| (id, weight)).collect()
    }

    /// What a pair saves, GPU-microseconds; or why it is none, where there is something to say.
    fn weigh(&self, state: &State, jobs: [JobId; 2]) -> Result<i64, Option<PairRefusal>> {
        let keeps = predicted(state, jobs).ok_or(None)?;
        let [own, other] = profiles(state, jobs).ok_or(None)?;
        let left = jobs.map(|job| state.remaining(job).unwrap_or(UNKNOWN));
        let expected = [0, 1].map(|i| Member::new(left[i], keeps[i]));
        let mu = f64::from(self.settings.mu_milli) / 1_000.0;
        let saved = gain(state.job(jobs[0]).gpus(), mu, expected[0], expected[1]);
        let weight = (saved * 1e6).clamp(0.0, 1e18) as i64;
        if self.settings.mode == SharingMode::Always {
            return Ok(weight);
        }
        // What is admitted is what holds with the chance asked for.
        let (table, chance) = (state.retentions(), self.settings.chance);
        let upper =
            [(own, other), (other, own)].map(|(own, other)| table.slowdown(own, other, chance));
        let [Some(own), Some(other)] = upper else { return Err(None) };
        let feared =
            [Member { slowdown: own, ..expected[0] }, Member { slowdown: other, ..expected[1] }];
        let limits = self.limits(state, jobs);
        let within = |of: usize| {
            let (own, other) = (feared[of], feared[1 - of]);
            let past = past(state, jobs[of]);
            is_within(ratio(self.settings.check, past, own, other), limits[of])
                // Who has been slowed down before has less to give.
                && is_within(ratio(super::SlowdownCheck::TimeAware, past, own, other), limits[of])
        };
        match within(0) && within(1) {
            true => Ok(weight),
            false => Err(Some(self.refusal(state, jobs, keeps))),
        }
    }
}

/// What a job has run and done so far.
pub(super) fn past(state: &State, job: JobId) -> Past {
    let (ran, done) = (state.served(job), state.progress(job));
    Past { ran_s: ran.as_secs_f64(), worked_s: done.as_secs_f64() }
}

/// Whether two jobs are a pair of one of these kinds.
fn is_one_of(kinds: &[[ProfileClassId; 2]], state: &State, jobs: [JobId; 2]) -> bool {
    let kind = profiles(state, jobs);
    kind.is_some_and(|[one, other]| kinds.contains(&[one, other]) || kinds.contains(&[other, one]))
}

/// The most memory that any device has, where nodes say.
fn most_gpu_memory(state: &State) -> Option<u32> {
    let memory = state.nodes().iter().map(|node| node.spec.gpu_memory_mib);
    memory.filter(|&mib| mib > 0).max()
}

/// Whether two waiting jobs could share any devices at all, of which the largest have so much memory.
fn are_alike(state: &State, jobs: [JobId; 2], device: Option<u32>) -> bool {
    let [one, other] = jobs.map(|job| &state.job(job).spec);
    let needs = [one, other].map(|spec| spec.demand.gpu_memory_mib);
    let fit =
        device.is_none_or(|most| needs[0] > 0 && fits(needs[1], most.saturating_sub(needs[0])));
    one.sharing.consent
        && other.sharing.consent
        && one.sharing.trust_domain == other.sharing.trust_domain
        && one.demand.gpus == other.demand.gpus
        && one.demand.layout == other.demand.layout
        && one.demand.gpu_type == other.demand.gpu_type
        && fit
}
