//! The event queue: a total order of everything that will happen.

use deepshare_engine::Event;
use deepshare_model::{AttemptId, JobId, NodeId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something the simulator has scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A running attempt has done its work. Void if it was stopped or changed its speed meanwhile.
    WorkDone(AttemptId, u32),
    /// A node goes away.
    NodeFails(NodeId),
    /// A node comes back.
    NodeReturns(NodeId),
    /// A node is closed for new work, or opened.
    Cordons(NodeId, bool),
    /// The next job of the trace arrives.
    Arrival,
    /// The owner of a held job lets it go.
    Releases(JobId),
    /// The owner withdraws a job. Void if it has ended.
    Withdraws(JobId),
    /// A binding takes effect.
    Binds(AttemptId),
    /// A bound attempt starts.
    Starts(AttemptId),
    /// A stopping attempt lets go of its devices.
    LetsGo(AttemptId),
    /// Telemetry reads a pair. Void if it has parted.
    Reads(AttemptId, AttemptId),
    /// The engine hears of something.
    News(Box<Event>),
}

impl Due {
    /// Order of kinds at one instant.
    fn kind(&self) -> u8 {
        match self {
            Due::WorkDone(..) => 0,
            Due::NodeFails(_) | Due::NodeReturns(_) | Due::Cordons(..) => 1,
            Due::Arrival | Due::Releases(_) | Due::Withdraws(_) => 2,
            Due::Binds(_) | Due::Starts(_) | Due::LetsGo(_) | Due::Reads(..) => 3,
            Due::News(_) => 4,
        }
    }
}

/// An entry: compares by instant, kind and order of scheduling, never by content.
struct Entry {
    at: Time,
    kind: u8,
    seq: u64,
    due: Due,
}

impl Entry {
    fn key(&self) -> (Time, u8, u64) {
        (self.at, self.kind, self.seq)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[derive(Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    seq: u64,
}

impl EventQueue {
    pub(crate) fn push(&mut self, at: Time, due: Due) {
        let kind = due.kind();
        self.heap.push(Reverse(Entry { at, kind, seq: self.seq, due }));
        self.seq += 1;
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next entry, if it is due at `now`.
    pub(crate) fn pop_at(&mut self, now: Time) -> Option<Due> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_ordered_by_kind_then_by_cause() {
        let mut queue = EventQueue::default();
        queue.push(Time(5), Due::Arrival);
        queue.push(Time(5), Due::WorkDone(AttemptId(2), 0));
        queue.push(Time(5), Due::WorkDone(AttemptId(1), 0));
        queue.push(Time(4), Due::NodeFails(NodeId(0)));
        assert_eq!(queue.pop_at(Time(3)), None);
        assert_eq!(queue.pop_at(Time(5)), Some(Due::NodeFails(NodeId(0))));
        assert_eq!(queue.pop_at(Time(5)), Some(Due::WorkDone(AttemptId(2), 0)));
        assert_eq!(queue.pop_at(Time(5)), Some(Due::WorkDone(AttemptId(1), 0)));
        assert_eq!(queue.pop_at(Time(5)), Some(Due::Arrival));
    }
}
