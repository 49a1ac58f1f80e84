//! Committed pages that are generated, held to what generates them.

use std::fs;
use std::path::Path;

/// Fails if the file, named from the root of the repository, is not `text`. With `UPDATE_DOCS=1`
/// in the environment it is written instead.
pub fn assert_pinned(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(file);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "{file} is out of date: `UPDATE_DOCS=1 cargo test` writes it anew");
}
