//! Ends a control plane whose owner has died without saying so.
//!
//! A test that is killed, or that keeps its control plane in a static, drops nothing. So a small
//! shell waits on a pipe from the owner; when the pipe closes, for whatever reason, it kills what
//! it was told of.

use super::{ControlPlaneError, io};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

const SCRIPT: &str = r#"
pids=
while read -r pid; do
    case $pid in
    -*)
        left=
        for one in $pids; do [ "-$one" = "$pid" ] || left="$left $one"; done
        pids=$left
        ;;
    *) pids="$pids $pid" ;;
    esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
[ -z "$1" ] && exit
for wait in 1 2 3 4 5; do rm -rf -- "$1" 2>/dev/null && exit; sleep 0.1; done
"#;

/// The owner's end of the pipe.
#[derive(Debug)]
pub struct Guard {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// A guard that also removes a folder in the end, if one is given.
    pub fn new(remove: Option<&Path>) -> Result<Guard, ControlPlaneError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "guard"]).arg(remove.unwrap_or(Path::new("")));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0);
        let mut shell = command.spawn().map_err(io("start", Path::new("/bin/sh")))?;
        let pipe = shell.stdin.take();
        Ok(Guard { shell, pipe })
    }

    /// Has one more process end with the owner.
    pub fn watch(&mut self, pid: u32) -> Result<(), ControlPlaneError> {
        self.tell(&pid.to_string())
    }

    /// Has one process less end with the owner: it is about to, and its number may become another's.
    pub fn forget(&mut self, pid: u32) -> Result<(), ControlPlaneError> {
        self.tell(&format!("-{pid}"))
    }

    fn tell(&mut self, line: &str) -> Result<(), ControlPlaneError> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        writeln!(pipe, "{line}").map_err(io("tell of a process to", Path::new("/bin/sh")))
    }

    /// Ends the guard and nothing else.
    pub fn dismiss(mut self) {
        let _ = self.shell.kill();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.shell.wait();
    }
}
