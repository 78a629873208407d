//! Queueing disciplines: the packets that wait at a bottleneck, their order, and those that are dropped.

use crate::{Discipline, QueueSpec};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant, Rate, Rng};
use anabranch_wire::Ecn;
use core::fmt::Debug;
use std::collections::VecDeque;

/// A waiting packet, as far as a discipline looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Name in the bottleneck, unique among the packets that wait.
    pub handle: u32,
    /// Bytes with the path's overhead.
    pub size: u32,
    /// When it arrived.
    pub arrived: Instant,
    /// A hash of its 5-tuple.
    pub flow: u64,
    /// ECN field of the packet.
    pub ecn: Ecn,
}

/// The fate of a packet other than to wait and to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is gone.
    Dropped(DropCause),
    /// The packet has experienced congestion (RFC 3168 §5), and stays.
    Marked,
}

/// Verdicts on packets by their handle, in the order in which they were reached.
pub type Verdicts = Vec<(u32, Verdict)>;

/// The packet that a discipline hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This one goes into transmission.
    Packet(u32),
    /// None waits.
    Nothing,
    /// None may leave before this time.
    Later(Instant),
}

/// The packets that wait at a bottleneck, in one or several queues.
pub trait Qdisc: Debug + Send {
    /// A packet arrives. `busy`: another one is in transmission; otherwise it is handed out at once.
    fn enqueue(&mut self, now: Instant, packet: Waiting, busy: bool, verdicts: &mut Verdicts);

    /// The link is free.
    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Next;

    /// Sets the capacity of a drop-tail queue.
    fn set_limit(&mut self, _limit: DropTail) {}
}

/// A bottleneck's queue at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Packets waiting; the one in transmission does not count.
    pub packets: u32,
    /// Bytes waiting.
    pub bytes: u64,
    /// A packet is in transmission; otherwise the next one need not wait.
    pub busy: bool,
}

/// Decides which packets of a first-in-first-out queue are dropped. It holds no packets, only its own state.
pub trait Aqm: Debug + Send {
    /// A packet of `size` bytes arrives at `queue`. An error drops it.
    fn admit(&mut self, now: Instant, size: u32, queue: QueueState) -> Result<(), DropCause>;

    /// A packet comes to the head after waiting for `sojourn`, with `queue` behind it. An error drops it, and the next
    /// one comes to the head at the same time.
    fn release(&mut self, _now: Instant, _size: u32, _sojourn: Duration, _queue: QueueState) -> Result<(), DropCause> {
        Ok(())
    }

    /// The packet for which [`Self::admit`] or [`Self::release`] has just returned [`DropCause::Aqm`] is ECN-capable. True if it is
    /// marked instead (RFC 3168 §5), and is taken as if there had been no error.
    fn marks(&mut self, _now: Instant) -> bool {
        false
    }

    /// The last packet left at `now`, and none waits.
    fn idle(&mut self, _now: Instant) {}

    /// Sets the capacity, if that is all that it knows.
    fn set_limit(&mut self, _limit: DropTail) {}
}

/// One queue, from which `aqm` drops.
#[derive(Clone, Debug)]
pub struct Fifo<A> {
    packets: VecDeque<Waiting>,
    bytes: u64,
    pub(crate) aqm: A,
}

impl<A: Aqm> Fifo<A> {
    /// An empty queue.
    pub fn new(aqm: A) -> Self {
        Self { packets: VecDeque::new(), bytes: 0, aqm }
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn state(&self, busy: bool) -> QueueState {
        QueueState { packets: u32::try_from(self.packets.len()).unwrap_or(u32::MAX), bytes: self.bytes, busy }
    }

    /// The verdict where `aqm` has refused `packet` for `cause`; true if the packet is gone.
    fn refused(&mut self, now: Instant, packet: Waiting, cause: DropCause, verdicts: &mut Verdicts) -> bool {
        let marked = cause == DropCause::Aqm && packet.ecn.is_capable() && self.aqm.marks(now);
        verdicts.push((packet.handle, if marked { Verdict::Marked } else { Verdict::Dropped(cause) }));
        !marked
    }

    /// Takes the packet at the head, whatever `aqm` says.
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// Takes packets from the head until `aqm` lets one pass.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: Instant, verdicts: &mut Verdicts) -> Option<Waiting> {
        while let Some(packet) = self.pop() {
            let behind = self.state(false);
            let released = self.aqm.release(now, packet.size, now.since(packet.arrived), behind);
            if !released.is_err_and(|cause| self.refused(now, packet, cause, verdicts)) {
                return Some(packet);
            }
        }
        self.aqm.idle(now);
        None
    }
}

impl<A: Aqm> Qdisc for Fifo<A> {
    fn enqueue(&mut self, now: Instant, packet: Waiting, busy: bool, verdicts: &mut Verdicts) {
        let admitted = self.aqm.admit(now, packet.size, self.state(busy));
        if admitted.is_err_and(|cause| self.refused(now, packet, cause, verdicts)) {
            return;
        }
        self.bytes += u64::from(packet.size);
        self.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Next {
        self.take(now, verdicts).map_or(Next::Nothing, |packet| Next::Packet(packet.handle))
    }

    fn set_limit(&mut self, limit: DropTail) {
        self.aqm.set_limit(limit);
    }
}

/// Takes packets while there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropTail {
    /// Room for this many packets.
    Packets(u32),
    /// Room for this many bytes; a packet fits whole or not at all.
    Bytes(u64),
}

impl DropTail {
    /// Room for every packet.
    pub const UNLIMITED: Self = Self::Bytes(u64::MAX);
}

impl Aqm for DropTail {
    fn admit(&mut self, _now: Instant, size: u32, queue: QueueState) -> Result<(), DropCause> {
        let room = match *self {
            DropTail::Packets(limit) => queue.packets < limit,
            DropTail::Bytes(limit) => queue.bytes.saturating_add(size.into()) <= limit,
        };
        if room || !queue.busy { Ok(()) } else { Err(DropCause::Queue) }
    }

    fn set_limit(&mut self, limit: DropTail) {
        *self = limit;
    }
}

impl QueueSpec {
    /// The discipline, before a link of `rate`. A random one has its own stream, named after the bottleneck, `name`
    /// (`path.wlan.down`), and itself.
    pub(crate) fn build(&self, rate: Rate, seed: u64, name: &str) -> Box<dyn Qdisc> {
        match *self {
            QueueSpec::Packets(_) | QueueSpec::Bytes(_) => Box::new(Fifo::new(self.limit())),
            QueueSpec::Managed(discipline, limit) => {
                discipline.build(limit, rate, Rng::stream(seed, &[name, discipline.name()].join(".")))
            }
        }
    }

    /// The capacity of the queue.
    pub fn limit(&self) -> DropTail {
        match *self {
            QueueSpec::Packets(limit) => DropTail::Packets(limit),
            QueueSpec::Bytes(limit) => DropTail::Bytes(limit),
            QueueSpec::Managed(_, limit) => limit,
        }
    }

    /// The capacity of the queue and of the propagation behind it together, if that is what is limited.
    pub(crate) fn limit_to_far_end(&self) -> Option<DropTail> {
        self.discipline().is_some_and(Discipline::counts_propagation).then(|| self.limit())
    }

    /// The discipline, if it is more than a limit.
    pub fn discipline(&self) -> Option<&Discipline> {
        match self {
            QueueSpec::Packets(_) | QueueSpec::Bytes(_) => None,
            QueueSpec::Managed(discipline, _) => Some(discipline),
        }
    }

    /// Whether it marks ECN-capable packets in place of dropping them.
    pub fn marks(&self) -> bool {
        self.discipline().is_some_and(Discipline::marks)
    }

    /// Whether it drops packets only on arrival at a full queue: then each departure is known on arrival.
    pub(crate) fn is_drop_tail(&self) -> bool {
        self.discipline().is_none()
    }
}
