//! Tables for terminals.

mod fields;
mod groups;
mod parity;
mod plain;
mod prediction;
mod preflight;
mod results;
mod sweep;

pub use parity::{parity_markdown, parity_text};
pub use plain::{plain_table, print_table, seconds};
pub use prediction::prediction_table;
pub use preflight::preflight_table;
pub use results::{COLUMNS, auto_notes, results_table};
