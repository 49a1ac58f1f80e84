//! Attempts on the same devices: how fast each really is, and what telemetry reads of them.

use super::{Truth, World};
use crate::queue::Due;
use crate::telemetry::Pair;
use deepshare_engine::{Event, PairBar, Placement};
use deepshare_metrics::SharingLevels;
use deepshare_model::{AttemptId, JobId, Retention, Time};

impl World {
    pub(super) fn memory_of(&self, placement: &Placement) -> u32 {
        let memory = placement.iter().map(|slice| self.device_memory[slice.node.index()]);
        memory.min().unwrap_or(0)
    }

    /// An attempt was started on devices of another, and both are to be watched.
    pub(super) fn pair(&mut self, now: Time, attempt: AttemptId, partner: AttemptId, bar: PairBar) {
        self.pairs.insert((attempt, partner), (bar, None));
        self.attempts[attempt.index()].partners.push(partner);
        self.attempts[partner.index()].partners.push(attempt);
        self.meet(now, attempt);
    }

    /// What iterations in so many steps leave of a job's speed.
    pub(super) fn pace_in(&self, job: JobId, steps: u32) -> Retention {
        self.training[job.index()].map_or(Retention::WHOLE, |training| training.pace(steps))
    }

    /// An attempt does its iterations in another number of steps: at once, where a real one would end
    /// the iteration under way.
    pub(super) fn accumulate(&mut self, now: Time, attempt: AttemptId, steps: u32) {
        let paced = self.pace_in(self.attempts[attempt.index()].job, steps);
        self.attempts[attempt.index()].paced = paced;
        if self.attempts[attempt.index()].truth == Truth::Running {
            self.change_speed(now, attempt);
        }
    }

    /// A running attempt and its running partners go on at the speed they leave each other.
    pub(super) fn meet(&mut self, now: Time, attempt: AttemptId) {
        if self.attempts[attempt.index()].truth != Truth::Running {
            return;
        }
        let partners = self.attempts[attempt.index()].partners.clone();
        let running = |&id: &AttemptId| self.attempts[id.index()].truth == Truth::Running;
        for partner in partners.into_iter().filter(running).collect::<Vec<_>>() {
            self.change_speed(now, partner);
            self.change_speed(now, attempt);
            self.note_company(attempt, partner);
            let pair = match self.pairs.contains_key(&(attempt, partner)) {
                true => (attempt, partner),
                false => (partner, attempt),
            };
            self.watch(now, pair);
        }
    }

    fn note_company(&mut self, one: AttemptId, other: AttemptId) {
        let [one, other] = [one, other].map(|id| self.attempts[id.index()].job);
        for (job, beside) in [(one, other), (other, one)] {
            let met = &mut self.records[job.index()].beside;
            if !met.contains(&beside) {
                met.push(beside);
            }
        }
    }

    /// An attempt stops: its partners have the devices to themselves.
    pub(super) fn leave(&mut self, now: Time, attempt: AttemptId) {
        self.count(attempt);
        for partner in std::mem::take(&mut self.attempts[attempt.index()].partners) {
            self.pairs.remove(&(attempt, partner));
            self.pairs.remove(&(partner, attempt));
            self.attempts[partner.index()].partners.retain(|&other| other != attempt);
            if self.attempts[partner.index()].truth == Truth::Running {
                self.change_speed(now, partner);
            }
        }
    }

    /// Works out an attempt's speed anew, and when it will be done.
    fn change_speed(&mut self, now: Time, attempt: AttemptId) {
        let entry = &self.attempts[attempt.index()];
        let beside = entry.partners.iter().map(|partner| &self.attempts[partner.index()]);
        let beside = beside.filter(|other| other.truth == Truth::Running);
        let interference = self.interference.as_ref();
        let kept = beside.map(|other| {
            interference.map_or(Retention::WHOLE, |truth| truth.retention(entry.job, other.job))
        });
        let slowest = kept.min();
        let rate = entry.paced.times(slowest.unwrap_or(Retention::WHOLE));
        let pace = &mut self.attempts[attempt.index()].pace;
        if (pace.rate, pace.in_company) == (rate, slowest.is_some()) {
            return;
        }
        pace.change(now, rate, slowest.is_some());
        let (at, token) = (pace.ends_at(), pace.token);
        self.queue.push(at.max(now) + self.finish_lag, Due::WorkDone(attempt, token));
        self.count(attempt);
    }

    /// Begins to read a pair of which both run.
    fn watch(&mut self, now: Time, (newer, host): (AttemptId, AttemptId)) {
        let Some(interference) = &self.interference else { return };
        let attempts = [newer, host];
        let jobs = attempts.map(|id| self.attempts[id.index()].job);
        let Some((bar, watched)) = self.pairs.get_mut(&(newer, host)) else { return };
        let bar = (*bar, self.pair_slack_ppm);
        let mut theirs = self.attempts[newer.index()].partners.iter();
        let nth = theirs.position(|&partner| partner == host).unwrap_or(0) as u64;
        let mut pair = Pair::new(interference, attempts, jobs, bar, (self.seed, nth), now);
        let reading = pair.next(interference.sample_period, interference.sample_noise);
        self.queue.push(reading.at, Due::Reads(newer, host));
        *watched = Some((pair, reading));
    }

    /// Telemetry reads a pair, and tells if there is news.
    pub(crate) fn read_pair(&mut self, now: Time, newer: AttemptId, host: AttemptId) {
        let Some(interference) = &self.interference else { return };
        let Some((_, Some((pair, reading)))) = self.pairs.get_mut(&(newer, host)) else { return };
        if reading.at != now {
            return;
        }
        let (attempts, seen) = (pair.attempts, reading.seen);
        *reading = pair.next(interference.sample_period, interference.sample_noise);
        self.queue.push(reading.at, Due::Reads(newer, host));
        if let Some(retentions) = seen {
            self.tell(now, newer, Event::PairSampled { attempts, retentions, taken: now });
        }
    }

    /// Brings what the meters count in step with an attempt. What a pair uses of its devices counts
    /// with the younger of the two.
    pub(super) fn count(&mut self, attempt: AttemptId) {
        let entry = &self.attempts[attempt.index()];
        let running = |id: AttemptId| self.attempts[id.index()].truth == Truth::Running;
        let mut levels = SharingLevels::default();
        if running(attempt) {
            let gpus = u64::from(self.records[entry.job.index()].gpus);
            levels.working_ppm = gpus * u64::from(entry.pace.rate.ppm());
            let partner = entry.partners.iter().copied().find(|&partner| running(partner));
            if partner.is_none_or(|partner| partner < attempt) {
                let both = [Some(attempt), partner];
                levels.shared = if partner.is_some() { gpus } else { 0 };
                (levels.compute_ppm, levels.memory_ppm) = self.device_use(gpus, both);
            }
        }
        let before = std::mem::replace(&mut self.attempts[attempt.index()].counted, levels);
        self.levels.change(before, levels);
    }

    /// Compute and memory in use on `gpus` devices with these attempts, in GPUs × 10⁻⁶.
    fn device_use(&self, gpus: u64, attempts: [Option<AttemptId>; 2]) -> (u64, u64) {
        let Some(interference) = &self.interference else { return (0, 0) };
        let (mut compute, mut memory) = (0.0, 0.0);
        for id in attempts.into_iter().flatten() {
            let entry = &self.attempts[id.index()];
            let class = interference.use_of(entry.job);
            compute += class.compute * entry.pace.rate.as_f64();
            let device = match entry.memory_mib {
                0 => interference.device_memory_mib,
                known => known,
            };
            memory += f64::from(class.memory_mib) / f64::from(device.max(1));
        }
        let ppm = |share: f64| (share.min(1.0) * 1e6).round() as u64 * gpus;
        (ppm(compute), ppm(memory))
    }
}
