//! One program of a control plane: started with a log, ended by its handle or by its pid file.

use super::{ControlPlaneError, io};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A child process.
#[derive(Debug)]
pub struct Running {
    name: String,
    program: PathBuf,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a program; what it says goes to `NAME.log` in the folder.
    pub fn start(
        program: &Path,
        folder: &Path,
        arguments: &[String],
    ) -> Result<Running, ControlPlaneError> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = folder.join(format!("{name}.log"));
        let out = File::create(&log).map_err(io("create", &log))?;
        let err = out.try_clone().map_err(io("write", &log))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(out).stderr(err);
        // A group of its own: Ctrl-C in the terminal reaches the owner, which ends its children in
        // order.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(io("start", program))?;
        Ok(Running { name, program: program.to_owned(), child, log })
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its log and the end of it.
    pub fn log_tail(&self) -> (PathBuf, String) {
        (self.log.clone(), tail(&self.log))
    }

    /// Fails if the program has ended.
    pub fn check(&mut self) -> Result<(), ControlPlaneError> {
        let Ok(Some(status)) = self.child.try_wait() else { return Ok(()) };
        let (log, tail) = self.log_tail();
        Err(ControlPlaneError::Ended {
            program: self.name.clone(),
            status: status.to_string(),
            log,
            tail,
        })
    }

    /// Ends it at once; nothing that it holds outlives the cluster.
    pub fn kill(&mut self) {
        // An error says that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop, and ends it by force after ten seconds.
    pub fn stop(mut self) {
        self.pid_file().end();
        self.kill();
    }

    /// Lets it run on.
    pub fn detach(self) -> PidFile {
        self.pid_file()
    }

    fn pid_file(&self) -> PidFile {
        PidFile { name: self.name.clone(), pid: self.pid(), program: self.program.clone() }
    }
}

/// The last lines of a log.
pub fn tail(log: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(8 << 10)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_else(|error| format!("(cannot be read: {error})"));
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// A process that another one started, as written down for later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PidFile {
    /// What it is, for people.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// The program that it runs: a process of this id that runs another is not it.
    pub program: PathBuf,
}

impl PidFile {
    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        let Some(pid) = self.id() else { return false };
        test_kill_process(pid).is_ok() && self.is_ours()
    }

    /// Ends it: politely first, by force after ten seconds.
    pub fn end(&self) {
        let Some(pid) = self.id() else { return };
        if !self.runs() {
            return;
        }
        // Errors say that it ended by itself meanwhile.
        let _ = kill_process(pid, Signal::TERM);
        let begun = Instant::now();
        while self.runs() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        if self.runs() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn id(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid).ok()?)
    }

    /// A zombie runs nothing, and neither does a process whose program is another.
    fn is_ours(&self) -> bool {
        let exe = std::fs::read_link(format!("/proc/{}/exe", self.pid));
        // A rebuilt program is shown as deleted, which is why names are compared.
        let ours = self.program.file_name().unwrap_or_default().to_string_lossy();
        exe.is_ok_and(|exe| {
            exe.file_name().unwrap_or_default().to_string_lossy().trim_end_matches(" (deleted)")
                == ours
        })
    }
}
