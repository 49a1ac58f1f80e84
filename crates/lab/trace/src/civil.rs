//! Dates without a zone, read as UTC: `2020-09-01 00:02:34`.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Microseconds since 1970 of a civil date and time, or `None` if `text` is none.
///
/// A zone or an offset is refused rather than ignored: half of an instant is none.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let text = text.trim_ascii();
    let (date, time) = text.split_at_checked(10)?;
    let zoneless = |b: u8| b.is_ascii_digit() || matches!(b, b':' | b'.' | b' ' | b'T');
    if date.bytes().filter(|&b| b == b'-').count() != 2 || !time.bytes().all(zoneless) {
        return None;
    }
    micros(text.parse().ok()?)
}

/// Microseconds since 1970 of a civil date and time.
pub(crate) fn micros(time: DateTime) -> Option<i64> {
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond())
}

/// The civil date and time of a number of microseconds since 1970, as files write it.
pub fn show(micros: i64) -> String {
    match jiff::Timestamp::from_microsecond(micros) {
        Ok(instant) => {
            instant.to_zoned(TimeZone::UTC).datetime().strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        Err(_) => format!("{micros} us after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_times_are_read_as_utc_and_zones_are_refused() {
        let lucid = parse("2020-09-01 00:02:34").unwrap();
        let origin = parse("2020-04-01 00:02:31").unwrap();
        assert_eq!((lucid - origin) / 1_000_000, 13_219_203);
        assert_eq!(show(lucid), "2020-09-01 00:02:34");
        for bad in [
            "",
            "2020",
            "2020-09-31 00:00:00",
            "2020-09-01 00:02:34+08:00",
            "1234567890",
            "2020-09-01 00:02:34Z",
            "ééééé",
            "2020-09-01 25:00:00",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
