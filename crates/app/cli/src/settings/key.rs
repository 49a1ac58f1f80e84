//! What a key is, and how a row of the table of keys is written.

use super::Settings;
use super::choices::{Ablation, AblationWord};
use super::kind::Kind;
use super::source::Raw;
use deepshare_policies::{
    BsbfSettings, DeepShareSettings, LucidSettings, PolicyConfig, TensorShareSettings,
};
use deepshare_sim::SimSettings;
use toml_edit::Value;

/// A value is not of the kind its key takes.
#[derive(Debug)]
pub struct WrongKind;

/// A setting.
#[derive(Debug)]
pub struct Key {
    /// Its name in files and after `--set`.
    pub name: &'static str,
    /// Its unit; empty for words and plain numbers.
    pub unit: &'static str,
    /// What values it takes, in words.
    pub kind: fn() -> String,
    /// What it means.
    pub doc: &'static str,
    /// Reads a value into the settings.
    pub set: fn(&mut Settings, &Raw) -> Result<(), WrongKind>,
    /// Its value; `None` if policies differ in it.
    pub get: fn(&Settings) -> Option<Value>,
}

/// Writes a row of the table. A setting lives in one place of [`Settings`] (`settings.…`), in that
/// of every policy (`run.…`), in DeepShare's own (`deepshare.…`), or in another policy's own
/// (`Policy { … }`).
macro_rules! key {
    ($name:literal, $unit:literal, $kind:ty, settings.$($field:ident).+, $doc:expr) => {
        Key {
            name: $name,
            unit: $unit,
            kind: <$kind as Kind>::in_words,
            doc: $doc,
            set: |settings, raw| {
                settings.$($field).+ = <$kind>::read(raw).ok_or(WrongKind)?;
                Ok(())
            },
            get: |settings| Some(<$kind>::show(&settings.$($field).+)),
        }
    };
    ($name:literal, $unit:literal, $kind:ty, run.$($field:ident).+, $doc:expr) => {
        Key {
            name: $name,
            unit: $unit,
            kind: <$kind as Kind>::in_words,
            doc: $doc,
            set: |settings, raw| {
                let value = <$kind>::read(raw).ok_or(WrongKind)?;
                for run in &mut settings.runs {
                    run.$($field).+ = value.clone();
                }
                Ok(())
            },
            get: |settings| {
                let first = &settings.runs[0].$($field).+;
                let agree = settings.runs.iter().all(|run| run.$($field).+ == *first);
                agree.then(|| <$kind>::show(first))
            },
        }
    };
    // A field of a policy's own settings, which a function of the policy's name finds in a run.
    ($name:literal, $unit:literal, $kind:ty, $own:ident.$($field:ident).+, $doc:expr) => {
        Key {
            name: $name,
            unit: $unit,
            kind: <$kind as Kind>::in_words,
            doc: $doc,
            set: |settings, raw| {
                let value = <$kind>::read(raw).ok_or(WrongKind)?;
                for own in settings.runs.iter_mut().filter_map($own) {
                    own.$($field).+ = value;
                }
                Ok(())
            },
            get: |settings| {
                let mut runs = settings.runs.clone();
                runs.iter_mut().find_map($own).map(|own| <$kind>::show(&own.$($field).+))
            },
        }
    };
    ($name:literal, $unit:literal, $kind:ty, $policy:ident { $field:ident }, $doc:expr) => {
        Key {
            name: $name,
            unit: $unit,
            kind: <$kind as Kind>::in_words,
            doc: $doc,
            set: |settings, raw| {
                let value = <$kind>::read(raw).ok_or(WrongKind)?;
                for run in &mut settings.runs {
                    if let PolicyConfig::$policy { $field, .. } = &mut run.policy {
                        *$field = value.clone();
                    }
                }
                Ok(())
            },
            get: |settings| {
                settings.runs.iter().find_map(|run| match &run.policy {
                    PolicyConfig::$policy { $field, .. } => Some(<$kind>::show($field)),
                    _ => None,
                })
            },
        }
    };
}

pub(super) use key;

/// DeepShare's own settings, if this is its run.
pub(super) fn deepshare(run: &mut SimSettings) -> Option<&mut DeepShareSettings> {
    match &mut run.policy {
        PolicyConfig::DeepShare(own) => Some(own),
        _ => None,
    }
}

/// Lucid's own settings, if this is its run.
pub(super) fn lucid(run: &mut SimSettings) -> Option<&mut LucidSettings> {
    match &mut run.policy {
        PolicyConfig::Lucid(own) => Some(own),
        _ => None,
    }
}

/// SJF-BSBF's own settings, if this is its run.
pub(super) fn bsbf(run: &mut SimSettings) -> Option<&mut BsbfSettings> {
    match &mut run.policy {
        PolicyConfig::SjfBsbf(own) => Some(own),
        _ => None,
    }
}

/// TensorShare's own settings, if this is its run.
pub(super) fn tensorshare(run: &mut SimSettings) -> Option<&mut TensorShareSettings> {
    match &mut run.policy {
        PolicyConfig::TensorShare(own) => Some(own),
        _ => None,
    }
}

/// The switches of an ablation under one word.
pub(super) const WITHOUT: Key = Key {
    name: "deepshare.without",
    unit: "",
    kind: <AblationWord as Kind>::in_words,
    doc: "ablation: no order by quota assurance, no tolerance by it, no reclaim, or none of them; the \
          same as `deepshare.order_by_qad = false`, `deepshare.share_by_qad = false`, \
          `deepshare.reclaim = false`, or all three",
    set: |settings, raw| {
        let switches = AblationWord::read(raw).ok_or(WrongKind)?.switches();
        for own in settings.runs.iter_mut().filter_map(deepshare) {
            [own.order_by_qad, own.colocation.by_qad, own.reclaim] = switches;
        }
        Ok(())
    },
    get: |settings| {
        let mut runs = settings.runs.clone();
        let own = runs.iter_mut().find_map(deepshare)?;
        let switches = [own.order_by_qad, own.colocation.by_qad, own.reclaim];
        Ablation::of(switches).map(|ablation| AblationWord::show(&ablation))
    },
};
