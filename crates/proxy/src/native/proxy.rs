//! The proxy without a server: its devices, its interfaces, its programs.

use super::link::NativeLink;
use super::network::{InterfaceChange, NativeNetwork, NewNetwork};
use super::privilege;
use crate::connection_table::{ProxyDriver, ProxyStation};
use crate::daemon::{Daemon, IngressEnd, follow_rules, state_of_proxy};
use crate::direct_ingress::DirectIngress;
use crate::ingress::FLOWS;
use crate::listeners::Listeners;
use crate::resolver::{Lookup, LookupLimits, Resolver};
use crate::routes::Routes;
use crate::rules::Rules;
use crate::setup::ConnectionSettings;
use anabranch_lab::Clock;
use anabranch_link::{Driver, HEADERS, LinkError, Status, StatusSocket};
use anabranch_units::PathId;
use std::sync::atomic::AtomicBool;

/// The settings of a proxy without a server.
pub struct NativeProxySettings {
    /// One per path, the preferred one first.
    pub interfaces: Vec<String>,
    /// Where programs reach it.
    pub listeners: Listeners,
    /// The treatment of their connections.
    pub rules: Rules,
    /// Settings of the connections with targets.
    pub connections: ConnectionSettings,
    /// Resolves names.
    pub lookup: Lookup,
}

impl std::fmt::Debug for NativeProxySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeProxySettings").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

/// A proxy with its network.
#[derive(Debug)]
pub struct NativeProxy {
    // In the order of dropping: the devices first.
    driver: ProxyDriver<NativeLink, DirectIngress>,
    network: NativeNetwork,
}

impl NativeProxy {
    /// Sets the network up, and gives all privileges up. To be called before any thread starts; files
    /// that are made later are those of the user that the process becomes.
    ///
    /// # Errors
    /// There is no privilege, a program is missing, or the system refuses something.
    pub fn open(settings: NativeProxySettings) -> Result<Self, LinkError> {
        let NativeProxySettings { interfaces, listeners, rules, connections, lookup } = settings;
        privilege::check()?;
        let NewNetwork { network, link, addresses, mtu, change } =
            NativeNetwork::set_up(interfaces.clone(), Vec::new())?;
        let resolver =
            Resolver::with(lookup, LookupLimits::alone(FLOWS)).map_err(LinkError::system("starting threads"))?;
        let routes = Routes::new(interfaces, |id| addresses[id.index()]);
        let mss = mtu.saturating_sub(HEADERS);
        let station = ProxyStation(DirectIngress::new(listeners, rules, routes, connections, resolver, mss)?);
        let mut proxy = Self { driver: Driver::with_station(link, Clock::start(), (), station), network };
        proxy.follow(change);
        Ok(proxy)
    }

    /// The paths whose interfaces cannot be used now.
    pub fn missing(&self) -> impl Iterator<Item = PathId> + '_ {
        self.network.missing()
    }

    /// Has connections use the interfaces that there are. One whose address has changed is gone, and comes again.
    fn follow(&mut self, InterfaceChange { present, moved, .. }: InterfaceChange) {
        let now = self.driver.now();
        let Some(station) = self.driver.station(()) else { return };
        let ingress = station.0.ingress_mut();
        ingress.set_present(now, present.iter().copied().filter(|id| !moved.contains(id)).collect());
        ingress.renew(now, &moved);
        ingress.set_present(now, present);
    }

    /// State of the proxy now.
    pub fn status(&self) -> Status {
        self.state()
    }

    /// Serves programs until `stop` is set, and shows its state to those who ask at `status_socket`. `changed` gives other rules, when there
    /// are some.
    ///
    /// # Errors
    /// A device fails, or the keeper has ended.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        status_socket: Option<&StatusSocket>,
        changed: &mut dyn FnMut() -> Option<Rules>,
    ) -> Result<(), LinkError> {
        self.serve_until(stop, status_socket, &mut |proxy| follow_rules(proxy, changed))
    }
}

impl Daemon for NativeProxy {
    type Link = NativeLink;
    type Station = DirectIngress;

    fn driver(&self) -> &ProxyDriver<NativeLink, DirectIngress> {
        &self.driver
    }

    fn driver_mut(&mut self) -> &mut ProxyDriver<NativeLink, DirectIngress> {
        &mut self.driver
    }

    fn look(&mut self) -> Result<(), LinkError> {
        if let Some(change) = self.network.look()? {
            self.follow(change);
        }
        Ok(())
    }

    fn state(&self) -> Status {
        state_of_proxy(self, "native", [("unsent", self.driver.link.unsent())].into_iter())
    }
}
