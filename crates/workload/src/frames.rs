//! Frames at known times: video, calls, telemetry, games.

use crate::halves::{Reader, Writer};
use crate::{Fault, Stream, Workload};
use anabranch_units::{Duration, FramePattern, Instant};

/// Writes the frames of a pattern, which begins when the connection is established. Frames without room in the send
/// buffer are written as soon as there is room, in order; none is dropped.
#[derive(Clone, Debug)]
pub struct FrameSource {
    pattern: FramePattern,
    count: Option<u64>,
    /// From the time at which a frame is due to that at which it is late.
    deadline: Option<Duration>,
    /// When the pattern began.
    start: Option<Instant>,
    /// Frames due so far.
    due: u64,
    /// Frames written completely.
    complete: u64,
    writer: Writer,
    reader: Reader,
}

impl FrameSource {
    /// The first `count` frames of `pattern` and then the end; `None`: never stops.
    pub fn new(pattern: FramePattern, count: Option<u64>) -> Self {
        let (writer, reader) = (Writer::default(), Reader::default());
        Self { pattern, count, deadline: None, start: None, due: 0, complete: 0, writer, reader }
    }

    /// Announces of each frame that it is late so long after it was due.
    #[must_use]
    pub fn with_deadline(self, deadline: Option<Duration>) -> Self {
        Self { deadline, ..self }
    }

    fn ended(&self) -> bool {
        self.count.is_some_and(|count| self.due >= count)
    }

    /// Makes frames up to `now`, and writes as far as there is room. A call that comes late costs as much as one in time.
    fn go_on(&mut self, now: Instant, io: &mut dyn Stream) {
        let start = *self.start.get_or_insert(now);
        self.due = self.pattern.due_by(now.since(start)).min(self.count.unwrap_or(u64::MAX));
        while self.complete < self.due {
            if self.writer.written() == self.pattern.begin(self.complete) {
                let due = start + self.pattern.at(self.complete);
                io.begin_message(self.pattern.size(self.complete), self.deadline.map(|deadline| due + deadline));
            }
            if !self.writer.write(io, self.pattern.end(self.complete)) {
                return;
            }
            self.complete += 1;
        }
        if self.ended() {
            self.writer.finish(io);
        }
    }
}

impl Workload for FrameSource {
    fn on_established(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn on_writable(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn on_readable(&mut self, _now: Instant, io: &mut dyn Stream) {
        self.reader.refuse(io);
    }

    fn on_wakeup(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.start.filter(|_| !self.ended()).map(|start| start + self.pattern.at(self.due))
    }

    fn is_done(&self) -> bool {
        self.writer.is_finished()
    }

    fn fault(&self) -> Option<Fault> {
        self.reader.fault()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;
    use bytes::Bytes;

    /// Accepts this many bytes; records them.
    #[derive(Default)]
    struct Sink {
        room: u64,
        messages: Vec<(usize, u64)>,
        deadlines: Vec<Instant>,
        taken: Vec<u8>,
        finished: bool,
    }

    impl Stream for Sink {
        fn begin_message(&mut self, len: u64, deadline: Option<Instant>) {
            self.deadlines.extend(deadline);
            self.messages.push((self.taken.len(), len));
            self.messages.dedup();
        }
        fn write(&mut self, data: Bytes) -> usize {
            let len = (data.len() as u64).min(self.room) as usize;
            self.taken.extend_from_slice(&data[..len]);
            self.room -= len as u64;
            len
        }
        fn writable(&self) -> u64 {
            self.room
        }
        fn finish(&mut self) {
            self.finished = true;
        }
        fn read(&mut self) -> Option<Bytes> {
            None
        }
        fn read_finished(&self) -> bool {
            false
        }
    }

    const EVERY: Duration = Duration::from_millis(40);

    #[test]
    fn a_frame_every_interval_from_establishment_on() {
        let mut source = FrameSource::new(FramePattern::steady(1000, EVERY), Some(3));
        let mut io = Sink { room: 10_000, ..Sink::default() };
        assert_eq!(source.next_wakeup(), None);
        let start = Instant::from_millis(7);
        source.on_established(start, &mut io);
        assert_eq!((io.taken.len(), source.next_wakeup()), (1000, Some(start + EVERY)));
        source.on_wakeup(start + EVERY, &mut io);
        assert_eq!((io.taken.len(), io.finished), (2000, false));
        source.on_wakeup(start + EVERY * 2, &mut io);
        assert_eq!((io.taken.len(), io.finished, source.is_done()), (3000, true, true));
        assert_eq!(io.messages, [(0, 1000), (1000, 1000), (2000, 1000)]);
        assert_eq!(source.next_wakeup(), None);
        assert_eq!(pattern::mismatch(0, &io.taken), None);
    }

    #[test]
    fn frames_that_find_no_room_wait_and_keep_their_times() {
        let mut source = FrameSource::new(FramePattern::steady(1000, EVERY), None);
        let mut io = Sink { room: 1500, ..Sink::default() };
        source.on_established(Instant::ZERO, &mut io);
        source.on_wakeup(Instant::ZERO + EVERY, &mut io);
        assert_eq!(io.taken.len(), 1500);
        // Called late: the frames of 80 and 120 ms are both due, and the next is on time.
        io.room = 10_000;
        source.on_writable(Instant::from_millis(130), &mut io);
        assert_eq!((io.taken.len(), source.next_wakeup()), (4000, Some(Instant::from_millis(160))));
        assert!(!source.is_done());
    }

    /// A frame that waits for room keeps its deadline.
    #[test]
    fn deadlines_count_from_when_a_frame_is_due() {
        let deadline = Duration::from_millis(150);
        let mut source = FrameSource::new(FramePattern::steady(1000, EVERY), None).with_deadline(Some(deadline));
        let mut io = Sink { room: 1000, ..Sink::default() };
        source.on_established(Instant::from_millis(7), &mut io);
        source.on_wakeup(Instant::from_millis(47), &mut io);
        io.room = 1000;
        source.on_writable(Instant::from_millis(300), &mut io);
        io.deadlines.dedup();
        assert_eq!(io.deadlines, [157, 197, 237].map(Instant::from_millis));
    }

    /// An hour late, a frame per nanosecond: as many frames as a count one by one gives, at once.
    #[test]
    fn a_late_call_counts_its_frames_without_a_loop() {
        for (interval, late, expected) in [(1, 3_600_000_000_000, 3_600_000_000_001), (7, 20, 3), (7, 21, 4), (7, 0, 1)]
        {
            let pattern = FramePattern::steady(1, Duration::from_nanos(interval));
            let mut source = FrameSource::new(pattern, None);
            source.on_established(Instant::from_nanos(100), &mut Sink::default());
            source.on_wakeup(Instant::from_nanos(100 + late), &mut Sink::default());
            assert_eq!(source.due, expected);
            assert_eq!(source.next_wakeup(), Some(Instant::from_nanos(100 + expected * interval)));
        }
        let mut source = FrameSource::new(FramePattern::steady(1, Duration::from_nanos(7)), Some(2));
        source.on_established(Instant::from_nanos(100), &mut Sink::default());
        source.on_wakeup(Instant::from_millis(1), &mut Sink::default());
        assert_eq!((source.due, source.next_wakeup()), (2, None), "no more than there are");
    }

    #[test]
    fn frames_of_several_sizes_are_messages_of_their_own() {
        let pattern = FramePattern::new(EVERY, [(Duration::ZERO, 80), (Duration::ZERO, 500), (EVERY / 2, 80)]);
        let mut source = FrameSource::new(pattern, None);
        let mut io = Sink { room: 200, ..Sink::default() };
        source.on_established(Instant::ZERO, &mut io);
        assert_eq!((io.taken.len(), source.next_wakeup()), (200, Some(Instant::ZERO + EVERY / 2)));
        io.room = 1000;
        source.on_wakeup(Instant::ZERO + EVERY / 2, &mut io);
        assert_eq!(io.messages, [(0, 80), (80, 500), (580, 80)]);
        assert_eq!((io.taken.len(), source.next_wakeup()), (660, Some(Instant::ZERO + EVERY)));
    }

    #[test]
    fn a_source_of_no_frames_ends_at_once() {
        let mut source = FrameSource::new(FramePattern::steady(0, Duration::ZERO), Some(0));
        let mut io = Sink::default();
        source.on_established(Instant::ZERO, &mut io);
        assert!(source.is_done() && io.finished && io.taken.is_empty());
    }
}
