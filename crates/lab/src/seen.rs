//! What packets show of hosts whose inside nobody sees.

use anabranch_observer::Observer;
use anabranch_run::CONNECTION;
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Instant, PathId, Side};
use anabranch_wire::Packet;

/// Tells a recorder, beside all that happens, the events that an engine in the place of a kernel would have recorded.
#[derive(Debug)]
pub struct Seen<R> {
    observers: Vec<(Side, Observer)>,
    inner: R,
}

impl<R: Recorder> Seen<R> {
    /// `kernels` are the hosts outside.
    pub fn new(kernels: &[Side], inner: R) -> Self {
        let observers = kernels.iter().map(|side| (*side, Observer::new(*side, CONNECTION))).collect();
        Self { observers, inner }
    }

    /// The recorder.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: Recorder> Recorder for Seen<R> {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.inner.record(now, origin, event);
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        if !sent {
            self.inner.packet(now, host, sent, path, packet);
        }
        if let Some((_, observer)) = self.observers.iter_mut().find(|(side, _)| *side == host) {
            observer.packet(now, sent, path, packet, &mut self.inner);
        }
        if sent {
            self.inner.packet(now, host, sent, path, packet);
        }
    }
}
