//! Files with a place for a table, between two marks.

use crate::failure::Failure;
use crate::output::write;
use std::fs;
use std::path::Path;

/// A file whose text between `<!-- NAME -->` and `<!-- /NAME -->` is written by a command.
#[derive(Debug)]
pub struct Marked<'a> {
    file: &'a Path,
    /// Up to the first mark and with it.
    before: String,
    /// From the second mark on.
    after: String,
}

impl<'a> Marked<'a> {
    /// Reads `file`: to be done before the work, so that a file without a place is told at once.
    pub fn read(file: &'a Path, name: &str) -> Result<Self, Failure> {
        let unusable = |message, help| Failure::unusable("anabranch::cli::unreadable", message, help);
        let text = fs::read_to_string(file)
            .map_err(|error| unusable(format!("cannot read {}: {error}", file.display()), None))?;
        let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
        let around = text.split_once(&open).and_then(|(before, rest)| Some((before, rest.split_once(&close)?.1)));
        let Some((before, after)) = around else {
            let help = format!("it needs a line `{open}` and a later line `{close}`");
            return Err(unusable(format!("{} has no place for the table", file.display()), Some(help)));
        };
        Ok(Self { file, before: format!("{before}{open}"), after: format!("{close}{after}") })
    }

    /// Puts `table` between the marks.
    pub fn write(&self, table: &str) -> Result<(), Failure> {
        write(self.file, format!("{}\n{table}{}", self.before, self.after))
    }
}
