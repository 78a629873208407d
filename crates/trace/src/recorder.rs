//! The receivers of events.

use crate::{DecisionLog, Event, LinkEvent, SendKind, WindowChange};
use anabranch_units::{ConnId, Direction, Instant, PathId, Range, Side};
use anabranch_wire::Packet;

/// Where an event happened. The fields are in the digest's order, so that packing costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Origin {
    /// The connection; 0 for the network.
    pub connection: ConnId,
    /// The path; 0 if the event concerns no single path.
    pub path: PathId,
    /// The host; `None` for the network.
    pub host: Option<Side>,
}

impl Origin {
    /// The network, on `path`.
    pub const fn network(path: PathId) -> Self {
        Self { connection: ConnId(0), path, host: None }
    }
}

/// Receives events, in order of time except for [`crate::LinkEvent::Departed`], which may be late. Each host's come in that order; those
/// of different hosts only if [`Self::needs_order`].
pub trait Recorder {
    /// Receives an event.
    fn record(&mut self, now: Instant, origin: Origin, event: &Event);

    // The most frequent kinds have a function each, compiled for its kind alone where `record` is inlined, so that nothing looks for the
    // kind at run time. A recorder implements `record` alone, and `link`: one that wraps another calls these two.

    /// [`Event::DataSent`].
    fn data_sent(&mut self, now: Instant, origin: Origin, seq: u64, data: Range, kind: SendKind) {
        self.record(now, origin, &Event::DataSent { seq, data, kind });
    }
    /// [`Event::DataArrived`].
    fn data_arrived(&mut self, now: Instant, origin: Origin, data: Range, new: u64, ofo: u64) {
        self.record(now, origin, &Event::DataArrived { data, new, ofo });
    }
    /// [`Event::Delivered`].
    fn delivered(&mut self, now: Instant, origin: Origin, data: Range) {
        self.record(now, origin, &Event::Delivered(data));
    }
    /// [`Event::DataAcked`].
    fn data_acked(&mut self, now: Instant, origin: Origin, offset: u64) {
        self.record(now, origin, &Event::DataAcked(offset));
    }
    /// [`Event::Window`].
    fn window(&mut self, now: Instant, origin: Origin, change: &WindowChange) {
        self.record(now, origin, &Event::Window(*change));
    }
    /// [`Event::SubflowOfo`].
    fn subflow_ofo(&mut self, now: Instant, origin: Origin, bytes: u64) {
        self.record(now, origin, &Event::SubflowOfo(bytes));
    }
    /// [`Event::ControlSent`].
    fn control_sent(&mut self, now: Instant, origin: Origin, flags: u8, again: bool) {
        self.record(now, origin, &Event::ControlSent { flags, again });
    }

    /// A packet of `size` bytes met a link: equivalent to an [`Event::Link`]. Nearly half of all events are of this
    /// kind, so that recorders in a hot loop have a fast path for them.
    fn link(&mut self, now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        self.record(now, Origin::network(path), &Event::Link { direction, size, what });
    }

    /// [`LinkEvent::Enqueued`].
    fn enqueued(
        &mut self,
        now: Instant,
        path: PathId,
        direction: Direction,
        size: u32,
        queue_packets: u32,
        queue_bytes: u64,
    ) {
        self.link(now, path, direction, size, LinkEvent::Enqueued { queue_packets, queue_bytes });
    }
    /// [`LinkEvent::Departed`].
    fn departed(&mut self, now: Instant, path: PathId, direction: Direction, size: u32) {
        self.link(now, path, direction, size, LinkEvent::Departed);
    }

    /// A packet left (`sent`) or reached a host. `path` is the network path. Captures use this. The events of sending
    /// come before it, the events of its arrival after it.
    fn packet(&mut self, _now: Instant, _host: Side, _sent: bool, _path: PathId, _packet: &Packet) {}

    /// False if all is discarded, so that a run whose outcome is known need not be made for this recorder.
    fn is_listening(&self) -> bool {
        true
    }

    /// Whether the events of both hosts must come in one order of time. If not, one host's may be ahead of the other's, by less than a
    /// packet takes between them; those of links come in the order of each direction of a path.
    fn needs_order(&self) -> bool {
        self.is_listening()
    }

    /// Where the views of a connection's scheduler are to go, if they are wanted: the driver puts a witness around that scheduler
    /// then. It gives no command, so the run is the same.
    fn decisions(&self) -> Option<DecisionLog> {
        None
    }
}

/// Discards all events.
impl Recorder for () {
    fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}

    fn is_listening(&self) -> bool {
        false
    }
}

/// A borrowed recorder.
impl<R: Recorder + ?Sized> Recorder for &mut R {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        (**self).record(now, origin, event);
    }
    fn link(&mut self, now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        (**self).link(now, path, direction, size, what);
    }
    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        (**self).packet(now, host, sent, path, packet);
    }
    fn is_listening(&self) -> bool {
        (**self).is_listening()
    }
    fn needs_order(&self) -> bool {
        (**self).needs_order()
    }
    fn decisions(&self) -> Option<DecisionLog> {
        (**self).decisions()
    }
}

/// A recorder, or none.
impl<R: Recorder> Recorder for Option<R> {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if let Some(recorder) = self {
            recorder.record(now, origin, event);
        }
    }
    fn link(&mut self, now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        if let Some(recorder) = self {
            recorder.link(now, path, direction, size, what);
        }
    }
    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        if let Some(recorder) = self {
            recorder.packet(now, host, sent, path, packet);
        }
    }
    fn is_listening(&self) -> bool {
        self.as_ref().is_some_and(Recorder::is_listening)
    }
    fn needs_order(&self) -> bool {
        self.as_ref().is_some_and(Recorder::needs_order)
    }
    fn decisions(&self) -> Option<DecisionLog> {
        self.as_ref().and_then(Recorder::decisions)
    }
}

/// Two recorders.
#[derive(Debug, Default)]
pub struct Tee<A, B>(pub A, pub B);

impl<A: Recorder, B: Recorder> Tee<A, B> {
    #[inline(always)]
    fn link_both(&mut self, now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        self.0.link(now, path, direction, size, what);
        self.1.link(now, path, direction, size, what);
    }

    /// Apart, so that the frequent events save no registers for it.
    #[cold]
    #[inline(never)]
    fn link_rarely(&mut self, now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        self.link_both(now, path, direction, size, what);
    }
}

impl<A: Recorder, B: Recorder> Recorder for Tee<A, B> {
    #[inline(always)]
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.0.record(now, origin, event);
        self.1.record(now, origin, event);
    }
    #[inline(always)]
    fn link(&mut self, now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        if what.is_of_queue() {
            self.link_both(now, path, direction, size, what);
        } else {
            self.link_rarely(now, path, direction, size, what);
        }
    }
    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        self.0.packet(now, host, sent, path, packet);
        self.1.packet(now, host, sent, path, packet);
    }
    fn is_listening(&self) -> bool {
        self.0.is_listening() || self.1.is_listening()
    }
    fn needs_order(&self) -> bool {
        self.0.needs_order() || self.1.needs_order()
    }
    fn decisions(&self) -> Option<DecisionLog> {
        self.0.decisions().or_else(|| self.1.decisions())
    }
}
