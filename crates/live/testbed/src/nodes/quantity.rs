//! Kubernetes quantities, as in `500m`, `16Gi` or `1e3`.

/// Thousandths of what a quantity says, rounded up as Kubernetes does; `None` if it is no quantity
/// or beyond 10^30.
pub fn milli(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (up, down) = scale(suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let value: i128 = digits.parse().ok().filter(|_| digits.len() <= 20)?;
    let divisor = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?.checked_mul(down)?;
    let scaled = value.checked_mul(up)?.checked_mul(1000)?;
    Some(scaled.div_euclid(divisor) + i128::from(scaled.rem_euclid(divisor) != 0))
}

/// What a suffix multiplies and divides by.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let up = |value: i128| Some((value, 1));
    match suffix {
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "" => up(1),
        "k" => up(1000),
        "M" => up(1_000_000),
        "G" => up(1_000_000_000),
        "T" => up(1_000_000_000_000),
        "P" => up(1_000_000_000_000_000),
        "E" => up(1_000_000_000_000_000_000),
        "Ki" => up(1 << 10),
        "Mi" => up(1 << 20),
        "Gi" => up(1 << 30),
        "Ti" => up(1 << 40),
        "Pi" => up(1 << 50),
        "Ei" => up(1 << 60),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_i128.checked_pow(exponent.unsigned_abs()).filter(|_| exponent < 19)?;
            if exponent < 0 { Some((1, power)) } else { up(power) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::milli;

    #[test]
    fn quantities_of_every_form_are_read() {
        for (text, expected) in [
            ("1", 1000),
            ("250m", 250),
            ("1.5", 1500),
            ("0.1m", 1),
            ("2Ki", 2_048_000),
            ("1k", 1_000_000),
            ("1e3", 1_000_000),
            ("12E-1", 1200),
            ("1E", 1_000_000_000_000_000_000_000),
            ("-1", -1000),
        ] {
            assert_eq!(milli(text), Some(expected), "{text}");
        }
        for text in ["", "Gi", "1 Gi", "1.2.3", "1x", "--1"] {
            assert_eq!(milli(text), None, "{text}");
        }
    }
}
