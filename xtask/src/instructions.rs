//! `cargo xtask instructions`: how many instructions the hot paths take.
//!
//! Each is counted by valgrind at two sizes; the difference is the work alone, without start-up
//! and preparation. Counts repeat on one machine and hardly differ between machines, so a growth
//! is a change of the code, or of the compiler.

use crate::Failure;
use crate::process::{build, output};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};
use toml_edit::DocumentMut;

const BASELINE: &str = "xtask/instructions.toml";
/// Growth that is allowed, in per cent.
const TOLERANCE: u64 = 10;

#[derive(Default)]
struct Options {
    check: bool,
    write: bool,
    names: Vec<String>,
}

impl Options {
    fn of(arguments: &[String]) -> Result<Options, Failure> {
        let mut options = Options::default();
        for argument in arguments {
            match argument.as_str() {
                "--check" => options.check = true,
                "--write" => options.write = true,
                flag if flag.starts_with('-') => {
                    return Err(format!("unexpected argument {flag:?}"));
                }
                name => options.names.push(name.to_owned()),
            }
        }
        if options.write && (options.check || !options.names.is_empty()) {
            return Err("--write renews the whole file and checks nothing".to_owned());
        }
        Ok(options)
    }
}

/// A hot path, as the measuring program lists it.
#[derive(Debug, PartialEq, Eq)]
struct HotPath {
    name: String,
    sizes: [u64; 2],
    per_unit: u64,
    unit: String,
}

impl HotPath {
    fn of(line: &str) -> Option<HotPath> {
        let mut words = line.splitn(5, ' ');
        let name = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        let (small, large, per_unit) = (number()?, number()?, number()?);
        let unit = words.next()?.to_owned();
        Some(HotPath { name, sizes: [small, large], per_unit, unit })
    }

    /// Instructions of one unit, from the counts at both sizes.
    fn per_unit(&self, [small, large]: [u64; 2]) -> u64 {
        let units = (self.sizes[1] - self.sizes[0]) * self.per_unit;
        large.saturating_sub(small) / units
    }
}

/// Counts, prints, and compares or renews the baseline.
///
/// # Errors
/// If a count grew too much under `--check`, or something does not run.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    let options = Options::of(arguments)?;
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: valgrind is not installed");
        return Ok(());
    }
    let baseline = read_baseline(root)?;
    let program = build(root, "deepshare-bench")?;
    let listed = output(Command::new(&program).arg("list"))?;
    let paths = wanted(&listed, &options.names)?;
    println!("{:>14} {:>14} {:>8}  of", "instructions", "baseline", "change");
    let mut grown = Vec::new();
    let mut counted = Vec::new();
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    for together in paths.chunks(cores) {
        for (path, instructions) in together.iter().zip(count_together(&program, together)?) {
            let before = known(&baseline, &path.name);
            println!("{}", line(path, instructions, before));
            if before.is_none_or(|before| exceeds(instructions, before)) {
                grown.push(path.name.as_str());
            }
            counted.push((path, instructions));
        }
    }
    if options.write {
        return write_baseline(root, &counted);
    }
    if options.check && !grown.is_empty() {
        return verdict(&baseline, &grown);
    }
    Ok(())
}

/// Counts of different compilers say nothing about a change of the code.
fn verdict(baseline: &DocumentMut, grown: &[&str]) -> Result<(), Failure> {
    let (then, now) = (baseline.get("compiler").and_then(|it| it.as_str()), compiler()?);
    let names = grown.join(", ");
    if then != Some(&now) {
        println!(
            "not judged: the baseline is of {}, this is {now}; above it by more than {TOLERANCE} %, \
             or new: {names}",
            then.unwrap_or("an unknown compiler"),
        );
        return Ok(());
    }
    Err(format!(
        "more than {TOLERANCE} % above the baseline, or without one: {names}\n\
         find out why (`valgrind --tool=callgrind` on `deepshare-bench run NAME UNITS`) and mend it; \
         if the work is worth its price, say so in the commit and renew {BASELINE} with `cargo \
         xtask instructions --write`"
    ))
}

fn wanted(listed: &str, names: &[String]) -> Result<Vec<HotPath>, Failure> {
    let all: Option<Vec<HotPath>> = listed.lines().map(HotPath::of).collect();
    let mut all = all.ok_or("the measuring program's list cannot be read")?;
    for name in names {
        if !all.iter().any(|path| path.name == *name) {
            let known: Vec<&str> = all.iter().map(|path| path.name.as_str()).collect();
            return Err(format!("there is no hot path {name:?}; there are {}", known.join(", ")));
        }
    }
    all.retain(|path| names.is_empty() || names.contains(&path.name));
    Ok(all)
}

/// Instructions of a unit of each path, counted at the same time: counts do not depend on what else runs.
fn count_together(program: &Path, paths: &[HotPath]) -> Result<Vec<u64>, Failure> {
    let of = |path: &HotPath| {
        let [small, large] = path.sizes.map(|units| count(program, &path.name, units));
        Ok(path.per_unit([small?, large?]))
    };
    std::thread::scope(|scope| {
        let counts: Vec<_> = paths.iter().map(|path| scope.spawn(move || of(path))).collect();
        let counts = counts.into_iter().map(|count| count.join());
        counts.map(|count| count.map_err(|_| "the count of a hot path panicked")?).collect()
    })
}

/// Instructions of a whole run.
fn count(program: &Path, name: &str, units: u64) -> Result<u64, Failure> {
    let mut command = Command::new("valgrind");
    // The environment is part of a process's memory: an empty one is the same everywhere.
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    command.arg(program).args(["run", name, &units.to_string()]).stdin(Stdio::null());
    let done = command.output().map_err(|error| format!("cannot run valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    let count = done.status.success().then(|| instructions_in(&said)).flatten();
    count.ok_or_else(|| format!("valgrind counted nothing for {name}:\n{}", said.trim_end()))
}

/// The total in what cachegrind says: `==1== I   refs:      1,234`.
fn instructions_in(said: &str) -> Option<u64> {
    said.lines().find_map(|line| {
        let (head, number) = line.rsplit_once(':')?;
        let words: Vec<&str> = head.split_whitespace().collect();
        let total = words.ends_with(&["I", "refs"]);
        total.then(|| number.trim().replace(',', "").parse().ok())?
    })
}

fn compiler() -> Result<String, Failure> {
    let told = output(Command::new("rustc").arg("-vV"))?;
    let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name));
    let (release, host) = (field("release: "), field("host: "));
    Ok(format!("rustc {} {}", release.unwrap_or("?"), host.unwrap_or("?")))
}

fn read_baseline(root: &Path) -> Result<DocumentMut, Failure> {
    let text = match std::fs::read_to_string(root.join(BASELINE)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("cannot read {BASELINE}: {error}")),
    };
    text.parse().map_err(|error| format!("{BASELINE}: {error}"))
}

fn known(baseline: &DocumentMut, name: &str) -> Option<u64> {
    let count = baseline.get("instructions")?.get(name)?.as_integer()?;
    u64::try_from(count).ok()
}

fn exceeds(now: u64, before: u64) -> bool {
    now * 100 > before * (100 + TOLERANCE)
}

fn line(path: &HotPath, now: u64, before: Option<u64>) -> String {
    let change = before.filter(|&before| before > 0).map_or_else(
        || "new".to_owned(),
        |before| format!("{:+.1} %", (now as f64 / before as f64 - 1.0) * 100.0),
    );
    let before = before.map_or_else(|| "–".to_owned(), |before| before.to_string());
    format!("{now:>14} {before:>14} {change:>8}  {} ({})", path.name, path.unit)
}

fn write_baseline(root: &Path, counted: &[(&HotPath, u64)]) -> Result<(), Failure> {
    let mut text = format!(
        "# Instructions of each unit of the hot paths in crates/lab/bench/src/hot_paths.rs.\n\
         # Written by `cargo xtask instructions --write`; CI fails at over {} % of these figures.\n\n\
         compiler = {:?}\n\n[instructions]\n",
        100 + TOLERANCE,
        compiler()?,
    );
    for (path, instructions) in counted {
        text.push_str(&format!("{} = {instructions}\n", path.name));
    }
    std::fs::write(root.join(BASELINE), text)
        .map_err(|error| format!("cannot write {BASELINE}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_in_what_cachegrind_says() {
        let said = "==7== Command: x run I refs 3\n==7== \n==7== I   refs:      12,345,678\n";
        assert_eq!(instructions_in(said), Some(12_345_678));
        assert_eq!(instructions_in("==7== I refs:  12\n"), Some(12));
        assert_eq!(instructions_in("==7== D   refs:  12\n"), None);
    }

    #[test]
    fn what_both_sizes_share_cancels() {
        let path = HotPath::of("replay-fifo 1 3 10 job of a replayed history").unwrap();
        assert_eq!(path.unit, "job of a replayed history");
        assert_eq!(path.per_unit([1_000 + 50, 1_000 + 150]), 5);
        assert_eq!(HotPath::of("replay-fifo 1 x 10 job"), None);
    }

    #[test]
    fn growth_up_to_the_tolerance_passes() {
        assert!(!exceeds(110, 100));
        assert!(exceeds(111, 100));
        assert!(!exceeds(50, 100));
    }

    #[test]
    fn growth_fails_with_the_baselines_compiler_and_is_only_shown_with_another() {
        let same = format!("compiler = {:?}\n", compiler().unwrap()).parse().unwrap();
        let why = verdict(&same, &["fifo-blocked"]).unwrap_err();
        assert!(why.contains("fifo-blocked") && why.contains("--write"), "{why}");
        let other = "compiler = \"rustc 1.0.0 abacus\"\n".parse().unwrap();
        assert_eq!(verdict(&other, &["fifo-blocked"]), Ok(()));
    }

    #[test]
    fn every_count_of_the_committed_baseline_is_of_a_hot_path_that_is_still_there() {
        let root = crate::root();
        let baseline = read_baseline(&root).unwrap();
        let list = std::fs::read_to_string(root.join("crates/lab/bench/src/hot_paths.rs")).unwrap();
        let counts = baseline["instructions"].as_table().unwrap();
        assert!(!counts.is_empty());
        for (name, _) in counts {
            assert!(list.contains(&format!("\"{name}\"")), "{name}");
        }
    }

    #[test]
    fn unknown_names_and_flags_are_refused() {
        assert!(wanted("a 1 2 1 unit\n", &["b".to_owned()]).is_err());
        assert_eq!(wanted("a 1 2 1 unit\nb 1 2 1 unit\n", &["b".to_owned()]).unwrap().len(), 1);
        assert!(Options::of(&["--all".to_owned()]).is_err());
        assert!(Options::of(&["--write".to_owned(), "a".to_owned()]).is_err());
    }
}
