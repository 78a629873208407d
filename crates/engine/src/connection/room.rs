//! How much of a buffer counts: all of its bytes; what a kernel's bookkeeping leaves of it; what right-sizing has come to.
//! And the windows of subflows that have a buffer each.

use super::{Connection, Mode};
use crate::settings::{BufferAccounting, ReceiveWindow, Settings};
use crate::subflow::stamps::Stamps;
use anabranch_units::{Duration, Instant, Range};
use anabranch_wire::Segment;

/// Headers in front of a segment's payload in its buffer: Ethernet, IPv4, TCP with timestamps, and Linux's `NET_SKB_PAD`.
const HEADERS: u64 = 14 + 20 + 32 + 64;
/// Linux 3.x, 64 bits: `skb_shared_info` behind the payload, and the `sk_buff` itself.
const SHARED_INFO: u64 = 320;
const SK_BUFF: u64 = 256;
/// The window with which right-sizing begins. `tcp_rmem[1]` is 87,380 bytes, of which no more are offered in a SYN.
const WINDOW_START: u64 = 65_535;
/// The send buffer with which its growth begins: `tcp_wmem[1]`.
const SEND_START: u64 = 16_384;

/// Memory that segments take in a kernel that counts whole buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truesize {
    mss: u64,
    segment: u64,
}

impl Truesize {
    /// For segments of `mss` bytes, each in a buffer of its own: 2304 bytes for 1448.
    fn of(mss: u32) -> Self {
        let mss = u64::from(mss).max(1);
        Self { mss, segment: (mss + HEADERS + SHARED_INFO).next_power_of_two() + SK_BUFF }
    }

    /// Memory of `payload` bytes.
    fn memory(&self, payload: u64) -> u64 {
        payload.div_ceil(self.mss).saturating_mul(self.segment)
    }

    /// Payload whose memory is `memory` bytes.
    fn payload(&self, memory: u64) -> u64 {
        memory / self.segment * self.mss
    }
}

/// What is offered of the receive buffer.
#[derive(Debug)]
pub(super) struct Room {
    /// The window while nothing is held.
    limit: u64,
    /// Its greatest value.
    most: u64,
    mss: u64,
    truesize: Option<Truesize>,
    /// Right-sizing: when the present measurement began, and at which byte of those read.
    measured: Option<(Instant, u64)>,
}

impl Room {
    pub fn new(settings: &Settings) -> Self {
        let truesize = truesize(settings);
        // `tcp_adv_win_scale` is 1: half of a buffer is for payload.
        let most = if truesize.is_some() { settings.recv_buffer / 2 } else { settings.recv_buffer };
        let most = most.max(u64::from(settings.mss).min(settings.recv_buffer));
        let limit = if settings.tcp.autotune { most.min(WINDOW_START) } else { most };
        let measured = settings.tcp.autotune.then_some((Instant::ZERO, 0));
        Self { limit, most, mss: settings.mss.into(), truesize, measured }
    }

    /// The window while nothing is held, bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// It follows what the application reads.
    pub fn is_sized(&self) -> bool {
        self.measured.is_some()
    }

    /// What is left of the window when `held` bytes are held: as kernels count, half of the memory that they do not take.
    fn left(&self, held: u64) -> u64 {
        match &self.truesize {
            None => self.limit.saturating_sub(held),
            Some(truesize) => self.limit.saturating_sub(truesize.memory(held) / 2),
        }
    }

    /// The first offset that is not offered: `read` bytes were read of those below `next`, and `ahead` are held above.
    pub fn edge(&self, read: u64, next: u64, ahead: u64) -> u64 {
        match &self.truesize {
            // What is held above lies inside the window.
            None => read + self.limit,
            Some(_) => next + self.left(next - read + ahead),
        }
    }

    /// The edge to offer after `before`, where `edge` is free: it moves by a segment or half of the window at least (RFC 9293
    /// §3.8.6.2.2).
    pub fn step(&self, before: u64, edge: u64) -> u64 {
        if edge >= before + self.mss.min(self.limit / 2) { edge } else { before }
    }

    /// Whether the peer is to hear at once that its window, `full` bytes at most with `left` left of it, may grow by `gain`: one
    /// that is shut by a segment, others by half (RFC 9293 §3.8.6.2.2).
    pub fn is_news(&self, full: u64, left: u64, gain: u64) -> bool {
        let worth = self.mss.min(full / 2);
        left < full / 4 && gain >= if left < worth { worth } else { full / 2 }
    }

    /// Dynamic right-sizing (Fisk and Feng, 2001; Linux `tcp_rcv_space_adjust`): of what the application reads in a round trip
    /// twice as much is offered, and 16 segments more; never less than before. `read` bytes were read so far.
    pub fn on_read(&mut self, now: Instant, read: u64, trip: Duration) {
        let Some((since, from)) = self.measured.filter(|(since, _)| now.since(*since) >= trip) else { return };
        if since > Instant::ZERO {
            self.limit = self.limit.max(2 * (read - from) + 16 * self.mss).min(self.most);
        }
        self.measured = Some((now, read));
    }
}

fn truesize(settings: &Settings) -> Option<Truesize> {
    (settings.tcp.buffer_accounting == BufferAccounting::Truesize).then(|| Truesize::of(settings.mss))
}

/// Bytes that the application may have written and the peer not yet acknowledged, at most.
fn greatest_send_room(settings: &Settings) -> u64 {
    let payload = truesize(settings).map_or(settings.send_buffer, |truesize| truesize.payload(settings.send_buffer));
    payload.max(u64::from(settings.mss).min(settings.send_buffer))
}

/// The same at the beginning.
pub(super) fn send_room(settings: &Settings) -> u64 {
    let most = greatest_send_room(settings);
    if settings.tcp.autotune { most.min(SEND_START.max(settings.mss.into())) } else { most }
}

impl Connection {
    /// The application read. A measurement lasts for the longest round trip of all subflows, so that what they bring in it is
    /// what their rates and that trip ask for (RFC 6182 §5.3).
    pub(super) fn right_size(&mut self, now: Instant) {
        let trips = self.subflows.iter().filter_map(|s| s.trip.or(s.sender.rtt().srtt()));
        if let Some(trip) = trips.max() {
            self.room.on_read(now, self.reassembly.read_bytes(), trip);
        }
    }

    /// A round trip as the receiver sees it: from an acknowledgment to a segment that echoes its timestamp (Linux
    /// `tcp_rcv_rtt_measure_ts`).
    pub(super) fn note_trip(&mut self, i: usize, segment: &Segment, now: Instant) {
        let s = &mut self.subflows[i];
        let stamps = segment.options.timestamps().filter(|_| s.terms.timestamps);
        let Some((sample, _)) = stamps.and_then(|stamps| Stamps::echoed(stamps.ecr, now)) else { return };
        s.trip = Some(s.trip.map_or(sample, |trip| trip - trip / 8 + sample / 8));
    }

    /// The send buffer holds twice the windows of all subflows, and never less than before (Linux `tcp_sndbuf_expand`,
    /// `mptcp_update_sndbuf`).
    pub(super) fn expand_send_buffer(&mut self) {
        let least = self.settings.tcp.initial_window;
        let windows = self.view.paths().iter().map(|p| 2 * u64::from(p.cwnd.max(least)) * u64::from(p.mss));
        let wanted = windows.fold(0, u64::saturating_add).min(greatest_send_room(&self.settings));
        if wanted > self.send_room {
            self.send_room = wanted;
            self.wake_writer();
        }
    }

    /// Each subflow has a receive buffer of its own.
    pub(super) fn windows_apart(&self) -> bool {
        self.settings.tcp.receive_window == ReceiveWindow::Subflow && matches!(self.mode, Mode::Multipath { .. })
    }

    /// New bytes came on subflow `i`; what came on another before counts there.
    pub(super) fn note_unread(&mut self, i: usize, came: Range) {
        let fresh = Range::new(came.start.max(self.reassembly.read_bytes()), came.end);
        if fresh.is_empty() {
            return;
        }
        let others = self.subflows.iter().enumerate().filter(|(n, _)| *n != i);
        let known: Vec<Range> = others.flat_map(|(_, s)| s.unread.within(fresh)).collect();
        let unread = &mut self.subflows[i].unread;
        unread.insert(fresh);
        for range in known {
            unread.remove(range);
        }
    }

    /// The application read.
    pub(super) fn forget_read(&mut self) {
        let read = self.reassembly.read_bytes();
        for s in &mut self.subflows {
            s.unread.remove_below(read);
        }
    }

    /// The first offset in its sequence that subflow `i` may offer.
    fn edge_of(&self, i: usize) -> u64 {
        let s = &self.subflows[i];
        s.receiver.next() + self.room.left(s.unread.bytes())
    }

    /// As [`Self::advertise`], for a subflow with a buffer of its own.
    pub(super) fn advertise_apart(&mut self, i: usize, shift: u8) -> u16 {
        let target = self.room.step(self.subflows[i].own_edge, self.edge_of(i));
        let s = &mut self.subflows[i];
        let next = s.receiver.next();
        let units = (target.saturating_sub(next) >> shift).min(0xffff);
        s.own_edge = s.own_edge.max(next + (units << shift));
        self.widest = self.widest.max(units << shift);
        units as u16
    }

    /// Tells the peer of those subflows whose own window may grow by much.
    pub(super) fn tell_windows_apart(&mut self) {
        for i in 0..self.subflows.len() {
            let edge = self.edge_of(i);
            let s = &mut self.subflows[i];
            let full = self.room.limit().min(0xffff << s.terms.recv_shift);
            let left = s.own_edge.saturating_sub(s.receiver.next());
            if s.state.is_synchronized() && self.room.is_news(full, left, edge.saturating_sub(s.own_edge)) {
                s.acks.demand();
                self.touch(i);
            }
        }
    }

    /// The windows of all subflows together, where the widest of one is `size`.
    pub(super) fn all_windows(&self, size: u64) -> u64 {
        let subflows = self.subflows.len().max(1) as u64;
        size.max(self.view.max_window() / subflows) * subflows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TcpSettings;

    fn settings(change: impl FnOnce(&mut TcpSettings)) -> Settings {
        let mut settings = Settings { mss: 1448, recv_buffer: 1 << 20, send_buffer: 1 << 20, ..Settings::default() };
        change(&mut settings.tcp);
        settings
    }

    #[test]
    fn a_buffer_of_bytes_is_offered_whole() {
        let room = Room::new(&settings(|_| {}));
        assert_eq!((room.limit(), room.edge(1000, 5000, 3000)), (1 << 20, 1000 + (1 << 20)));
        assert_eq!(send_room(&settings(|_| {})), 1 << 20);
    }

    #[test]
    fn half_of_a_kernels_buffer_is_offered_and_what_is_held_takes_memory() {
        let truesize = settings(|tcp| tcp.buffer_accounting = BufferAccounting::Truesize);
        let room = Room::new(&truesize);
        assert_eq!((room.limit(), room.edge(5000, 5000, 0)), (1 << 19, 5000 + (1 << 19)));
        // Ten segments above a hole take 23,040 bytes, of which half would have been window.
        assert_eq!(room.edge(5000, 5000, 14_480), 5000 + (1 << 19) - 11_520);
        // Unread ones the same; more memory than there is leaves nothing.
        assert_eq!(room.edge(5000, 5000 + 14_480, 0), 19_480 + (1 << 19) - 11_520);
        assert_eq!(room.edge(0, 0, 1 << 20), 0);
        // A megabyte holds 455 buffers of 2304 bytes.
        assert_eq!(send_room(&truesize), 455 * 1448);
        assert_eq!(Truesize::of(536).segment, 1024 + 256);
    }

    #[test]
    fn a_window_follows_what_is_read_in_a_round_trip_and_never_shrinks() {
        let mut room = Room::new(&settings(|tcp| tcp.autotune = true));
        let (at, trip) = (Instant::from_millis, Duration::from_millis(100));
        assert_eq!(room.limit(), 65_535);
        room.on_read(at(100), 10_000, trip);
        room.on_read(at(150), 60_000, trip);
        assert_eq!(room.limit(), 65_535);
        room.on_read(at(200), 110_000, trip);
        assert_eq!(room.limit(), 2 * 100_000 + 16 * 1448);
        room.on_read(at(300), 120_000, trip);
        assert_eq!(room.limit(), 2 * 100_000 + 16 * 1448);
        room.on_read(at(400), 1_500_000, trip);
        assert_eq!(room.limit(), 1 << 20);
        assert_eq!(send_room(&settings(|tcp| tcp.autotune = true)), 16_384);
    }
}
