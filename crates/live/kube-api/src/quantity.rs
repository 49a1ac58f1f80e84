//! Kubernetes quantities: `500m`, `1.5`, `2Gi`, `1e3`.
//!
//! Grammar and rounding are those of the API documentation ("Quantity", `resource.Quantity`): decimal
//! suffixes n u m k M G T P E, binary ones Ki Mi Gi Ti Pi Ei, or a decimal exponent; finer than nano
//! is rounded away from zero; beyond ±(2^63 − 1) is capped.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;

const NANO: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;
const CAP: i128 = i64::MAX as i128 * NANO;

/// An amount, exact to a thousand-millionth of its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nano: i128,
}

/// Why a text is not a quantity, or not a usable one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not in the grammar.
    #[error("`{0}` is not a quantity: write a number with a suffix, as in `500m`, `1.5` or `2Gi`")]
    Malformed(String),
    /// Below zero where an amount is asked for.
    #[error("`{0}` is negative: an amount of a resource is at least 0")]
    Negative(Quantity),
}

impl Quantity {
    /// So many whole units.
    pub fn units(amount: u64) -> Quantity {
        Quantity { nano: (i128::from(amount) * NANO).min(CAP) }
    }

    /// So many thousandths of a unit.
    pub fn milli(amount: u64) -> Quantity {
        Quantity { nano: (i128::from(amount) * MILLI).min(CAP) }
    }

    /// Whole units, rounded up.
    ///
    /// # Errors
    /// Where it is negative.
    pub fn as_units(self) -> Result<u64, QuantityError> {
        self.in_units_of(NANO)
    }

    /// Thousandths of a unit, rounded up.
    ///
    /// # Errors
    /// Where it is negative.
    pub fn as_milli(self) -> Result<u64, QuantityError> {
        self.in_units_of(MILLI)
    }

    fn in_units_of(self, nano: i128) -> Result<u64, QuantityError> {
        if self.nano < 0 {
            return Err(QuantityError::Negative(self));
        }
        // At most i64::MAX × 1000, which a u64 may not hold.
        Ok(u64::try_from((self.nano + nano - 1) / nano).unwrap_or(u64::MAX))
    }
}

/// An amount of the resource `name` in the unit that DeepShare counts it in: thousandths of a core for
/// `cpu`, whole units for anything else.
///
/// # Errors
/// Where it is negative.
pub fn base_units(name: &str, quantity: Quantity) -> Result<u64, QuantityError> {
    if name == "cpu" { quantity.as_milli() } else { quantity.as_units() }
}

/// An amount of the resource `name`, in the unit of [`base_units`], as the API writes it.
pub fn format_amount(name: &str, amount: u64) -> String {
    if name == "cpu" {
        return Quantity::milli(amount).to_string();
    }
    let binary = matches!(name, "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !binary || amount == 0 {
        return amount.to_string();
    }
    const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let step = (amount.trailing_zeros() / 10) as usize;
    let step = step.min(SUFFIXES.len() - 1);
    format!("{}{}", amount >> (10 * step), SUFFIXES[step])
}

impl fmt::Display for Quantity {
    /// The shortest decimal form without a fraction, as in `1500m` and `2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, suffix) = [(NANO, ""), (MILLI, "m"), (1000, "u")]
            .into_iter()
            .find(|(unit, _)| self.nano % unit == 0)
            .unwrap_or((1, "n"));
        write!(f, "{}{suffix}", self.nano / unit)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        parse(text).ok_or_else(|| QuantityError::Malformed(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Quantity> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (multiplier, exponent) = scale(suffix)?;
    let magnitude = magnitude(whole, fraction, multiplier, exponent);
    Some(Quantity { nano: if negative { -magnitude } else { magnitude } })
}

/// A suffix as a factor and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let binary = |step: u32| (1i128 << (10 * step), 0);
    Some(match suffix {
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "" => (1, 0),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => (1, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

/// Nano-units, rounded up and capped.
fn magnitude(whole: &str, fraction: &str, multiplier: i128, exponent: i32) -> i128 {
    let mut digits: i128 = 0;
    // Digits that cannot matter are only looked at for being other than zero: no overflow.
    let mut rest = false;
    let mut dropped: i32 = 0;
    for digit in whole.bytes().chain(fraction.bytes()).map(|b| i128::from(b - b'0')) {
        if digits < 10i128.pow(19) {
            digits = digits * 10 + digit;
        } else {
            dropped = dropped.saturating_add(1);
            rest |= digit != 0;
        }
    }
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let power = exponent.saturating_add(9).saturating_sub(places).saturating_add(dropped);
    // At most 10^20 × 2^60: an i128 holds it.
    let scaled = digits * multiplier;
    let round_up = |value: i128, more: bool| value + i128::from(more);
    if scaled == 0 {
        return 0;
    }
    let nano = if power >= 0 {
        let raised = 10i128.checked_pow(power.unsigned_abs()).and_then(|p| scaled.checked_mul(p));
        raised.unwrap_or(CAP).saturating_add(i128::from(rest))
    } else {
        match 10i128.checked_pow(power.unsigned_abs()) {
            Some(divisor) => round_up(scaled / divisor, scaled % divisor != 0 || rest),
            None => 1,
        }
    };
    nano.min(CAP)
}

impl<'de> Deserialize<'de> for Quantity {
    /// From a text, or from a bare number as hand-written manifests have it.
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Quantity, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(Box<str>),
            Whole(i64),
            Fraction(f64),
        }
        let text = match Written::deserialize(input)? {
            Written::Text(text) => text,
            Written::Whole(number) => number.to_string().into(),
            Written::Fraction(number) => number.to_string().into(),
        };
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
