//! The scheduler as a process of its own.

use crate::bed::{Bed, wait};
use crate::gate::Gate;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// For a process to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running scheduler, and where it writes.
pub struct Scheduler {
    child: Option<Child>,
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: TempDir,
}

impl Scheduler {
    /// Starts `program` with these settings, to which the folder of its log and a free port are added.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(bed: &Bed, program: &str, settings: &str) -> Scheduler {
        Scheduler::launch(&bed.kubeconfig, program, settings)
    }

    /// The same, with a gate between it and the API server.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_behind(gate: &Gate, program: &str, settings: &str) -> Scheduler {
        Scheduler::launch(&gate.kubeconfig(), program, settings)
    }

    fn launch(kubeconfig: &Path, program: &str, settings: &str) -> Scheduler {
        let folder = TempDir::new().expect("a folder for the scheduler");
        let log = events(folder.path());
        let settings = format!("listen = \"127.0.0.1:0\"\n{settings}\n[log]\nfolder = {log:?}\n");
        std::fs::write(folder.path().join("settings.toml"), settings).expect("its settings");
        let (program, kubeconfig) = (program.into(), kubeconfig.to_owned());
        let mut scheduler = Scheduler { child: None, program, kubeconfig, folder };
        scheduler.start_again();
        scheduler
    }

    /// Starts it once more after it has ended: another process with the same settings, whose event log
    /// goes on in the same folder.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_again(&mut self) {
        let said = errors(self.folder.path());
        let said = File::create(said).expect("a file for what it says");
        let child = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--settings")
            .arg(self.folder.path().join("settings.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn();
        self.child = Some(child.expect("the scheduler starts"));
    }

    /// Waits until it leads and knows the cluster.
    ///
    /// # Panics
    /// If it does not within a minute.
    pub async fn until_ready(&self) {
        wait("the scheduler knows the cluster", async || {
            self.said().contains("scheduling begins").then_some(())
        })
        .await;
    }

    /// Its event log.
    pub fn event_log(&self) -> PathBuf {
        events(self.folder.path())
    }

    /// What it said so far, since it was started last.
    pub fn said(&self) -> String {
        std::fs::read_to_string(errors(self.folder.path())).unwrap_or_default()
    }

    /// Memory that it holds, in bytes.
    ///
    /// # Panics
    /// If the system does not say: Linux does.
    pub fn resident_bytes(&self) -> usize {
        let id = self.child.as_ref().expect("the scheduler was started").id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
        kib.expect("its memory in KiB") * 1_024
    }

    /// Kills it on the spot.
    ///
    /// # Panics
    /// If it cannot be killed.
    pub fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        child.kill().expect("the scheduler is killed");
        child.wait().expect("the scheduler ends");
    }

    /// Stops it in the middle of whatever it does, until [`Scheduler::resume`].
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on where it was stopped.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    /// Asks it to stop and waits until it has.
    ///
    /// # Panics
    /// If it does not stop within half a minute.
    pub fn stop(&mut self) {
        if self.child.is_some() {
            self.signal("TERM");
            self.ended();
        }
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    /// If it does not end within half a minute.
    pub fn ended(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("the scheduler was started");
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("the scheduler can be waited for") {
                return status;
            }
            if begun.elapsed() > PATIENCE {
                self.child = Some(child);
                panic!("the scheduler does not end");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("the scheduler was started").id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -{name} {id}");
    }
}

fn events(folder: &Path) -> PathBuf {
    folder.join("events")
}

fn errors(folder: &Path) -> PathBuf {
    folder.join("scheduler.log")
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let said = self.said();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines.len().saturating_sub(60);
            eprintln!("the scheduler's last words:\n{}", lines[last..].join("\n"));
        }
    }
}
