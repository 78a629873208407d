//! How long responses take from the request.

use crate::Histogram;
use anabranch_units::{Instant, Range};

/// Requests of one size, one after the other, each answered by a response of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseSchedule {
    /// Bytes of a request; at least 1.
    pub request: u64,
    /// Bytes of a response; at least 1.
    pub size: u64,
}

/// The response times of one connection: from the request's first byte written by the client to the response's last byte
/// delivered to it.
#[derive(Clone, Debug)]
pub(super) struct Responses {
    schedule: ResponseSchedule,
    /// When the request under way was written.
    asked: Option<Instant>,
    /// Where its response ends.
    end: u64,
    /// In nanoseconds.
    times: Histogram,
}

impl Responses {
    pub fn new(schedule: ResponseSchedule) -> Self {
        Self { schedule, asked: None, end: 0, times: Histogram::default() }
    }

    /// The client wrote these bytes of its requests.
    pub fn on_written(&mut self, now: Instant, range: Range) {
        if range.start.is_multiple_of(self.schedule.request.max(1)) {
            self.asked = Some(now);
            self.end += self.schedule.size;
        }
    }

    /// Everything below `end` is delivered.
    pub fn on_delivered(&mut self, now: Instant, end: u64) {
        if end >= self.end
            && let Some(asked) = self.asked.take()
        {
            self.times.add(now.since(asked).as_nanos(), 1);
        }
    }

    pub fn restart(&mut self) {
        self.times.clear();
    }

    /// The times of all responses up to `end`. One that is still under way counts with its age once that exceeds the mean of
    /// the others: leaving it out would hide a stall.
    pub fn finish(mut self, end: Instant) -> Histogram {
        let age = self.asked.map(|asked| end.since(asked).as_nanos());
        if let Some(age) = age.filter(|age| *age as f64 > self.times.mean().unwrap_or(0.0)) {
            self.times.add(age, 1);
        }
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Two responses, of 30 and 10 ms, and a third request at 90 ms.
    fn responses() -> Responses {
        let mut responses = Responses::new(ResponseSchedule { request: 100, size: 1000 });
        responses.on_written(at(10), Range::new(0, 60));
        // The rest of the request is no new one.
        responses.on_written(at(15), Range::new(60, 100));
        responses.on_delivered(at(35), 999);
        responses.on_delivered(at(40), 1000);
        responses.on_written(at(70), Range::new(100, 200));
        responses.on_delivered(at(80), 2000);
        responses.on_written(at(90), Range::new(200, 300));
        responses
    }

    fn milliseconds(times: &Histogram) -> (f64, f64) {
        (times.mean().unwrap_or(0.0) / 1e6, times.max().unwrap_or(0) as f64 / 1e6)
    }

    #[test]
    fn a_response_takes_from_the_request_to_its_last_byte() {
        // The third is 5 ms old when the run ends: too young to count.
        assert_eq!(milliseconds(&responses().finish(at(95))), (20.0, 30.0));
    }

    #[test]
    fn a_stall_at_the_end_is_not_hidden() {
        assert_eq!(milliseconds(&responses().finish(at(140))), (30.0, 50.0));
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut responses = responses();
        responses.restart();
        responses.on_delivered(at(110), 3000);
        assert_eq!(milliseconds(&responses.finish(at(110))), (20.0, 20.0));
    }
}
