//! The lines of a script in `scenarios/kubernetes/`: the part of the lab's language
//! (`docs/formats/scenario.md`) that means something on a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

/// One command of a script.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its number, from 1.
    pub number: usize,
    /// Its instant; of a line without one, that of the line before.
    pub at: Duration,
    /// The command.
    pub verb: String,
    /// What follows it, as far as it is no `key=value`.
    pub words: Vec<String>,
    /// What follows it as `key=value`.
    pub values: BTreeMap<String, String>,
}

impl Line {
    /// A value, or a default.
    pub fn value<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.values.get(key).map_or(default, String::as_str)
    }

    /// A word by its place.
    ///
    /// # Panics
    /// If the line has fewer: the lab would not run it either.
    pub fn word(&self, at: usize) -> &str {
        let word = self.words.get(at).map(String::as_str);
        word.unwrap_or_else(|| panic!("line {}: {} says too little", self.number, self.verb))
    }
}

/// The commands of a script.
pub fn lines(script: &str) -> Vec<Line> {
    let mut at = Duration::ZERO;
    let mut lines = Vec::new();
    for (index, raw) in script.lines().enumerate() {
        let text = raw.split('#').next().unwrap_or_default();
        if text.starts_with('>') {
            continue;
        }
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if let Some(time) = words.first().and_then(|word| time(word)) {
            at = time;
            words.remove(0);
        }
        if words.is_empty() {
            continue;
        }
        let verb = words.remove(0).to_owned();
        let (values, words): (Vec<&str>, Vec<&str>) =
            words.into_iter().partition(|word| word.contains('='));
        let values = values.into_iter().filter_map(|word| {
            let (key, value) = word.split_once('=')?;
            Some((key.to_owned(), value.to_owned()))
        });
        if verb == "run" {
            at = words.last().and_then(|word| time(word)).unwrap_or(at);
        }
        lines.push(Line {
            number: index + 1,
            at,
            verb,
            words: words.into_iter().map(str::to_owned).collect(),
            values: values.collect(),
        });
    }
    lines
}

/// `40s`, `1.5s`, `50ms`, `2m`, `1h`.
pub fn time(text: &str) -> Option<Duration> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];
    units.into_iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs_f64(number * seconds))
    })
}
