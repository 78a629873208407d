//! An error in a script, and its place.

use std::fmt;

/// A token of a script that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The script's file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column where the token begins, counted from 1.
    pub column: usize,
    /// The token; empty at the end of the line.
    pub token: String,
    /// The error.
    pub message: String,
    /// The nearest valid word.
    pub nearest: Option<String>,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, token, message, nearest } = self;
        let token = if token.is_empty() { "the end of the line" } else { &format!("`{token}`") };
        write!(f, "{file}:{line}:{column}: {token}: {message}")?;
        nearest.iter().try_for_each(|word| write!(f, "; did you mean `{word}`?"))
    }
}

impl std::error::Error for ScriptError {}

/// The nearest of `words`, if one is near enough.
pub fn nearest(token: &str, words: &[&str]) -> Option<String> {
    let score = |word: &&str| strsim::jaro_winkler(&token.to_lowercase(), &word.to_lowercase());
    let best = words.iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(best) > 0.65).then(|| (*best).to_owned())
}
