//! Who may depend on whom.
//!
//! `core` decides and touches nothing, so it depends on itself and on three small libraries; `lab`
//! and `live` each drive it and never know of each other; nothing depends on `app`.

use super::Violation;
use crate::Failure;
use crate::process::{cargo, output};
use std::path::Path;

const RULE: &str = "rings";

/// Core crates and the core crates that each may use.
const CORE: [(&str, &[&str]); 5] = [
    ("model", &[]),
    ("engine", &["model"]),
    ("policies", &["model", "engine"]),
    ("audit", &["model", "engine"]),
    ("predict", &["model"]),
];
/// Libraries that core may use.
const CORE_LIBRARIES: [&str; 3] = ["libm", "serde", "thiserror"];
/// Libraries that core's tests may use beside those.
const CORE_TEST_LIBRARIES: [&str; 4] = ["proptest", "rand", "rand_pcg", "serde_json"];

/// A package of the workspace.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// Its manifest, from the root.
    pub manifest: String,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
}

/// What a package depends on.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// The other's name.
    pub name: String,
    /// Its folder from the root, if it is in the workspace.
    pub folder: Option<String>,
    /// Only tests, examples and benchmarks use it.
    pub dev: bool,
    /// Line of the manifest.
    pub line: usize,
}

/// Reads the workspace's packages from cargo and their manifests.
///
/// # Errors
/// If cargo cannot read the workspace.
pub fn packages(root: &Path) -> Result<Vec<Package>, Failure> {
    let mut command = cargo(root);
    command.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let metadata: serde_json::Value = serde_json::from_str(&output(&mut command)?)
        .map_err(|error| format!("cargo metadata printed no JSON: {error}"))?;
    let from_root = |path: &str| {
        let path = Path::new(path);
        let root = metadata["workspace_root"].as_str().unwrap_or_default();
        let relative = path.strip_prefix(root).unwrap_or(path);
        relative.to_string_lossy().replace('\\', "/")
    };
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let mut packages = Vec::new();
    for package in list(&metadata["packages"]) {
        let manifest = from_root(package["manifest_path"].as_str().unwrap_or_default());
        let text = std::fs::read_to_string(root.join(&manifest));
        let text = text.map_err(|error| format!("cannot read {manifest}: {error}"))?;
        let dependencies = list(&package["dependencies"]).into_iter().map(|dependency| {
            let name = dependency["name"].as_str().unwrap_or_default().to_owned();
            let dev = dependency["kind"].as_str() == Some("dev");
            let line = line_of(&text, &name, dev);
            Dependency { folder: dependency["path"].as_str().map(from_root), dev, line, name }
        });
        let dependencies = dependencies.collect();
        packages.push(Package { manifest, dependencies });
    }
    Ok(packages)
}

/// The line of a manifest that names a dependency.
fn line_of(manifest: &str, name: &str, dev: bool) -> usize {
    let mut in_dev = false;
    for (line, text) in (1..).zip(manifest.lines()) {
        if text.starts_with('[') {
            in_dev = text.contains("dev-dependencies");
        }
        let names = text.trim_start().strip_prefix(name);
        if in_dev == dev && names.is_some_and(|rest| rest.starts_with([' ', '.', '='])) {
            return line;
        }
    }
    1
}

/// The ring and the name in it of a folder: `crates/core/model` is `("core", "model")`.
fn place(folder: &str) -> (&str, &str) {
    match folder.strip_prefix("crates/").and_then(|rest| rest.split_once('/')) {
        Some((ring, name)) => (ring, name),
        None => (folder.split('/').next().unwrap_or(folder), ""),
    }
}

/// Checks every dependency of every package.
pub fn check(packages: &[Package]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        let folder = package.manifest.trim_end_matches("Cargo.toml").trim_end_matches('/');
        let (ring, name) = place(folder);
        if !["core", "lab", "live", "app", "xtask", "tests"].contains(&ring) {
            let what = format!("{folder} is in no ring");
            let remedy = "move it to crates/core, crates/lab, crates/live, crates/app or tests";
            violations.push(Violation::new(&package.manifest, 1, RULE, what, remedy));
            continue;
        }
        for dependency in &package.dependencies {
            if let Some((what, remedy)) = forbidden(ring, name, dependency) {
                let line = dependency.line;
                violations.push(Violation::new(&package.manifest, line, RULE, what, remedy));
            }
        }
    }
    violations
}

/// What is wrong with a dependency of a package in `ring`, and the remedy.
fn forbidden(ring: &str, name: &str, dependency: &Dependency) -> Option<(String, String)> {
    let other = &dependency.name;
    let Some(folder) = &dependency.folder else {
        let known = CORE_LIBRARIES.contains(&other.as_str())
            || dependency.dev && CORE_TEST_LIBRARIES.contains(&other.as_str());
        let what = format!("core's {name} depends on {other}");
        let remedy = format!(
            "do without it, move the code to lab, live or app, or argue for it in docs/decisions \
             and add it to the list in xtask/src/tidy/rings.rs (now {})",
            CORE_LIBRARIES.join(", ")
        );
        return (ring == "core" && !known).then_some((what, remedy));
    };
    let (to, target) = place(folder);
    let say = |what: String, remedy: &str| Some((what, remedy.to_owned()));
    match (ring, to) {
        (_, "app") => say(
            format!("{ring} depends on app's {target}"),
            "nothing depends on app: move what both need into a crate of lab or live",
        ),
        (_, "xtask") => say(
            format!("{ring} depends on xtask"),
            "nothing depends on xtask: move what both need into a crate",
        ),
        ("core", "core") if dependency.dev => None,
        ("core", "core") => {
            let known = CORE.iter().find(|(core, _)| *core == name);
            let Some((_, may)) = known else {
                return say(
                    format!("core's {name} has no place in core's order yet"),
                    "add it to CORE in xtask/src/tidy/rings.rs with the core crates it may use",
                );
            };
            if may.contains(&target) {
                return None;
            }
            let may = if may.is_empty() { "no core crate".to_owned() } else { may.join(", ") };
            say(
                format!("core's {name} depends on core's {target}"),
                &format!("{name} may use {may}: pass the rest in as values, or move the code"),
            )
        }
        ("core", _) => say(
            format!("core's {name} depends on {to}'s {target}"),
            "core decides and touches nothing: pass in what it needs, as values or events",
        ),
        ("lab", "live") | ("live", "lab") => say(
            format!("{ring}'s {name} depends on {to}'s {target}"),
            "lab and live never depend on each other: move what both need into core",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependency(name: &str, folder: Option<&str>, dev: bool) -> Dependency {
        Dependency { name: name.to_owned(), folder: folder.map(str::to_owned), dev, line: 9 }
    }

    fn verdict(folder: &str, on: Dependency) -> Option<String> {
        let manifest = format!("{folder}/Cargo.toml");
        let found = check(&[Package { manifest, dependencies: vec![on] }]);
        found.first().map(|violation| {
            assert_eq!((violation.line, violation.rule), (9, "rings"));
            violation.what.clone()
        })
    }

    fn on(folder: &str) -> Dependency {
        dependency("other", Some(folder), false)
    }

    #[test]
    fn core_depends_only_inward_and_on_a_few_libraries() {
        let library = |name, dev| dependency(name, None, dev);
        assert_eq!(verdict("crates/core/engine", on("crates/core/model")), None);
        assert_eq!(verdict("crates/core/model", library("serde", false)), None);
        for (of, on) in [
            ("crates/core/model", on("crates/core/engine")),
            ("crates/core/engine", on("crates/core/policies")),
            ("crates/core/predict", on("crates/core/engine")),
            ("crates/core/audit", on("crates/core/policies")),
            ("crates/core/newcomer", on("crates/core/model")),
            ("crates/core/engine", on("crates/lab/sim")),
            ("crates/core/engine", on("crates/live/control")),
            ("crates/core/engine", library("rand", false)),
            ("crates/core/engine", library("tokio", true)),
        ] {
            assert!(verdict(of, on.clone()).is_some(), "{of} on {on:?}");
        }
    }

    #[test]
    fn tests_in_core_may_use_all_of_core_and_a_few_more_libraries_but_not_lab() {
        let dev = |folder| dependency("other", Some(folder), true);
        assert_eq!(verdict("crates/core/audit", dev("crates/core/policies")), None);
        assert_eq!(verdict("crates/core/audit", dependency("proptest", None, true)), None);
        assert!(verdict("crates/core/audit", dev("crates/lab/testkit")).is_some());
    }

    #[test]
    fn lab_and_live_are_strangers_and_nothing_depends_on_app_or_xtask() {
        for (of, to) in [
            ("crates/lab/sim", "crates/live/control"),
            ("crates/live/control", "crates/lab/sim"),
            ("crates/lab/sim", "crates/app/cli"),
            ("crates/app/api", "crates/app/cli"),
            ("xtask", "crates/app/cli"),
            ("crates/lab/sim", "xtask"),
        ] {
            assert!(verdict(of, on(to)).is_some(), "{of} on {to}");
        }
        for (of, to) in [
            ("crates/lab/sim", "crates/core/engine"),
            ("crates/live/control", "crates/core/engine"),
            ("crates/app/cli", "crates/lab/sim"),
            ("crates/app/cli", "crates/live/control"),
            ("xtask", "crates/lab/sim"),
            ("tests/parity", "crates/lab/sim"),
            ("tests/parity", "crates/live/control"),
        ] {
            assert_eq!(verdict(of, on(to)), None, "{of} on {to}");
        }
    }

    #[test]
    fn a_package_outside_the_rings_is_refused() {
        let manifest = "crates/extra/thing/Cargo.toml".to_owned();
        let found = check(&[Package { manifest, dependencies: Vec::new() }]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn the_line_is_that_of_the_right_section() {
        let manifest = "[dependencies]\nserde_json = \"1\"\nserde.workspace = true\n\n\
                        [dev-dependencies]\nserde = \"1\"\n";
        assert_eq!(line_of(manifest, "serde", false), 3);
        assert_eq!(line_of(manifest, "serde", true), 6);
        assert_eq!(line_of(manifest, "absent", true), 1);
    }
}
