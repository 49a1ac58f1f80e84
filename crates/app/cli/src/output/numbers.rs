//! Numbers for people.

/// Rounded to a whole number, with a comma between thousands.
pub fn grouped(value: f64) -> String {
    with_decimals(value, 0)
}

/// Rounded to so many decimals, with a comma between thousands.
pub fn with_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |parts| parts);
    let mut grouped = String::new();
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !zero { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart_and_minus_zero_is_zero() {
        assert_eq!(grouped(1_234_567.5), "1,234,568");
        assert_eq!(grouped(999.4), "999");
        assert_eq!(grouped(-0.2), "0");
        assert_eq!(with_decimals(-1_234.56, 1), "-1,234.6");
    }
}
