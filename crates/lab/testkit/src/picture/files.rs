//! Pictures that scripts ask for, and whether those in the repository are theirs.

use super::picture;
use crate::scenario::{record_scenario, scenario_files};
use std::collections::BTreeMap;
use std::path::Path;

/// What a script's line begins with that asks for a picture; the picture's path follows.
const ASKS: &str = "# picture: ";
/// Where all of them lie, from the root of the repository.
const FOLDER: &str = "docs/images/schedules/";

/// The pictures of a repository, by path from its root.
pub struct Pictures(BTreeMap<String, String>);

impl Pictures {
    /// Draws what the scripts of the repository at `root` ask for.
    ///
    /// # Errors
    /// If a script cannot be read or run, or asks for what cannot be; with its path and a remedy.
    pub fn draw(root: &Path) -> Result<Pictures, String> {
        let mut pictures = BTreeMap::new();
        for file in scenario_files(root).map_err(|error| format!("scenarios: {error}"))? {
            let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|error| format!("{name}: cannot be read: {error}"))?;
            for path in text.lines().filter_map(|line| line.strip_prefix(ASKS)) {
                let path = path.trim();
                check_path(&name, path)?;
                let svg = draw(&name, &text).map_err(|error| format!("{name}: {error}"))?;
                if pictures.insert(path.to_owned(), svg).is_some() {
                    return Err(format!("{name}: another script asks for {path}; name it anew"));
                }
            }
        }
        Ok(Pictures(pictures))
    }

    /// Paths of all, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Writes all, and removes those that nobody asks for any more.
    ///
    /// # Errors
    /// If a file cannot be written or removed.
    pub fn write(&self, root: &Path) -> Result<(), String> {
        let failed = |path: &str, error| format!("{path}: cannot be written: {error}");
        std::fs::create_dir_all(root.join(FOLDER)).map_err(|error| failed(FOLDER, error))?;
        for (path, svg) in &self.0 {
            std::fs::write(root.join(path), svg).map_err(|error| failed(path, error))?;
        }
        for path in self.unasked(root) {
            std::fs::remove_file(root.join(&path)).map_err(|error| failed(&path, error))?;
        }
        Ok(())
    }

    /// What is wrong with the pictures in the repository, a line each.
    pub fn stale(&self, root: &Path) -> Vec<String> {
        let differs = |(path, svg): (&String, &String)| {
            let committed = std::fs::read_to_string(root.join(path));
            let why = match committed {
                Err(_) => "is not there",
                Ok(text) if text != *svg => "is out of date",
                Ok(_) => return None,
            };
            Some(format!("{path} {why}"))
        };
        let unasked = self.unasked(root).into_iter();
        let unasked = unasked.map(|path| format!("{path} is asked for by no script"));
        self.0.iter().filter_map(differs).chain(unasked).collect()
    }

    /// Files in the folder that no script asks for.
    fn unasked(&self, root: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(root.join(FOLDER)).into_iter().flatten().flatten();
        let names = entries.map(|entry| format!("{FOLDER}{}", entry.file_name().to_string_lossy()));
        let mut unasked: Vec<String> = names.filter(|path| !self.0.contains_key(path)).collect();
        unasked.sort();
        unasked
    }
}

fn check_path(script: &str, path: &str) -> Result<(), String> {
    let name = path.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(".svg"));
    let plain = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !name.is_empty() && name.chars().all(plain)
    };
    match name.is_some_and(plain) {
        true => Ok(()),
        false => Err(format!(
            "{script}: `{path}` is no path of a picture; write `{ASKS}{FOLDER}NAME.svg`"
        )),
    }
}

/// The picture of a script, whose title is the name of its file.
fn draw(name: &str, text: &str) -> Result<String, String> {
    let schedule = record_scenario(text).map_err(|error| error.to_string())?;
    let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".scn");
    let words = stem.replace('_', " ");
    let mut letters = words.chars();
    let title: String =
        letters.next().iter().flat_map(|c| c.to_uppercase()).chain(letters).collect();
    let policy = text.lines().find(|line| line.starts_with("policy ")).unwrap_or("policy fifo");
    let policy = policy.split('#').next().unwrap_or(policy).trim_end();
    Ok(picture(&schedule, &title, &format!("{policy}  ·  {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_lie_in_one_folder_under_plain_names() {
        assert_eq!(check_path("a.scn", "docs/images/schedules/a-pair_2.svg"), Ok(()));
        for path in ["docs/a.svg", "docs/images/schedules/.svg", "docs/images/schedules/../a.svg"] {
            let said = check_path("a.scn", path).unwrap_err();
            assert!(said.contains("write `# picture: docs/images/schedules/NAME.svg`"), "{said}");
        }
    }
}
