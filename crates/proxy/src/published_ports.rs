//! Ports and addresses at which clients that are not ours reach this host, without a carrier: whatever speaks Multipath TCP, or TCP.

use crate::rules::built;
use crate::target::{PublishedPort, Target};
use anabranch_engine::Cx;
use anabranch_engine::connection::{Connection, OwnEnd};
use anabranch_scenario::PlugIn;
use anabranch_units::PathId;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A path's address, as the engine has it and as clients have it.
#[derive(Clone, Copy, Debug)]
struct PathAddress {
    here: Ipv4Addr,
    /// `None` while the interface is gone.
    there: Option<Ipv4Addr>,
}

/// The ports with their targets, the addresses, and the scheduler of what is sent to clients.
#[derive(Debug)]
pub(crate) struct PublishedPorts {
    targets: BTreeMap<u16, Target>,
    scheduler: PlugIn,
    /// The place is the path.
    addresses: Vec<PathAddress>,
    names: Vec<String>,
}

impl PublishedPorts {
    /// For these ports; `here` are the engine's addresses on the paths through the interfaces `names`, which may not exist yet.
    pub fn new(published: Vec<PublishedPort>, scheduler: PlugIn, names: Vec<String>, here: &[Ipv4Addr]) -> Self {
        let targets = published.into_iter().map(|PublishedPort { port, target }| (port, target)).collect();
        let addresses = here.iter().map(|here| PathAddress { here: *here, there: None }).collect();
        Self { targets, scheduler, addresses, names }
    }

    /// The ports.
    pub fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.targets.keys().copied()
    }

    /// The addresses and ports at which clients reach this host now.
    pub fn locals(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let there = self.addresses.iter().filter_map(|address| address.there);
        there.flat_map(move |there| self.ports().map(move |port| (there, port).into()))
    }

    /// The interface of a path.
    pub fn name(&self, id: PathId) -> Option<&str> {
        self.names.get(id.index()).map(String::as_str)
    }

    /// The scheduler, with its parameters.
    pub fn scheduler(&self) -> &PlugIn {
        &self.scheduler
    }

    /// The addresses that clients have are these now, by path.
    pub fn set(&mut self, there: &[Option<Ipv4Addr>]) {
        self.addresses.iter_mut().zip(there).for_each(|(address, there)| address.there = *there);
    }

    /// Gives a connection that was accepted its scheduler, and tells its client the other addresses. Its target, if its port has one.
    pub fn admit(&self, connection: &mut Connection, cx: &mut Cx<'_>) -> Option<Target> {
        let (_, ends, _) = connection.subflows().next()?;
        let target = self.targets.get(&ends.local.port())?;
        let (name, scheduler) = built(&self.scheduler)?;
        connection.set_scheduler(cx, name, scheduler);
        self.follow(connection, cx);
        Some(target.clone())
    }

    fn is_open(&self, here: IpAddr) -> bool {
        self.addresses.iter().any(|address| IpAddr::from(address.here) == here && address.there.is_some())
    }

    /// Tells a client which addresses there are, and which are gone. Clients alone join; what is gone is said only over what is left.
    pub fn follow(&self, connection: &mut Connection, cx: &mut Cx<'_>) {
        let ends: Vec<SocketAddr> = connection.subflows().map(|(_, ends, _)| ends.local).collect();
        let Some(port) = ends.first().map(SocketAddr::port).filter(|_| connection.is_multipath()) else { return };
        let reached = ends.iter().any(|local| self.is_open(local.ip()));
        for PathAddress { here, there } in &self.addresses {
            let id = connection.address_id((*here, port).into());
            match (*there, id) {
                (Some(there), None) => {
                    let end = OwnEnd { here: (*here).into(), there: there.into() };
                    // Of IDs that name other addresses, or did until lately, the first one that does not is taken.
                    let _ = (1..=u8::MAX).find(|id| connection.announce(cx, *id, end, None));
                }
                (None, Some(id)) if reached => connection.withdraw(cx, id),
                _ => {}
            }
        }
    }

    /// The same; clients have other addresses on the paths `moved` than before, and what runs over these is lost. Plain TCP has nothing else: it
    /// is reset.
    pub fn renew(&self, connection: &mut Connection, cx: &mut Cx<'_>, moved: &[PathId]) {
        let addresses = moved.iter().filter_map(|id| self.addresses.get(id.index()));
        let gone: Vec<IpAddr> = addresses.map(|address| address.here.into()).collect();
        let ends: Vec<SocketAddr> = connection.subflows().map(|(_, ends, _)| ends.local).collect();
        let is_lost = ends.iter().any(|local| gone.contains(&local.ip()));
        if is_lost && !connection.is_multipath() {
            return connection.abort(cx);
        }
        let port = ends.first().map_or(0, SocketAddr::port);
        for here in gone {
            if let Some(id) = connection.address_id((here, port).into()) {
                connection.withdraw(cx, id);
            }
        }
        self.follow(connection, cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_table::ProxyStation;
    use crate::egress::Egress;
    use crate::setup::ConnectionSettings;
    use anabranch_engine::FourTuple;
    use anabranch_engine::connection::{PathSetup, Setup};
    use anabranch_engine::endpoint::{Endpoint, Handle};
    use anabranch_link::{Engine, Station};
    use anabranch_units::{Duration, Instant};
    use anabranch_wire::Packet;
    use std::net::TcpListener;
    use std::sync::Arc;

    const PORT: u16 = 80;
    const HERE: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 5, 1), Ipv4Addr::new(198, 18, 5, 2)];
    const THERE: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
    const MOVED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

    /// A client with a connection to a server, whose addresses are translated between both.
    struct Net {
        now: Instant,
        client: Engine,
        handle: Handle,
        server: ProxyStation<Egress>,
        there: [Option<Ipv4Addr>; 2],
        _target: TcpListener,
    }

    fn plug_in(name: &str) -> PlugIn {
        PlugIn { name: name.to_owned(), parameters: Vec::new() }
    }

    impl Net {
        fn new() -> Self {
            let connections = ConnectionSettings {
                congestion: plug_in("cubic"),
                orphan_timeout: Duration::from_secs(60),
                ecn: false,
            };
            let target = TcpListener::bind("127.0.0.1:0").unwrap();
            let service = format!("{PORT}:{}", target.local_addr().unwrap());
            let names = ["eth0", "eth1"].map(str::to_owned).to_vec();
            let published =
                PublishedPorts::new(vec![PublishedPort::parse(&service).unwrap()], plug_in("blest"), names, &HERE);
            let server = Egress::publishing(published, &connections, 1_400, Arc::new(|_| Ok(Vec::new()))).unwrap();
            let (now, there) = (Instant::from_millis(1), THERE.map(Some));
            let mut server = ProxyStation(server);
            server.0.set_addresses(now, &there, &[]);
            let ends = FourTuple { local: ([203, 0, 113, 9], 5_000).into(), remote: (THERE[0], PORT).into() };
            let setup = connections.direct(1 << 20, 1_400, vec![PathSetup::new(PathId(0), ends)]).unwrap();
            let mut client = Engine::new(Endpoint::new(4), 7);
            let handle = client.with(now, &mut (), |endpoint, cx| {
                let handle = endpoint.connect(cx, Setup { accept_announced: true, ..setup });
                endpoint.connection_mut(handle).unwrap().write(cx, b"request".to_vec().into());
                handle
            });
            let mut net = Self { now, client, handle, server, there, _target: target };
            net.run(300);
            net
        }

        fn run(&mut self, ms: u64) {
            for _ in 0..ms {
                self.now += Duration::from_millis(1);
                let (now, mut packet) = (self.now, Packet::default());
                for station in [&mut self.client as &mut dyn Station, &mut self.server] {
                    if station.poll_timeout() <= now {
                        station.handle_timeout(now, &mut ());
                    }
                }
                self.server.work(now);
                while self.client.transmit_into(now, &mut (), &mut packet) {
                    let place = self.there.iter().position(|there| there.map(IpAddr::from) == Some(packet.dst));
                    if let Some(place) = place {
                        packet.dst = HERE[place].into();
                        self.server.receive(now, &mut (), &packet);
                    }
                }
                while self.server.transmit_into(now, &mut (), &mut packet) {
                    let place = HERE.iter().position(|here| IpAddr::from(*here) == packet.src).unwrap();
                    if let Some(there) = self.there[place] {
                        packet.src = there.into();
                        self.client.receive(now, &mut (), &packet);
                    }
                }
            }
        }

        /// The addresses change.
        fn set(&mut self, there: [Option<Ipv4Addr>; 2], moved: &[PathId]) {
            self.there = there;
            self.server.0.set_addresses(self.now, &there, moved);
            // Two signals in a row, then a pause: RFC 8684 §4.
            self.run(3_000);
        }

        /// The server's addresses that the client has subflows to.
        fn joined(&self) -> Vec<IpAddr> {
            let connection = self.client.endpoint.connection(self.handle).unwrap();
            connection.subflows().map(|(_, ends, _)| ends.remote.ip()).collect()
        }
    }

    #[test]
    fn a_client_joins_the_addresses_that_there_are_and_leaves_those_that_are_gone() {
        let [first, second] = THERE;
        let mut net = Net::new();
        assert_eq!(net.joined(), [first, second]);
        let status =
            net.server.0.status(net.now, "native", &|id| net.server.0.published()?.name(id).map(str::to_owned));
        assert_eq!((status.scheduler.as_deref(), status.connections), (Some("blest"), 1));
        let interfaces: Vec<&str> = status.paths.iter().map(|path| path.address.as_str()).collect();
        assert_eq!((interfaces, status.paths[0].received_bytes), (vec!["eth0", "eth1"], 7));

        // The first one is gone, and back again under another ID.
        net.set([None, Some(second)], &[]);
        assert_eq!(net.joined(), [second]);
        net.set([Some(first), Some(second)], &[]);
        assert_eq!(net.joined(), [second, first]);
        // The second one is another.
        net.set([Some(first), Some(MOVED)], &[PathId(1)]);
        assert_eq!(net.joined(), [first, MOVED]);
        // Without any, subflows wait for theirs.
        net.set([None, None], &[]);
        assert_eq!(net.joined(), [first, MOVED]);
        net.set([Some(first), None], &[]);
        assert_eq!(net.joined(), [first]);
    }
}
