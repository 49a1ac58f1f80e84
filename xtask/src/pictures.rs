//! `cargo xtask pictures`: draw the schedules of scenario scripts that ask for a picture.

use crate::Failure;
use crate::process::{self, build_as_tests};
use std::path::Path;
use std::process::Command;

/// Draws all pictures, or with `--check` says which of those in the repository are not what their
/// scripts ask for.
///
/// # Errors
/// If the program does not build, a script fails, or a picture is out of date.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    if let Some(other) = arguments.iter().find(|argument| *argument != "--check") {
        return Err(format!("unexpected argument {other:?}"));
    }
    let mut command = Command::new(build_as_tests(root, "deepshare-testkit")?);
    command.arg("pictures").arg(root).args(arguments.first());
    process::run(&mut command, "pictures: see above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_checking_can_be_asked_for() {
        let said = run(Path::new("."), &["--fast".to_owned()]).unwrap_err();
        assert!(said.contains("--fast"), "{said}");
    }
}
