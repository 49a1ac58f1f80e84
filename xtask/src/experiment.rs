//! `cargo xtask experiment`: run one of the project's experiments and write its page.

use crate::Failure;
use crate::page::{Marks, data, preamble, write};
use crate::process::{build, output};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Part of the page that the experiment on quotas writes.
const QUOTAS: Marks = Marks {
    page: "docs/results/quotas.md",
    begin: "<!-- written by `cargo xtask experiment quotas --write`: begin -->",
    end: "<!-- written by `cargo xtask experiment quotas --write`: end -->",
};

/// Part of the page that the experiment on sharing writes.
const SHARING: Marks = Marks {
    page: "docs/results/sharing.md",
    begin: "<!-- written by `cargo xtask experiment sharing --write`: begin -->",
    end: "<!-- written by `cargo xtask experiment sharing --write`: end -->",
};

/// Part of the page that the experiment on when to share writes.
const WHEN_TO_SHARE: Marks = Marks {
    page: "docs/results/when-to-share.md",
    begin: "<!-- written by `cargo xtask experiment when-to-share --write`: begin -->",
    end: "<!-- written by `cargo xtask experiment when-to-share --write`: end -->",
};

/// Part of the page that the experiment on limits of slowdown writes.
const SLOWDOWN_LIMITS: Marks = Marks {
    page: "docs/results/slowdown-limits.md",
    begin: "<!-- written by `cargo xtask experiment slowdown-limits --write`: begin -->",
    end: "<!-- written by `cargo xtask experiment slowdown-limits --write`: end -->",
};

/// Experiments and the pages they write.
const EXPERIMENTS: [(&str, &Marks); 4] = [
    ("quotas", &QUOTAS),
    ("sharing", &SHARING),
    ("when-to-share", &WHEN_TO_SHARE),
    ("slowdown-limits", &SLOWDOWN_LIMITS),
];

struct Options {
    experiment: (&'static str, &'static Marks),
    data: Option<PathBuf>,
    seeds: u32,
    write: bool,
}

impl Options {
    fn of(arguments: &[String]) -> Result<Options, Failure> {
        let mut rest = arguments.iter();
        let names = EXPERIMENTS.map(|(name, _)| name).join(", ");
        let Some(name) = rest.next() else {
            return Err(format!("which experiment? try one of {names}"));
        };
        let known = EXPERIMENTS.into_iter().find(|(known, _)| known == name);
        let unknown = || format!("there is no experiment {name:?}; try one of {names}");
        let experiment = known.ok_or_else(unknown)?;
        let mut options = Options { experiment, data: None, seeds: 10, write: false };
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{argument} takes a value"));
            match argument.as_str() {
                "--data" => options.data = Some(PathBuf::from(value()?)),
                "--seeds" => {
                    let seeds = value()?;
                    let number = seeds.parse().ok().filter(|&number| number > 0);
                    options.seeds = number.ok_or_else(|| format!("{seeds:?} is no count"))?;
                }
                "--write" => options.write = true,
                other => return Err(format!("unexpected argument {other:?}")),
            }
        }
        Ok(options)
    }
}

/// Runs the experiment and prints its tables.
///
/// # Errors
/// If there is no data, the program does not build or fails, or the page cannot be written.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    let options = Options::of(arguments)?;
    let data = data(root, options.data)?;
    let data = data.ok_or("no data folder with helios_venus in it; give one with --data DIR")?;
    let program = build(root, "deepshare-experiments")?;
    let seeds = options.seeds.to_string();
    let (name, marks) = options.experiment;
    let tables = output(Command::new(program).args([name, &seeds]).arg(data))?;
    let how = format!("`cargo xtask experiment {name} --seeds {seeds}`: seeds 1 to {seeds}.");
    let report = format!("{}\n{tables}", preamble(root, &how)?);
    print!("{report}");
    if options.write {
        write(root, marks, &report)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_refused() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Options::of(&words)
        };
        let options = of(&["quotas", "--seeds", "3", "--write", "--data", "d"]).unwrap();
        assert_eq!((options.seeds, options.write), (3, true));
        assert_eq!(options.data, Some(PathBuf::from("d")));
        for wrong in [&[][..], &["shares"], &["quotas", "--seeds", "0"], &["quotas", "--fast"]] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
