//! The words of a line, with their columns.

use super::error::Fault;

/// One word and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    /// In characters, from 1.
    pub(crate) column: usize,
    pub(crate) text: &'a str,
}

impl Word<'_> {
    /// Says what is wrong with this word.
    pub(crate) fn wrong(&self, why: &str, remedy: impl Into<String>) -> Fault {
        Fault::script(self.column, format!("`{}` {why}", self.text), remedy)
    }
}

/// One `key=value`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) key: Word<'a>,
    pub(crate) value: Word<'a>,
}

/// What is left of a line.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    words: Vec<Word<'a>>,
    next: usize,
    end: usize,
}

impl<'a> Words<'a> {
    /// The words of a line up to a `#`.
    pub(crate) fn new(line: &'a str) -> Words<'a> {
        let code = line.split('#').next().unwrap_or_default();
        let mut words = Vec::new();
        let mut begin: Option<(usize, usize)> = None;
        let mut column = 0;
        for (byte, letter) in code.char_indices() {
            column += 1;
            match (letter.is_whitespace(), begin) {
                (false, None) => begin = Some((byte, column)),
                (true, Some((from, at))) => {
                    words.push(Word { column: at, text: &code[from..byte] });
                    begin = None;
                }
                _ => {}
            }
        }
        if let Some((from, at)) = begin {
            words.push(Word { column: at, text: &code[from..] });
        }
        Words { words, next: 0, end: column + 1 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    pub(crate) fn take(&mut self) -> Option<Word<'a>> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// The next word, which must be there.
    pub(crate) fn need(&mut self, what: &str, usage: &str) -> Result<Word<'a>, Fault> {
        let end = self.end;
        let missing = || Fault::script(end, format!("{what} is missing"), advice(usage));
        self.take().ok_or_else(missing)
    }

    /// The next word, if it is this one.
    pub(crate) fn take_if(&mut self, text: &str) -> bool {
        let there = self.peek().is_some_and(|word| word.text == text);
        self.next += usize::from(there);
        there
    }

    /// All that is left, as settings with the allowed keys, each at most once.
    pub(crate) fn settings(&mut self, keys: &[&str]) -> Result<Vec<Setting<'a>>, Fault> {
        let mut settings: Vec<Setting<'a>> = Vec::new();
        while let Some(word) = self.take() {
            let known = || format!("use one of {}", keys.join(", "));
            let Some((key, value)) = word.text.split_once('=') else {
                return Err(word.wrong("is not key=value", known()));
            };
            let value_at = word.column + key.chars().count() + 1;
            let key = Word { column: word.column, text: key };
            if !keys.contains(&key.text) {
                return Err(key.wrong("is not known here", known()));
            }
            if settings.iter().any(|setting| setting.key.text == key.text) {
                return Err(key.wrong("is given twice", "give it once"));
            }
            settings.push(Setting { key, value: Word { column: value_at, text: value } });
        }
        Ok(settings)
    }

    /// Refuses what is left.
    pub(crate) fn done(&mut self, usage: &str) -> Result<(), Fault> {
        self.take().map_or(Ok(()), |word| Err(word.wrong("is too much", advice(usage))))
    }
}

fn advice(usage: &str) -> String {
    format!("write `{usage}`")
}
