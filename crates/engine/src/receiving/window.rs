//! The window that the peer is offered, one for the connection or one for each subflow, and when it is announced
//! (RFC 8684 §3.3.4, §3.3.5; RFC 9293 §3.8.6).

use super::Receiving;
use super::linux_window::{LinuxWindow, Waiting};
use super::policy::{Excess, WindowBy};
use crate::mode::Mode;
use crate::settings::{ReceiveWindow, Settings};
use crate::subflow::segments::Wanted;
use crate::subflow::{Lent, Subflow, Subflows};
use anabranch_units::Range;

/// The sequence in which a window is offered, and how many windows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowScope {
    /// One in the data sequence, which all subflows share (RFC 8684 §3.3.4).
    Shared,
    /// One in each subflow's sequence, with a receive buffer of its own ([`ReceiveWindow::Subflow`]).
    PerSubflow,
    /// One in the only subflow's sequence, which is the data sequence: plain TCP (RFC 8684 §3.7).
    OfSequence,
}

impl WindowScope {
    /// As long as nothing is agreed on, there is one.
    pub fn of(mode: Mode, buffers: ReceiveWindow) -> Self {
        match (mode, buffers) {
            (Mode::Plain, _) => Self::OfSequence,
            (Mode::Agreed | Mode::Confirmed, ReceiveWindow::Subflow) => Self::PerSubflow,
            (Mode::Opening, _) | (_, ReceiveWindow::Connection) => Self::Shared,
        }
    }
}

impl Receiving {
    /// The protocol of the connection from here on.
    pub fn speak(&mut self, mode: Mode) {
        self.scope = WindowScope::of(mode, self.buffers);
    }

    /// The peer's stream is the sequence of the only subflow.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.scope == WindowScope::OfSequence
    }

    /// Each subflow has a window of its own.
    #[inline(always)]
    pub(super) fn are_separate(&self) -> bool {
        self.scope == WindowScope::PerSubflow
    }

    /// How many windows there are, if each of the `subflows` has one.
    #[inline(always)]
    pub fn windows(&self, subflows: &[Subflow]) -> Option<usize> {
        self.are_separate().then_some(subflows.len())
    }

    /// The end of the window (`RCV.NXT + RCV.WND`) in the sequence of `s`, on which `next` is expected next.
    #[inline(always)]
    pub fn window_end(&self, s: &Subflow, next: u64) -> u64 {
        if self.is_plain() {
            return (self.offset.sub + self.announced).saturating_sub(self.offset.data).max(next);
        }
        if self.are_separate() && s.own_edge > 0 {
            return s.own_edge.max(next);
        }
        // RFC 8684 §3.3.4: the window is the connection's, and where data belongs decides. What a sender may have under
        // way on a subflow is never more than the widest window (§3.3.5), which any of them may have announced.
        // The RFC's own check, SSN - SUBFLOW_ACK <= DSN - DATA_ACK, would refuse copies of data that came elsewhere.
        next + self.widest
    }

    /// First offset that is not taken; data between the window's edge and this offset is a violation. The offset moves with promised windows,
    /// never with data that arrives.
    pub(super) fn refused_from(&self) -> u64 {
        let grace = match self.policy.excess {
            Excess::Grace => Settings::grace(self.room.limit()),
            Excess::Dropped => 0,
        };
        self.edge().max(self.announced + grace)
    }

    /// First offset beyond the window. A subflow's own window, and that of plain TCP, was checked in the subflow's sequence: what was
    /// taken there is acknowledged.
    pub(super) fn edge(&self) -> u64 {
        match self.scope {
            WindowScope::Shared => self.announced.max(self.offer()),
            WindowScope::PerSubflow | WindowScope::OfSequence => u64::MAX,
        }
    }

    /// First offset that is not offered now.
    fn offer(&self) -> u64 {
        let r = &self.reassembly;
        self.room.edge(r.read_bytes(), r.next(), r.ofo_bytes())
    }

    /// The application read: acknowledgments tell the peer if that opens its window by much (RFC 9293 §3.8.6.2.2).
    #[inline(always)]
    pub(super) fn on_read(&self, subflows: &mut Subflows) {
        if let WindowBy::FreeMemory(linux) = &self.policy.window {
            return self.tell_of_memory(linux, subflows);
        }
        if self.are_separate() {
            return self.tell_each(subflows);
        }
        let left = self.announced.saturating_sub(self.reassembly.next());
        // Nearly always: more than a quarter of the widest window is left.
        if left < self.room.limit() / 4 {
            self.tell(left, subflows);
        }
    }

    /// Tells the peer of its window, of which it knows only that `left` bytes are left, if it may grow by much.
    #[inline(never)]
    fn tell(&self, left: u64, subflows: &mut Subflows) {
        let next = self.reassembly.next();
        let shift = subflows.iter().map(|s| s.terms.recv_shift).max().unwrap_or(0);
        let full = self.room.limit().min(greatest(shift));
        let edge = self.offer().min(next + full);
        if self.room.is_news(full, left, edge.saturating_sub(self.announced.max(next))) {
            subflows.iter_mut().filter(|s| s.state.is_synchronized()).for_each(|s| s.acks.demand());
        }
    }

    /// The window to advertise on `s` now, in units of 2^`shift`: see [`Self::advertise`].
    #[inline(always)]
    fn advertise_on(&mut self, s: &mut Lent<'_>, shift: u8) -> u16 {
        if self.are_separate() { self.advertise_apart(s, shift) } else { self.advertise(s.all(), shift) }
    }

    /// The window field of a segment that is `wanted` of `s` and carries nothing of the stream. RFC 7323 §2.2: that of a
    /// SYN is not scaled. A reset has none.
    pub fn window_of(&mut self, wanted: Wanted, s: &mut Lent<'_>) -> u16 {
        match wanted {
            Wanted::Handshake => self.advertise_on(s, 0),
            Wanted::ThirdAck => self.offer_on(s),
            Wanted::Reset | Wanted::Nothing | Wanted::Control | Wanted::Data | Wanted::DataOrControl => 0,
        }
    }

    /// The same on an open subflow.
    #[inline(always)]
    pub(super) fn offer_on(&mut self, s: &mut Lent<'_>) -> u16 {
        let shift = s.terms.recv_shift;
        self.advertise_on(s, shift)
    }

    /// The window to advertise now, unscaled, whose edge is remembered. Never taken back (RFC 9293 §3.8.6).
    #[inline(always)]
    pub fn advertise(&mut self, subflows: &[Subflow], shift: u8) -> u16 {
        let next = self.reassembly.next();
        let target = match &self.policy.window {
            WindowBy::FreeMemory(linux) => {
                linux.edge(is_measured(subflows), self.waiting(subflows)).max(self.announced)
            }
            WindowBy::Reads => self.room.step(self.announced.max(next), self.offer()),
        };
        let (field, size) = scaled(target.saturating_sub(next), shift);
        if size > 0 {
            // A shut window promises nothing, whatever was taken beyond it: else each acknowledgment would let more in.
            self.announced = self.announced.max(next + size);
        }
        self.widest = self.widest.max(size);
        field
    }

    // ---- one window for each subflow ----

    /// New bytes came on `s`; what came on another before counts there.
    pub(super) fn note_unread(&self, s: &mut Lent<'_>, came: Range) {
        let fresh = Range::new(came.start.max(self.reassembly.read_bytes()), came.end);
        if fresh.is_empty() {
            return;
        }
        let known: Vec<Range> = s.others().flat_map(|other| other.unread.within(fresh)).collect();
        let unread = &mut s.unread;
        unread.insert(fresh);
        for range in known {
            unread.remove(range);
        }
    }

    /// The first offset in its sequence that is not offered on `s`.
    fn edge_of(&self, s: &Subflow) -> u64 {
        s.receiver.next() + self.room.left(s.unread.bytes())
    }

    /// As [`Self::advertise`], for a subflow with a buffer of its own.
    fn advertise_apart(&mut self, s: &mut Subflow, shift: u8) -> u16 {
        let target = self.room.step(s.own_edge, self.edge_of(s));
        let next = s.receiver.next();
        let (field, size) = scaled(target.saturating_sub(next), shift);
        s.promise(next + size);
        self.widest = self.widest.max(size);
        field
    }

    /// The application read: tells the peer of those subflows whose own window may grow by much.
    fn tell_each(&self, subflows: &mut Subflows) {
        let read = self.reassembly.read_bytes();
        for s in subflows.iter_mut() {
            s.unread.remove_below(read);
            let edge = self.edge_of(s);
            let full = self.room.limit().min(greatest(s.terms.recv_shift));
            let left = s.own_edge.saturating_sub(s.receiver.next());
            if s.state.is_synchronized() && self.room.is_news(full, left, edge.saturating_sub(s.own_edge)) {
                s.acks.demand();
            }
        }
    }

    // ---- by the memory that is free ----

    fn waiting(&self, subflows: &[Subflow]) -> Waiting {
        let next = self.reassembly.next();
        // Data that a subflow of Multipath TCP holds behind its own hole is charged to the subflow, whose memory does not decide
        // about the window (Linux 6.18: `mptcp_space`).
        let held = match self.scope {
            WindowScope::OfSequence => subflows.iter().map(|s| s.receiver.held_bytes()).sum(),
            WindowScope::Shared | WindowScope::PerSubflow => 0,
        };
        Waiting { next, unread: next - self.reassembly.read_bytes(), held: self.reassembly.ofo_bytes() + held }
    }

    /// The application read. A subflow announces the new window if at most half of the buffer is left of its last offer, and at
    /// least twice as much as that is free; offers of other subflows do not count.
    ///
    /// Linux 6.18: `mptcp_cleanup_rbuf`, `__tcp_cleanup_rbuf`.
    fn tell_of_memory(&self, linux: &LinuxWindow, subflows: &mut Subflows) {
        let measured = is_measured(subflows);
        let free = linux.edge(measured, self.waiting(subflows)) - self.reassembly.next();
        let buffer = linux.buffer(measured);
        for s in subflows.iter_mut().filter(|s| s.state.is_synchronized()) {
            let left = s.left_of_offer();
            if 2 * left <= buffer && free > 0 && free >= 2 * left {
                s.acks.demand();
            }
            // Our own data will acknowledge a small segment.
            if s.sender().is_empty() {
                s.acks.on_read();
            }
        }
    }
}

/// The window field for `bytes` in units of 2^`shift`, and the bytes that it offers.
#[inline(always)]
fn scaled(bytes: u64, shift: u8) -> (u16, u64) {
    // RFC 7323 §2.4: rounded down, so the edge may waver by less than a unit; what was promised is still taken.
    // Rounding up would promise more with every segment.
    let units = (bytes >> shift).min(0xffff);
    (units as u16, units << shift)
}

/// The widest window that the field can offer in units of 2^`shift`.
fn greatest(shift: u8) -> u64 {
    0xffff << shift
}

/// Every subflow has brought data.
fn is_measured(subflows: &[Subflow]) -> bool {
    let mut open = subflows.iter().filter(|s| s.state.is_synchronized()).peekable();
    open.peek().is_some() && open.all(|s| s.receiver.next() > 1)
}
