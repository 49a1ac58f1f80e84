//! `cargo xtask tidy`: what the compiler does not check.
//!
//! Each rule is a function of a [`Tree`] (or of the packages in it) that returns violations, so
//! that its tests need no files. Rules look at tracked files and at new ones that git does not
//! ignore.

mod committed;
mod core_bans;
mod layout;
mod links;
mod named_tests;
mod rings;
mod source;
mod tree;

use crate::Failure;
use std::fmt;
use std::path::Path;
use tree::Tree;

/// Something to put right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Path from the root.
    file: String,
    /// Line from 1; 1 also for a file as a whole.
    line: usize,
    /// The rule's name.
    rule: &'static str,
    /// What is wrong.
    what: String,
    /// What to do.
    remedy: String,
}

impl Violation {
    fn new(
        file: &str,
        line: usize,
        rule: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Violation {
        let (what, remedy) = (what.into(), remedy.into());
        Violation { file: file.to_owned(), line, rule, what, remedy }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { file, line, rule, what, remedy } = self;
        write!(f, "{file}:{line}: {rule}: {what}; {remedy}")
    }
}

/// Checks the repository and prints what is wrong.
///
/// # Errors
/// If anything is, or the repository cannot be read.
pub fn run(root: &Path) -> Result<(), Failure> {
    let (tree, violations) = check(root)?;
    for violation in &violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => {
            println!("tidy: {} files, nothing to put right", tree.files.len());
            Ok(())
        }
        1 => Err("tidy: 1 thing to put right".to_owned()),
        many => Err(format!("tidy: {many} things to put right")),
    }
}

fn check(root: &Path) -> Result<(Tree, Vec<Violation>), Failure> {
    let tree = Tree::read(root)?;
    let packages = rings::packages(root)?;
    let mut violations = rings::check(&packages);
    violations.extend(core_bans::check(&tree));
    violations.extend(layout::check(&tree));
    violations.extend(links::check(&tree));
    violations.extend(named_tests::check(&tree));
    violations.extend(committed::check(&tree));
    violations.sort();
    violations.dedup();
    Ok((tree, violations))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let (_, violations) = check(&crate::root()).unwrap();
        let shown: Vec<String> = violations.iter().map(Violation::to_string).collect();
        assert!(violations.is_empty(), "\n{}", shown.join("\n"));
    }

    #[test]
    fn a_violation_says_where_which_rule_what_and_what_to_do() {
        let violation = Violation::new("a/b.rs", 7, "long-line", "130 columns", "break it");
        assert_eq!(violation.to_string(), "a/b.rs:7: long-line: 130 columns; break it");
    }
}
