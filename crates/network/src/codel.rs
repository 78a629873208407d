//! Controlled Delay: RFC 8289.

use crate::{Aqm, DropTail, Fifo, Limit, ManagedQueue, Parameter, Qdisc, QueueState, Value};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant, Rate, Rng};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelSpec {
    /// Acceptable standing delay.
    pub target: Duration,
    /// The time for which the delay may exceed it: a worst-case round trip.
    pub interval: Duration,
    /// ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CodelSpec {
    /// RFC 8289 §4.2, §4.3.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

impl ManagedQueue for CodelSpec {
    const NAME: &'static str = "codel";
    const ABOUT: &'static str = "Controlled Delay (RFC 8289)";
    /// RFC 8289 leaves it open; this is Linux's default.
    const LIMIT: Limit = Limit::Packets(1000);

    #[rustfmt::skip] // A table reads best with one parameter per row.
    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("target", Value::Time(&mut self.target), "acceptable standing delay"),
            Parameter::new("interval", Value::Time(&mut self.interval), "time for which the delay may exceed target; about the longest round trip"),
            Parameter::new("ecn", Value::Flag(&mut self.ecn), "mark ECN-capable packets (RFC 3168) in place of dropping them; a full queue drops all the same"),
        ]
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn build(self, limit: DropTail, _rate: Rate, _rng: Rng) -> Box<dyn Qdisc> {
        Box::new(Fifo::new(Codel::new(self, limit)))
    }
}

/// The position in RFC 8289's `deque`, which may take several packets from the queue; [`Aqm::release`] sees one at a
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No dropping.
    Passing,
    /// The previous packet was the first to be dropped.
    Entering,
    /// Dropping, at the times of the control law.
    Dropping,
    /// The previous packet was dropped at such a time.
    Dropped,
}

/// Drops packets at the head while the sojourn time has exceeded the target for an interval.
#[derive(Clone, Debug)]
pub struct Codel {
    spec: CodelSpec,
    limit: DropTail,
    phase: Phase,
    /// When a delay above the target will have lasted an interval.
    first_above: Option<Instant>,
    drop_next: Instant,
    /// Drops since dropping began, and the value of that count when it last began.
    count: u32,
    last_count: u32,
    /// Bytes of the largest packet so far, as estimate of the link's MTU.
    largest: u32,
}

impl Codel {
    /// An empty queue of capacity `limit`.
    pub fn new(spec: CodelSpec, limit: DropTail) -> Self {
        Self {
            spec,
            limit,
            phase: Phase::Passing,
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            largest: 0,
        }
    }

    /// RFC 8289 §5.5: `dodequeue`. True if dropping is permitted.
    fn may_drop(&mut self, now: Instant, sojourn: Duration, behind: u64) -> bool {
        if sojourn < self.spec.target || behind <= u64::from(self.largest) {
            self.first_above = None;
            return false;
        }
        let at = *self.first_above.get_or_insert(now + self.spec.interval);
        now >= at
    }

    /// RFC 8289 §5.3: the time of the next drop.
    fn control_law(&self, after: Instant) -> Instant {
        let nanos = self.spec.interval.as_nanos() as f64 / f64::from(self.count).sqrt();
        after + Duration::from_nanos(nanos as u64)
    }

    /// Begins dropping: at the previous rate, if dropping ended recently.
    fn begin(&mut self, now: Instant) {
        let delta = self.count - self.last_count;
        let recent = now.since(self.drop_next) < self.spec.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
    }
}

impl Aqm for Codel {
    fn admit(&mut self, now: Instant, size: u32, queue: QueueState) -> Result<(), DropCause> {
        self.largest = self.largest.max(size);
        self.limit.admit(now, size, queue)
    }

    /// RFC 8289 §5.4: `deque`, one packet at a time.
    fn release(&mut self, now: Instant, _size: u32, sojourn: Duration, queue: QueueState) -> Result<(), DropCause> {
        let may_drop = self.may_drop(now, sojourn, queue.bytes);
        match self.phase {
            Phase::Passing if may_drop => {
                self.phase = Phase::Entering;
                return Err(DropCause::Aqm);
            }
            Phase::Passing => {}
            Phase::Entering => {
                self.begin(now);
                self.phase = Phase::Dropping;
            }
            Phase::Dropping | Phase::Dropped if !may_drop => self.phase = Phase::Passing,
            Phase::Dropping | Phase::Dropped => {
                if self.phase == Phase::Dropped {
                    self.drop_next = self.control_law(self.drop_next);
                }
                self.phase = Phase::Dropping;
                if now >= self.drop_next {
                    self.count = self.count.saturating_add(1);
                    self.phase = Phase::Dropped;
                    return Err(DropCause::Aqm);
                }
            }
        }
        Ok(())
    }

    /// As Linux's `sch_codel`: the packet that would have been dropped leaves, and the control law continues as after a drop.
    fn marks(&mut self, now: Instant) -> bool {
        if !self.spec.ecn {
            return false;
        }
        match self.phase {
            Phase::Entering => self.begin(now),
            Phase::Dropped => self.drop_next = self.control_law(self.drop_next),
            Phase::Passing | Phase::Dropping => {}
        }
        self.phase = Phase::Dropping;
        true
    }

    fn idle(&mut self, _now: Instant) {
        self.first_above = None;
        self.phase = Phase::Passing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEHIND: QueueState = QueueState { packets: 100, bytes: 150_000, busy: false };

    fn codel() -> Codel {
        let mut codel = Codel::new(CodelSpec::default(), DropTail::Packets(1000));
        codel.admit(Instant::ZERO, 1500, BEHIND).unwrap();
        codel
    }

    /// Packets with a sojourn time of `sojourn` come to the head in every millisecond of `times`; returns the times of
    /// drops.
    fn drops(codel: &mut Codel, times: core::ops::Range<u64>, sojourn: u64) -> Vec<u64> {
        let mut dropped = vec![];
        for ms in times {
            let at = Instant::from_millis(ms);
            while codel.release(at, 1500, Duration::from_millis(sojourn), BEHIND).is_err() {
                dropped.push(ms);
            }
        }
        dropped
    }

    #[test]
    fn drops_come_at_an_interval_over_the_root_of_their_count() {
        // First after 100 ms above the target; then at 200 and, from there, 100/√2, 100/√3 … later: 270.71, 328.45, 378.45,
        // 423.17, 463.99, 501.79, 537.14, 570.48.
        let expected = [100, 200, 271, 329, 379, 424, 464, 502, 538, 571];
        assert_eq!(drops(&mut codel(), 0..572, 20), expected);
    }

    #[test]
    fn a_short_excursion_is_no_standing_queue() {
        let mut codel = codel();
        for begin in [0, 100, 200] {
            assert_eq!(drops(&mut codel, begin..begin + 99, 20), []);
            // A delay equal to the target counts as above it; a nanosecond less is below.
            let below = Duration::from_nanos(4_999_999);
            assert_eq!(codel.release(Instant::from_millis(begin + 99), 1500, below, BEHIND), Ok(()));
        }
        assert_eq!(drops(&mut codel, 300..401, 5), [400]);
    }

    #[test]
    fn less_than_a_packet_behind_is_no_queue() {
        let mut codel = codel();
        let behind = QueueState { packets: 1, bytes: 1500, busy: false };
        let mut release = |ms| codel.release(Instant::from_millis(ms), 40, Duration::from_millis(900), behind);
        assert!((0..1000).all(|ms| release(ms).is_ok()));
    }

    #[test]
    fn dropping_ends_below_the_target_and_begins_anew_where_it_was() {
        let mut codel = codel();
        // Four drops after the first, so the next begin has a count of 5.
        assert_eq!(drops(&mut codel, 0..400, 20).len(), 5);
        assert_eq!(drops(&mut codel, 400..410, 1), []);
        // 100 ms above the target again: the count is 5 − 1 = 4, so 50 ms to the next drop, then 100/√5.
        assert_eq!(drops(&mut codel, 410..620, 20), [510, 560, 605]);
        // After 16 intervals below the target the count begins at one.
        assert_eq!(drops(&mut codel, 620..2300, 1), []);
        assert_eq!(drops(&mut codel, 2300..2501, 20), [2400, 2500]);
    }

    #[test]
    fn an_empty_queue_ends_dropping() {
        let mut codel = codel();
        assert_eq!(drops(&mut codel, 0..150, 20), [100]);
        codel.idle(Instant::from_millis(150));
        assert_eq!(drops(&mut codel, 150..250, 20), []);
    }

    #[test]
    fn a_backlog_may_cost_several_packets_at_once() {
        let mut codel = codel();
        assert_eq!(drops(&mut codel, 0..101, 20), [100]);
        // No packet came to the head for 300 ms: the drops of 200, 270.7, 328.4 and 378.4 ms are all due.
        assert_eq!(drops(&mut codel, 400..401, 20), [400; 4]);
    }
}
