//! The connection-level retransmission timer of a Linux kernel, which retransmits data that a slow subflow has not
//! delivered yet.

use crate::stale::Silence;
use anabranch_plugin::schedule::{DataRepair, PathView, Repeat, Round, View};
use anabranch_units::{Duration, Instant, PathId, Range};

/// The timer's interval while no subflow's own timer is pending (TCP_RTO_MIN).
pub const INTERVAL: Duration = Duration::from_millis(200);
/// The kernel's supplements to a tail loss probe's two round trips (TCP_TIMEOUT_MIN): always, and if one packet is in
/// flight.
const PROBE: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(200));

/// When the connection's first piece is retransmitted, and the part of it that still waits for room.
#[derive(Clone, Copy, Debug)]
pub struct DataTimer {
    interval: Duration,
    at: Instant,
    again: Option<(PathId, Range)>,
    /// Data was acknowledged since the last round.
    acked: bool,
}

impl Default for DataTimer {
    fn default() -> Self {
        Self { interval: INTERVAL, at: Instant::MAX, again: None, acked: false }
    }
}

/// The interval of a subflow's own timer, if it runs: a tail loss probe's (RFC 8985 §7.2) or a retransmission's.
fn own_timer(path: &PathView) -> Option<Duration> {
    (path.in_flight > 0).then(|| probe(path, path.in_flight))
}

/// The time after which a path's timer expires that starts while so many packets are `under_way`.
fn probe(path: &PathView, under_way: u32) -> Duration {
    let (least, alone) = PROBE;
    let extra = if under_way == 1 { alone } else { least };
    path.srtt.map_or(path.rto, |srtt| srtt * 2 + extra).min(path.rto)
}

/// The time until the kernel's timer of a subflow expires, if it runs and is not due yet. `pushed`: what waits for the path
/// is on its way, so that the timer starts if nothing was.
///
/// Linux 6.18: `mptcp_timeout_from_subflow`.
fn left(path: &PathView, now: Instant, pushed: bool) -> Option<Duration> {
    if path.timer < Instant::MAX {
        return (path.timer > now).then(|| path.timer.since(now));
    }
    (pushed && path.queued > 0).then(|| probe(path, path.queued))
}

/// The first path that could retransmit: nothing in flight, nothing to send.
fn idle(view: &View) -> Option<PathId> {
    view.candidates().find(|p| p.held_bytes() == 0 && p.queued == 0).map(|p| p.id)
}

impl DataTimer {
    /// A path is chosen for new data: the interval is the longest of the subflows' own, without those of silent paths. `pushed`:
    /// the paths, as [bits](PathId::bit), whose earlier bursts of this round are on their way.
    pub fn measure(&mut self, view: &View, silence: &Silence, pushed: u32) {
        let audible = view.candidates().filter(|p| !silence.is_silent(p.id));
        let longest = match view.sender().repair {
            DataRepair::DataTimer => audible.filter_map(|p| left(p, view.now(), pushed & p.id.bit() != 0)).max(),
            DataRepair::Rescue => view.paths().iter().filter_map(own_timer).max(),
        };
        self.interval = longest.unwrap_or(INTERVAL);
    }

    /// The connection acknowledged data: the timer restarts while there is more.
    pub fn restart(&mut self, view: &View) {
        // The kernel gives new data to the paths first, and so measures the interval.
        self.acked = true;
        if view.sender().repair == DataRepair::Rescue {
            self.start(view);
        }
    }

    /// Restarts if data was acknowledged.
    pub fn start(&mut self, view: &View) {
        if core::mem::take(&mut self.acked) {
            let done = view.data_acked() >= view.written();
            self.at = if done { Instant::MAX } else { view.now() + self.interval };
        }
    }

    /// Retransmits the first `piece`, which was given to paths, when it is due.
    pub fn run(&mut self, round: &mut Round<'_>, piece: Range) {
        self.start(round);
        if piece.is_empty() {
            self.at = Instant::MAX;
            return;
        }
        if self.at <= round.now() {
            self.again_on(round, idle(round), piece);
            self.at = Instant::MAX;
        }
        self.go_on(round);
    }

    /// The timer expired.
    pub fn has_expired(&self, view: &View) -> bool {
        self.at <= view.now()
    }

    /// The timer expired: retransmits `piece` on `on`, and starts again.
    pub fn expire(&mut self, round: &mut Round<'_>, on: Option<PathId>, piece: Range) {
        self.at = round.now() + self.interval;
        self.again_on(round, on, piece);
    }

    /// `piece` is to be retransmitted on `on`.
    fn again_on(&mut self, round: &mut Round<'_>, on: Option<PathId>, piece: Range) {
        self.again = on.map(|on| (on, piece)).or(self.again);
        if let Some((on, _)) = self.again {
            round.release(on, piece);
        }
    }

    /// The timer runs, and what is left of a piece is retransmitted as far as there is room.
    fn go_on(&mut self, round: &mut Round<'_>) {
        let (due, runs) = (round.now() + self.interval, self.at < Instant::MAX);
        let keeps = round.sender().repair == DataRepair::DataTimer && runs;
        // The kernel leaves a timer that runs as it is (`mptcp_rtx_timer_pending`).
        self.at = if keeps { self.at } else { self.at.min(due) };
        self.again = self.again.and_then(|(on, range)| repeat(round, on, range));
    }

    /// The same for [`DataRepair::DataTimer`]: the timer runs until everything written is acknowledged.
    pub fn run_until_acked(&mut self, round: &mut Round<'_>) {
        self.start(round);
        if round.data_acked() >= round.written() {
            self.at = Instant::MAX;
            return;
        }
        self.go_on(round);
    }

    /// When the timer is due.
    pub fn at(&self) -> Option<Instant> {
        (self.at < Instant::MAX).then_some(self.at)
    }
}

/// Retransmits `range` on `on`, segment by segment, while there is room; returns the rest.
fn repeat(round: &mut Round<'_>, on: PathId, range: Range) -> Option<(PathId, Range)> {
    let mut start = range.start.max(round.data_acked());
    while start < range.end {
        if !round.path(on)?.eligible() {
            return Some((on, Range::new(start, range.end)));
        }
        let rest = Range::new(start, range.end.min(start + u64::from(round.path(on)?.mss)));
        let segment = rest.intersect(carried(round, on, start)?);
        if !round.repeat(on, segment, Repeat::Rescue) {
            return None;
        }
        start = segment.end;
    }
    None
}

/// The data that was sent together with the byte at `start`, or waits with it in another path's queue.
fn carried(view: &View, on: PathId, start: u64) -> Option<Range> {
    if let Some((run, _)) = view.outstanding().at(start) {
        return Some(run);
    }
    let others = view.paths().iter().map(|p| p.id).filter(|id| *id != on);
    let mut queued = others.flat_map(|id| view.queue(id)).map(|queued| queued.range);
    queued.find(|range| range.start <= start && start < range.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send_memory::piece_end;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::schedule::{Cause, SenderPolicy};

    const HALF: u32 = 12;

    /// Path 0, with an RTT of 300 ms, sent a piece and a half, of which the last `queued` segments wait; path 1 is
    /// empty.
    fn waiting(queued: u64) -> Bench {
        let mut bench = Bench::new(&[path(0, 300, 36 - queued as u32, 0), path(1, 20, HALF, 0)]);
        bench.write(36);
        let mut round = Round::new(&mut bench.view, &mut bench.windows, Cause::Written);
        while round.enqueue_next(PathId(0)) {}
        (0..36 - queued).for_each(|n| {
            let queued = bench.view.take_admissible(PathId(0)).unwrap();
            assert_eq!(queued.range.start, n * MSS);
            bench.sent(0, queued.range);
        });
        bench
    }

    fn run_once(timer: &mut DataTimer, bench: &mut Bench) {
        let mut round = Round::new(&mut bench.view, &mut bench.windows, Cause::Wakeup);
        let first = round.data_acked();
        let piece = Range::new(first, piece_end(first).min(36 * MSS).max(first));
        if round.sender().repair == DataRepair::Rescue {
            return timer.run(&mut round, piece);
        }
        if timer.has_expired(&round) {
            let on = idle(&round);
            timer.expire(&mut round, on, piece);
        }
        timer.run_until_acked(&mut round);
    }

    fn run(timer: &mut DataTimer, bench: &mut Bench, ms: u64) -> Vec<u64> {
        bench.at(ms);
        run_once(timer, bench);
        bench.send(1)
    }

    /// From a capture: 200 ms after the first data on a path with an RTT of 200 ms, the path that had just joined
    /// retransmitted it.
    #[test]
    fn the_first_piece_is_repeated_on_a_path_with_nothing_to_do() {
        let (mut timer, mut bench) = (DataTimer::default(), waiting(20));
        assert_eq!(run(&mut timer, &mut bench, 0), []);
        assert_eq!(timer.at(), Some(Instant::from_millis(200)));
        assert_eq!(run(&mut timer, &mut bench, 199), []);
        let first: Vec<u64> = (0..u64::from(HALF)).collect();
        assert_eq!(run(&mut timer, &mut bench, 200), first, "as much as the window takes");
        bench.acked(1, HALF);
        let rest: Vec<u64> = (u64::from(HALF)..24).collect();
        assert_eq!(run(&mut timer, &mut bench, 220), rest, "also what path 0 has only queued");
        assert_eq!(run(&mut timer, &mut bench, 240), []);
        assert_eq!(timer.at(), Some(Instant::from_millis(400)));
    }

    #[test]
    fn a_path_repeats_what_it_delivered_and_the_peer_dropped() {
        // RFC 8684 §3.3.6: the subflow acknowledged everything, the connection nothing.
        let (mut timer, mut bench) = (DataTimer::default(), waiting(0));
        bench.view.set_sender(SenderPolicy::LINUX);
        run(&mut timer, &mut bench, 0);
        let path = bench.view.path_mut(PathId(0)).unwrap();
        (path.in_flight, path.in_flight_bytes) = (0, 0);
        bench.at(200);
        run_once(&mut timer, &mut bench);
        assert_eq!(bench.send(0), (0..24).collect::<Vec<u64>>(), "the first piece");
        assert_eq!(timer.at(), Some(Instant::from_millis(400)));
    }

    #[test]
    fn a_busy_path_repeats_nothing() {
        let (mut timer, mut bench) = (DataTimer::default(), waiting(0));
        run(&mut timer, &mut bench, 0);
        bench.view.path_mut(PathId(1)).unwrap().in_flight_bytes = 1;
        assert_eq!(run(&mut timer, &mut bench, 200), []);
        assert_eq!(timer.at(), Some(Instant::from_millis(400)));
        // All of it is SACKed or lost, but not acknowledged.
        let path = bench.view.path_mut(PathId(1)).unwrap();
        (path.in_flight_bytes, path.uncleared_bytes) = (0, 1);
        assert_eq!(run(&mut timer, &mut bench, 400), []);
    }

    #[test]
    fn an_acknowledgment_puts_it_off_by_the_longest_of_the_subflows_timers() {
        let (mut timer, mut bench) = (DataTimer::default(), waiting(0));
        timer.measure(&bench.view, &Silence::default(), 0);
        bench.at(50);
        bench.view.on_data_acked(MSS);
        timer.restart(&bench.view);
        // A tail loss probe after two round trips and 2 ms.
        assert_eq!(timer.at(), Some(Instant::from_millis(652)));
        bench.view.path_mut(PathId(0)).unwrap().in_flight = 1;
        timer.measure(&bench.view, &Silence::default(), 0);
        timer.restart(&bench.view);
        assert_eq!(timer.at(), Some(Instant::from_millis(50 + 800)));
        bench.view.on_data_acked(36 * MSS);
        timer.restart(&bench.view);
        assert_eq!(timer.at(), None);
    }

    #[test]
    fn as_linux_the_interval_is_what_is_left_of_the_longest_timer() {
        let (mut timer, mut bench) = (DataTimer::default(), waiting(0));
        bench.view.set_sender(SenderPolicy::LINUX);
        bench.at(50);
        for (id, ms) in [(0, 370), (1, 90)] {
            bench.view.path_mut(PathId(id)).unwrap().timer = Instant::from_millis(ms);
        }
        bench.view.on_data_acked(MSS);
        // New data goes to the paths before the timer restarts.
        timer.restart(&bench.view);
        timer.measure(&bench.view, &Silence::default(), 0);
        assert_eq!(run(&mut timer, &mut bench, 50), []);
        assert_eq!(timer.at(), Some(Instant::from_millis(370)));
        // One that is due, or does not run, has nothing left.
        bench.at(370);
        bench.view.path_mut(PathId(1)).unwrap().timer = Instant::MAX;
        timer.measure(&bench.view, &Silence::default(), 0);
        assert_eq!(timer.interval, INTERVAL);
    }

    #[test]
    fn only_the_piece_that_is_acknowledged_in_part_is_repeated() {
        let (mut timer, mut bench) = (DataTimer::default(), waiting(0));
        run(&mut timer, &mut bench, 0);
        bench.view.on_data_acked(20 * MSS);
        let rest: Vec<u64> = (20..24).collect();
        assert_eq!(run(&mut timer, &mut bench, 200), rest);
    }

    #[test]
    fn a_subflow_with_nothing_in_flight_has_no_timer() {
        let mut bench = Bench::new(&[path(0, 300, 12, 0), path(1, 20, 12, 0)]);
        let mut timer = DataTimer::default();
        bench.write(1);
        timer.measure(&bench.view, &Silence::default(), 0);
        timer.restart(&bench.view);
        assert_eq!(timer.at(), Some(Instant::ZERO + INTERVAL));
        bench.view.path_mut(PathId(0)).unwrap().in_flight = 2;
        timer.measure(&bench.view, &Silence::default(), 0);
        timer.restart(&bench.view);
        assert_eq!(timer.at(), Some(Instant::from_millis(602)));
    }
}
