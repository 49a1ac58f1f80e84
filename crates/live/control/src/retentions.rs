//! The retention file: what pods of two profile classes keep of their speed beside each other.
//!
//! ```json
//! { "version": 1, "keeps": { "resnet": { "resnet": 0.7, "bert": 0.9 }, "bert": { "resnet": 0.85 } } }
//! ```
//!
//! A pair that is not in it never shares.

use deepshare_engine::RetentionTable;
use deepshare_model::Retention;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Profile classes by name, and what they keep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Retentions {
    /// Their names, in the order of the table.
    pub profiles: Vec<String>,
    /// The table.
    pub table: RetentionTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u64,
    keeps: BTreeMap<String, BTreeMap<String, f64>>,
    /// How far predicted slowdowns are from true ones: percentiles 0 to 100 of true less predicted.
    #[serde(default)]
    errors: Vec<f64>,
}

impl Retentions {
    /// Reads a retention file.
    ///
    /// # Errors
    /// What is wrong with it, with its path, and line and column where it is not JSON of this shape.
    pub fn from_file(path: &Path) -> Result<Retentions, String> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the retention file {name}: {error}"))?;
        Retentions::from_text(&text).map_err(|what| format!("{name}: {what}"))
    }

    fn from_text(text: &str) -> Result<Retentions, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let partners = file.keeps.values().flat_map(BTreeMap::keys);
        let all: BTreeSet<&String> = file.keeps.keys().chain(partners).collect();
        let profiles: Vec<String> = all.into_iter().cloned().collect();
        let mut rows = Vec::new();
        for own in &profiles {
            let mut row = Vec::new();
            for other in &profiles {
                let kept = file.keeps.get(own).and_then(|row| row.get(other)).copied();
                let kept = kept.unwrap_or(0.0);
                if !(0.0..=1.0).contains(&kept) {
                    return Err(format!(
                        "{own} keeps {kept} beside {other}: write a share from 0 to 1"
                    ));
                }
                row.push(Retention::from_ratio(kept));
            }
            rows.push(row);
        }
        let errors_ppm = file.errors.iter().map(|error| (error * 1e6).round() as i32).collect();
        let table = RetentionTable { version: file.version, rows, scores: Vec::new(), errors_ppm };
        Ok(Retentions { profiles, table })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_that_is_not_named_keeps_next_to_nothing() {
        let text = r#"{ "version": 3, "keeps": { "a": { "b": 0.9 }, "b": { "a": 0.8 } } }"#;
        let Retentions { profiles, table } = Retentions::from_text(text).unwrap();
        assert_eq!((profiles, table.version), (vec!["a".to_owned(), "b".to_owned()], 3));
        let ppm = |own: usize, other: usize| table.rows[own][other].ppm();
        assert_eq!((ppm(0, 1), ppm(1, 0), ppm(0, 0)), (900_000, 800_000, 1));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let wrong = |text| Retentions::from_text(text).unwrap_err();
        assert!(wrong("{").contains("line 1 column 1"), "{}", wrong("{"));
        let share = wrong(r#"{ "version": 1, "keeps": { "a": { "b": 1.9 } } }"#);
        assert_eq!(share, "a keeps 1.9 beside b: write a share from 0 to 1");
        assert!(
            wrong(r#"{ "version": 1, "keeps": {}, "kept": {} }"#).contains("unknown field `kept`")
        );
    }
}
