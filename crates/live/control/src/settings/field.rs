//! What a key is, and the kinds of values.

use super::Settings;
use deepshare_model::Span;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml_edit::Value;

/// A setting.
pub struct Key {
    /// Its name in files.
    pub name: &'static str,
    /// Its unit; empty for words and plain numbers.
    pub unit: &'static str,
    /// Where it lives, and which values it takes.
    pub field: Field,
    /// What it means.
    pub doc: &'static str,
}

/// Where a setting lives, and which values it takes.
pub enum Field {
    /// `true` or `false`.
    Flag(fn(&mut Settings) -> &mut bool),
    /// A whole number.
    Count(fn(&mut Settings) -> &mut u32),
    /// A factor kept in thousandths, up to this many.
    Milli(fn(&mut Settings) -> &mut u32, u32),
    /// A share kept in millionths.
    Millionths(fn(&mut Settings) -> &mut u32),
    /// A length of time in seconds.
    Seconds(fn(&mut Settings) -> &mut Span),
    /// A name, never empty.
    Name(fn(&mut Settings) -> &mut String),
    /// A path; absent if not set.
    Path(fn(&mut Settings) -> &mut Option<PathBuf>),
    /// An IP address and port.
    Address(fn(&mut Settings) -> &mut SocketAddr),
    /// One of these words.
    Word {
        /// All of them.
        words: &'static [&'static str],
        /// The one that is set.
        get: fn(&Settings) -> String,
        /// Sets one of them; false if it is none.
        set: fn(&mut Settings, &str) -> bool,
    },
}

/// Sets a field; false if there is no value for it.
fn put<T>(field: &mut T, value: Option<T>) -> bool {
    value.map(|value| *field = value).is_some()
}

fn scaled(value: &Value, scale: f64, most: f64) -> Option<u32> {
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64))?;
    let scaled = (number * scale).round();
    let exact = (number * scale - scaled).abs() < 1e-6;
    (exact && (0.0..=most).contains(&scaled)).then_some(scaled as u32)
}

fn seconds(value: &Value) -> Option<Span> {
    match value.as_integer() {
        Some(whole) => u64::try_from(whole).ok().filter(|&s| s < 1 << 40).map(Span::from_secs),
        None => value.as_float().and_then(Span::from_secs_f64),
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

impl Field {
    /// Reads a value into the settings; false if it is not of this kind. Paths start from `folder`.
    pub fn set(&self, settings: &mut Settings, value: &Value, folder: &Path) -> bool {
        match self {
            Field::Flag(of) => put(of(settings), value.as_bool()),
            Field::Count(of) => {
                put(of(settings), value.as_integer().and_then(|number| number.try_into().ok()))
            }
            Field::Milli(of, most) => put(of(settings), scaled(value, 1e3, f64::from(*most))),
            Field::Millionths(of) => put(of(settings), scaled(value, 1e6, 1e6)),
            Field::Seconds(of) => put(of(settings), seconds(value)),
            Field::Name(of) => put(of(settings), text(value).map(str::to_owned)),
            Field::Path(of) => put(of(settings), text(value).map(|path| Some(folder.join(path)))),
            Field::Address(of) => {
                put(of(settings), text(value).and_then(|address| address.parse().ok()))
            }
            Field::Word { set, .. } => text(value).is_some_and(|word| set(settings, word)),
        }
    }

    /// The value as TOML; `None`: not set.
    pub fn show(&self, settings: &Settings) -> Option<String> {
        let settings = &mut settings.clone();
        Some(match self {
            Field::Flag(of) => of(settings).to_string(),
            Field::Count(of) => of(settings).to_string(),
            Field::Milli(of, _) => (f64::from(*of(settings)) / 1e3).to_string(),
            Field::Millionths(of) => (f64::from(*of(settings)) / 1e6).to_string(),
            Field::Seconds(of) => of(settings).as_secs_f64().to_string(),
            Field::Name(of) => format!("\"{}\"", of(settings)),
            Field::Path(of) => format!("\"{}\"", of(settings).as_ref()?.display()),
            Field::Address(of) => format!("\"{}\"", of(settings)),
            Field::Word { get, .. } => format!("\"{}\"", get(settings)),
        })
    }

    /// Which values it takes, to follow "expected".
    pub fn in_words(&self) -> String {
        match self {
            Field::Flag(_) => "`true` or `false`".to_owned(),
            Field::Count(_) => "a whole number, 0 or more".to_owned(),
            Field::Milli(_, most) => {
                format!("a number from 0 to {}, in thousandths at the finest", most / 1_000)
            }
            Field::Millionths(_) => "a number from 0 to 1, in millionths at the finest".to_owned(),
            Field::Seconds(_) => "a number of seconds, 0 or more".to_owned(),
            Field::Name(_) => "a name in quotes".to_owned(),
            Field::Path(_) => "a path in quotes".to_owned(),
            Field::Address(_) => "an IP address and a port, as in `\"127.0.0.1:10459\"`".to_owned(),
            Field::Word { words, .. } => {
                let quoted: Vec<String> =
                    words.iter().map(|word| format!("`\"{word}\"`")).collect();
                format!("one of {}", quoted.join(", "))
            }
        }
    }
}
