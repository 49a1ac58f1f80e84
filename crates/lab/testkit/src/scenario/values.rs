//! Values in scripts: times, counts, and words from a list.

use super::error::Fault;
use super::words::Word;
use deepshare_model::{Class, Layout, Outcome, Retention, Span, Time};

impl Word<'_> {
    /// `40s`, `1.5s`, `50ms`, `2m`, `1h`.
    pub(crate) fn span(&self) -> Result<Span, Fault> {
        let remedy = "write a time such as 40s, 1.5s, 50ms, 2m or 1h";
        parse_span(self.text).ok_or_else(|| self.wrong("is not a time", remedy))
    }

    pub(crate) fn time(&self) -> Result<Time, Fault> {
        Ok(Time(self.span()?.0))
    }

    /// True if the word could only be meant as a time.
    pub(crate) fn looks_like_time(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }

    /// A whole number within `least..=most`.
    pub(crate) fn count(&self, least: u32, most: u32) -> Result<u32, Fault> {
        let number = self.text.parse().ok().filter(|n| (least..=most).contains(n));
        let remedy = || format!("write a whole number from {least} to {most}");
        number.ok_or_else(|| self.wrong("is not a number that fits here", remedy()))
    }

    /// Cores, to the thousandth.
    pub(crate) fn milli(&self) -> Result<u64, Fault> {
        let cores = self.text.parse::<f64>().ok().filter(|n| (0.0..1e9).contains(n));
        let milli = cores.map(|cores| (cores * 1_000.0).round() as u64);
        milli.ok_or_else(|| self.wrong("is not a number of cores", "write cores such as 4 or 0.5"))
    }

    /// A number such as 2 or 0.5, in thousandths.
    pub(crate) fn thousandths(&self) -> Result<u32, Fault> {
        let number = self.text.parse::<f64>().ok().filter(|n| (0.0..=1_000.0).contains(n));
        let milli = number.map(|number| (number * 1_000.0).round() as u32);
        milli.ok_or_else(|| self.wrong("is not a number from 0 to 1000", "write 2 or 0.5"))
    }

    /// A share of its solo speed, above 0 and at most 1.
    pub(crate) fn retention(&self) -> Result<Retention, Fault> {
        let number = self.text.parse::<f64>().ok().filter(|n| (1e-6..=1.0).contains(n));
        let remedy = "write a number above 0 and up to 1, such as 0.95";
        number.map(Retention::from_ratio).ok_or_else(|| self.wrong("is no share", remedy))
    }

    /// The entry of this name.
    pub(crate) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Fault> {
        let found = choices.iter().find(|(name, _)| *name == self.text).map(|&(_, value)| value);
        let remedy = || {
            let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
            format!("use one of {}", names.join(", "))
        };
        found.ok_or_else(|| self.wrong("is not known here", remedy()))
    }

    pub(crate) fn class(&self) -> Result<Class, Fault> {
        self.one_of(&[Class::Guaranteed, Class::BestEffort].map(|class| (class.name(), class)))
    }

    pub(crate) fn outcome(&self) -> Result<Outcome, Fault> {
        self.one_of(&Outcome::ALL.map(|outcome| (outcome.name(), outcome)))
    }

    pub(crate) fn yes(&self) -> Result<bool, Fault> {
        self.one_of(&[("yes", true), ("no", false)])
    }

    /// `2x4`: two members of four GPUs.
    pub(crate) fn members(&self) -> Result<(u32, Layout), Fault> {
        let parts = self.text.split_once('x');
        let number = |text: &str| text.parse().ok().filter(|n| (1..=4_096).contains(n));
        let parsed: Option<(u32, u32)> =
            parts.and_then(|(members, each)| Some((number(members)?, number(each)?)));
        let remedy = "write members x GPUs of each, such as 2x4";
        let (members, each) = parsed.ok_or_else(|| self.wrong("is not a gang", remedy))?;
        Ok((members * each, Layout::Members(each)))
    }
}

fn parse_span(text: &str) -> Option<Span> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let micros = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        "h" => 3_600e6,
        _ => return None,
    };
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = number.parse().ok().filter(|_| plain)?;
    Span::from_secs_f64(number * micros / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_unit_and_nothing_but_digits() {
        assert_eq!(parse_span("50ms"), Some(Span(50_000)));
        assert_eq!(parse_span("1.5s"), Some(Span(1_500_000)));
        assert_eq!(parse_span("2m"), Some(Span::from_secs(120)));
        assert_eq!(parse_span("1h"), Some(Span::from_secs(3_600)));
        for wrong in ["", "40", "s", "-1s", "1e3s", "1.2.3s", "40sec", "NaNs"] {
            assert_eq!(parse_span(wrong), None, "{wrong}");
        }
    }
}
