//! An application that writes packets at random times: rate-limited TCP in background traffic.

use crate::halves::{Reader, Writer};
use crate::{Fault, PacketSizes, Stream, Workload};
use anabranch_units::{Duration, Instant, Rng};

/// Writes packets at exponential intervals, from establishment on and without end. Packets without room in the send
/// buffer are written as soon as there is room; none is dropped.
#[derive(Clone, Debug)]
pub struct PoissonSource {
    /// Mean seconds from one packet to the next.
    interval: f64,
    sizes: PacketSizes,
    rng: Rng,
    /// When the next packet is due; `None` before the first.
    next: Option<Instant>,
    /// Bytes due so far.
    due: u64,
    writer: Writer,
    reader: Reader,
}

impl PoissonSource {
    /// `per_second` packets on average (at most one per microsecond), drawn from `rng`. None at all if that is not
    /// above zero.
    pub fn new(per_second: f64, sizes: PacketSizes, rng: Rng) -> Self {
        let interval = if per_second > 0.0 { (1.0 / per_second).max(1e-6) } else { f64::INFINITY };
        Self { interval, sizes, rng, next: None, due: 0, writer: Writer::default(), reader: Reader::default() }
    }

    fn gap(&mut self) -> Duration {
        // At least one nanosecond, so that time advances.
        Duration::from_secs_f64(self.rng.exponential() * self.interval).max(Duration::from_nanos(1))
    }

    /// Makes packets up to `now`, and writes as far as there is room.
    fn go_on(&mut self, now: Instant, io: &mut dyn Stream) {
        let mut next = match self.next {
            Some(next) => next,
            None => now + self.gap(),
        };
        while next <= now {
            self.due += u64::from(self.sizes.draw(&mut self.rng));
            next += self.gap();
        }
        self.next = Some(next);
        self.writer.write(io, self.due);
    }
}

impl Workload for PoissonSource {
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
        self.next
    }

    fn is_done(&self) -> bool {
        false
    }

    fn fault(&self) -> Option<Fault> {
        self.reader.fault()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    /// Accepts this many bytes; records how many at a time.
    struct Sink {
        room: u64,
        taken: Vec<usize>,
    }

    impl Stream for Sink {
        fn write(&mut self, data: Bytes) -> usize {
            let len = (data.len() as u64).min(self.room) as usize;
            self.room -= len as u64;
            self.taken.push(len);
            len
        }
        fn writable(&self) -> u64 {
            self.room
        }
        fn finish(&mut self) {
            panic!("it never ends");
        }
        fn read(&mut self) -> Option<Bytes> {
            None
        }
        fn read_finished(&self) -> bool {
            false
        }
    }

    fn source(per_second: f64, sizes: PacketSizes) -> PoissonSource {
        PoissonSource::new(per_second, sizes, Rng::stream(1, "cross.0.packets"))
    }

    #[test]
    fn packets_come_at_exponential_intervals() {
        let mut source = source(157.0, PacketSizes::Fixed(1000));
        let mut io = Sink { room: u64::MAX, taken: vec![] };
        source.on_established(Instant::ZERO, &mut io);
        let mut gaps = vec![];
        let mut last = Instant::ZERO;
        for n in 0..20_000 {
            assert_eq!(io.taken.len(), n);
            let now = source.next_wakeup().unwrap();
            gaps.push(now.since(last).as_secs_f64() * 157.0);
            last = now;
            source.on_wakeup(now, &mut io);
        }
        assert!(io.taken.iter().all(|len| *len == 1000));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let long = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02 && (long - 0.3679).abs() < 0.01, "{mean} {long}");
    }

    #[test]
    fn what_finds_no_room_waits() {
        let mut source = source(1000.0, PacketSizes::Fixed(100));
        let mut io = Sink { room: 250, taken: vec![] };
        source.on_established(Instant::ZERO, &mut io);
        source.on_wakeup(Instant::from_millis(1000), &mut io);
        assert_eq!(io.taken.iter().sum::<usize>(), 250);
        io.room = u64::MAX;
        source.on_writable(Instant::from_millis(1000), &mut io);
        let all = io.taken.iter().sum::<usize>();
        assert!(all.is_multiple_of(100) && (80_000..120_000).contains(&all), "{all}");
    }

    #[test]
    fn a_rate_of_zero_is_silence() {
        for rate in [0.0, -1.0, f64::NAN] {
            let mut source = source(rate, PacketSizes::Fixed(100));
            let mut io = Sink { room: 1000, taken: vec![] };
            source.on_established(Instant::ZERO, &mut io);
            assert!(source.next_wakeup().unwrap() > Instant::from_millis(1_000_000_000) && io.taken.is_empty());
        }
    }
}
