//! The program that `cargo xtask experiment` runs; not meant for people.

use deepshare_experiments::{quotas, sharing};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: deepshare-experiments quotas|sharing SEEDS DATA_FOLDER";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let page = match arguments.as_slice() {
        [experiment @ ("quotas" | "sharing"), seeds, data] => match seeds.parse() {
            Ok(seeds) => {
                let page = if *experiment == "quotas" { quotas::page } else { sharing::page };
                page(Path::new(data), seeds).map_err(|error| error.to_string())
            }
            Err(_) => Err(format!("{seeds:?} is not a count\n{USAGE}")),
        },
        _ => Err(USAGE.to_owned()),
    };
    match page {
        Ok(page) => {
            print!("{page}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("deepshare-experiments: {why}");
            ExitCode::FAILURE
        }
    }
}
