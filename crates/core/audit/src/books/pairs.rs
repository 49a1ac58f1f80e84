//! Who shares devices with whom, on what terms, and what was seen of them.

use super::Books;
use deepshare_engine::{PairBar, RetentionTable};
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
    /// The two were found like this: nobody admitted them.
    pub found: bool,
}

/// Two attempts with devices in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub bar: PairBar,
    /// What both are believed to keep, the one that joined first.
    pub keeps: [Retention; 2],
    sampled_at: Option<Time>,
    /// Samples below tolerance in a row, and what both kept over those.
    pub bad: u32,
    seen: [u64; 2],
    /// Enough of them came: it is to be broken up.
    pub degraded: bool,
    /// They are a pair, not only found on the same devices.
    pub agreed: bool,
}

impl Pair {
    pub fn new(joining: &Joining, bar: PairBar) -> Pair {
        Pair { bar, keeps: joining.keeps, agreed: true, ..Pair::of_strangers() }
    }

    /// Two that were found on the same devices, of whom nothing was agreed.
    pub fn of_strangers() -> Pair {
        Pair {
            bar: PairBar::NONE,
            keeps: [Retention::WHOLE; 2],
            sampled_at: None,
            bad: 0,
            seen: [0; 2],
            degraded: false,
            agreed: false,
        }
    }
}

impl Books {
    /// Who shares an attempt's devices, and what the attempt is believed to keep beside each, in order
    /// of the partner.
    pub fn partners_of(&self, id: AttemptId) -> Vec<(AttemptId, Retention)> {
        let mut partners: Vec<(AttemptId, Retention)> = self
            .pairs_of(id)
            .map(|((joined, host), pair)| match joined == id {
                true => (host, pair.keeps[0]),
                false => (joined, pair.keeps[1]),
            })
            .collect();
        partners.sort_unstable_by_key(|&(partner, _)| partner);
        partners
    }

    /// The pairs that an attempt is part of.
    pub fn pairs_of(&self, id: AttemptId) -> impl Iterator<Item = ((AttemptId, AttemptId), &Pair)> {
        let ours = move |&(&(joined, host), _): &(&(AttemptId, AttemptId), &Pair)| {
            joined == id || host == id
        };
        self.pairs.iter().filter(ours).map(|(&pair, terms)| (pair, terms))
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
            let pair = self.pairs.get(&(attempts[joined], attempts[1 - joined]));
            pair.is_some_and(|pair| pair.agreed)
        };
        let Some(joined) = (0..2).find(|&joined| is_pair(joined)) else { return };
        let kept = [kept[joined], kept[1 - joined]];
        let (needed, slack) = (self.settings.pair_samples, self.settings.pair_slack_ppm);
        let (joined, host) = (attempts[joined], attempts[1 - joined]);
        let pair = self.pairs.get_mut(&(joined, host)).expect("found in the lines above");
        if pair.sampled_at.is_some_and(|last| taken <= last) {
            return;
        }
        pair.sampled_at = Some(taken);
        pair.keeps = kept;
        self.step.attempts.extend([joined, host]);
        if enough(pair.bar, kept, slack) {
            (pair.bad, pair.seen) = (0, [0; 2]);
            return;
        }
        if needed == 0 {
            return;
        }
        pair.bad += 1;
        pair.seen = [0, 1].map(|of| pair.seen[of] + u64::from(kept[of].ppm()));
        if pair.bad == needed {
            pair.degraded = true;
            let mean = pair.seen.map(|sum| Retention::from_ppm((sum / u64::from(needed)) as u32));
            self.lower([joined, host], mean);
        }
    }

    /// What was seen of an attempt and its partners is what is predicted of their likes, if it is less.
    pub fn remember(&mut self, id: AttemptId) {
        let seen: Vec<_> = self.pairs_of(id).map(|(pair, terms)| (pair, terms.keeps)).collect();
        for ((joined, host), keeps) in seen {
            self.lower([joined, host], keeps);
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

    /// Whoever shared devices with an attempt goes on without it.
    pub fn part(&mut self, id: AttemptId) {
        let parted: Vec<_> = self.pairs_of(id).map(|(pair, _)| pair).collect();
        for (joined, host) in parted {
            self.step.attempts.extend([joined, host]);
            self.pairs.remove(&(joined, host));
        }
    }
}

/// Whether a sample is as good as agreed, if it may be off by so much.
pub(crate) fn enough(bar: PairBar, kept: [Retention; 2], slack: u32) -> bool {
    let short = |kept: u32, least: u32| least.saturating_sub(slack) > kept;
    let [own, theirs] = kept.map(Retention::ppm);
    let alone = [(own, bar.each[0]), (theirs, bar.each[1])];
    !alone.iter().any(|&(kept, least)| short(kept, least.ppm()))
        && !short(own + theirs, bar.together_ppm)
}
