//! One direction of a path behind its bottleneck: delay, impairments, outages.

use crate::agenda::Key;
use crate::impairment::Impairments;
use crate::jitter::Jitter;
use crate::radio::{Aggregate, Arq, Outcome as Attempts, Slots};
use crate::{JitterSpec, LossSpec, RadioChange, ReorderSpec, Steps, WaySpec};
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
    /// Attempts below IP after the first one.
    retries: u16,
    corrupted: bool,
    /// No attempt below IP succeeded.
    lost: bool,
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
    Dropped(DropCause, T),
    /// The packet will arrive later.
    HeldBack,
}

/// One direction of a path behind its bottleneck.
#[derive(Debug)]
pub(crate) struct Way<T> {
    delays: Delays,
    jitter: Jitter,
    arq: Arq,
    /// The delay differs from packet to packet.
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
    /// There never was an outage, a recorded loss or a loss under the link.
    is_plain: bool,
}

/// The parts of a delay that follow from the time at which a packet leaves the bottleneck.
#[derive(Debug)]
struct Delays {
    fixed: Duration,
    /// In place of it.
    recorded: Option<Arc<Steps<Duration>>>,
    /// Delay of each attempt below IP after the first one.
    retry: Duration,
    aggregate: Aggregate,
    slots: Slots,
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
        let luck = |layer| Rng::stream(seed, &[name, layer].join("."));
        let mut way = Self {
            delays: Delays {
                fixed: spec.delay,
                recorded: spec.recorded_delay.clone(),
                retry: spec.radio.arq.delay,
                aggregate: Aggregate::new(spec.radio.aggregate, luck("aggregate")),
                slots: Slots::new(spec.radio.slots, seed, name),
            },
            varies: false,
            jitter: Jitter::new(&spec.jitter, luck("jitter")),
            arq: Arq::new(spec.radio.arq, luck("arq")),
            last: Instant::ZERO,
            line: VecDeque::with_capacity(FEW),
            held: VecDeque::new(),
            impairments: Impairments::new(spec, seed, name),
            recorded_loss: spec.recorded_loss.clone().map(|steps| RecordedLoss { steps, now: 0.0 }),
            outages: Outages::new(&spec.outages),
            is_plain: spec.outages.is_empty() && spec.recorded_loss.is_none(),
        };
        way.note_variation();
        way
    }

    /// The parts that vary the delay, or lose packets under the link, may have changed.
    fn note_variation(&mut self) {
        self.varies = self.varies_by_packet() || self.delays.recorded.is_some();
        // Packets that such a layer has lost are under way when it ends.
        self.is_plain &= self.arq.spec.is_none() && !self.delays.slots.spec.loses();
    }

    /// A layer under the link or jitter delays single packets.
    fn varies_by_packet(&self) -> bool {
        let Delays { aggregate, slots, .. } = &self.delays;
        !self.arq.spec.is_none() || !aggregate.is_none() || !slots.spec.is_none() || !self.jitter.spec().is_none()
    }

    /// The least one-way delay of packets that leave the bottleneck from now on.
    pub(crate) fn least_delay(&self) -> Duration {
        let Delays { fixed, recorded, slots, .. } = &self.delays;
        let recorded = recorded.as_ref().and_then(|steps| steps.parts().map(|(_, delay)| delay).min());
        let earliest = self.jitter.spec().earliest() + slots.spec.earliest();
        recorded.unwrap_or(*fixed).saturating_sub(earliest)
    }

    /// The delay of a packet that leaves the bottleneck at `at`, jitter and the layers under the link aside.
    pub(crate) fn delay_at(&self, at: Instant) -> Duration {
        self.delays.at(at)
    }

    /// Single packets may be impaired or delayed.
    pub(crate) fn impairs(&self) -> bool {
        self.varies_by_packet() || self.impairments.any() || self.recorded_loss.is_some()
    }

    /// The delay of packets that leave the bottleneck from now on.
    pub(crate) fn set_delay(&mut self, delay: Duration) {
        self.delays.fixed = delay;
    }

    /// The jitter of packets that join the way from now on.
    pub(crate) fn set_jitter(&mut self, jitter: &JitterSpec) {
        self.jitter.set(jitter);
        self.note_variation();
        self.last = self.line.back().map_or(Instant::ZERO, |packet| packet.due);
    }

    /// A layer under the link, for packets that join the way from now on; of its sleep the way knows nothing.
    pub(crate) fn set_radio(&mut self, change: RadioChange) {
        match change {
            RadioChange::Arq(arq) => (self.arq.spec, self.delays.retry) = (arq, arq.delay),
            RadioChange::Aggregate(every) => self.delays.aggregate.set(every),
            RadioChange::Slots(slots) => self.delays.slots.set(slots),
            RadioChange::Wake(_) => return,
        }
        self.note_variation();
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
            let due = self.delays.due(departs, packet.retries, packet.jitter);
            packet.due = if free { due } else { last.max(due) };
            last = packet.due;
        }
        line.sort_unstable_by_key(Travelling::key);
        self.last = self.line.back().map_or(Instant::ZERO, |packet| packet.due);
    }

    /// Whether a packet may overtake others in propagation.
    fn overtakes(&self) -> bool {
        let jitter = self.jitter.spec();
        jitter.free && !jitter.is_none() || self.arq.spec.free && !self.arq.spec.is_none()
    }

    /// A packet leaves the bottleneck at `at`. True if it is now the next one in propagation.
    #[inline]
    pub(crate) fn enter(&mut self, at: Instant, seq: u64, size: u32, item: T) -> bool {
        if self.varies {
            return self.enter_varied(at, seq, size, item);
        }
        self.jitter.skip();
        self.last = self.last.max(at + self.delays.fixed);
        let due = self.last;
        self.line.push_back(Travelling { due, seq, jitter: 0, size, retries: 0, corrupted: false, lost: false, item });
        self.line.len() == 1
    }

    /// The same where the delay varies.
    #[cold]
    #[inline(never)]
    fn enter_varied(&mut self, at: Instant, seq: u64, size: u32, item: T) -> bool {
        let Attempts { retries, lost } = self.arq.next(self.jitter.packets());
        let jitter = self.jitter.next();
        let due = self.delays.due(at, retries, jitter);
        let packet = |due| Travelling { due, seq, jitter, size, retries, corrupted: false, lost, item };
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
            let mut fate = self.impairments.befall();
            if packet.lost || self.delays.slots.loses(at) {
                fate.dropped = fate.dropped.or(Some(DropCause::Loss));
            }
            if let Some(cause) = fate.dropped {
                return Some(Arrival { at, size, outcome: Outcome::Dropped(cause, packet.item) });
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
            _ if self.outages.at(at) => Outcome::Dropped(DropCause::Outage, packet.item),
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

impl Delays {
    /// The path's delay of a packet that leaves the bottleneck at `at`.
    fn at(&self, at: Instant) -> Duration {
        self.recorded.as_ref().map_or(self.fixed, |steps| steps.at(at))
    }

    /// When a packet arrives that leaves the bottleneck at `at`, with `jitter` in nanoseconds; never before it.
    fn due(&mut self, at: Instant, retries: u16, jitter: i64) -> Instant {
        let released = self.aggregate.release(at + self.retry * u64::from(retries));
        let above = jitter.saturating_add(self.slots.offset(at));
        released + Duration::from_nanos(self.at(at).as_nanos().saturating_add_signed(above))
    }
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
