//! Who leads: a state machine over one `coordination.k8s.io/v1` Lease, without I/O and without a
//! clock.
//!
//! The rules are those of client-go's leader election. A candidate trusts no clock but its own: a
//! holder is gone when its Lease has not *changed* for a whole lease duration since this candidate
//! first saw it so. Every write names the `resourceVersion` it replaces, so that of two candidates
//! the API server serves one. The leader stops by itself a renew deadline after it *asked for* its last
//! successful renewal, which is before anybody else may take over.
//!
//! `leaseTransitions` counts changes of holder: it is the term of leadership (the epoch) that every
//! decision carries.

use std::time::Duration;

/// How long things take. The defaults are those of every Kubernetes component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A holder that has not renewed for so long may be replaced.
    pub duration: Duration,
    /// A leader that could not renew for so long stops.
    pub renew_deadline: Duration,
    /// Time between two tries.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// What of a Lease matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// `spec.holderIdentity`; empty: nobody.
    pub holder: String,
    /// `spec.leaseTransitions`.
    pub transitions: u32,
    /// `spec.leaseDurationSeconds`.
    pub duration_s: u32,
    /// `spec.renewTime`, only to see whether it changed.
    pub renewed: String,
    /// `metadata.resourceVersion`.
    pub version: String,
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// There is no Lease: make one.
    Create {
        /// Its `leaseTransitions`.
        transitions: u32,
    },
    /// Replace the Lease of this `resourceVersion`.
    Replace {
        /// The version replaced.
        version: String,
        /// Its `leaseTransitions`.
        transitions: u32,
        /// The holder changes: `acquireTime` is new, too.
        taken_over: bool,
    },
    /// Somebody else holds it.
    Wait,
}

/// One candidate's view. Time is measured from any fixed instant of a clock that never runs back.
#[derive(Clone, Debug)]
pub struct Candidate {
    identity: String,
    timing: Timing,
    /// The Lease as last seen, and since when it has been so.
    seen: Option<(Holding, Duration)>,
    /// The Lease is known not to exist.
    absent: bool,
    /// When the last successful renewal was asked for.
    renewed_at: Option<Duration>,
    /// The highest term seen, so that a Lease that somebody deleted does not count from 1 again.
    highest: u32,
}

impl Candidate {
    /// A candidate that knows nothing yet.
    ///
    /// `identity` must be this process's alone: a restarted process is another candidate.
    pub fn new(identity: String, timing: Timing) -> Candidate {
        Candidate { identity, timing, seen: None, absent: false, renewed_at: None, highest: 0 }
    }

    /// Its identity.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Its timing.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// The Lease was read at `now`; `None`: there is none.
    pub fn observe(&mut self, now: Duration, found: Option<Holding>) {
        self.absent = found.is_none();
        let Some(found) = found else {
            self.seen = None;
            self.renewed_at = None;
            return;
        };
        if found.holder != self.identity {
            self.renewed_at = None;
        }
        self.highest = self.highest.max(found.transitions);
        match &self.seen {
            Some((seen, _)) if *seen == found => {}
            _ => self.seen = Some((found, now)),
        }
    }

    /// What to write at `now`; `None`: read the Lease first.
    pub fn propose(&self, now: Duration) -> Option<Proposal> {
        if self.absent {
            return Some(Proposal::Create { transitions: self.highest + 1 });
        }
        let (seen, since) = self.seen.as_ref()?;
        let ours = seen.holder == self.identity;
        // The holder's own duration: it may be configured otherwise than this candidate.
        let duration = Duration::from_secs(u64::from(seen.duration_s));
        if !ours && !seen.holder.is_empty() && now < *since + duration {
            return Some(Proposal::Wait);
        }
        Some(Proposal::Replace {
            version: seen.version.clone(),
            transitions: if ours { seen.transitions } else { self.highest + 1 },
            taken_over: !ours,
        })
    }

    /// The write that was asked for at `asked` succeeded: this candidate leads.
    pub fn written(&mut self, asked: Duration, stored: Holding) {
        self.absent = false;
        self.highest = self.highest.max(stored.transitions);
        self.seen = Some((stored, asked));
        self.renewed_at = Some(asked);
    }

    /// The write failed, or its fate is unknown: what was seen may be out of date. When the holder was
    /// last seen to change is kept, and so is a leadership within its deadline.
    pub fn refused(&mut self) {
        self.absent = false;
        if let Some((seen, _)) = &mut self.seen
            && seen.holder == self.identity
        {
            // Only a fresh read tells which version to replace.
            self.seen = None;
        }
    }

    /// Until when this candidate may write; `None`: it does not lead.
    pub fn leads_until(&self) -> Option<Duration> {
        self.renewed_at.map(|at| at + self.timing.renew_deadline)
    }

    /// The term: `leaseTransitions` as last seen or written.
    pub fn epoch(&self) -> u32 {
        self.highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The API server's side: one object, one version.
    #[derive(Default)]
    struct Server {
        stored: Option<Holding>,
        version: u64,
    }

    impl Server {
        /// Carries a proposal out; `None`: conflict, or nothing to write.
        fn write(&mut self, who: &Candidate, now: Duration, what: Proposal) -> Option<Holding> {
            let transitions = match (what, &self.stored) {
                (Proposal::Create { transitions }, None) => transitions,
                (Proposal::Replace { version, transitions, .. }, Some(stored))
                    if stored.version == version =>
                {
                    transitions
                }
                _ => return None,
            };
            self.version += 1;
            self.stored = Some(Holding {
                holder: who.identity().to_owned(),
                transitions,
                duration_s: who.timing().duration.as_secs() as u32,
                renewed: format!("{now:?}"),
                version: self.version.to_string(),
            });
            self.stored.clone()
        }

        fn release(&mut self) {
            self.version += 1;
            let version = self.version.to_string();
            if let Some(stored) = &mut self.stored {
                (stored.holder, stored.version) = (String::new(), version);
            }
        }
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn candidate(name: &str) -> Candidate {
        Candidate::new(name.to_owned(), Timing::default())
    }

    /// One try: read if need be, then write.
    fn attempt(who: &mut Candidate, server: &mut Server, now: Duration) {
        if who.leads_until().is_none() || who.propose(now).is_none() {
            who.observe(now, server.stored.clone());
        }
        match who.propose(now).expect("it has read the Lease") {
            Proposal::Wait => {}
            what => match server.write(who, now, what) {
                Some(stored) => who.written(now, stored),
                None => who.refused(),
            },
        }
    }

    fn leads(who: &Candidate, now: Duration) -> bool {
        who.leads_until().is_some_and(|until| now < until)
    }

    #[test]
    fn the_second_candidate_takes_over_a_lease_duration_after_the_last_renewal_it_saw() {
        let (mut a, mut b, mut server) = (candidate("a"), candidate("b"), Server::default());
        attempt(&mut a, &mut server, s(0));
        assert!(leads(&a, s(0)));
        assert_eq!(a.epoch(), 1);
        for now in [0, 2, 4].map(s) {
            attempt(&mut a, &mut server, now);
            attempt(&mut b, &mut server, now);
            assert!(!leads(&b, now));
        }
        // From here on `a` is cut off.
        let first = (5..40).map(s).find(|&now| {
            attempt(&mut b, &mut server, now);
            leads(&b, now)
        });
        assert_eq!(first, Some(s(19)));
        assert_eq!(b.epoch(), 2);
        assert!(!leads(&a, s(14)), "it stopped by itself, five seconds before");
        attempt(&mut a, &mut server, s(19));
        assert!(!leads(&a, s(19)), "and is told who leads when it is back");
    }

    #[test]
    fn there_are_never_two_leaders_whatever_is_lost_and_however_clocks_differ() {
        // `b`'s clock runs an hour ahead; tries of either are lost at random for long stretches.
        let hour = s(3_600);
        let mut chance = 12_345_u64;
        let mut draw = move |of: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (chance >> 33) % of
        };
        let (mut a, mut b, mut server) = (candidate("a"), candidate("b"), Server::default());
        let (mut cut_a, mut cut_b, mut changes, mut last) = (0, 0, 0, 0);
        for now in 0..20_000_u64 {
            if draw(60) == 0 {
                cut_a = now + draw(40);
            }
            if draw(60) == 0 {
                cut_b = now + draw(40);
            }
            if now % 2 == 0 && now >= cut_a {
                attempt(&mut a, &mut server, s(now));
            }
            if now % 2 == 1 && now >= cut_b {
                attempt(&mut b, &mut server, s(now) + hour);
            }
            let (a_leads, b_leads) = (leads(&a, s(now)), leads(&b, s(now) + hour));
            assert!(!(a_leads && b_leads), "two leaders at {now}");
            let epoch = server.stored.as_ref().map_or(0, |stored| stored.transitions);
            assert!(epoch >= last, "the epoch went back at {now}");
            changes += u32::from(epoch > last);
            last = epoch;
        }
        assert!(changes > 10, "leadership changed {changes} times: too few to show anything");
    }

    #[test]
    fn a_renewal_whose_answer_was_lost_does_not_end_a_leadership() {
        let (mut a, mut server) = (candidate("a"), Server::default());
        attempt(&mut a, &mut server, s(0));
        // The server takes the renewal, the answer is lost.
        let what = a.propose(s(2)).unwrap();
        assert!(server.write(&a, s(2), what).is_some());
        a.refused();
        assert!(leads(&a, s(4)));
        attempt(&mut a, &mut server, s(4));
        assert!(leads(&a, s(13)));
        assert_eq!(a.epoch(), 1, "it is still the same term");
    }

    #[test]
    fn of_two_that_try_at_once_one_gets_it() {
        let (mut a, mut b, mut server) = (candidate("a"), candidate("b"), Server::default());
        a.observe(s(0), None);
        b.observe(s(0), None);
        for who in [&mut a, &mut b] {
            let what = who.propose(s(0)).unwrap();
            match server.write(who, s(0), what) {
                Some(stored) => who.written(s(0), stored),
                None => who.refused(),
            }
        }
        assert!(leads(&a, s(0)) && !leads(&b, s(0)));
        assert_eq!(b.propose(s(0)), None, "it has to read first");
    }

    #[test]
    fn a_released_lease_is_taken_at_once_under_a_new_term() {
        let (mut a, mut b, mut server) = (candidate("a"), candidate("b"), Server::default());
        attempt(&mut a, &mut server, s(0));
        attempt(&mut b, &mut server, s(1));
        server.release();
        attempt(&mut b, &mut server, s(2));
        assert!(leads(&b, s(2)));
        assert_eq!(b.epoch(), 2);
    }

    #[test]
    fn a_process_that_slept_past_its_deadline_does_not_lead_when_it_wakes() {
        let (mut a, mut server) = (candidate("a"), Server::default());
        attempt(&mut a, &mut server, s(0));
        assert!(!leads(&a, s(3_600)));
    }

    #[test]
    fn a_lease_that_was_deleted_does_not_bring_old_terms_back() {
        let (mut a, mut server) = (candidate("a"), Server::default());
        server.stored =
            Some(Holding { transitions: 7, version: "1".to_owned(), ..Holding::default() });
        attempt(&mut a, &mut server, s(0));
        assert_eq!(a.epoch(), 8);
        server.stored = None;
        a.refused();
        attempt(&mut a, &mut server, s(2));
        assert_eq!(a.epoch(), 9);
    }
}
