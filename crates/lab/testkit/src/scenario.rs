//! Readable scripts that drive an engine directly: `docs/formats/scenario.md`.
//!
//! A script is run line by line against one engine and a deterministic little world (jobs that
//! bind, start, stop and end at once unless the script says otherwise), with the auditor on after
//! every step. What the engine asks for and says becomes reply lines below the line that caused
//! them. Reply lines already in the text are ignored, so the output of a run is a script again.

mod commands;
mod error;
mod names;
mod report;
mod setup;
mod sharing;
mod stint;
mod story;
mod values;
mod words;
mod world;

pub use error::ScenarioError;

use crate::picture::Schedule;
use std::io;
use std::path::{Path, PathBuf};
use story::Story;
use words::Words;

/// What a script goes through beside what it says. It must reply the same under each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strain {
    /// Nothing.
    #[default]
    None,
    /// After every step the engine is saved as JSON, dropped, and restored with a fresh policy.
    Restarts,
    /// The engine hears everything twice.
    NewsTwice,
}

/// Runs a script and returns it with its replies: script lines as they are, replies beginning
/// with `> `.
///
/// # Errors
/// [`ScenarioError`] with the line: a mistake in the script, or a broken rule.
pub fn run_scenario(text: &str) -> Result<String, ScenarioError> {
    run_scenario_under(text, Strain::None)
}

/// As [`run_scenario`], under a strain.
///
/// # Errors
/// As [`run_scenario`].
pub fn run_scenario_under(text: &str, strain: Strain) -> Result<String, ScenarioError> {
    play(text, strain).map(|(output, _)| output)
}

/// Runs a script and returns what happened, to be drawn.
///
/// # Errors
/// As [`run_scenario`].
pub fn record_scenario(text: &str) -> Result<Schedule, ScenarioError> {
    play(text, Strain::None).map(|(_, story)| story.schedule())
}

/// Every script of the repository at `root`, in order of path.
///
/// # Errors
/// If a folder cannot be read.
pub fn scenario_files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.join("scenarios")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "scn") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The script with its replies, and the story at its end.
pub(crate) fn play(text: &str, strain: Strain) -> Result<(String, Story), ScenarioError> {
    let mut story = Story::new(strain);
    let mut output = String::new();
    for (index, raw) in text.lines().enumerate() {
        if raw.starts_with('>') {
            continue;
        }
        let line = index + 1;
        let mut words = Words::new(raw);
        let result = if words.is_empty() {
            Ok(())
        } else {
            // What happens before the line's instant belongs above the line.
            let begun = commands::reach(&mut story, &mut words);
            flush(&mut story, &mut output);
            begun.and_then(|()| {
                push_line(&mut output, raw);
                commands::obey(&mut story, &mut words)
            })
        };
        if words.is_empty() {
            push_line(&mut output, raw);
        }
        result.map_err(|fault| fault.at(line))?;
        flush(&mut story, &mut output);
    }
    let lines = text.lines().count();
    story.end().map_err(|fault| fault.at(lines))?;
    flush(&mut story, &mut output);
    Ok((output, story))
}

fn push_line(output: &mut String, line: &str) {
    output.push_str(line.trim_end());
    output.push('\n');
}

fn flush(story: &mut Story, output: &mut String) {
    for reply in story.take_replies() {
        push_line(output, &format!("> {reply}"));
    }
}
