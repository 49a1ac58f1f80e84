//! A progress bar on standard error, where that is a terminal.

use deepshare_sim::Watch;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the bar moves.
const REFRESH: Duration = Duration::from_millis(100);

/// A bar that follows a watch until it is dropped.
pub struct Progress {
    over: Arc<AtomicBool>,
    follower: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows how many of `jobs` have ended over all runs; nothing if not wanted or not seen.
    pub fn show(watch: &Arc<Watch>, jobs: u64, wanted: bool) -> Progress {
        let over = Arc::new(AtomicBool::new(false));
        if !wanted || !io::stderr().is_terminal() {
            return Progress { over, follower: None };
        }
        let (watch, done) = (Arc::clone(watch), Arc::clone(&over));
        let follower = thread::spawn(move || {
            let bar = ProgressBar::new(jobs);
            let template = "{bar:40} {human_pos} of {human_len} jobs, {eta} left";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            while !done.load(Ordering::Relaxed) {
                bar.set_position(watch.ended.load(Ordering::Relaxed));
                thread::sleep(REFRESH);
            }
            bar.finish_and_clear();
        });
        Progress { over, follower: Some(follower) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(follower) = self.follower.take() {
            // The bar is only for show; if its thread died there is nothing to add.
            let _ = follower.join();
        }
    }
}
