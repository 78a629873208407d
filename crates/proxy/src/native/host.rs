//! The server for clients that are not ours: its devices, its interfaces, its ports.

use super::footing::{Change, Footing, Laid};
use super::link::NativeLink;
use super::privilege;
use crate::board::{ProxyDriver, ProxyStation};
use crate::exit::Exit;
use crate::front::{Front, status};
use crate::gate::Gate;
use crate::resolver::Lookup;
use crate::setup::Common;
use crate::target::Service;
use anabranch_lab::Clock;
use anabranch_link::{Driver, HEADERS, LinkError, Status, Window};
use anabranch_scenario::PlugIn;
use anabranch_units::PathId;
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

/// The settings of a server for clients that are not ours.
pub struct NativeHostSettings {
    /// One per path: other hosts reach it by their addresses.
    pub interfaces: Vec<String>,
    /// The ports, and where their connections go.
    pub services: Vec<Service>,
    /// The scheduler of what is sent to clients.
    pub scheduler: PlugIn,
    /// Settings of the connections with clients.
    pub common: Common,
    /// Resolves names of targets.
    pub lookup: Lookup,
}

impl std::fmt::Debug for NativeHostSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { interfaces, services, .. } = self;
        f.debug_struct("NativeHostSettings")
            .field("interfaces", interfaces)
            .field("services", services)
            .finish_non_exhaustive()
    }
}

/// A server with its network.
#[derive(Debug)]
pub struct NativeHost {
    // In the order of dropping: the devices first.
    driver: ProxyDriver<NativeLink, Exit>,
    footing: Footing,
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

impl NativeHost {
    /// Sets the network up, and gives all privileges up. To be called before any thread starts; files
    /// that are made later are those of the user that the process becomes.
    ///
    /// # Errors
    /// There is no privilege, a program is missing, a port is in use, or the system refuses something.
    pub fn open(settings: NativeHostSettings) -> Result<Self, LinkError> {
        let NativeHostSettings { interfaces, services, scheduler, common, lookup } = settings;
        privilege::check()?;
        let ports: Vec<u16> = services.iter().map(|service| service.port).collect();
        let taken = ports.iter().copied().map(take).collect::<Result<Vec<_>, _>>()?;
        let Laid { footing, link, addresses, mtu, change } = Footing::lay(interfaces.clone(), ports)?;
        let gate = Gate::new(services, scheduler, interfaces, &addresses);
        let station = ProxyStation(Exit::behind(gate, &common, mtu.saturating_sub(HEADERS), lookup)?);
        let driver = Driver::with_station(link, Clock::start(), (), station);
        let mut host = Self { driver, footing, _taken: taken };
        host.follow(&change);
        Ok(host)
    }

    /// The paths whose interfaces cannot be used now.
    pub fn missing(&self) -> impl Iterator<Item = PathId> + '_ {
        self.footing.missing()
    }

    /// Where other hosts reach it now.
    pub fn locals(&self) -> Vec<SocketAddr> {
        let stations = self.driver.stations();
        stations.filter_map(|(_, exit)| exit.0.gate()).flat_map(Gate::locals).collect()
    }

    fn follow(&mut self, change: &Change) {
        let now = self.driver.now();
        if let Some(exit) = self.driver.station(()) {
            exit.0.set_addresses(now, &change.sources, &change.moved);
        }
    }

    /// Serves clients until `stop` is set, and shows its state to those who ask at `window`.
    ///
    /// # Errors
    /// A device fails, or the keeper has ended.
    pub fn run(&mut self, stop: &AtomicBool, window: Option<&Window>) -> Result<(), LinkError> {
        self.serve_until(stop, window, &mut |_| {})
    }
}

impl Front for NativeHost {
    type Link = NativeLink;
    type Station = Exit;

    fn driver(&self) -> &ProxyDriver<NativeLink, Exit> {
        &self.driver
    }

    fn driver_mut(&mut self) -> &mut ProxyDriver<NativeLink, Exit> {
        &mut self.driver
    }

    fn look(&mut self) -> Result<(), LinkError> {
        if let Some(change) = self.footing.look()? {
            self.follow(&change);
        }
        Ok(())
    }

    fn state(&self) -> Status {
        let (now, exit) = (self.driver.now(), self.driver.stations().next().map(|(_, exit)| &exit.0));
        let name = |id| exit.and_then(Exit::gate).and_then(|gate| gate.name(id)).map(str::to_owned);
        let counts = [("unread", self.driver.unread()), ("unsent", self.driver.link.unsent())];
        let counts = counts.map(|(name, count)| (name.to_owned(), count)).into_iter();
        let counts = counts.chain(exit.into_iter().flat_map(Exit::failures)).collect();
        let locals = self.locals().iter().map(SocketAddr::to_string).collect();
        status(now, locals, exit.map(|exit| exit.status(now, "native", &name)), counts)
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
