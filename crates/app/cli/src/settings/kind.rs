//! The kinds of values that settings take: how each is read, written and described.

use super::source::Raw;
use deepshare_model::{GpuTime, Span};
use deepshare_sim::Delay;
use jiff::civil::DateTime;
use std::path::PathBuf;
use toml_edit::{Array, Value};

/// A kind of value. Implemented by types that only name the kind, as one type may be read in
/// several ways.
pub trait Kind {
    /// What is kept.
    type Of: Clone + PartialEq;
    /// The kind in words, to follow "expected".
    const IN_WORDS: &'static str;
    /// The same, where the words are not all known beforehand.
    fn in_words() -> String {
        Self::IN_WORDS.to_owned()
    }
    /// The value of a text or TOML value; `None` if it is not of this kind.
    fn read(raw: &Raw) -> Option<Self::Of>;
    /// The TOML value that reads as this one.
    fn show(value: &Self::Of) -> Value;
}

/// Yes or no.
pub struct Flag;
/// A whole number.
pub struct Count;
/// A whole number that fits 32 bits.
pub struct Count32;
/// A whole number, or what fits.
pub struct CountOrAuto;
/// A length of time in seconds.
pub struct Seconds;
/// A length of time in seconds, or none.
pub struct SecondsOrNone;
/// A uniformly distributed length of time in seconds.
pub struct SecondsRange;
/// A chance, kept in thousandths.
pub struct Chance;
/// A chance, kept in thousandths, or what is usual.
pub struct ChanceOrAuto;
/// A chance, kept in thousandths, or none.
pub struct ChanceOrNone;
/// A factor, kept in thousandths.
pub struct Factor;
/// A factor, kept in thousandths, or none.
pub struct FactorOrNone;
/// A factor, kept in thousandths; 0 is none.
pub struct FactorOrZero;
/// A factor of 1 or more, kept in thousandths.
pub struct FactorFromOne;
/// A chance of a half or more, kept in per cent.
pub struct LikelyChance;
/// The least and the most of a share, kept in thousandths.
pub struct ChanceRange;
/// A share, in thousandths, kept in millionths.
pub struct Slack;
/// A word or name, or none.
pub struct TextOrNone;
/// A list of GPU-seconds.
pub struct GpuSecondsList;
/// Two instants in whole seconds, or none.
pub struct WindowOrNone;
/// A date and time, or none.
pub struct DateTimeOrNone;
/// A file, or none.
pub struct FileOrNone;
/// The path of a folder, or none.
pub struct FolderOrNone;

/// Whether the value is the word for having none.
fn is_none(raw: &Raw) -> bool {
    raw.word() == Some("none")
}

impl Kind for Flag {
    type Of = bool;
    const IN_WORDS: &'static str = "`true` or `false`";
    fn read(raw: &Raw) -> Option<bool> {
        raw.value.as_bool()
    }
    fn show(value: &bool) -> Value {
        Value::from(*value)
    }
}

impl Kind for Count {
    type Of = u64;
    const IN_WORDS: &'static str = "a whole number, 0 or more";
    fn read(raw: &Raw) -> Option<u64> {
        raw.value.as_integer().and_then(|number| u64::try_from(number).ok())
    }
    fn show(value: &u64) -> Value {
        Value::from(i64::try_from(*value).unwrap_or(i64::MAX))
    }
}

impl Kind for Count32 {
    type Of = u32;
    const IN_WORDS: &'static str = "a whole number from 0 to 4,294,967,295";
    fn read(raw: &Raw) -> Option<u32> {
        Count::read(raw).and_then(|number| u32::try_from(number).ok())
    }
    fn show(value: &u32) -> Value {
        Value::from(i64::from(*value))
    }
}

impl Kind for CountOrAuto {
    type Of = Option<u64>;
    const IN_WORDS: &'static str = "a whole number, or `auto`";
    fn read(raw: &Raw) -> Option<Option<u64>> {
        if raw.word() == Some("auto") { Some(None) } else { Count::read(raw).map(Some) }
    }
    fn show(value: &Option<u64>) -> Value {
        value.as_ref().map_or_else(|| Value::from("auto"), Count::show)
    }
}

fn seconds(value: &Value) -> Option<Span> {
    let integer = value.as_integer().and_then(|s| u64::try_from(s).ok());
    match integer {
        Some(s) if s <= u64::MAX / 2_000_000 => Some(Span::from_secs(s)),
        Some(_) => None,
        None => value.as_float().and_then(Span::from_secs_f64),
    }
}

fn show_thousandths(milli: u64) -> Value {
    if milli.is_multiple_of(1_000) {
        return Count::show(&(milli / 1_000));
    }
    Value::from(milli as f64 / 1_000.0)
}

fn thousandths(value: &Value) -> Option<u64> {
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64))?;
    let milli = (number * 1_000.0).round();
    let whole = (number * 1_000.0 - milli).abs() < 1e-6;
    (whole && (0.0..1e15).contains(&milli)).then_some(milli as u64)
}

impl Kind for Seconds {
    type Of = Span;
    const IN_WORDS: &'static str = "a number of seconds, 0 or more";
    fn read(raw: &Raw) -> Option<Span> {
        seconds(&raw.value)
    }
    fn show(value: &Span) -> Value {
        if value.0.is_multiple_of(1_000_000) {
            return Count::show(&(value.0 / 1_000_000));
        }
        Value::from(value.as_secs_f64())
    }
}

impl Kind for SecondsOrNone {
    type Of = Option<Span>;
    const IN_WORDS: &'static str = "a number of seconds, 0 or more, or `none`";
    fn read(raw: &Raw) -> Option<Option<Span>> {
        if is_none(raw) { Some(None) } else { Seconds::read(raw).map(Some) }
    }
    fn show(value: &Option<Span>) -> Value {
        value.as_ref().map_or_else(|| Value::from("none"), Seconds::show)
    }
}

impl Kind for SecondsRange {
    type Of = Delay;
    const IN_WORDS: &'static str = "a number of seconds, or the least and the most as `[1, 5]`";
    fn read(raw: &Raw) -> Option<Delay> {
        let ends: Option<Vec<Span>> = raw.items().iter().map(seconds).collect();
        match ends?.as_slice() {
            [always] => Some(Delay::exactly(*always)),
            [min, max] if min <= max => Some(Delay { min: *min, max: *max }),
            _ => None,
        }
    }
    fn show(value: &Delay) -> Value {
        if value.min == value.max {
            return Seconds::show(&value.min);
        }
        Value::Array([value.min, value.max].iter().map(Seconds::show).collect())
    }
}

impl Kind for Chance {
    type Of = u32;
    const IN_WORDS: &'static str = "a chance from 0 to 1, in thousandths at the finest";
    fn read(raw: &Raw) -> Option<u32> {
        let milli = thousandths(&raw.value)?;
        u32::try_from(milli).ok().filter(|&milli| milli <= 1_000)
    }
    fn show(value: &u32) -> Value {
        show_thousandths(u64::from(*value))
    }
}

impl Kind for LikelyChance {
    type Of = u32;
    const IN_WORDS: &'static str = "a chance from 0.5 to 1, in hundredths at the finest";
    fn read(raw: &Raw) -> Option<u32> {
        let milli = Chance::read(raw).filter(|milli| *milli >= 500 && milli % 10 == 0)?;
        Some(milli / 10)
    }
    fn show(value: &u32) -> Value {
        show_thousandths(u64::from(*value) * 10)
    }
}

impl Kind for FactorFromOne {
    type Of = u32;
    const IN_WORDS: &'static str = "a factor from 1 to 1,000,000, in thousandths at the finest";
    fn read(raw: &Raw) -> Option<u32> {
        Factor::read(raw).filter(|&milli| milli >= 1_000)
    }
    fn show(value: &u32) -> Value {
        Factor::show(value)
    }
}

impl Kind for ChanceOrAuto {
    type Of = Option<u32>;
    const IN_WORDS: &'static str = "a chance from 0 to 1, in thousandths at the finest, or `auto`";
    fn read(raw: &Raw) -> Option<Option<u32>> {
        if raw.word() == Some("auto") { Some(None) } else { Chance::read(raw).map(Some) }
    }
    fn show(value: &Option<u32>) -> Value {
        value.as_ref().map_or_else(|| Value::from("auto"), Chance::show)
    }
}

impl Kind for Factor {
    type Of = u32;
    const IN_WORDS: &'static str = "a factor from 0 to 1,000,000, in thousandths at the finest";
    fn read(raw: &Raw) -> Option<u32> {
        let milli = thousandths(&raw.value).filter(|&milli| milli <= 1_000_000_000)?;
        u32::try_from(milli).ok()
    }
    fn show(value: &u32) -> Value {
        show_thousandths(u64::from(*value))
    }
}

impl Kind for ChanceOrNone {
    type Of = Option<u32>;
    const IN_WORDS: &'static str = "a chance from 0 to 1, in thousandths at the finest, or `none`";
    fn read(raw: &Raw) -> Option<Option<u32>> {
        if is_none(raw) { Some(None) } else { Chance::read(raw).map(Some) }
    }
    fn show(value: &Option<u32>) -> Value {
        value.as_ref().map_or_else(|| Value::from("none"), Chance::show)
    }
}

impl Kind for FactorOrNone {
    type Of = Option<u32>;
    const IN_WORDS: &'static str =
        "a factor from 0 to 1,000,000, in thousandths at the finest, or `none`";
    fn read(raw: &Raw) -> Option<Option<u32>> {
        if is_none(raw) { Some(None) } else { Factor::read(raw).map(Some) }
    }
    fn show(value: &Option<u32>) -> Value {
        value.as_ref().map_or_else(|| Value::from("none"), Factor::show)
    }
}

impl Kind for FactorOrZero {
    type Of = Option<u64>;
    const IN_WORDS: &'static str = "a factor, 0 or more, in thousandths at the finest";
    fn read(raw: &Raw) -> Option<Option<u64>> {
        thousandths(&raw.value).map(|milli| (milli > 0).then_some(milli))
    }
    fn show(value: &Option<u64>) -> Value {
        show_thousandths(value.unwrap_or(0))
    }
}

impl Kind for ChanceRange {
    type Of = (u32, u32);
    const IN_WORDS: &'static str = "a share from 0 to 1, or the least and the most as `[0.4, 0.9]`";
    fn read(raw: &Raw) -> Option<(u32, u32)> {
        let share = |value: &Value| {
            let milli = thousandths(value).filter(|&milli| milli <= 1_000)?;
            u32::try_from(milli).ok()
        };
        let ends: Option<Vec<u32>> = raw.items().iter().map(share).collect();
        match ends?.as_slice() {
            [always] => Some((*always, *always)),
            [least, most] if least <= most => Some((*least, *most)),
            _ => None,
        }
    }
    fn show(value: &(u32, u32)) -> Value {
        if value.0 == value.1 {
            return Chance::show(&value.0);
        }
        Value::Array([value.0, value.1].iter().map(Chance::show).collect())
    }
}

impl Kind for Slack {
    type Of = u32;
    const IN_WORDS: &'static str = "a share from 0 to 1, in thousandths at the finest";
    fn read(raw: &Raw) -> Option<u32> {
        Chance::read(raw).map(|milli| milli * 1_000)
    }
    fn show(value: &u32) -> Value {
        Chance::show(&(value / 1_000))
    }
}

impl Kind for TextOrNone {
    type Of = Option<String>;
    const IN_WORDS: &'static str = "a name, or `none`";
    fn read(raw: &Raw) -> Option<Option<String>> {
        if is_none(raw) { Some(None) } else { raw.word().map(|word| Some(word.to_owned())) }
    }
    fn show(value: &Option<String>) -> Value {
        Value::from(value.as_deref().unwrap_or("none"))
    }
}

impl Kind for GpuSecondsList {
    type Of = Vec<GpuTime>;
    const IN_WORDS: &'static str = "a list of GPU-seconds as `[18000, 36000]`";
    fn read(raw: &Raw) -> Option<Vec<GpuTime>> {
        raw.items().iter().map(|item| seconds(item).map(|span| span.on(1))).collect()
    }
    fn show(value: &Vec<GpuTime>) -> Value {
        let spans = value.iter().map(|service| Span(u64::try_from(service.0).unwrap_or(u64::MAX)));
        Value::Array(spans.map(|span| Seconds::show(&span)).collect())
    }
}

impl Kind for WindowOrNone {
    type Of = Option<(u64, u64)>;
    const IN_WORDS: &'static str = "the first and the last second as `[0, 86400]`, or `none`";
    fn read(raw: &Raw) -> Option<Option<(u64, u64)>> {
        if is_none(raw) {
            return Some(None);
        }
        let whole = |item: &Value| item.as_integer().and_then(|s| u64::try_from(s).ok());
        let ends: Option<Vec<u64>> = raw.items().iter().map(whole).collect();
        match ends?.as_slice() {
            [from, to] if from <= to => Some(Some((*from, *to))),
            _ => None,
        }
    }
    fn show(value: &Option<(u64, u64)>) -> Value {
        let list = |&(from, to): &(u64, u64)| {
            Value::Array(Array::from_iter([Count::show(&from), Count::show(&to)]))
        };
        value.as_ref().map_or_else(|| Value::from("none"), list)
    }
}

/// A civil date and time of a TOML value or text.
pub fn date_time(raw: &Raw) -> Option<DateTime> {
    match &raw.value {
        Value::Datetime(stamp) => stamp.value().to_string().parse().ok(),
        Value::String(text) => text.value().trim().parse().ok(),
        _ => None,
    }
}

/// A civil date and time as files have it.
pub fn show_date_time(value: &DateTime) -> Value {
    Value::from(value.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

impl Kind for DateTimeOrNone {
    type Of = Option<DateTime>;
    const IN_WORDS: &'static str = "a date and time as `2020-09-01 00:00:00`, or `none`";
    fn read(raw: &Raw) -> Option<Option<DateTime>> {
        if is_none(raw) { Some(None) } else { date_time(raw).map(Some) }
    }
    fn show(value: &Option<DateTime>) -> Value {
        value.as_ref().map_or_else(|| Value::from("none"), show_date_time)
    }
}

impl Kind for FileOrNone {
    type Of = Option<PathBuf>;
    const IN_WORDS: &'static str = "the path of a file, or `none`";
    fn read(raw: &Raw) -> Option<Option<PathBuf>> {
        if is_none(raw) { Some(None) } else { raw.path().map(Some) }
    }
    fn show(value: &Option<PathBuf>) -> Value {
        value.as_ref().map_or_else(|| Value::from("none"), |path| show_path(path))
    }
}

impl Kind for FolderOrNone {
    type Of = Option<PathBuf>;
    const IN_WORDS: &'static str = "the path of a folder, or `none`";
    fn read(raw: &Raw) -> Option<Option<PathBuf>> {
        FileOrNone::read(raw)
    }
    fn show(value: &Option<PathBuf>) -> Value {
        FileOrNone::show(value)
    }
}

/// An absolute path, so that it means the same from any folder.
pub fn show_path(path: &std::path::Path) -> Value {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Value::from(absolute.display().to_string())
}
