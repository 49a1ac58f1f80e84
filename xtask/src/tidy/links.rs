//! Links between documents lead somewhere, and every page of `docs/` can be reached.

use super::Violation;
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// Where readers begin.
const ENTRANCES: [&str; 2] = ["README.md", "docs/README.md"];

/// Checks every Markdown file.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut leads_to: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in tree.texts("md") {
        for link in links(text) {
            let (target, anchor) = match link.target.split_once('#') {
                Some((target, anchor)) => (target, Some(anchor)),
                None => (link.target.as_str(), None),
            };
            let path = resolve(&file.path, target);
            let mut say = |what: String, remedy: &str| {
                violations.push(Violation::new(&file.path, link.line, "dead-link", what, remedy));
            };
            let Some(path) = path.filter(|path| path.is_empty() || tree.holds(path)) else {
                let remedy = "correct the path, which starts at this file's folder";
                say(format!("{:?} leads nowhere", link.target), remedy);
                continue;
            };
            let other = tree.file(&path).and_then(|other| other.text.as_deref());
            if let (Some(anchor), Some(other)) = (anchor, other)
                && path.ends_with(".md")
                && !headings(other).contains(anchor)
            {
                let remedy = "use a heading in lower case with hyphens for blanks";
                say(format!("{path} has no heading for #{anchor}"), remedy);
            }
            leads_to.entry(&file.path).or_default().insert(path);
        }
    }
    violations.extend(unreachable(tree, &leads_to));
    violations
}

fn unreachable(tree: &Tree, leads_to: &BTreeMap<&str, BTreeSet<String>>) -> Vec<Violation> {
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = ENTRANCES.to_vec();
    while let Some(page) = open.pop() {
        if !reached.insert(page) {
            continue;
        }
        for next in leads_to.get(page).into_iter().flatten() {
            // A link to a folder shows its README.
            let readme = format!("{next}/README.md");
            let shown = [next.as_str(), readme.as_str()];
            let shown = shown.into_iter().find_map(|path| tree.file(path));
            open.extend(shown.map(|file| file.path.as_str()));
        }
    }
    let pages = tree.texts("md").filter(|(file, _)| file.path.starts_with("docs/"));
    pages
        .filter(|(file, _)| !reached.contains(file.path.as_str()))
        .map(|(file, _)| {
            let what = "no path of links leads here from README.md or docs/README.md";
            let remedy = "link to it from docs/README.md";
            Violation::new(&file.path, 1, "lost-page", what, remedy)
        })
        .collect()
}

struct Link {
    line: usize,
    target: String,
}

/// Links into the repository, outside code.
fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, content) in prose(text) {
        let content = without_code(content);
        for (at, _) in content.match_indices("](") {
            let target = &content[at + 2..];
            let target = &target[..target.find(')').unwrap_or(target.len())];
            found.push((line, target.split_whitespace().next().unwrap_or_default().to_owned()));
        }
        if content.starts_with('[')
            && let Some((_, target)) = content.split_once("]: ")
        {
            found.push((line, target.trim().to_owned()));
        }
    }
    let outside = |target: &str| target.contains("://") || target.starts_with("mailto:");
    let inside = found.into_iter().filter(|(_, target)| !outside(target));
    inside.map(|(line, target)| Link { line, target }).collect()
}

/// Lines outside fenced code, numbered from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The path from the root that `target`, written in the file `from`, stands for. `None` outside
/// the root.
pub(super) fn resolve(from: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(from.to_owned());
    }
    let mut path: Vec<&str> = from.split('/').collect();
    path.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                path.pop()?;
            }
            name => path.push(name),
        }
    }
    (!target.starts_with('/')).then(|| path.join("/"))
}

/// The anchors of a page's headings.
fn headings(text: &str) -> BTreeSet<String> {
    let heading = |line: &str| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| title.trim().to_lowercase())
    };
    let anchor = |title: String| -> String {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        title.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    prose(text).filter_map(|(_, line)| heading(line)).map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, usize, &'static str)> {
        let violations = check(&Tree::of(files));
        violations.iter().map(|v| (v.file.clone(), v.line, v.rule)).collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_pass() {
        let readme = "# A `b` c!\n[a](docs/a.md#the-top) [self](#a-b-c) ![p](docs/p.svg)\n\
                      [folder](docs) [web](https://example.org/x) [mail](mailto:a@b)\n[r]: docs/b.md\n";
        let files = [
            ("README.md", readme),
            ("docs/a.md", "## The top\n[up](../README.md)\n"),
            ("docs/b.md", ""),
            ("docs/p.svg", ""),
        ];
        assert_eq!(found(&files), []);
    }

    #[test]
    fn a_link_to_nothing_or_out_of_the_repository_is_found() {
        for target in ["docs/none.md", "../outside.md", "/docs/a.md", "#none", "docs/a.md#none"] {
            let readme = format!("\n[x]({target})\n[a](docs/a.md)\n");
            let files = [("README.md", readme.as_str()), ("docs/a.md", "# A\n")];
            assert_eq!(found(&files), [("README.md".to_owned(), 2, "dead-link")], "{target}");
        }
        let reference = [("README.md", "[x]: none.md\n")];
        assert_eq!(found(&reference).len(), 1);
    }

    #[test]
    fn code_is_not_looked_at() {
        let readme = "`[x](none.md)`\n```\n[x](none.md)\n```\n";
        assert_eq!(found(&[("README.md", readme)]), []);
    }

    #[test]
    fn a_page_without_a_path_to_it_is_found() {
        let files = [
            ("docs/README.md", "[a](a.md) [d](deep)\n"),
            ("docs/a.md", "[b](b.md)\n"),
            ("docs/b.md", ""),
            ("docs/deep/README.md", "[page](page.md)\n"),
            ("docs/deep/page.md", ""),
            ("docs/lost.md", "[a](a.md)\n"),
            ("crates/x/README.md", ""),
        ];
        assert_eq!(found(&files), [("docs/lost.md".to_owned(), 1, "lost-page")]);
    }
}
