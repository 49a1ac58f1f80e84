//! Just enough Rust to tell code from comments, text and tests.

/// The source with comments, string and character literals blanked. Lines stay where they are.
pub fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = token_to_blank(&chars, at);
        if end == at {
            code.push(chars[at]);
            at += 1;
            continue;
        }
        for &c in &chars[at..end] {
            code.push(if c == '\n' { '\n' } else { ' ' });
        }
        at = end;
    }
    code
}

/// The end of the comment or literal that begins at `at`; `at` if none does.
fn token_to_blank(chars: &[char], at: usize) -> usize {
    let next = |ahead: usize| chars.get(at + ahead).copied();
    match chars[at] {
        '/' if next(1) == Some('/') => {
            chars[at..].iter().position(|&c| c == '\n').map_or(chars.len(), |end| at + end)
        }
        '/' if next(1) == Some('*') => block_comment_end(chars, at),
        '"' => quoted_end(chars, at + 1),
        'r' if !follows_name(chars, at) => raw_string_end(chars, at).unwrap_or(at),
        '\'' => char_end(chars, at),
        _ => at,
    }
}

/// Whether the character before `at` belongs to a name that goes on at `at`. The `b` and `c` of
/// byte and C strings do not count.
fn follows_name(chars: &[char], at: usize) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let Some(before) = at.checked_sub(1) else { return false };
    let prefix = matches!(chars[before], 'b' | 'c')
        && before.checked_sub(1).is_none_or(|earlier| !is_name(chars[earlier]));
    is_name(chars[before]) && !prefix
}

fn block_comment_end(chars: &[char], from: usize) -> usize {
    let (mut at, mut depth) = (from, 0_u32);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

/// The end of a string whose text begins at `at`.
fn quoted_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn raw_string_end(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars[from + 1..].iter().take_while(|&&c| c == '#').count();
    let mut at = from + 1 + hashes;
    if chars.get(at) != Some(&'"') {
        return None;
    }
    at += 1;
    while at < chars.len() {
        let closing = chars[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count();
        if chars[at] == '"' && closing == hashes {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(chars.len())
}

/// The end of a character literal, or `at` for a lifetime.
fn char_end(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => {
            let close = chars[at + 3..].iter().position(|&c| c == '\'');
            close.map_or(chars.len(), |close| at + 3 + close + 1)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

/// A stretch of lines, from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// First line.
    pub first: usize,
    /// Last line.
    pub last: usize,
}

/// What `#[cfg(test)]` covers in a file of code without comments.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TestCode {
    /// Items in the file.
    pub inside: Vec<Lines>,
    /// Names of modules that have files of their own.
    pub modules: Vec<String>,
}

/// Finds what is compiled for tests only.
pub fn test_code(code: &str) -> TestCode {
    const MARK: &str = "#[cfg(test)]";
    let mut found = TestCode::default();
    for (at, _) in code.match_indices(MARK) {
        let item = &code[at + MARK.len()..];
        let end = item.find([';', '{']).unwrap_or(item.len());
        let first = line_of(code, at);
        let head = item[..end].trim();
        if item[end..].starts_with(';') {
            let module = head.rsplit_once("mod ").filter(|(before, _)| !before.contains('('));
            found.modules.extend(module.map(|(_, name)| name.trim().to_owned()));
            let last = line_of(code, at + MARK.len() + end);
            found.inside.push(Lines { first, last });
        } else {
            let close = block_end(code, at + MARK.len() + end);
            found.inside.push(Lines { first, last: line_of(code, close) });
        }
    }
    found
}

/// A function: its name and the lines from `fn` to its closing brace.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub lines: Lines,
}

/// Functions with a body, in code without comments and literals.
pub fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + 3..];
        let name: String =
            rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(end) = body_or_end(rest) else { continue };
        if name.is_empty() || rest[end..].starts_with(';') {
            continue;
        }
        let close = block_end(code, at + 3 + end);
        let lines = Lines { first: line_of(code, at), last: line_of(code, close) };
        found.push(Function { name, lines });
    }
    found
}

/// Where a function's signature ends: at its body or its semicolon, not at one in an array type.
fn body_or_end(rest: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in rest.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' | ';' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// The position of the brace that closes the block opened at `open`.
fn block_end(code: &str, open: usize) -> usize {
    let mut depth = 0_u32;
    for (at, c) in code[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return open + at;
                }
            }
            _ => {}
        }
    }
    code.len()
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let source = "a /* x /* y */ z */ b // c\n\"d \\\" e\" f 'g' h<'i> r#\"j \" k\"# l '\\'' m";
        let code = code_only(source);
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words, ["a", "b", "f", "h<'i>", "l", "m"]);
        assert_eq!(code.matches('\n').count(), 1);
    }

    #[test]
    fn a_name_that_ends_in_r_opens_no_raw_string() {
        let code = code_only("let var = br\"x\"; for \"y\" z");
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words, ["let", "var", "=", "b", ";", "for", "z"]);
    }

    #[test]
    fn test_modules_are_found_inside_and_out() {
        let code =
            "fn a() {}\n#[cfg(test)]\nmod sample;\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n";
        let found = test_code(code);
        assert_eq!(found.modules, ["sample"]);
        let inside = [Lines { first: 2, last: 3 }, Lines { first: 4, last: 7 }];
        assert_eq!(found.inside, inside);
    }

    #[test]
    fn functions_span_from_their_name_to_their_closing_brace() {
        let code = "trait T { fn a(&self); }\nfn b(x: [u8; 2]) {\n if x {\n }\n}\ntype F = fn(u8);";
        let found = functions(code);
        let b = Function { name: "b".to_owned(), lines: Lines { first: 2, last: 5 } };
        assert_eq!(found, [b]);
    }
}
