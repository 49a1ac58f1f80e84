//! Commands about two jobs on the same devices: what is predicted, what is true, what is seen.

use super::error::Fault;
use super::story::Story;
use super::words::{Word, Words};
use super::world::last_attempt;
use deepshare_engine::{Event, RetentionTable};
use deepshare_model::{ProfileClassId, Retention};
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
    tell_table(story)
}

/// `P=E ..`: with a chance of P per cent a true slowdown is at most E above the predicted one. Chances
/// between are those of the next one given, beyond the last those of the last.
pub(crate) fn predict_errors(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let mut errors: Vec<i32> = Vec::new();
    let mut next = Some(words.need("the chance and the error", usage)?);
    while let Some(word) = next {
        let Some((chance, error)) = word.text.split_once('=') else {
            return Err(word.wrong("is not chance=error", "write 70=0.05"));
        };
        let chance = Word { text: chance, ..word }.count(0, 100)? as usize;
        let error = Word { text: error, ..word }.thousandths()? as i32 * 1_000;
        if chance < errors.len() {
            return Err(word.wrong("does not ascend", "write the lower chance first"));
        }
        errors.resize(chance + 1, error);
        next = words.take();
    }
    let last = errors.last().copied().unwrap_or(0);
    errors.resize(101, last);
    story.errors_ppm = errors;
    tell_table(story)
}

/// Tells the engine all that is predicted by now.
fn tell_table(story: &mut Story) -> Result<(), Fault> {
    story.tables += 1;
    let classes = story.names.profiles.len();
    // What nobody predicted keeps next to nothing.
    let entry = |own: usize, other: usize| {
        let key = (ProfileClassId::from_index(own), ProfileClassId::from_index(other));
        story.predicted.get(&key).copied().unwrap_or(Retention::from_ppm(1))
    };
    let row = |own: usize| (0..classes).map(|other| entry(own, other)).collect();
    let rows = (0..classes).map(row).collect();
    let errors_ppm = story.errors_ppm.clone();
    let version = story.tables;
    let table = RetentionTable { version, rows, errors_ppm, ..Default::default() };
    story.tell(Event::Retentions { table })
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
    let mut attempt = || last_attempt(story, words, usage, "sample only what runs");
    let attempts = [attempt()?, attempt()?];
    let mut kept = || words.need("what it kept", usage)?.retention();
    let retentions = [kept()?, kept()?];
    words.done(usage)?;
    story.tell(Event::PairSampled { attempts, retentions, taken: story.now })
}
