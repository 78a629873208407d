//! Segments that a peer would not send, thrown at a transfer under way: no panic, no endless work, and the stream of
//! the true peer arrives intact.

mod common;

use anabranch_engine::{Settings, TcpSettings};
use anabranch_trace::Event;
use anabranch_units::{SeqNumber, Side};
use anabranch_wire::{
    AddAddr, DataAck, Ecn, Flags, MpCapable, MpJoin, MptcpOption, Options, Packet, Reason, SackBlock, Segment,
    Timestamps,
};
use common::pair::{Fate, Pair};
use common::{at, host, pattern, plain_stamps, setup};
use proptest::prelude::*;

/// One change to a copy of a segment under way.
#[derive(Clone, Debug)]
enum Change {
    Seq(i32),
    Ack(i32),
    Flags(u8),
    Ecn(u8),
    Window(u16),
    Cut(usize),
    NoOptions,
    Stamps(i32),
    Sack(i32, i32),
    DataAck(i64),
    Option(MptcpOption),
}

fn near() -> impl Strategy<Value = i32> {
    prop_oneof![-3000..3000i32, any::<i32>(), Just(0), Just(1), Just(-1)]
}

fn option() -> impl Strategy<Value = MptcpOption> {
    let key = prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    prop_oneof![
        (key, any::<bool>(), 0u8..3).prop_map(|(sender_key, checksum, version)| {
            MptcpOption::Capable(MpCapable {
                version,
                checksum,
                no_join_here: false,
                hmac_sha256: true,
                sender_key,
                receiver_key: sender_key,
                data: None,
            })
        }),
        any::<[u8; 20]>().prop_map(|hmac| MptcpOption::Join(MpJoin::Ack { hmac })),
        (any::<u32>(), any::<u32>()).prop_map(|(token, nonce)| {
            MptcpOption::Join(MpJoin::Syn { backup: false, address_id: 1, token, nonce })
        }),
        (any::<u64>(), any::<u32>()).prop_map(|(hmac, nonce)| {
            MptcpOption::Join(MpJoin::SynAck { backup: false, address_id: 1, hmac, nonce })
        }),
        (any::<u8>(), any::<Option<u64>>()).prop_map(|(address_id, hmac)| {
            MptcpOption::AddAddr(AddAddr { address_id, address: host(9, 9), port: None, hmac })
        }),
        any::<u64>().prop_map(|receiver_key| MptcpOption::FastClose { receiver_key }),
        (0u8..8, any::<bool>()).prop_map(|(code, transient)| MptcpOption::TcpRst(Reason { code, transient })),
        any::<bool>().prop_map(|backup| MptcpOption::Prio { backup }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => near().prop_map(Change::Seq),
        3 => near().prop_map(Change::Ack),
        2 => any::<u8>().prop_map(Change::Flags),
        1 => any::<u8>().prop_map(Change::Ecn),
        1 => any::<u16>().prop_map(Change::Window),
        1 => (0usize..1000).prop_map(Change::Cut),
        1 => Just(Change::NoOptions),
        1 => near().prop_map(Change::Stamps),
        1 => (near(), near()).prop_map(|(a, b)| Change::Sack(a, b)),
        1 => prop_oneof![-3000..3000i64, any::<i64>()].prop_map(Change::DataAck),
        3 => option().prop_map(Change::Option),
    ]
}

/// The options of a segment without its DSS and other MPTCP options.
fn bare(old: &Options) -> Options {
    let mut new = Options::new();
    old.timestamps().map(|t| new.set_timestamps(t));
    new
}

fn apply(s: &mut Segment, change: &Change) {
    let add = |n: SeqNumber, by: i32| SeqNumber(n.0.wrapping_add(by as u32));
    match change {
        Change::Seq(by) => s.seq = add(s.seq, *by),
        Change::Ack(by) => s.ack = add(s.ack, *by),
        Change::Flags(flags) => s.flags = Flags(*flags),
        Change::Ecn(bits) => s.ecn = Ecn::from_bits(*bits),
        Change::Window(window) => s.window = *window,
        Change::Cut(len) => s.payload.truncate(*len),
        Change::NoOptions => s.options = Options::new(),
        Change::Stamps(by) => {
            let old = s.options.timestamps().unwrap_or_default();
            let dss = s.options.dss().copied();
            s.options = Options::new();
            s.options.set_timestamps(Timestamps { val: old.val.wrapping_add(*by as u32), ecr: old.ecr });
            dss.map(|dss| s.options.set_dss(dss));
        }
        Change::Sack(a, b) => {
            s.options = bare(&s.options);
            let block = SackBlock { start: add(s.ack, *a), end: add(s.ack, *b) };
            s.options.set_sack(&[block, SackBlock { start: block.end, end: block.start }]);
        }
        Change::DataAck(by) => {
            let Some(mut dss) = s.options.dss().copied() else { return };
            if let Some(DataAck::Long(n)) = dss.ack {
                dss.ack = Some(DataAck::Long(n.wrapping_add(*by as u64)));
            }
            s.options = bare(&s.options);
            s.options.set_dss(dss);
        }
        Change::Option(option) => {
            s.options = bare(&s.options);
            s.options.push_mptcp(*option);
        }
    }
}

/// A forgery that no receiver could tell from the peer's own word: an exact reset, FIN or acknowledgment, and payload
/// or mappings at places that the peer will use. Those may do harm; all others may not.
fn is_plausible(original: &Segment, forged: &Segment) -> bool {
    let ends = [Flags::RST, Flags::FIN].iter().any(|f| forged.flags.has(*f) && !original.flags.has(*f));
    let moved = forged.seq != original.seq && !forged.payload.is_empty();
    let ahead = (forged.ack.0.wrapping_sub(original.ack.0) as i32) > 0;
    let sack = !forged.options.sack().is_empty();
    // RFC 7323 §5.3, RFC 5961 §4, §5: what is not acceptable tells no time.
    let acceptable = forged.flags.has(Flags::ACK) && !forged.flags.has(Flags::SYN);
    let stamps = acceptable && forged.options.timestamps() != original.options.timestamps();
    let unmapped = forged.options.dss().is_none() && !forged.payload.is_empty();
    let data_ack = forged.options.dss().map(|d| d.ack) != original.options.dss().map(|d| d.ack);
    ends || moved || ahead || sack || stamps || unmapped || (data_ack && forged.options.dss().is_some())
}

fn run(changes: Vec<(u32, Vec<Change>)>, seed: u64, harmless_only: bool) -> Pair {
    let (timestamps, ecn) = (seed.is_multiple_of(2), seed.is_multiple_of(3));
    let tcp = TcpSettings { timestamps, ecn, ..plain_stamps().tcp };
    let settings = Settings { tcp, ..plain_stamps() };
    let client = setup(settings.clone(), common::client_paths(2));
    let mut pair = Pair::with(seed, client, move || setup(settings.clone(), Vec::new()));
    let mut n = 0;
    pair.hook = Box::new(move |now, _, _, p| {
        // The handshakes are left in peace.
        if now < at(150) {
            return Fate::Pass;
        }
        n += 1;
        let forged = changes.iter().filter(|(at, _)| *at == n).map(|(_, changes)| {
            let mut forged = p.clone();
            changes.iter().for_each(|c| apply(&mut forged.segment, c));
            forged
        });
        let allowed = |f: &Packet| !harmless_only || !is_plausible(&p.segment, &f.segment);
        let mut all: Vec<Packet> = forged.filter(allowed).collect();
        all.push(p.clone());
        Fate::Become(all)
    });
    pair.write(Side::Server, pattern(0, 400_000), true).write(Side::Client, pattern(9, 400_000), true);
    pair.run(at(400_000));
    pair
}

fn changes() -> impl Strategy<Value = Vec<(u32, Vec<Change>)>> {
    prop::collection::vec((1u32..600, prop::collection::vec(change(), 1..4)), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// No forgery causes a panic or endless work (the pair harness asserts that time advances), and no more bytes are
    /// delivered than were written.
    #[test]
    fn nothing_breaks_the_engine(changes in changes(), seed in 0u64..1000) {
        let pair = run(changes, seed, false);
        prop_assert!(pair.client.got.len() <= 400_000 && pair.server.got.len() <= 400_000);
    }

    /// Forgeries that can be distinguished from the peer's own segments do no harm.
    #[test]
    fn forgeries_that_can_be_told_do_no_harm(changes in changes(), seed in 0u64..1000) {
        let pair = run(changes, seed, true);
        prop_assert!(pair.client.got == pattern(0, 400_000), "{} bytes to the client", pair.client.got.len());
        prop_assert!(pair.server.got == pattern(9, 400_000), "{} bytes to the server", pair.server.got.len());
        prop_assert!(pair.client.endpoint.is_empty() && pair.server.endpoint.is_empty());
    }
}

/// A peer that echoes marks in every segment slows its own download down, and gets every byte; so it does where all that it gets is marked.
/// Without an agreement neither has an effect.
#[test]
fn echoes_and_marks_without_end_or_agreement_lose_no_byte() {
    for (ecn, echoes) in [(true, true), (true, false), (false, true), (false, false)] {
        let settings = Settings { tcp: TcpSettings { ecn, ..plain_stamps().tcp }, ..plain_stamps() };
        let client = setup(settings.clone(), common::client_paths(2));
        let mut pair = Pair::with(7, client, move || setup(settings.clone(), Vec::new()));
        pair.hook = Box::new(move |_, side, _, p| {
            let mut p = p.clone();
            let s = &mut p.segment;
            assert!(ecn || !s.flags.has(Flags::ECE) && s.ecn == Ecn::NotEct, "{p}");
            if s.flags.has(Flags::SYN) {
                return Fate::Pass;
            }
            match side {
                Side::Client if echoes => s.flags = s.flags | Flags::ECE,
                Side::Server if !echoes => s.ecn = Ecn::Ce,
                _ => {}
            }
            Fate::Become(vec![p])
        });
        pair.write(Side::Server, pattern(0, 400_000), true);
        pair.run(at(400_000));
        assert!(pair.client.got == pattern(0, 400_000), "{} bytes", pair.client.got.len());
        assert_eq!(pair.server.log.saw(Event::Marked), ecn, "{echoes}");
        assert!(pair.client.endpoint.is_empty() && pair.server.endpoint.is_empty());
    }
}

/// Mappings for bytes that never come, as many as a peer likes: those that find no room are not noted, and the subflow continues.
#[test]
fn mappings_are_bounded() {
    use common::solo::{Build, Solo};
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    for n in 1..20_000u64 {
        let dss = h.mapped(0, n * 10, 100 + n * 10, 5);
        h.send(h.seg(1, 1).dss(dss)).clear();
    }
    assert!(h.log.violated(anabranch_trace::Violation::TooMuch));
    assert_eq!(h.connection().subflows().count(), 2);
    h.send(h.seg(1, 1).data(&[7; 100]).dss(h.mapped(0, 0, 1, 100)));
    assert_eq!(h.read(), [7; 100]);
}

/// Slow start overshoots in a large window: each second packet of many is lost. Every arrival has a mapping of its own, and the
/// subflow continues (RFC 8684 §3.3.1 knows no limit).
#[test]
fn a_large_window_with_a_hole_per_segment_is_received() {
    use common::solo::{Build, PEER_KEY, Solo};
    const SEGMENTS: u64 = 40_000;
    let mut h = Solo::server(Settings { recv_buffer: 64 << 20, ..plain_stamps() });
    let mut syn = h.syn(0).with(Solo::capable(None, None));
    syn.options.set_window_scale(7);
    h.send(syn).clear();
    h.send(h.seg(1, 1).with(Solo::capable(Some(PEER_KEY), Some(h.key))));
    h.send(h.seg(1, 1).dss(h.data_ack(0)));
    h.join(1).clear();
    let bytes = pattern(0, 1000);
    let mut send = |n: u64| {
        h.send(h.seg(1 + 1000 * n, 1).data(&bytes).dss(h.mapped(0, 1000 * n, 1 + 1000 * n, 1000))).clear();
        h.read().len() as u64
    };
    assert_eq!((1..SEGMENTS).step_by(2).map(&mut send).sum::<u64>(), 0);
    let read: u64 = (0..SEGMENTS).step_by(2).map(&mut send).sum();
    assert_eq!(read, 1000 * SEGMENTS);
    assert_eq!(h.connection().subflows().count(), 2);
    assert!(!h.log.violated(anabranch_trace::Violation::TooMuch));
}
