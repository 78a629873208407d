//! The default scheduler of upstream Linux: the subflow that would flush its send queue first.

use crate::data_timer::{DataTimer, INTERVAL};
use crate::pick::Ahead;
pub use crate::send_memory::subflow_memory;
use crate::send_memory::{PIECE, SendMemory, Writer, held, held_once_pushed, pace};
use crate::stale::Silence;
use anabranch_plugin::registry::{Entry, Handle, Parameters, number, whole};
use anabranch_plugin::schedule::{
    Binding, Cause, DataRepair, PathView, Repeat, Round, Scheduler, SchedulerEvent, View,
};
use anabranch_units::{Instant, PathId, Range};

page!(
    "\
# Idea

The scheduler of an unmodified Linux kernel (`net.mptcp.scheduler = default`). Give the next run of data to the subflow
that would need the least time to send its queued data, at its pacing rate. The data goes into the subflow's send queue
at once, up to its send memory, however small its congestion window is.

# Rule

q = memory of the bytes queued on a path and in flight, P = its pacing rate (2·cwnd·mss/srtt in slow start,
1.2·cwnd·mss/srtt after it), A = the average of P:

```text
linger = q / A                     the path with the least takes a burst; ties go to the lower id
burst  = min(65428 bytes, room in the peer's window)
A      = (A·q + P·burst) / (q + burst)
```

A burst is made of whole pieces of 32728 bytes (the kernel's page fragments): it ends after the piece with which it is
used up, the path's send memory is full, or the data ends. Then the rule is applied again. If the path with the least
linger time has no memory left, nothing is bound. A new write or acknowledgment begins a new burst: none is continued.
Backup paths are used if there is no other.

Send memory of a path: `sndbuf` · max(10, its greatest window) · 2304 bytes (for a payload of 1400), at most its share
of the connection's `send_buffer` (tcp_wmem). It follows the window at an acknowledgment while the writer sleeps, the
first time only if queued data does not fill the window. It holds the payload, and 832 bytes per `sk_buff`, which is a
piece while queued; once sent, the packets of a millisecond, at least 2 (1.3 in congestion avoidance). The connection's
memory, the sum of the paths' and 4096 bytes, counts written payload that the connection's peer has not acknowledged.
Once it is full the writer sleeps until a third of it is free, and no path gets unwritten data.

Data stranded by a timeout is retransmitted piece by piece on paths with nothing in flight; all of it at once when the
path was closed or has been silent for so long that the kernel declares it stale. The connection's own timer retransmits
the first piece although no path has failed: it starts with the first data and restarts with every DATA_ACK, and its
interval is the longest of the subflows' timers (usually a tail loss probe's two round trips) at the time when data was
last given to a path, or 200 ms while none was in flight. So a path that joins one of 200 ms begins with data that the
other already carries.

With `sender_model = linux` it also retransmits, on the same path, data that the path delivered and the peer dropped. Its
interval is what is left of the longest of the subflows' timers at each choice of a path, also at the last, which finds
the peer's window used up; what earlier bursts of the same round gave to other paths is on its way by then. An
acknowledgment restarts it before any path but the acknowledgment's own gets new data. Data that was SACKed or lost
counts as in flight until an acknowledgment covers it. Pieces fill pages of 32768 bytes, with 40 bytes before each: one
ends with its page, and with its message where everything was given to paths before the next was written. The first of a
burst may be less, a message begins a new burst, and a segment ends where its piece or the peer's window does. Ties go to
the subflow that came first.

Then a path that timed out gets data as before. Each time the connection's timer expires, a path with data in flight or
queued that acknowledged nothing since the last expiry is silent for another interval, and one piece is retransmitted on a
path with nothing in flight. After more than `stale_loss_cnt` silent intervals the path is stale, if another one was
silent for less: it gets no data until it delivers again, and everything that is not acknowledged is bound again, whatever
path carries it. Timers of silent paths do not count for the interval.

# When it helps

Long transfers over paths of any rate: no window is ever unused for lack of bound data.

# When it hurts

Round-trip times do not matter: an idle slow path beats a busy fast one. A transfer of less than 64 KB uses only the
first path, if that is idle; short writes in quick succession alternate between the paths. Queues of several windows are
bound long before they leave, so a path that becomes slow or silent holds the whole connection up.

# Departures

The memory of buffers is computed by formula: within a tenth of the values in `ss`. A connection with one path is
scheduled too. Without `sender_model = linux` the engine gives a path no new data once it timed out, takes back its queued
data and probes it, whereas the kernel continues to fill it until it is stale; so after an outage the kernel has more to
retransmit and stalls longer. The kernel's own timer sends a stranded piece every 200 ms or more; there the next piece
follows when the path is idle again. Data acknowledged meanwhile is not retransmitted; the kernel has it queued by then. A
path is stale twice its retransmission timeout and `stale_loss_cnt` times 200 ms after the subflow's timeout.

# References

Linux 6.18, net/mptcp/protocol.c and net/ipv4/tcp_input.c, read for behaviour; measured against that kernel.
"
);

const BURST: Handle<u64> = whole("burst", 65428, 1..=1_000_000_000)
    .unit("bytes")
    .about("bytes bound to a path before the next choice, rounded up to whole pieces");
const SNDBUF: Handle<f64> = number("sndbuf", 2.0, 1.0..=1000.0)
    .unit("windows")
    .about("send memory of a path in multiples of its greatest window, each packet counted as in the kernel");
const STALE_LOSS_CNT: Handle<u64> = whole("stale_loss_cnt", 4, 0..=255)
    .about("intervals of silence after which a path's data is retransmitted on others (net.mptcp.stale_loss_cnt)");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "linux-default",
    aliases: &[],
    about: "upstream Linux: the subflow that flushes its send queue first",
    page: PAGE,
    parameters: &[BURST.parameter, SNDBUF.parameter, STALE_LOSS_CNT.parameter],
    build: |p| Box::new(LinuxDefault::new(Config::from(p))),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes bound before the next choice.
    pub burst: u64,
    /// Send memory in greatest windows.
    pub sndbuf: f64,
    /// Intervals of silence after which a path is stale.
    pub stale_loss_cnt: u64,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { burst: BURST.of(p), sndbuf: SNDBUF.of(p), stale_loss_cnt: STALE_LOSS_CNT.of(p) }
    }
}

/// The state of a path.
#[derive(Clone, Copy, Debug, Default)]
struct SubflowState {
    /// Average pacing rate, bytes per second; 0 = none yet.
    average: u64,
    memory: SendMemory,
    /// Place in the order in which the subflows came; 0: the sender does not act as a kernel.
    place: u32,
    /// When a path that timed out will be stale.
    stale_at: Option<Instant>,
}

/// Upstream Linux's default.
#[derive(Clone, Debug)]
pub struct LinuxDefault {
    config: Config,
    flows: [SubflowState; PathId::LIMIT],
    ahead: Ahead,
    writer: Writer,
    timer: DataTimer,
    /// Which paths are silent, if the sender acts as a kernel.
    silence: Silence,
    /// Paths, as [bits](PathId::bit), whose bursts of this round have left a sender that acts as a kernel.
    pushed: u32,
    /// When the next path will be stale.
    wakeup: Option<Instant>,
}

/// The course of a push of new data. The end of a burst leaves when the kernel turns to another path.
///
/// Linux 6.18: `__mptcp_subflow_push_pending`.
#[derive(Debug)]
struct Push {
    /// The path that brought the acknowledgment: it pushes first.
    from: Option<PathId>,
    /// The path of the last burst.
    on: Option<PathId>,
    /// Paths whose bursts have left, as [bits](PathId::bit).
    left: u32,
}

impl Push {
    fn new(cause: Cause) -> Self {
        let from = if let Cause::Ack(path) = cause { Some(path) } else { None };
        Self { from, on: None, left: 0 }
    }

    /// The next burst goes to `path`. True if the kernel was at another one.
    fn turn_to(&mut self, path: PathId) -> bool {
        let before = self.on.replace(path);
        self.left |= before.filter(|on| *on != path).map_or(0, PathId::bit);
        before.or(self.from) != Some(path)
    }
}

/// The average of `average`, weighted with the memory `held`, and `pace`, weighted with the burst, which is not zero.
fn blend(average: u64, held: u64, pace: u64, burst: u64) -> u64 {
    let sum = u128::from(average) * u128::from(held) + u128::from(pace) * u128::from(burst);
    (sum / u128::from(held + burst)) as u64
}

/// The time for `held` bytes at `rate` bytes per second, in units of 2^-32 s.
fn linger(held: u64, rate: u64) -> u64 {
    (held.min(u64::from(u32::MAX)) << 32) / rate.max(1)
}

/// A message begins at `next`, which the application writes once the one before was given to paths: no burst continues.
fn begins_write(view: &View, next: u64) -> bool {
    view.sender().binding == Binding::Final && view.message_at(next).is_some_and(|message| message.start == next)
}

impl LinuxDefault {
    /// A scheduler with nothing bound and no averages.
    pub fn new(config: Config) -> Self {
        let flows = [SubflowState::default(); PathId::LIMIT];
        Self {
            config,
            flows,
            ahead: Ahead::default(),
            writer: Writer::default(),
            timer: DataTimer::default(),
            silence: Silence::default(),
            pushed: 0,
            wakeup: None,
        }
    }

    /// Send memory of a path, bytes.
    fn sndbuf(&self, view: &View, path: &PathView) -> u64 {
        self.flows[path.id.index()].memory.size(path, view, self.config.sndbuf)
    }

    /// Memory of the data of a path, queued and sent.
    fn held(&self, path: &PathView) -> u64 {
        if self.pushed & path.id.bit() != 0 { held_once_pushed(path) } else { held(path) }
    }

    fn has_memory(&self, view: &View, path: &PathView) -> bool {
        self.held(path) < self.sndbuf(view, path)
    }

    /// The candidate with the least linger time.
    fn soonest(&self, view: &View) -> Option<PathView> {
        let time = |p: &PathView| {
            let average = self.flows[p.id.index()].average;
            linger(self.held(p), if average > 0 { average } else { pace(p) })
        };
        view.candidates().min_by_key(|p| (time(p), self.flows[p.id.index()].place, p.id)).copied()
    }

    /// The next new data of the writer.
    fn next(&self, view: &View) -> Option<u64> {
        view.backlog().first().map(|next| next.start).filter(|start| *start < self.writer.upto())
    }

    /// Binds one burst to `path`; false at the end of the data or of the peer's window.
    fn burst(&mut self, round: &mut Round<'_>, path: &PathView) -> bool {
        let Some(next) = self.next(round) else { return false };
        let burst = self.config.burst.min(round.window_edge().saturating_sub(next));
        if burst == 0 {
            return false;
        }
        let held = self.held(path);
        let average = &mut self.flows[path.id.index()].average;
        let before = if *average > 0 { *average } else { pace(path) };
        *average = blend(before, held, pace(path), burst);
        let mut bound = 0;
        loop {
            let Some(piece) = self.piece(round, path.id) else { return false };
            bound += piece;
            let full = !round.path(path.id).is_some_and(|p| self.has_memory(round, p));
            if bound >= burst || full || self.next(round).is_none_or(|next| begins_write(round, next)) {
                return true;
            }
        }
    }

    /// Binds the next piece to `on`: bytes. None at the end of the peer's window.
    fn piece(&mut self, round: &mut Round<'_>, on: PathId) -> Option<u64> {
        let start = self.next(round)?;
        // The rest of the kernel's piece may be less.
        let binding = round.sender().binding;
        let (end, most) = match binding {
            Binding::Final => (self.writer.piece(round, start).end, u64::MAX),
            Binding::Revocable => (u64::MAX, PIECE),
        };
        let mut bound = 0;
        while bound < most && self.next(round).is_some_and(|next| next < end) {
            let segment = match binding {
                Binding::Final => self.ahead.append(round, on, end.min(self.writer.upto()).min(round.window_edge())),
                Binding::Revocable => self.ahead.enqueue(round, on),
            };
            bound += segment?.len();
        }
        Some(bound)
    }

    /// Binds bursts while there is data, memory and window.
    fn push(&mut self, round: &mut Round<'_>) {
        let mut push = Push::new(round.cause());
        self.pushed = 0;
        while self.next(round).is_some() {
            self.timer.measure(round, &self.silence, push.left);
            let Some(path) = self.soonest(round).filter(|p| self.has_memory(round, p)) else { return };
            if push.turn_to(path.id) {
                // The acknowledgment is dealt with before another subflow pushes.
                self.timer.start(round);
                self.pushed = if round.sender().binding == Binding::Final { push.left } else { 0 };
            }
            if !self.burst(round, &path) {
                break;
            }
        }
        // The kernel chooses once more, and finds the window used up.
        if round.sender().repair == DataRepair::DataTimer {
            self.timer.measure(round, &self.silence, push.left);
        }
    }

    /// The rest of the first piece that is not acknowledged, as far as it was given to paths.
    fn first_piece(&self, view: &View) -> Range {
        let bound = view.backlog().first().map_or(view.written(), |next| next.start);
        let piece = self.writer.piece(view, view.data_acked());
        Range::new(piece.start, piece.end.min(bound).max(piece.start))
    }

    /// The connection's timer expired: one piece is retransmitted, or all of them if a path is stale.
    ///
    /// Linux 6.18: `__mptcp_retrans`.
    fn expire(&mut self, round: &mut Round<'_>) {
        let limit = self.config.stale_loss_cnt.min(u8::MAX.into()) as u8;
        let piece = self.first_piece(round);
        let expiry = self.silence.on_expiry(round, limit);
        self.timer.expire(round, expiry.on, piece);
        if let Some(path) = expiry.stale {
            round.set_stale(path);
            self.send_all_again(round);
        }
    }

    fn send_all_again(&mut self, round: &mut Round<'_>) {
        round.send_all_again();
        self.ahead.restart(round);
    }

    /// The path timed out, and is not yet stale to the kernel.
    fn hopes_for(&self, path: &PathView, now: Instant) -> bool {
        self.flows[path.id.index()].stale_at.is_some_and(|at| now < at)
    }

    /// Records which paths are back.
    fn look(&mut self, view: &View) {
        self.wakeup = None;
        for p in view.paths() {
            let flow = &mut self.flows[p.id.index()];
            flow.stale_at = flow.stale_at.filter(|_| !p.usable);
            let next = flow.stale_at.filter(|at| *at > view.now());
            self.wakeup = self.wakeup.into_iter().chain(next).min();
        }
    }
}

/// The path on which the kernel retransmits data before it declares the original path stale: nothing in flight, nothing
/// to send.
fn idle(view: &View) -> Option<PathView> {
    view.candidates().find(|p| p.held_bytes() == 0 && !view.has_admissible(p.id)).copied()
}

/// Retransmits the first stranded piece on `on`. False if nothing could be sent.
fn rescue_piece(round: &mut Round<'_>, on: &PathView) -> bool {
    let mut sent = 0;
    while sent < PIECE
        && let Some(stranded) = round.rescue().first()
    {
        let run = round.outstanding().at(stranded.start).map_or(stranded, |(run, _)| run.intersect(stranded));
        let segment = Range::new(run.start, run.end.min(run.start + u64::from(on.mss)));
        if !round.repeat(on.id, segment, Repeat::Rescue) {
            break;
        }
        sent += segment.len();
    }
    sent > 0
}

impl Scheduler for LinuxDefault {
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.look(round);
        let own_timer = round.sender().repair == DataRepair::DataTimer;
        if own_timer && self.timer.has_expired(round) {
            self.expire(round);
        }
        // A kernel leaves a stale path its queue.
        let stays = round.sender().binding == Binding::Final;
        self.ahead.recall(round, |p| p.usable || stays);
        let memory = round.paths().iter().map(|p| self.sndbuf(round, p)).sum();
        let written = self.writer.upto();
        self.writer.write(round, memory);
        // To the kernel's push of new data belongs that it measures the timer: after a write, or where the window has room.
        let room = self.next(round).is_some_and(|next| next < round.window_edge());
        if room || !own_timer || self.writer.upto() > written {
            self.push(round);
        }
        if own_timer {
            self.timer.run_until_acked(round);
        } else {
            let piece = self.first_piece(round);
            self.timer.run(round, piece);
        }
    }

    fn rescue(&mut self, round: &mut Round<'_>) {
        if round.sender().repair == DataRepair::DataTimer {
            // A subflow was closed (`__mptcp_close_ssk`).
            return self.send_all_again(round);
        }
        let hopes = round.paths().iter().any(|p| self.hopes_for(p, round.now()));
        match idle(round) {
            None if hopes => {}
            Some(on) if hopes && rescue_piece(round, &on) => {}
            _ => round.rescue_by_rtt(),
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        match *event {
            SchedulerEvent::Ack { path, .. } => {
                self.silence.on_ack(path);
                if self.writer.waits(view) {
                    let memory = &mut self.flows[path.index()].memory;
                    view.path(path).into_iter().for_each(|p| memory.follow(p));
                }
            }
            SchedulerEvent::PathUp { path } => {
                self.silence.end(path);
                let last = self.flows.iter().map(|flow| flow.place).max().unwrap_or(0);
                let place = &mut self.flows[path.index()].place;
                if view.sender().binding == Binding::Final && *place == 0 {
                    *place = last + 1;
                }
            }
            SchedulerEvent::DataAck { .. } => self.timer.restart(view),
            SchedulerEvent::Timeout { path } if view.sender().repair == DataRepair::Rescue => {
                let rto = view.path(path).map_or(INTERVAL, |p| p.rto);
                let silence = rto * 2 + INTERVAL * self.config.stale_loss_cnt;
                self.flows[path.index()].stale_at.get_or_insert(view.now() + silence);
            }
            SchedulerEvent::PathDown { path } => {
                self.flows[path.index()] = SubflowState::default();
                self.silence.forget(path);
            }
            _ => {}
        }
    }

    fn serves_lone_path(&self) -> bool {
        true
    }

    fn waits_for_timeouts(&self) -> bool {
        true
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.wakeup.into_iter().chain(self.timer.at()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::schedule::SenderPolicy;
    use anabranch_units::{Duration, Rate};

    const DEFAULT: Config = Config { burst: 65_428, sndbuf: 2.0, stale_loss_cnt: 4 };
    /// Segments in a piece, and in a burst of two.
    const SEGMENTS: usize = 24;
    const BURST: usize = 2 * SEGMENTS;

    fn linux() -> LinuxDefault {
        LinuxDefault::new(DEFAULT)
    }

    /// A path with `held` bytes queued or in flight, paced at `rate` bytes per second.
    fn loaded(id: u8, held: u64, rate: u64) -> PathView {
        let pacing = Some(Rate::from_bps(rate * 8));
        PathView { in_flight_bytes: held, pacing, cwnd: 100, ..path(id, 20, 100, 0) }
    }

    #[test]
    fn linger_times() {
        let ms = |held, rate| (linger(held, rate) * 1000).div_ceil(1 << 32);
        assert_eq!((ms(30_000, 1_000_000), ms(2000, 50_000)), (30, 40));
        assert_eq!(linger(0, 50_000), 0);
        assert_eq!(linger(u64::MAX, 0), u64::from(u32::MAX) << 32);
    }

    #[test]
    fn averages() {
        assert_eq!(blend(1_000_000, 30_000, 2_000_000, 65_428), 1_685_626);
        assert_eq!(blend(1_000_000, 0, 2_000_000, 1), 2_000_000);
        assert_eq!(blend(u64::from(u32::MAX), 1 << 40, 1, 1 << 40), 1 << 31);
    }

    #[test]
    fn the_queue_that_is_flushed_first_gets_the_burst() {
        for (second, expect) in [(2000, 0), (0, 1)] {
            let mut bench = Bench::new(&[loaded(0, 30_000, 1_000_000), loaded(1, second, 50_000)]);
            bench.write(10);
            bench.round(&mut linux());
            assert_eq!(bench.bound(expect).len(), 10, "{second}");
        }
    }

    #[test]
    fn an_object_below_a_burst_uses_the_first_path_however_slow() {
        let mut bench = Bench::new(&[path(0, 300, 10, 0), path(1, 10, 10, 0)]);
        bench.write(BURST as u64 - 1);
        bench.round(&mut linux());
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (BURST - 1, 0));
    }

    /// Measured: 150 000 bytes on idle paths of 20 and 80 ms go 65 456 to the first, 65 456 to the second, the rest to
    /// the first.
    #[test]
    fn a_larger_object_alternates_by_bursts() {
        let mut bench = Bench::new(&[path(0, 20, 100, 0), path(1, 80, 100, 0)]);
        bench.write(107);
        let mut linux = linux();
        linux.flows[0].memory.follow(&path(0, 20, 100, 0));
        bench.round(&mut linux);
        assert_eq!(bench.bound(1), (BURST as u64..2 * BURST as u64).collect::<Vec<_>>());
        assert_eq!(bench.bound(0).len(), 107 - BURST);
    }

    /// Measured: writes of 5000 bytes every 10 ms over 20 and 80 ms alternate while the first path is busy.
    #[test]
    fn a_burst_is_not_continued_by_the_next_write() {
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 80, 10, 0)]);
        let mut linux = linux();
        for (expect, acked) in [(0, 0), (1, 0), (0, 1)] {
            bench.acked(0, acked);
            bench.write(1);
            bench.round(&mut linux);
            assert_eq!(bench.send(expect).len(), 1);
        }
    }

    #[test]
    fn send_memory_bounds_the_queue_beyond_the_window() {
        // 46 080 bytes hold one piece; the next exceeds them. In 96 256 bytes the writer fills three pieces: 71
        // segments.
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 80, 10, 0)]);
        bench.write(1000);
        let mut linux = linux();
        bench.round(&mut linux);
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (BURST, SEGMENTS - 1));
        assert!(linux.writer.waits(&bench.view));
    }

    /// Measured: when a second path joins a bulk transfer, the first has its send memory full.
    #[test]
    fn a_path_that_is_alone_fills_its_memory() {
        let mut linux = linux();
        linux.flows[0].memory.follow(&path(0, 20, 100, 0));
        let mut bench = Bench::new(&[path(0, 20, 100, 100)]);
        bench.write(1000);
        bench.round(&mut linux);
        // 460 800 bytes minus the window in flight, 149 984 in trains of nine, in pieces of 24: the tenth exceeds them.
        assert_eq!(bench.bound(0).len(), 240);
        assert!(linux.serves_lone_path());
    }

    #[test]
    fn a_full_path_with_the_least_linger_time_is_waited_for() {
        let full = PathView { cwnd: 10, ..loaded(0, 60_000, 10_000_000) };
        let mut bench = Bench::new(&[full, loaded(1, 1000, 1000)]);
        bench.write(1);
        bench.round(&mut linux());
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], vec![]));
    }

    #[test]
    fn backups_rest_while_another_path_is_active() {
        let backup = PathView { backup: true, ..path(0, 20, 10, 0) };
        for (usable, expect) in [(true, 1), (false, 0)] {
            let mut bench = Bench::new(&[backup, PathView { usable, ..loaded(1, 9000, 1000) }]);
            bench.write(1);
            bench.round(&mut linux());
            assert_eq!(bench.bound(expect), [0]);
        }
    }

    #[test]
    fn nothing_is_bound_beyond_the_peers_window() {
        let mut bench = Bench::with_window(&[path(0, 20, 10, 0), path(1, 80, 10, 0)], 9 * MSS);
        bench.write(30);
        let mut linux = linux();
        bench.round(&mut linux);
        bench.round(&mut linux);
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (9, 0));
        assert!(linux.flows[0].average > 0);
    }

    /// From a capture: a window of 128 000 bytes that opened at 11 361 792 went to the first path up to 11 454 800, which is
    /// 350 pages, and to the second up to its end.
    #[test]
    fn as_linux_a_burst_ends_with_a_page_and_the_window_is_used_to_the_last_byte() {
        // 27 552 bytes are left of the page with which the window begins.
        let before = PIECE - 27_552;
        let mut bench = Bench::with_window(&[path(0, 20, 100, 0), path(1, 80, 100, 0)], before);
        bench.view.set_sender(SenderPolicy::LINUX);
        bench.write(100);
        let mut linux = linux();
        linux.flows[0].memory.follow(&path(0, 20, 200, 0));
        bench.round(&mut linux);
        while let Some(queued) = bench.view.take_admissible(PathId(0)) {
            bench.view.on_sent(PathId(0), queued.range);
        }
        bench.view.on_data_acked(before);
        bench.view.set_window(120_208, before + 120_208);
        bench.round(&mut linux);
        let bytes = |id| bench.view.queue(PathId(id)).map(|q| q.range.len()).sum::<u64>();
        assert_eq!((bytes(0), bytes(1)), (27_552 + 2 * PIECE, 120_208 - 27_552 - 2 * PIECE));
    }

    /// Path 0 sent a piece and a half and timed out.
    fn stranded(linux: &mut LinuxDefault) -> Bench {
        let mut bench = Bench::new(&[path(0, 20, 100, 0), path(1, 80, 100, 0)]);
        bench.write(36);
        bench.round(linux);
        assert_eq!(bench.send(0).len(), 36);
        let p = bench.view.path_mut(PathId(0)).unwrap();
        p.usable = false;
        p.rto = Duration::from_millis(300);
        bench.view.strand(PathId(0));
        linux.on_event(&SchedulerEvent::Timeout { path: PathId(0) }, &bench.view);
        bench
    }

    fn rescue(bench: &mut Bench, linux: &mut LinuxDefault) -> usize {
        let mut round = Round::new(&mut bench.view, &mut bench.windows, Cause::Wakeup);
        linux.rescue(&mut round);
        linux.schedule(&mut round);
        bench.send(1).len()
    }

    #[test]
    fn stranded_data_goes_out_again_piece_by_piece_on_an_idle_path() {
        let mut linux = linux();
        let mut bench = stranded(&mut linux);
        assert_eq!(rescue(&mut bench, &mut linux), SEGMENTS);
        assert_eq!(rescue(&mut bench, &mut linux), 0, "busy");
        bench.acked(1, SEGMENTS as u32);
        assert_eq!(rescue(&mut bench, &mut linux), 36 - SEGMENTS);
    }

    #[test]
    fn a_stale_path_is_no_longer_waited_for() {
        let mut linux = linux();
        let mut bench = stranded(&mut linux);
        bench.view.path_mut(PathId(1)).unwrap().in_flight_bytes = 1;
        assert_eq!(rescue(&mut bench, &mut linux), 0, "busy");
        // 2·300 ms + 4·200 ms
        assert_eq!(linux.wakeup, Some(Instant::from_millis(1400)));
        bench.at(1399);
        assert_eq!(rescue(&mut bench, &mut linux), 0);
        bench.at(1400);
        assert_eq!(rescue(&mut bench, &mut linux), 36);
        assert_eq!(linux.wakeup, None);
    }

    #[test]
    fn a_path_that_is_back_is_not_stale() {
        let mut linux = linux();
        let mut bench = stranded(&mut linux);
        bench.view.path_mut(PathId(0)).unwrap().usable = true;
        bench.round(&mut linux);
        assert_eq!((linux.flows[0].stale_at, linux.wakeup), (None, None));
    }

    #[test]
    fn the_average_begins_with_the_pace() {
        let mut bench = Bench::new(&[loaded(0, 30_000, 1_000_000), loaded(1, 90_000, 1000)]);
        bench.write(10);
        let mut linux = linux();
        bench.round(&mut linux);
        assert_eq!(linux.flows.map(|flow| flow.average)[..2], [1_000_000, 0]);
    }

    /// The timer's interval after an acknowledgment on path 1 made room for `window` bytes; both paths were idle.
    fn interval_after(window: u64) -> Duration {
        let mut bench = Bench::with_window(&[path(0, 20, 100, 0), path(1, 300, 100, 0)], window);
        bench.view.set_sender(SenderPolicy::LINUX);
        bench.write(1000);
        let mut linux = linux();
        linux.flows[..2].iter_mut().for_each(|flow| flow.memory.follow(&path(0, 20, 100, 0)));
        linux.on_event(&SchedulerEvent::DataAck { upto: 0 }, &bench.view);
        bench.round_for(&mut linux, Cause::Ack(PathId(1)));
        // Path 0 pushes after the acknowledgment was dealt with, so that the timer started while no path had data under way.
        assert_eq!(linux.next_wakeup(), Some(Instant::ZERO + INTERVAL));
        bench.send(0);
        bench.send(1);
        bench.at(200);
        bench.round_for(&mut linux, Cause::Wakeup);
        linux.next_wakeup().unwrap().since(Instant::from_millis(200))
    }

    /// From a kernel's timers (`timer_start`): 200 ms, then 780 to 1048 ms, the far path's own. So what the peer dropped was
    /// repeated a second later.
    #[test]
    fn as_linux_the_interval_counts_bursts_that_have_left() {
        // To path 0, to path 1, and the rest to path 0: what path 1 got has left.
        assert_eq!(interval_after(150_000), Duration::from_millis(602));
        // The burst of path 1 is the last, and leaves after the choice.
        assert_eq!(interval_after(130_000), Duration::from_millis(42));
        assert_eq!(interval_after(60_000), INTERVAL);
    }

    /// Two kernels, three paths, of which the third has the least delay and joins second: light traffic alternates between it and the
    /// first.
    #[test]
    fn as_linux_a_tie_goes_to_the_subflow_that_came_first() {
        for (sender, expect) in [(SenderPolicy::LINUX, 2), (SenderPolicy::RFC, 1)] {
            let mut bench = Bench::new(&[loaded(0, 9000, 1000), path(1, 20, 10, 0), path(2, 10, 10, 0)]);
            bench.view.set_sender(sender);
            bench.write(1);
            let mut scheduler = linux();
            for id in [0, 2, 1, 2] {
                scheduler.on_event(&SchedulerEvent::PathUp { path: PathId(id) }, &bench.view);
            }
            bench.round(&mut scheduler);
            assert_eq!(bench.bound(expect), [0], "{sender:?}");
        }
    }

    #[test]
    fn a_path_that_is_gone_is_forgotten() {
        let mut linux = linux();
        let bench = stranded(&mut linux);
        assert!(linux.flows[0].stale_at.is_some() && linux.flows[0].average > 0);
        linux.on_event(&SchedulerEvent::PathDown { path: PathId(0) }, &bench.view);
        assert_eq!((linux.flows[0].stale_at, linux.flows[0].average), (None, 0));
    }
}
