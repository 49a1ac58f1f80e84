//! What does not belong into the repository: data, large files, paths of one machine.

use super::Violation;
use super::tree::Tree;

const MAX_BYTES: u64 = 1 << 20;
const DATA: [&str; 3] = [".zst", ".gz", ".parquet"];
/// Folders of one machine, without their slashes: this file is checked, too.
const MACHINE_FOLDERS: [&str; 4] = ["work", "tmp", "root", "home"];

/// Checks every file.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in &tree.files {
        let path = &file.path;
        if let Some(ending) = DATA.iter().find(|ending| path.ends_with(**ending)) {
            let what = format!("a {ending} file in the repository");
            let remedy = "keep data in the data folder, whose licences do not allow more; let \
                          tests make theirs";
            violations.push(Violation::new(path, 1, "data-file", what, remedy));
        }
        if file.bytes > MAX_BYTES {
            let what = format!("{} bytes, at most {MAX_BYTES} are allowed", file.bytes);
            let remedy = "generate it, or keep it in the data folder";
            violations.push(Violation::new(path, 1, "large-file", what, remedy));
        }
        let lines = (1..).zip(file.text.iter().flat_map(|text| text.lines()));
        for (line, content) in lines {
            if let Some(folder) = machine_path(content) {
                let what = format!("a path in /{folder}, which is one machine's");
                let remedy = "write it relative to the repository, or take it as an argument";
                violations.push(Violation::new(path, line, "machine-path", what, remedy));
            }
        }
    }
    violations
}

/// The folder of one machine that an absolute path in the line begins with.
fn machine_path(line: &str) -> Option<&'static str> {
    MACHINE_FOLDERS.into_iter().find(|folder| {
        line.match_indices(&format!("/{folder}/")).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            // Otherwise it is the middle of a longer path or of a URL.
            before.is_none_or(|c| !(c.is_alphanumeric() || "._-/~$}*)>".contains(c)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::File;

    fn found(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        check(&Tree::of(&[(path, text)])).iter().map(|v| (v.line, v.rule)).collect()
    }

    #[test]
    fn data_is_found_by_its_ending() {
        for ending in DATA {
            assert_eq!(found(&format!("a/jobs.csv{ending}"), ""), [(1, "data-file")]);
        }
        assert_eq!(found("a/jobs.csv", ""), []);
    }

    #[test]
    fn large_files_are_found() {
        let file = |bytes| File { path: "a.bin".to_owned(), bytes, text: None };
        let rules = |bytes| check(&Tree { files: vec![file(bytes)] }).len();
        assert_eq!((rules(MAX_BYTES), rules(MAX_BYTES + 1)), (0, 1));
    }

    #[test]
    fn paths_of_one_machine_are_found_and_others_are_not() {
        for folder in MACHINE_FOLDERS {
            for before in ["", "a ", "\"", "(", "="] {
                let text = format!("\n{before}/{folder}/x\n");
                assert_eq!(found("a.md", &text), [(2, "machine-path")], "{text}");
            }
            for before in ["a", ".", "https://example.org", "$X"] {
                assert_eq!(found("a.md", &format!("{before}/{folder}/x")), []);
            }
        }
    }
}
