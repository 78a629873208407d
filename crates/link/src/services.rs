//! Services of a server, and a client's station at it: the services that it may use.

use crate::station::Station;
use crate::status::{ClientStatus, PathState};
use anabranch_carrier::{Addresses, MAX_PATHS};
use anabranch_trace::Recorder;
use anabranch_units::{Duration, Instant, PathId};
use anabranch_wire::Packet;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// A service that a server offers to all its clients.
pub trait Service: Debug + Send {
    /// The service of one client, whose session has just begun with these addresses; `None` if the system has nothing left for it.
    fn begin(&mut self, addresses: Addresses) -> Option<Box<dyn ClientService>>;
    /// How long a client's session remains without keys, so that what it has outlives a silence.
    fn keep(&self) -> Duration {
        Duration::ZERO
    }
}

/// A service in one client's session.
pub trait ClientService: Station + Debug + Send {
    /// The packets to this port of the server are for it. Of two services that take a port, the first gets its packets.
    fn takes(&self, port: u16) -> bool;
    /// The state of the client `name`; `address` knows where its paths go. With a scheduler, it is under way.
    fn status(&self, now: Instant, name: &str, address: &dyn Fn(PathId) -> Option<SocketAddr>) -> ClientStatus;
    /// Ends all connections at once, so that the client need not wait for what does not come.
    fn abort(&mut self, _now: Instant) {}
}

/// The services of one client.
#[derive(Debug)]
pub(crate) struct ClientServices {
    services: Vec<Box<dyn ClientService>>,
    /// The service that sends first in this turn.
    first: usize,
}

impl ClientServices {
    /// A client with these services.
    pub fn new(services: Vec<Box<dyn ClientService>>) -> Self {
        Self { services, first: 0 }
    }

    /// The state of the client `name`: that of the first service under way, else of the last.
    pub fn status(&self, now: Instant, name: &str, address: &dyn Fn(PathId) -> Option<SocketAddr>) -> ClientStatus {
        let mut last = None;
        for service in &self.services {
            let status = service.status(now, name, address);
            if status.scheduler.is_some() {
                return status;
            }
            last = Some(status);
        }
        last.unwrap_or_else(|| {
            let path = |id: u8| {
                Some(PathState { path: id, address: address(PathId(id))?.to_string(), ..PathState::default() })
            };
            let paths = (0..MAX_PATHS as u8).filter_map(path).collect();
            ClientStatus { name: name.to_owned(), paths, ..ClientStatus::default() }
        })
    }

    /// See [`ClientService::abort`].
    pub fn abort(&mut self, now: Instant) {
        self.services.iter_mut().for_each(|service| service.abort(now));
    }
}

impl Station for ClientServices {
    fn receive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet) {
        if let Some(service) = self.services.iter_mut().find(|service| service.takes(packet.segment.dst_port)) {
            service.receive(now, recorder, packet);
        }
    }

    fn transmit_into(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &mut Packet) -> bool {
        let (before, after) = self.services.split_at_mut(self.first);
        let sent = after.iter_mut().chain(before).any(|service| service.transmit_into(now, recorder, packet));
        self.first = (self.first + 1) % self.services.len().max(1);
        sent
    }

    fn handle_timeout(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        self.services.iter_mut().for_each(|service| service.handle_timeout(now, recorder));
    }

    fn poll_timeout(&mut self) -> Instant {
        self.services.iter_mut().map(|service| service.poll_timeout()).min().unwrap_or(Instant::MAX)
    }

    fn set_max_packet(&mut self, now: Instant, path: PathId, bytes: usize) {
        self.services.iter_mut().for_each(|service| service.set_max_packet(now, path, bytes));
    }

    fn work(&mut self, now: Instant) -> bool {
        let mut any = false;
        for service in &mut self.services {
            any |= service.work(now);
        }
        any
    }

    fn add_inputs<'a>(&'a self, inputs: &mut Vec<BorrowedFd<'a>>) {
        self.services.iter().for_each(|service| service.add_inputs(inputs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Segment;

    /// A service at one port, whose packets come from there. It is under way once it has received one.
    #[derive(Debug)]
    struct Fake {
        port: u16,
        received: u32,
    }

    impl Station for Fake {
        fn receive(&mut self, _: Instant, _: &mut dyn Recorder, _: &Packet) {
            self.received += 1;
        }

        fn transmit_into(&mut self, _: Instant, _: &mut dyn Recorder, packet: &mut Packet) -> bool {
            packet.segment.src_port = self.port;
            true
        }

        fn handle_timeout(&mut self, _: Instant, _: &mut dyn Recorder) {}

        fn poll_timeout(&mut self) -> Instant {
            Instant::MAX
        }
    }

    impl ClientService for Fake {
        fn takes(&self, port: u16) -> bool {
            port == self.port
        }

        fn status(&self, _: Instant, name: &str, _: &dyn Fn(PathId) -> Option<SocketAddr>) -> ClientStatus {
            let scheduler = (self.received > 0).then(|| self.port.to_string());
            ClientStatus { name: name.to_owned(), scheduler, connections: self.port.into(), ..ClientStatus::default() }
        }
    }

    fn services(ports: &[u16]) -> ClientServices {
        let service = |port: &u16| Box::new(Fake { port: *port, received: 0 }) as Box<dyn ClientService>;
        ClientServices::new(ports.iter().map(service).collect())
    }

    fn shown(services: &ClientServices) -> ClientStatus {
        let address = |id: PathId| (id == PathId(1)).then(|| SocketAddr::from(([192, 0, 2, 1], 9)));
        services.status(Instant::ZERO, "laptop", &address)
    }

    #[test]
    fn a_packet_is_for_the_service_at_its_port_which_is_shown_then() {
        let mut both = services(&[1, 2]);
        assert_eq!(shown(&both).connections, 2, "none is under way: the last");
        for port in [9, 1] {
            let packet = Packet { segment: Segment { dst_port: port, ..Segment::default() }, ..Packet::default() };
            both.receive(Instant::ZERO, &mut (), &packet);
        }
        assert_eq!(shown(&both).scheduler.as_deref(), Some("1"));
        let (none, path) = (shown(&services(&[])), |path: &PathState| (path.path, path.address.clone()));
        assert_eq!(none.paths.iter().map(path).collect::<Vec<_>>(), [(1, "192.0.2.1:9".to_owned())]);
    }

    #[test]
    fn services_send_in_turn() {
        let sent = |ports: &[u16]| {
            let (mut all, mut packet) = (services(ports), Packet::default());
            let mut next = || all.transmit_into(Instant::ZERO, &mut (), &mut packet).then_some(packet.segment.src_port);
            [next(), next(), next()]
        };
        assert_eq!(sent(&[1, 2]), [Some(1), Some(2), Some(1)]);
        assert_eq!(sent(&[]), [None; 3]);
    }
}
