//! Reconstructs, from the packets of one connection at one host, the events that an engine would have recorded there:
//! metrics mean the same for a host without a recorder, such as a Linux kernel.
//!
//! Packets do not show everything. Missing or different are:
//! - No `Window`, `Recovery`, `Lost`, `Timeout`, `TailLossProbe`, `Undo`, `IdleRestart`, `Penalised`, `WindowBlocked`,
//!   `Stall`, `SchedulerValue`, `Closed`, and no event of the application (`Written`, `Delivered`, `WriteEnd`).
//! - `DataSent` on a second subflow is always [`Rescue`](anabranch_trace::SendKind::Rescue): an opportunistic
//!   retransmission, a redundant copy and a rescue look alike. The copy that leaves first counts as the original.
//! - A path is never `Failing`, is `Closed` as soon as both FINs are acknowledged (and not after TIME-WAIT), and is
//!   `Dead` only when a reset is seen: a subflow that the host gives up silently stays open here.
//! - Checksums of mappings are not verified: payload that the host refuses for its checksum counts as arrived, and
//!   there is no violation of that kind, nor of MP_FASTCLOSE's key and ADD_ADDR's HMAC, which change nothing here.
//! - A fallback after MP_FAIL is recorded when the host shows it: with its own MP_FAIL or infinite mapping.

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
