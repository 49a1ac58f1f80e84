//! The program that `cargo xtask contention` runs; not meant for people. It fits the coefficients
//! of the contention model and prints the page about them.

mod fit;
mod measurements;
mod page;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: deepshare-interference DATA_FOLDER [FILE_FOR_COEFFICIENTS]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (data, coefficients) = match arguments.as_slice() {
        [data] => (data, None),
        [data, file] => (data, Some(file)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    let result = page::page(Path::new(data)).and_then(|(page, fitted)| {
        print!("{page}");
        let Some(file) = coefficients else { return Ok(()) };
        std::fs::write(file, page::source(&fitted)).map_err(|e| format!("cannot write {file}: {e}"))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("deepshare-interference: {why}");
            ExitCode::FAILURE
        }
    }
}
