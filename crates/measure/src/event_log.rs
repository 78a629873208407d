//! The events of a run at one host, in few bytes.

use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{ConnId, Duration, Instant, PathId, Side};
use serde::{Deserialize, Serialize};

/// Bytes that a log holds: about five million events.
pub(crate) const MOST: usize = 64 << 20;
/// Events that a log holds at most, however short: whoever reads them needs 100 bytes for each.
pub(crate) const EVENTS: u64 = 6_000_000;

/// Why a run without a whole log of `host` does not count.
pub(crate) fn too_long(host: &str) -> String {
    format!("the run has more events than {host} keeps (64 MiB, six million): make it shorter")
}

/// An event in a log. The order of fields is the format.
#[derive(Debug, Serialize, Deserialize)]
struct LogEntry {
    /// Since the event before.
    after: Duration,
    connection: u32,
    path: u8,
    event: Event,
}

/// Records events of one host.
#[derive(Debug)]
pub(crate) struct EventLog {
    bytes: Vec<u8>,
    last: Instant,
    events: u64,
    limit: usize,
    /// See [`EventLog::is_cut`].
    cut: bool,
}

impl EventLog {
    /// One that holds so many bytes.
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), last: Instant::ZERO, events: 0, limit, cut: false }
    }

    /// Events were left out, because there was no room.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The bytes of the log and the number of events; `None` if not all had room.
    pub fn finish(self) -> Option<(Vec<u8>, u64)> {
        (!self.cut).then_some((self.bytes, self.events))
    }
}

impl Recorder for EventLog {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if self.cut {
            return;
        }
        let entry = LogEntry {
            after: now.since(self.last),
            connection: origin.connection.0,
            path: origin.path.0,
            event: *event,
        };
        // A vector takes everything; otherwise all that it had would be lost.
        match postcard::to_extend(&entry, core::mem::take(&mut self.bytes)) {
            Ok(bytes) => self.bytes = bytes,
            Err(_) => self.cut = true,
        }
        self.last = self.last.max(now);
        self.events += 1;
        self.cut |= self.bytes.len() > self.limit || self.events > EVENTS;
    }
}

/// An event that does not keep to the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedLog;

/// Reads a log of the host `side`.
#[derive(Clone, Debug)]
pub(crate) struct EventLogReader<'a> {
    bytes: &'a [u8],
    side: Side,
    time: Instant,
}

impl<'a> EventLogReader<'a> {
    /// The events in a log, of `side`.
    pub fn of(bytes: &'a [u8], side: Side) -> Self {
        Self { bytes, side, time: Instant::ZERO }
    }
}

impl Iterator for EventLogReader<'_> {
    type Item = Result<(Instant, Origin, Event), MalformedLog>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let Ok((LogEntry { after, connection, path, event }, rest)) = postcard::take_from_bytes::<LogEntry>(self.bytes)
        else {
            self.bytes = &[];
            return Some(Err(MalformedLog));
        };
        self.bytes = rest;
        self.time += after;
        let origin = Origin { host: Some(self.side), connection: ConnId(connection), path: PathId(path) };
        Some(Ok((self.time, origin, event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_trace::{SchedulerName, SendKind, WindowChange};
    use anabranch_units::Range;

    fn events() -> Vec<(Instant, Origin, Event)> {
        let of = |path| Origin { host: Some(Side::Server), connection: ConnId(300), path: PathId(path) };
        let window = WindowChange {
            cwnd: 10,
            ssthresh: u32::MAX,
            in_flight: 3,
            srtt: Duration::from_millis(20),
            rtt: Some(Duration::from_micros(1500)),
        };
        vec![
            (Instant::from_millis(3), of(0), Event::Connected(true)),
            (Instant::from_millis(3), of(1), Event::Window(window)),
            (
                Instant::from_millis(9),
                of(1),
                Event::DataSent { seq: 1, data: Range::new(0, 1400), kind: SendKind::Copy },
            ),
            (Instant::from_millis(9), of(0), Event::SchedulerValue { name: "blest.lambda", micro: -1_250_000 }),
            (Instant::from_millis(70), of(0), Event::Scheduler(SchedulerName { base: "minrtt", suffix: "+pr" })),
            (Instant::from_millis(80), of(0), Event::BoundAhead { since: Instant::from_millis(2) }),
        ]
    }

    fn recorded(limit: usize) -> EventLog {
        let mut log = EventLog::new(limit);
        events().iter().for_each(|(at, origin, event)| log.record(*at, *origin, event));
        log
    }

    #[test]
    fn what_is_recorded_is_read() {
        let (bytes, count) = recorded(MOST).finish().unwrap();
        let read: Result<Vec<_>, _> = EventLogReader::of(&bytes, Side::Server).collect();
        assert_eq!((read.unwrap(), count), (events(), 6));
        assert!(bytes.len() < 100, "{} bytes for six events", bytes.len());
    }

    #[test]
    fn a_tape_that_is_too_long_is_none() {
        let len = recorded(MOST).finish().unwrap().0.len();
        assert!(!recorded(len).is_cut() && recorded(len - 1).is_cut(), "it is known before the run ends");
        assert!(recorded(len).finish().is_some() && recorded(len - 1).finish().is_none());
    }

    #[test]
    fn a_tape_that_is_cut_off_or_damaged_ends_with_a_mistake() {
        let (bytes, _) = recorded(MOST).finish().unwrap();
        let part: Vec<_> = EventLogReader::of(&bytes[..bytes.len() - 1], Side::Server).collect();
        assert_eq!((part.len(), part.last()), (6, Some(&Err(MalformedLog))));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let count = EventLogReader::of(&bytes, Side::Server).count();
            proptest::prop_assert!(count <= bytes.len());
        }
    }
}
