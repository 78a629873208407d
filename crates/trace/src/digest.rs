//! A hash over everything that happened.

use crate::{Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Direction, Duration, Instant};
use core::fmt;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Bytes gathered before the hash function is called.
const BUFFER: usize = 4096;
/// Most 64-bit words of one event: time, head and six fields.
const WORDS: usize = 8;

/// Hashes the canonical encoding of every event with XXH3 (128 bits).
///
/// An event is a run of little-endian 64-bit words: its time in nanoseconds, a head (connection, path, host, tag), and
/// its integers. The tag fixes how many words follow. No float and no wall time takes part, so equal digests mean equal
/// runs on every machine.
pub struct Digest {
    hasher: Xxh3,
    buffer: [u8; BUFFER],
    used: usize,
    events: u64,
}

impl Digest {
    /// Of no events.
    pub fn new() -> Self {
        Self { hasher: Xxh3::new(), buffer: [0; BUFFER], used: 0, events: 0 }
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

    fn flush(&mut self) {
        self.hasher.update(&self.buffer[..self.used]);
        self.used = 0;
    }

    fn put<const N: usize>(&mut self, now: Instant, origin: Origin, tag: u8, fields: [u64; N]) {
        const { assert!(N + 2 <= WORDS) };
        if self.used > BUFFER - 8 * WORDS {
            self.flush();
        }
        let (slots, _) = self.buffer[self.used..][..8 * WORDS].as_chunks_mut::<8>();
        slots[0] = now.as_nanos().to_le_bytes();
        slots[1] = head(origin, tag).to_le_bytes();
        for (slot, field) in slots[2..].iter_mut().zip(fields) {
            *slot = field.to_le_bytes();
        }
        self.used += 8 * (N + 2);
        self.events += 1;
    }
}

fn head(origin: Origin, tag: u8) -> u64 {
    let host = origin.host.map_or(0, |side| 1 + side as u64);
    (origin.connection.0 as u64) << 32 | (origin.path.0 as u64) << 16 | host << 8 | tag as u64
}

impl Recorder for Digest {
    fn record(&mut self, now: Instant, at: Origin, event: &Event) {
        // Tags are part of the encoding: a number once given stays.
        match *event {
            Event::Written(r) => self.put(now, at, 1, [r.start, r.end]),
            Event::Delivered(r) => self.put(now, at, 2, [r.start, r.end]),
            Event::WriteEnd(end) => self.put(now, at, 3, [end]),
            Event::DataSent { seq, data, kind } => self.put(now, at, 4, [seq, data.start, data.end, kind as u64]),
            Event::ControlSent { flags, again } => self.put(now, at, 5, [(flags as u64) << 1 | again as u64]),
            Event::DataArrived { data, new } => self.put(now, at, 6, [data.start, data.end, new]),
            Event::OfoQueue { bytes } => self.put(now, at, 7, [bytes]),
            Event::DataAcked(offset) => self.put(now, at, 8, [offset]),
            Event::Window(w) => {
                // Samples are never u64::MAX long, so "none" has a value of its own.
                let rtt = w.rtt.unwrap_or(Duration::MAX).as_nanos();
                let windows = (w.cwnd as u64) << 32 | w.ssthresh as u64;
                self.put(now, at, 9, [windows, w.in_flight as u64, w.srtt.as_nanos(), rtt]);
            }
            Event::Recovery(phase) => self.put(now, at, 10, [phase as u64]),
            Event::Lost { packets } => self.put(now, at, 11, [packets as u64]),
            Event::Timeout { n } => self.put(now, at, 12, [n as u64]),
            Event::TailLossProbe => self.put(now, at, 13, []),
            Event::Undo => self.put(now, at, 14, []),
            Event::IdleRestart => self.put(now, at, 15, []),
            Event::Penalised => self.put(now, at, 16, []),
            Event::WindowBlocked(blocked) => self.put(now, at, 17, [blocked as u64]),
            Event::Stall => self.put(now, at, 18, []),
            Event::Path(state) => self.put(now, at, 19, [state as u64]),
            Event::Connected(mptcp) => self.put(now, at, 20, [mptcp as u64]),
            Event::Fallback => self.put(now, at, 21, []),
            Event::Closed(reason) => self.put(now, at, 22, [reason as u64]),
            Event::Violation(rule) => self.put(now, at, 23, [rule as u64]),
            Event::SchedulerValue { name, micro } => {
                self.put(now, at, 24, [xxh3_64(name.as_bytes()), micro as u64]);
            }
            Event::Link { direction, size, what } => {
                let packet = (size as u64) << 1 | u64::from(direction == Direction::Up);
                match what {
                    LinkEvent::Enqueued { queue_packets, queue_bytes } => {
                        self.put(now, at, 25, [packet, queue_packets as u64, queue_bytes]);
                    }
                    LinkEvent::Departed => self.put(now, at, 26, [packet]),
                    LinkEvent::Dropped(cause) => self.put(now, at, 27, [packet, cause as u64]),
                }
            }
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
    use anabranch_units::{ConnId, PathId, Range, Side};
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
