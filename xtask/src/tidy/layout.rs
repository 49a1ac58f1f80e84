//! How a source file looks: what it opens with, how long it is, what it is called.

use super::Violation;
use super::source::{code_only, functions};
use super::tree::Tree;

const MAX_FILE_LINES: usize = 800;
const MAX_FUNCTION_LINES: usize = 120;
const MAX_COLUMNS: usize = 120;
/// Names that say nothing.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "helper", "helpers", "misc", "common"];
/// Macros for a work in progress.
const UNFINISHED: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

/// Checks every Rust file.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, text) in tree.texts("rs") {
        let path = &file.path;
        let mut say = |line: usize, rule: &'static str, what: String, remedy: &str| {
            violations.push(Violation::new(path, line, rule, what, remedy));
        };
        if !text.starts_with("//!") {
            let remedy = "say in a `//!` comment on the first line what the file is for";
            say(1, "file-docs", "it does not say what it is for".to_owned(), remedy);
        }
        names(path, &mut say);
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES {
            let what = format!("{lines} lines, at most {MAX_FILE_LINES} are allowed");
            say(MAX_FILE_LINES + 1, "long-file", what, "split it along its main types");
        }
        for (line, content) in (1..).zip(text.lines()) {
            let columns = content.chars().count();
            if columns > MAX_COLUMNS {
                let what = format!("{columns} columns, at most {MAX_COLUMNS} are allowed");
                say(line, "long-line", what, "break the line, or the text in it");
            }
        }
        let code = code_only(text);
        for function in functions(&code) {
            let length = function.lines.last - function.lines.first + 1;
            if length > MAX_FUNCTION_LINES {
                let name = &function.name;
                let what = format!("fn {name} has {length} lines, at most {MAX_FUNCTION_LINES}");
                say(
                    function.lines.first,
                    "long-function",
                    what,
                    "give its steps names of their own",
                );
            }
        }
        for (line, content) in (1..).zip(code.lines()) {
            for word in UNFINISHED {
                if is_called(content, word) {
                    let remedy = "finish it, or return an error that says what is missing";
                    say(line, "unfinished", format!("`{word}` was left in"), remedy);
                }
            }
            if let Some(name) = empty_module(content) {
                let remedy = "name it after what it holds";
                say(line, "empty-name", format!("a module called {name:?}"), remedy);
            }
        }
    }
    violations
}

fn names(path: &str, say: &mut impl FnMut(usize, &'static str, String, &str)) {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == "mod.rs" {
        let remedy = "call it after the module, beside the module's folder";
        say(1, "mod-rs", "a tab called mod.rs says nothing".to_owned(), remedy);
    }
    let words = path.split('/').map(|word| word.trim_end_matches(".rs"));
    for word in words.filter(|word| EMPTY_NAMES.contains(word)) {
        say(1, "empty-name", format!("{word:?} says nothing"), "name it after what it holds");
    }
}

/// Whether a macro is called, not one with a longer name.
fn is_called(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// The name of a module declared in a line with its body, if the name says nothing. Those with
/// files are known by their paths.
fn empty_module(code: &str) -> Option<&str> {
    let (before, rest) = code.split_once("mod ")?;
    let visible = before.trim();
    if !(visible.is_empty() || visible.starts_with("pub")) {
        return None;
    }
    let name = rest.trim().strip_suffix('{')?.trim();
    EMPTY_NAMES.contains(&name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        check(&Tree::of(&[(path, text)])).iter().map(|v| (v.line, v.rule)).collect()
    }

    fn body(text: &str) -> Vec<(usize, &'static str)> {
        found("src/queue.rs", &format!("//! Doc.\n{text}"))
    }

    #[test]
    fn a_short_documented_file_passes() {
        assert_eq!(body("fn f() {}\n"), []);
    }

    #[test]
    fn a_file_that_does_not_open_with_its_purpose_is_found() {
        assert_eq!(found("src/queue.rs", "use x;\n//! Late.\n"), [(1, "file-docs")]);
    }

    #[test]
    fn long_files_lines_and_functions_are_found_and_the_limits_are_allowed() {
        assert_eq!(body(&"\n".repeat(799)), []);
        assert_eq!(body(&"\n".repeat(800)), [(801, "long-file")]);
        assert_eq!(body(&format!("// {}", "é".repeat(117))), []);
        assert_eq!(body(&format!("// {}", "é".repeat(118))), [(2, "long-line")]);
        let function = |inner| format!("fn f() {{\n{}}}\n", "\n".repeat(inner));
        assert_eq!(body(&function(118)), []);
        assert_eq!(body(&function(119)), [(2, "long-function")]);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        let text = "//! Doc.\n";
        assert_eq!(found("src/queue/mod.rs", text), [(1, "mod-rs")]);
        for name in EMPTY_NAMES {
            assert_eq!(found(&format!("src/{name}.rs"), text), [(1, "empty-name")]);
            assert_eq!(found(&format!("src/{name}/queue.rs"), text), [(1, "empty-name")]);
            let inline = format!("pub mod {name} {{\n}}\n");
            assert_eq!(body(&inline), [(2, "empty-name")]);
        }
    }

    #[test]
    fn unfinished_work_is_found_in_code_only() {
        for word in UNFINISHED {
            assert_eq!(body(&format!("fn f() {{\n    {word}();\n}}\n")), [(3, "unfinished")]);
            assert_eq!(body(&format!("// {word}()\nconst A: &str = \"{word}\";\n")), []);
        }
    }
}
