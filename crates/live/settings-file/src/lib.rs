//! A settings file into keys and values, each with its place. Which keys there are and what they mean
//! is up to the program that reads them.

use std::fmt;
use std::ops::Range;
use toml_edit::{Document, TableLike, Value};

/// One thing that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: `settings.toml:3:5`, or `--set #2` on a command line.
    pub place: String,
    /// What is wrong and what to do.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// What a file says about one key.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key's name, as in `lease.duration_s`: `[lease] duration_s`, `lease.duration_s` and
    /// `lease = { duration_s }` are the same key.
    pub name: String,
    /// Its value, or that it is a list of tables, which no key is.
    pub value: Result<Value, String>,
    /// Where it is set: `settings.toml:3:5`.
    pub place: String,
}

/// Every key in the text of a file called `name`, in the order in which they stand there.
///
/// # Errors
/// If the text is not TOML.
pub fn entries(name: &str, text: &str) -> Result<Vec<Entry>, Problem> {
    let file = File { name, text };
    let document = text.parse::<Document<String>>().map_err(|error| {
        let reason = error.message().trim().replace('\n', ", ");
        Problem { place: file.place(error.span()), what: format!("not valid TOML: {reason}") }
    })?;
    let mut entries = Vec::new();
    file.table(document.as_table(), "", &mut entries);
    Ok(entries)
}

struct File<'a> {
    name: &'a str,
    text: &'a str,
}

impl File<'_> {
    fn table(&self, table: &dyn TableLike, prefix: &str, entries: &mut Vec<Entry>) {
        for (part, item) in table.iter() {
            let name = if prefix.is_empty() { part.to_owned() } else { format!("{prefix}.{part}") };
            if let Some(inner) = item.as_table_like() {
                self.table(inner, &name, entries);
                continue;
            }
            let place = self.place(table.key(part).and_then(toml_edit::Key::span).or(item.span()));
            let value = item.as_value().cloned();
            let value = value.ok_or_else(|| format!("`{name}` is a list of tables; no key is one"));
            entries.push(Entry { name, value, place });
        }
    }

    /// `file:line:column`, both from 1; the column counts characters.
    fn place(&self, span: Option<Range<usize>>) -> String {
        let Some(span) = span else { return self.name.to_owned() };
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_however_it_is_written_and_has_its_place() {
        let text = "[a]\nb = 1\n\n[c]\n  \"é\" = { d = 2 }\n[[e]]\nf = 3\n";
        let entries = entries("s.toml", text).unwrap();
        let said: Vec<String> = entries
            .iter()
            .map(|entry| match &entry.value {
                Ok(value) => format!("{} {}={value}", entry.place, entry.name),
                Err(what) => format!("{} {what}", entry.place),
            })
            .map(|said| said.replace("= ", "="))
            .collect();
        assert_eq!(said[0], "s.toml:2:1 a.b=1");
        assert_eq!(said[1].trim_end(), "s.toml:5:11 c.é.d=2");
        assert!(said[2].ends_with("`e` is a list of tables; no key is one"), "{}", said[2]);
    }

    #[test]
    fn what_is_no_toml_is_a_problem_with_its_place() {
        let problem = entries("s.toml", "a = 1\nb = \n").unwrap_err();
        assert!(problem.to_string().starts_with("s.toml:2:"), "{problem}");
    }
}
