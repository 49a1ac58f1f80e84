//! The files of a log.

use std::io;
use std::path::{Path, PathBuf};

const ENDING: &str = ".dslog";

/// The file of a segment.
pub(crate) fn path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:08}{ENDING}"))
}

/// Numbers and sizes in bytes of the segments in a folder, oldest first. Other files are let be.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<(u32, u64)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        let number = number.filter(|digits| digits.len() == 8).and_then(|n| n.parse().ok());
        if let Some(number) = number {
            found.push((number, entry.metadata()?.len()));
        }
    }
    found.sort_unstable();
    Ok(found)
}
