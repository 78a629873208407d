//! The facts of a path before there is a subflow over it.

use crate::schedule::PathPolicy;

/// Facts of a path before there is a subflow over it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub policy: PathPolicy,
    /// Most payload bytes of a segment, where that may be less than the settings'.
    pub mss: Option<u32>,
    /// Payload bytes that subflows which are gone have sent.
    pub used: u64,
}
