//! The folder of a simulation: `DIR/<policy>/{jobs.csv,summary.json}`, `run.json`, `settings.toml`.

use super::{Report, document};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::settings::to_toml;
use crate::staging::{RESULT_FILES, Target};
use deepshare_metrics::{Names, write_jobs_csv};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes the folder, whole or not at all.
///
/// # Errors
/// If it cannot be written or the user stops it; nothing is left then, and what was there before
/// still is.
pub fn write_folder(
    report: &Report<'_>,
    target: Target,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let staged = target.stage()?;
    let trace = &report.inputs.trace;
    let ids: Vec<&str> = trace.jobs.iter().map(|job| job.id.as_str()).collect();
    let tenants: Vec<&str> = trace.tenants.iter().map(String::as_str).collect();
    let users: Vec<&str> = trace.users.iter().map(String::as_str).collect();
    let names = Names { jobs: &ids, tenants: &tenants, users: &users };
    for (record, run) in report.records.iter().zip(report.runs()) {
        interrupt.check()?;
        let folder = staged.path().join(&record.policy);
        fs::create_dir(&folder).map_err(Failure::write(&folder))?;
        write(&folder.join("jobs.csv"), interrupt, |file| {
            write_jobs_csv(file, &names, &record.jobs)
        })?;
        let text = document::line(&run);
        write(&folder.join("summary.json"), interrupt, |file| file.write_all(text.as_bytes()))?;
    }
    for (name, text) in RESULT_FILES.iter().zip([report.json(), to_toml(report.settings)]) {
        write(&staged.path().join(name), interrupt, |file| file.write_all(text.as_bytes()))?;
    }
    interrupt.check()?;
    target.put(staged)
}

fn write(
    path: &Path,
    interrupt: &Interrupt,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let file = File::create_new(path).map_err(Failure::write(path))?;
    let mut file = BufWriter::new(interrupt.stoppable(file));
    content(&mut file).and_then(|()| file.flush()).map_err(interrupt.failure(path))
}
