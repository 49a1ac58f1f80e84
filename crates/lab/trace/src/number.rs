//! Decimal numbers as exact integers: seconds become microseconds without a detour over floats.

/// Why a field is not the number it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadNumber {
    Empty,
    NotANumber,
    NotFinite,
    Negative,
    TooLarge,
    NotWhole,
}

impl BadNumber {
    /// What is wrong, to follow the quoted value.
    pub(crate) fn why(self) -> &'static str {
        match self {
            BadNumber::Empty => "is empty",
            BadNumber::NotANumber => "is not a number",
            BadNumber::NotFinite => "is not a finite number",
            BadNumber::Negative => "is negative",
            BadNumber::TooLarge => "is too large",
            BadNumber::NotWhole => "is not a whole number",
        }
    }
}

/// `text` times ten to the `scale`, rounded half up.
pub(crate) fn parse_scaled(text: &str, scale: u32) -> Result<u64, BadNumber> {
    let text = text.trim_ascii();
    let (negative, unsigned) = match text.as_bytes() {
        [] => return Err(BadNumber::Empty),
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let word = |w| unsigned.eq_ignore_ascii_case(w);
    if word("nan") || word("inf") || word("infinity") {
        return Err(BadNumber::NotFinite);
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|b| b.is_ascii_digit()) {
        return Err(BadNumber::NotANumber);
    }
    if digits().all(|b| b == b'0') {
        return Ok(0);
    }
    if negative {
        return Err(BadNumber::Negative);
    }
    // Digits that end up left of the point.
    let kept = whole.len() as i64 + i64::from(scale) + exponent;
    accumulate(digits(), kept)
}

/// The whole number that `text` is; `8.0` is one.
pub(crate) fn parse_whole(text: &str) -> Result<u64, BadNumber> {
    let millionths = parse_scaled(text, 6)?;
    if millionths.is_multiple_of(1_000_000) {
        Ok(millionths / 1_000_000)
    } else {
        Err(BadNumber::NotWhole)
    }
}

fn parse_exponent(text: &str) -> Result<i64, BadNumber> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadNumber::NotANumber);
    }
    // Beyond this the value is zero or too large whatever its digits, which a line limits.
    Ok(text
        .parse::<i64>()
        .unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX })
        .clamp(-1 << 30, 1 << 30))
}

/// The integer made of the first `kept` digits, zeros appended if there are fewer, rounded by the
/// digit after them.
fn accumulate(mut digits: impl Iterator<Item = u8>, kept: i64) -> Result<u64, BadNumber> {
    let mut value: u64 = 0;
    for _ in 0..kept {
        let next = digits.next();
        if next.is_none() && value == 0 {
            break;
        }
        let digit = u64::from(next.unwrap_or(b'0') - b'0');
        value =
            value.checked_mul(10).and_then(|v| v.checked_add(digit)).ok_or(BadNumber::TooLarge)?;
    }
    let round_up = kept >= 0 && digits.next().is_some_and(|d| d >= b'5');
    value.checked_add(u64::from(round_up)).ok_or(BadNumber::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_microseconds_exactly() {
        for (text, micros) in [
            ("97", 97_000_000),
            ("0.1", 100_000),
            ("13219203", 13_219_203_000_000),
            ("1.0000005", 1_000_001),
            ("1.0000004999", 1_000_000),
            ("9007199254.740993", 9_007_199_254_740_993),
            ("1e3", 1_000_000_000),
            ("2.5E-1", 250_000),
            ("+4", 4_000_000),
            (" 4 ", 4_000_000),
            ("-0.0", 0),
            ("5e-7", 1),
            ("5e-8", 0),
            ("5e-999999999999999999999", 0),
            (".5", 500_000),
            ("5.", 5_000_000),
        ] {
            assert_eq!(parse_scaled(text, 6), Ok(micros), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused_with_the_reason() {
        for (text, why) in [
            ("", BadNumber::Empty),
            ("  ", BadNumber::Empty),
            ("abc", BadNumber::NotANumber),
            ("1,5", BadNumber::NotANumber),
            ("1e", BadNumber::NotANumber),
            (".", BadNumber::NotANumber),
            ("-", BadNumber::NotANumber),
            ("1e5.5", BadNumber::NotANumber),
            ("٣", BadNumber::NotANumber),
            ("NaN", BadNumber::NotFinite),
            ("-inf", BadNumber::NotFinite),
            ("-1", BadNumber::Negative),
            ("1e300", BadNumber::TooLarge),
            ("1e999999999999999999999", BadNumber::TooLarge),
            ("99999999999999999999", BadNumber::TooLarge),
        ] {
            assert_eq!(parse_scaled(text, 6), Err(why), "{text}");
        }
        assert_eq!(parse_whole("8.0"), Ok(8));
        assert_eq!(parse_whole("8.5"), Err(BadNumber::NotWhole));
    }
}
