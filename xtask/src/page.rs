//! Pages of the documentation of which a part is written by a chore.

use crate::Failure;
use crate::process::{git, output};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of a page between which a report stands.
pub struct Marks {
    /// The page, from the root of the repository.
    pub page: &'static str,
    /// The line before it.
    pub begin: &'static str,
    /// The line after it.
    pub end: &'static str,
}

/// Puts a report into its page.
///
/// # Errors
/// If the page cannot be read or written, or lacks the marks.
pub fn write(root: &Path, marks: &Marks, report: &str) -> Result<(), Failure> {
    let name = marks.page;
    let page = root.join(name);
    let old = std::fs::read_to_string(&page);
    let old = old.map_err(|error| format!("cannot read {name}: {error}"))?;
    let new = insert(&old, marks, report)?;
    std::fs::write(&page, new).map_err(|error| format!("cannot write {name}: {error}"))
}

/// The data folder: as given, of the environment, or beside the repository.
///
/// # Errors
/// If the folder given is not one.
pub fn data(root: &Path, given: Option<PathBuf>) -> Result<Option<PathBuf>, Failure> {
    let holds_month = |folder: &PathBuf| folder.join("helios_venus").is_dir();
    if let Some(folder) = given {
        let shown = folder.display().to_string();
        return match holds_month(&folder) {
            true => Ok(Some(folder)),
            false => Err(format!("--data {shown}: there is no folder helios_venus in it")),
        };
    }
    let folder = std::env::var_os("DEEPSHARE_DATA")
        .map_or_else(|| root.join("../shared/data"), |folder| root.join(folder));
    Ok(Some(folder).filter(holds_month))
}

/// Where it was measured, and `how`.
///
/// # Errors
/// If git or rustc do not answer.
pub fn preamble(root: &Path, how: &str) -> Result<String, Failure> {
    let commit = output(git(root).args(["rev-parse", "--short", "HEAD"]))?;
    let changed = !output(git(root).args(["status", "--porcelain", "--", "crates"]))?.is_empty();
    let rust = output(Command::new("rustc").arg("--version"))?;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    Ok(format!(
        "{}, {cores} cores shared with other work; {}. Commit {}{}. {how}\n",
        cpu_model(),
        rust.trim(),
        commit.trim(),
        if changed { " with changes" } else { "" },
    ))
}

fn cpu_model() -> String {
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "CPU of unknown model".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Puts the report between the page's marks.
fn insert(page: &str, marks: &Marks, report: &str) -> Result<String, Failure> {
    let Marks { page: name, begin, end } = marks;
    let parts = page.split_once(begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(end)?;
        Some((before, after))
    });
    let (before, after) =
        parts.ok_or_else(|| format!("{name} lacks the marks {begin} and {end}"))?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", report.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Marks = Marks { page: "docs/a.md", begin: "<!-- begin -->", end: "<!-- end -->" };

    #[test]
    fn a_report_replaces_what_was_between_the_marks_and_nothing_else() {
        let Marks { begin, end, .. } = MARKS;
        let page = format!("# A\n{begin}\nold\n{end}\nrest\n");
        let new = insert(&page, &MARKS, "| new |\n").unwrap();
        assert_eq!(new, format!("# A\n{begin}\n\n| new |\n\n{end}\nrest\n"));
        assert_eq!(insert(&new, &MARKS, "| new |\n").unwrap(), new);
        assert!(insert("# A\n", &MARKS, "x").is_err());
    }
}
