//! As much data as the connection carries, in one direction or in both.

use crate::halves::{Reader, Writer};
use crate::{Fault, Stream, Workload};
use anabranch_units::Instant;

/// Sends as much as it can: a fixed size and then the end, or for ever.
#[derive(Clone, Debug)]
pub struct BulkSource {
    size: Option<u64>,
    writer: Writer,
    reader: Reader,
}

impl BulkSource {
    /// Sends `size` bytes and finishes; `None`: never stops.
    pub fn new(size: Option<u64>) -> Self {
        Self { size, writer: Writer::default(), reader: Reader::default() }
    }

    /// Bytes handed over so far.
    pub fn written(&self) -> u64 {
        self.writer.written()
    }

    /// Fills the send buffer.
    fn fill(&mut self, io: &mut dyn Stream) {
        if self.writer.write(io, self.size.unwrap_or(u64::MAX)) {
            self.writer.finish(io);
        }
    }
}

impl Workload for BulkSource {
    fn on_established(&mut self, _now: Instant, io: &mut dyn Stream) {
        // A source with a size is one message.
        if let Some(size) = self.size {
            io.begin_message(size, None);
        }
        self.fill(io);
    }

    fn on_writable(&mut self, _now: Instant, io: &mut dyn Stream) {
        self.fill(io);
    }

    fn on_readable(&mut self, _now: Instant, io: &mut dyn Stream) {
        self.reader.refuse(io);
    }

    fn is_done(&self) -> bool {
        self.writer.is_finished()
    }

    fn fault(&self) -> Option<Fault> {
        self.reader.fault()
    }
}

/// Reads what a [`BulkSource`] sends and verifies every byte; finishes its own, empty direction after the end.
#[derive(Clone, Debug)]
pub struct BulkSink {
    expected: Option<u64>,
    reader: Reader,
}

impl BulkSink {
    /// Expects the stream to end after `expected` bytes; `None`: anywhere.
    pub fn new(expected: Option<u64>) -> Self {
        Self { expected, reader: Reader::default() }
    }

    /// Bytes read so far.
    pub fn received(&self) -> u64 {
        self.reader.received()
    }

    /// Reads all available data. True if the end has just come.
    fn drain(&mut self, io: &mut dyn Stream) -> bool {
        let ends = self.reader.read(io);
        if let Some(expected) = self.expected {
            self.reader.expect(expected);
        }
        ends
    }
}

impl Workload for BulkSink {
    fn on_readable(&mut self, _now: Instant, io: &mut dyn Stream) {
        if self.drain(io) {
            io.finish();
        }
    }

    fn is_done(&self) -> bool {
        self.reader.has_ended()
    }

    fn fault(&self) -> Option<Fault> {
        self.reader.fault()
    }
}

/// Both directions at once: sends as its source does, and verifies received data as a [`BulkSink`]. Each direction
/// ends independently.
#[derive(Clone, Debug)]
pub struct Duplex<S = BulkSource> {
    source: S,
    sink: BulkSink,
}

impl Duplex {
    /// Sends `size` bytes and finishes; expects the peer's stream to end after `expected`.
    pub fn new(size: u64, expected: u64) -> Self {
        Self::of(BulkSource::new(Some(size)), Some(expected))
    }
}

impl<S: Workload> Duplex<S> {
    /// Sends as `source`; expects the peer's stream to end after `expected` bytes; `None`: anywhere.
    pub fn of(source: S, expected: Option<u64>) -> Self {
        Self { source, sink: BulkSink::new(expected) }
    }
}

impl<S: Workload> Workload for Duplex<S> {
    fn on_established(&mut self, now: Instant, io: &mut dyn Stream) {
        self.source.on_established(now, io);
    }

    fn on_writable(&mut self, now: Instant, io: &mut dyn Stream) {
        self.source.on_writable(now, io);
    }

    fn on_readable(&mut self, _now: Instant, io: &mut dyn Stream) {
        self.sink.drain(io);
    }

    fn on_wakeup(&mut self, now: Instant, io: &mut dyn Stream) {
        self.source.on_wakeup(now, io);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.source.next_wakeup()
    }

    fn is_done(&self) -> bool {
        self.source.is_done() && self.sink.is_done()
    }

    fn fault(&self) -> Option<Fault> {
        self.sink.fault()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;
    use crate::pipe::{Both, Pipe};
    use bytes::Bytes;
    use proptest::prelude::*;

    /// Runs both ends until the source is done or `limit` rounds have passed.
    fn transfer(source: &mut BulkSource, sink: &mut BulkSink, io: &mut Pipe, limit: u32) {
        source.on_established(Instant::ZERO, io);
        sink.on_established(Instant::ZERO, io);
        for _ in 0..limit {
            sink.on_readable(Instant::ZERO, io);
            if sink.is_done() {
                break;
            }
            source.on_writable(Instant::ZERO, io);
        }
    }

    proptest! {
        #[test]
        fn a_sized_transfer_arrives_whole(size in 0u64..3_000_000, room in 1_000u64..400_000, per_write in 500usize..100_000) {
            let (mut source, mut sink) = (BulkSource::new(Some(size)), BulkSink::new(Some(size)));
            let mut io = Pipe::new(room, per_write);
            transfer(&mut source, &mut sink, &mut io, 10_000);
            prop_assert!(source.is_done() && sink.is_done());
            prop_assert_eq!((source.written(), sink.received()), (size, size));
            prop_assert_eq!(&io.messages, &[size]);
            prop_assert_eq!((source.fault(), sink.fault()), (None, None));
            // Each end finished once.
            prop_assert_eq!(io.finished, 2);
        }
    }

    #[test]
    fn an_endless_source_keeps_the_buffer_full() {
        let (mut source, mut sink) = (BulkSource::new(None), BulkSink::new(None));
        let mut io = Pipe::new(200_000, usize::MAX);
        transfer(&mut source, &mut sink, &mut io, 20);
        assert_eq!(source.written(), 21 * 200_000);
        assert_eq!(io.writable(), 0);
        assert!(!source.is_done() && !sink.is_done());
        assert_eq!(sink.fault(), None);
    }

    /// The fault that a sink expecting `expected` bytes finds in `pieces` and then, if `end`, the end.
    fn verdict(expected: Option<u64>, pieces: &[Bytes], end: bool) -> Option<Fault> {
        let mut sink = BulkSink::new(expected);
        let mut io = Pipe::new(u64::MAX, usize::MAX);
        for piece in pieces {
            io.write(piece.clone());
        }
        io.finished = end.into();
        sink.on_readable(Instant::ZERO, &mut io);
        assert_eq!(sink.is_done(), end);
        sink.fault()
    }

    #[test]
    fn a_sink_reports_the_first_fault() {
        let piece = pattern::piece;
        let wrong_length = |got, expected| Some(Fault::WrongLength { got, expected });
        assert_eq!(verdict(Some(2800), &[piece(0, 1400), piece(1400, 1400)], true), None);
        assert_eq!(verdict(None, &[piece(0, 1400)], true), None);
        assert_eq!(verdict(Some(2800), &[piece(0, 1400)], false), None);
        assert_eq!(verdict(Some(2800), &[piece(0, 1400)], true), wrong_length(1400, 2800));
        assert_eq!(verdict(Some(1000), &[piece(0, 1400)], false), wrong_length(1400, 1000));
        // Two segments swapped, and one flipped bit before a wrong end.
        let swapped = verdict(None, &[piece(0, 1400), piece(2800, 1400), piece(1400, 1400)], true);
        assert!(matches!(swapped, Some(Fault::WrongByte { offset: 1400..1416 })), "{swapped:?}");
        let mut flipped = piece(0, 1400).to_vec();
        flipped[700] ^= 0x10;
        assert_eq!(verdict(Some(9), &[flipped.into()], true), Some(Fault::WrongByte { offset: 700 }));
    }

    #[test]
    fn a_source_wants_no_answer() {
        let mut source = BulkSource::new(Some(10));
        let mut io = Pipe::new(100, usize::MAX);
        io.write(pattern::piece(0, 3));
        source.on_readable(Instant::ZERO, &mut io);
        assert_eq!(source.fault(), Some(Fault::WrongLength { got: 3, expected: 0 }));
    }

    proptest! {
        #[test]
        fn both_directions_arrive_whole(there in 0u64..1_000_000, back in 0u64..1_000_000, room in 1_000u64..400_000) {
            let (mut left, mut right) = (Duplex::new(there, back), Duplex::new(back, there));
            let (mut to_right, mut to_left) = (Pipe::new(room, 50_000), Pipe::new(room, 60_000));
            left.on_established(Instant::ZERO, &mut Both(&mut to_right, &mut to_left));
            right.on_established(Instant::ZERO, &mut Both(&mut to_left, &mut to_right));
            for _ in 0..4000 {
                let mut io = Both(&mut to_right, &mut to_left);
                left.on_readable(Instant::ZERO, &mut io);
                left.on_writable(Instant::ZERO, &mut io);
                let mut io = Both(&mut to_left, &mut to_right);
                right.on_readable(Instant::ZERO, &mut io);
                right.on_writable(Instant::ZERO, &mut io);
            }
            prop_assert!(left.is_done() && right.is_done());
            prop_assert_eq!((left.fault(), right.fault()), (None, None));
            prop_assert_eq!((to_right.finished, to_left.finished), (1, 1));
        }
    }

    #[test]
    fn a_direction_that_ends_early_is_a_fault_of_that_direction() {
        let (mut to_right, mut to_left) = (Pipe::new(100, 100), Pipe::new(100, 100));
        to_right.write(pattern::piece(0, 5));
        to_right.finish();
        let mut right = Duplex::new(7, 6);
        let mut io = Both(&mut to_left, &mut to_right);
        right.on_established(Instant::ZERO, &mut io);
        right.on_readable(Instant::ZERO, &mut io);
        assert_eq!(right.fault(), Some(Fault::WrongLength { got: 5, expected: 6 }));
    }
}
