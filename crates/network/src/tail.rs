//! The own bottleneck of a path. It drops only at the tail, so that each departure is known on arrival.

use crate::bottleneck::WayId;
use crate::bucket::Bucket;
use crate::capacity::shaper;
use crate::way::FEW;
use crate::{
    Aqm, BottleneckSpec, BucketSpec, Capacity, CapacitySpec, DropTail, FixedRate, QueueState, RateSteps, TraceDriven,
};
use anabranch_trace::{DropCause, LinkEvent, Recorder};
use anabranch_units::{Duration, Instant, Rate};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of the largest IP packet.
const LARGEST: u64 = 65_535;

/// A packet whose last bit has not left.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    /// When its first bit leaves.
    begins: Instant,
    departs: Instant,
    size: u32,
    /// Whether the packet travels on; cross traffic does not.
    travels: bool,
}

/// The capacity.
#[derive(Debug)]
enum Drain {
    Fixed {
        rate: Rate,
        /// A size and its transmission time: most packets are as large as an earlier one.
        known: (u32, Duration),
        /// The packet during whose transmission the rate last changed: when it began, and how much of it was left.
        halfway: Option<(Instant, FixedRate)>,
    },
    Shaped(Bucket),
    Trace(TraceDriven),
    Steps(Arc<RateSteps>),
}

/// A queue that drops only on arrival, and its capacity. It is evaluated lazily: [`Self::settle`] records the
/// departures so far.
#[derive(Debug)]
pub(crate) struct Tail {
    way: WayId,
    /// In order; the first is in transmission.
    inside: VecDeque<Leaving>,
    /// Bytes of those behind it.
    bytes: u64,
    /// When the last of them departs.
    free: Instant,
    /// Packets that left so far.
    departed: u64,
    qdisc: DropTail,
    drain: Drain,
    /// Before the queue.
    police: Option<Box<Bucket>>,
}

impl Tail {
    /// An empty queue before `way`; of the queue's specification only the limit applies.
    pub(crate) fn new(spec: &BottleneckSpec, way: WayId) -> Self {
        let drain = match &spec.capacity {
            CapacitySpec::Fixed(rate) => Drain::Fixed { rate: *rate, known: (0, Duration::ZERO), halfway: None },
            CapacitySpec::Bucket(spec) => Drain::Shaped(Bucket::new(*spec)),
            CapacitySpec::Trace(trace) => Drain::Trace(TraceDriven::new(trace.clone())),
            CapacitySpec::Steps(steps) => Drain::Steps(steps.clone()),
        };
        let qdisc = spec.queue.limit();
        let police = spec.police.map(Bucket::new).map(Box::new);
        let inside = VecDeque::with_capacity(FEW);
        Self { way, inside, bytes: 0, free: Instant::ZERO, departed: 0, qdisc, drain, police }
    }

    /// The waiting packets.
    pub(crate) fn state(&self) -> QueueState {
        let packets = u32::try_from(self.inside.len().saturating_sub(1)).unwrap_or(u32::MAX);
        QueueState { packets, bytes: self.bytes, busy: !self.inside.is_empty() }
    }

    /// Packets that have left.
    pub(crate) fn departed(&self) -> u64 {
        self.departed
    }

    /// A packet arrives. Returns when its last bit will leave, [`Instant::MAX`] for never; `None` if it is dropped.
    #[inline(always)]
    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        size: u32,
        travels: bool,
    ) -> Option<Instant> {
        self.settle(now, recorder);
        if self.police.is_some() && !self.conforms(now, size) {
            self.way.record(recorder, now, size, LinkEvent::Dropped(DropCause::Police));
            return None;
        }
        let queue = self.state();
        if let Err(cause) = self.qdisc.admit(now, size, queue) {
            self.way.record(recorder, now, size, LinkEvent::Dropped(cause));
            return None;
        }
        let begins = if queue.busy {
            self.bytes += u64::from(size);
            self.free
        } else {
            now
        };
        let queue_packets = if queue.busy { queue.packets.saturating_add(1) } else { 0 };
        self.way.record(recorder, now, size, LinkEvent::Enqueued { queue_packets, queue_bytes: self.bytes });
        self.free = self.drain.departure(begins, size, !queue.busy);
        self.inside.push_back(Leaving { begins, departs: self.free, size, travels });
        Some(self.free)
    }

    /// Whether the policer lets a packet pass.
    #[cold]
    fn conforms(&mut self, now: Instant, size: u32) -> bool {
        self.police.as_mut().is_none_or(|police| police.take(now, size))
    }

    /// Sets the policer.
    pub(crate) fn set_police(&mut self, now: Instant, spec: BucketSpec) {
        police(&mut self.police, now, spec);
    }

    /// Records every departure up to `now`.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        while let Some(&Leaving { departs, size, .. }) = self.inside.front() {
            if departs > now || departs == Instant::MAX {
                return;
            }
            self.way.record(recorder, departs, size, LinkEvent::Departed);
            self.inside.pop_front();
            self.departed += 1;
            self.bytes -= self.inside.front().map_or(0, |next| u64::from(next.size));
        }
    }

    /// Whether the packetisation of bytes matters: packets are counted, or the largest one takes longer than `unseen`.
    pub(crate) fn counts_packets(&self, unseen: Duration) -> bool {
        let drained = match &self.drain {
            Drain::Fixed { rate, .. } => rate.time_for(LARGEST) > unseen,
            Drain::Shaped(bucket) => bucket.rate().time_for(LARGEST) > unseen,
            Drain::Trace(_) | Drain::Steps(_) => true,
        };
        drained || self.police.is_some() || matches!(self.qdisc, DropTail::Packets(_))
    }

    /// Sets the rate from `now` on, unless capacity is recorded; every earlier departure has been recorded.
    pub(crate) fn set_rate(&mut self, now: Instant, new: Rate) {
        let (rate, known, halfway) = match &mut self.drain {
            Drain::Fixed { rate, known, halfway } => (rate, known, halfway),
            Drain::Shaped(bucket) => {
                // The first waits until the bucket has its bytes; the others find it empty.
                if let Some(first) = self.inside.front() {
                    bucket.set_empty(first.departs);
                }
                self.free = bucket.set_rate(now, new);
                for (place, packet) in self.inside.iter_mut().enumerate() {
                    packet.departs =
                        if place == 0 { self.free } else { bucket.transmit(self.free, packet.size, false) };
                    self.free = packet.departs;
                }
                return;
            }
            Drain::Trace(_) | Drain::Steps(_) => return,
        };
        let old = core::mem::replace(rate, new);
        *known = (0, Duration::ZERO);
        let mut packets = self.inside.iter_mut();
        let Some(first) = packets.next() else { return };
        let (_, under_way) = match halfway {
            Some(left) if left.0 == first.begins => left,
            none => {
                let mut drain = FixedRate::new(old);
                drain.transmit(first.begins, first.size, false);
                none.insert((first.begins, drain))
            }
        };
        first.departs = under_way.set_rate(now, new, first.departs);
        self.free = first.departs;
        for packet in packets {
            packet.begins = self.free;
            packet.departs = self.free + new.time_for(packet.size.into());
            self.free = packet.departs;
        }
    }

    /// Sets the burst from `now` on, unless capacity is recorded; every earlier departure has been recorded.
    pub(crate) fn set_burst(&mut self, burst: u64) {
        match &mut self.drain {
            Drain::Fixed { rate, .. } => {
                let departs = if self.inside.is_empty() { Instant::MAX } else { self.free };
                self.drain = Drain::Shaped(shaper(BucketSpec { rate: *rate, burst }, departs));
            }
            Drain::Shaped(bucket) => bucket.set_burst(burst),
            Drain::Trace(_) | Drain::Steps(_) => {}
        }
    }

    /// Sets the capacity of the queue from now on.
    pub(crate) fn set_limit(&mut self, limit: DropTail) {
        self.qdisc = limit;
    }

    /// When the packets inside that travel on will leave, in order.
    pub(crate) fn departures(&self) -> impl Iterator<Item = Instant> {
        self.inside.iter().filter(|packet| packet.travels).map(|packet| packet.departs)
    }
}

/// Sets a policer, with the bytes that it has; a new one is full.
pub(crate) fn police(police: &mut Option<Box<Bucket>>, now: Instant, spec: BucketSpec) {
    match police {
        Some(bucket) => {
            bucket.set_rate(now, spec.rate);
            bucket.set_burst(spec.burst);
        }
        None => *police = Some(Box::new(Bucket::new(spec))),
    }
}

impl Drain {
    /// When the last bit leaves of a packet whose transmission begins at `begins`; see [`Capacity::transmit`].
    #[inline(always)]
    fn departure(&mut self, begins: Instant, size: u32, idle: bool) -> Instant {
        let Self::Fixed { rate, known, .. } = self else { return self.changing_departure(begins, size, idle) };
        if known.0 != size {
            *known = (size, rate.time_for(size.into()));
        }
        begins + known.1
    }

    /// The same for a bucket or a recording: apart, so that a rate costs no call.
    #[inline(never)]
    fn changing_departure(&mut self, begins: Instant, size: u32, idle: bool) -> Instant {
        match self {
            Self::Fixed { rate, .. } => begins + rate.time_for(size.into()),
            Self::Shaped(bucket) => bucket.transmit(begins, size, idle),
            // Behind a packet that never leaves.
            Self::Trace(_) if begins == Instant::MAX => Instant::MAX,
            Self::Trace(trace) => trace.transmit(begins, size, idle),
            Self::Steps(steps) => steps.leaves(begins, size),
        }
    }
}
