//! Events of a kernel host, derived from its packets.

use anabranch_observer::{Number, Observers};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{ConnId, Instant, PathId, Side};
use anabranch_wire::{Flags, Packet};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The connection of a kernel's subflow.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The kernel's end.
    pub local: SocketAddr,
    /// The remote end.
    pub remote: SocketAddr,
    /// Number of the connection.
    pub connection: ConnId,
}

/// Passes all events to a recorder, and adds those that an engine in the kernel's place would have recorded.
#[derive(Debug)]
pub struct Seen<R> {
    kernels: Vec<Kernel>,
    inner: R,
}

/// The observer of one kernel.
#[derive(Debug)]
struct Kernel {
    side: Side,
    observers: Observers,
    tell: Sender<Known>,
}

impl<R: Recorder> Seen<R> {
    /// An observer of the hosts outside. Each host receives the connection of its subflows; `number` derives it from
    /// the client's port.
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
            // After the end of a run there is no receiver.
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
