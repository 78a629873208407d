//! The sender's four timers and the back-off of the retransmission timeout.

use crate::deadlines::{Deadlines, NEVER};
use anabranch_units::{Duration, Instant};

/// Which timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// RACK's reordering timer (RFC 8985 §6.2 step 5).
    Reorder,
    /// Tail loss probe (RFC 8985 §7.2).
    Probe,
    /// Nothing was acknowledged for longer than is usual.
    Silence,
    /// Retransmission timeout (RFC 6298 §5).
    Retransmission,
}

/// Deadlines; [`NEVER`] = not armed.
#[derive(Debug)]
pub(super) struct Timers {
    reorder: Instant,
    probe: Instant,
    silence: Instant,
    retransmission: Instant,
    /// When the retransmission timer was started.
    started: Instant,
    backoff: u32,
    limit: Duration,
}

impl Timers {
    /// `limit` = longest timeout after back-off.
    pub fn new(limit: Duration) -> Self {
        let off = NEVER;
        Self { reorder: off, probe: off, silence: off, retransmission: off, started: Instant::ZERO, backoff: 0, limit }
    }

    fn deadline(&mut self, timer: Timer) -> &mut Instant {
        match timer {
            Timer::Reorder => &mut self.reorder,
            Timer::Probe => &mut self.probe,
            Timer::Silence => &mut self.silence,
            Timer::Retransmission => &mut self.retransmission,
        }
    }

    pub fn arm(&mut self, timer: Timer, at: Instant) {
        *self.deadline(timer) = at;
    }

    /// Starts the retransmission timer: RFC 6298 §5.1, §5.3, §5.6. `rto` is without back-off.
    pub fn start_retransmission(&mut self, now: Instant, rto: Duration) {
        self.started = now;
        self.retransmission = now + self.backed_off(rto);
    }

    pub fn disarm(&mut self, timer: Timer) {
        self.arm(timer, NEVER);
    }

    pub fn disarm_all(&mut self) {
        let off = NEVER;
        (self.reorder, self.probe, self.silence, self.retransmission) = (off, off, off, off);
    }

    /// The earliest deadline.
    pub fn next(&self) -> Instant {
        self.table().next()
    }

    /// The timers, the gentlest first.
    fn table(&self) -> Deadlines<Timer, 4> {
        Deadlines([
            (Timer::Reorder, self.reorder),
            (Timer::Probe, self.probe),
            (Timer::Silence, self.silence),
            (Timer::Retransmission, self.retransmission),
        ])
    }

    /// Takes the timer that is due first; on a tie the gentlest.
    pub fn expire(&mut self, now: Instant) -> Option<Timer> {
        let table = self.table();
        let timer = table.due_after(None, table.next().min(now))?;
        self.disarm(timer);
        Some(timer)
    }

    /// The timeout after back-off. The limit never goes below the timeout without back-off.
    pub fn backed_off(&self, rto: Duration) -> Duration {
        // RFC 6298 §5.5
        let factor = 1_u64.checked_shl(self.backoff).unwrap_or(u64::MAX);
        (rto * factor).min(self.limit.max(rto))
    }

    /// Doubles the timeout.
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(63);
    }

    /// A new RTT sample ends the back-off (RFC 6298 §5.7).
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// No timeout lasts longer than `limit` from now on, the one that is running included.
    pub fn set_limit(&mut self, limit: Duration, rto: Duration) {
        self.limit = limit;
        if self.retransmission < NEVER {
            self.retransmission = self.retransmission.min(self.started + self.backed_off(rto));
        }
    }

    /// When RACK's reordering timer expires.
    pub fn reorder(&self) -> Instant {
        self.reorder
    }

    /// When the retransmission timer expires.
    pub fn retransmission(&self) -> Instant {
        self.retransmission
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_earliest_expires_first_and_once() {
        let mut timers = Timers::new(ms(1000));
        let at = Instant::from_millis;
        assert_eq!((timers.next(), timers.expire(at(9))), (NEVER, None));
        timers.arm(Timer::Retransmission, at(30));
        timers.arm(Timer::Probe, at(30));
        timers.arm(Timer::Reorder, at(20));
        assert_eq!((timers.next(), timers.expire(at(19))), (at(20), None));
        assert_eq!(timers.expire(at(20)), Some(Timer::Reorder));
        assert_eq!(timers.expire(at(40)), Some(Timer::Probe));
        assert_eq!(timers.expire(at(40)), Some(Timer::Retransmission));
        assert_eq!(timers.expire(at(40)), None);
    }

    #[test]
    fn a_limit_shortens_only_what_is_running() {
        let mut timers = Timers::new(ms(1000));
        timers.set_limit(ms(500), ms(300));
        assert_eq!(timers.next(), NEVER);
        timers.back_off();
        timers.start_retransmission(Instant::from_millis(10), ms(300));
        assert_eq!(timers.next(), Instant::from_millis(510));
        timers.set_limit(ms(400), ms(300));
        assert_eq!(timers.next(), Instant::from_millis(410));
        timers.set_limit(ms(900), ms(300));
        assert_eq!(timers.next(), Instant::from_millis(410));
    }

    #[test]
    fn back_off_doubles_up_to_the_limit() {
        let mut timers = Timers::new(ms(1000));
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(timers.backed_off(ms(300)).as_millis());
            timers.back_off();
        }
        assert_eq!(seen, [300, 600, 1000, 1000]);
        assert_eq!(timers.backed_off(ms(3000)), ms(3000));
        for _ in 0..100 {
            timers.back_off();
        }
        assert_eq!(timers.backed_off(ms(300)), ms(1000));
        timers.end_backoff();
        assert_eq!(timers.backed_off(ms(300)), ms(300));
    }
}
