//! The memory that a peer can make a connection hold: not much more than the bytes themselves, however they come.

mod common;

use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, Settings};
use anabranch_units::{Rng, SeqNumber};
use anabranch_wire::{DataAck, Dss, Flags, Mapping, MpCapable, MptcpOption, Packet, Segment, crypto};
use bytes::{Bytes, BytesMut};
use common::{SERVER_PORT, at, client_tuple, plain_stamps, setup};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// One test at a time: they share the count of what is allocated.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const ISN: SeqNumber = SeqNumber(7);
const KEY: u64 = 0x0123_4567_89ab_cdef;
/// Memory that is held beside the payload and beside what is in proportion to it.
const CONSTANT: usize = 512 << 10;

/// A server with one connection, whose application reads nothing, and a peer with whatever segments a test sends.
struct Host {
    endpoint: Endpoint,
    handle: Option<Handle>,
    rng: Rng,
    their_isn: SeqNumber,
    their_key: u64,
    before: usize,
}

impl Host {
    fn new(settings: Settings) -> Self {
        let mut endpoint = Endpoint::new(1);
        let mptcp = settings.mptcp;
        endpoint.listen(SERVER_PORT, Box::new(move |_| Some(setup(settings.clone(), Vec::new()))));
        let rng = Rng::stream(3, "server");
        let (their_isn, their_key, before) = (SeqNumber(0), 0, 0);
        let mut host = Self { endpoint, handle: None, rng, their_isn, their_key, before };
        let mut syn = Segment { flags: Flags::SYN, seq: ISN, ..host.segment(0) };
        syn.options.set_window_scale(7);
        let capable =
            |sender_key, receiver_key| MptcpOption::Capable(MpCapable { sender_key, receiver_key, ..MpCapable::OFFER });
        assert!(!mptcp || syn.options.push_mptcp(capable(None, None)));
        let answer = host.send(syn).expect("a SYN/ACK").segment;
        host.their_isn = answer.seq;
        let mut third = host.segment(1);
        if let Some(MptcpOption::Capable(MpCapable { sender_key: Some(key), .. })) = answer.options.mptcp().first() {
            host.their_key = *key;
            assert!(third.options.push_mptcp(capable(Some(KEY), Some(*key))));
        }
        host.send(third);
        // Asked like this, it tells its whole window.
        host.send(host.segment(0)).expect("an acknowledgment");
        host.handle = host.endpoint.poll_accept();
        host.before = MEMORY.current_usage();
        host
    }

    /// An acknowledgment at `offset` of the peer's sequence.
    fn segment(&self, offset: u64) -> Segment {
        Segment {
            src_port: client_tuple(0).local.port(),
            dst_port: SERVER_PORT,
            seq: ISN.at(offset),
            ack: self.their_isn.at(1),
            flags: Flags::ACK,
            window: 0xffff,
            ..Segment::default()
        }
    }

    /// Takes a segment; returns the last answer.
    fn send(&mut self, segment: Segment) -> Option<Packet> {
        let ends = client_tuple(0);
        let packet = Packet { src: ends.local.ip(), dst: ends.remote.ip(), segment };
        let mut cx = Cx { now: at(1), recorder: &mut (), rng: &mut self.rng };
        self.endpoint.handle_packet(&mut cx, &packet);
        let mut answer = None;
        while let Some((_, packet)) = self.endpoint.poll_transmit(&mut cx) {
            answer = Some(packet);
        }
        answer
    }

    /// `payload` at `offset` of the subflow and at `data` of the stream.
    fn send_mapped(&mut self, offset: u64, data: u64, payload: Bytes) -> Option<Packet> {
        let whole = (offset, data, payload.len() as u16, None);
        self.send_part(whole, offset, payload)
    }

    /// `payload` at `offset` of the subflow, with a mapping of more than that: its offset, its place in the stream, its length
    /// and its checksum.
    fn send_part(&mut self, whole: (u64, u64, u16, Option<u16>), offset: u64, payload: Bytes) -> Option<Packet> {
        let mut segment = self.segment(offset);
        let (start, data, len, checksum) = whole;
        let data_seq = crypto::idsn(KEY).at(data + 1).0;
        let mapping = Mapping { data_seq, wide: true, subflow_seq: start as u32, len, checksum };
        let ack = Some(DataAck::Long(crypto::idsn(self.their_key).at(1).0));
        assert!(segment.options.set_dss(Dss { ack, mapping: Some(mapping), data_fin: false }));
        segment.payload = payload;
        self.send(segment)
    }

    fn held(&self) -> usize {
        MEMORY.current_usage() - self.before
    }

    /// No more is held than twice `bytes` and a constant.
    fn holds_little_more_than(&self, bytes: usize) {
        let held = self.held();
        assert!(held <= 2 * bytes + CONSTANT, "{held} bytes for {bytes}");
    }

    /// All that there is to be read.
    fn read(&mut self) -> Vec<u8> {
        let connection = self.endpoint.connection_mut(self.handle.expect("accepted")).expect("open");
        let mut cx = Cx { now: at(1), recorder: &mut (), rng: &mut self.rng };
        let mut all = Vec::new();
        while let Some(bytes) = connection.read(&mut cx) {
            all.extend_from_slice(&bytes);
        }
        all
    }
}

/// The byte at an offset of the stream.
fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

fn stream(from: u64, len: usize) -> Vec<u8> {
    (from..from + len as u64).map(byte).collect()
}

/// Payload as a driver that reads into large buffers has it: the rest of the packet's memory goes with it.
fn payload(from: u64, len: usize) -> Bytes {
    let mut chunk = BytesMut::zeroed(64 << 10);
    chunk[..len].copy_from_slice(&stream(from, len));
    chunk.freeze().slice(..len)
}

const WINDOW: u64 = 256 << 10;

/// A little more than the window: what is offered of it is rounded.
fn window(mptcp: bool) -> Settings {
    Settings { recv_buffer: WINDOW + 2048, mptcp, ..plain_stamps() }
}

#[test]
fn what_nobody_reads() {
    let _alone = alone();
    for mptcp in [false, true] {
        let mut host = Host::new(window(mptcp));
        for n in 0..WINDOW {
            if mptcp {
                host.send_mapped(1 + n, n, payload(n, 1));
            } else {
                host.send(Segment { payload: payload(n, 1), ..host.segment(1 + n) });
            }
        }
        host.holds_little_more_than(WINDOW as usize);
        assert!(host.read() == stream(0, WINDOW as usize));
    }
}

#[test]
fn what_comes_too_early_on_a_subflow() {
    let _alone = alone();
    // Upwards, downwards, every other byte; the first comes last.
    let orders: [fn(u64) -> u64; 3] = [|n| n, |n| WINDOW - n, |n| 2 * n];
    for (which, order) in orders.into_iter().enumerate() {
        let mut host = Host::new(window(false));
        for offset in (1..WINDOW).map(order).filter(|offset| (1..WINDOW).contains(offset)) {
            host.send(Segment { payload: payload(offset, 1), ..host.segment(1 + offset) });
        }
        host.holds_little_more_than(if which < 2 { WINDOW as usize } else { 0 });
        // Data that was not kept comes again.
        let last = host.send(Segment { payload: payload(0, 1), ..host.segment(1) }).expect("an acknowledgment");
        if which < 2 {
            assert_eq!(last.segment.ack, ISN.at(1 + WINDOW), "order {which}");
        }
        for offset in (0..WINDOW).step_by(1024) {
            host.send(Segment { payload: payload(offset, 1024), ..host.segment(1 + offset) });
        }
        assert!(host.read() == stream(0, WINDOW as usize), "order {which}");
    }
}

#[test]
fn what_comes_too_early_in_the_stream() {
    let _alone = alone();
    let orders: [fn(u64) -> u64; 3] = [|n| n, |n| WINDOW - n, |n| 2 * n];
    for (which, order) in orders.into_iter().enumerate() {
        let mut host = Host::new(window(true));
        let mut sub = 1;
        for data in (1..WINDOW).map(order).filter(|data| (1..WINDOW).contains(data)) {
            host.send_mapped(sub, data, payload(data, 1));
            sub += 1;
        }
        host.holds_little_more_than(if which < 2 { WINDOW as usize } else { 0 });
        host.send_mapped(sub, 0, payload(0, 1));
        sub += 1;
        if which < 2 {
            assert!(host.read() == stream(0, WINDOW as usize), "order {which}");
            continue;
        }
        // Data that was not kept comes again, in pieces of another size.
        for data in (0..WINDOW).step_by(1000) {
            let len = (WINDOW - data).min(1000);
            host.send_mapped(sub, data, payload(data, len as usize));
            sub += len;
        }
        assert!(host.read() == stream(0, WINDOW as usize), "order {which}");
    }
}

#[test]
fn pieces_of_any_size_with_holes_between_them() {
    let _alone = alone();
    for len in [2, 100, 255, 256, 511, 512, 1000] {
        let mut host = Host::new(window(true));
        let (mut sub, mut bytes) = (1, 0);
        for data in (len..WINDOW - len).step_by(2 * len as usize) {
            // Their memory is their own: that is between the driver and its buffers.
            host.send_mapped(sub, data, Bytes::from(stream(data, len as usize)));
            sub += len;
            bytes += len as usize;
        }
        host.holds_little_more_than(bytes);
        for data in (0..WINDOW).step_by(1000) {
            let part = (WINDOW - data).min(1000);
            host.send_mapped(sub, data, payload(data, part as usize));
            sub += part;
        }
        assert!(host.read() == stream(0, WINDOW as usize), "pieces of {len}");
    }
}

#[test]
fn what_waits_for_its_checksum() {
    let _alone = alone();
    let mut host = Host::new(Settings { checksum: true, ..window(true) });
    let text = Bytes::from(stream(0, 60_000));
    let sum = anabranch_wire::dss_checksum(crypto::idsn(KEY).at(1).0, 1, 60_000, &text);
    for n in 0..59_999 {
        host.send_part((1, 0, 60_000, Some(sum)), 1 + n, payload(n, 1));
    }
    assert_eq!(host.read(), []);
    let held = host.held();
    assert!(held <= 150_000, "{held} bytes for 60,000");
    host.send_part((1, 0, 60_000, Some(sum)), 60_000, payload(59_999, 1));
    assert!(host.read() == text);
}

#[test]
fn what_waits_for_its_mapping() {
    let _alone = alone();
    let mut host = Host::new(window(true));
    // The first byte has one; the others come before theirs.
    host.send_mapped(1, 0, payload(0, 1));
    for n in 1..1000 {
        let mut segment = Segment { payload: payload(n, 1), ..host.segment(1 + n) };
        let ack = Some(DataAck::Long(crypto::idsn(host.their_key).at(1).0));
        assert!(segment.options.set_dss(Dss { ack, mapping: None, data_fin: false }));
        host.send(segment);
    }
    let held = host.held();
    assert!(held <= 300_000, "{held} bytes for 1000");
    host.send_part((2, 1, 1000, None), 1001, payload(1000, 1));
    assert!(host.read() == stream(0, 1001));
}
