//! The options of a segment, within the 40 bytes that TCP has for them.

use crate::{Dss, MptcpOption, coalesce};
use anabranch_units::SeqNumber;

/// Most bytes of options in a segment (RFC 9293 §3.1).
pub const MAX_OPTIONS: usize = 40;

/// Timestamps (RFC 7323 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub val: u32,
    /// TSecr: the value echoed; significant with ACK.
    pub ecr: u32,
}

/// One SACK block (RFC 2018 §3): first number and the number after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// Left edge.
    pub start: SeqNumber,
    /// Right edge, exclusive.
    pub end: SeqNumber,
}

/// The options of one segment. Every setter keeps the whole within [`MAX_OPTIONS`] and returns whether it fitted.
///
/// Each option is padded to four bytes, in Linux's layout; SACK-permitted shares the padding of timestamps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    timestamps: Option<Timestamps>,
    sack: [SackBlock; 4],
    sack_len: u8,
    dss: Option<Dss>,
    /// Apart, because segments of a transfer seldom carry any: thousands of them are under way at a time. Never empty.
    rare: Option<Box<Rare>>,
    encoded_len: u8,
}

/// Options of handshakes and of changes of the set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rare {
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    mptcp: Vec<MptcpOption>,
}

impl Options {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes every option, for reuse of the value.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.timestamps = None;
        if self.sack_len > 0 {
            self.sack = Default::default();
            self.sack_len = 0;
        }
        self.dss = None;
        self.rare = None;
        self.encoded_len = 0;
    }

    /// Bytes on the wire, a multiple of four, at most 40.
    pub fn encoded_len(&self) -> usize {
        self.encoded_len as usize
    }

    /// Bytes still free.
    pub fn room(&self) -> usize {
        MAX_OPTIONS - self.encoded_len as usize
    }

    fn reserve(&mut self, len: usize) -> bool {
        let fits = len <= self.room();
        if fits {
            self.encoded_len += len as u8;
        }
        fits
    }

    /// Maximum segment size.
    pub fn mss(&self) -> Option<u16> {
        self.rare.as_ref()?.mss
    }
    /// Window scale shift.
    pub fn window_scale(&self) -> Option<u8> {
        self.rare.as_ref()?.window_scale
    }
    /// SACK permitted.
    pub fn sack_permitted(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.sack_permitted)
    }
    /// Timestamps.
    pub fn timestamps(&self) -> Option<Timestamps> {
        self.timestamps
    }
    /// SACK blocks, at most four.
    pub fn sack(&self) -> &[SackBlock] {
        &self.sack[..self.sack_len as usize]
    }
    /// The DSS option.
    pub fn dss(&self) -> Option<&Dss> {
        self.dss.as_ref()
    }
    /// Every other MPTCP option, in order.
    #[inline]
    pub fn mptcp(&self) -> &[MptcpOption] {
        self.rare.as_ref().map_or(&[], |rare| &rare.mptcp)
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Sets the MSS, once.
    pub fn set_mss(&mut self, mss: u16) -> bool {
        let fits = self.mss().is_none() && self.reserve(4);
        if fits {
            self.rare().mss = Some(mss);
        }
        fits
    }

    /// Sets the window scale, once.
    pub fn set_window_scale(&mut self, shift: u8) -> bool {
        let fits = self.window_scale().is_none() && self.reserve(4);
        if fits {
            self.rare().window_scale = Some(shift);
        }
        fits
    }

    /// Sets SACK-permitted, once.
    pub fn set_sack_permitted(&mut self) -> bool {
        let len = if self.timestamps.is_some() { 0 } else { 4 };
        let fits = !self.sack_permitted() && self.reserve(len);
        if fits {
            self.rare().sack_permitted = true;
        }
        fits
    }

    /// Sets the timestamps, once.
    pub fn set_timestamps(&mut self, timestamps: Timestamps) -> bool {
        let len = if self.sack_permitted() { 8 } else { 12 };
        let fits = self.timestamps.is_none() && self.reserve(len);
        if fits {
            self.timestamps = Some(timestamps);
        }
        fits
    }

    /// Sets as many of `blocks` as fit, first ones first, once; returns their number.
    pub fn set_sack(&mut self, blocks: &[SackBlock]) -> usize {
        let n = blocks.len().min(4).min(self.room().saturating_sub(4) / 8);
        if n == 0 || self.sack_len > 0 {
            return 0;
        }
        self.reserve(4 + 8 * n);
        self.sack[..n].copy_from_slice(&blocks[..n]);
        self.sack_len = n as u8;
        n
    }

    /// Sets the DSS option, once. A data sequence number that is not `wide` is cut to its low 32 bits.
    #[inline(always)]
    pub fn set_dss(&mut self, mut dss: Dss) -> bool {
        if let Some(mapping) = &mut dss.mapping
            && !mapping.wide
        {
            mapping.data_seq &= u64::from(u32::MAX);
        }
        let fits = self.dss.is_none() && self.reserve(dss.encoded_len());
        if fits {
            self.dss = Some(dss);
        }
        fits
    }

    /// Extends the mapping, of `len` bytes, by that of `next`, of `more` bytes; false, with nothing changed, if it does
    /// not continue there or another option differs.
    pub(crate) fn absorb(&mut self, len: usize, next: &Self, more: usize) -> bool {
        next.rare == self.rare
            && next.timestamps == self.timestamps
            && next.sack() == self.sack()
            && coalesce::extend(&mut self.dss, len, &next.dss, more)
    }

    /// Adds another MPTCP option, unless it does not fit or RFC 8684 has no form for it: a receiver's key without the
    /// sender's, data without keys, a version above 15, an empty REMOVE_ADDR.
    pub fn push_mptcp(&mut self, option: MptcpOption) -> bool {
        let fits = option.has_form() && self.reserve(option.encoded_len());
        if fits {
            self.rare().mptcp.push(option);
        }
        fits
    }
}
