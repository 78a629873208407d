//! What the sender's events add up to.

use crate::IncrementEfficiency;
use crate::over_time::{RealMean, Stopwatch, TimeMean};
use anabranch_trace::{Event, PathState, SendKind, WindowChange};
use anabranch_units::{Duration, Instant, PathId};

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
    /// Where it is asked for.
    pub efficiency: Option<Efficiency>,
}

/// [`IncrementEfficiency`] over time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Efficiency {
    now: IncrementEfficiency,
    pub mean: RealMean,
}

impl Efficiency {
    fn set(&mut self, now: Instant, path: PathId, window: Option<&WindowChange>) {
        self.now.set(path, window);
        self.mean.set(now, self.now.value());
    }
}

/// Its subflow on one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathSender {
    /// What was sent, by [`SendKind`].
    pub sent: [Tally; 5],
    pub timeouts: u64,
    pub probes: u64,
    pub idle_restarts: u64,
    pub cwnd: TimeMean,
    /// In nanoseconds.
    pub srtt: TimeMean,
    pub rtt: Samples,
}

/// Of the round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    count: u64,
    sum: Duration,
}

impl Samples {
    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
    }

    /// In seconds; `None` without samples.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.as_secs_f64() / self.count as f64)
    }
}

impl Sender {
    pub fn new(paths: usize, efficiency: bool) -> Self {
        let efficiency = efficiency.then(Efficiency::default);
        Self { blocked: Stopwatch::default(), paths: vec![PathSender::default(); paths], efficiency }
    }

    pub fn on_event(&mut self, now: Instant, id: PathId, event: &Event) {
        let path = self.paths.get_mut(id.index());
        match (path, event) {
            (Some(path), Event::DataSent { data, kind, .. }) => {
                path.sent[*kind as usize].add(Tally { packets: 1, bytes: data.len() });
            }
            (Some(path), Event::Window(window)) => {
                path.cwnd.set(now, Some(window.cwnd as u64));
                path.srtt.set(now, Some(window.srtt.as_nanos()).filter(|srtt| *srtt > 0));
                if let Some(rtt) = window.rtt {
                    path.rtt.merge(Samples { count: 1, sum: rtt });
                }
                if let Some(efficiency) = &mut self.efficiency {
                    efficiency.set(now, id, Some(window));
                }
            }
            (Some(path), Event::Timeout { .. }) => path.timeouts += 1,
            (Some(path), Event::PathProbe) => path.probes += 1,
            (Some(path), Event::IdleRestart) => path.idle_restarts += 1,
            (Some(path), Event::Path(PathState::Closed | PathState::Dead)) => {
                path.cwnd.set(now, None);
                path.srtt.set(now, None);
                if let Some(efficiency) = &mut self.efficiency {
                    efficiency.set(now, id, None);
                }
            }
            (_, Event::WindowBlocked(blocked)) => self.blocked.set(now, *blocked),
            _ => {}
        }
    }

    pub fn restart(&mut self, now: Instant) {
        self.blocked.restart(now);
        self.paths.iter_mut().for_each(|path| path.restart(now));
        self.efficiency.iter_mut().for_each(|efficiency| efficiency.mean.restart(now));
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
        self.rtt.merge(other.rtt);
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
