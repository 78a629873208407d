//! One direction of a path behind its bottleneck: delay, impairments, outages.

use crate::agenda::Key;
use crate::impairment::Impairments;
use crate::jitter::Jitter;
use crate::{JitterSpec, LossSpec, ReorderSpec, Steps, WaySpec};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant, Rng};
use core::slice::from_ref;
use prefetch_index::prefetch_index;
use std::collections::VecDeque;
use std::sync::Arc;

/// So many packets with what belongs to them fill a good part of a processor's second cache; fewer are found there.
const MANY: usize = 512;

/// Places in a queue at first: a burst of an initial window with its acknowledgments does not make it grow.
pub(crate) const FEW: usize = 16;

/// A packet in propagation.
#[derive(Clone, Debug)]
struct Travelling<T> {
    due: Instant,
    seq: u64,
    /// How far its delay is above the mean, in nanoseconds.
    jitter: i64,
    size: u32,
    corrupted: bool,
    item: T,
}

impl<T> Travelling<T> {
    fn key(&self) -> Key {
        Key::new(self.due, self.seq)
    }
}

/// A packet that was due.
#[derive(Clone, Debug)]
pub(crate) struct Arrival<T> {
    /// When it was due.
    pub(crate) at: Instant,
    pub(crate) size: u32,
    pub(crate) outcome: Outcome<T>,
}

/// The fate of a packet that was due.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<T> {
    /// The packet arrived.
    Delivered(T),
    /// The packet arrived with a wrong checksum.
    Corrupted(T),
    /// The packet did not arrive.
    Dropped(DropCause),
    /// The packet will arrive later.
    HeldBack,
}

/// One direction of a path behind its bottleneck.
#[derive(Debug)]
pub(crate) struct Way<T> {
    delay: Duration,
    /// In place of it.
    recorded_delay: Option<Arc<Steps<Duration>>>,
    jitter: Jitter,
    /// There is jitter or a recorded delay.
    varies: bool,
    /// Due time of the last packet in `line`: later ones never come before it, unless jitter is free.
    last: Instant,
    /// In propagation, in order of their keys.
    line: VecDeque<Travelling<T>>,
    /// Held back, and second copies; in order of their keys.
    held: VecDeque<Travelling<T>>,
    impairments: Impairments,
    /// In place of the random loss of `impairments`.
    recorded_loss: Option<RecordedLoss>,
    outages: Outages,
    /// No outage and no recorded loss.
    is_plain: bool,
}

/// A recorded probability of loss.
#[derive(Debug)]
struct RecordedLoss {
    steps: Arc<Steps<f64>>,
    now: f64,
}

impl<T: Clone> Way<T> {
    /// An empty way, named `name` (`"path.wlan.down"`).
    pub(crate) fn new(spec: &WaySpec, seed: u64, name: &str) -> Self {
        Self {
            delay: spec.delay,
            recorded_delay: spec.recorded_delay.clone(),
            varies: spec.recorded_delay.is_some() || !spec.jitter.is_none(),
            jitter: Jitter::new(&spec.jitter, Rng::stream(seed, &[name, "jitter"].join("."))),
            last: Instant::ZERO,
            line: VecDeque::with_capacity(FEW),
            held: VecDeque::new(),
            impairments: Impairments::new(spec, seed, name),
            recorded_loss: spec.recorded_loss.clone().map(|steps| RecordedLoss { steps, now: 0.0 }),
            outages: Outages::new(&spec.outages),
            is_plain: spec.outages.is_empty() && spec.recorded_loss.is_none(),
        }
    }

    /// The least one-way delay of packets that leave the bottleneck from now on.
    pub(crate) fn least_delay(&self) -> Duration {
        let recorded = self.recorded_delay.as_ref().and_then(|steps| steps.parts().map(|(_, delay)| delay).min());
        recorded.unwrap_or(self.delay).saturating_sub(self.jitter.spec().earliest())
    }

    /// The delay of a packet that leaves the bottleneck at `at`, jitter aside.
    pub(crate) fn delay_at(&self, at: Instant) -> Duration {
        delay_at(self.recorded_delay.as_deref(), self.delay, at)
    }

    /// Single packets may be impaired or delayed.
    pub(crate) fn impairs(&self) -> bool {
        self.impairments.any() || self.recorded_loss.is_some() || !self.jitter.spec().is_none()
    }

    /// The delay of packets that leave the bottleneck from now on.
    pub(crate) fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// The jitter of packets that join the way from now on.
    pub(crate) fn set_jitter(&mut self, jitter: &JitterSpec) {
        self.jitter.set(jitter);
        self.varies = self.recorded_delay.is_some() || !jitter.is_none();
        self.last = self.line.back().map_or(Instant::ZERO, |packet| packet.due);
    }

    /// The random loss of packets that arrive from now on.
    pub(crate) fn set_loss(&mut self, loss: &LossSpec) {
        self.impairments.set_loss(loss);
    }

    /// Which packets are held back of those that arrive from now on.
    pub(crate) fn set_reorder(&mut self, reorder: ReorderSpec) {
        self.impairments.set_reorder(reorder);
    }

    /// The next due packet's key.
    pub(crate) fn next(&self) -> Key {
        let line = self.line.front().map_or(Key::NEVER, Travelling::key);
        self.held.front().map_or(line, |held| line.min(held.key()))
    }

    /// The last packets that entered are still in the bottleneck, and their departures or their delay changed.
    pub(crate) fn reschedule(&mut self, departures: impl Iterator<Item = Instant>) {
        let departures: Vec<Instant> = departures.collect();
        let inside = self.line.len() - departures.len();
        let free = self.overtakes();
        // Packets that overtook others stand before them.
        let line = self.line.make_contiguous();
        line.sort_unstable_by_key(|packet| packet.seq);
        let mut last = line[..inside].iter().map(|packet| packet.due).max().unwrap_or(Instant::ZERO);
        for (packet, departs) in line[inside..].iter_mut().zip(departures) {
            let due = late(departs, delay_at(self.recorded_delay.as_deref(), self.delay, departs), packet.jitter);
            packet.due = if free { due } else { last.max(due) };
            last = packet.due;
        }
        line.sort_unstable_by_key(Travelling::key);
        self.last = self.line.back().map_or(Instant::ZERO, |packet| packet.due);
    }

    /// Whether a packet may overtake others in propagation.
    fn overtakes(&self) -> bool {
        let jitter = self.jitter.spec();
        jitter.free && !jitter.is_none()
    }

    /// A packet leaves the bottleneck at `at`. True if it is now the next one in propagation.
    #[inline]
    pub(crate) fn enter(&mut self, at: Instant, seq: u64, size: u32, item: T) -> bool {
        if self.varies {
            return self.enter_varied(at, seq, size, item);
        }
        self.jitter.skip();
        self.last = self.last.max(at + self.delay);
        self.line.push_back(Travelling { due: self.last, seq, jitter: 0, size, corrupted: false, item });
        self.line.len() == 1
    }

    /// The same where the delay varies by the packet or is recorded.
    #[cold]
    #[inline(never)]
    fn enter_varied(&mut self, at: Instant, seq: u64, size: u32, item: T) -> bool {
        let jitter = self.jitter.next();
        let due = late(at, delay_at(self.recorded_delay.as_deref(), self.delay, at), jitter);
        let packet = |due| Travelling { due, seq, jitter, size, corrupted: false, item };
        if due < self.last && self.overtakes() {
            return self.overtake(packet(due));
        }
        self.last = self.last.max(due);
        self.line.push_back(packet(self.last));
        self.line.len() == 1
    }

    /// A packet overtakes others in propagation. True if it is now the next one.
    #[cold]
    fn overtake(&mut self, packet: Travelling<T>) -> bool {
        let at = self.line.partition_point(|other| other.key() <= packet.key());
        self.line.insert(at, packet);
        at == 0
    }

    /// The item so many `places` behind the next one in propagation, if there are [`MANY`]. What lies twice as far behind is fetched, for
    /// the calls to come.
    #[inline]
    pub(crate) fn coming(&self, places: usize) -> Option<&T> {
        if self.line.len() < MANY {
            return None;
        }
        if let Some(later) = self.line.get(2 * places) {
            prefetch_index(from_ref(later), 0);
        }
        self.line.get(places).map(|packet| &packet.item)
    }

    /// Packets in propagation, those held back among them.
    pub(crate) fn len(&self) -> usize {
        self.line.len() + self.held.len()
    }

    /// Bytes of these packets.
    pub(crate) fn bytes(&self) -> u64 {
        self.line.iter().chain(&self.held).map(|packet| u64::from(packet.size)).sum()
    }

    /// The items in propagation.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.line.iter().chain(&self.held).map(|packet| &packet.item)
    }

    /// Takes the packet that is due next, if it meets no impairment; otherwise [`Self::arrive`] decides. The first is
    /// the usual case.
    #[inline]
    pub(crate) fn arrive_unharmed(&mut self) -> Option<T> {
        let simple = self.held.is_empty() && self.is_plain && !self.line.is_empty();
        if simple && self.impairments.spare() { self.line.pop_front().map(|packet| packet.item) } else { None }
    }

    /// Takes the packet that is due next.
    pub(crate) fn arrive(&mut self) -> Option<Arrival<T>> {
        let from_line = match (self.line.front(), self.held.front()) {
            (Some(line), Some(held)) => line.key() < held.key(),
            (line, _) => line.is_some(),
        };
        let mut packet = if from_line { self.line.pop_front() } else { self.held.pop_front() }?;
        let Travelling { due: at, size, .. } = packet;
        if from_line {
            if let Some(loss) = &mut self.recorded_loss {
                loss.set(&mut self.impairments, at);
            }
            let fate = self.impairments.befall();
            if let Some(cause) = fate.dropped {
                return Some(Arrival { at, size, outcome: Outcome::Dropped(cause) });
            }
            packet.corrupted = fate.corrupted;
            packet.due += fate.held_back;
            if fate.duplicated {
                self.hold(packet.clone());
            }
            if !fate.held_back.is_zero() {
                self.hold(packet);
                return Some(Arrival { at, size, outcome: Outcome::HeldBack });
            }
        }
        let outcome = match packet.corrupted {
            _ if self.outages.at(at) => Outcome::Dropped(DropCause::Outage),
            true => Outcome::Corrupted(packet.item),
            false => Outcome::Delivered(packet.item),
        };
        Some(Arrival { at, size, outcome })
    }

    /// Inserts a packet among those held back. They come nearly in order, so its place is near one end.
    fn hold(&mut self, packet: Travelling<T>) {
        let at = self.held.partition_point(|other| other.key() <= packet.key());
        self.held.insert(at, packet);
    }
}

impl RecordedLoss {
    /// Sets the loss of packets that arrive at `at`.
    fn set(&mut self, impairments: &mut Impairments, at: Instant) {
        let now = self.steps.at(at);
        if now != self.now {
            self.now = now;
            impairments.set_loss(&if now == 0.0 { LossSpec::None } else { LossSpec::Bernoulli(now) });
        }
    }
}

/// The delay of a packet that leaves the bottleneck at `at`.
#[inline]
fn delay_at(recorded: Option<&Steps<Duration>>, delay: Duration, at: Instant) -> Duration {
    recorded.map_or(delay, |steps| steps.at(at))
}

/// So long after `at`, with `jitter` in nanoseconds; never before it.
#[inline]
fn late(at: Instant, delay: Duration, jitter: i64) -> Instant {
    let delay = delay.as_nanos().saturating_add_signed(jitter);
    at + Duration::from_nanos(delay)
}

/// Times in which no packet arrives, queried in ascending order.
#[derive(Debug)]
struct Outages {
    /// `[from, to)`, in order of `from`.
    times: Vec<(Instant, Instant)>,
    /// Outages before this index are over.
    next: usize,
}

impl Outages {
    fn new(times: &[(Instant, Instant)]) -> Self {
        let mut times = times.to_vec();
        times.sort_unstable();
        Self { times, next: 0 }
    }

    fn at(&mut self, now: Instant) -> bool {
        while self.times.get(self.next).is_some_and(|(_, to)| *to <= now) {
            self.next += 1;
        }
        self.times.get(self.next).is_some_and(|(from, _)| *from <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_may_overlap_and_be_empty() {
        let times = [(30, 30), (10, 20), (15, 18), (0, 3), (19, 25), (40, 12)];
        let times = times.map(|(from, to)| (Instant::from_nanos(from), Instant::from_nanos(to)));
        let mut outages = Outages::new(&times);
        for now in 0..60 {
            let now = Instant::from_nanos(now);
            assert_eq!(outages.at(now), times.iter().any(|(from, to)| *from <= now && now < *to), "{now}");
        }
    }
}
