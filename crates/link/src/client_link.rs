//! The connecting end of a link: one socket per path.

use crate::gso::GsoBatch;
use crate::inner::{self, EcnMarks};
use crate::{Link, LinkError, LinkEvent, Socket, secrets};
use anabranch_carrier::files::KeyFile;
use anabranch_carrier::{Addresses, Client, ClientSettings, Counters, PathStatus, PublicKey};
use anabranch_units::{Instant, PathId};
use anabranch_wire::{Ecn, Packet};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where to go, and through what.
#[derive(Debug)]
pub struct SessionSettings {
    /// Our key.
    pub key: KeyFile,
    /// The server's.
    pub server: PublicKey,
    /// The server's address.
    pub address: SocketAddr,
    /// A path through each of these interfaces, in this order.
    pub interfaces: Vec<String>,
}

struct Path {
    socket: Socket,
    batch: GsoBatch,
}

impl Path {
    fn put(&mut self, server: SocketAddr, ecn: Ecn, datagram: &[u8]) {
        self.batch.push(&mut self.socket, server, ecn, datagram);
    }
}

/// A client's carrier with its sockets. Engine `()` is the only one.
pub struct ClientLink {
    carrier: Client,
    server: SocketAddr,
    paths: BTreeMap<PathId, Path>,
    datagram: Vec<u8>,
    packet: Vec<u8>,
    marks: EcnMarks,
    /// The engine is made.
    begun: bool,
}

/// Without the buffers: one has a packet in plain text.
impl fmt::Debug for ClientLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { carrier, server, .. } = self;
        f.debug_struct("ClientLink").field("carrier", carrier).field("server", server).finish_non_exhaustive()
    }
}

/// Wall time at [`Instant::ZERO`], in nanoseconds after the beginning of 1970, if it is `wall` at `now`. A clock before 1970 is a clock
/// that was not set; the server refuses its timestamps once they fall behind.
fn epoch(now: Instant, wall: SystemTime) -> u128 {
    let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    wall.as_nanos().saturating_sub(now.as_nanos().into())
}

impl ClientLink {
    /// A link to the server at `address` with the key `server`, without paths. `now` is the time of the clock that all calls use.
    pub fn new(now: Instant, key: KeyFile, server: PublicKey, address: SocketAddr) -> Self {
        let KeyFile { key, preshared } = key;
        let epoch = epoch(now, SystemTime::now());
        let carrier = Client::new(ClientSettings { key, preshared, server, epoch }, Box::new(secrets::random()));
        Self {
            carrier,
            server: address,
            paths: BTreeMap::new(),
            datagram: Vec::new(),
            packet: Vec::new(),
            marks: EcnMarks::default(),
            begun: false,
        }
    }

    /// Adds the path `id` through an interface, or puts it in the place of an earlier one.
    ///
    /// # Errors
    /// There is no such interface, or no route through it.
    ///
    /// # Panics
    /// If `id` is not below [`anabranch_carrier::MAX_PATHS`].
    pub fn add_path(&mut self, now: Instant, id: PathId, interface: &str) -> Result<(), LinkError> {
        let socket = Socket::through(interface, self.server)?;
        assert!(self.carrier.add_path(now, id), "a session has 16 paths at most");
        self.paths.insert(id, Path { socket, batch: GsoBatch::default() });
        Ok(())
    }

    /// Forgets a path and closes its socket.
    pub fn remove_path(&mut self, id: PathId) {
        self.carrier.remove_path(id);
        self.paths.remove(&id);
    }

    /// The session has keys: packets may be sent.
    pub fn is_established(&self) -> bool {
        self.carrier.is_established()
    }

    /// The addresses that packets have.
    pub fn addresses(&self) -> Addresses {
        self.carrier.addresses()
    }

    /// A path's state.
    pub fn path(&self, id: PathId) -> Option<PathStatus> {
        self.carrier.path(id)
    }

    /// When something came last of the server's, over any path.
    pub fn heard(&self) -> Option<Instant> {
        self.carrier.heard()
    }

    /// Challenges a path now, which measures its round-trip time; an earlier challenge that is not answered yet is given up.
    pub fn challenge(&mut self, now: Instant, id: PathId) {
        self.carrier.challenge(now, id);
    }

    /// Counts of all that came and was refused.
    pub fn counters(&self) -> Counters {
        self.carrier.counters()
    }

    /// Marks (ECN) that datagrams brought, on all paths.
    pub fn marks(&self) -> EcnMarks {
        self.marks
    }

    /// Datagrams that the system did not take, on all paths.
    pub fn unsent(&self) -> u64 {
        self.paths.values().map(|path| path.socket.unsent).sum()
    }
}

/// The path of a client's address inside the carrier; `None` for any other address.
pub fn path_of(client: IpAddr) -> Option<PathId> {
    match client {
        IpAddr::V4(v4) => Addresses::path(v4),
        IpAddr::V6(_) => None,
    }
}

impl Link<()> for ClientLink {
    fn receive(&mut self, now: Instant, take: &mut dyn FnMut((), LinkEvent<'_>)) -> Result<bool, LinkError> {
        let Self { carrier, paths, packet, server, marks, .. } = self;
        let mut any = false;
        if !core::mem::replace(&mut self.begun, true) {
            take((), LinkEvent::Began(carrier.addresses()));
        }
        for path in paths.values_mut() {
            any |= path.socket.receive(|from, ecn, datagram| {
                // Any other sender is a stranger; the carrier would refuse it at a higher price.
                let came = from == *server && carrier.handle_datagram(now, datagram, packet).is_some();
                if came && marks.take(ecn, packet) {
                    take((), LinkEvent::Packet(packet));
                }
            })?;
        }
        if carrier.poll_forgotten() {
            take((), LinkEvent::Forgotten);
        }
        while let Some((path, bytes)) = carrier.poll_resized() {
            take((), LinkEvent::Resized(path, bytes));
        }
        Ok(any)
    }

    fn send(&mut self, now: Instant, (): (), packet: &Packet) {
        let Some((id, path)) = path_of(packet.src).and_then(|id| Some((id, self.paths.get_mut(&id)?))) else { return };
        inner::write(packet, &mut self.packet);
        let sent = self.carrier.send(now, id, &self.packet, &mut self.datagram);
        if sent.is_ok() && !self.datagram.is_empty() {
            // RFC 6040 §4.1: the field is copied
            path.put(self.server, packet.segment.ecn, &self.datagram);
        }
    }

    fn flush(&mut self, now: Instant) {
        if self.carrier.poll_timeout() <= now {
            self.carrier.handle_timeout(now);
        }
        while let Some((id, datagram)) = self.carrier.poll_transmit() {
            if let Some(path) = self.paths.get_mut(&id) {
                path.put(self.server, Ecn::NotEct, &datagram);
            }
        }
        self.paths.values_mut().for_each(|path| path.batch.flush(&mut path.socket));
    }

    fn next_timeout(&self) -> Instant {
        self.carrier.poll_timeout()
    }

    fn inputs(&self) -> Vec<BorrowedFd<'_>> {
        self.paths.values().map(|path| path.socket.as_fd()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A clock that began earlier makes no timestamp of the future, which would block the client's next process.
    #[test]
    fn the_epoch_is_wall_time_at_zero() {
        let wall = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        for secs in [0, 5, 86_400] {
            let now = Instant::from_millis(1_000 * secs);
            assert_eq!(epoch(now, wall) + u128::from(now.as_nanos()), 1_800_000_000_000_000_000);
        }
        assert_eq!(epoch(Instant::from_millis(1), UNIX_EPOCH), 0);
    }

    #[test]
    fn no_debug_text_shows_a_packet() {
        let server = secrets::new_key().key.public();
        let mut link = ClientLink::new(Instant::ZERO, secrets::new_key(), server, ([127, 0, 0, 1], 1).into());
        link.packet = vec![171; 20];
        let text = format!("{link:?}");
        assert!(text.contains("127.0.0.1:1") && !text.contains("171, 171"), "{text}");
    }
}
