//! Captures of Linux kernels: subflows, announcements and ends, as they were made to happen.

#![allow(clippy::disallowed_methods, reason = "tests run on a host with files")]

mod common;

use anabranch_analysis::{Fate, Near, Protocol, Signal};

#[test]
fn a_join_in_another_file_is_one_connection() {
    for names in [["join4.p1", "join4.p2"], ["join6.p1", "join6.p2"], ["join4_csum.p1", "join4_csum.p2"]] {
        for order in [[0, 1], [1, 0]] {
            let analysis = common::analysed(&order.map(|n| names[n]));
            let [connection] = &analysis.connections[..] else { panic!("{names:?}: one connection") };
            assert_eq!((connection.protocol, connection.near), (Protocol::Mptcp, Near::Client), "{names:?}");
            assert!(!connection.near_assumed && connection.fallback.is_none());
            let joins: Vec<_> = connection.subflows.iter().map(|s| (s.join, s.fate, s.failure)).collect();
            assert_eq!(joins, [(false, Fate::Closed, None), (true, Fate::Closed, None)], "{names:?}");
            for stream in &connection.streams {
                let carried: u64 = connection
                    .subflows
                    .iter()
                    .flat_map(|s| &s.ways)
                    .filter(|w| w.from == stream.from)
                    .map(|w| w.data.bytes - w.repeated_bytes)
                    .sum();
                assert!(stream.delivered_bytes <= carried, "reinjections come on top");
                assert!(stream.delivered_bytes > 0);
            }
            assert_eq!((connection.unmapped_bytes, connection.missed_bytes), (0, 0));
        }
    }
}

#[test]
fn a_join_without_its_connection_says_what_is_missing() {
    let analysis = common::analysed(&["join4.p2"]);
    let connection = &analysis.connections[0];
    assert_eq!((connection.protocol, connection.whole), (Protocol::MptcpWithoutBeginning, false));
    assert!(connection.subflows[0].ways.iter().all(|way| way.data.bytes > 0), "headers tell that");
    assert!(
        connection.story.iter().any(|s| s.contains("does not have the connection's first SYN")),
        "{:?}",
        connection.story
    );
}

#[test]
fn announcements_and_aborts_are_told() {
    let story = |names: &[&str]| common::analysed(names).connections[0].story.join(" ");
    let removed = common::analysed(&["rmaddr_prio4.p1", "rmaddr_prio4.p2"]);
    let said: Vec<_> = removed.connections[0].events.iter().map(|event| event.what).collect();
    assert!(said.iter().any(|what| matches!(what, Signal::RemoveAddr { .. })), "{said:?}");
    assert!(said.iter().any(|what| matches!(what, Signal::Priority { .. })), "{said:?}");
    assert!(story(&["fastclose4.p1"]).contains("aborts the connection with MP_FASTCLOSE (RFC 8684 §3.5)"));
    assert!(story(&["addaddr_port4.p1", "addaddr_port4.p2"]).contains(" port "));
}

#[test]
fn the_same_captures_give_the_same_values() {
    let once = format!("{:?}", common::analysed(&["join4.p1", "join4.p2"]));
    assert_eq!(once, format!("{:?}", common::analysed(&["join4.p1", "join4.p2"])));
}
