//! What the caller decides about reading a trace.

use jiff::civil::{DateTime, date};
use std::path::PathBuf;

/// How a trace is read. The default reads any known format as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; `None` recognises it by the header.
    pub format: Option<Format>,
    /// Unit of numeric times and of durations. `None` means seconds, and figures that look like
    /// another unit are refused; a unit that is given is trusted.
    pub time_unit: Option<TimeUnit>,
    /// Where the clock starts and which part of the log is kept.
    pub times: TimeOptions,
    /// Tenants of the cluster. Jobs of others are dropped and counted, and tenants are numbered as
    /// here. `None` keeps every tenant, numbered by first job.
    pub known_tenants: Option<Vec<String>>,
    /// GPU types of the cluster, which then number the trace's; others are added after them.
    pub known_gpu_types: Vec<String>,
    /// A file whose column `job_id` says the order of jobs submitted at the same instant.
    pub order: Option<PathBuf>,
    /// Most lines accepted in a file.
    pub max_lines: u64,
}

/// A family of column names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Helios logs and what the Lucid artifact reads: `job_id,vc,gpu_num,submit_time,duration`,
    /// with submission in seconds or as dates.
    Helios,
    /// Microsoft Philly as `timestamp,duration,num_gpus,gpu_time,cluster`: jobs have no name and
    /// no user, so the row's number and the virtual cluster stand for them.
    Philly,
    /// Our own: `job_id,tenant,gpus,submit_s,duration_s`.
    DeepShare,
}

/// Unit of numeric times in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum TimeUnit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Microseconds.
    #[serde(rename = "us")]
    Micros,
}

/// Time zero of a log that has dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The midnight before the first job kept.
    #[default]
    FirstDay,
    /// The submission of the first job kept.
    FirstJob,
    /// This civil date and time.
    At(DateTime),
}

/// Where the clock starts and which part of the log is kept. Applied in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeOptions {
    /// Jobs submitted earlier are dropped (logs with dates only).
    pub not_before: Option<DateTime>,
    /// Time zero (logs with dates only; numeric times are kept as they are).
    pub origin: Origin,
    /// Keep jobs submitted from the first to the second of these, in seconds after time zero, both
    /// included.
    pub window_s: Option<(u64, u64)>,
    /// Time zero to try if the window would keep nothing; the window is given up if it still keeps
    /// nothing. Only with logs that have dates.
    pub origin_if_empty: Option<DateTime>,
    /// Leave logs with numeric times whole.
    pub dated_only: bool,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            time_unit: None,
            times: TimeOptions::default(),
            known_tenants: None,
            known_gpu_types: Vec::new(),
            order: None,
            max_lines: 50_000_000,
        }
    }
}

impl TimeOptions {
    /// The Lucid artifact's experiment `Venus_Sept`: the clock starts with the first job of April
    /// 2020, and the 26 days from 1 September are kept. A log that begins later than April cannot
    /// show its first job; the real log's is then used.
    pub fn lucid() -> TimeOptions {
        TimeOptions {
            not_before: Some(date(2020, 4, 1).at(0, 0, 0, 0)),
            origin: Origin::FirstJob,
            window_s: Some((13_219_200, 15_465_540)),
            origin_if_empty: Some(date(2020, 4, 1).at(0, 2, 31, 0)),
            dated_only: true,
        }
    }
}

impl TimeUnit {
    /// Power of ten that turns the unit into microseconds.
    pub(crate) fn scale(self) -> u32 {
        match self {
            TimeUnit::Seconds => 6,
            TimeUnit::Millis => 3,
            TimeUnit::Micros => 0,
        }
    }

    /// The abbreviation used in settings.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "s",
            TimeUnit::Millis => "ms",
            TimeUnit::Micros => "us",
        }
    }
}

impl Format {
    /// The word used in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            Format::Helios => "helios",
            Format::Philly => "philly",
            Format::DeepShare => "deepshare",
        }
    }
}

impl std::str::FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeUnit, String> {
        match text {
            "s" => Ok(TimeUnit::Seconds),
            "ms" => Ok(TimeUnit::Millis),
            "us" => Ok(TimeUnit::Micros),
            _ => Err(format!("unknown time unit {text:?}; use s, ms or us")),
        }
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "helios" => Ok(Format::Helios),
            "philly" => Ok(Format::Philly),
            "deepshare" => Ok(Format::DeepShare),
            _ => Err(format!("unknown trace format {text:?}; use helios, philly or deepshare")),
        }
    }
}
