//! What is counted, and how `/metrics` shows it (Prometheus text format 0.0.4).

use crate::writes::Kind;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that others may read at any time.
#[derive(Default)]
pub struct Number(AtomicU64);

impl Number {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of a histogram's buckets, microseconds: 100 µs to 10 s.
const BOUNDS_US: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// How often something took how long.
#[derive(Default)]
pub struct Histogram {
    buckets: [Number; BOUNDS_US.len()],
    count: Number,
    sum_us: Number,
}

impl Histogram {
    /// Counts one.
    pub fn record(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|&bound| bound < us);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.add(1);
        }
        self.count.add(1);
        self.sum_us.add(us);
    }
}

/// How a tenant is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantFigures {
    /// The TenantQuota's name.
    pub name: String,
    /// Quota assurance degree now and smoothed, 0 to 1.
    pub assurance: [f64; 2],
    /// Guaranteed GPUs demanded and held.
    pub guaranteed: [u32; 2],
}

/// The phases of a turn of the engine loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// News into the index and the engine's books.
    Apply,
    /// A round of decisions, and what follows from it.
    Decide,
}

/// Everything that is counted.
#[derive(Default)]
pub struct Metrics {
    /// Turns of the engine loop.
    pub turns: Number,
    /// Time of each phase of a turn.
    phases: [Histogram; 2],
    /// Events given to the engine.
    pub events: Number,
    /// Commands that the engine gave.
    pub commands: Number,
    /// Proposals of the policy that broke a rule and were not carried out.
    pub illegal: Number,
    /// Pods that their node refused after they were bound.
    pub rejected: Number,
    /// Evictions that were accepted.
    pub evictions: Number,
    /// Events about pods that were dropped because too many waited.
    pub events_dropped: Number,
    /// Pods and tenants with a write in flight or waiting.
    pub writes_waiting: Number,
    /// News of the watches that wait for the engine loop.
    pub news_waiting: Number,
    /// Watches that were too old to be resumed and had to list anew.
    pub relists: Number,
    /// Time of each write, by kind.
    writes: [Histogram; Kind::ALL.len()],
    /// Writes that were refused, by kind: conflicts, no answer or server trouble, others.
    refusals: [[Number; 3]; Kind::ALL.len()],
    /// How tenants are doing, as of the last turn in which it changed.
    pub tenants: Mutex<Vec<TenantFigures>>,
}

impl Metrics {
    /// Counts a write: how long it took, and with which HTTP status it was refused, if it was.
    pub fn write(&self, kind: Kind, took: Duration, refused: Option<u16>) {
        self.writes[kind as usize].record(took);
        if let Some(status) = refused {
            let class = match status {
                404 | 409 => 0,
                0 | 429 | 500.. => 1,
                _ => 2,
            };
            self.refusals[kind as usize][class].add(1);
        }
    }

    /// Counts the time of a phase.
    pub fn phase(&self, phase: Phase, took: Duration) {
        self.phases[phase as usize].record(took);
    }

    /// The page.
    pub fn page(&self, leads: bool, epoch: u32) -> String {
        let mut page = Page::default();
        page.one("leader", "gauge", "1 while this process leads", u64::from(leads));
        page.one("leadership_epoch", "gauge", "The term of leadership", u64::from(epoch));
        page.one("turns_total", "counter", "Turns of the engine loop", self.turns.get());
        page.one("engine_events_total", "counter", "Events given to the engine", self.events.get());
        page.one("engine_commands_total", "counter", "Commands it gave", self.commands.get());
        let help = "Proposals of the policy that broke a rule and were not carried out";
        page.one("illegal_proposals_total", "counter", help, self.illegal.get());
        let help = "Pods that their node refused after they were bound";
        page.one("rejections_after_bind_total", "counter", help, self.rejected.get());
        page.one("evictions_total", "counter", "Evictions accepted", self.evictions.get());
        let help = "Events about pods dropped because too many waited";
        page.one("events_dropped_total", "counter", help, self.events_dropped.get());
        let help = "Pods and tenants with a write in flight or waiting";
        page.one("writes_waiting", "gauge", help, self.writes_waiting.get());
        let help = "News of the watches that wait for the engine loop";
        page.one("news_waiting", "gauge", help, self.news_waiting.get());
        page.one("relists_total", "counter", "Watches too old to be resumed", self.relists.get());
        page.head("phase_seconds", "histogram", "Time of each phase of a turn");
        for (name, histogram) in ["apply", "decide"].iter().zip(&self.phases) {
            page.histogram("phase_seconds", &format!("phase=\"{name}\""), histogram);
        }
        page.head("write_seconds", "histogram", "Time of each request, by kind");
        for (kind, histogram) in Kind::ALL.iter().zip(&self.writes) {
            page.histogram("write_seconds", &format!("kind=\"{}\"", kind.name()), histogram);
        }
        page.head("writes_refused_total", "counter", "Requests that were refused");
        for (kind, classes) in Kind::ALL.iter().zip(&self.refusals) {
            for (class, count) in ["conflict", "trouble", "refused"].iter().zip(classes) {
                let labels = format!("kind=\"{}\",class=\"{class}\"", kind.name());
                page.line("writes_refused_total", &labels, count.get());
            }
        }
        page.tenants(&self.tenants.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        page.0
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let full = format!("deepshare_{name}");
        self.0 += &format!("# HELP {full} {help}.\n# TYPE {full} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "deepshare_{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }

    fn histogram(&mut self, name: &str, labels: &str, histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        for (bound, count) in BOUNDS_US.iter().zip(&histogram.buckets) {
            below += count.get();
            let bound = *bound as f64 / 1e6;
            self.line(&bucket, &format!("{labels},le=\"{bound}\""), below);
        }
        // Read once: `+Inf` and the count must agree.
        let count = histogram.count.get();
        self.line(&bucket, &format!("{labels},le=\"+Inf\""), count);
        self.line(&format!("{name}_sum"), labels, histogram.sum_us.get() as f64 / 1e6);
        self.line(&format!("{name}_count"), labels, count);
    }

    fn tenants(&mut self, tenants: &[TenantFigures]) {
        type Figure = fn(&TenantFigures) -> f64;
        let figures: [(&str, &str, Figure); 4] = [
            ("quota_assurance", "Quota assurance degree now", |t| t.assurance[0]),
            ("quota_assurance_smoothed", "Quota assurance degree, smoothed", |t| t.assurance[1]),
            ("guaranteed_gpus_demanded", "Guaranteed GPUs demanded", |t| t.guaranteed[0].into()),
            ("guaranteed_gpus_held", "Guaranteed GPUs held", |t| t.guaranteed[1].into()),
        ];
        for (name, help, of) in figures {
            self.head(name, "gauge", help);
            for tenant in tenants {
                // Names of objects need no escaping.
                self.line(name, &format!("tenant=\"{}\"", tenant.name), of(tenant));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_to_the_count_and_refusals_are_counted_by_class() {
        let metrics = Metrics::default();
        for (ms, refused) in [(1, None), (2, Some(409)), (20_000, Some(503))] {
            metrics.write(Kind::Bind, Duration::from_millis(ms), refused);
        }
        let page = metrics.page(true, 4);
        for line in [
            "deepshare_leader 1",
            "deepshare_leadership_epoch 4",
            "deepshare_write_seconds_bucket{kind=\"bind\",le=\"0.001\"} 1",
            "deepshare_write_seconds_bucket{kind=\"bind\",le=\"10\"} 2",
            "deepshare_write_seconds_bucket{kind=\"bind\",le=\"+Inf\"} 3",
            "deepshare_write_seconds_sum{kind=\"bind\"} 20.003",
            "deepshare_writes_refused_total{kind=\"bind\",class=\"conflict\"} 1",
            "deepshare_writes_refused_total{kind=\"bind\",class=\"trouble\"} 1",
        ] {
            assert!(page.lines().any(|found| found == line), "no `{line}` in\n{page}");
        }
    }

    #[test]
    fn every_series_has_its_help_and_type_once() {
        let metrics = Metrics::default();
        let figures =
            TenantFigures { name: "a".to_owned(), assurance: [0.5, 0.75], guaranteed: [8, 4] };
        metrics.tenants.lock().unwrap().push(figures);
        let page = metrics.page(false, 0);
        assert!(page.contains("deepshare_quota_assurance_smoothed{tenant=\"a\"} 0.75\n"));
        let mut typed: Vec<&str> =
            page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let all = typed.len();
        typed.dedup();
        assert_eq!(typed.len(), all);
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let known = |name: &str| typed.iter().any(|t| t.split(' ').next() == Some(name));
            assert!(known(name) || base.is_some_and(known), "{name} has no type");
        }
    }
}
