//! The listening end of a link: one socket, and an engine per client.

use crate::client_link::path_of;
use crate::gso::GsoBatch;
use crate::inner::{self, EcnMarks};
use crate::{Link, LinkError, LinkEvent, Socket, secrets};
use anabranch_carrier::files::Client;
use anabranch_carrier::{Addresses, Arrival, Counters, Limits, PeerEvent, PeerId, Server, ServerSettings, StaticKey};
use anabranch_units::{Duration, Instant, PathId};
use anabranch_wire::{Ecn, Packet};
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// A server's carrier with its socket. Engine `n` is that of client `n`: clients cannot reach each other's connections.
pub struct ServerLink {
    carrier: Server,
    socket: Socket,
    batch: GsoBatch,
    datagram: Vec<u8>,
    packet: Vec<u8>,
    marks: EcnMarks,
}

/// Without the buffers: one has a packet in plain text.
impl fmt::Debug for ServerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLink").field("carrier", &self.carrier).finish_non_exhaustive()
    }
}

impl ServerLink {
    /// Listens at `local` for these clients, whose sessions remain for `keep` without keys.
    ///
    /// # Errors
    /// The system refuses the socket.
    pub fn listen(
        local: SocketAddr,
        key: StaticKey,
        clients: Vec<Client>,
        limits: Limits,
        keep: Duration,
    ) -> Result<Self, LinkError> {
        let socket = Socket::listen(local)?;
        let carrier = Server::new(ServerSettings { key, clients, limits, keep }, Box::new(secrets::random()));
        let (batch, marks) = (GsoBatch::default(), EcnMarks::default());
        Ok(Self { carrier, socket, batch, datagram: Vec::new(), packet: Vec::new(), marks })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not know it.
    pub fn local(&self) -> Result<SocketAddr, LinkError> {
        self.socket.local()
    }

    /// The addresses of a client's packets.
    pub fn addresses(&self, client: PeerId) -> Option<Addresses> {
        self.carrier.addresses(client)
    }

    /// A client's name.
    pub fn name(&self, client: PeerId) -> Option<&str> {
        self.carrier.name(client)
    }

    /// Where a path's datagrams go, and whether that address has answered.
    pub fn address(&self, client: PeerId, path: PathId) -> Option<(SocketAddr, bool)> {
        self.carrier.address(client, path)
    }

    /// Counts of all that came and was refused.
    pub fn counters(&self) -> Counters {
        self.carrier.counters()
    }

    /// Marks (ECN) that datagrams brought.
    pub fn marks(&self) -> EcnMarks {
        self.marks
    }

    /// Datagrams that the system did not take.
    pub fn unsent(&self) -> u64 {
        self.socket.unsent
    }
}

/// Sessions that began or ended, and paths that carry packets of other sizes.
fn report(carrier: &mut Server, take: &mut dyn FnMut(PeerId, LinkEvent<'_>)) {
    while let Some(event) = carrier.poll_event() {
        match event {
            PeerEvent::Began(peer) => {
                if let Some(addresses) = carrier.addresses(peer) {
                    take(peer, LinkEvent::Began(addresses));
                }
            }
            PeerEvent::Ended(peer) => take(peer, LinkEvent::Ended),
            PeerEvent::Resized(Arrival { peer, path }, bytes) => take(peer, LinkEvent::Resized(path, bytes)),
        }
    }
}

impl Link<PeerId> for ServerLink {
    fn receive(&mut self, now: Instant, take: &mut dyn FnMut(PeerId, LinkEvent<'_>)) -> Result<bool, LinkError> {
        let Self { carrier, socket, packet, marks, .. } = self;
        // Those that the time brought.
        report(carrier, take);
        socket.receive(|from, ecn, datagram| {
            let arrival = carrier.handle_datagram(now, from, datagram, packet);
            report(carrier, take);
            if let Some(Arrival { peer, .. }) = arrival.filter(|_| marks.take(ecn, packet)) {
                take(peer, LinkEvent::Packet(packet));
            }
        })
    }

    fn send(&mut self, now: Instant, peer: PeerId, packet: &Packet) {
        let Some(path) = path_of(packet.dst) else { return };
        inner::write(packet, &mut self.packet);
        if let Ok(Some(to)) = self.carrier.send(now, Arrival { peer, path }, &self.packet, &mut self.datagram) {
            // RFC 6040 §4.1: the field is copied
            self.batch.push(&mut self.socket, to, packet.segment.ecn, &self.datagram);
        }
    }

    fn flush(&mut self, now: Instant) {
        self.carrier.handle_timeout(now);
        while let Some((to, datagram)) = self.carrier.poll_transmit() {
            self.batch.push(&mut self.socket, to, Ecn::NotEct, &datagram);
        }
        self.batch.flush(&mut self.socket);
    }

    fn next_timeout(&self) -> Instant {
        self.carrier.poll_timeout()
    }

    fn inputs(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_debug_text_shows_a_packet() {
        let local = ([127, 0, 0, 1], 0).into();
        let mut link =
            ServerLink::listen(local, secrets::new_key().key, Vec::new(), Limits::default(), Duration::ZERO).unwrap();
        link.packet = vec![171; 20];
        let text = format!("{link:?}");
        assert!(text.contains("carrier") && !text.contains("171, 171"), "{text}");
    }
}
