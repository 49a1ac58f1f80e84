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

/// Mean of some seeds' values with its 95 % interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Mean.
    pub mean: f64,
    /// Half the width of the interval.
    pub half: f64,
}

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Interval {
    /// Of the values that there are; `None` if there are none.
    pub fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Interval> {
        let values: Vec<f64> = values.flatten().collect();
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let freedom = count.checked_sub(1)?;
        if freedom == 0 {
            return Some(Interval { mean, half: 0.0 });
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = (squares / freedom as f64).sqrt();
        let t = STUDENT.get(freedom - 1).copied().unwrap_or(1.96);
        Some(Interval { mean, half: t * deviation / (count as f64).sqrt() })
    }

    /// `mean ± half`.
    pub fn show(self, digits: usize) -> String {
        format!("{:.digits$} ± {:.digits$}", self.mean, self.half)
    }
}

#[cfg(test)]
mod tests {
    use super::Interval;

    #[test]
    fn an_interval_is_students() {
        let interval = Interval::of([1.0, 2.0, 3.0, 4.0].map(Some).into_iter()).unwrap();
        assert_eq!(interval.mean, 2.5);
        // 3.182 · 1.29099 / 2
        assert!((interval.half - 2.054).abs() < 1e-3);
        assert_eq!(Interval::of([Some(7.0), None].into_iter()).unwrap().half, 0.0);
        assert_eq!(Interval::of([None].into_iter()), None);
    }
}
