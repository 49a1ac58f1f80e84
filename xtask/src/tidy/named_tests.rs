//! Tests that documents name are there: the file that a name in code type leads to has such a
//! function.

use super::Violation;
use super::links::{prose, resolve};
use super::tree::Tree;

/// Checks every link of a Markdown file whose text is the name of a function of a Rust file.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, text) in tree.texts("md") {
        for (line, content) in prose(text) {
            for (name, target) in named(content) {
                // A file that is not there is a dead link.
                let path = resolve(&file.path, target);
                let code = path.and_then(|path| tree.file(&path)?.text.as_deref());
                if code.is_some_and(|code| !code.contains(&format!("fn {name}("))) {
                    let what = format!("{target} has no function {name}");
                    let remedy = "name a test that is there";
                    violations.push(Violation::new(&file.path, line, "lost-test", what, remedy));
                }
            }
        }
    }
    violations
}

/// Names of functions in a line, and the files that they lead to.
fn named(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    line.split("[`").skip(1).filter_map(move |rest| {
        let (text, rest) = rest.split_once("`](")?;
        let (target, _) = rest.split_once(')')?;
        (text.chars().all(name) && target.ends_with(".rs")).then_some((text, target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_not_in_the_file_is_found() {
        let page = "| [`good`](../a.rs), [`bad`](../a.rs) |\n[`a.rs`](../a.rs) [`gone`](../b.rs)\n";
        let tree = Tree::of(&[("docs/page.md", page), ("a.rs", "fn good() {}\nfn bad_too() {}\n")]);
        let found: Vec<String> = check(&tree).iter().map(Violation::to_string).collect();
        let expected = "docs/page.md:1: lost-test: ../a.rs has no function bad; name a test that \
                        is there";
        assert_eq!(found, [expected]);
    }
}
