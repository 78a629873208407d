//! The server for clients that are not ours: its devices, its interfaces, its ports.

use super::link::NativeLink;
use super::network::{InterfaceChange, NativeNetwork, NewNetwork};
use super::privilege;
use crate::connection_table::{ProxyDriver, ProxyStation};
use crate::daemon::{Daemon, status};
use crate::egress::Egress;
use crate::published_ports::PublishedPorts;
use crate::resolver::Lookup;
use crate::setup::ConnectionSettings;
use crate::target::PublishedPort;
use anabranch_lab::Clock;
use anabranch_link::{Driver, HEADERS, LinkError, Status, StatusSocket};
use anabranch_scenario::PlugIn;
use anabranch_units::PathId;
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

/// The settings of a server for clients that are not ours.
pub struct NativeServerSettings {
    /// One per path: other hosts reach it by their addresses.
    pub interfaces: Vec<String>,
    /// The ports, and where their connections go.
    pub published: Vec<PublishedPort>,
    /// The scheduler of what is sent to clients.
    pub scheduler: PlugIn,
    /// Settings of the connections with clients.
    pub connections: ConnectionSettings,
    /// Resolves names of targets.
    pub lookup: Lookup,
}

impl std::fmt::Debug for NativeServerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { interfaces, published, .. } = self;
        f.debug_struct("NativeServerSettings")
            .field("interfaces", interfaces)
            .field("published", published)
            .finish_non_exhaustive()
    }
}

/// A server with its network.
#[derive(Debug)]
pub struct NativeServer {
    // In the order of dropping: the devices first.
    driver: ProxyDriver<NativeLink, Egress>,
    network: NativeNetwork,
    /// No other program of this host begins to listen at the ports meanwhile.
    _taken: Vec<Socket>,
}

/// Takes a port without listening at it.
///
/// # Errors
/// Another program listens there.
fn take(port: u16) -> Result<Socket, LinkError> {
    let taken = Socket::new(Domain::IPV4, Type::STREAM, None).and_then(|socket| {
        // Connections of a program that listened there before may be in TIME-WAIT.
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
        // Two sockets that both have it set may share a port until one of them listens. Servers on other interfaces share it by SO_REUSEPORT.
        socket.set_reuse_address(false)?;
        Ok(socket)
    });
    taken.map_err(LinkError::system(format!("taking port {port}")))
}

impl NativeServer {
    /// Sets the network up, and gives all privileges up. To be called before any thread starts; files
    /// that are made later are those of the user that the process becomes.
    ///
    /// # Errors
    /// There is no privilege, a program is missing, a port is in use, or the system refuses something.
    pub fn open(settings: NativeServerSettings) -> Result<Self, LinkError> {
        let NativeServerSettings { interfaces, published, scheduler, connections, lookup } = settings;
        privilege::check()?;
        let ports: Vec<u16> = published.iter().map(|published| published.port).collect();
        let taken = ports.iter().copied().map(take).collect::<Result<Vec<_>, _>>()?;
        let NewNetwork { network, link, addresses, mtu, change } = NativeNetwork::set_up(interfaces.clone(), ports)?;
        let published = PublishedPorts::new(published, scheduler, interfaces, &addresses);
        let station = ProxyStation(Egress::publishing(published, &connections, mtu.saturating_sub(HEADERS), lookup)?);
        let driver = Driver::with_station(link, Clock::start(), (), station);
        let mut server = Self { driver, network, _taken: taken };
        server.follow(&change);
        Ok(server)
    }

    /// The paths whose interfaces cannot be used now.
    pub fn missing(&self) -> impl Iterator<Item = PathId> + '_ {
        self.network.missing()
    }

    /// Where other hosts reach it now.
    pub fn locals(&self) -> Vec<SocketAddr> {
        let stations = self.driver.stations();
        stations.filter_map(|(_, egress)| egress.0.published()).flat_map(PublishedPorts::locals).collect()
    }

    fn follow(&mut self, change: &InterfaceChange) {
        let now = self.driver.now();
        if let Some(egress) = self.driver.station(()) {
            egress.0.set_addresses(now, &change.sources, &change.moved);
        }
    }

    /// Serves clients until `stop` is set, and shows its state to those who ask at `status_socket`.
    ///
    /// # Errors
    /// A device fails, or the keeper has ended.
    pub fn run(&mut self, stop: &AtomicBool, status_socket: Option<&StatusSocket>) -> Result<(), LinkError> {
        self.serve_until(stop, status_socket, &mut |_| {})
    }
}

impl Daemon for NativeServer {
    type Link = NativeLink;
    type Station = Egress;

    fn driver(&self) -> &ProxyDriver<NativeLink, Egress> {
        &self.driver
    }

    fn driver_mut(&mut self) -> &mut ProxyDriver<NativeLink, Egress> {
        &mut self.driver
    }

    fn look(&mut self) -> Result<(), LinkError> {
        if let Some(change) = self.network.look()? {
            self.follow(&change);
        }
        Ok(())
    }

    fn state(&self) -> Status {
        let (now, egress) = (self.driver.now(), self.driver.stations().next().map(|(_, egress)| &egress.0));
        let name = |id| egress.and_then(Egress::published).and_then(|published| published.name(id)).map(str::to_owned);
        let counts = [("unread", self.driver.unread()), ("unsent", self.driver.link.unsent())];
        let counts = counts.map(|(name, count)| (name.to_owned(), count)).into_iter();
        let counts = counts.chain(egress.into_iter().flat_map(Egress::failures)).collect();
        let locals = self.locals().iter().map(SocketAddr::to_string).collect();
        status(now, locals, egress.map(|egress| egress.status(now, "native", &name)), counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn no_program_listens_at_a_port_that_servers_have_taken() {
        let first = take(0).unwrap();
        let port = first.local_addr().unwrap().as_socket().unwrap().port();
        let second = take(port).unwrap();
        let listen = |address: &str| TcpListener::bind((address, port));
        assert!(["0.0.0.0", "127.0.0.1"].iter().all(|address| listen(address).is_err()));
        drop(first);
        assert!(listen("0.0.0.0").is_err(), "a server on other interfaces is left");
        drop(second);
        assert!(listen("0.0.0.0").is_ok());
    }
}
