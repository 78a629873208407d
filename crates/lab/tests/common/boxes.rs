//! Middleboxes for tests: they change raw IP packets as a box on the path does.

use anabranch_lab::{InOut, Middlebox};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// RFC 9293 §3.1: kinds of options; 30 is Multipath TCP (RFC 8684 §3).
const END: u8 = 0;
const NOP: u8 = 1;
const MPTCP: u8 = 30;

pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// A parsed TCP packet: where its header and payload begin.
pub struct Tcp<'a> {
    bytes: &'a mut [u8],
    at: usize,
    payload: usize,
}

impl<'a> Tcp<'a> {
    /// `None` if it is not TCP.
    pub fn of(bytes: &'a mut [u8]) -> Option<Self> {
        let (at, protocol) = match bytes.first()? >> 4 {
            4 => (usize::from(bytes[0] & 15) * 4, *bytes.get(9)?),
            _ => (40, *bytes.get(6)?),
        };
        if protocol != 6 {
            return None;
        }
        let payload = at + usize::from(bytes.get(at + 12)? >> 4) * 4;
        (payload <= bytes.len()).then_some(Self { bytes, at, payload })
    }

    pub fn flags(&self) -> u8 {
        self.bytes[self.at + 13]
    }

    pub fn has_payload(&self) -> bool {
        self.payload < self.bytes.len()
    }

    /// Replaces every MPTCP option by NOPs. True if there was one.
    pub fn strip_mptcp(&mut self) -> bool {
        let (mut at, mut found) = (self.at + 20, false);
        while at < self.payload && self.bytes[at] != END {
            if self.bytes[at] == NOP {
                at += 1;
                continue;
            }
            let end = (at + usize::from(self.bytes[at + 1]).max(2)).min(self.payload);
            if self.bytes[at] == MPTCP {
                self.bytes[at..end].fill(NOP);
                found = true;
            }
            at = end;
        }
        if found {
            self.sum();
        }
        found
    }

    /// Changes a byte in the middle of the payload, and corrects TCP's own checksum.
    pub fn change_payload(&mut self) {
        let middle = (self.payload + self.bytes.len()) / 2;
        self.bytes[middle] ^= 0x20;
        self.sum();
    }

    /// RFC 9293 §3.1: the checksum over pseudo header, header and payload.
    fn sum(&mut self) {
        let field = self.at + 16;
        self.bytes[field..field + 2].fill(0);
        let addresses = if self.bytes[0] >> 4 == 4 { 12..20 } else { 8..40 };
        let words = |part: &[u8]| -> u64 {
            part.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0))).sum()
        };
        let len = (self.bytes.len() - self.at) as u64;
        let mut sum = words(&self.bytes[addresses]) + words(&self.bytes[self.at..]) + len + 6;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        self.bytes[field..field + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

/// Lets `change` rewrite TCP packets; anything else passes.
pub fn rewriting(mut change: impl FnMut(InOut, usize, &mut Tcp<'_>) + Send + 'static) -> Middlebox {
    Middlebox::new(move |way, path, packet| {
        let mut copy = packet.to_vec();
        let mut tcp = Tcp::of(&mut copy)?;
        change(way, path, &mut tcp);
        Some(Bytes::from(copy))
    })
}

/// A switch that a test operates while the world runs, with a count of its actions.
#[derive(Clone, Debug, Default)]
pub struct Switch {
    on: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
}

impl Switch {
    pub fn set(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn note(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// While the switch is on, nothing passes on `path`.
pub fn cutting(path: usize, cut: &Switch) -> Middlebox {
    let cut = cut.clone();
    Middlebox::new(move |_, at, packet| {
        if at == path && cut.is_on() {
            cut.note();
            return None;
        }
        Some(packet)
    })
}
