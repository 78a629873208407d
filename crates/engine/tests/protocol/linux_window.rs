//! `HostModel::Linux`: how a Linux kernel counts the receive window, as receiver and as sender.

use crate::common::pair::{Fate, Pair};
use crate::common::solo::{Build, PEER_KEY, Solo, dss};
use crate::common::{at, pattern, plain_stamps, setup, tcp};
use anabranch_engine::connection::Setup;
use anabranch_engine::schedule::{PathView, Round, Scheduler};
use anabranch_engine::{BufferAccounting, HostModel, Settings, TcpSettings};
use anabranch_trace::{Event, Violation};
use anabranch_units::{Duration, PathId, Rng, SeqNumber, Side};
use anabranch_wire::{DataAck, SackBlock};

fn linux(settings: Settings) -> Settings {
    Settings { receiver_model: HostModel::Linux, ..settings }
}

/// The peer sends `len` bytes of the data sequence on a path at `ms`; the DATA_ACK and window of the answer on that path.
pub fn take(h: &mut Solo, ms: u64, path: u8, seq: u64, data: u64, len: usize) -> (u64, u64) {
    h.at(ms).clear();
    h.send_on(path, h.seg_on(path, seq, 1).data(&pattern(data, len)).dss(h.mapped(0, data, seq, len as u16)));
    let answer = h.recv();
    let Some(DataAck::Long(number)) = dss(&answer).ack else { panic!("no DATA_ACK: {answer:?}") };
    (number.wrapping_sub(Solo::peer_number(0)), u64::from(answer.window))
}

#[test]
fn what_waits_out_of_order_takes_of_the_window() {
    // Whole units of 128 bytes, in which a kernel offers.
    const LEN: usize = 1024;
    for (model, behind_a_hole, second, filled) in
        [(HostModel::Linux, 30_976, 29_952, 27_904), (HostModel::Rfc, 32_000, 30_976, 27_904)]
    {
        let mut h = Solo::open_server(Settings { recv_buffer: 32_000, receiver_model: model, ..plain_stamps() });
        h.join(1);
        assert_eq!(take(&mut h, 10, 0, 1, 0, LEN), (1024, 30_976), "what is not read yet does so with both");
        assert_eq!(h.read().len(), LEN);
        assert_eq!(take(&mut h, 20, 1, 1, 3072, LEN), (1024, behind_a_hole));
        // The edge that was promised stands, whatever is held.
        assert_eq!(take(&mut h, 30, 1, 1025, 4096, LEN), (1024, behind_a_hole));
        assert_eq!(take(&mut h, 40, 0, 1025, 1024, LEN), (2048, second), "{model:?}");
        // The hole is filled: all is free but what is not read.
        assert_eq!(take(&mut h, 50, 0, 2049, 2048, LEN), (5120, filled), "{model:?}");
        assert_eq!(h.read().len(), 4 * LEN);
        assert_eq!(take(&mut h, 60, 0, 3073, 5120, LEN), (6144, 30_976));
    }
}

#[test]
fn out_of_order_data_that_ends_beyond_the_window_is_dropped_whole() {
    for (model, kept) in [(HostModel::Linux, 4094), (HostModel::Rfc, 4099)] {
        let mut h = Solo::open_server(Settings { recv_buffer: 4096, receiver_model: model, ..plain_stamps() });
        h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 4094, 1, 5)));
        assert!(h.log.violated(Violation::BeyondWindow));
        // Its subflow acknowledged it.
        let (_, ack, _) = h.recv_numbers();
        assert_eq!(ack, 6);
        let mut got = 0;
        for (n, len) in [(0, 1000), (1, 1000), (2, 1000), (3, 1094)] {
            let (seq, data) = (6 + n * 1000, n * 1000);
            h.send(h.seg(seq, 1).data(&pattern(data, len)).dss(h.mapped(0, data, seq, len as u16)));
            got += h.read().len();
        }
        assert_eq!(got, kept, "{model:?}");
    }
}

#[test]
fn out_of_order_data_up_to_the_edge_of_the_window_is_kept() {
    let mut h = Solo::open_server(linux(Settings { recv_buffer: 4000, ..plain_stamps() }));
    h.send(h.seg(1, 1).data(&pattern(3000, 1000)).dss(h.mapped(0, 3000, 1, 1000)));
    h.send(h.seg(1001, 1).data(&pattern(0, 1000)).dss(h.mapped(0, 0, 1001, 1000)));
    h.send(h.seg(2001, 1).data(&pattern(1000, 2000)).dss(h.mapped(0, 1000, 2001, 2000)));
    assert_eq!(h.read(), pattern(0, 4000));
}

#[test]
fn half_of_the_memory_counts_until_every_subflow_has_brought_data() {
    // 1400 bytes of payload take 2304 bytes of memory: 32 000 · 2304 / 2800 = 26 331, in units of 128.
    let mut h = Solo::open_server(linux(Settings { recv_buffer: 32_000, mss: 1400, ..plain_stamps() }));
    h.join(1);
    assert_eq!(take(&mut h, 10, 0, 1, 0, 1400), (1400, 26_368 - 1400));
    h.read();
    assert_eq!(take(&mut h, 20, 1, 1, 1400, 1400), (2800, 30_720));
}

#[test]
fn the_peer_is_told_when_the_window_doubles() {
    let mut h = Solo::tcp_server(linux(Settings { recv_buffer: 8192, ..tcp() }));
    for n in 0..8 {
        h.send(h.seg(1 + n * 1024, 1).data(&pattern(n * 1024, 1024)));
    }
    assert_eq!(h.sent.back().map(|(_, p)| p.segment.window), Some(0));
    h.clear();
    let mut told = Vec::new();
    for _ in 0..8 {
        h.app(|c, cx| c.read(cx));
        told.push(h.sent.pop_front().map(|(_, p)| p.segment.window));
    }
    let expected = [Some(1024), Some(2048), None, Some(4096), None, None, None, Some(8192)];
    assert_eq!(told, expected);
}

#[test]
fn what_came_since_the_last_offer_takes_of_it() {
    let tcp_settings = TcpSettings { quick_acks: 0, ..tcp().tcp };
    let mut h = Solo::tcp_server(linux(Settings { recv_buffer: 8192, tcp: tcp_settings, ..tcp() }));
    // The sixth segment was acknowledged, and 2048 bytes were offered; the seventh waits for the delayed acknowledgment.
    for n in 0..7 {
        h.send(h.seg(1 + n * 1024, 1).data(&pattern(n * 1024, 1024)));
    }
    assert_eq!(h.sent.back().map(|(_, p)| p.segment.window), Some(2048));
    h.clear();
    // 1024 bytes are left of the offer, and twice as many are free.
    h.app(|c, cx| c.read(cx));
    assert_eq!(h.recv().window, 2048);
}

#[test]
fn plain_tcp_counts_what_waits_behind_its_own_holes() {
    let mut h = Solo::tcp_server(linux(Settings { recv_buffer: 32_000, ..tcp() }));
    h.send(h.seg(1, 1).data(&pattern(0, 1000)));
    h.read();
    for from in [2000, 4000] {
        h.send(h.seg(1 + from, 1).data(&pattern(from, 1000)));
    }
    h.clear();
    // The first hole is filled, and 1000 bytes wait behind the second.
    h.send(h.seg(1001, 1).data(&pattern(1000, 1000)));
    let (_, ack, answer) = h.recv_numbers();
    assert_eq!((ack, answer.window), (3001, 29_104), "2000 bytes are not read, 1000 held: no further than 32 104");
}

#[test]
fn a_duplicate_acknowledgment_does_not_shrink_the_window_that_a_linux_sender_adds() {
    for (model, edge) in [(HostModel::Linux, 66_535), (HostModel::Rfc, 65_535)] {
        let mut h = Solo::open_server(Settings { sender_model: model, ..plain_stamps() });
        h.write(&pattern(0, 10_000)).clear();
        // The subflow's acknowledgment stands still, the data's moves: the known window, 65 535 bytes, is added to it.
        h.send(h.seg(1, 1).window(1000).dss(h.data_ack(1000)));
        assert_eq!(h.connection().view().window_edge(), edge, "{model:?}");
        // One that moves brings its own.
        h.send(h.seg(1, 1001).window(3000).dss(h.data_ack(2000)));
        h.send(h.seg(1, 1001).window(2000).dss(h.data_ack(9000)));
        assert_eq!(h.connection().view().window_edge(), edge, "{model:?}");
    }
}

#[test]
fn a_linux_sender_holds_what_was_sacked_until_an_acknowledgment_covers_it() {
    for (model, held) in [(HostModel::Linux, [3000, 3000, 1000]), (HostModel::Rfc, [3000, 2000, 1000])] {
        let mut h = Solo::open_server(Settings { sender_model: model, ..plain_stamps() });
        h.write(&pattern(0, 3000));
        let seen = |h: &Solo| h.connection().view().path(PathId(0)).map(PathView::held_bytes).unwrap();
        let sent = seen(&h);
        let at = |offset: u32| SeqNumber(h.isn[0].wrapping_add(offset));
        let block = SackBlock { start: at(1001), end: at(2001) };
        let mut sacked = h.seg(1, 1).dss(h.data_ack(0));
        sacked.options.set_sack(&[block]);
        h.send(sacked);
        let second = seen(&h);
        h.send(h.seg(1, 2001).dss(h.data_ack(0)));
        assert_eq!([sent, second, seen(&h)], held, "{model:?}");
    }
}

/// A Linux sender adds a DATA_ACK and the window of the subflow that it came on, of which it takes a smaller one only with an
/// acknowledgment of more.
#[test]
fn an_acknowledgment_that_keeps_the_window_of_its_subflow_acknowledges_no_more_than_was_promised() {
    const LEN: usize = 1024;
    let mut h = Solo::open_server(Settings { recv_buffer: 32_000, ..plain_stamps() });
    h.join(1);
    let edge = |read: u64| read + 32_000;
    assert_eq!(take(&mut h, 10, 1, 1, 0, LEN), (1024, 30_976));
    h.read();
    for n in 0..4 {
        let taken = 1024 * (n + 2);
        assert_eq!(take(&mut h, 20 + n, 0, 1 + n * 1024, (n + 1) * 1024, LEN), (taken, edge(1024) - taken));
    }
    // A copy on path 1, where 30 976 were offered last.
    assert_eq!(take(&mut h, 30, 1, 1, 0, LEN), (edge(1024) - 30_976, edge(1024) - 5120));
    // With new data it brings a window of its own.
    assert_eq!(take(&mut h, 40, 1, 1025, 5120, LEN), (6144, edge(1024) - 6144));
    assert_eq!(take(&mut h, 50, 1, 1, 0, LEN), (6144, edge(1024) - 6144));
    // A wider one counts in any case.
    h.read();
    assert_eq!(take(&mut h, 60, 1, 1, 0, LEN), (6144, 32_000));
}

/// A receiver that counts as Linux does acknowledges as Linux does.
#[test]
fn a_receiver_that_counts_memory_acknowledges_all() {
    let tcp = TcpSettings { buffer_accounting: BufferAccounting::Truesize, ..plain_stamps().tcp };
    let mut h = Solo::open_server(Settings { recv_buffer: 64_000, tcp, ..plain_stamps() });
    h.join(1);
    take(&mut h, 10, 1, 1, 0, 1024);
    for n in 1..5 {
        take(&mut h, 10 + n, 0, 1 + (n - 1) * 1024, n * 1024, 1024);
    }
    assert_eq!(take(&mut h, 30, 1, 1, 0, 1024).0, 5 * 1024);
}

#[test]
fn behind_the_end_of_the_stream_all_is_acknowledged() {
    let mut h = Solo::open_server(Settings { recv_buffer: 32_000, ..plain_stamps() });
    h.join(1);
    take(&mut h, 10, 0, 1, 0, 1000);
    h.clear();
    let fin = h.data_fin(0, 1000);
    h.send_on(1, h.seg_on(1, 1, 1).dss(fin));
    assert_eq!(dss(&h.recv()).ack, Some(DataAck::Long(Solo::peer_number(1001))));
}

/// 600,000 bytes of a Linux sender over paths of unequal delays with random losses, to an application that reads at random times; how
/// often something came beyond the window. None of it is lost.
fn beyond_a_slow_reader(seed: u64) -> usize {
    let client = Settings { sender_model: HostModel::Linux, ..plain_stamps() };
    let mut pair = Pair::new(2, client, Settings { recv_buffer: 64_000, ..plain_stamps() });
    pair.delays = [2 + seed % 4 * 10, 30 + seed % 3 * 40, 9, 9].map(Duration::from_millis);
    let (mut losses, mut reads) = (Rng::stream(seed, "losses"), Rng::stream(seed, "reads"));
    let rate = 20 + seed % 6 * 12;
    pair.hook = Box::new(move |_, side, _, packet| {
        let data = side == Side::Client && !packet.segment.payload.is_empty();
        if data && losses.below(rate) == 0 { Fate::Drop } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 600_000), true);
    for step in 1..6000 {
        pair.server.reads = false;
        pair.run(at(5 * step));
        let pieces = if reads.below(1 + seed % 7) == 0 { 1 + reads.below(12) } else { 0 };
        for _ in 0..pieces {
            let piece = pair.server.handle.and_then(|_| pair.act(Side::Server, |c, cx| c.read(cx)));
            pair.server.got.extend(piece.into_iter().flatten());
        }
        if pair.server.got.len() == 600_000 {
            break;
        }
    }
    assert!(pair.server.got == pattern(0, 600_000), "{} bytes", pair.server.got.len());
    let beyond = |event: &Event| matches!(event, Event::Violation(Violation::BeyondWindow));
    pair.server.log.0.iter().filter(|(_, event)| beyond(event)).count()
}

#[test]
fn a_linux_sender_stays_in_the_window_of_a_slow_reader() {
    // If duplicate acknowledgments acknowledge all data, 42, 119 and 106 segments come beyond the window.
    for seed in [8, 24, 52] {
        assert_eq!(beyond_a_slow_reader(seed), 0, "seed {seed}");
    }
}

/// As a kernel fills its peer's window: to the last byte.
#[derive(Debug)]
struct Append;

impl Scheduler for Append {
    fn schedule(&mut self, round: &mut Round<'_>) {
        while round.append(PathId(0), round.window_edge()).is_some() {}
    }
    fn serves_lone_path(&self) -> bool {
        true
    }
}

#[test]
fn of_two_segments_below_the_mss_at_the_end_of_what_waits_one_is_under_way() {
    let tcp = TcpSettings { nagle: true, ..plain_stamps().tcp };
    let settings = Settings { sender_model: HostModel::Linux, tcp, ..plain_stamps() };
    let scheduler = || Box::new(Append) as Box<dyn Scheduler>;
    let make = move || Setup { scheduler: scheduler(), ..setup(settings.clone(), Vec::new()) };
    let mut h = Solo::server_with(make);
    h.send(h.syn(0).window(1500).with(Solo::capable(None, None))).clear();
    h.send(h.seg(1, 1).window(1500).with(Solo::capable(Some(PEER_KEY), Some(h.key))));
    h.send(h.seg(1, 1).window(1500).dss(h.data_ack(0))).clear();
    let left = |h: &mut Solo| -> Vec<usize> { h.sent.drain(..).map(|(_, p)| p.segment.payload.len()).collect() };
    h.write(&pattern(0, 50_000));
    assert_eq!(left(&mut h), [1000, 500], "to the last byte");
    // 300 bytes more are admitted: they wait for the 500.
    h.send(h.seg(1, 1001).window(800).dss(h.data_ack(1000)));
    assert_eq!(left(&mut h), []);
    h.send(h.seg(1, 1501).window(300).dss(h.data_ack(1500)));
    assert_eq!(left(&mut h), [300]);
}
