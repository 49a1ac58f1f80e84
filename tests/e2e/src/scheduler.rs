//! The scheduler as a process of its own.

use crate::bed::Bed;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running scheduler, and where it writes.
pub struct Scheduler {
    child: Option<Child>,
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: TempDir,
    runs: u32,
}

impl Scheduler {
    /// Starts `program` with these settings, to which the folder of its log and a free port are added.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(bed: &Bed, program: &str, settings: &str) -> Scheduler {
        let folder = TempDir::new().expect("a folder for the scheduler");
        std::fs::write(folder.path().join("settings.toml"), settings).expect("its settings");
        let mut scheduler = Scheduler {
            child: None,
            program: program.into(),
            kubeconfig: bed.kubeconfig.clone(),
            folder,
            runs: 0,
        };
        scheduler.run_again();
        scheduler
    }

    /// Starts it again after it has ended, with a fresh event log.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run_again(&mut self) {
        self.child = None;
        self.runs += 1;
        let errors = std::fs::File::create(self.errors_file()).expect("a file for its log");
        let settings = self.settings_file();
        let child = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--settings")
            .arg(settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn();
        self.child = Some(child.expect("the scheduler starts"));
    }

    /// The settings of this run: those given, its own log folder, any port.
    fn settings_file(&self) -> PathBuf {
        let given = std::fs::read_to_string(self.folder.path().join("settings.toml"));
        let given = given.unwrap_or_default();
        let path = self.folder.path().join(format!("settings-{}.toml", self.runs));
        let log = self.event_log();
        let text = format!("listen = \"127.0.0.1:0\"\n{given}\n[log]\nfolder = {log:?}\n");
        std::fs::write(&path, text).expect("its settings");
        path
    }

    fn errors_file(&self) -> PathBuf {
        self.folder.path().join(format!("scheduler-{}.log", self.runs))
    }

    /// The event log of the current run.
    pub fn event_log(&self) -> PathBuf {
        self.folder.path().join(format!("events-{}", self.runs))
    }

    /// Event logs of all runs so far.
    pub fn event_logs(&self) -> Vec<PathBuf> {
        let runs = 1..=self.runs;
        let all = runs.map(|run| self.folder.path().join(format!("events-{run}")));
        all.filter(|log| log.exists()).collect()
    }

    /// A folder for files of the test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.errors_file()).unwrap_or_default()
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
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

    /// Asks it to stop and waits until it has.
    ///
    /// # Panics
    /// If it does not stop within ten seconds.
    pub fn stop(&mut self) -> ExitStatus {
        let Some(mut child) = self.child.take() else { return ExitStatus::default() };
        let id = child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status();
        assert!(asked.is_ok_and(|status| status.success()), "kill -TERM {id}");
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("the scheduler can be waited for") {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "it does not stop: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
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
