//! Follows the packets of a connection.

use crate::{Fate, Timeline, TimelinePacket};
use anabranch_trace::{DecisionLog, Event, Origin, Recorder, SendKind};
use anabranch_units::{ConnId, Direction, Instant, PathId, Range, RangeSet, Side};
use anabranch_wire::Packet;
use std::collections::{BTreeMap, BTreeSet};

/// Identifies a packet in flight: path, sequence number, and the sender's timestamp, in which retransmissions differ.
type Mark = (PathId, u32, Option<u32>);

/// Follows the first packets that one end of a connection sends from a given time on. Its memory is bounded by their
/// number and by the receiver's window. It needs the packets themselves ([`Recorder::packet`]), because events do not
/// show the arrival of a packet that waits behind another one of its subflow.
#[derive(Debug)]
pub struct TimelineRecorder {
    connection: ConnId,
    way: Direction,
    from: Instant,
    limit: usize,
    packets: Vec<TimelinePacket>,
    /// Packets from this index on have had their event, and were not yet seen.
    seen: usize,
    /// Packets that have not arrived: first index and count.
    under_way: BTreeMap<Mark, (usize, usize)>,
    /// Data that arrived and was not delivered.
    arrived: RangeSet,
    delivered: u64,
    /// Ends and indices of packets that arrived and wait for delivery.
    waiting: BTreeSet<(u64, usize)>,
    /// Packets that changed since [`Self::changes`] was last called, the newest last; `None` until it is.
    changed: Option<Vec<usize>>,
    decisions: Option<DecisionLog>,
}

impl TimelineRecorder {
    /// Follows `limit` packets of `connection` from `from` on.
    pub fn new(connection: ConnId, from: Instant, limit: usize) -> Self {
        Self {
            connection,
            way: Direction::Down,
            from,
            limit,
            packets: Vec::new(),
            seen: 0,
            under_way: BTreeMap::new(),
            arrived: RangeSet::new(),
            delivered: 0,
            waiting: BTreeSet::new(),
            changed: None,
            decisions: None,
        }
    }

    /// The same of the packets that flow this way; server → client unless it is called.
    pub fn sent(self, way: Direction) -> Self {
        Self { way, ..self }
    }

    /// The same; the log receives the scheduler's views when it binds the packets.
    pub fn with_decisions(mut self, log: DecisionLog) -> Self {
        self.decisions = Some(log);
        self
    }

    /// The packets that changed since the last call, with their numbers, each once and in their order; at the first call, all.
    /// Whether a packet is lost is known at the end only.
    pub fn changes(&mut self) -> impl Iterator<Item = (usize, &TimelinePacket)> {
        let mut changed = self.changed.replace(Vec::new()).unwrap_or_else(|| (0..self.packets.len()).collect());
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(|place| (place, &self.packets[place]))
    }

    fn note(&mut self, place: usize) {
        if let Some(changed) = &mut self.changed {
            changed.push(place);
        }
    }

    /// The timeline until `now`; `paths` are the names of all paths.
    pub fn finish(mut self, now: Instant, paths: Vec<String>) -> Timeline {
        let duration_s = now.as_secs_f64();
        mark_lost(&mut self.packets, duration_s);
        let decisions = self.decisions.map(|log| log.take()).filter(|decisions| !decisions.rows.is_empty());
        let mut timeline = Timeline { paths, duration_s, packets: self.packets, decisions };
        timeline.forget_other_decisions();
        timeline
    }

    fn on_sent(&mut self, now: Instant, path: PathId, data: Range, kind: SendKind) {
        if now < self.from || self.packets.len() >= self.limit {
            return;
        }
        let (path, now) = (path.index(), now.as_secs_f64());
        let (data_start, data_end) = (data.start, data.end);
        self.packets.push(TimelinePacket {
            data_start,
            data_end,
            path,
            bound_s: now,
            sent_s: now,
            arrived_s: None,
            subflow_in_order_s: None,
            delivered_s: None,
            kind,
            fate: Fate::OnTheWay,
        });
        self.note(self.packets.len() - 1);
    }

    /// Whether some of `data` arrives for the first time.
    fn is_news(&mut self, data: Range) -> bool {
        let rest = Range::new(data.start.max(self.delivered), data.end);
        !rest.is_empty() && self.arrived.insert(rest) > 0
    }

    fn on_delivered(&mut self, now: Instant, end: u64) {
        self.delivered = self.delivered.max(end);
        self.arrived.remove_below(self.delivered);
        while let Some((_, place)) = self.waiting.first().copied().filter(|(end, _)| *end <= self.delivered) {
            self.waiting.pop_first();
            self.packets[place].delivered_s = Some(now.as_secs_f64());
            self.packets[place].fate = Fate::Delivered;
            self.note(place);
        }
    }

    /// A subflow passed `data` to the connection.
    fn on_in_order(&mut self, now: Instant, data: Range) {
        // Of packets that are not followed, too: a followed copy brings nothing new then.
        self.is_news(data);
        let (from, until) = ((data.start + 1, 0), (data.end, usize::MAX));
        for (_, place) in self.waiting.range(from..=until) {
            self.packets[*place].subflow_in_order_s.get_or_insert(now.as_secs_f64());
            self.changed.iter_mut().for_each(|changed| changed.push(*place));
        }
    }

    /// A packet reached the receiver.
    fn on_arrived(&mut self, now: Instant, mark: Mark) {
        let Some((from, count)) = self.under_way.remove(&mark) else { return };
        for place in from..from + count {
            let packet = &mut self.packets[place];
            packet.arrived_s = Some(now.as_secs_f64());
            let data = Range::new(packet.data_start, packet.data_end);
            let news = self.is_news(data);
            self.packets[place].fate = if news { Fate::Waiting } else { Fate::Superseded };
            if news {
                self.waiting.insert((data.end, place));
            }
            self.note(place);
        }
    }
}

/// Statistics of a path's arrivals, which decide about the other packets.
#[derive(Clone, Default)]
struct PathSeen {
    /// Longest from sending to arrival.
    longest_s: Option<f64>,
    /// Latest arrival of those sent so far.
    latest_s: f64,
    /// When the last of those that arrived was sent.
    last_sent_s: f64,
    /// A packet that was sent later arrived first.
    reorders: bool,
}

/// Distinguishes lost packets from those still in flight at `end`. `packets` in the order of sending.
fn mark_lost(packets: &mut [TimelinePacket], end: f64) {
    let paths = packets.iter().map(|packet| packet.path + 1).max().unwrap_or(0);
    let mut seen = vec![PathSeen::default(); paths];
    for packet in packets.iter() {
        let (path, Some(arrived)) = (&mut seen[packet.path], packet.arrived_s) else { continue };
        path.reorders |= arrived < path.latest_s;
        path.latest_s = path.latest_s.max(arrived);
        path.last_sent_s = packet.sent_s;
        path.longest_s = Some(path.longest_s.unwrap_or(0.0).max(arrived - packet.sent_s));
    }
    // Where nothing arrived, the times of other paths; where nothing arrived at all, the initial RTO (RFC 6298 §2).
    let of_all =
        seen.iter().filter_map(|path| path.longest_s).fold(None, |a: Option<f64>, b| Some(a.unwrap_or(b).max(b)));
    for packet in packets.iter_mut().filter(|packet| packet.fate == Fate::OnTheWay) {
        let path = &seen[packet.path];
        let overtaken = !path.reorders && path.longest_s.is_some() && packet.sent_s < path.last_sent_s;
        if overtaken || end - packet.sent_s > path.longest_s.or(of_all).map_or(1.0, |longest| 2.0 * longest) {
            packet.fate = Fate::Lost;
        }
    }
}

impl Recorder for TimelineRecorder {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if origin.connection != self.connection {
            return;
        }
        let (is_sender, is_receiver) =
            (origin.host == Some(self.way.sender()), origin.host == Some(self.way.receiver()));
        match event {
            Event::DataSent { data, kind, .. } if is_sender => self.on_sent(now, origin.path, *data, *kind),
            Event::BoundAhead { since } if is_sender => {
                if let Some(packet) = self.packets[self.seen..].last_mut() {
                    packet.bound_s = since.as_secs_f64();
                    self.note(self.packets.len() - 1);
                }
            }
            Event::DataArrived { data, .. } if is_receiver => self.on_in_order(now, *data),
            Event::Delivered(range) if is_receiver => self.on_delivered(now, range.end),
            _ => {}
        }
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        let segment = &packet.segment;
        if segment.payload.is_empty() {
            return;
        }
        let mark = (path, segment.seq.0, segment.options.timestamps().map(|stamps| stamps.val));
        match sent {
            // A kernel's packet may exceed one mapping: several events, one packet.
            true if host == self.way.sender() && self.seen < self.packets.len() => {
                self.under_way.insert(mark, (self.seen, self.packets.len() - self.seen));
                self.seen = self.packets.len();
            }
            false if host == self.way.receiver() => self.on_arrived(now, mark),
            _ => {}
        }
    }

    fn decisions(&self) -> Option<DecisionLog> {
        self.decisions.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SeqNumber;
    use anabranch_wire::{Segment, Timestamps};

    const AT: fn(u64) -> Instant = Instant::from_millis;

    struct Run(TimelineRecorder);

    impl Run {
        fn tell(&mut self, ms: u64, host: Side, path: u8, event: Event) {
            let origin = Origin { host: Some(host), connection: ConnId(0), path: PathId(path) };
            self.0.record(AT(ms), origin, &event);
        }
        fn packet(&mut self, ms: u64, host: Side, path: u8, start: u64, stamp: u32) {
            let mut segment =
                Segment { seq: SeqNumber(start as u32), payload: vec![0; 10].into(), ..Segment::default() };
            segment.options.set_timestamps(Timestamps { val: stamp, ecr: 0 });
            let packet = Packet { segment, ..Packet::default() };
            self.0.packet(AT(ms), host, host == Side::Server, PathId(path), &packet);
        }
        fn sent(&mut self, ms: u64, path: u8, start: u64, kind: SendKind) {
            self.tell(ms, Side::Server, path, Event::DataSent { seq: 1, data: Range::new(start, start + 10), kind });
            self.packet(ms, Side::Server, path, start, ms as u32);
        }
        /// The packet sent at `stamp` arrives, and the application receives the data that is in order then.
        fn arrived(&mut self, ms: u64, path: u8, start: u64, stamp: u32, delivered: Option<u64>) {
            self.packet(ms, Side::Client, path, start, stamp);
            self.tell(
                ms,
                Side::Client,
                path,
                Event::DataArrived { data: Range::new(start, start + 10), new: 0, ofo: 0 },
            );
            if let Some(end) = delivered {
                self.tell(ms, Side::Client, path, Event::Delivered(Range::new(0, end)));
            }
        }
        fn lives(self) -> Vec<(u64, usize, [Option<f64>; 4], SendKind)> {
            let packets = self.0.finish(AT(1000), vec!["wlan".into(), "3g".into()]).packets;
            let ms = |s: f64| (s * 1e3).round();
            let times = |p: &TimelinePacket| {
                [Some(ms(p.bound_s)), Some(ms(p.sent_s)), p.arrived_s.map(ms), p.delivered_s.map(ms)]
            };
            packets.iter().map(|p| (p.data_start, p.path, times(p), p.kind)).collect()
        }
    }

    fn run(from: u64, limit: usize) -> Run {
        Run(TimelineRecorder::new(ConnId(0), AT(from), limit))
    }

    #[test]
    fn a_lost_packet_never_arrives_and_its_repetition_frees_the_others() {
        let mut run = run(0, 100);
        run.sent(1, 0, 0, SendKind::First);
        run.sent(2, 1, 10, SendKind::First);
        run.arrived(30, 1, 10, 2, None);
        run.sent(40, 0, 0, SendKind::Retransmission);
        run.arrived(60, 0, 0, 40, Some(20));
        let (first, again) = (SendKind::First, SendKind::Retransmission);
        assert_eq!(
            run.lives(),
            [
                (0, 0, [Some(1.0), Some(1.0), None, None], first),
                (10, 1, [Some(2.0), Some(2.0), Some(30.0), Some(60.0)], first),
                (0, 0, [Some(40.0), Some(40.0), Some(60.0), Some(60.0)], again),
            ]
        );
    }

    #[test]
    fn a_packet_waits_for_its_subflow_and_then_for_the_other() {
        let mut run = run(0, 100);
        let in_order = |run: &mut Run, ms, start| {
            let data = Range::new(start, start + 10);
            run.tell(ms, Side::Client, 0, Event::DataArrived { data, new: 10, ofo: 0 });
        };
        run.sent(1, 1, 0, SendKind::First);
        run.sent(2, 0, 10, SendKind::First);
        run.sent(3, 0, 20, SendKind::First);
        // The first of its subflow is missing: the connection gets nothing.
        run.packet(13, Side::Client, 0, 20, 3);
        run.packet(20, Side::Client, 0, 10, 2);
        in_order(&mut run, 20, 10);
        in_order(&mut run, 20, 20);
        run.arrived(50, 1, 0, 1, Some(30));
        let packets = run.0.finish(AT(60), Vec::new()).packets;
        let waits = |p: &TimelinePacket| [p.waited_in_subflow_s(), p.waited_s()].map(|s| s.map(|s| (s * 1e3).round()));
        assert_eq!([0, 1, 2].map(|n| waits(&packets[n])), [[0.0, 0.0], [0.0, 30.0], [7.0, 37.0]].map(|w| w.map(Some)));
    }

    #[test]
    fn of_two_copies_the_first_to_arrive_delivers() {
        let mut run = run(0, 100);
        run.sent(1, 0, 0, SendKind::First);
        run.sent(2, 1, 0, SendKind::Copy);
        run.arrived(20, 1, 0, 2, Some(10));
        run.arrived(25, 0, 0, 1, None);
        let lives = run.lives();
        assert_eq!(lives[0].2[2..], [Some(25.0), None]);
        assert_eq!(lives[1].2[2..], [Some(20.0), Some(20.0)]);
    }

    #[test]
    fn what_was_bound_ahead_says_since_when() {
        let mut run = run(5, 100);
        run.tell(9, Side::Server, 1, Event::DataSent { seq: 1, data: Range::new(0, 10), kind: SendKind::First });
        run.tell(9, Side::Server, 1, Event::BoundAhead { since: AT(3) });
        run.packet(9, Side::Server, 1, 0, 9);
        run.sent(10, 1, 10, SendKind::First);
        let bound: Vec<_> = run.lives().iter().map(|life| life.2[0]).collect();
        assert_eq!(bound, [Some(3.0), Some(10.0)]);
    }

    #[test]
    fn only_the_window_is_kept() {
        let mut run = run(5, 2);
        run.sent(1, 0, 0, SendKind::First);
        for n in 1..9 {
            run.sent(5 + n, 0, n * 10, SendKind::First);
        }
        // Data before the window counts as arrived.
        run.arrived(20, 0, 0, 1, None);
        run.tell(30, Side::Server, 0, Event::BoundAhead { since: AT(1) });
        run.arrived(31, 0, 10, 6, Some(20));
        let lives = run.lives();
        assert_eq!(lives.iter().map(|life| life.0).collect::<Vec<_>>(), [10, 20]);
        assert_eq!(lives[0].2, [Some(6.0), Some(6.0), Some(31.0), Some(31.0)]);
    }

    fn fates(run: Run, end: u64) -> Vec<Fate> {
        run.0.finish(AT(end), Vec::new()).packets.iter().map(|packet| packet.fate).collect()
    }

    #[test]
    fn at_the_end_some_wait_some_are_on_their_way_and_some_are_lost() {
        let story = || {
            let mut run = run(0, 100);
            run.sent(1, 0, 0, SendKind::First);
            run.sent(2, 0, 10, SendKind::First);
            run.sent(3, 1, 20, SendKind::First);
            run.sent(4, 0, 30, SendKind::First);
            run.sent(5, 0, 40, SendKind::First);
            run.sent(6, 1, 30, SendKind::Copy);
            run.arrived(21, 0, 0, 1, Some(10));
            // Bytes 10 to 19 are missing: a later packet of the same path has arrived.
            run.arrived(24, 0, 30, 4, None);
            run.arrived(28, 1, 20, 3, None);
            run.arrived(30, 1, 30, 6, None);
            run
        };
        use Fate::*;
        assert_eq!(fates(story(), 31), [Delivered, Lost, Waiting, Waiting, OnTheWay, Superseded]);
        // No packet took more than 20 ms over path 0: after twice that time the last counts as lost too.
        assert_eq!(fates(story(), 46), [Delivered, Lost, Waiting, Waiting, Lost, Superseded]);
    }

    #[test]
    fn being_overtaken_is_no_loss_on_a_path_that_reorders() {
        let mut run = run(0, 100);
        for n in 0..4 {
            run.sent(1 + n, 0, n * 10, SendKind::First);
        }
        run.arrived(20, 0, 10, 2, None);
        run.arrived(21, 0, 0, 1, Some(20));
        run.arrived(22, 0, 30, 4, None);
        assert_eq!(fates(run, 23)[2..], [Fate::OnTheWay, Fate::Waiting]);
    }

    #[test]
    fn where_nothing_arrives_age_alone_tells() {
        let mut run = run(0, 100);
        run.sent(1, 0, 0, SendKind::First);
        run.sent(900, 0, 10, SendKind::First);
        assert_eq!(fates(run, 1200), [Fate::Lost, Fate::OnTheWay]);
    }

    #[test]
    fn changes_name_each_packet_once_and_only_those_that_changed() {
        let mut run = run(0, 100);
        run.sent(1, 0, 0, SendKind::First);
        run.sent(2, 1, 10, SendKind::First);
        let changed = |run: &mut Run| run.0.changes().map(|(number, p)| (number, p.delivered_s)).collect::<Vec<_>>();
        assert_eq!(changed(&mut run), [(0, None), (1, None)]);
        assert_eq!(changed(&mut run), []);
        run.arrived(20, 1, 10, 2, None);
        assert_eq!(changed(&mut run), [(1, None)]);
        run.sent(21, 1, 20, SendKind::First);
        run.arrived(30, 0, 0, 1, Some(20));
        assert_eq!(changed(&mut run), [(0, Some(0.03)), (1, Some(0.03)), (2, None)]);
    }

    #[test]
    fn the_document_is_as_promised() {
        let mut run = run(0, 1);
        run.sent(250, 1, 0, SendKind::Opportunistic);
        let timeline = run.0.finish(AT(1500), vec!["wlan".into(), "3g".into()]);
        assert_eq!(
            serde_json::to_string(&timeline).unwrap(),
            "{\"paths\":[\"wlan\",\"3g\"],\"duration_s\":1.5,\"packets\":[{\"data_start\":0,\"data_end\":10,\"path\":1,\
             \"bound_s\":0.25,\"sent_s\":0.25,\"arrived_s\":null,\"subflow_in_order_s\":null,\"delivered_s\":null,\"kind\":\"opportunistic\",\
             \"fate\":\"lost\"}]}"
        );
    }
}
