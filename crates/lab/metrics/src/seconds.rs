//! Seconds as exact decimal text: what is written reads back to the microsecond.

use std::fmt;
use thiserror::Error;

const MICROS: u64 = 1_000_000;

/// Microseconds that print as seconds: whole if whole, else with up to six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactSeconds(pub i64);

impl fmt::Display for ExactSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = self.0.unsigned_abs();
        let (whole, rest) = (micros / MICROS, micros % MICROS);
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        let decimals = format!("{rest:06}");
        write!(f, "{sign}{whole}.{}", decimals.trim_end_matches('0'))
    }
}

/// Why a text is not a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotSeconds {
    /// Not of the form `12` or `12.5`.
    #[error("is not a number of seconds such as `12` or `12.5`")]
    Malformed,
    /// Finer than a microsecond.
    #[error("has more than six decimals; times are whole microseconds")]
    TooFine,
    /// Beyond half the range of 64-bit microseconds.
    #[error("is beyond 292,000 years; is it in seconds?")]
    TooLarge,
}

/// Reads seconds as [`ExactSeconds`] prints them (never negative), to the microsecond.
///
/// # Errors
/// If the text is not a plain decimal number, is too fine or too large.
pub fn parse_seconds(text: &str) -> Result<u64, NotSeconds> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let dangling = whole.is_empty() || text.ends_with('.');
    if dangling || !is_digits(whole) || !is_digits(decimals) {
        return Err(NotSeconds::Malformed);
    }
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > 6 {
        return Err(NotSeconds::TooFine);
    }
    let padded = format!("{decimals:0<6}");
    let rest: u64 = padded.parse().expect("six digits are a number");
    let whole: u64 = whole.parse().map_err(|_| NotSeconds::TooLarge)?;
    let micros = whole.checked_mul(MICROS).and_then(|micros| micros.checked_add(rest));
    micros.filter(|&micros| micros <= u64::MAX / 2).ok_or(NotSeconds::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_seconds_have_no_decimals_and_others_no_trailing_zeros() {
        let texts = [(0, "0"), (97_000_000, "97"), (1_500_000, "1.5"), (1, "0.000001")];
        for (micros, text) in texts {
            assert_eq!(ExactSeconds(micros).to_string(), text);
        }
        assert_eq!(ExactSeconds(-500_000).to_string(), "-0.5");
    }

    #[test]
    fn what_is_not_a_plain_number_of_seconds_is_refused() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "nan", "inf", "1,5", " 1", "1.2.3"] {
            assert_eq!(parse_seconds(text), Err(NotSeconds::Malformed), "{text:?}");
        }
        assert_eq!(parse_seconds("0.0000001"), Err(NotSeconds::TooFine));
        assert_eq!(parse_seconds("9300000000000"), Err(NotSeconds::TooLarge));
        assert_eq!(parse_seconds("99999999999999999999999"), Err(NotSeconds::TooLarge));
        assert_eq!(parse_seconds("13219203.0"), Ok(13_219_203_000_000));
    }

    proptest! {
        #[test]
        fn every_microsecond_survives_the_round_trip(micros in 0..=(u64::MAX / 2)) {
            let text = ExactSeconds(i64::try_from(micros).unwrap()).to_string();
            prop_assert_eq!(parse_seconds(&text), Ok(micros));
        }
    }
}
