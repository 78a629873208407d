//! From the packets of one connection, as they pass one host's border, back to the events that an engine would have
//! recorded there: metrics mean the same for a host whose inside nobody sees, such as a Linux kernel.
//!
//! What packets do not show is not told, or told otherwise:
//! - No `Window`, `Recovery`, `Lost`, `Timeout`, `TailLossProbe`, `Undo`, `IdleRestart`, `Penalised`, `WindowBlocked`,
//!   `Stall`, `SchedulerValue`, `Closed`, and nothing of the application (`Written`, `Delivered`, `WriteEnd`).
//! - `DataSent` on another subflow than before is always [`Rescue`](anabranch_trace::SendKind::Rescue): an opportunistic
//!   retransmission, a redundant copy and a rescue look alike. The first to leave is the first, even if it was meant as
//!   the copy.
//! - A path is never `Failing`, is `Closed` as soon as both FINs are acknowledged (and not after TIME-WAIT), and is `Dead`
//!   only when a reset is seen: a host that gives a subflow up without a word leaves it open here.
//! - Checksums of mappings are not verified: payload that the host refuses for one counts as arrived, and there is no
//!   violation of that kind, nor of MP_FASTCLOSE's key and ADD_ADDR's HMAC, which change nothing here.
//! - A fall back after MP_FAIL is told when the host shows it: with its own MP_FAIL or infinite mapping.

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
