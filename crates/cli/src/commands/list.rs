//! `anabranch list`

use crate::args::{ListArguments, ListFormat};
use anabranch_workbench::failure::Failure;

/// The list as a table or as JSON.
pub fn list(arguments: &ListArguments) -> Result<String, Failure> {
    match arguments.format {
        ListFormat::Json => arguments.what.json(),
        ListFormat::Table => arguments.what.table(),
    }
}
