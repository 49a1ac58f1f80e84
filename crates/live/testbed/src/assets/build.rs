//! Builds the programs from their Go modules.
//!
//! A module of our own requires `k8s.io/kubernetes` and replaces each module that it stages in its
//! own tree (`k8s.io/api`, …, required there as v0.0.0) by the published one.

use super::{AssetsError, ETCD, KubernetesVersion};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs of `k8s.io/kubernetes/cmd/`.
const COMMANDS: [&str; 4] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];

/// Builds everything into `folder`, which appears only when it is complete.
pub fn build(version: KubernetesVersion, folder: &Path) -> Result<(), AssetsError> {
    let cache = folder.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(cache).map_err(io("create", cache))?;
    let lock = cache.join(format!("{version}.lock"));
    let locked = File::create(&lock).map_err(io("create", &lock))?;
    locked.lock().map_err(io("lock", &lock))?;
    if super::complete(folder) {
        return Ok(()); // Another process built it while this one waited.
    }
    let work = tempfile::Builder::new().prefix("build-").tempdir_in(cache);
    let work = work.map_err(io("create a folder in", cache))?;
    let builder = Builder { version, work: work.path(), out: work.path().join("out") };
    fs::create_dir_all(&builder.out).map_err(io("create", &builder.out))?;
    eprintln!(
        "building Kubernetes {} and etcd {ETCD} into {}, once: about ten minutes on two cores",
        version.module(),
        folder.display()
    );
    builder.etcd()?;
    builder.kubernetes()?;
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(io("remove", folder))?;
    }
    fs::rename(&builder.out, folder).map_err(io("rename a build to", folder))
}

struct Builder<'a> {
    version: KubernetesVersion,
    work: &'a Path,
    out: PathBuf,
}

impl Builder<'_> {
    fn etcd(&self) -> Result<(), AssetsError> {
        let module = self.module("etcd")?;
        write(&module.join("go.mod"), "module deepshare.dev/etcd\n\ngo 1.26\n")?;
        let package = "go.etcd.io/etcd/server/v3";
        self.go(&module, &["get", &format!("{package}@{ETCD}")])?;
        let out = self.out.join("etcd");
        let out = out.to_string_lossy();
        self.go(&module, &["build", "-trimpath", "-ldflags", "-s -w", "-o", &out, package])
            .map(drop)
    }

    fn kubernetes(&self) -> Result<(), AssetsError> {
        let module = self.module("kubernetes")?;
        let version = self.version.module();
        write(&module.join("go.mod"), "module deepshare.dev/cluster\n\ngo 1.26\n")?;
        let found = self
            .go(&module, &["mod", "download", "-json", &format!("k8s.io/kubernetes@{version}")])?;
        let found: serde_json::Value = serde_json::from_str(&found).unwrap_or_default();
        let theirs = PathBuf::from(found["GoMod"].as_str().unwrap_or_default());
        let theirs = fs::read_to_string(&theirs).map_err(io("read", &theirs))?;
        write(&module.join("go.mod"), &go_mod(&theirs, self.version))?;
        write(&module.join("tools.go"), &tools())?;
        self.go(&module, &["mod", "tidy"])?;
        let stamp = format!(
            "-s -w -X k8s.io/component-base/version.gitVersion={version} \
             -X k8s.io/component-base/version.gitMajor=1 \
             -X k8s.io/component-base/version.gitMinor={}",
            self.version.minor()
        );
        let out = format!("{}/", self.out.display());
        // All at once: while one of them is linked, on a single core, others are compiled.
        let packages = COMMANDS.map(package);
        let mut build = vec!["build", "-trimpath", "-ldflags", &stamp, "-o", &out];
        build.extend(packages.iter().map(String::as_str));
        self.go(&module, &build).map(drop)
    }

    fn module(&self, name: &str) -> Result<PathBuf, AssetsError> {
        let folder = self.work.join(name);
        fs::create_dir_all(&folder).map_err(io("create", &folder))?;
        Ok(folder)
    }

    /// Runs go in a module; what it printed.
    fn go(&self, module: &Path, arguments: &[&str]) -> Result<String, AssetsError> {
        let shown = format!("go {}", arguments.join(" "));
        // Without flags and folders.
        let words = arguments.iter().copied().filter(|word| !word.starts_with(['-', '/']));
        let words: Vec<&str> = words.collect();
        eprintln!("  go {}", words.join(" "));
        let mut command = Command::new("go");
        // Whatever workspace or vendoring surrounds the caller is not meant for this module.
        command.current_dir(module).args(arguments).env("GOFLAGS", "-mod=mod").env("GOWORK", "off");
        let failed = |said: String| AssetsError::Build {
            version: self.version,
            command: shown.clone(),
            said,
        };
        let done = command.stdin(Stdio::null()).output();
        let done = done.map_err(|error| failed(error.to_string()))?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            let lines: Vec<&str> = said.lines().collect();
            return Err(failed(lines[lines.len().saturating_sub(20)..].join("\n")));
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

/// A go.mod that requires Kubernetes as published: `theirs` is Kubernetes' own.
fn go_mod(theirs: &str, version: KubernetesVersion) -> String {
    let staged = theirs.lines().filter_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        let module = words.next().filter(|module| module.starts_with("k8s.io/"))?;
        (words.next() == Some("v0.0.0")).then_some(module)
    });
    let staging = version.staging();
    let replaced: String =
        staged.map(|module| format!("\t{module} => {module} {staging}\n")).collect();
    format!(
        "module deepshare.dev/cluster\n\ngo 1.26\n\nrequire k8s.io/kubernetes {}\n\n\
         replace (\n{replaced})\n",
        version.module()
    )
}

/// A file that imports what is to be built, so that tidying keeps its dependencies.
fn tools() -> String {
    let imports: String =
        COMMANDS.iter().map(|name| format!("\t_ {:?}\n", package(name))).collect();
    format!("//go:build tools\n\npackage tools\n\nimport (\n{imports})\n")
}

fn package(command: &str) -> String {
    format!("k8s.io/kubernetes/cmd/{command}")
}

fn write(path: &Path, text: &str) -> Result<(), AssetsError> {
    fs::write(path, text).map_err(io("write", path))
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> AssetsError {
    let path = path.to_owned();
    move |error| AssetsError::Io { doing, path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staged_modules_are_replaced_and_no_others() {
        let theirs = "module k8s.io/kubernetes\n\nrequire (\n\tk8s.io/api v0.0.0\n\
                      \tk8s.io/klog/v2 v2.140.0\n\tgithub.com/x/y v0.0.0\n)\n\
                      require k8s.io/kms v0.0.0 // indirect\n\
                      replace k8s.io/api => ./staging/src/k8s.io/api\n";
        let ours = go_mod(theirs, KubernetesVersion::V1_35);
        assert!(ours.contains("require k8s.io/kubernetes v1.35.4"), "{ours}");
        assert!(ours.contains("\tk8s.io/api => k8s.io/api v0.35.4\n"), "{ours}");
        assert!(ours.contains("\tk8s.io/kms => k8s.io/kms v0.35.4\n"), "{ours}");
        assert_eq!(ours.matches("=>").count(), 2, "{ours}");
    }
}
