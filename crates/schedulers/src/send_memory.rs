//! Send memory by a Linux kernel's rules: how much a subflow may hold, and how far that lets the application write.

use crate::fragments::Fragments;
use anabranch_plugin::schedule::{Binding, PathView, View};
use anabranch_units::Range;

/// The data that the kernel binds at once: a page fragment of 32 KiB less its header.
pub const PIECE: u64 = 32_768 - 40;

/// The end of the piece that holds `offset`, where pieces follow each other from the beginning of the stream.
pub const fn piece_end(offset: u64) -> u64 {
    (offset / PIECE + 1) * PIECE
}
/// Least number of packets for which send memory suffices (TCP_INIT_CWND).
const INITIAL_WINDOW: u32 = 10;
/// Memory of an `sk_buff` beside its payload.
const SK_BUFF: u64 = 832;
/// Payload of the largest `sk_buff`.
const LARGEST: u64 = 64 << 10;
/// The connection's own send memory, beside its subflows' (`tcp_wmem`, first value).
const OWN: u64 = 4096;

/// The pacing rate in bytes per second, unbounded without an RTT sample, as in the kernel.
pub fn pace(path: &PathView) -> u64 {
    path.pacing_rate().map_or(u64::from(u32::MAX), |rate| (rate.as_bps() / 8).clamp(1, u64::from(u32::MAX)))
}

/// Packets that leave in one `sk_buff`: those of a millisecond, at least two (`tcp_tso_autosize`).
fn train(path: &PathView) -> u64 {
    let mss = u64::from(path.mss).max(1);
    ((pace(path) >> 10) / mss).clamp(2, (LARGEST / mss).max(2))
}

/// Memory of a path's data, queued and sent.
pub fn held(path: &PathView) -> u64 {
    let bytes = path.held_bytes();
    let packets = bytes.div_ceil(u64::from(path.mss).max(1));
    // In congestion avoidance a slow path's window has room for one packet half of the time. Measured: 1.3 packets in
    // one.
    let sent = match train(path) {
        2 if path.cwnd >= path.ssthresh => packets * 3 / 4,
        train => packets.div_ceil(train),
    };
    bytes + path.queued_bytes + SK_BUFF * (sent + path.queued_bytes.div_ceil(PIECE))
}

/// The same once what waits for the path has left, as far as its window has room: in trains, too.
pub fn held_once_pushed(path: &PathView) -> u64 {
    let mss = u64::from(path.mss).max(1);
    let room = u64::from(path.cwnd.saturating_sub(path.in_flight));
    let leaving = path.queued_bytes.min(room * mss);
    let waits = PathView { queued_bytes: path.queued_bytes - leaving, ..*path };
    held(&waits) + leaving + SK_BUFF * leaving.div_ceil(mss).div_ceil(train(path))
}

/// The greatest send memory of a subflow (`tcp_wmem`, third value) with which a connection holds `send_buffer` bytes:
/// all its `subflows` together, its own memory and the last piece, which may begin while one byte of memory is left.
pub const fn subflow_memory(send_buffer: u64, subflows: usize) -> u64 {
    let subflows = if subflows == 0 { 1 } else { subflows as u64 };
    let share = send_buffer.saturating_sub(OWN + PIECE) / subflows;
    if share > OWN { share } else { OWN }
}

/// The kernel's memory per packet of the window: a power of two that holds headers and payload, and the `sk_buff`.
fn per_packet(mss: u32) -> u64 {
    (u64::from(mss) + 576).next_power_of_two() + 256
}

/// A subflow's send memory, by the window for which it was computed. It never shrinks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendMemory(u32);

impl SendMemory {
    /// Bytes: `windows` times its window, at most the path's share of the send buffer.
    pub fn size(self, path: &PathView, view: &View, windows: f64) -> u64 {
        let packets = u64::from(self.0.max(INITIAL_WINDOW));
        ((windows * (packets * per_packet(path.mss)) as f64) as u64)
            .min(subflow_memory(view.send_buffer(), view.known_paths()))
    }

    /// An acknowledgment came while the writer waited: the memory follows the window. The kernel skips that while
    /// queued data fills the window (`tcp_should_expand_sndbuf`); after the first burst, packets that make no pair
    /// leave room often enough (measured: it lags behind by a twentieth).
    pub fn follow(&mut self, path: &PathView) {
        if self.0 > 0 || path.in_flight + path.queued < path.cwnd {
            self.0 = self.0.max(path.cwnd);
        }
    }
}

/// The application, as far as the connection's send memory lets it write. Data written beyond that waits.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    upto: u64,
    asleep: bool,
    /// Two thirds of the memory are in use, so that a poll finds it not writable.
    scarce: bool,
    /// The pieces of what it wrote, if what is bound is final.
    fragments: Fragments,
}

impl Writer {
    /// Writes piece by piece while there is memory; then sleeps until a third of it is free. While no data is under way
    /// that could wake it, it writes a piece regardless. `subflows`: the sum of their send memories.
    pub fn write(&mut self, view: &View, subflows: u64) {
        let limit = subflows + OWN;
        let unacked = self.upto.saturating_sub(view.data_acked());
        self.scarce = view.sender().binding == Binding::Final && unacked > limit / 3 * 2;
        let under_way = view.paths().iter().any(|p| p.held_bytes() + p.queued_bytes > 0);
        if self.asleep && under_way && unacked > limit / 3 * 2 {
            return;
        }
        if view.sender().binding == Binding::Final {
            self.upto = self.fill(view, limit, !under_way);
        } else {
            let pieces = limit.saturating_sub(unacked).div_ceil(PIECE).max(u64::from(!under_way));
            self.upto = view.written().min(view.data_acked().max(self.upto) + pieces * PIECE);
        }
        self.asleep = self.upto < view.written() && self.upto.saturating_sub(view.data_acked()) >= limit;
    }

    /// Writes pieces while less than `limit` bytes are not acknowledged, and at least one if it `must`. Returns their end.
    fn fill(&mut self, view: &View, limit: u64, mut must: bool) -> u64 {
        let acked = view.data_acked();
        self.fragments.acked(acked);
        let waits = view.backlog().first().is_some_and(|next| next.start < self.fragments.end());
        let mut pending = waits;
        while self.fragments.end() < view.written() && (must || self.fragments.end() - acked < limit) {
            // The application writes a message at a time, and each is given to paths before the next.
            let message = view.message_at(self.fragments.end()).map_or(u64::MAX, |message| message.end);
            self.fragments.write(view.written().min(message), pending);
            pending = waits || self.fragments.end() < message;
            must = false;
        }
        self.fragments.end()
    }

    /// The rest, from `offset` on, of the piece that holds it: it is retransmitted as a whole.
    pub fn piece(&self, view: &View, offset: u64) -> Range {
        match view.sender().binding {
            Binding::Final => self.fragments.from(offset),
            Binding::Revocable => Range::new(offset, piece_end(offset)),
        }
    }

    /// First offset that it has not written.
    pub fn upto(&self) -> u64 {
        self.upto
    }

    /// Whether it waits for memory, or polled and found little (`mptcp_check_writeable`).
    pub fn waits(&self, view: &View) -> bool {
        self.asleep || self.scarce || view.send_buffer_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, path};
    use anabranch_plugin::schedule::Assignment;
    use anabranch_units::PathId;

    /// A view of `paths`, of which all is written.
    fn view(paths: &[PathView]) -> Assignment {
        let mut view = Assignment::new(false);
        paths.iter().for_each(|p| view.set_path(*p));
        view.set_written(1 << 40);
        view
    }

    /// From `ss` of a kernel's subflows (packets in flight, bytes not sent, RTT, window): their `w`.
    #[test]
    fn what_a_path_holds() {
        for (in_flight, queued_bytes, rtt, window, slow_start, seen) in [
            (351, 528, 203, 734, true, 539_888u64),
            (24, 12_256, 105, 24, true, 57_504),
            (71, 143_960, 203, 71, true, 276_176),
            (92, 191_216, 201, 92, false, 392_344),
        ] {
            let ssthresh = if slow_start { u32::MAX } else { 88 };
            let p = PathView { queued_bytes, ssthresh, ..path(0, rtt, window, in_flight) };
            let error = held(&p).abs_diff(seen) as f64 / seen as f64;
            assert!(error < 0.1, "{} instead of {seen}", held(&p));
        }
        assert_eq!(held(&path(0, 20, 10, 0)), 0);
        assert!(held(&PathView { srtt: None, mss: 0, ..path(0, 20, 10, 3) }) > 0);
    }

    /// From a kernel's tracepoint (`mptcp_subflow_get_send`) while data was SACKed: 29 658 bytes of memory on average, where
    /// 20 672 bytes waited for an acknowledgment, 7806 of them not SACKed; never less than waited.
    #[test]
    fn what_the_peer_sacked_is_held_until_an_acknowledgment_covers_it() {
        let sacked = PathView { uncleared_bytes: 15 * MSS, ..path(0, 200, 20, 6) };
        assert_eq!(held(&sacked), held(&path(0, 200, 20, 15)));
    }

    /// From the tracepoint `mptcp_subflow_get_send` of a kernel that wrote 262 144 bytes at once: when it turned from the first path,
    /// whose window is 52, that held 67 120 bytes, and at the next choice 85 424.
    #[test]
    fn what_has_left_is_held_in_trains() {
        let burst = PathView { queued: 47, queued_bytes: 65_456, ssthresh: 50, ..path(0, 40, 52, 0) };
        assert_eq!((held(&burst), held_once_pushed(&burst)), (67_120, 85_424));
        let narrow = PathView { cwnd: 10, ..burst };
        assert_eq!(held_once_pushed(&narrow), 65_456 + (5 + 2) * SK_BUFF);
    }

    #[test]
    fn memory_follows_the_window_once_the_first_burst_is_gone() {
        let full = PathView { queued: 80, ..path(0, 100, 100, 20) };
        let view = view(&[full]);
        let mut memory = SendMemory::default();
        memory.follow(&full);
        assert_eq!(memory.size(&full, &view, 2.0), 46_080);
        memory.follow(&PathView { queued: 79, ..full });
        assert_eq!(memory.size(&full, &view, 2.0), 100 * 4608);
        memory.follow(&path(0, 100, 20, 0));
        assert_eq!(memory.size(&full, &view, 2.0), 100 * 4608, "it never shrinks");
        let filled = PathView { cwnd: 200, queued: 200, ..full };
        memory.follow(&filled);
        assert_eq!(memory.size(&filled, &view, 2.0), 200 * 4608);
        // Large frames fit.
        assert!(SendMemory::default().size(&PathView { mss: 8960, ..full }, &view, 2.0) > 20 * 8960);
    }

    #[test]
    fn each_path_has_its_share_of_the_send_buffer() {
        let p = path(0, 100, 1000, 0);
        let mut view = view(&[p]);
        let mut memory = SendMemory::default();
        memory.follow(&p);
        view.set_send_buffer(1 << 20, 2);
        // With the connection's own 4096 bytes and a last piece, both add up to 1 MiB.
        assert_eq!(memory.size(&p, &view, 2.0), ((1 << 20) - 4096 - 32_728) / 2);
        assert_eq!((subflow_memory(0, 0), subflow_memory(u64::MAX, 1)), (4096, u64::MAX - 4096 - 32_728));
    }

    #[test]
    fn the_writer_sleeps_until_a_third_is_free() {
        let p = path(0, 100, 10, 10);
        let mut view = view(&[p]);
        let mut writer = Writer::default();
        writer.write(&view, 46_080);
        // 50 176 bytes: the second piece begins within them.
        assert_eq!((writer.upto(), writer.waits(&view)), (2 * PIECE, true));
        view.on_data_acked(2 * PIECE - 33_451);
        writer.write(&view, 46_080);
        assert_eq!((writer.upto(), writer.waits(&view)), (2 * PIECE, true));
        view.on_data_acked(2 * PIECE - 33_450);
        writer.write(&view, 46_080);
        assert_eq!((writer.upto(), writer.waits(&view)), (3 * PIECE, true));
        // The subflow acknowledged everything, the connection has not: nothing would wake the writer.
        view.path_mut(PathId(0)).unwrap().in_flight_bytes = 0;
        writer.write(&view, 46_080);
        assert_eq!(writer.upto(), 4 * PIECE);
    }

    #[test]
    fn the_writer_writes_no_more_than_there_is() {
        let mut view = Assignment::new(false);
        view.set_written(3 * MSS);
        let mut writer = Writer::default();
        writer.write(&view, 1 << 20);
        assert_eq!((writer.upto(), writer.waits(&view)), (3 * MSS, false));
        // With the last byte it is done, however full the memory is.
        writer.write(&view, 0);
        assert!(!writer.waits(&view));
        view.set_buffer_full(true);
        assert!(writer.waits(&view));
    }

    #[test]
    fn packets_that_leave_in_trains_share_their_memory() {
        // 280 kB/s: a millisecond is less than two packets.
        let p = PathView { pacing: None, ..path(0, 200, 40, 40) };
        assert_eq!(held(&PathView { ssthresh: u32::MAX, ..p }), 40 * MSS + 20 * SK_BUFF, "two by two");
        assert_eq!(
            held(&PathView { ssthresh: 40, ..p }),
            40 * MSS + 30 * SK_BUFF,
            "in congestion avoidance 1.3 by 1.3"
        );
    }
}
