//! The windows of receive and send buffers: counted as bytes or as memory, tuned, and per subflow.

mod common;

use anabranch_engine::{BufferAccounting, ReceiveWindow, Settings, TcpSettings};
use anabranch_sim::Halt;
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Instant, PathId, Side};
use anabranch_wire::{Flags, Packet};
use common::{Transfer, lossy, path};

/// Unacknowledged data written by the server's application, its sent part, and the windows that the client offered.
#[derive(Debug, Default)]
struct Buffers {
    written: u64,
    sent: u64,
    acked: u64,
    /// The most bytes in the send buffer, and the most sent bytes without DATA_ACK.
    most_written: u64,
    most_sent: u64,
    shift: u8,
    windows: Vec<u64>,
    delivered: u64,
    done: Option<Instant>,
}

impl Recorder for Buffers {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        match (origin.host, event) {
            (Some(Side::Server), Event::Written(range)) => self.written = range.end,
            (Some(Side::Server), Event::DataSent { data, .. }) => self.sent = self.sent.max(data.end),
            (Some(Side::Server), Event::DataAcked(upto)) => self.acked = *upto,
            (Some(Side::Client), Event::Delivered(range)) => {
                self.delivered = range.end;
                self.done = Some(now);
            }
            _ => {}
        }
        self.most_written = self.most_written.max(self.written.saturating_sub(self.acked));
        self.most_sent = self.most_sent.max(self.sent.saturating_sub(self.acked));
    }

    fn packet(&mut self, _now: Instant, host: Side, sent: bool, _path: PathId, packet: &Packet) {
        if host != Side::Client || !sent {
            return;
        }
        if packet.segment.flags.has(Flags::SYN) {
            self.shift = packet.segment.options.window_scale().unwrap_or(0);
        } else {
            self.windows.push(u64::from(packet.segment.window) << self.shift);
        }
    }
}

impl Buffers {
    fn widest(&self) -> u64 {
        self.windows.iter().copied().max().unwrap()
    }
}

/// `size` bytes over `t`'s paths, with buffers of `buffer` bytes; the sender's is `t`'s if it sets one.
fn carried(mut t: Transfer, buffer: u64, size: u64, change: impl FnOnce(&mut TcpSettings)) -> Buffers {
    let send = if t.settings.send_buffer == Settings::default().send_buffer { buffer } else { t.settings.send_buffer };
    (t.settings.recv_buffer, t.settings.send_buffer, t.size) = (buffer, send, Some(size));
    change(&mut t.settings.tcp);
    let mut seen = Buffers::default();
    assert_eq!(t.world().run(Instant::from_millis(120_000), &mut seen), Ok(Halt::Done));
    assert_eq!(seen.delivered, size);
    seen
}

/// 20 Mbit/s and a round trip of 100 ms: 250 KB.
fn long() -> Transfer {
    Transfer::new(vec![path("long", 20_000, 50, 200)])
}

/// Two paths of which the second is much slower.
fn unequal() -> Transfer {
    Transfer::new(vec![lossy("near", 10_000, 5, 100, 0.005), path("far", 2_000, 100, 100)])
}

#[test]
fn tuned_buffers_begin_small_and_grow_with_what_a_round_trip_brings() {
    let all = carried(long(), 4 << 20, 10_000_000, |_| {});
    assert!(all.most_written == 4 << 20 && all.windows[0] >= (4 << 20) - 512);
    let tuned = carried(long(), 4 << 20, 10_000_000, |tcp| tcp.autotune = true);
    assert!(tuned.windows[0] <= 65_535, "{}", tuned.windows[0]);
    // The path holds 250 KB and its queue 290: right-sizing offers at least twice the path's own data. Data that a
    // repaired hole releases at once comes on top of a full path and queue.
    assert!((500_000..2_200_000).contains(&tuned.widest()), "{}", tuned.widest());
    assert!(tuned.most_written < 2_500_000, "{}", tuned.most_written);
    // It costs a round trip or two.
    let (slow, fast) = (tuned.done.unwrap(), all.done.unwrap());
    assert!(slow >= fast && slow.since(fast).as_secs_f64() < 0.5, "{slow} {fast}");
}

#[test]
fn a_slow_path_leaves_tuned_buffers_small() {
    let slow = Transfer::new(vec![path("slow", 1_000, 10, 10)]);
    let tuned = carried(slow, 4 << 20, 1_000_000, |tcp| tcp.autotune = true);
    assert!(tuned.widest() < 128 << 10 && tuned.most_written < 150_000, "{} {}", tuned.widest(), tuned.most_written);
}

#[test]
fn a_kernels_memory_offers_half_of_its_buffer_and_less_while_segments_are_held() {
    let truesize = |tcp: &mut TcpSettings| tcp.buffer_accounting = BufferAccounting::Truesize;
    let bytes = carried(unequal(), 256 << 10, 3_000_000, |_| {});
    let memory = carried(unequal(), 256 << 10, 3_000_000, truesize);
    assert_eq!((bytes.widest() >> 10, memory.widest() >> 10), (256, 128));
    assert!(memory.most_sent <= 128 << 10, "{}", memory.most_sent);
    // 113 buffers of 2304 bytes, each with a segment of 1400.
    assert_eq!((bytes.most_written, memory.most_written), (256 << 10, 113 * 1400));
    // With half of the buffer the two differ: held data takes more memory than its bytes.
    let half = carried(unequal(), 128 << 10, 3_000_000, |_| {});
    assert!(memory.done > half.done, "{:?} {:?}", memory.done, half.done);
}

#[test]
fn with_a_buffer_for_each_subflow_as_much_is_under_way_as_they_hold_together() {
    let roomy = || {
        let mut t = unequal();
        t.settings.send_buffer = 1 << 20;
        t
    };
    let shared = carried(roomy(), 64 << 10, 3_000_000, |_| {});
    let apart = carried(roomy(), 64 << 10, 3_000_000, |tcp| tcp.receive_window = ReceiveWindow::Subflow);
    assert!(shared.most_sent <= 64 << 10, "{}", shared.most_sent);
    assert!(apart.most_sent > 64 << 10 && apart.most_sent <= 128 << 10, "{}", apart.most_sent);
    assert!(apart.widest() <= 64 << 10);
    // Data in one subflow's buffer waits for the other's.
    assert!(apart.windows.iter().any(|window| *window < 16 << 10), "never nearly full");
}

#[test]
fn every_accounting_delivers_everything_through_loss_and_tiny_buffers() {
    for buffer in [3_000, 20_000, 200_000] {
        for n in 0..8 {
            let mut t = unequal();
            t.paths[1] = lossy("far", 2_000, 100, 100, 0.02);
            (t.seed, t.checks.wire) = (n, true);
            carried(t, buffer, 300_000, |tcp| {
                tcp.autotune = n & 1 > 0;
                if n & 2 > 0 {
                    tcp.receive_window = ReceiveWindow::Subflow;
                }
                if n & 4 > 0 {
                    tcp.buffer_accounting = BufferAccounting::Truesize;
                }
            });
        }
    }
}
