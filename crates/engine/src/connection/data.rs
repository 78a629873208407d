//! Payload: from a subflow's bytes to the connection's stream (RFC 8684 §3.3).

use super::mapping::Entry;
use super::open::{INTERFERENCE, MPTCP_ERROR};
use super::{Connection, Mode, Offset};
use crate::cx::Cx;
use crate::pieces::Pieces;
use crate::subflow::Reset;
use anabranch_trace::{Event, Violation};
use anabranch_units::{DataSeq, PathId, Range};
use anabranch_wire::{Mapping, Segment};
use bytes::Bytes;

/// A mapping whose bytes are collected until its checksum can be verified.
#[derive(Debug, Default)]
pub(super) struct Checking {
    /// One per subflow that has one: path, mapping, what came so far.
    open: Vec<(PathId, Entry, Pieces)>,
}

impl Checking {
    /// The mapping that is being collected on a subflow.
    pub fn begun_on(&self, id: PathId) -> Option<&Entry> {
        self.open.iter().find(|(path, ..)| *path == id).map(|(_, entry, _)| entry)
    }

    /// As [`Self::begun_on`], with the bytes that came; it is collected no further.
    pub fn take(&mut self, id: PathId) -> Option<(Entry, Bytes)> {
        let at = self.open.iter().position(|(path, ..)| *path == id)?;
        let (_, entry, pieces) = self.open.swap_remove(at);
        Some((entry, pieces.whole()))
    }

    /// The subflow is gone, and the rest of its mapping will not come.
    pub(super) fn forget(&mut self, id: PathId) {
        self.open.retain(|(path, ..)| *path != id);
    }
}

/// A mapping holds 32 bits of the offset within the subflow: the one nearest to what is expected next.
pub(super) fn subflow_offset(low: u32, next: u64) -> Option<u64> {
    let ahead = low.wrapping_sub(next as u32) as i32;
    next.checked_add_signed(i64::from(ahead))
}

impl Connection {
    /// Notes the mapping of a segment, if it has one. Returns false if the subflow must not go on.
    pub(super) fn note_mapping(&mut self, cx: &mut Cx<'_>, i: usize, mapping: &Mapping, data_fin: bool) -> bool {
        if mapping.len == 0 {
            return self.infinite_mapping(cx, i, mapping);
        }
        let Some(start) = self.data_offset(mapping) else { return true };
        let len = u64::from(mapping.len) - u64::from(data_fin);
        if mapping.checksum.is_some() != self.checksum {
            // RFC 8684 §3.3: present though it was not agreed on, or absent though it was
            self.violation(cx, i, Violation::Checksum);
            self.subflows[i].reset = Some(Reset::Because(MPTCP_ERROR));
            return false;
        }
        // RFC 8684 §3.3: the checksum covers the DATA_FIN. Beside payload it is taken with that.
        if data_fin && (len == 0 || !self.checksum) {
            let number = self.keys.remote_number(start).0;
            let sum = || anabranch_wire::dss_checksum(number, mapping.subflow_seq, mapping.len, &Bytes::new());
            if mapping.checksum.is_some_and(|expected| expected != sum()) {
                self.violation(cx, i, Violation::Checksum);
                return true;
            }
            self.note_data_fin(cx, i, start + len);
        }
        if len == 0 {
            return true;
        }
        let s = &mut self.subflows[i];
        let next = s.receiver.next();
        let Some(sub) = subflow_offset(mapping.subflow_seq, next) else { return true };
        if sub + len <= s.unmapped.first().unwrap_or(next) {
            return true;
        }
        let checksum = mapping.checksum.map(|sum| (sum, mapping.len));
        let entry = Entry { sub: Range::new(sub, sub + len), data: start, checksum };
        match s.mappings.add(entry) {
            Ok(()) => self.pass_on_held(cx, i),
            Err(violation) => {
                self.violation(cx, i, violation);
                self.subflows[i].reset = Some(Reset::Because(MPTCP_ERROR));
                false
            }
        }
    }

    /// Nearly always: the segment is next, its mapping covers its payload and nothing else, and no other is held.
    pub(super) fn maps_itself(&self, i: usize, segment: &Segment, seq: u64, mapping: &Mapping) -> bool {
        let s = &self.subflows[i];
        let len = segment.payload.len() as u64;
        let exact = len > 0 && u64::from(mapping.len) == len && mapping.subflow_seq == seq as u32;
        let plain = mapping.checksum.is_none() && !self.checksum;
        exact && plain && s.mappings.is_empty() && s.unmapped.first().is_none() && s.receiver.is_next(seq, len)
    }

    /// The offset in the peer's data at which a mapping starts.
    pub(super) fn data_offset(&self, mapping: &Mapping) -> Option<u64> {
        let first = self.keys.remote_number(0);
        let near = self.reassembly.next();
        if mapping.wide {
            DataSeq(mapping.data_seq).offset_from(first, near)
        } else {
            DataSeq::low_offset_from(mapping.data_seq as u32, first, near)
        }
    }

    /// Gives what waited for its mapping another chance.
    pub(super) fn pass_on_held(&mut self, cx: &mut Cx<'_>, i: usize) -> bool {
        if self.subflows[i].unmapped.first().is_none() {
            return true;
        }
        let held = self.subflows[i].unmapped.take();
        held.into_iter().all(|(seq, bytes)| self.pass_on(cx, i, seq, bytes, false))
    }

    /// Payload in the subflow's sequence; `place`: see [`Self::on_options`].
    pub(super) fn on_payload(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64, place: Option<u64>) {
        // RFC 5681 §4.2: at least every second segment; of those that came in one piece, from a device that leaves them so,
        // there are enough.
        let (len, mss) = (segment.payload.len() as u32, self.settings.mss);
        if self.room.is_sized() && len >= mss {
            self.note_trip(i, segment, cx.now);
        }
        let s = &mut self.subflows[i];
        // What we send ourselves will acknowledge a small one.
        let at_once = len >= 2 * mss || s.acks.is_small(len.min(mss)) && s.sender.is_empty();
        if s.receiver.take_next(seq, segment.payload.len() as u64) {
            // Nearly always: the next bytes, and no hole anywhere.
            s.acks.on_arrival(cx.now, at_once);
            if let Some(start) = place.filter(|_| self.mode != Mode::Plain) {
                return self.arrived(cx, i, start, segment.payload.clone());
            }
            let bare = segment.options.dss().is_none();
            if self.pass_on(cx, i, seq, segment.payload.clone(), bare) {
                let s = &mut self.subflows[i];
                s.mappings.forget_below(s.unmapped.first().unwrap_or(s.receiver.next()));
            }
            return;
        }
        let arrival = s.receiver.accept(seq, &segment.payload);
        if let Some(duplicate) = arrival.duplicate {
            s.acks.report(duplicate);
        }
        s.acks.on_arrival(cx.now, at_once || arrival.acknowledge_now);
        let bare = segment.options.dss().is_none();
        let mut ready = arrival.ready;
        while let Some((seq, bytes)) = ready {
            if !self.pass_on(cx, i, seq, bytes, bare) {
                return;
            }
            ready = self.subflows[i].receiver.pop();
        }
        let s = &mut self.subflows[i];
        s.mappings.forget_below(s.unmapped.first().unwrap_or(s.receiver.next()));
    }

    /// Bytes next in a subflow's sequence go to the connection by their mapping. `bare`: their segment had no DSS. False
    /// if the subflow must not go on.
    pub(super) fn pass_on(&mut self, cx: &mut Cx<'_>, i: usize, mut seq: u64, mut bytes: Bytes, bare: bool) -> bool {
        while !bytes.is_empty() {
            if self.mode == Mode::Plain {
                let start = (self.recv_offset.data + seq).checked_sub(self.recv_offset.sub);
                start.into_iter().for_each(|start| self.arrived(cx, i, start, bytes.clone()));
                return true;
            }
            let mappings = &self.subflows[i].mappings;
            let Some(entry) = mappings.find(seq) else {
                let rest = match mappings.next_after(seq) {
                    Some(start) if start < seq + bytes.len() as u64 => bytes.split_off((start - seq) as usize),
                    _ => Bytes::new(),
                };
                let end = seq + bytes.len() as u64;
                if !self.unmapped(cx, i, seq, bytes, bare) {
                    return false;
                }
                (seq, bytes) = (end, rest);
                continue;
            };
            let part = Range::new(seq, entry.sub.end.min(seq + bytes.len() as u64));
            if part.len() == bytes.len() as u64 && entry.checksum.is_none() {
                // Nearly always: a mapping for each segment.
                let start = entry.translate(part).start;
                self.arrived(cx, i, start, bytes);
                return true;
            }
            let entry = *entry;
            let rest = bytes.split_off(part.len() as usize);
            if entry.checksum.is_some() {
                if !self.verify(cx, i, entry, part, bytes) {
                    return false;
                }
            } else {
                self.arrived(cx, i, entry.translate(part).start, bytes);
            }
            seq = part.end;
            bytes = rest;
        }
        true
    }

    /// Collects a checksummed mapping; passes it on once it is whole and right (RFC 8684 §3.3).
    fn verify(&mut self, cx: &mut Cx<'_>, i: usize, entry: Entry, part: Range, bytes: Bytes) -> bool {
        let id = self.subflows[i].id;
        let open = &mut self.checking.open;
        let at = open.iter().position(|(path, e, _)| *path == id && e.sub == entry.sub).unwrap_or_else(|| {
            open.push((id, entry, Pieces::default()));
            open.len() - 1
        });
        open[at].2.push_back(bytes);
        if part.end < entry.sub.end {
            return true;
        }
        let (_, entry, pieces) = self.checking.open.swap_remove(at);
        let whole = pieces.whole();
        let (expected, len) = entry.checksum.unwrap_or((0, 0));
        let number = self.keys.remote_number(entry.data);
        if anabranch_wire::dss_checksum(number.0, entry.sub.start as u32, len, &whole) == expected {
            self.arrived(cx, i, entry.data, whole);
            if u64::from(len) > entry.sub.len() {
                self.note_data_fin(cx, i, entry.data + entry.sub.len());
            }
            return true;
        }
        self.violation(cx, i, Violation::Checksum);
        let in_step = entry.data == self.reassembly.next();
        if !in_step || !self.may_fall_back(i) {
            // RFC 8684 §3.7: other subflows go on, or a new one will; this one is reset with MP_FAIL
            self.subflows[i].reset = Some(Reset::Fail(number.0));
            return false;
        }
        self.checking.open.push((id, entry, Pieces::from(whole)));
        self.fail_over_to_plain(cx, i, number.0);
        !self.closed
    }

    /// Data without a mapping. A subflow whose very first data has no DSS does not speak MPTCP: fall back while that is
    /// allowed, else reset it (RFC 8684 §3.7). Later the mapping may follow, within a receive window (§3.3.1).
    fn unmapped(&mut self, cx: &mut Cx<'_>, i: usize, seq: u64, bytes: Bytes, bare: bool) -> bool {
        let silent = bare && seq == 1;
        if !silent && self.subflows[i].unmapped.hold(cx.now, seq, bytes.clone(), self.settings.recv_buffer, bare) {
            return true;
        }
        let at_start = silent && self.reassembly.next() == 0;
        if !at_start || !self.may_fall_back(i) {
            self.never_mapped(cx, i);
            return false;
        }
        self.violation(cx, i, Violation::Unmapped);
        self.fall_back_at(cx, i, Offset { sub: seq, data: 0 });
        self.pass_on(cx, i, seq, bytes, bare)
    }

    /// The mapping of what came on a subflow does not come: it is closed (RFC 8684 §3.3.1), the only one too (§3.7). Whether
    /// the peer sends the next data for the first time cannot be known, so that going on in plain TCP might harm it.
    pub(super) fn never_mapped(&mut self, cx: &mut Cx<'_>, i: usize) {
        self.violation(cx, i, Violation::Unmapped);
        self.subflows[i].unmapped.take();
        self.subflows[i].reset = Some(Reset::Because(INTERFERENCE));
    }

    /// Bytes with their place in the data sequence.
    pub(super) fn arrived(&mut self, cx: &mut Cx<'_>, i: usize, start: u64, mut bytes: Bytes) {
        let mut range = Range::new(start, start + bytes.len() as u64);
        if self.linux_drops(start, range.end) {
            return self.violation(cx, i, Violation::BeyondWindow);
        }
        let end = self.receive_edge().min(self.peer_fin.unwrap_or(u64::MAX));
        if range.end > end {
            // RFC 8684 §3.3.4: beyond the window, or behind the end of the stream
            self.violation(cx, i, Violation::BeyondWindow);
            if start >= end {
                return;
            }
            bytes = Bytes::copy_from_slice(&bytes[..(end - start) as usize]);
            range.end = end;
        }
        let ofo_before = self.reassembly.ofo_bytes();
        let next_before = self.reassembly.next();
        let new = self.reassembly.accept(start, bytes);
        let ofo = self.reassembly.ofo_bytes();
        self.record(cx, Some(self.subflows[i].id), Event::DataArrived { data: range, new, ofo });
        if new > 0 && self.windows_apart() {
            self.note_unread(i, Range::new(range.start.max(next_before), range.end));
        }
        if self.reassembly.next() > next_before {
            self.vain = 0;
            self.pending.readable = true;
        }
        if new == 0 || (ofo == 0 && ofo_before > 0) {
            // A copy, or a hole that is filled: the peer's window waits for this DATA_ACK.
            self.subflows[i].acks.demand();
        }
    }

    /// First offset that we do not take.
    pub(super) fn receive_edge(&self) -> u64 {
        if self.windows_apart() { u64::MAX } else { self.announced.max(self.offer()) }
    }

    /// First offset that we might offer now.
    fn offer(&self) -> u64 {
        let r = &self.reassembly;
        self.room.edge(r.read_bytes(), r.next(), r.ofo_bytes())
    }

    /// The application read: tell the peer if that opens its window by much (RFC 9293 §3.8.6.2.2).
    #[inline(always)]
    pub(super) fn window_opened(&mut self) {
        if self.counts_as_linux() {
            return self.linux_tells();
        }
        if self.windows_apart() {
            self.forget_read();
            return self.tell_windows_apart();
        }
        let left = self.announced.saturating_sub(self.reassembly.next());
        // Nearly always: more than a quarter of the widest window is left.
        if left < self.room.limit() / 4 {
            self.tell_window(left);
        }
    }

    /// Tells the peer of its window, of which it knows only that `left` bytes are left, if it may grow by much.
    #[inline(never)]
    fn tell_window(&mut self, left: u64) {
        let next = self.reassembly.next();
        // Without scaling the field cannot say more than 65535.
        let shift = self.subflows.iter().map(|s| s.terms.recv_shift).max().unwrap_or(0);
        let full = self.room.limit().min(0xffff << shift);
        let edge = self.offer().min(next + full);
        if self.room.is_news(full, left, edge.saturating_sub(self.announced)) {
            self.touch_all();
            for s in self.subflows.iter_mut().filter(|s| s.state.is_synchronized()) {
                s.acks.demand();
            }
        }
    }

    /// The window to advertise on subflow `i` now, in units of 2^`shift`: see [`Self::advertise`].
    pub(super) fn advertise_on(&mut self, i: usize, shift: u8) -> u16 {
        if self.windows_apart() { self.advertise_apart(i, shift) } else { self.advertise(shift) }
    }

    /// The same on an open subflow, which remembers it.
    pub(super) fn offer_on(&mut self, i: usize) -> u16 {
        let shift = self.subflows[i].terms.recv_shift;
        let window = self.advertise_on(i, shift);
        self.subflows[i].offered = u64::from(window) << shift;
        window
    }

    /// The window to advertise now, unscaled, and remembers its edge. Never taken back (RFC 9293 §3.8.6).
    pub(super) fn advertise(&mut self, shift: u8) -> u16 {
        let next = self.reassembly.next();
        let target = if self.counts_as_linux() {
            self.linux_edge().max(self.announced)
        } else {
            self.room.step(self.announced, self.offer())
        };
        // RFC 7323 §2.4: rounded down, so the edge may waver by less than a unit; what was promised is still taken.
        // Rounding up would promise more with every segment.
        let size = (target.saturating_sub(next) >> shift).min(0xffff);
        self.announced = self.announced.max(next + (size << shift));
        self.widest = self.widest.max(size << shift);
        size as u16
    }
}
