//! The files that rules look at.

use crate::Failure;
use crate::process::{git, output};
use std::path::Path;

/// A file of the repository.
pub struct File {
    /// Path from the root, with forward slashes.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Contents, if they are UTF-8.
    pub text: Option<String>,
}

/// The repository's files: tracked, or new and not ignored.
pub struct Tree {
    /// In order of path.
    pub files: Vec<File>,
}

impl Tree {
    /// Reads what git lists. What was deleted but is still tracked is left out.
    ///
    /// # Errors
    /// If git cannot list the files or one cannot be read.
    pub fn read(root: &Path) -> Result<Tree, Failure> {
        let mut list = git(root);
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = output(&mut list)?;
        let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let full = root.join(path);
            if !full.is_file() {
                continue;
            }
            let contents = std::fs::read(&full);
            let contents = contents.map_err(|error| format!("cannot read {path}: {error}"))?;
            let bytes = contents.len() as u64;
            files.push(File {
                path: path.to_owned(),
                bytes,
                text: String::from_utf8(contents).ok(),
            });
        }
        Ok(Tree { files })
    }

    /// Files with this extension, and their text.
    pub fn texts<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = (&'a File, &'a str)> {
        let wanted =
            move |file: &&File| file.path.rsplit_once('.').is_some_and(|(_, e)| e == extension);
        self.files.iter().filter(wanted).filter_map(|file| Some((file, file.text.as_deref()?)))
    }

    /// The file at this path.
    pub fn file(&self, path: &str) -> Option<&File> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path));
        at.ok().map(|at| &self.files[at])
    }

    /// True if there is a file or a folder with files at this path.
    pub fn holds(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    }
}

#[cfg(test)]
impl Tree {
    /// A tree of these paths and texts.
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let file = |&(path, text): &(&str, &str)| File {
            path: path.to_owned(),
            bytes: text.len() as u64,
            text: Some(text.to_owned()),
        };
        let mut files: Vec<File> = files.iter().map(file).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Tree { files }
    }
}
