//! Two captured Linux kernels: both ends are followed completely, and the totals equal tshark's counts.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on a host with files")]

mod pcap;

use anabranch_observer::{Observer, Unfollowed};
use anabranch_trace::{Event, Origin, PathState, Recorder, SendKind};
use anabranch_units::{ConnId, Instant, Range, RangeSet, Side};
use pcap::Captured;

/// Totals of one host.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    /// Segments with payload by path, and their bytes.
    data: [(u32, u64); 2],
    /// Segments without payload by path.
    control: [u32; 2],
    /// Sent on both paths.
    twice: u32,
    /// Bytes that arrived, and how many of them were new.
    arrived: (u64, u64),
    arrivals: u32,
    acked: u64,
    ofo_max: u64,
    established: u32,
    closed: u32,
    dead: u32,
    connected: Option<bool>,
    fallbacks: u32,
    violations: u32,
    /// The ranges sent and received.
    sent: RangeSet,
    got: RangeSet,
}

impl Recorder for Totals {
    fn record(&mut self, _: Instant, origin: Origin, event: &Event) {
        let path = origin.path.index();
        match *event {
            Event::DataSent { data, kind, .. } => {
                self.data[path].0 += 1;
                self.data[path].1 += data.len();
                self.twice += u32::from(kind != SendKind::First);
                self.sent.insert(data);
            }
            Event::ControlSent { .. } => self.control[path] += 1,
            Event::DataArrived { data, new, ofo } => {
                self.ofo_max = self.ofo_max.max(ofo);
                self.arrived = (self.arrived.0 + data.len(), self.arrived.1 + new);
                self.arrivals += 1;
                self.got.insert(data);
            }
            Event::DataAcked(upto) => self.acked = upto,
            Event::Path(PathState::Established) => self.established += 1,
            Event::Path(PathState::Closed) => self.closed += 1,
            Event::Path(PathState::Dead) => self.dead += 1,
            Event::Connected(multipath) => self.connected = Some(multipath),
            Event::Fallback => self.fallbacks += 1,
            Event::Violation(_) => self.violations += 1,
            _ => {}
        }
    }
}

/// Both hosts of a connection, and the data that their observers could not follow.
fn follow(captures: &[&str]) -> [(Totals, Unfollowed); 2] {
    let packets = pcap::captured(captures);
    [Side::Client, Side::Server].map(|side| {
        let (mut observer, mut totals) = (Observer::new(side, ConnId(0)), Totals::default());
        for Captured { now, path, by_client, packet } in &packets {
            observer.packet(*now, *by_client == (side == Side::Client), *path, packet, &mut totals);
        }
        (totals, observer.unfollowed())
    })
}

/// tshark's counts of a host's packets: segments with payload, bytes of payload, segments without payload, per path.
type Counts = [(u32, u64, u32); 2];

/// Everything was followed, both streams are whole, and the counts are right.
#[track_caller]
fn check(captures: &[&str], client: Counts, server: Counts) -> [Totals; 2] {
    let hosts = follow(captures);
    for ((totals, unfollowed), counts) in hosts.iter().zip([client, server]) {
        assert_eq!(*unfollowed, Unfollowed::default());
        assert_eq!(totals.data, counts.map(|(segments, bytes, _)| (segments, bytes)));
        assert_eq!(totals.control, counts.map(|(.., control)| control));
        assert_eq!((totals.twice, totals.violations, totals.fallbacks), (0, 0, 0));
        assert_eq!(totals.connected, Some(true));
    }
    let [client, server] = hosts.map(|(totals, _)| totals);
    for (sender, receiver) in [(&client, &server), (&server, &client)] {
        let bytes: u64 = sender.data.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(sender.sent, RangeSet::from_iter([Range::new(0, bytes)]));
        assert_eq!((receiver.arrived, &receiver.got), ((bytes, bytes), &sender.sent));
    }
    [client, server]
}

/// Subflows that were established, closed and reset, at either end.
#[track_caller]
fn check_subflows(hosts: &[Totals; 2], expected: (u32, u32, u32)) {
    for host in hosts {
        assert_eq!((host.established, host.closed, host.dead), expected);
    }
}

#[test]
fn one_subflow() {
    let hosts = check(&["plain4.p1"], [(45, 60_000, 13), (0, 0, 0)], [(45, 60_000, 17), (0, 0, 0)]);
    check_subflows(&hosts, (1, 1, 0));
    assert_eq!(hosts.map(|h| (h.acked, h.ofo_max)), [(60_000, 0); 2]);
}

#[test]
fn two_subflows() {
    let counts = ([(45, 58_900, 10), (1, 1_100, 21)], [(26, 33_425, 16), (20, 26_575, 7)]);
    let hosts = check(&["join4.p1", "join4.p2"], counts.0, counts.1);
    check_subflows(&hosts, (2, 2, 0));
    assert_eq!(hosts.map(|h| h.acked), [60_000; 2]);
    let counts = ([(39, 51_808, 16), (6, 8_192, 18)], [(34, 43_616, 21), (12, 16_384, 11)]);
    check_subflows(&check(&["join6.p1", "join6.p2"], counts.0, counts.1), (2, 2, 0));
    let counts = ([(36, 47_041, 19), (11, 12_959, 16)], [(35, 45_977, 16), (11, 14_023, 17)]);
    check_subflows(&check(&["addaddr_port4.p1", "addaddr_port4.p2"], counts.0, counts.1), (2, 2, 0));
}

#[test]
fn checksummed_mappings_arrive_as_a_whole() {
    let counts = ([(32, 40_960, 26), (15, 19_040, 14)], [(38, 49_152, 30), (8, 10_848, 20)]);
    let hosts = check(&["join4_csum.p1", "join4_csum.p2"], counts.0, counts.1);
    check_subflows(&hosts, (2, 2, 0));
    // This many mappings of payload, in 93 segments.
    assert_eq!(hosts.map(|h| h.arrivals).iter().sum::<u32>(), 21);
}

#[test]
fn a_removed_address_closes_its_subflow() {
    let counts = ([(20, 2_000, 14), (0, 0, 6)], [(20, 2_000, 25), (0, 0, 4)]);
    check_subflows(&check(&["rmaddr_prio4.p1", "rmaddr_prio4.p2"], counts.0, counts.1), (2, 2, 0));
}

#[test]
fn a_fast_close_and_a_refused_join() {
    let counts = ([(16, 20_000, 13), (0, 0, 1)], [(25, 32_768, 6), (0, 0, 0)]);
    let hosts = follow(&["fastclose4.p1", "fastclose4.p2"]);
    for ((host, unfollowed), counts) in hosts.iter().zip([counts.0, counts.1]) {
        assert_eq!(
            (host.data, host.control),
            (counts.map(|(n, bytes, _)| (n, bytes)), counts.map(|(.., control)| control))
        );
        assert_eq!((host.violations, host.established, host.closed), (0, 1, 0));
        assert_eq!(unfollowed.stray_packets, if host.control[1] == 0 { 1 } else { 0 });
    }
    // The client's join is refused, then the client aborts; the server's connection never saw the join.
    assert_eq!(hosts.map(|(host, _)| host.dead), [2, 1]);
}

#[test]
fn a_capture_of_one_path_only_is_no_connection() {
    let [(client, _), (server, unfollowed)] = follow(&["backup4.p2"]);
    assert_eq!((client, server), (Totals::default(), Totals::default()));
    assert_eq!(unfollowed, Unfollowed { stray_packets: 12, ..Unfollowed::default() });
}
