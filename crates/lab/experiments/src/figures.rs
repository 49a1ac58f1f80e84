//! What the tables show of a run, and how ten runs become one line.

use deepshare_metrics::{ASSURANCE_LEVELS, Summary};
use deepshare_model::Class;

/// One figure of a run, to be shown as a column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Heading, with the unit.
    pub title: &'static str,
    /// Digits after the point.
    pub digits: usize,
    /// Its value; `None` where the run has none.
    pub get: fn(&Summary) -> Option<f64>,
}

fn class_delay(summary: &Summary, class: Class) -> Option<f64> {
    let group = summary.by_class.iter().find(|group| group.name == class.name())?;
    Some(group.jobs.jct_minus_duration.as_ref()?.mean)
}

fn wide(summary: &Summary, get: fn(&deepshare_metrics::Distribution) -> f64) -> Option<f64> {
    let all = summary.by_gang.first()?;
    all.jobs.jct_minus_duration.as_ref().map(get)
}

/// Share of assured tenant time with Q̃ of 0.95 or more, percent, while jobs arrive and after.
pub fn compliance(summary: &Summary) -> Option<f64> {
    let level = ASSURANCE_LEVELS.iter().position(|&level| level == 950)?;
    Some(100.0 * (1.0 - summary.quota.whole.share_below(level)?))
}

/// Mean of JCT − duration, seconds.
pub fn delay(summary: &Summary) -> Option<f64> {
    Some(summary.jobs.jct_minus_duration.as_ref()?.mean)
}

/// P99 of JCT − duration of gangs of 32 GPUs and more, seconds.
pub fn wide_p99(summary: &Summary) -> Option<f64> {
    wide(summary, |d| d.p99)
}

/// P99.9 of the same.
pub fn wide_p99_9(summary: &Summary) -> Option<f64> {
    wide(summary, |d| d.p99_9)
}

/// Most preemptions of one job.
pub fn most_preempted(summary: &Summary) -> Option<f64> {
    Some(summary.jobs.preemptions_per_job.as_ref()?.max)
}

/// Every column of the main tables.
pub const COLUMNS: &[Column] = &[
    Column { title: "delay, s", digits: 1, get: delay },
    Column { title: "guaranteed, s", digits: 1, get: |s| class_delay(s, Class::Guaranteed) },
    Column { title: "best-effort, s", digits: 1, get: |s| class_delay(s, Class::BestEffort) },
    Column { title: "compliance, %", digits: 2, get: compliance },
    Column { title: "worst tenant's mean Q̃", digits: 3, get: |s| s.quota.worst },
    Column {
        title: "avoidable waiting, s",
        digits: 0,
        get: |s| Some(s.quota.avoidable?.time.as_secs_f64()),
    },
    Column { title: "gangs ≥ 32, P99, ks", digits: 1, get: |s| Some(wide_p99(s)? / 1e3) },
    Column { title: "P99.9, ks", digits: 1, get: |s| Some(wide_p99_9(s)? / 1e3) },
    Column { title: "preemptions", digits: 0, get: |s| Some(s.jobs.preemptions as f64) },
    Column { title: "most of one job", digits: 0, get: most_preempted },
];

/// Mean, least and most of some seeds' values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Mean.
    pub mean: f64,
    /// Least.
    pub least: f64,
    /// Most.
    pub most: f64,
}

impl Range {
    /// Of the values that there are; `None` if there are none.
    pub fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Range> {
        let values: Vec<f64> = values.flatten().collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        Some(Range { mean: values.iter().sum::<f64>() / values.len() as f64, least, most })
    }

    /// `mean (least–most)`.
    pub fn show(self, digits: usize) -> String {
        let Range { mean, least, most } = self;
        format!("{mean:.digits$} ({least:.digits$}–{most:.digits$})")
    }
}
