//! A CSV table with a header, as records of named fields with their place in the file.

use crate::error::{Problem, Problems, TraceError, quote};
use crate::number::{BadNumber, parse_scaled, parse_whole};
use crate::source::{Lines, not_utf8};
use std::borrow::Cow;

/// A table being read row by row.
pub struct Table {
    lines: Lines,
    header: Vec<String>,
}

/// One row. Fields are trimmed of blanks and unquoted.
pub struct Row<'a> {
    /// Line in the file, from 1.
    pub line: u64,
    header: &'a [String],
    fields: Vec<Cow<'a, str>>,
}

/// The position of a column in this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column(usize);

impl Column {
    /// The position, from 0.
    pub fn index(self) -> usize {
        self.0
    }
}

impl Table {
    /// Reads the header of `lines`.
    pub fn new(mut lines: Lines) -> Result<Table, TraceError> {
        let file = lines.file().to_owned();
        let Some(bytes) = lines.next_line()? else {
            let problem = Problem::at(
                1,
                "the file is empty",
                "give a CSV file whose first line names the columns",
            );
            return Err(
                Problems::of(&file).fatal(Problem { column: Some((1, String::new())), ..problem })
            );
        };
        let names = text_of(bytes).and_then(split);
        let header = match names {
            Ok(fields) => fields.iter().map(|f| f.to_ascii_lowercase()).collect(),
            Err((problem, at)) => {
                return Err(Problems::of(&file).fatal(at_line(problem, lines.line(), &[], at)));
            }
        };
        Ok(Table { lines, header })
    }

    /// The file as it was named.
    pub fn file(&self) -> &str {
        self.lines.file()
    }

    /// True if the last row has no line break: the file may have lost its end.
    pub fn cut_short(&self) -> bool {
        self.lines.cut_short()
    }

    /// Names of the columns, in lower case.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// The column of this name. A name that occurs twice is a problem.
    pub fn column(&self, name: &str, problems: &mut Problems) -> Option<Column> {
        let mut found = self.header.iter().enumerate().filter(|(_, n)| *n == name);
        let (first, _) = found.next()?;
        if let Some((second, _)) = found.next() {
            let what = format!("column {} has this name too", first + 1);
            problems.push(
                Problem::at(1, what, "rename or remove one of the two").in_column(second, name),
            );
        }
        Some(Column(first))
    }

    /// The columns of these names, all of which must be there.
    ///
    /// # Errors
    /// If the header lacks any; all that it lacks are named, after the problems that were found
    /// before. `remedy` says what file to give.
    pub fn columns<const N: usize>(
        &self,
        names: [&str; N],
        remedy: &str,
        problems: &mut Problems,
    ) -> Result<[Column; N], TraceError> {
        let found = names.map(|name| self.column(name, problems));
        let absent = names.iter().zip(&found).filter(|(_, column)| column.is_none());
        let absent: Vec<&str> = absent.map(|(name, _)| *name).collect();
        if absent.is_empty() {
            return Ok(found.map(|column| column.expect("none is absent")));
        }
        let what = format!("the header lacks {}", absent.join(" and "));
        let before = std::mem::replace(problems, Problems::of(self.file()));
        Err(before.fatal(Problem::at(1, what, remedy)))
    }

    /// The next row whose shape is right; rows of another shape become problems.
    pub fn next_row(&mut self, problems: &mut Problems) -> Result<Option<Row<'_>>, TraceError> {
        // Two passes over each line's bytes: the first decides whether the row can be given, so
        // that the second may lend it out of the loop.
        loop {
            let Some(bytes) = self.lines.next_line()? else { return Ok(None) };
            let fields = text_of(bytes).and_then(split).map(|f| f.len());
            let line = self.lines.line();
            match fields {
                Ok(n) if n == self.header.len() => break,
                Ok(n) => problems.push(Problem::at(
                    line,
                    format!("{n} fields where the header has {}", self.header.len()),
                    "put fields that hold a comma in double quotes, or complete the row",
                )),
                Err((problem, at)) => problems.push(at_line(problem, line, &self.header, at)),
            }
        }
        let line = self.lines.line();
        let text = std::str::from_utf8(self.lines.current()).expect("checked just above");
        let Ok(fields) = split(text) else { unreachable!("split just above") };
        Ok(Some(Row { line, header: &self.header, fields }))
    }
}

impl Row<'_> {
    /// The text of a field.
    pub fn text(&self, column: Column) -> &str {
        &self.fields[column.0]
    }

    /// A problem with a field's value.
    pub fn problem(&self, column: Column, why: &str, remedy: &str) -> Problem {
        let what = format!("{} {why}", quote(self.text(column)));
        self.problem_with(column, what, remedy)
    }

    /// A problem with a field, in words that do not begin with its value.
    pub fn problem_with(&self, column: Column, what: String, remedy: &str) -> Problem {
        Problem::at(self.line, what, remedy).in_column(column.0, &self.header[column.0])
    }

    /// A name, which must not be empty.
    pub fn name(&self, column: Column, remedy: &str) -> Result<&str, Problem> {
        match self.optional_name(column)? {
            Some(name) => Ok(name),
            None => Err(self.problem(column, "is empty", remedy)),
        }
    }

    /// A name, or `None` if the field is empty.
    pub fn optional_name(&self, column: Column) -> Result<Option<&str>, Problem> {
        let text = self.text(column);
        if text.contains(char::is_control) {
            let remedy = "remove it: names are shown in tables and written to files";
            return Err(self.problem(column, "holds a control character", remedy));
        }
        Ok(Some(text).filter(|name| !name.is_empty()))
    }

    /// A whole number of at most `most`.
    pub fn whole(&self, column: Column, most: u64, remedy: &str) -> Result<u64, Problem> {
        let value = parse_whole(self.text(column));
        let value = value.and_then(|v| if v > most { Err(BadNumber::TooLarge) } else { Ok(v) });
        value.map_err(|bad| self.bad_number(column, bad, most, remedy))
    }

    /// A decimal number times ten to the `scale`, of at most `most` after scaling.
    pub fn scaled(
        &self,
        column: Column,
        scale: u32,
        most: u64,
        remedy: &str,
    ) -> Result<u64, Problem> {
        let value = parse_scaled(self.text(column), scale);
        let value = value.and_then(|v| if v > most { Err(BadNumber::TooLarge) } else { Ok(v) });
        let shown = most / 10_u64.pow(scale);
        value.map_err(|bad| self.bad_number(column, bad, shown, remedy))
    }

    fn bad_number(&self, column: Column, bad: BadNumber, most: u64, remedy: &str) -> Problem {
        match bad {
            BadNumber::TooLarge => {
                self.problem(column, &format!("is above the limit of {most}"), remedy)
            }
            BadNumber::Negative => self.problem(column, bad.why(), "correct or remove the row"),
            _ => self.problem(column, bad.why(), remedy),
        }
    }
}

/// A fault inside a line, before its place in the file is known.
enum Fault {
    Encoding,
    OpenQuote,
    AfterQuote,
}

/// `bytes` as text, or the fault and its position.
fn text_of(bytes: &[u8]) -> Result<&str, (Fault, usize)> {
    std::str::from_utf8(bytes).map_err(|e| {
        let before = &bytes[..e.valid_up_to()];
        (Fault::Encoding, before.iter().filter(|&&b| b == b',').count())
    })
}

fn at_line(fault: Fault, line: u64, header: &[String], column: usize) -> Problem {
    let name = header.get(column).map_or("", String::as_str);
    let problem = match fault {
        Fault::Encoding => not_utf8(line),
        Fault::OpenQuote => Problem::at(
            line,
            "a double quote is opened and not closed on this line",
            "close it; a field cannot hold a line break",
        ),
        Fault::AfterQuote => Problem::at(
            line,
            "text follows a closing double quote",
            "write a double quote inside a quoted field twice",
        ),
    };
    problem.in_column(column, name)
}

/// The fields of a line: separated by commas; a field in double quotes may hold commas, and
/// doubled double quotes.
fn split(line: &str) -> Result<Vec<Cow<'_, str>>, (Fault, usize)> {
    if !line.contains('"') {
        return Ok(line.split(',').map(|f| Cow::Borrowed(f.trim_ascii())).collect());
    }
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let field = rest.trim_ascii_start();
        let after = if let Some(quoted) = field.strip_prefix('"') {
            let (value, after) = unquote(quoted).ok_or((Fault::OpenQuote, fields.len()))?;
            fields.push(Cow::Owned(value));
            let after = after.trim_ascii_start();
            if !after.is_empty() && !after.starts_with(',') {
                return Err((Fault::AfterQuote, fields.len() - 1));
            }
            after
        } else {
            let end = field.find(',').unwrap_or(field.len());
            fields.push(Cow::Borrowed(field[..end].trim_ascii()));
            &field[end..]
        };
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(fields),
        }
    }
}

/// The value of a quoted field whose opening quote is already taken, and what follows it; `None`
/// if it is not closed.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"')?;
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(next) => {
                value.push('"');
                rest = next;
            }
            None => return Some((value, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> Option<Vec<String>> {
        split(line).ok().map(|f| f.into_iter().map(Cow::into_owned).collect())
    }

    #[test]
    fn quoted_fields_may_hold_commas_and_doubled_quotes() {
        assert_eq!(fields(r#"a, "b,""c""" ,,d"#).unwrap(), ["a", "b,\"c\"", "", "d"]);
        assert_eq!(fields("a,").unwrap(), ["a", ""]);
        assert_eq!(fields(r#""open,b"#), None);
        assert_eq!(fields(r#""a"b,c"#), None);
    }
}
