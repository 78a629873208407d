#![doc = include_str!("../README.md")]

mod handshake;
mod mappings;
mod observer;
mod observers;
mod received;
mod receiving;
mod sent;
mod stream;
mod subflow;

pub use observer::{Observer, Unfollowed};
pub use observers::{Number, Observers};

/// Most separate pieces, and mappings, held for one direction of a subflow: every second one of a window of 2 GiB in segments of
/// 1000 bytes.
const MAX_PIECES: usize = 1 << 20;
