//! The forecast of arrivals: a row for every ten minutes, and how the artifact looks at it.

use deepshare_trace::tables::{Lines, Table};
use deepshare_trace::{Problem, Problems, TraceError};
use jiff::civil::DateTime;
use std::io::Read;
use std::path::Path;

/// Time between rows, seconds.
pub(crate) const ROW_S: u64 = 600;
/// Rows of the mean; one less than what must be left for it.
const MEAN_OF: usize = 5;
/// Most lines of a file.
const MAX_LINES: u64 = 10_000_000;

/// Forecast arrivals in ten minutes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForecastRow {
    /// Jobs.
    pub jobs: f64,
    /// GPUs they ask for together.
    pub gpus: f64,
}

/// A forecast, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The file as it was named.
    pub file: String,
    /// The time of the first row, as the file has it.
    pub first: DateTime,
    /// One row for every ten minutes.
    pub rows: Vec<ForecastRow>,
}

/// Reads a forecast: CSV with `time` (dates ten minutes apart), `pred_gpu_job` and `pred_gpu_num`.
///
/// # Errors
/// If the file cannot be read, lacks a column, has a gap, or a value is no number.
pub fn read_forecast(path: &Path) -> Result<Forecast, TraceError> {
    read(Lines::open(path, MAX_LINES)?)
}

/// As [`read_forecast`], from something open that messages call `name`.
///
/// # Errors
/// As [`read_forecast`].
pub fn read_forecast_from(name: &str, input: impl Read + 'static) -> Result<Forecast, TraceError> {
    read(Lines::new(name.to_owned(), input, MAX_LINES)?)
}

fn read(lines: Lines) -> Result<Forecast, TraceError> {
    const FORMAT: &str = "give a CSV file with the columns time,pred_gpu_job,pred_gpu_num";
    let mut table = Table::new(lines)?;
    let file = table.file().to_owned();
    let mut problems = Problems::of(&file);
    let names = ["time", "pred_gpu_job", "pred_gpu_num"];
    let [time, jobs, gpus] = table.columns(names, FORMAT, &mut problems)?;
    let mut before: Option<DateTime> = None;
    let mut first = None;
    let mut rows = Vec::new();
    while let Some(row) = table.next_row(&mut problems)? {
        let number = |column| {
            let value = row.text(column).parse::<f64>().ok().filter(|value| value.is_finite());
            value.ok_or_else(|| row.problem(column, "is not a number", "give the forecast"))
        };
        match (number(jobs), number(gpus)) {
            (Ok(jobs), Ok(gpus)) => rows.push(ForecastRow { jobs, gpus }),
            (jobs, gpus) => {
                [jobs.err(), gpus.err()].into_iter().flatten().for_each(|bad| problems.push(bad));
            }
        }
        let Ok(now) = row.text(time).parse::<DateTime>() else {
            let remedy = "give a date and time as 2020-09-01 00:10:00";
            problems.push(row.problem(time, "is not a date and time", remedy));
            continue;
        };
        if before.is_some_and(|before| seconds_between(before, now) != ROW_S as i64) {
            let remedy = "give a row for every ten minutes, in order";
            problems.push(row.problem(time, "is not ten minutes after the row before", remedy));
        }
        before = Some(now);
        first.get_or_insert(now);
    }
    if first.is_none() && problems.is_empty() {
        problems.push(Problem::of_file("it has no rows", FORMAT));
    }
    problems.check()?;
    let first = first.expect("a file without rows was refused");
    Ok(Forecast { file, first, rows })
}

/// Seconds from `a` to `b`, of civil times.
pub(crate) fn seconds_between(a: DateTime, b: DateTime) -> i64 {
    b.duration_since(a).as_secs()
}

/// A forecast on the trace's clock, as one reader sees it: rows that have passed are gone.
#[derive(Clone, Debug)]
pub(crate) struct Outlook<'a> {
    rows: &'a [ForecastRow],
    /// Time of the first row; may lie before the clock's zero.
    first_s: i64,
    /// What is asked for.
    of: fn(&ForecastRow) -> f64,
    /// No row was left the last time.
    emptied: bool,
    /// The answer from then on.
    if_emptied: f64,
}

impl<'a> Outlook<'a> {
    pub(crate) fn new(
        rows: &'a [ForecastRow],
        first_s: i64,
        of: fn(&ForecastRow) -> f64,
        if_emptied: f64,
    ) -> Outlook<'a> {
        Outlook { rows, first_s, of, emptied: rows.is_empty(), if_emptied }
    }

    /// The mean of the first five rows after `now`; of all if five or fewer are left; not a number
    /// when the last has just gone, and what the caller said from then on.
    pub(crate) fn ask(&mut self, now: u64) -> f64 {
        if self.emptied {
            return self.if_emptied;
        }
        let left = &self.rows[self.gone(now)..];
        self.emptied = left.is_empty();
        let taken = &left[..left.len().min(MEAN_OF)];
        taken.iter().map(self.of).sum::<f64>() / taken.len() as f64
    }

    /// How many rows are not after `now`.
    fn gone(&self, now: u64) -> usize {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let since = now.saturating_sub(self.first_s);
        if since < 0 {
            return 0;
        }
        usize::try_from(since as u64 / ROW_S + 1).unwrap_or(usize::MAX).min(self.rows.len())
    }

    /// When rows go, if that is after the clock's zero.
    pub(crate) fn passings(&self) -> impl Iterator<Item = u64> {
        let first_s = self.first_s;
        let time = move |row: usize| first_s.saturating_add((row as u64 * ROW_S) as i64);
        (0..self.rows.len()).filter_map(move |row| u64::try_from(time(row)).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(jobs: &[f64]) -> Vec<ForecastRow> {
        jobs.iter().map(|&jobs| ForecastRow { jobs, gpus: 0.0 }).collect()
    }

    #[test]
    fn the_mean_is_of_five_rows_that_are_still_to_come() {
        let rows = rows(&[100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 60.0]);
        let mut outlook = Outlook::new(&rows, 1_000, |row| row.jobs, 10.0);
        assert_eq!(outlook.ask(999), 22.0);
        assert_eq!(outlook.ask(1_000), 3.0, "a row at just this time is past");
        assert_eq!(outlook.ask(1_599), 3.0);
        assert_eq!(outlook.ask(1_600), 14.8, "with five left, all");
        assert_eq!(outlook.ask(3_400), 32.5);
        assert_eq!(outlook.ask(4_000), 60.0);
        assert!(outlook.ask(4_600).is_nan());
        assert_eq!(outlook.ask(4_700), 10.0);
    }

    #[test]
    fn files_with_gaps_or_other_columns_are_refused_with_line_and_remedy() {
        let fails = |text: &'static str| {
            let error = read_forecast_from("f.csv", text.as_bytes()).unwrap_err();
            error.to_string()
        };
        let said = fails("time,pred_gpu_job\n");
        assert!(said.contains("f.csv: line 1: the header lacks pred_gpu_num"), "{said}");
        let said = fails(
            "time,pred_gpu_job,pred_gpu_num\n2020-09-01 00:00:00,1,2\n2020-09-01 00:20:00,1,x\n",
        );
        assert!(said.contains("line 3, column 1 (time)"), "{said}");
        assert!(said.contains("line 3, column 3 (pred_gpu_num): \"x\" is not a number"), "{said}");
        let said = fails("time,pred_gpu_job,pred_gpu_num\n");
        assert!(said.contains("it has no rows"), "{said}");
    }
}
