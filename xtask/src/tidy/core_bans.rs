//! Core touches nothing: no clock, thread, environment, file, socket, unordered map, or arithmetic
//! that differs between machines.
//!
//! Clippy enforces most of it, by type, where `crates/core/clippy.toml` is active; the first half
//! of this rule sees to that. The second half scans for what clippy was not told of.

use super::Violation;
use super::source::{TestCode, code_only, test_code};
use super::tree::Tree;
use std::collections::BTreeSet;
use toml_edit::DocumentMut;

const LIST: &str = "crates/core/clippy.toml";

/// Paths that core's clippy.toml must ban.
const BANNED_PATHS: [&str; 10] = [
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::env::var",
    "std::env::vars",
    "f64::powf",
    "f64::exp",
    "f64::ln",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

/// What core's code must not contain, and what to use instead.
const BANNED_CODE: [(&[&str], &str); 5] = [
    (
        &["std::time::", "Instant", "SystemTime"],
        "the engine is told the time: take `now` as an argument",
    ),
    (&["std::thread"], "core is single-threaded: lab/sim runs many engines"),
    (&["std::env", "std::fs", "std::net", "std::process"], "let the driver pass it in as a value"),
    (&["HashMap", "HashSet"], "order differs between runs: use BTreeMap, BTreeSet or a Vec by id"),
    (&["rand::"], "chance belongs to drivers: take the drawn value, or the seed, as an argument"),
];

/// Functions of floats whose last bits differ between platforms; `libm` has them all.
const BANNED_FLOATS: [&str; 18] = [
    ".powf(",
    ".powi(",
    ".exp()",
    ".exp2()",
    ".exp_m1()",
    ".ln()",
    ".ln_1p()",
    ".log(",
    ".log2()",
    ".log10()",
    ".sin()",
    ".cos()",
    ".tan()",
    ".tanh()",
    ".atan()",
    ".atan2(",
    ".cbrt()",
    ".hypot(",
];

/// Checks that the bans are active and kept.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = list(tree);
    violations.extend(manifests(tree));
    violations.extend(sources(tree));
    violations
}

/// Core's clippy.toml bans what it has to.
fn list(tree: &Tree) -> Vec<Violation> {
    const RULE: &str = "core-ban-list";
    let Some(text) = tree.file(LIST).and_then(|file| file.text.as_ref()) else {
        let remedy = "restore it: without it nothing keeps clocks and threads out of core";
        return vec![Violation::new(LIST, 1, RULE, "core has no ban list", remedy)];
    };
    let document: DocumentMut = match text.parse() {
        Ok(document) => document,
        Err(error) => {
            let what = error.to_string().replace('\n', " ");
            return vec![Violation::new(LIST, 1, RULE, what, "correct the TOML")];
        }
    };
    let banned: BTreeSet<&str> = ["disallowed-methods", "disallowed-types"]
        .into_iter()
        .filter_map(|key| document.get(key)?.as_array())
        .flatten()
        .filter_map(|entry| match entry.as_inline_table() {
            Some(table) => table.get("path")?.as_str(),
            None => entry.as_str(),
        })
        .collect();
    let missing = BANNED_PATHS.into_iter().filter(|path| !banned.contains(path));
    missing
        .map(|path| {
            let what = format!("{path} is not banned");
            Violation::new(LIST, 1, RULE, what, "add it, with the reason, to the list")
        })
        .collect()
}

/// Every core crate takes the workspace's lints and has no ban list of its own, which would hide
/// core's.
fn manifests(tree: &Tree) -> Vec<Violation> {
    const RULE: &str = "core-lints";
    let mut violations = Vec::new();
    for file in &tree.files {
        let Some(rest) = file.path.strip_prefix("crates/core/") else { continue };
        let Some((_, name)) = rest.split_once('/') else { continue };
        if matches!(name, "clippy.toml" | ".clippy.toml") {
            let what = "this list hides core's";
            violations.push(Violation::new(
                &file.path,
                1,
                RULE,
                what,
                format!("move it to {LIST}"),
            ));
        }
        if name != "Cargo.toml" {
            continue;
        }
        let document = file.text.as_ref().and_then(|text| text.parse::<DocumentMut>().ok());
        let takes = document.is_some_and(|document| {
            let lints = document.get("lints").and_then(|lints| lints.get("workspace")?.as_bool());
            lints == Some(true)
        });
        if !takes {
            let remedy = "add `[lints]` with `workspace = true`";
            let what = "the workspace's lints are off here";
            violations.push(Violation::new(&file.path, 1, RULE, what, remedy));
        }
    }
    violations
}

fn sources(tree: &Tree) -> Vec<Violation> {
    const RULE: &str = "core-touches-nothing";
    let in_core = |path: &str| {
        let crate_file = path.strip_prefix("crates/core/").and_then(|rest| rest.split_once('/'));
        crate_file.is_some_and(|(_, file)| file.starts_with("src/"))
    };
    let files: Vec<(&str, String, TestCode)> = tree
        .texts("rs")
        .filter(|(file, _)| in_core(&file.path))
        .map(|(file, text)| {
            let code = code_only(text);
            let tests = test_code(&code);
            (file.path.as_str(), code, tests)
        })
        .collect();
    let test_modules: Vec<String> = files
        .iter()
        .flat_map(|(path, _, tests)| tests.modules.iter().map(|name| module_path(path, name)))
        .collect();
    let for_tests = |path: &str| {
        let is = |module: &String| {
            path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        test_modules.iter().any(is)
    };
    let floats: (&[&str], &str) = (&BANNED_FLOATS, "its bits differ between machines: use libm's");
    let mut violations = Vec::new();
    for (path, code, tests) in files.iter().filter(|(path, ..)| !for_tests(path)) {
        for (line, text) in (1..).zip(code.lines()) {
            if tests.inside.iter().any(|lines| (lines.first..=lines.last).contains(&line)) {
                continue;
            }
            for (words, remedy) in BANNED_CODE.iter().chain([&floats]) {
                if let Some(word) = words.iter().find(|word| contains(text, word)) {
                    let what = format!("`{word}` in core");
                    violations.push(Violation::new(path, line, RULE, what, *remedy));
                }
            }
        }
    }
    violations
}

/// Where the file of a module declared in `path` is, without its extension.
fn module_path(path: &str, name: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    match file {
        "lib.rs" | "main.rs" => format!("{folder}/{name}"),
        _ => format!("{}/{name}", path.trim_end_matches(".rs")),
    }
}

/// Whether a line of code contains a banned word, not as a part of a longer name.
fn contains(code: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let begins_inside = word.starts_with(is_name) && before.is_some_and(is_name);
        let ends_inside = word.ends_with(is_name) && after.is_some_and(is_name);
        !begins_inside && !ends_inside
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINTS: &str = "[lints]\nworkspace = true\n";

    fn full_list() -> String {
        let entry = |path: &&str| format!("{{ path = \"{path}\", reason = \"r\" }},\n");
        let entries: String = BANNED_PATHS.iter().map(entry).collect();
        format!("disallowed-methods = [\n{entries}]\n")
    }

    fn rules(files: &[(&str, &str)]) -> Vec<(usize, &'static str)> {
        let list = full_list();
        let mut all = vec![(LIST, list.as_str()), ("crates/core/model/Cargo.toml", LINTS)];
        all.retain(|(path, _)| files.iter().all(|(other, _)| other != path));
        all.extend_from_slice(files);
        check(&Tree::of(&all)).iter().map(|v| (v.line, v.rule)).collect()
    }

    #[test]
    fn a_full_list_and_shared_lints_pass() {
        assert_eq!(rules(&[]), []);
    }

    #[test]
    fn a_missing_broken_or_short_list_is_found() {
        let absent = check(&Tree::of(&[("crates/core/model/Cargo.toml", LINTS)]));
        assert_eq!(absent.len(), 1);
        assert_eq!(rules(&[(LIST, "= nonsense")]), [(1, "core-ban-list")]);
        let short = full_list().replace("std::env::vars", "std::env::other");
        assert_eq!(rules(&[(LIST, &short)]), [(1, "core-ban-list")]);
    }

    #[test]
    fn a_core_crate_with_lints_of_its_own_is_found() {
        let manifest = "crates/core/engine/Cargo.toml";
        assert_eq!(rules(&[(manifest, "[package]\n")]), [(1, "core-lints")]);
        assert_eq!(rules(&[("crates/core/engine/clippy.toml", "")]), [(1, "core-lints")]);
    }

    #[test]
    fn every_banned_word_is_found_in_core_and_nowhere_else() {
        let words = BANNED_CODE.iter().flat_map(|(words, _)| words.iter());
        for word in words.chain(&BANNED_FLOATS) {
            let source = format!("//! Doc.\nfn f() {{\n    x{}{word}y;\n}}\n", " ");
            let source = source.replace("y;", ";");
            let found = rules(&[("crates/core/engine/src/lib.rs", &source)]);
            assert_eq!(found, [(3, "core-touches-nothing")], "{word}");
            assert_eq!(rules(&[("crates/lab/sim/src/lib.rs", &source)]), [], "{word}");
            assert_eq!(rules(&[("crates/core/engine/tests/t.rs", &source)]), [], "{word}");
        }
    }

    #[test]
    fn comments_text_longer_names_and_tests_may_contain_them() {
        let lib = "//! No HashMap.\n#[cfg(test)]\nmod sample;\nconst A: &str = \"std::fs\";\n\
                   struct Instantly;\n#[cfg(test)]\nmod tests {\n use std::fs;\n}\n";
        let sample = "//! For tests.\nuse std::collections::HashMap;\n";
        let files = [
            ("crates/core/engine/src/lib.rs", lib),
            ("crates/core/engine/src/sample.rs", sample),
            ("crates/core/engine/src/sample/deep.rs", sample),
        ];
        assert_eq!(rules(&files), []);
        let other = [("crates/core/engine/src/samples.rs", sample)];
        assert_eq!(rules(&other), [(2, "core-touches-nothing")]);
    }
}
