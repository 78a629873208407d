//! The promise of `Finished`, in each protocol, for each end of a connection at each moment: a host that reports it has lost
//! nothing (RFC 9293 §3.6, RFC 8684 §3.3.3, §3.7).

use super::stripping::stripped;
use crate::common::pair::{Fate, Pair};
use crate::common::{at, pattern, plain_stamps, tcp};
use anabranch_engine::Settings;
use anabranch_engine::connection::ConnectionEvent;
use anabranch_trace::CloseReason;
use anabranch_units::{PathId, Side};
use anabranch_wire::Reason;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// The protocol of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    PlainTcp,
    /// The client requests Multipath TCP, and the server does not speak it.
    Refused,
    /// The options of this side's packets are stripped from some packet after its SYN on: the other side may fall back alone.
    StrippedFrom(Side, u32),
    /// The options of all packets are, after the SYNs: both sides fall back.
    Stripped,
    Multipath(u8),
}

impl Protocol {
    const ALL: [Self; 9] = [
        Self::PlainTcp,
        Self::Refused,
        Self::StrippedFrom(Side::Client, 1),
        Self::StrippedFrom(Side::Server, 0),
        Self::StrippedFrom(Side::Client, 2),
        Self::StrippedFrom(Side::Server, 1),
        Self::Stripped,
        Self::Multipath(1),
        Self::Multipath(2),
    ];

    fn settings(self) -> [Settings; 2] {
        match self {
            Self::PlainTcp => [tcp(), tcp()],
            Self::Refused => [plain_stamps(), tcp()],
            _ => [plain_stamps(), plain_stamps()],
        }
    }

    fn paths(self) -> u8 {
        if let Self::Multipath(paths) = self { paths } else { 1 }
    }

    /// Packet `n` of `side` after its SYN loses its options.
    fn strips(self, side: Side, n: u32) -> bool {
        match self {
            Self::Stripped => true,
            Self::StrippedFrom(from, first) => side == from && n >= first,
            _ => false,
        }
    }
}

/// Bytes that client and server write, each before it finishes; a polite server finishes when the client has.
#[derive(Clone, Copy, Debug)]
struct Streams {
    lens: [usize; 2],
    polite: bool,
}

const STREAMS: [Streams; 4] = [
    Streams { lens: [8000, 0], polite: true },
    Streams { lens: [8000, 0], polite: false },
    Streams { lens: [0, 8000], polite: false },
    Streams { lens: [3000, 8000], polite: false },
];

/// The cause of a connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Both applications have finished.
    Orderly,
    ResetPath(Side),
    Withdraw(Side),
    Abort(Side),
    /// Nothing that this side sends arrives any more.
    Mute(Side),
    Dark,
}

const ENDS: [End; 10] = [
    End::Orderly,
    End::ResetPath(Side::Client),
    End::ResetPath(Side::Server),
    End::Withdraw(Side::Client),
    End::Withdraw(Side::Server),
    End::Abort(Side::Client),
    End::Abort(Side::Server),
    End::Mute(Side::Client),
    End::Mute(Side::Server),
    End::Dark,
];

fn begin(protocol: Protocol, streams: Streams, end: End, when: u64) -> Pair {
    let [client, server] = protocol.settings();
    let mut pair = Pair::new(protocol.paths(), client, server);
    let mut sent = [0u32; 2];
    pair.hook = Box::new(move |now, side, _, packet| {
        let late = now >= at(when);
        if late && (end == End::Dark || end == End::Mute(side)) {
            return Fate::Drop;
        }
        let n = &mut sent[usize::from(side == Side::Server)];
        *n += 1;
        // The first is a SYN, or answers one.
        if *n > 1 && protocol.strips(side, *n - 2) { Fate::Become(vec![stripped(packet)]) } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, streams.lens[0]), true);
    pair.server.polite = streams.polite;
    pair.write(Side::Server, pattern(0, streams.lens[1]), !streams.polite);
    pair
}

/// Does what ends the connection. False if it has ended at that side before.
fn act(pair: &mut Pair, end: End) -> bool {
    let (End::ResetPath(side) | End::Withdraw(side) | End::Abort(side)) = end else { return true };
    if pair.party(side).connection().is_none() {
        return false;
    }
    pair.act(side, |c, cx| match end {
        End::ResetPath(_) => {
            c.reset_path(cx, PathId(0), Reason { code: 0, transient: false });
        }
        End::Withdraw(_) => c.withdraw(cx, 0),
        _ => c.abort(cx),
    });
    true
}

/// Plays one connection, and says whether a side had `Finished`. Fails if it had, and the other lacks what it wrote.
fn play(protocol: Protocol, streams: Streams, end: End, when: u64) -> bool {
    let mut pair = begin(protocol, streams, end, when);
    pair.run(at(when));
    let acts = act(&mut pair, end);
    pair.run(at(10_000_000));
    let mut any = false;
    for (n, side) in SIDES.into_iter().enumerate() {
        let peer = pair.party(SIDES[1 - n]);
        let (got, aborted) = (peer.got.len(), peer.closed() == Some(CloseReason::Aborted));
        let fell_back = pair.party(side).events.contains(&ConnectionEvent::FellBack);
        if pair.party(side).closed() != Some(CloseReason::Finished) {
            continue;
        }
        any = true;
        let excused = aborted && acts && end == End::Abort(SIDES[1 - n]);
        assert!(
            got == streams.lens[n] || excused,
            "{protocol:?}, {streams:?}, {end:?} at {when} ms: {side:?} finished, and {got} bytes arrived; fell back: {fell_back}"
        );
    }
    any
}

#[test]
fn finished_is_said_only_when_the_peer_has_everything() {
    for protocol in Protocol::ALL {
        let mut finished = [0; ENDS.len()];
        for streams in STREAMS {
            for (n, end) in ENDS.into_iter().enumerate() {
                let times = if end == End::Orderly { 0..1 } else { 1..26 };
                for time in times {
                    finished[n] += u32::from(play(protocol, streams, end, 7 * time));
                }
            }
        }
        assert!(finished.iter().skip(1).all(|n| *n > 0), "{protocol:?}: {finished:?}");
    }
}
