//! `docs/kubernetes/getting-started.md`: every command of it runs, in order and in one shell, and
//! prints what the page shows.

use deepshare_e2e::{Beds, root};
use deepshare_testbed::{Assets, cluster};
use libtest_mimic::Trial;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PAGE: &str = "docs/kubernetes/getting-started.md";
/// For everything on the page; most of it is compiling, where that was not done before.
const PATIENCE: Duration = Duration::from_secs(2400);
/// Printed before each block of commands.
const MARK: &str = "=== block ";
/// What the page writes for whatever differs from one time to another.
const ANYTHING: char = '…';

/// Commands of the page, and the lines that it shows of what they print.
#[derive(Debug, Default, PartialEq)]
struct Block {
    commands: String,
    shown: Vec<String>,
}

pub fn tests(beds: &Beds) -> Vec<Trial> {
    let check = || {
        what_a_page_shows_is_held_against_what_was_said();
        Ok(())
    };
    vec![
        beds.without_bed(
            concat!(module_path!(), "::every_command_of_the_page_does_what_the_page_says"),
            every_command_of_the_page_does_what_the_page_says,
        ),
        Trial::test("getting_started::what_a_page_shows_is_held_against_what_was_said", check),
    ]
}

fn every_command_of_the_page_does_what_the_page_says(assets: &Assets) {
    let text = std::fs::read_to_string(root().join(PAGE)).expect(PAGE);
    let blocks = blocks(&text);
    assert!(!blocks.is_empty());
    // Whatever cluster a developer has running is another one.
    let home = tempfile::tempdir().expect("a folder for the cluster");
    let folder = home.path().join("cluster");
    let (worked, said) = run(&blocks, assets.folder(), home.path(), &folder);
    let parts: Vec<&str> = said.split(MARK).skip(1).collect();
    assert!(worked && parts.len() == blocks.len(), "a command of {PAGE} failed:\n{said}");
    for (block, said) in blocks.iter().zip(parts) {
        if let Some(missing) = first_missing(&block.shown, said) {
            panic!("{PAGE} shows\n{missing}\nafter\n{}\nwhich printed\n{said}", block.commands);
        }
    }
    assert!(!folder.exists(), "the page leaves its cluster in {}", folder.display());
}

/// Blocks of code of a page: `sh` is run, `text` shows what the one before prints.
///
/// # Panics
/// If there is code of another kind: it would not be tested.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut within = None;
    for line in page.lines() {
        match (within, line.trim_start().strip_prefix("```")) {
            (Some(_), Some(_)) => within = None,
            (None, Some("sh")) => {
                blocks.push(Block::default());
                within = Some("sh");
            }
            (None, Some("text")) => within = Some("text"),
            (None, Some(other)) => panic!("{PAGE}: nobody runs a block of {other:?}"),
            (None, None) => assert!(!line.starts_with("    "), "{PAGE}: not in a block: {line}"),
            (Some(kind), None) => {
                let block = blocks.last_mut().expect("commands before what they print");
                match kind {
                    "sh" => block.commands += &format!("{line}\n"),
                    _ => block.shown.push(line.to_owned()),
                }
            }
        }
    }
    blocks
}

/// Runs the blocks in one shell, from the root of the repository, up to the first that fails; whether
/// none did, and all that was said. Nothing of it is left running.
fn run(blocks: &[Block], programs: &Path, home: &Path, folder: &Path) -> (bool, String) {
    let mut script = String::from("set -e\n");
    for (number, Block { commands, .. }) in blocks.iter().enumerate() {
        script += &format!("echo '{MARK}{number}'\n{commands}");
    }
    let (file, log) = (home.join("page.sh"), home.join("page.log"));
    std::fs::write(&file, script).expect("the script");
    let out = File::create(&log).expect("a file for what is said");
    let mut shell = Command::new("bash");
    shell.arg(file).current_dir(root()).stdin(Stdio::null());
    shell.stdout(out.try_clone().expect("the same file")).stderr(out);
    // A group of its own, so that what runs in the background can be ended with it.
    shell.process_group(0).env("DEEPSHARE_CLUSTER", folder).env("KUBEBUILDER_ASSETS", programs);
    // What cargo tells a test of itself is not meant for the cargo on the page, whose build scripts
    // would run anew for it.
    let own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if own(&name.to_string_lossy()) {
            shell.env_remove(name);
        }
    }
    let mut shell = shell.spawn().expect("bash");
    let worked = ends_well(&mut shell);
    let group = format!("-{}", shell.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    let _ = shell.wait();
    let mut said = std::fs::read_to_string(&log).expect("what was said");
    if !worked {
        let scheduler = std::fs::read_to_string(folder.join("scheduler.log"));
        said += &scheduler.map(|log| format!("the scheduler's log:\n{log}")).unwrap_or_default();
        cluster::down(folder).expect("the cluster is brought down");
    }
    (worked, said)
}

fn ends_well(shell: &mut Child) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = shell.try_wait().expect("bash can be waited for") {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// The first line shown that is not among those said, after the one shown before it.
fn first_missing<'a>(shown: &'a [String], said: &str) -> Option<&'a str> {
    let mut said = said.lines();
    shown.iter().map(String::as_str).find(|line| !said.any(|real| agrees(line, real)))
}

/// Whether a line is as shown, up to the width of its columns and what the page leaves open.
fn agrees(shown: &str, real: &str) -> bool {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, real) = (words(shown), words(real));
    let mut parts = shown.split(ANYTHING);
    let Some(mut rest) = real.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    false
}

fn what_a_page_shows_is_held_against_what_was_said() {
    let page = "Do:\n\n```sh\nls\n```\n\n```text\nNAME  AGE\nred   …s\n```\n";
    let blocks = blocks(page);
    let shown = ["NAME  AGE".to_owned(), "red   …s".to_owned()];
    assert_eq!(blocks, [Block { commands: "ls\n".to_owned(), shown: shown.to_vec() }]);
    assert_eq!(first_missing(&shown, "warning\nNAME   AGE\nblue   2s\nred    3s\n"), None);
    assert_eq!(first_missing(&shown, "red    3s\nNAME   AGE\n"), Some("red   …s"));
    for (shown, real, same) in [
        ("long-… Running … node-1", "long-x7 Running 4s 0 node-1", true),
        ("long-… Running … node-1", "long-x7 Pending 4s 0 node-1", false),
        ("long-…", "short-1", false),
        ("red", "reddish", false),
        ("…red", "not at all blue", false),
    ] {
        assert_eq!(agrees(shown, real), same, "{shown:?} and {real:?}");
    }
}
