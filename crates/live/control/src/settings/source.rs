//! A settings file into assignments, each with its place.

use super::{KEYS, Key, Problem};
use std::ops::Range;
use toml_edit::{Document, TableLike, Value};

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
    let mut file = File { name, text, problems, assignments: Vec::new() };
    match text.parse::<Document<String>>() {
        Ok(document) => file.table(document.as_table(), ""),
        Err(error) => {
            let reason = error.message().trim().replace('\n', ", ");
            file.problem(error.span(), format!("not valid TOML: {reason}"));
        }
    }
    file.assignments
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

struct File<'a> {
    name: &'a str,
    text: &'a str,
    problems: &'a mut Vec<Problem>,
    assignments: Vec<Assignment>,
}

impl File<'_> {
    /// Takes what a table holds; `[lease] name`, `lease.name` and `lease = { name }` are the same key.
    fn table(&mut self, table: &dyn TableLike, prefix: &str) {
        for (part, item) in table.iter() {
            let name = if prefix.is_empty() { part.to_owned() } else { format!("{prefix}.{part}") };
            let span = table.key(part).and_then(toml_edit::Key::span).or(item.span());
            if let Some(inner) = item.as_table_like() {
                self.table(inner, &name);
                continue;
            }
            match (item.as_value(), find(&name)) {
                (Some(value), Ok(key)) => {
                    let (value, place) = (value.clone(), self.place(span));
                    self.assignments.push(Assignment { key, value, place });
                }
                (_, Err(what)) => self.problem(span, what),
                (None, Ok(_)) => {
                    self.problem(span, format!("`{name}` is a list of tables; no key is one"));
                }
            }
        }
    }

    fn problem(&mut self, span: Option<Range<usize>>, what: String) {
        let place = self.place(span);
        self.problems.push(Problem { place, what });
    }

    /// `file:line:column`, both from 1; the column counts characters.
    fn place(&self, span: Option<Range<usize>>) -> String {
        let Some(before) = span.and_then(|span| self.text.get(..span.start)) else {
            return self.name.to_owned();
        };
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }
}
