//! A settings file into assignments, each with its place.

use super::{KEYS, Key, Problem};
use deepshare_settings_file::{Entry, entries};
use toml_edit::Value;

/// A key that a file sets.
pub struct Assignment {
    /// Which.
    pub key: &'static Key,
    /// To what.
    pub value: Value,
    /// Where: `settings.toml:3:5`.
    pub place: String,
}

/// Reads the text of a file called `name`.
pub fn read(name: &str, text: &str, problems: &mut Vec<Problem>) -> Vec<Assignment> {
    let entries = entries(name, text).unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    let mut assignments = Vec::new();
    for Entry { name, value, place } in entries {
        match find(&name).and_then(|key| Ok((key, value?))) {
            Ok((key, value)) => assignments.push(Assignment { key, value, place }),
            Err(what) => problems.push(Problem { place, what }),
        }
    }
    assignments
}

/// The key of this name, or what to say if there is none.
fn find(name: &str) -> Result<&'static Key, String> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(key);
    }
    let distance = |key: &&Key| strsim::damerau_levenshtein(key.name, name);
    let nearest = KEYS.iter().min_by_key(distance).filter(|key| {
        // A name within a third of its length is a slip.
        distance(key) <= name.len().div_ceil(3)
    });
    let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
    let misplaced = KEYS.iter().find(|key| last(key.name) == last(name));
    match misplaced.or(nearest) {
        Some(key) => Err(format!("unknown key `{name}`; did you mean `{}`?", key.name)),
        None => Err(format!("unknown key `{name}`; docs/kubernetes/settings.md lists all keys")),
    }
}
