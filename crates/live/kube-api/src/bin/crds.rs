//! Writes the custom resource definitions, generated from the types, to a folder; with `--check`,
//! says which files there are out of date.

use deepshare_kube_api::definitions;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [folder] => write(Path::new(folder)),
        [folder, "--check"] => check(Path::new(folder)),
        _ => Err("usage: crds FOLDER [--check]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("crds: {why}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> Result<(), String> {
    let cannot = |error| format!("cannot write to {}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(cannot)?;
    for definition in definitions() {
        let path = folder.join(format!("{}.yaml", definition.plural));
        fs::write(path, definition.to_yaml()).map_err(cannot)?;
    }
    Ok(())
}

fn check(folder: &Path) -> Result<(), String> {
    let stale: Vec<String> = definitions()
        .into_iter()
        .map(|definition| (folder.join(format!("{}.yaml", definition.plural)), definition))
        .filter(|(path, definition)| {
            fs::read_to_string(path).ok().is_none_or(|text| text != definition.to_yaml())
        })
        .map(|(path, _)| path.display().to_string())
        .collect();
    match stale.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{} not as the types have it: renew with `cargo xtask crds`",
            stale.join(", ")
        )),
    }
}
