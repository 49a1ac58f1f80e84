//! The data folder, for tests that read it.

use std::path::{Path, PathBuf};

/// The folder, if it has Philly's history; else says that the test is skipped.
pub(crate) fn with_philly() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let data = std::env::var_os("DEEPSHARE_DATA");
    let data = root.join(data.map_or_else(|| "../shared/data".into(), PathBuf::from));
    if data.join("philly/philly.csv.zst").exists() {
        return Some(data);
    }
    eprintln!("skipped: philly/philly.csv.zst is absent");
    None
}
