//! Events about pods, `events.k8s.io/v1`, aggregated and bounded.
//!
//! The same reason and sentence about the same pod again becomes a series: its count is written when
//! it reaches a power of two, so that what repeats for hours costs a handful of writes. When events
//! come faster than they can be written the newest are dropped: they inform, and decide nothing.

use super::Kind;
use super::executor::Executor;
use super::requests::shortened;
use crate::api::Call;
use crate::leadership::timestamp;
use deepshare_kube_index::PodRef;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Events that may wait to be written.
const QUEUE: usize = 1_000;
/// Series that are remembered.
const SERIES: usize = 4_096;
/// A series that was silent for so long is over, as client-go has it.
const SILENCE: Duration = Duration::from_secs(360);
/// `reportingInstance` may have so many characters.
const MAX_INSTANCE: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Announcement {
    pod: PodRef,
    reason: String,
    message: String,
    warning: bool,
}

struct Series {
    /// Name of the event object.
    name: String,
    count: u64,
    last: Instant,
}

/// What to write about an announcement.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    New { name: String },
    Repeated { name: String, count: u64 },
    Nothing,
}

/// Which announcements were made lately.
#[derive(Default)]
struct Book {
    series: HashMap<Announcement, Series>,
    made: u64,
}

impl Book {
    fn enter(&mut self, what: &Announcement, now: Instant, stamp: u64) -> Entry {
        if let Some(series) = self.series.get_mut(what)
            && now.duration_since(series.last) < SILENCE
        {
            (series.count, series.last) = (series.count + 1, now);
            return match series.count.is_power_of_two() {
                true => Entry::Repeated { name: series.name.clone(), count: series.count },
                false => Entry::Nothing,
            };
        }
        if self.series.len() >= SERIES {
            self.series.retain(|_, series| now.duration_since(series.last) < SILENCE);
        }
        if self.series.len() >= SERIES {
            // All of them are alive: begin anew rather than search for the oldest each time.
            self.series.clear();
        }
        self.made += 1;
        // Unique: the instant, and a count for those of one instant.
        let name = format!("{}.{stamp:x}{:04x}", what.pod.name, self.made & 0xffff);
        self.series.insert(what.clone(), Series { name: name.clone(), count: 1, last: now });
        Entry::New { name }
    }
}

/// Takes announcements in.
pub struct Announcer {
    queue: mpsc::Sender<Announcement>,
}

impl Announcer {
    /// Starts the task that writes events.
    pub fn start(executor: Arc<Executor>, scheduler: String, identity: String) -> Announcer {
        let (queue, mut taken) = mpsc::channel::<Announcement>(QUEUE);
        let instance: String = identity.chars().take(MAX_INSTANCE).collect();
        let most = executor.most_in_flight(Kind::Announce);
        tokio::spawn(async move {
            let (mut book, mut in_flight) = (Book::default(), JoinSet::new());
            while let Some(what) = taken.recv().await {
                let stamp = std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .map_or(0, |since| since.as_micros() as u64);
                let call = match book.enter(&what, Instant::now(), stamp) {
                    Entry::New { name } => created(&what, &name, &scheduler, &instance),
                    Entry::Repeated { name, count } => repeated(&what, &name, count),
                    Entry::Nothing => continue,
                };
                // As many as may be written at once, so that the others wait where they are counted.
                if in_flight.len() >= most {
                    in_flight.join_next().await;
                }
                let executor = executor.clone();
                // What cannot be written is dropped.
                in_flight.spawn(async move { executor.send(Kind::Announce, &call).await.ok() });
            }
            in_flight.join_all().await;
        });
        Announcer { queue }
    }

    /// Takes one in; false if too many wait.
    pub fn announce(&self, pod: PodRef, reason: String, message: String, warning: bool) -> bool {
        self.queue.try_send(Announcement { pod, reason, message, warning }).is_ok()
    }
}

fn path(what: &Announcement) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{}/events", what.pod.namespace)
}

fn created(what: &Announcement, name: &str, scheduler: &str, instance: &str) -> Call {
    let Announcement { pod, reason, message, warning } = what;
    let body = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "namespace": pod.namespace, "name": name },
        "eventTime": timestamp(),
        "reportingController": scheduler,
        "reportingInstance": instance,
        "action": "Scheduling",
        "reason": reason,
        "note": shortened(message),
        "type": if *warning { "Warning" } else { "Normal" },
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        },
    });
    Call { metadata_only: true, ..Call::post(path(what), &body) }
}

fn repeated(what: &Announcement, name: &str, count: u64) -> Call {
    let series = json!({ "count": count, "lastObservedTime": timestamp() });
    Call::merge(format!("{}/{name}", path(what)), &json!({ "series": series }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(message: &str) -> Announcement {
        let pod = PodRef { namespace: "ns".into(), name: "p".into(), uid: "u".into() };
        Announcement { pod, reason: "Refused".into(), message: message.into(), warning: true }
    }

    #[test]
    fn what_repeats_is_written_at_powers_of_two_until_it_falls_silent() {
        let (mut book, mut now) = (Book::default(), Instant::now());
        let mut written = Vec::new();
        for _ in 0..1_000 {
            now += Duration::from_secs(1);
            match book.enter(&announcement("no such tenant"), now, 1) {
                Entry::New { .. } => written.push(1),
                Entry::Repeated { count, .. } => written.push(count),
                Entry::Nothing => {}
            }
        }
        assert_eq!(written, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
        now += SILENCE;
        let again = book.enter(&announcement("no such tenant"), now, 1);
        assert!(matches!(again, Entry::New { .. }), "{again:?}");
    }

    #[test]
    fn names_differ_and_memory_is_bounded() {
        let (mut book, now) = (Book::default(), Instant::now());
        let mut names = std::collections::BTreeSet::new();
        for number in 0..10_000 {
            let Entry::New { name } = book.enter(&announcement(&number.to_string()), now, 1) else {
                panic!("every sentence is another");
            };
            names.insert(name);
            assert!(book.series.len() <= SERIES);
        }
        assert_eq!(names.len(), 10_000);
    }
}
