//! Reading `jobs.csv` back, to compare runs of which only the files are left.

use super::{JOB_COLUMNS, LATER_COLUMNS};
use crate::{JobRecord, NotSeconds, parse_seconds};
use csv::{ErrorKind, StringRecord};
use deepshare_model::{
    Class, JobId, Outcome, PoolId, ProfileClassId, Span, TenantId, Time, UserId,
};
use std::collections::BTreeMap;
use std::io::Read;
use thiserror::Error;

/// The jobs of a file with their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTable {
    /// Ids in the trace, by [`JobId`].
    pub ids: Vec<String>,
    /// Names, by [`TenantId`], in order of appearance.
    pub tenants: Vec<String>,
    /// Names, by [`UserId`], in order of appearance.
    pub users: Vec<String>,
    /// One record for each line, numbered from 0. The file does not tell pools apart, so all are
    /// in pool 0; nor how long a job waited that has not ended, so that reads as zero; nor whom a
    /// job ran beside, so that reads as nobody.
    pub jobs: Vec<JobRecord>,
}

/// Why a `jobs.csv` cannot be read.
#[derive(Debug, Error)]
pub enum JobsCsvError {
    /// The file has no header.
    #[error("{file}: the file is empty; run `deepshare simulate --out DIR` again to write it")]
    Empty {
        /// Its name.
        file: String,
    },
    /// A column of the contract is not there.
    #[error(
        "{file}: line 1: there is no column `{column}`; \
         `jobs.csv` needs the columns of docs/formats/results.md"
    )]
    MissingColumn {
        /// The file's name.
        file: String,
        /// Which column.
        column: &'static str,
    },
    /// A header is there twice.
    #[error("{file}: line 1: the column `{column}` is there twice; remove one")]
    RepeatedColumn {
        /// The file's name.
        file: String,
        /// Which column.
        column: &'static str,
    },
    /// A line is cut or has extra fields.
    #[error(
        "{file}: line {line}: {found} fields where the header has {expected}; \
         the file may be cut short, so write it again"
    )]
    FieldCount {
        /// The file's name.
        file: String,
        /// Counted from 1.
        line: u64,
        /// Fields of the header.
        expected: u64,
        /// Fields of the line.
        found: u64,
    },
    /// Bytes that are no text.
    #[error("{file}: line {line}: column {column}: the text is not UTF-8; convert the file to it")]
    NotUtf8 {
        /// The file's name.
        file: String,
        /// Counted from 1.
        line: u64,
        /// Counted from 1.
        column: usize,
    },
    /// A field that cannot be what its column says.
    #[error("{file}: line {line}: column `{column}`: `{value}` {problem}")]
    Field {
        /// The file's name.
        file: String,
        /// Counted from 1.
        line: u64,
        /// Which column.
        column: &'static str,
        /// What is there, cut after 40 characters.
        value: String,
        /// What is wrong and what is expected.
        problem: String,
    },
    /// The file cannot be read.
    #[error("{file}: cannot be read; check the disk and the permissions")]
    Read {
        /// The file's name.
        file: String,
        /// What the system said.
        source: csv::Error,
    },
}

/// Reads a `jobs.csv`, whose name in errors is `file`. Columns are found by their headers; others
/// than those of the contract are ignored. Files from before jobs could share lack `shared_s` and
/// `slowed_s`: nobody shared in those. Files from before jobs had limits lack `profile`,
/// `slowdown_limit` and `execution_ratio`: no job has one in those.
///
/// # Errors
/// If the file cannot be read or a line is not of the contract, with line, column and remedy.
pub fn read_jobs_csv(reader: impl Read, file: &str) -> Result<JobTable, JobsCsvError> {
    let mut csv = csv::ReaderBuilder::new().from_reader(reader);
    let header = csv.headers().map_err(|error| csv_error(file, error))?.clone();
    if header.is_empty() {
        return Err(JobsCsvError::Empty { file: file.to_owned() });
    }
    let places = find_columns(file, &header)?;
    let mut table = JobTable::default();
    let mut lines_by_id = BTreeMap::new();
    let (mut tenants, mut users) = (Interner::default(), Interner::default());
    let mut record = StringRecord::new();
    while csv.read_record(&mut record).map_err(|error| csv_error(file, error))? {
        let number = record.position().map_or(0, csv::Position::line);
        let line = Line { file, number, record: &record, places: &places };
        let id = line.text(0);
        if let Some(first) = lines_by_id.insert(id.to_owned(), number) {
            let problem = format!("is also the id of line {first}; ids must be unique");
            return Err(line.wrong(0, problem));
        }
        let job = JobId(u32::try_from(table.jobs.len()).map_err(|_| {
            line.wrong(0, "is one job too many; a file holds at most 4,294,967,295".to_owned())
        })?);
        let tenant = TenantId(tenants.id(line.text(1)));
        let user = UserId(users.id(line.text(14)));
        table.jobs.push(line.job(job, tenant, user)?);
        table.ids.push(id.to_owned());
    }
    table.tenants = tenants.names;
    table.users = users.names;
    Ok(table)
}

/// Where each column of the contract is in this file; `None` for those that an older file lacks.
fn find_columns(file: &str, header: &StringRecord) -> Result<Vec<Option<usize>>, JobsCsvError> {
    let find = |column: &'static str| {
        let mut found = header.iter().enumerate().filter(|(_, name)| *name == column);
        let file = file.to_owned();
        match (found.next(), found.next()) {
            (Some((place, _)), None) => Ok(Some(place)),
            (Some(_), Some(_)) => Err(JobsCsvError::RepeatedColumn { file, column }),
            (None, _) => Err(JobsCsvError::MissingColumn { file, column }),
        }
    };
    let lacks = |column: usize| header.iter().all(|name| name != JOB_COLUMNS[column].name);
    let is_older = |column: &usize| {
        LATER_COLUMNS.iter().any(|later| later.contains(column) && later.clone().all(lacks))
    };
    let columns = 0..JOB_COLUMNS.len();
    let place = |column| if is_older(&column) { Ok(None) } else { find(JOB_COLUMNS[column].name) };
    columns.map(place).collect()
}

fn csv_error(file: &str, error: csv::Error) -> JobsCsvError {
    let file = file.to_owned();
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            JobsCsvError::FieldCount { file, line, expected: *expected_len, found: *len }
        }
        ErrorKind::Utf8 { err, .. } => {
            JobsCsvError::NotUtf8 { file, line, column: err.field() + 1 }
        }
        _ => JobsCsvError::Read { file, source: error },
    }
}

/// Dense ids for names, in order of appearance.
#[derive(Default)]
struct Interner {
    ids: BTreeMap<String, u32>,
    names: Vec<String>,
}

impl Interner {
    fn id(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = u32::try_from(self.names.len()).expect("there are no more names than jobs");
        self.ids.insert(name.to_owned(), id);
        self.names.push(name.to_owned());
        id
    }
}

/// One line, read by the position of a column in the contract.
struct Line<'a> {
    file: &'a str,
    number: u64,
    record: &'a StringRecord,
    places: &'a [Option<usize>],
}

impl Line<'_> {
    fn job(&self, job: JobId, tenant: TenantId, user: UserId) -> Result<JobRecord, JobsCsvError> {
        let required = |column| self.span(column)?.ok_or_else(|| self.wrong_seconds(column));
        let later = |column: usize| match self.places[column] {
            Some(_) => required(column),
            None => Ok(Span::ZERO),
        };
        let instant = |column| Ok(self.span(column)?.map(|span| Time(span.0)));
        let record = JobRecord {
            job,
            tenant,
            user,
            pool: PoolId(0),
            class: self.word(13, &[Class::Guaranteed, Class::BestEffort], |class| class.name())?,
            gpus: self.count(2)?,
            profile: self.profile(22)?,
            slowdown_limit_milli: self.limit(23)?,
            submit: Time(required(3)?.0),
            duration: required(9)?,
            first_start: instant(4)?,
            end: instant(5)?,
            waited: self.span(6)?.unwrap_or_default(),
            preemptions: self.count(8)?,
            restarts_by_failure: self.count(18)?,
            shared: later(20)?,
            slowed: later(21)?,
            beside: Vec::new(),
            work_lost: required(16)?,
            restart_overhead: required(17)?,
            outcome: self.word(15, &Outcome::ALL, |outcome| outcome.name())?,
            refused: self.word(19, &[false, true], |&yes| if yes { "true" } else { "false" })?,
        };
        self.check(&record)?;
        Ok(record)
    }

    /// What cannot be true of any job, and would make every figure wrong.
    fn check(&self, job: &JobRecord) -> Result<(), JobsCsvError> {
        let wrong = |column, problem: &str| Err(self.wrong(column, problem.to_owned()));
        if job.first_start.is_some_and(|start| start < job.submit) {
            return wrong(4, "is before the submission; check that both are seconds");
        }
        if job.end.is_some_and(|end| end < job.first_start.unwrap_or(job.submit)) {
            return wrong(5, "is before the start; check that both are seconds");
        }
        if self.span(7)? != job.jct() {
            return wrong(7, "is not `end_s - submit_s`; write the file again");
        }
        if job.slowed > job.shared {
            return wrong(21, "is more than `shared_s`; write the file again");
        }
        if self.text(6).is_empty() == job.end.is_some() {
            return wrong(6, "must be there if the job ended and empty if it did not");
        }
        Ok(())
    }

    /// Empty if the file is older than the column.
    fn text(&self, column: usize) -> &str {
        let field = |place| self.record.get(place).expect("every line has the header's length");
        self.places[column].map_or("", field)
    }

    /// A class of profiles, or nothing if the field is empty.
    fn profile(&self, column: usize) -> Result<Option<ProfileClassId>, JobsCsvError> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.strip_prefix('c').and_then(|number| number.parse().ok());
        let wrong = || self.wrong(column, "is no class of profiles such as `c3`".to_owned());
        number.map(|number| Some(ProfileClassId(number))).ok_or_else(wrong)
    }

    /// A ratio in thousandths; 0 if the field is empty.
    fn limit(&self, column: usize) -> Result<u32, JobsCsvError> {
        // Exact decimals, as seconds are.
        let micros = self.span(column)?.unwrap_or_default().0;
        let milli = u32::try_from(micros / 1_000).ok().filter(|_| micros % 1_000 == 0);
        milli.ok_or_else(|| {
            self.wrong(column, "is not a ratio of at most three decimals".to_owned())
        })
    }

    /// Seconds, or nothing if the field is empty.
    fn span(&self, column: usize) -> Result<Option<Span>, JobsCsvError> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        let micros = parse_seconds(text).map_err(|error| self.wrong(column, error.to_string()))?;
        Ok(Some(Span(micros)))
    }

    fn count(&self, column: usize) -> Result<u32, JobsCsvError> {
        self.text(column).parse().map_err(|_| {
            self.wrong(column, "is not a whole number from 0 to 4,294,967,295".to_owned())
        })
    }

    fn word<T: Copy>(
        &self,
        column: usize,
        choices: &[T],
        name: impl Fn(&T) -> &'static str,
    ) -> Result<T, JobsCsvError> {
        let text = self.text(column);
        choices.iter().copied().find(|choice| name(choice) == text).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(&name).collect();
            self.wrong(column, format!("is none of {}", names.join(", ")))
        })
    }

    fn wrong_seconds(&self, column: usize) -> JobsCsvError {
        self.wrong(column, NotSeconds::Malformed.to_string())
    }

    fn wrong(&self, column: usize, problem: String) -> JobsCsvError {
        JobsCsvError::Field {
            file: self.file.to_owned(),
            line: self.number,
            column: JOB_COLUMNS[column].name,
            value: self.text(column).chars().take(40).collect(),
            problem,
        }
    }
}
