//! The program that `cargo xtask pictures` runs; not meant for people.

use deepshare_testkit::Pictures;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: deepshare-testkit pictures ROOT [--check]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["pictures", root] => write(Path::new(root)),
        ["pictures", root, "--check"] => check(Path::new(root)),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("pictures: {why}");
            ExitCode::FAILURE
        }
    }
}

fn write(root: &Path) -> Result<(), String> {
    let pictures = Pictures::draw(root)?;
    pictures.write(root)?;
    pictures.paths().for_each(|path| println!("{path}"));
    Ok(())
}

fn check(root: &Path) -> Result<(), String> {
    let stale = Pictures::draw(root)?.stale(root);
    match stale.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\nwrite them anew: cargo xtask pictures", stale.join("\n"))),
    }
}
