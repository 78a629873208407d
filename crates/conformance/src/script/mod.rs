//! The language: a script's text → values. `tests/conformance/README.md` describes it.

mod error;
mod field;
mod header;
mod lex;
mod option;
mod packet;
mod pattern;
mod step;
mod value;

pub use error::ScriptError;
pub(crate) use packet::ECN;
pub use pattern::*;
pub use value::*;

use lex::{Cursor, tokens};

/// The first words of header lines.
const WORDS_OF_HEADERS: [&str; 6] = ["clause", "kernel", "engine", "set", "path", "join"];

impl Script {
    /// Reads a script. `file` names it in errors.
    ///
    /// # Errors
    /// A token that cannot be read, with its place.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScriptError> {
        let mut script = header::Header::new(file);
        let mut steps = Vec::new();
        for (index, source) in text.lines().enumerate() {
            let line = index + 1;
            let (tokens, open) = tokens(source);
            let end = source.len() + 1;
            let mut cursor = Cursor { file, line, tokens: &tokens, at: 0, end };
            if open {
                cursor.at = tokens.len();
                return Err(cursor.error("a quotation mark is missing"));
            }
            let Some(first) = cursor.peek() else {
                script.comment(source);
                continue;
            };
            if first.starts_with('+') {
                step::read(&mut cursor, source, &mut steps)?;
            } else if steps.is_empty() {
                script.read(&mut cursor, source)?;
            } else {
                cursor.at += 1;
                let known = WORDS_OF_HEADERS.contains(&first);
                return Err(if known {
                    cursor.before("stands before the first step only")
                } else {
                    cursor.before("a step begins with its time, such as `+0`")
                });
            }
        }
        script.finish(steps)
    }
}

#[cfg(test)]
mod tests;
