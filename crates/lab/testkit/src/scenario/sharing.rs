//! Commands about two jobs on the same devices: what is predicted, what is true, what is seen.

use super::error::Fault;
use super::story::Story;
use super::words::Words;
use deepshare_engine::{Event, RetentionTable};
use deepshare_model::{AttemptId, ProfileClassId, Retention};
use std::collections::BTreeMap;

/// What jobs of one profile keep beside those of another.
pub(crate) type Kept = BTreeMap<Profiles, Retention>;

/// Own, the partner's.
type Profiles = (ProfileClassId, ProfileClassId);

/// `A B X Y`: A keeps X beside B, and B keeps Y beside A.
fn pair_of_profiles(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<[(Profiles, Retention); 2], Fault> {
    let mut profile = || -> Result<ProfileClassId, Fault> {
        Ok(story.names.profile(words.need("the profile", usage)?.text))
    };
    let (own, other) = (profile()?, profile()?);
    let mut kept = || words.need("what it keeps", usage)?.retention();
    let (first, second) = (kept()?, kept()?);
    words.done(usage)?;
    Ok([((own, other), first), ((other, own), second)])
}

pub(crate) fn predict(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let entries = pair_of_profiles(story, words, usage)?;
    story.predicted.extend(entries);
    story.tables += 1;
    let classes = story.names.profiles.len();
    // What nobody predicted keeps next to nothing.
    let entry = |own: usize, other: usize| {
        let key = (ProfileClassId::from_index(own), ProfileClassId::from_index(other));
        story.predicted.get(&key).copied().unwrap_or(Retention::from_ppm(1))
    };
    let row = |own: usize| (0..classes).map(|other| entry(own, other)).collect();
    let rows = (0..classes).map(row).collect();
    story.tell(Event::Retentions {
        table: RetentionTable { version: story.tables, rows, ..Default::default() },
    })
}

pub(crate) fn truth(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let entries = pair_of_profiles(story, words, usage)?;
    story.true_kept.extend(entries);
    story.change_speeds();
    Ok(())
}

pub(crate) fn sample(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let mut attempt = || -> Result<AttemptId, Fault> {
        let word = words.need("the job", usage)?;
        let job = story.names.job(word)?;
        let last = story.attempts_of(job).last().map(|&(attempt, _)| attempt);
        last.ok_or_else(|| word.wrong("never started", "sample only what runs"))
    };
    let attempts = [attempt()?, attempt()?];
    let mut kept = || words.need("what it kept", usage)?.retention();
    let retentions = [kept()?, kept()?];
    words.done(usage)?;
    story.tell(Event::PairSampled { attempts, retentions, taken: story.now })
}
