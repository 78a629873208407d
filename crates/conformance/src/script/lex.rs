//! A line as tokens, and a cursor over them that knows their columns.

use super::error::{ScriptError, nearest};

/// A word or a punctuation mark, with its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub text: String,
    pub column: usize,
    /// The token was quoted.
    pub quoted: bool,
}

const MARKS: &str = "<>,[]():";

/// The tokens of a line without its comment, and whether a closing quotation mark is missing.
pub(super) fn tokens(line: &str) -> (Vec<Token>, bool) {
    let mut found: Vec<Token> = Vec::new();
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let column = at + 1;
        if c == '#' {
            break;
        }
        if c.is_whitespace() {
            continue;
        }
        if c == '"' {
            let text: String = chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '"').collect();
            let closed = line[at + 1..].contains('"');
            found.push(Token { text, column, quoted: true });
            if !closed {
                return (found, true);
            }
            continue;
        }
        let mut text = String::from(c);
        if !MARKS.contains(c) {
            while let Some((_, c)) =
                chars.next_if(|(_, c)| !c.is_whitespace() && !MARKS.contains(*c) && *c != '"' && *c != '#')
            {
                text.push(c);
            }
        }
        found.push(Token { text, column, quoted: false });
    }
    (found, false)
}

/// Reads the tokens of one line in order.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub file: &'a str,
    pub line: usize,
    pub tokens: &'a [Token],
    pub at: usize,
    /// The column after the line's last character.
    pub end: usize,
}

pub(super) type Result<T> = core::result::Result<T, ScriptError>;

impl<'a> Cursor<'a> {
    pub fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|token| token.text.as_str())
    }

    pub fn peek_after(&self, n: usize) -> Option<&'a str> {
        self.tokens.get(self.at + n).map(|token| token.text.as_str())
    }

    pub fn is_quoted(&self) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.quoted)
    }

    /// The next word.
    pub fn word(&mut self, what: &str) -> Result<&'a str> {
        match self.tokens.get(self.at) {
            Some(token) => {
                self.at += 1;
                Ok(&token.text)
            }
            None => Err(self.error(format!("{what} is missing"))),
        }
    }

    /// Takes `word` if it is the next one.
    pub fn take(&mut self, word: &str) -> bool {
        let is = self.peek() == Some(word) && !self.is_quoted();
        self.at += usize::from(is);
        is
    }

    pub fn expect(&mut self, word: &str) -> Result<()> {
        if self.take(word) { Ok(()) } else { Err(self.error(format!("`{word}` should stand here"))) }
    }

    /// Requires the end of the line.
    pub fn finish(&self) -> Result<()> {
        if self.at == self.tokens.len() { Ok(()) } else { Err(self.error("nothing should follow here")) }
    }

    /// A number, decimal or with `0x`, at most `most`.
    pub fn number(&mut self, what: &str, most: u64) -> Result<u64> {
        let text = self.word(what)?;
        let parsed = parse_number(text).filter(|n| *n <= most);
        parsed.ok_or_else(|| self.before(format!("{what} should be a number of at most {most}")))
    }

    /// An error at the next word.
    pub fn error(&self, message: impl Into<String>) -> ScriptError {
        self.error_at(self.at, message.into(), &[])
    }

    /// An error at the token just read.
    pub fn before(&self, message: impl Into<String>) -> ScriptError {
        self.error_at(self.at - 1, message.into(), &[])
    }

    /// An error: the token just read is none of `words`.
    pub fn unknown(&self, what: &str, words: &[&str]) -> ScriptError {
        let message = format!("not a {what}; there are {}", words.join(", "));
        self.error_at(self.at - 1, message, words)
    }

    fn error_at(&self, at: usize, message: String, words: &[&str]) -> ScriptError {
        let token = self.tokens.get(at);
        ScriptError {
            file: self.file.to_owned(),
            line: self.line,
            column: token.map_or(self.end, |token| token.column),
            token: token.map_or_else(String::new, |token| token.text.clone()),
            message,
            nearest: token.and_then(|token| nearest(&token.text, words)),
        }
    }
}

/// A number, decimal or with `0x`.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
