//! How commands print.

use clap::ValueEnum;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table to read.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One line per run or row.
    Csv,
}

/// How lists are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// Lines to read.
    #[default]
    Table,
    /// A JSON array of objects.
    Json,
}
