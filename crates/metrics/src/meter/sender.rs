//! Sums over the sender's events.

use crate::over_time::{Stopwatch, TimeMean};
use anabranch_trace::{Event, PathState, SendKind};
use anabranch_units::{Instant, PathId};

/// Packets and their payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub packets: u64,
    pub bytes: u64,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// One connection's sender.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub blocked: Stopwatch,
    pub paths: Vec<PathSender>,
}

/// The subflow of a sender on one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathSender {
    /// Packets and bytes sent, by [`SendKind`].
    pub sent: [Tally; 5],
    pub timeouts: u64,
    pub probes: u64,
    pub idle_restarts: u64,
    pub cwnd: TimeMean,
    /// In nanoseconds.
    pub srtt: TimeMean,
    pub rtt: Samples,
}

/// Samples of the round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    count: u64,
    /// In nanoseconds: 584 years of them fit.
    sum: u64,
}

impl Samples {
    fn add(&mut self, count: u64, sum: u64) {
        self.count += count;
        self.sum = self.sum.wrapping_add(sum);
    }

    /// In seconds; `None` without samples.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / 1e9 / self.count as f64)
    }
}

impl Sender {
    pub fn new(paths: usize) -> Self {
        Self { blocked: Stopwatch::default(), paths: vec![PathSender::default(); paths] }
    }

    #[inline(always)]
    pub fn on_event(&mut self, now: Instant, path: PathId, event: &Event) {
        let path = self.paths.get_mut(path.index());
        match (path, event) {
            (Some(path), Event::DataSent { data, kind, .. }) => {
                path.sent[*kind as usize].add(Tally { packets: 1, bytes: data.len() });
            }
            (Some(path), Event::Window(window)) => {
                path.cwnd.set(now, Some(window.cwnd as u64));
                path.srtt.set(now, Some(window.srtt.as_nanos()).filter(|srtt| *srtt > 0));
                if let Some(rtt) = window.rtt {
                    path.rtt.add(1, rtt.as_nanos());
                }
            }
            (Some(path), Event::Timeout { .. }) => path.timeouts += 1,
            (Some(path), Event::PathProbe) => path.probes += 1,
            (Some(path), Event::IdleRestart) => path.idle_restarts += 1,
            (Some(path), Event::Path(PathState::Closed | PathState::Dead)) => {
                path.cwnd.set(now, None);
                path.srtt.set(now, None);
            }
            (_, Event::WindowBlocked(blocked)) => self.blocked.set(now, *blocked),
            _ => {}
        }
    }

    pub fn restart(&mut self, now: Instant) {
        self.blocked.restart(now);
        self.paths.iter_mut().for_each(|path| path.restart(now));
    }
}

impl PathSender {
    pub fn kind(&self, kind: SendKind) -> Tally {
        self.sent[kind as usize]
    }

    pub fn all(&self) -> Tally {
        let mut all = Tally::default();
        self.sent.into_iter().for_each(|tally| all.add(tally));
        all
    }

    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.sent.iter_mut().zip(other.sent) {
            mine.add(theirs);
        }
        self.timeouts += other.timeouts;
        self.probes += other.probes;
        self.idle_restarts += other.idle_restarts;
        self.cwnd.merge(&other.cwnd);
        self.srtt.merge(&other.srtt);
        self.rtt.add(other.rtt.count, other.rtt.sum);
    }

    pub fn finish(mut self, now: Instant) -> Self {
        self.cwnd.advance(now);
        self.srtt.advance(now);
        self
    }

    fn restart(&mut self, now: Instant) {
        let (mut cwnd, mut srtt) = (self.cwnd, self.srtt);
        cwnd.restart(now);
        srtt.restart(now);
        *self = Self { cwnd, srtt, ..Self::default() };
    }
}
