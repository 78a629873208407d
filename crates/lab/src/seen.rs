//! What packets show of hosts whose inside nobody sees.

use anabranch_observer::{Number, Observers};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{ConnId, Instant, PathId, Side};
use anabranch_wire::{Flags, Packet};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Which connection a subflow of a kernel belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The kernel's end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Its connection.
    pub connection: ConnId,
}

/// Tells a recorder, beside all that happens, the events that an engine in the place of a kernel would have recorded.
#[derive(Debug)]
pub struct Seen<R> {
    kernels: Vec<Kernel>,
    inner: R,
}

/// What is seen of one kernel.
#[derive(Debug)]
struct Kernel {
    side: Side,
    observers: Observers,
    tell: Sender<Known>,
}

impl<R: Recorder> Seen<R> {
    /// Of the hosts outside. Each hears which subflow belongs to which connection, as `number` calls these by the client's
    /// port.
    pub fn new(
        kernels: impl IntoIterator<Item = Side>,
        number: Number,
        inner: R,
    ) -> (Self, Vec<(Side, Receiver<Known>)>) {
        let kernel = |side| {
            let (tell, known) = channel();
            (Kernel { side, observers: Observers::new(side, number), tell }, (side, known))
        };
        let (kernels, known) = kernels.into_iter().map(kernel).unzip();
        (Self { kernels, inner }, known)
    }

    /// The recorder.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

impl Kernel {
    fn packet(&mut self, now: Instant, sent: bool, path: PathId, packet: &Packet, recorder: &mut dyn Recorder) {
        let connection = self.observers.packet(now, sent, path, packet, recorder);
        if let Some(connection) = connection
            && packet.segment.flags.has(Flags::SYN)
        {
            let source = SocketAddr::new(packet.src, packet.segment.src_port);
            let target = SocketAddr::new(packet.dst, packet.segment.dst_port);
            let (local, remote) = if sent { (source, target) } else { (target, source) };
            // Nobody listens any more when a run is over.
            let _ = self.tell.send(Known { local, remote, connection });
        }
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
        if let Some(kernel) = self.kernels.iter_mut().find(|kernel| kernel.side == host) {
            kernel.packet(now, sent, path, packet, &mut self.inner);
        }
        if sent {
            self.inner.packet(now, host, sent, path, packet);
        }
    }
}
