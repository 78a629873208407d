//! How much of a buffer counts where its memory does: what a kernel's bookkeeping leaves of it.

use crate::settings::{BufferAccounting, Settings};

/// Headers in front of a segment's payload in its buffer: Ethernet, IPv4, TCP with timestamps, and Linux's `NET_SKB_PAD`.
const HEADERS: u64 = 14 + 20 + 32 + 64;
/// Linux 3.x, 64 bits: `skb_shared_info` behind the payload, and the `sk_buff` itself.
const SHARED_INFO: u64 = 320;
const SK_BUFF: u64 = 256;

/// Memory of a packet with `payload` bytes that Linux 6.18 reads from a TUN device: its bytes with head and tail room,
/// rounded up to a power of two, and its descriptor.
pub const fn packet_memory(payload: u64) -> u64 {
    let bytes = (payload + 80 + 384).next_power_of_two();
    if bytes > 1024 { bytes + 256 } else { 1024 + 256 }
}

/// Memory that segments take in a kernel that counts whole buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truesize {
    mss: u64,
    segment: u64,
}

impl Truesize {
    /// For segments of `mss` bytes, each in a buffer of its own: 2304 bytes for 1448.
    pub fn of(mss: u32) -> Self {
        let mss = u64::from(mss).max(1);
        Self { mss, segment: (mss + HEADERS + SHARED_INFO).next_power_of_two() + SK_BUFF }
    }

    /// Memory of `payload` bytes.
    pub fn memory(&self, payload: u64) -> u64 {
        payload.div_ceil(self.mss).saturating_mul(self.segment)
    }

    /// Payload whose memory is `memory` bytes.
    pub fn payload(&self, memory: u64) -> u64 {
        memory / self.segment * self.mss
    }
}

/// How `settings` count; `None` = payload alone.
pub(crate) fn truesize(settings: &Settings) -> Option<Truesize> {
    (settings.tcp.buffer_accounting == BufferAccounting::Truesize).then(|| Truesize::of(settings.mss))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_takes_a_power_of_two_and_its_descriptor() {
        assert_eq!((Truesize::of(1448).segment, Truesize::of(536).segment), (2304, 1024 + 256));
    }
}
