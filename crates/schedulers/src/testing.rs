//! States for unit tests: a view set up by hand, without packets.

use anabranch_plugin::congestion::{Acked, FixedWindows};
use anabranch_plugin::schedule::{Assignment, Cause, PathView, Round, Scheduler, SchedulerEvent};
use anabranch_units::{Duration, Instant, PathId, Range};

pub const MSS: u64 = 1400;

/// A path with an RTT in milliseconds, a window and packets in flight.
pub fn path(id: u8, rtt: u64, cwnd: u32, in_flight: u32) -> PathView {
    let rtt = Some(Duration::from_millis(rtt));
    PathView {
        cwnd,
        in_flight,
        in_flight_bytes: u64::from(in_flight) * MSS,
        srtt: rtt,
        latest_rtt: rtt,
        min_rtt: rtt,
        min_srtt: rtt,
        max_srtt: rtt,
        ..PathView::new(PathId(id), MSS as u32)
    }
}

/// A connection with constant windows and, by default, an unlimited window of the peer.
pub struct Bench {
    pub view: Assignment,
    pub windows: FixedWindows,
    written: u64,
}

impl Bench {
    pub fn new(paths: &[PathView]) -> Self {
        let mut view = Assignment::new(false);
        let mut windows = FixedWindows::default();
        for p in paths {
            view.set_path(*p);
            windows = windows.with(p.id, p.cwnd, p.ssthresh);
        }
        view.set_window(1 << 40, 1 << 40);
        Self { view, windows, written: 0 }
    }

    /// As [`Self::new`], but the peer's window admits `bytes`.
    pub fn with_window(paths: &[PathView], bytes: u64) -> Self {
        let mut bench = Self::new(paths);
        let mut view = Assignment::new(false);
        paths.iter().for_each(|p| view.set_path(*p));
        view.set_window(bytes, bytes);
        bench.view = view;
        bench
    }

    pub fn write(&mut self, packets: u64) {
        self.written += packets * MSS;
        self.view.set_written(self.written);
    }

    pub fn at(&mut self, ms: u64) {
        self.view.set_now(Instant::from_millis(ms));
    }

    pub fn round(&mut self, scheduler: &mut dyn Scheduler) {
        self.round_for(scheduler, Cause::Written);
    }

    pub fn round_for(&mut self, scheduler: &mut dyn Scheduler, cause: Cause) {
        scheduler.schedule(&mut Round::new(&mut self.view, &mut self.windows, cause));
    }

    /// Stranded data, by the scheduler's own rule.
    pub fn rescue(&mut self, scheduler: &mut dyn Scheduler) {
        scheduler.rescue(&mut Round::new(&mut self.view, &mut self.windows, Cause::Written));
    }

    /// The numbers of the packets bound to a path and not sent.
    pub fn bound(&self, id: u8) -> Vec<u64> {
        self.view.queue(PathId(id)).map(|q| q.range.start / MSS).collect()
    }

    /// Sends everything that is bound and admitted; returns the numbers of one path's packets.
    pub fn send(&mut self, id: u8) -> Vec<u64> {
        let mut sent = Vec::new();
        while let Some(q) = self.view.take_admissible(PathId(id)) {
            self.sent(id, q.range);
            sent.push(q.range.start / MSS);
        }
        sent
    }

    /// `range` left on a path.
    pub fn sent(&mut self, id: u8, range: Range) {
        let p = self.view.path_mut(PathId(id)).unwrap();
        p.in_flight += 1;
        p.in_flight_bytes += range.len();
        self.view.on_sent(PathId(id), range);
    }

    /// Gives `scheduler` an acknowledgment, `ms` after the start, of `packets` packets.
    pub fn tell_ack(&mut self, scheduler: &mut dyn Scheduler, id: u8, ms: u64, packets: u32) {
        self.at(ms);
        let mut acked = Acked::default();
        (acked.now, acked.packets, acked.bytes) = (self.view.now(), packets, u64::from(packets) * MSS);
        acked.rtt = self.view.path(PathId(id)).and_then(|p| p.srtt);
        acked.round_ended = true;
        scheduler.on_event(&SchedulerEvent::Ack { path: PathId(id), acked: &acked }, &self.view);
    }

    /// Eight packets of path `id`, which is measured, are acknowledged that left a busy bottleneck one by one, each `gap` ms; the
    /// last at `at` ms, which is the time then.
    pub fn know_capacity(&mut self, id: u8, (gap, at): (u64, u64)) {
        for n in (0..8).rev() {
            self.at(at - n * gap);
            let mut acked = Acked::default();
            (acked.now, acked.packets, acked.bytes) = (self.view.now(), 1, MSS);
            (acked.rtt, acked.prior_in_flight) = (Some(Duration::from_secs(1)), 20);
            self.view.on_acked(PathId(id), &acked);
        }
    }

    /// Packets of a path are acknowledged.
    pub fn acked(&mut self, id: u8, packets: u32) {
        let p = self.view.path_mut(PathId(id)).unwrap();
        p.in_flight -= packets;
        p.in_flight_bytes -= u64::from(packets) * MSS;
    }
}
