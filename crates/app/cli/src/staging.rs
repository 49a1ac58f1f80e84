//! Results that appear whole or not at all: written beside their place, and moved there at the end.

use crate::failure::Failure;
use crate::terminal;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What a folder of results holds beside one folder a policy.
pub const RESULT_FILES: [&str; 2] = ["run.json", "settings.toml"];

/// A place for a folder of results.
pub struct Target {
    path: PathBuf,
    parent: PathBuf,
    force: bool,
}

impl Target {
    /// A place at `path`, which is free, empty, or, with `force`, holds nothing but results.
    ///
    /// # Errors
    /// If it is none of these, so that nothing is computed in vain and nothing of value is lost.
    pub fn of(path: &Path, force: bool) -> Result<Target, Failure> {
        let resolved = match path.canonicalize() {
            Ok(existing) => existing,
            Err(_) => std::path::absolute(path).map_err(Failure::write(path))?,
        };
        let (Some(parent), Some(_)) = (resolved.parent(), resolved.file_name()) else {
            let what = format!("--out {}: cannot put results there; name a folder", path.display());
            return Err(Failure::Usage(what));
        };
        let parent = parent.to_owned();
        let target = Target { path: resolved, parent, force };
        target.check(path)?;
        Ok(target)
    }

    fn check(&self, given: &Path) -> Result<(), Failure> {
        let refuse = |why: &str| Err(Failure::Usage(format!("--out {}: {why}", given.display())));
        if !self.path.exists() {
            return Ok(());
        }
        if !self.path.is_dir() {
            return refuse("is a file; name a folder");
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(Failure::write(given))? {
            names.push(entry.map_err(Failure::write(given))?.file_name());
        }
        names.sort();
        if names.is_empty() {
            return Ok(());
        }
        if !self.force {
            return refuse("is not empty; name another folder, or replace it with --force");
        }
        match names.iter().find(|name| !is_result(name)) {
            Some(name) => refuse(&format!(
                "holds {:?}, which is not a result of this program, so --force does not replace \
                 it; name another folder",
                name.display().to_string()
            )),
            None => Ok(()),
        }
    }

    /// A folder beside the place, removed unless it is [put](Self::put) there.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn stage(&self) -> Result<TempDir, Failure> {
        fs::create_dir_all(&self.parent).map_err(Failure::write(&self.parent))?;
        let name = self.path.file_name().unwrap_or_default().display().to_string();
        let prefix = format!(".{name}.");
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let staged = builder.prefix(&prefix).suffix(".partial");
        staged.tempdir_in(&self.parent).map_err(Failure::write(&self.path))
    }

    /// Moves the finished folder to its place. What was there is removed only afterwards.
    ///
    /// # Errors
    /// If it cannot be moved; then what was there is still there.
    pub fn put(&self, staged: TempDir) -> Result<(), Failure> {
        self.check(&self.path)?;
        let old = staged.path().with_extension("old");
        let replaced = self.force && self.path.exists();
        if replaced {
            fs::rename(&self.path, &old).map_err(Failure::write(&self.path))?;
        }
        if let Err(error) = fs::rename(staged.path(), &self.path) {
            if replaced {
                restore(&old, &self.path, &error)?;
            }
            return Err(Failure::write(&self.path)(error));
        }
        // It has moved, so there is nothing to remove.
        let _ = staged.keep();
        if replaced {
            // The new results are in place; what remains of the old ones only takes room.
            if let Err(error) = fs::remove_dir_all(&old) {
                let name = old.display();
                terminal::say(&format!("warning: cannot remove the old results {name}: {error}"));
            }
        }
        Ok(())
    }
}

/// Puts the old results back after the new ones could not be moved.
fn restore(old: &Path, path: &Path, cause: &io::Error) -> Result<(), Failure> {
    fs::rename(old, path).map_err(|error| {
        Failure::Usage(format!(
            "cannot move the new results to {}: {cause}; nor the old ones back: {error}; they are \
             in {}",
            path.display(),
            old.display()
        ))
    })
}

fn is_result(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    RESULT_FILES.contains(&name) || deepshare_policies::PolicyConfig::NAMES.contains(&name)
}
