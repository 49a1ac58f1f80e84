//! Where settings come from: a TOML file, `--set`, or flags. Only text becomes values here; what
//! they mean is up to the keys.

use super::{Key, Problem, find_key};
use deepshare_settings_file::{Entry, entries};
use std::fmt;
use std::path::{Path, PathBuf};
use toml_edit::Value;

/// A value for a key, and where it comes from.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The key.
    pub key: &'static Key,
    /// The value, as yet of no kind.
    pub value: Raw,
    /// Where it was said.
    pub place: String,
}

impl Assignment {
    /// True if it comes from the command line, not from a file.
    pub fn is_typed(&self) -> bool {
        self.value.typed.is_some()
    }
}

/// A value as it was given.
#[derive(Clone, Debug)]
pub struct Raw {
    /// As TOML; text that is no TOML is a string.
    pub value: Value,
    /// As typed, if it came from the command line.
    typed: Option<String>,
    /// The folder that relative paths start from; the current one if `None`.
    folder: Option<PathBuf>,
}

impl Raw {
    /// A value typed on the command line, where strings need no quotes.
    pub fn typed(text: &str) -> Raw {
        let value = text.parse().unwrap_or_else(|_| Value::from(text));
        Raw { value, typed: Some(text.to_owned()), folder: None }
    }

    /// A text given by a flag that takes nothing else.
    pub fn text(text: &str) -> Raw {
        Raw { value: Value::from(text), typed: Some(text.to_owned()), folder: None }
    }

    /// The value as a word.
    pub fn word(&self) -> Option<&str> {
        self.value.as_str().or(self.typed.as_deref())
    }

    /// The value as a path; relative ones are from the file they are written in.
    pub fn path(&self) -> Option<PathBuf> {
        let text = self.word().filter(|text| !text.is_empty())?;
        Some(self.folder.as_ref().map_or_else(|| PathBuf::from(text), |base| base.join(text)))
    }

    /// The elements of a list, which may be typed without brackets; a single value is its own.
    pub fn items(&self) -> Vec<Value> {
        match (&self.value, &self.typed) {
            (Value::Array(array), _) => array.iter().cloned().collect(),
            (Value::String(_), Some(text)) if text.contains(',') => {
                text.split(',').map(|part| Raw::typed(part.trim()).value).collect()
            }
            (single, _) => vec![single.clone()],
        }
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.typed {
            Some(text) => text.clone(),
            None => self.value.to_string().trim().to_owned(),
        };
        match text.char_indices().nth(60) {
            Some((cut, _)) => write!(f, "{}…", &text[..cut]),
            None => f.write_str(&text),
        }
    }
}

/// Reads `key=value` texts of `--set`.
pub fn from_text(texts: &[String], problems: &mut Vec<Problem>) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    for (number, text) in (1..).zip(texts) {
        let place = format!("--set #{number}");
        let found = match text.split_once('=') {
            Some((name, value)) => find_key(name.trim()).map(|key| (key, Raw::typed(value.trim()))),
            None => Err(format!("`{text}` is not of the form key=value")),
        };
        match found {
            Ok((key, value)) => assignments.push(Assignment { key, value, place }),
            Err(what) => problems.push(Problem { place, what }),
        }
    }
    assignments
}

/// Reads a settings file.
pub fn from_file(path: &Path, problems: &mut Vec<Problem>) -> Vec<Assignment> {
    let name = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            let what = format!("cannot read the settings file: {error}; check the path");
            problems.push(Problem { place: name, what });
            return Vec::new();
        }
    };
    let entries = entries(&name, &text).unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut assignments = Vec::new();
    for Entry { name, value, place } in entries {
        match value.and_then(|value| Ok((find_key(&name)?, value))) {
            Ok((key, value)) => {
                let value = Raw { value, typed: None, folder: Some(folder.to_owned()) };
                assignments.push(Assignment { key, value, place });
            }
            Err(what) => problems.push(Problem { place, what }),
        }
    }
    assignments
}
