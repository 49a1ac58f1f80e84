//! Typed access to the keys of a TOML table, with the place of each in the file.

use crate::error::{Problem, Problems, quote, shorten};
use deepshare_model::{GpuTypeId, Quota, Span};
use std::ops::Range;
use toml_edit::{Item, Table, Value};

/// Turns positions in a text into lines and columns.
pub(super) struct Place<'a> {
    text: &'a str,
}

/// A table of a file.
pub(super) struct Fields<'a> {
    table: &'a Table,
    place: &'a Place<'a>,
}

impl<'a> Place<'a> {
    pub(super) fn of(text: &'a str) -> Place<'a> {
        Place { text }
    }

    /// The problem, at the start of `span`.
    pub(super) fn put(&self, mut problem: Problem, span: Option<Range<usize>>) -> Problem {
        let Some(span) = span else { return problem };
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        problem.line = Some(before.matches('\n').count() as u64 + 1);
        problem.column = Some((before[line_start..].chars().count() + 1, String::new()));
        problem
    }
}

impl<'a> Fields<'a> {
    pub(super) fn of(table: &'a Table, place: &'a Place<'a>) -> Fields<'a> {
        Fields { table, place }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Reports keys that mean nothing.
    pub(super) fn refuse_unknown(&self, table: &str, keys: &[&str], problems: &mut Problems) {
        for (key, item) in self.table.iter() {
            if !keys.contains(&key) {
                let span = self.table.key(key).and_then(|k| k.span()).or(item.span());
                let what = format!("unknown key {} in [[{table}]]", quote(key));
                let problem = Problem::of_file(what, format!("use {}", keys.join(", ")));
                problems.push(self.place.put(problem, span));
            }
        }
    }

    /// Reports a problem with a key, or with the table if it lacks the key.
    pub(super) fn problem(
        &self,
        key: &str,
        what: impl Into<String>,
        remedy: &str,
        problems: &mut Problems,
    ) {
        let span = self.table.get(key).and_then(Item::span).or(self.table.span());
        problems.push(self.place.put(Problem::of_file(what, remedy), span));
    }

    /// A name: a string without control characters.
    pub(super) fn text(&self, key: &str, problems: &mut Problems) -> Option<&'a str> {
        let item = self.table.get(key)?;
        let Some(text) = item.as_str() else {
            self.wrong(key, item, "is not a string", "put it in double quotes", problems);
            return None;
        };
        if text.contains(char::is_control) {
            let remedy = "remove it: names are shown in tables and written to files";
            self.wrong(key, item, "holds a control character", remedy, problems);
            return None;
        }
        Some(text)
    }

    /// A whole number within bounds.
    pub(super) fn whole(
        &self,
        key: &str,
        least: u64,
        most: u64,
        problems: &mut Problems,
    ) -> Option<u64> {
        let item = self.table.get(key)?;
        let value = item.as_integer().and_then(|v| u64::try_from(v).ok());
        let value = value.filter(|v| (least..=most).contains(v));
        if value.is_none() {
            let remedy = format!("give a whole number from {least} to {most}");
            self.wrong(key, item, "is not possible", &remedy, problems);
        }
        value
    }

    /// A number of thousandths of what is written, from 0 to `most`.
    pub(super) fn milli(&self, key: &str, most: f64, problems: &mut Problems) -> Option<u64> {
        self.decimal(key, most, problems).map(|value| (value * 1000.0).round() as u64)
    }

    /// A number of seconds, up to a hundred years.
    pub(super) fn span(&self, key: &str, problems: &mut Problems) -> Option<Span> {
        self.decimal(key, 100.0 * 31_557_600.0, problems).and_then(Span::from_secs_f64)
    }

    fn decimal(&self, key: &str, most: f64, problems: &mut Problems) -> Option<f64> {
        let item = self.table.get(key)?;
        let value = item.as_float().or_else(|| item.as_integer().map(|v| v as f64));
        let value = value.filter(|v| (0.0..=most).contains(v));
        if value.is_none() {
            let remedy = format!("give a number from 0 to {most}");
            self.wrong(key, item, "is not possible", &remedy, problems);
        }
        value
    }

    /// GPUs by type: a table, or one number if the cluster has one type.
    pub(super) fn quota(
        &self,
        key: &str,
        types: &[String],
        most: u32,
        problems: &mut Problems,
    ) -> Option<Quota> {
        let item = self.table.get(key)?;
        let mut quota = Quota::default();
        let gpus =
            |v: &Value| v.as_integer().and_then(|v| u32::try_from(v).ok()).filter(|&v| v <= most);
        let remedy = format!("give GPUs from 0 to {most}");
        if let Some(table) = item.as_table_like() {
            for (name, entry) in table.iter() {
                let number = types.iter().position(|t| t == name);
                let value = entry.as_value().and_then(&gpus);
                if number.is_none() {
                    let why = format!("names the GPU type {}, which no node has", quote(name));
                    let remedy = format!("use the gpu_type of a node: {}", types.join(", "));
                    self.problem(key, format!("quota {why}"), &remedy, problems);
                } else if value.is_none() {
                    self.wrong(key, entry, "is not possible", &remedy, problems);
                }
                if let (Some(number), Some(value)) = (number, value) {
                    quota.set(GpuTypeId::from_index(number), value);
                }
            }
            return Some(quota);
        }
        match item.as_value().and_then(&gpus) {
            Some(value) if types.len() == 1 => quota.set(GpuTypeId(0), value),
            Some(_) => {
                let what =
                    format!("a quota of one number where there are {} GPU types", types.len());
                let remedy = "give a number for each, such as quota = { A100 = 32 }";
                self.problem(key, what, remedy, problems);
            }
            None => self.wrong(key, item, "is not possible", &remedy, problems),
        }
        Some(quota)
    }

    fn wrong(&self, key: &str, item: &Item, why: &str, remedy: &str, problems: &mut Problems) {
        let what = format!("{key} = {} {why}", shorten(item.to_string().trim()));
        let problem = Problem::of_file(what, remedy);
        problems.push(self.place.put(problem, item.span().or(self.table.span())));
    }
}
