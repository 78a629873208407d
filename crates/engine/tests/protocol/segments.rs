//! Which segments count, and how the others are answered (RFC 9293 §3.10.7, RFC 5961, RFC 7323 §5.3).

use crate::common::solo::{Build, Solo};
use crate::common::{plain_stamps, tcp};
use anabranch_engine::{Settings, TcpSettings};
use anabranch_trace::Violation;
use anabranch_wire::{Flags, Segment, Timestamps};

fn stamped(settings: Settings) -> Settings {
    Settings { tcp: TcpSettings { timestamps: true, ..settings.tcp }, ..settings }
}

fn stamp(mut s: Segment, val: u32) -> Segment {
    s.options.set_timestamps(Timestamps { val, ecr: 1 });
    s
}

/// A plain connection whose peer's clock has come to 1000, and one with Multipath TCP.
fn stamped_servers() -> [Solo; 2] {
    let mut plain = Solo::server(stamped(tcp()));
    plain.send(stamp(plain.syn(0), 1000)).clear();
    plain.send(stamp(plain.seg(1, 1), 1000));
    let mut multipath = Solo::server(stamped(plain_stamps()));
    multipath.send(stamp(multipath.syn(0).with(Solo::capable(None, None)), 1000)).clear();
    let keys = Solo::capable(Some(crate::common::solo::PEER_KEY), Some(multipath.key));
    multipath.send(stamp(multipath.seg(1, 1).with(keys), 1000));
    assert!(multipath.connection().is_multipath());
    [plain, multipath]
}

#[test]
fn a_forged_timestamp_does_not_freeze_a_subflow() {
    // RFC 7323 §5.3: R3 comes after the segment was found acceptable; RFC 5961 §4, §5: these are not.
    const NONE: Flags = Flags(0);
    let far = 1 << 30;
    let forgeries: [(&str, fn(&Solo) -> Segment); 6] = [
        ("without ACK", |h| h.seg(1, 1).flags(NONE)),
        ("without ACK, with data", |h| h.seg(1, 1).flags(NONE).data(b"evil")),
        ("SYN", |h| h.seg(1, 1).flags(Flags::SYN)),
        ("SYN/ACK", |h| h.seg(1, 1).flags(Flags::SYN | Flags::ACK)),
        ("an acknowledgment of what was not sent", |h| h.seg(1, 2)),
        ("an acknowledgment of long ago", |h| h.seg(1, 0u64.wrapping_sub(1 << 30))),
    ];
    for (what, forged) in forgeries {
        for mut h in stamped_servers() {
            let segment = stamp(forged(&h), 1000 + far);
            h.send(segment).clear();
            // The peer goes on by its own clock.
            let data = h.seg(1, 1).data(b"true");
            let data = if h.connection().is_multipath() { data.dss(h.mapped(0, 0, 1, 4)) } else { data };
            h.send(stamp(data, 1001));
            assert_eq!(h.read(), b"true", "{what}");
            assert!(!h.log.violated(Violation::OldTimestamp), "{what}");
            assert_eq!(h.recv().options.timestamps().map(|t| t.ecr), Some(1001), "{what}");
        }
    }
}

#[test]
fn a_forgery_is_no_sign_of_life() {
    // RFC 9293 §3.8.4: a peer that is gone is given up, whatever a third party sends in its name.
    let alive = TcpSettings { keep_alive: Some(crate::common::ms(100_000)), ..tcp().tcp };
    let mut h = Solo::tcp_client(Settings { tcp: alive, ..tcp() });
    for second in 1..1200 {
        h.at(second * 1000);
        if !h.is_gone() {
            h.send(h.seg(1, 1).flags(Flags(0)));
            h.send(h.seg(1, 2));
        }
    }
    assert!(h.is_gone());
}

#[test]
fn the_echo_is_that_of_what_reaches_back_to_the_last_acknowledgment() {
    // RFC 7323 §4.3: SEG.SEQ <= Last.ACK.sent, also while an acknowledgment is delayed.
    let [mut h, _] = stamped_servers();
    for n in 0..16 {
        h.send(stamp(h.seg(1 + n, 1).data(b"x"), 1001 + n as u32)).clear();
    }
    h.send(stamp(h.seg(17, 1).data(b"abc"), 2000)).quiet();
    // The first of the two is repeated together with the second: its new time is the one to tell.
    h.send(stamp(h.seg(17, 1).data(b"abcdef"), 3000));
    assert_eq!(h.recv().options.timestamps().map(|t| t.ecr), Some(3000));
}

#[test]
fn a_reset_without_ack_echoes_nothing() {
    // RFC 7323 §3.2: TSecr is valid only with ACK
    let mut h = Solo::server(stamped(tcp()));
    h.send(stamp(h.syn(0), 1000)).clear();
    h.send(stamp(h.seg(1, 50), 1001));
    let reset = h.recv();
    assert_eq!((reset.flags, reset.options.timestamps().map(|t| t.ecr)), (Flags::RST, Some(0)));
}
