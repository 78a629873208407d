//! Who listens to events.

use crate::Event;
use anabranch_units::{ConnId, Instant, PathId, Side};
use anabranch_wire::Packet;

/// Where an event happened. In the order in which the digest packs it: taking it apart and together costs nothing then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Origin {
    /// The connection; 0 for the network.
    pub connection: ConnId,
    /// The path; 0 where no one path is meant.
    pub path: PathId,
    /// The host; `None` for the network.
    pub host: Option<Side>,
}

/// Listens to events. Events arrive in order of time, but for [`crate::LinkEvent::Departed`], which may be told late.
pub trait Recorder {
    /// Something happened.
    fn record(&mut self, now: Instant, origin: Origin, event: &Event);

    /// A packet left (`sent`) or reached a host. `path` is the network path. Captures listen to this.
    fn packet(&mut self, _now: Instant, _host: Side, _sent: bool, _path: PathId, _packet: &Packet) {}
}

/// Nobody listens.
impl Recorder for () {
    fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}
}

/// Lent for a while.
impl<R: Recorder + ?Sized> Recorder for &mut R {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        (**self).record(now, origin, event);
    }
    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        (**self).packet(now, host, sent, path, packet);
    }
}

/// Two listen.
#[derive(Debug, Default)]
pub struct Tee<A, B>(pub A, pub B);

impl<A: Recorder, B: Recorder> Recorder for Tee<A, B> {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.0.record(now, origin, event);
        self.1.record(now, origin, event);
    }
    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        self.0.packet(now, host, sent, path, packet);
        self.1.packet(now, host, sent, path, packet);
    }
}
