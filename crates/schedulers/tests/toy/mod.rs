//! A toy model that drives real schedulers: constant windows, no random loss, no serialisation time, an ACK returns D
//! after the arrival. Within one instant all ACKs come first, then the scheduler is called once. A path may go silent,
//! time out, and die.

use anabranch_plugin::congestion::{Acked, FixedWindows};
use anabranch_plugin::schedule::{Assignment, Cause, PathView, Round, Scheduler, SchedulerEvent};
use anabranch_units::{Duration, Instant, PathId, Range, RangeSet};
use anabranch_units::{RecoveryPhase, SendKind};
use std::collections::BTreeMap;

pub const MSS: u64 = 1000;
/// Windows, in bytes, that never bind.
pub const BOUNDLESS: u64 = 1 << 40;

#[derive(Clone, Debug)]
pub struct ToyPath {
    /// One-way delay in ms.
    pub delay: u64,
    pub window: u32,
    /// Whether the RTT is known from the start, not only after the first ACK.
    pub sampled: bool,
    /// From this time in ms on, no packet arrives and no ACK returns.
    pub silent_from: Option<u64>,
}

impl ToyPath {
    pub fn new(delay: u64, window: u32) -> Self {
        Self { delay, window, sampled: true, silent_from: None }
    }

    fn rtt(&self) -> Duration {
        Duration::from_millis(2 * self.delay)
    }

    fn silent(&self, at: Instant) -> bool {
        self.silent_from.is_some_and(|from| at >= Instant::from_millis(from))
    }
}

/// A packet that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Number of the packet, from 1.
    pub number: u64,
    pub path: u8,
    /// When it left and when it arrives, in ms.
    pub at: u64,
    pub arrives: u64,
    pub kind: SendKind,
}

/// New data may leave: the path's own retransmissions are not modelled.
fn may_send(p: &PathView) -> bool {
    p.usable && p.recovery != RecoveryPhase::Loss && p.in_flight < p.cwnd
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrival(u8, Range),
    /// Acknowledges one packet of the path; everything below the offset is delivered.
    Ack(u8, Range, u64),
    Write(u64),
    Timeout(u8),
    Death(u8),
}

pub struct Toy {
    pub view: Assignment,
    pub sent: Vec<Sent>,
    windows: FixedWindows,
    scheduler: Box<dyn Scheduler>,
    paths: Vec<ToyPath>,
    peer_window: u64,
    received: RangeSet,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
}

impl Toy {
    /// `send_window` is the window in the view; the peer admits `peer_window` bytes beyond its in-order data.
    pub fn new(scheduler: Box<dyn Scheduler>, paths: &[ToyPath], send_window: u64, peer_window: u64) -> Self {
        let mut view = Assignment::new(false);
        let mut windows = FixedWindows::default();
        for (i, p) in paths.iter().enumerate() {
            let id = PathId(i as u8);
            let rtt = p.sampled.then_some(p.rtt());
            let known = PathView {
                srtt: rtt,
                latest_rtt: rtt,
                min_rtt: rtt,
                min_srtt: rtt,
                max_srtt: rtt,
                ..PathView::new(id, MSS as u32)
            };
            view.set_path(PathView { cwnd: p.window, ..known });
            windows = windows.with(id, p.window, u32::MAX);
        }
        view.set_window(send_window, peer_window);
        let mut toy = Self {
            view,
            sent: Vec::new(),
            windows,
            scheduler,
            paths: paths.to_vec(),
            peer_window,
            received: RangeSet::new(),
            events: BTreeMap::new(),
            count: 0,
        };
        for (i, p) in paths.iter().enumerate() {
            toy.tell(SchedulerEvent::PathUp { path: PathId(i as u8) });
            if let Some(from) = p.silent_from {
                let timeout = Instant::from_millis(from) + p.rtt() * 3;
                toy.push(timeout, Event::Timeout(i as u8));
                toy.push(timeout + p.rtt() * 6, Event::Death(i as u8));
            }
        }
        toy
    }

    /// Writes `packets` packets at each time in ms, and runs until no event is left or `limit` is over.
    pub fn run(&mut self, writes: &[(u64, u64)], limit: Instant) {
        for (at, packets) in writes {
            self.push(Instant::from_millis(*at), Event::Write(*packets));
        }
        while let Some(now) = self.next_time().filter(|now| *now <= limit) {
            self.view.set_now(now);
            let mut cause = Cause::Wakeup;
            while let Some(event) = self.events.first_entry().filter(|e| e.key().0 <= now).map(|e| e.remove()) {
                let this = self.happen(now, event);
                if matches!(cause, Cause::Wakeup) {
                    cause = this.unwrap_or(cause);
                }
            }
            self.round(cause);
            self.transmit(now);
        }
    }

    /// The next event; wake-ups count only while data waits, and come after earlier events.
    fn next_time(&self) -> Option<Instant> {
        let event = self.events.keys().next().map(|key| key.0);
        let waits = self.view.data_acked() < self.view.written();
        let soonest = self.view.now() + Duration::from_nanos(1);
        let wakeup = self.scheduler.next_wakeup().filter(|_| waits).map(|at| at.max(soonest));
        event.into_iter().chain(wakeup).min()
    }

    fn push(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn tell(&mut self, event: SchedulerEvent<'_>) {
        self.scheduler.on_event(&event, &self.view);
    }

    fn happen(&mut self, now: Instant, event: Event) -> Option<Cause> {
        match event {
            Event::Arrival(path, range) => {
                assert!(range.end <= self.in_order() + self.peer_window, "beyond the peer's window");
                self.received.insert(range);
                let acked = self.in_order();
                self.push(
                    now + Duration::from_millis(self.paths[usize::from(path)].delay),
                    Event::Ack(path, range, acked),
                );
                None
            }
            Event::Ack(path, range, upto) => self.on_ack(now, path, range, upto),
            Event::Write(packets) => {
                // Data written at one time is a message.
                self.view.begin_message(packets * MSS, None);
                self.view.set_written(self.view.written() + packets * MSS);
                Some(Cause::Written)
            }
            Event::Timeout(path) => {
                let id = PathId(path);
                // With and without taking it out of use: a scheduler must survive both.
                let usable = self.paths[usize::from(path)].silent_from.is_some_and(|from| from % 2 == 0);
                let p = self.view.path_mut(id)?;
                (p.recovery, p.in_flight, p.in_flight_bytes, p.usable) = (RecoveryPhase::Loss, 0, 0, usable);
                self.view.strand(id);
                self.tell(SchedulerEvent::Timeout { path: id });
                Some(Cause::Timeout(id))
            }
            Event::Death(path) => {
                self.view.remove_path(PathId(path));
                self.tell(SchedulerEvent::PathDown { path: PathId(path) });
                Some(Cause::PathChange(PathId(path)))
            }
        }
    }

    fn on_ack(&mut self, now: Instant, path: u8, range: Range, upto: u64) -> Option<Cause> {
        let id = PathId(path);
        let rtt = self.paths[usize::from(path)].rtt();
        let p = self.view.path_mut(id)?;
        p.in_flight -= 1;
        p.in_flight_bytes -= MSS;
        let known = Some(rtt);
        (p.srtt, p.latest_rtt, p.min_rtt, p.min_srtt, p.max_srtt) = (known, known, known, known, known);
        self.view.on_data_acked(upto);
        self.view.set_window(self.view.send_window(), upto + self.peer_window);
        let mut acked = Acked::default();
        (acked.now, acked.rtt, acked.round_ended) = (now, known, true);
        (acked.packets, acked.bytes) = (1, range.len());
        (acked.data_end, acked.data_ack) = (range.end, Some(upto));
        self.tell(SchedulerEvent::Ack { path: id, acked: &acked });
        self.tell(SchedulerEvent::DataAck { upto });
        Some(Cause::Ack(id))
    }

    fn in_order(&self) -> u64 {
        self.received.range_at(0).map_or(0, |r| r.end)
    }

    fn round(&mut self, cause: Cause) {
        let mut round = Round::new(&mut self.view, &mut self.windows, cause);
        if !round.rescue().is_empty() {
            self.scheduler.rescue(&mut round);
        }
        self.scheduler.schedule(&mut round);
    }

    fn transmit(&mut self, now: Instant) {
        for i in 0..self.paths.len() {
            let id = PathId(i as u8);
            while let Some(p) = self.view.path(id).filter(|p| may_send(p)) {
                assert!(p.in_flight < self.paths[i].window, "beyond the congestion window");
                let Some(q) = self.view.take_admissible(id) else { break };
                assert!(!q.range.is_empty() && q.range.len() <= MSS);
                let p = self.view.path_mut(id).unwrap();
                p.in_flight += 1;
                p.in_flight_bytes += MSS;
                self.view.on_sent(id, q.range);
                let arrives = now + Duration::from_millis(self.paths[i].delay);
                let back = arrives + Duration::from_millis(self.paths[i].delay);
                if !self.paths[i].silent(back) {
                    self.push(arrives, Event::Arrival(id.0, q.range));
                }
                let ms = |at: Instant| at.as_nanos() / 1_000_000;
                let number = q.range.start / MSS + 1;
                self.sent.push(Sent { number, path: id.0, at: ms(now), arrives: ms(arrives), kind: q.kind });
            }
        }
    }
}
