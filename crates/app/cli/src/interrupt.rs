//! Ctrl-C: a run stops, what is half written is removed, and the exit status is 130.

use crate::failure::Failure;
use deepshare_sim::{SimError, Watch};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lets the user stop a command.
pub struct Interrupt {
    /// What runs look at.
    pub watch: Arc<Watch>,
    at_once: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on. Until [`gentle`](Self::gentle) the process ends at once.
    pub fn listen() -> Interrupt {
        let watch = Arc::new(Watch::default());
        let at_once = Arc::new(AtomicBool::new(true));
        let (heard, end) = (Arc::clone(&watch), Arc::clone(&at_once));
        // Without a handler Ctrl-C ends the process as the system has it, which is no worse than
        // not running at all.
        let _ = ctrlc::set_handler(move || {
            heard.stop.store(true, Ordering::SeqCst);
            if end.load(Ordering::SeqCst) {
                process::exit(130);
            }
        });
        Interrupt { watch, at_once }
    }

    /// From now on somebody looks at the watch and cleans up.
    pub fn gentle(&self) {
        self.at_once.store(false, Ordering::SeqCst);
    }

    /// From now on there is nothing to clean up.
    pub fn abrupt(&self) {
        self.at_once.store(true, Ordering::SeqCst);
        if self.stopped() {
            process::exit(130);
        }
    }

    /// True once the user has asked to stop.
    pub fn stopped(&self) -> bool {
        self.watch.stop.load(Ordering::SeqCst)
    }

    /// Fails once the user has asked to stop.
    pub fn check(&self) -> Result<(), Failure> {
        if self.stopped() { Err(SimError::Interrupted.into()) } else { Ok(()) }
    }

    /// A writer that fails once the user has asked to stop.
    pub fn stoppable<W: Write>(&self, inner: W) -> Stoppable<'_, W> {
        Stoppable { inner, interrupt: self }
    }

    /// What an error of a stoppable writer to `path` means.
    pub fn failure(&self, path: &Path) -> impl FnOnce(io::Error) -> Failure {
        let path = path.to_owned();
        move |error| match self.check() {
            Err(interrupted) => interrupted,
            Ok(()) => Failure::write(&path)(error),
        }
    }
}

/// A writer that fails once the user has asked to stop.
pub struct Stoppable<'a, W> {
    inner: W,
    interrupt: &'a Interrupt,
}

impl<W: Write> Write for Stoppable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interrupt.stopped() {
            // Not the kind `Interrupted`, which asks to try again.
            return Err(io::Error::other("stopped by the user"));
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
