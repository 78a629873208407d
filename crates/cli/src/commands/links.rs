//! Parts that the commands for real links share.

use crate::failure::{Failure, Salvage};
use anabranch_link::{LinkError, Unmet};

/// The code of their diagnostics.
pub const CODE: &str = "anabranch::link";

/// A signal came before the first run.
pub fn interrupted() -> Failure {
    Failure::interrupted("interrupted before the first run", Salvage::Nothing)
}

/// A file that others may read, or a malformed one, is unusable input.
pub fn failed(error: LinkError) -> Failure {
    let (what, help) = (error.to_string(), error.help());
    match error {
        LinkError::Unmet(Unmet::Interrupted) => interrupted(),
        LinkError::System { .. } | LinkError::Unmet(_) => Failure::missing(CODE, what, help),
        _ => Failure::unusable(CODE, what, help),
    }
}
