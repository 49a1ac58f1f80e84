//! Who shares devices with whom, on what terms, and what was seen of them.

use super::Books;
use deepshare_engine::RetentionTable;
use deepshare_model::{AttemptId, JobId, ProfileClassId, Retention, Time};

/// The pair that a placed attempt is to be part of, as of its admission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining {
    /// Who is on the devices already.
    pub host: AttemptId,
    /// What both are predicted to keep, own first.
    pub keeps: [Retention; 2],
    /// The least and the most that its tolerance can be.
    pub tolerance: [Retention; 2],
}

/// Two attempts on the same devices, kept by the one that joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub host: AttemptId,
    pub tolerance: Retention,
    /// What both are believed to keep, the one that joined first.
    pub keeps: [Retention; 2],
    sampled_at: Option<Time>,
    /// Samples below tolerance in a row, and what both kept over those.
    pub bad: u32,
    seen: [u64; 2],
    /// Enough of them came: it is to be broken up.
    pub degraded: bool,
}

impl Pair {
    pub fn new(joining: &Joining, tolerance: Retention) -> Pair {
        Pair {
            host: joining.host,
            tolerance,
            keeps: joining.keeps,
            sampled_at: None,
            bad: 0,
            seen: [0; 2],
            degraded: false,
        }
    }
}

impl Books {
    /// Who shares an attempt's devices, and what the attempt is believed to keep beside it.
    pub fn partner_of(&self, id: AttemptId) -> Option<(AttemptId, Retention)> {
        let (joined, pair) = self.pair_of(id)?;
        match joined == id {
            true => Some((pair.host, pair.keeps[0])),
            false => Some((joined, pair.keeps[1])),
        }
    }

    /// The pair that an attempt is part of.
    pub fn pair_of(&self, id: AttemptId) -> Option<(AttemptId, &Pair)> {
        let joined = match self.pairs.contains_key(&id) {
            true => id,
            false => *self.pairs.iter().find(|(_, pair)| pair.host == id)?.0,
        };
        Some((joined, &self.pairs[&joined]))
    }

    /// A new table counts unless it is older than the one there.
    pub fn learn(&mut self, table: &RetentionTable) {
        if self.retentions.rows.is_empty() || table.version > self.retentions.version {
            self.retentions = table.clone();
            self.step.retentions = true;
        }
    }

    /// A sample of a pair. The last of enough bad ones in a row lowers what is predicted of its
    /// like to what was seen on average.
    pub fn sample(&mut self, attempts: [AttemptId; 2], kept: [Retention; 2], taken: Time) {
        let is_pair = |joined: usize| {
            let pair = self.pairs.get(&attempts[joined]);
            pair.is_some_and(|pair| pair.host == attempts[1 - joined])
        };
        let Some(joined) = (0..2).find(|&joined| is_pair(joined)) else { return };
        let kept = [kept[joined], kept[1 - joined]];
        let (needed, slack) = (self.settings.pair_samples, self.settings.pair_slack_ppm);
        let joined = attempts[joined];
        let pair = self.pairs.get_mut(&joined).expect("found in the lines above");
        if pair.sampled_at.is_some_and(|last| taken <= last) {
            return;
        }
        pair.sampled_at = Some(taken);
        pair.keeps = kept;
        self.step.attempts.extend([joined, pair.host]);
        if kept[0].min(kept[1]).ppm() + slack >= pair.tolerance.ppm() {
            (pair.bad, pair.seen) = (0, [0; 2]);
            return;
        }
        pair.bad += 1;
        pair.seen = [0, 1].map(|of| pair.seen[of] + u64::from(kept[of].ppm()));
        if needed > 0 && pair.bad == needed {
            pair.degraded = true;
            let mean = pair.seen.map(|sum| Retention::from_ppm((sum / u64::from(needed)) as u32));
            let host = pair.host;
            self.lower([joined, host], mean);
        }
    }

    fn lower(&mut self, pair: [AttemptId; 2], seen: [Retention; 2]) {
        let profile = |id: AttemptId| self.profile(self.attempts[id.index()].job);
        let [Some(own), Some(other)] = pair.map(profile) else { return };
        self.step.retentions = true;
        for (row, column, seen) in [(own, other, seen[0]), (other, own, seen[1])] {
            let row = self.retentions.rows.get_mut(row.index());
            if let Some(entry) = row.and_then(|row| row.get_mut(column.index())) {
                *entry = seen.min(*entry);
            }
        }
    }

    pub fn profile(&self, job: JobId) -> Option<ProfileClassId> {
        self.jobs[job.index()].spec.profile
    }

    /// Whoever shared devices with an attempt has them alone from now on.
    pub fn part(&mut self, id: AttemptId) {
        if let Some((joined, pair)) = self.pair_of(id) {
            self.step.attempts.extend([joined, pair.host]);
            self.pairs.remove(&joined);
        }
    }
}
