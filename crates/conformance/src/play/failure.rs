//! Why a script failed, for its author.

use std::fmt;

/// A script that was not followed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The script's file.
    pub file: String,
    /// The line that was not followed.
    pub line: usize,
    /// That line.
    pub expected: String,
    /// The packet or state that came instead, in the script's notation.
    pub came: String,
    /// The differences.
    pub differences: Vec<String>,
    /// The exchange so far, one line each.
    pub log: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}", self.file, self.line)?;
        writeln!(f, "  expected  {}", self.expected)?;
        writeln!(f, "  came      {}", self.came)?;
        self.differences.iter().try_for_each(|difference| writeln!(f, "            {difference}"))?;
        writeln!(f, "  so far")?;
        self.log.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

impl std::error::Error for Failure {}
