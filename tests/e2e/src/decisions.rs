//! What was decided: by the lab, as a script's replies say, and live, as the event log says.

use crate::script::time;
use deepshare_engine::Command;
use deepshare_event_log::{Log, LogError, Named, Record};
use deepshare_model::{AttemptId, JobId};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// One decision: a verb, the job, and of evictions the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decided(pub String);

const VERBS: [&str; 6] = ["start", "evict", "promote", "shrink", "grow", "refuse"];

/// Decisions less than this apart may come in either order: a real cluster is not that punctual.
const PUNCTUAL: Duration = Duration::from_secs(1);

/// The decisions among a script's replies, those that follow each other closely together.
pub fn expected(script: &str) -> Vec<Vec<Decided>> {
    let mut groups: Vec<(Duration, Vec<Decided>)> = Vec::new();
    for line in script.lines() {
        let Some(reply) = line.strip_prefix("> ") else { continue };
        let mut words = reply.split_whitespace();
        let (Some(at), Some(verb), Some(job)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if !VERBS.contains(&verb) {
            continue;
        }
        let mut said = format!("{verb} {job}");
        if verb == "evict" {
            let reason = reply.split_once(" for ").map_or("", |(_, reason)| reason);
            let reason = reason.split(" (").next().unwrap_or_default();
            said = format!("{said} for {reason}");
        }
        let at = time(at).unwrap_or_default();
        match groups.last_mut() {
            Some((last, group)) if at.saturating_sub(*last) < PUNCTUAL => {
                *last = at;
                group.push(Decided(said));
            }
            _ => groups.push((at, vec![Decided(said)])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The decisions in an event log, in order.
///
/// # Errors
/// If the log cannot be read.
pub fn decided(folder: &Path) -> Result<Vec<Decided>, LogError> {
    let mut names: BTreeMap<JobId, String> = BTreeMap::new();
    let mut jobs: BTreeMap<AttemptId, JobId> = BTreeMap::new();
    let mut all = Vec::new();
    Log::open(folder)?.read(|segment| {
        while let Some(record) = segment.next_record()? {
            match record {
                Record::Name(name) => {
                    if let Named::Job(id) = name.of {
                        names.insert(id, short(&name.name));
                    }
                }
                Record::Step(step) => {
                    for command in step.commands().unwrap_or_default() {
                        if let Command::Start { attempt, job, .. } = &command {
                            jobs.insert(*attempt, *job);
                        }
                        all.extend(in_words(&command, &names, &jobs));
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(all.into_iter().map(Decided).collect())
}

/// Prints every step of a log, for whoever looks for a difference.
pub(crate) fn trace(folder: &Path) {
    let mut first = None;
    let read = Log::open(folder).and_then(|log| {
        log.read(|segment| {
            while let Some(record) = segment.next_record()? {
                if let Record::Step(step) = record {
                    let begun = *first.get_or_insert(step.at);
                    let at = step.at.saturating_since(begun).as_secs_f64();
                    eprintln!("{at:9.3} {:?}\n          {}", step.event, step.commands_text());
                }
            }
            Ok(())
        })
    });
    if let Err(error) = read {
        eprintln!("{error}");
    }
}

fn in_words(
    command: &Command,
    names: &BTreeMap<JobId, String>,
    jobs: &BTreeMap<AttemptId, JobId>,
) -> Option<String> {
    let name = |job: &JobId| names.get(job).cloned().unwrap_or_default();
    let of = |attempt: &AttemptId| jobs.get(attempt).map(name).unwrap_or_default();
    Some(match command {
        Command::Start { job, .. } => format!("start {}", name(job)),
        Command::Evict { attempt, reason, .. } => {
            format!("evict {} for {}", of(attempt), reason.in_words())
        }
        Command::Promote { attempt } => format!("promote {}", of(attempt)),
        Command::Shrink { attempt, .. } => format!("shrink {}", of(attempt)),
        Command::Grow { attempt, .. } => format!("grow {}", of(attempt)),
        Command::Refuse { job, .. } => format!("refuse {}", name(job)),
        _ => return None,
    })
}

/// The name that a script gave a job, from `namespace/NAME-suffix#uid` or `namespace/NAME#uid`.
fn short(name: &str) -> String {
    let name = name.split_once('/').map_or(name, |(_, name)| name);
    name.split(['-', '#']).next().unwrap_or(name).to_owned()
}

/// Holds what was decided against what was expected: the groups in order, each in any order.
///
/// # Errors
/// Both, where they differ.
pub fn matches(expected: &[Vec<Decided>], got: &[Decided]) -> Result<(), String> {
    let mut rest = got;
    for group in expected {
        let (here, after) = rest.split_at(group.len().min(rest.len()));
        let (mut wanted, mut here) = (group.clone(), here.to_vec());
        wanted.sort();
        here.sort();
        if wanted != here {
            return Err(difference(expected, got));
        }
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(difference(expected, got)) }
}

fn difference(expected: &[Vec<Decided>], got: &[Decided]) -> String {
    let list = |all: &mut dyn Iterator<Item = &Decided>| {
        all.map(|decided| format!("  {}", decided.0)).collect::<Vec<_>>().join("\n")
    };
    let wanted = list(&mut expected.iter().flatten());
    format!("the lab decided\n{wanted}\nand the cluster\n{}", list(&mut got.iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(list: &[&str]) -> Vec<Decided> {
        list.iter().map(|said| Decided((*said).to_owned())).collect()
    }

    #[test]
    fn replies_close_to_each_other_may_come_in_any_order_and_others_may_not() {
        let script = "> 0s start a on n0[0]\n> 0.3s start b on n1[0]\n> 1s wait c x\n\
                      > 2s evict a for preemption (by c, phi 1)\n> 3s start c on n0[0]\n";
        let expected = expected(script);
        let good = ["start b", "start a", "evict a for preemption", "start c"];
        assert_eq!(matches(&expected, &all(&good)), Ok(()));
        for bad in [
            &["start a", "start b", "start c", "evict a for preemption"][..],
            &["start a", "start b", "evict a for preemption"],
            &["start a", "start b", "evict b for preemption", "start c"],
            &["start a", "start b", "evict a for preemption", "start c", "start a"],
        ] {
            assert!(matches(&expected, &all(bad)).is_err(), "{bad:?}");
        }
    }
}
