//! A hash over everything that happened.

use crate::{Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Direction, Duration, Instant, Side};
use core::fmt;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// One 64-bit word, little-endian.
type Word = [u8; 8];
/// Words gathered before the hash function is called.
const BUFFER: usize = 512;
/// Most words of one event: time, head and six fields.
const WORDS: usize = 8;

/// Hashes the canonical encoding of every event with XXH3 (128 bits).
///
/// An event is a run of little-endian 64-bit words: its time in nanoseconds, a head (connection, path, host, tag), and
/// its integers. The tag fixes how many words follow. No float and no wall time takes part, so equal digests mean equal
/// runs on every machine.
pub struct Digest {
    hasher: Xxh3,
    buffer: [Word; BUFFER],
    used: usize,
    events: u64,
}

impl Digest {
    /// Of no events.
    pub fn new() -> Self {
        Self { hasher: Xxh3::new(), buffer: [[0; 8]; BUFFER], used: 0, events: 0 }
    }

    /// Events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The hash as 32 hexadecimal digits.
    pub fn finish(mut self) -> String {
        self.flush();
        format!("{:032x}", self.hasher.digest128())
    }

    #[cold]
    fn flush(&mut self) {
        self.hasher.update(self.buffer[..self.used].as_flattened());
        self.used = 0;
    }
}

/// Where one event is written.
struct Slot<'a> {
    words: &'a mut [Word; WORDS],
    /// Without the tag.
    head: u64,
}

impl Slot<'_> {
    /// Writes head and fields; returns how many words the event takes.
    #[inline(always)]
    fn put<const N: usize>(self, tag: u8, fields: [u64; N]) -> usize {
        const { assert!(N + 2 <= WORDS) };
        self.words[1] = (self.head | tag as u64).to_le_bytes();
        for (n, field) in fields.into_iter().enumerate() {
            self.words[n + 2] = field.to_le_bytes();
        }
        N + 2
    }
}

fn head(origin: Origin) -> u64 {
    let host = match origin.host {
        None => 0,
        Some(Side::Client) => 1,
        Some(Side::Server) => 2,
    };
    (origin.connection.0 as u64) << 32 | (origin.path.0 as u64) << 16 | host << 8
}

/// Writes an event's head and fields; returns how many words it takes, its time included.
#[inline(always)]
fn encode(at: Slot<'_>, event: &Event) -> usize {
    // Tags are part of the encoding: a number once given stays.
    match *event {
        Event::Written(r) => at.put(1, [r.start, r.end]),
        Event::Delivered(r) => at.put(2, [r.start, r.end]),
        Event::WriteEnd(end) => at.put(3, [end]),
        Event::DataSent { seq, data, kind } => at.put(4, [seq, data.start, data.end, kind as u64]),
        Event::ControlSent { flags, again } => at.put(5, [(flags as u64) << 1 | again as u64]),
        Event::DataArrived { data, new } => at.put(6, [data.start, data.end, new]),
        Event::OfoQueue { bytes } => at.put(7, [bytes]),
        Event::DataAcked(offset) => at.put(8, [offset]),
        Event::Window(w) => {
            // Samples are never u64::MAX long, so "none" has a value of its own.
            let rtt = w.rtt.unwrap_or(Duration::MAX).as_nanos();
            let windows = (w.cwnd as u64) << 32 | w.ssthresh as u64;
            at.put(9, [windows, w.in_flight as u64, w.srtt.as_nanos(), rtt])
        }
        Event::Recovery(phase) => at.put(10, [phase as u64]),
        Event::Lost { packets } => at.put(11, [packets as u64]),
        Event::Timeout { n } => at.put(12, [n as u64]),
        Event::TailLossProbe => at.put(13, []),
        Event::Undo => at.put(14, []),
        Event::IdleRestart => at.put(15, []),
        Event::Penalised => at.put(16, []),
        Event::WindowBlocked(blocked) => at.put(17, [blocked as u64]),
        Event::Stall => at.put(18, []),
        Event::Path(state) => at.put(19, [state as u64]),
        Event::Connected(mptcp) => at.put(20, [mptcp as u64]),
        Event::Fallback => at.put(21, []),
        Event::Closed(reason) => at.put(22, [reason as u64]),
        Event::Violation(rule) => at.put(23, [rule as u64]),
        Event::SchedulerValue { name, micro } => at.put(24, [xxh3_64(name.as_bytes()), micro as u64]),
        Event::Link { direction, size, what } => {
            let packet = (size as u64) << 1 | u64::from(direction == Direction::Up);
            match what {
                LinkEvent::Enqueued { queue_packets, queue_bytes } => {
                    at.put(25, [packet, queue_packets as u64, queue_bytes])
                }
                LinkEvent::Departed => at.put(26, [packet]),
                LinkEvent::Dropped(cause) => at.put(27, [packet, cause as u64]),
            }
        }
    }
}

impl Recorder for Digest {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if self.used > BUFFER - WORDS {
            self.flush();
        }
        // Always there: the buffer has room for one more event.
        if let Some(words) = self.buffer[self.used..].first_chunk_mut() {
            words[0] = now.as_nanos().to_le_bytes();
            self.used += encode(Slot { words, head: head(origin) }, event);
            self.events += 1;
        }
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digest").field("events", &self.events).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SendKind, WindowChange};
    use anabranch_units::{ConnId, PathId, Range};
    use xxhash_rust::xxh3::xxh3_128;

    const ORIGIN: Origin = Origin { host: Some(Side::Server), connection: ConnId(3), path: PathId(1) };

    fn digest(events: &[(u64, Origin, Event)]) -> String {
        let mut digest = Digest::new();
        for (ns, origin, event) in events {
            digest.record(Instant::from_nanos(*ns), *origin, event);
        }
        digest.finish()
    }

    #[test]
    fn the_encoding_is_as_documented() {
        let words: [u64; 6] = [7, 3 << 32 | 1 << 16 | 2 << 8 | 4, 1, 1400, 2800, 4];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let sent = Event::DataSent { seq: 1, data: Range::new(1400, 2800), kind: SendKind::Retransmission };
        assert_eq!(digest(&[(7, ORIGIN, sent)]), format!("{:032x}", xxh3_128(&bytes)));
    }

    #[test]
    fn buffering_changes_nothing() {
        let events: Vec<_> = (0..5_000).map(|i| (i, ORIGIN, Event::DataAcked(i * 1400))).collect();
        let words = (0..5_000u64).flat_map(|i| [i, 3 << 32 | 1 << 16 | 2 << 8 | 8, i * 1400]);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        assert_eq!(digest(&events), format!("{:032x}", xxh3_128(&bytes)));
    }

    #[test]
    fn every_field_takes_part() {
        let window = WindowChange { cwnd: 10, ssthresh: 20, in_flight: 5, srtt: Duration::from_millis(9), rtt: None };
        let base = digest(&[(1, ORIGIN, Event::Window(window))]);
        let others = [
            (2, ORIGIN, Event::Window(window)),
            (1, Origin { host: Some(Side::Client), ..ORIGIN }, Event::Window(window)),
            (1, Origin { connection: ConnId(4), ..ORIGIN }, Event::Window(window)),
            (1, Origin { path: PathId(2), ..ORIGIN }, Event::Window(window)),
            (1, ORIGIN, Event::Window(WindowChange { cwnd: 11, ..window })),
            (1, ORIGIN, Event::Window(WindowChange { ssthresh: u32::MAX, ..window })),
            (1, ORIGIN, Event::Window(WindowChange { in_flight: 6, ..window })),
            (1, ORIGIN, Event::Window(WindowChange { srtt: Duration::ZERO, ..window })),
            (1, ORIGIN, Event::Window(WindowChange { rtt: Some(Duration::ZERO), ..window })),
        ];
        for other in others {
            assert_ne!(digest(&[other]), base, "{other:?}");
        }
        let value = |name| digest(&[(1, ORIGIN, Event::SchedulerValue { name, micro: 5 })]);
        assert_ne!(value("lambda"), value("delta"));
    }
}
