//! A middlebox takes the MPTCP options off the packets of one direction, or of both, from any packet on (RFC 8684 §3.7).

use crate::common::pair::{Fate, Pair};
use crate::common::solo::{Build, Solo};
use crate::common::{SERVER_PORT, at, ms, pattern, plain_stamps};
use anabranch_engine::connection::ConnectionEvent;
use anabranch_engine::{Settings, TcpSettings};
use anabranch_trace::CloseReason;
use anabranch_units::Side;
use anabranch_wire::{Flags, MptcpOption, Options, Packet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of each stream.
const REQUEST: usize = 500;
const ANSWER: usize = 1_500_000;

/// A packet without its MPTCP options.
pub fn stripped(p: &Packet) -> Packet {
    let mut bare = p.clone();
    let old = &p.segment.options;
    bare.segment.options = Options::new();
    let new = &mut bare.segment.options;
    old.mss().map(|mss| new.set_mss(mss));
    old.window_scale().map(|shift| new.set_window_scale(shift));
    old.timestamps().map(|stamps| new.set_timestamps(stamps));
    let _ = old.sack_permitted() && new.set_sack_permitted();
    new.set_sack(old.sack());
    bare
}

/// The application's use of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    /// The client sends a request, and the server the answer.
    Download,
    /// The server sends as soon as it has accepted the connection; the client never writes.
    Push,
    /// The client sends, and the server never writes.
    Upload,
    /// Both send as soon as they can.
    Both,
}

/// A place at which options are stripped.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The side that sent the packet; `None` for both.
    from: Option<Side>,
    /// The path; `None` for all.
    path: Option<u8>,
    /// The first packet that is affected, of those that match, from 0 on.
    first: u32,
}

/// A transfer over `paths` paths, and the end of both streams.
fn play(paths: u8, buffer: u64, traffic: Traffic, place: Place) -> Pair {
    let settings = Settings { recv_buffer: buffer, send_buffer: buffer, ..plain_stamps() };
    let mut pair = Pair::new(paths, settings.clone(), settings);
    let mut seen = 0;
    pair.hook = Box::new(move |_, side, path, p| {
        if place.from.is_some_and(|from| from != side) || place.path.is_some_and(|at| at != path) {
            return Fate::Pass;
        }
        seen += 1;
        if seen > place.first { Fate::Become(vec![stripped(p)]) } else { Fate::Pass }
    });
    match traffic {
        Traffic::Download => {
            pair.write(Side::Client, pattern(0, REQUEST), false);
            (1..=300).find(|n| pair.run(at(n * 10)).server.got.len() == REQUEST);
            // Its acknowledgment has left alone.
            pair.run(pair.now + ms(100));
            pair.write(Side::Server, pattern(0, ANSWER), true);
        }
        Traffic::Push => _ = pair.write(Side::Server, pattern(0, ANSWER), true),
        Traffic::Upload => _ = pair.write(Side::Client, pattern(0, ANSWER), true),
        Traffic::Both => {
            pair.write(Side::Server, pattern(0, ANSWER), true);
            pair.write(Side::Client, pattern(0, ANSWER), true);
        }
    }
    pair.run(at(600_000));
    pair
}

/// The bytes that each side is to get.
fn due(traffic: Traffic) -> [usize; 2] {
    match traffic {
        Traffic::Download => [ANSWER, REQUEST],
        Traffic::Push => [ANSWER, 0],
        Traffic::Upload => [0, ANSWER],
        Traffic::Both => [ANSWER, ANSWER],
    }
}

/// The fault at the end of a transfer: everything arrived and both ends know, or neither claims so.
fn fault(pair: &Pair, traffic: Traffic, must_arrive: bool) -> Option<String> {
    let got = [&pair.client.got, &pair.server.got];
    let ends = [pair.client.closed(), pair.server.closed()];
    let lens = got.map(Vec::len);
    let whole = lens == due(traffic);
    let finished = ends.map(|end| end == Some(CloseReason::Finished));
    let told = format!("{lens:?} bytes, {ends:?}");
    if got.iter().any(|got| got[..] != pattern(0, got.len())[..]) {
        Some(format!("wrong bytes: {told}"))
    } else if ends.contains(&None) {
        Some(format!("no end: {told}"))
    } else if must_arrive && !(whole && finished == [true; 2]) {
        Some(format!("not all: {told}"))
    } else if finished[0] != finished[1] || finished[0] && !whole {
        Some(format!("the ends disagree: {told}"))
    } else {
        None
    }
}

/// The last packet from which on options may be stripped before a side has had both a mapping and a DATA_ACK from the other: plain
/// TCP must continue.
fn last_of_opening(traffic: Traffic, from: Option<Side>) -> u32 {
    match (from, traffic) {
        // SYN/ACK; the acknowledgment of the request; the first of the answer.
        (Some(Side::Server), Traffic::Download) => 2,
        // SYN/ACK; the first data, or the first acknowledgment.
        (Some(Side::Server), Traffic::Push | Traffic::Upload) => 1,
        // SYN; third ACK; request; the acknowledgment of the first of the answer.
        (Some(Side::Client), Traffic::Download) => 3,
        // SYN; third ACK; the first data, or the first acknowledgment.
        (Some(Side::Client), Traffic::Push | Traffic::Upload) => 2,
        // A DSS has mapped data of the other direction: its sender is sure of MPTCP.
        (Some(Side::Server), Traffic::Both) => 0,
        (Some(Side::Client), Traffic::Both) => 1,
        (None, Traffic::Download) => 5,
        (None, Traffic::Push | Traffic::Upload | Traffic::Both) => 3,
    }
}

/// From the handshake up to the first data in each direction, plain TCP continues; later every byte arrives or both ends report an error.
#[test]
fn from_any_packet_on() {
    let mut faults = Vec::new();
    for traffic in [Traffic::Download, Traffic::Push, Traffic::Upload, Traffic::Both] {
        for (paths, path) in [(1, None), (2, Some(0)), (2, Some(1)), (2, None), (3, Some(2)), (3, None)] {
            for from in [None, Some(Side::Client), Some(Side::Server)] {
                for first in (0..16).chain([40, 150]) {
                    for buffer in [60_000, 1 << 20] {
                        let place = Place { from, path, first };
                        let pair = play(paths, buffer, traffic, place);
                        // Nothing is agreed on yet, or another path is intact. Before it is joined, one side may be sure of MPTCP, and reset
                        // the only subflow, where the other falls back.
                        let early = path.is_none_or(|path| path == 0) && first <= last_of_opening(traffic, from);
                        let sure = from.is_none() || traffic == Traffic::Both;
                        let joined = paths > 1 && path.is_some_and(|path| path > 0 || !sure || first >= 40);
                        let must = early || joined;
                        if let Some(fault) = fault(&pair, traffic, must) {
                            faults.push(format!("{traffic:?} over {paths}, buffer {buffer}, {place:?}: {fault}"));
                        }
                    }
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}\n{} faults", faults.join("\n"), faults.len());
}

/// The packets of the second path from which a middlebox strips options.
#[derive(Clone, Copy, Debug)]
enum Taken {
    Syn,
    SynAck,
    ThirdAck,
    /// Every packet behind the SYNs, so that the resets have no reason.
    Rest,
    /// Packets with a DSS.
    Data,
}

/// An hour of a connection whose second path loses options; the client writes `bytes` at its start. How many SYNs leave on that path,
/// and how many connections the server's application is handed beside the first.
fn hour(taken: Taken, bytes: usize) -> (usize, usize) {
    let syns = Arc::new(AtomicUsize::new(0));
    let counted = syns.clone();
    let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
    pair.hook = Box::new(move |_, side, path, p| {
        let syn = p.segment.flags.has(Flags::SYN);
        if path != 1 {
            return Fate::Pass;
        }
        counted.fetch_add(usize::from(syn && side == Side::Client), Ordering::Relaxed);
        let hit = match taken {
            Taken::Syn => syn && side == Side::Client,
            Taken::SynAck => syn && side == Side::Server,
            Taken::ThirdAck => !syn && side == Side::Client,
            Taken::Rest => !syn,
            Taken::Data => !syn && p.segment.options.dss().is_some(),
        };
        if hit { Fate::Become(vec![stripped(p)]) } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, bytes), false);
    pair.run(at(3_600_000));
    assert!(pair.server.got == pattern(0, bytes), "{taken:?}: {} bytes", pair.server.got.len());
    let strangers = core::iter::from_fn(|| pair.server.endpoint.poll_accept()).count();
    (syns.load(Ordering::Relaxed), strangers)
}

/// A path that takes joins apart is tried a few times, with growing pauses, and not for ever.
#[test]
fn a_path_that_takes_joins_apart_is_given_up() {
    for (taken, idle, busy, strangers) in [
        (Taken::Syn, 5, 5, 5),
        (Taken::SynAck, 5, 5, 0),
        (Taken::ThirdAck, 1, 1, 0),
        (Taken::Rest, 5, 5, 0),
        (Taken::Data, 1, 5, 0),
    ] {
        assert_eq!(hour(taken, REQUEST), (idle, strangers), "{taken:?}, idle");
        assert_eq!(hour(taken, 20_000_000), (busy, strangers), "{taken:?}, busy");
    }
}

/// The DATA_ACK was stripped from the segment that acknowledges data on the subflow, and comes with the next.
#[test]
fn a_data_ack_with_any_segment_shows_that_options_come() {
    let mut h = Solo::open_server(plain_stamps());
    h.write(&pattern(0, 300));
    h.send(h.seg(1, 301));
    h.send(h.seg(1, 301).dss(h.data_ack(300)));
    h.write(&pattern(300, 100));
    h.send(h.seg(1, 401));
    assert!(h.connection().is_multipath());
}

/// A translator strips ADD_ADDR, beside which no DATA_ACK has room. Data that waited for its delayed acknowledgment when an address
/// came is acknowledged with a DATA_ACK first: without one its sender would fall back alone.
#[test]
fn an_address_is_not_all_that_acknowledges_data() {
    let settings = Settings { tcp: TcpSettings { quick_acks: 0, ..TcpSettings::default() }, ..Settings::default() };
    let mut pair = Pair::new(1, settings.clone(), settings);
    pair.hook = Box::new(|_, _, _, p| {
        let announces = p.segment.options.mptcp().iter().any(|o| matches!(o, MptcpOption::AddAddr(_)));
        let echoes = announces && p.segment.options.dss().is_none() && p.segment.src_port == SERVER_PORT;
        if echoes { Fate::Become(vec![stripped(p)]) } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 1), false).write(Side::Server, pattern(0, 1), false).run(at(25));
    let address = core::net::IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 5]);
    assert!(pair.act(Side::Client, |c, cx| c.announce(cx, 2, address, None)));
    pair.run(at(1_000));
    let fell_back =
        [Side::Client, Side::Server].map(|side| pair.party(side).events.contains(&ConnectionEvent::FellBack));
    assert_eq!(fell_back, [false, false]);
}
