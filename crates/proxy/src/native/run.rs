//! The proxy without a server: its devices, its interfaces, its programs.

use super::footing::{Change, Footing, Laid};
use super::link::NativeLink;
use super::privilege;
use crate::board::{ProxyDriver, ProxyStation};
use crate::direct::Direct;
use crate::front::{Front, Lobby, follow_rules, state_of_proxy};
use crate::hall::LINES;
use crate::listeners::Listeners;
use crate::resolver::{Limits, Lookup, Resolver};
use crate::routes::Routes;
use crate::rules::Rules;
use crate::setup::Common;
use anabranch_lab::Clock;
use anabranch_link::{Driver, HEADERS, LinkError, Status, Window};
use anabranch_units::PathId;
use std::sync::atomic::AtomicBool;

/// The settings of a proxy without a server.
pub struct NativeSettings {
    /// One per path, the preferred one first.
    pub interfaces: Vec<String>,
    /// Where programs reach it.
    pub listeners: Listeners,
    /// The treatment of their connections.
    pub rules: Rules,
    /// Settings of the connections with targets.
    pub common: Common,
    /// Resolves names.
    pub lookup: Lookup,
}

impl std::fmt::Debug for NativeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeSettings").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

/// A proxy with its network.
#[derive(Debug)]
pub struct NativeProxy {
    // In the order of dropping: the devices first.
    driver: ProxyDriver<NativeLink, Direct>,
    footing: Footing,
}

impl NativeProxy {
    /// Sets the network up, and gives all privileges up. To be called before any thread starts; files
    /// that are made later are those of the user that the process becomes.
    ///
    /// # Errors
    /// There is no privilege, a program is missing, or the system refuses something.
    pub fn open(settings: NativeSettings) -> Result<Self, LinkError> {
        let NativeSettings { interfaces, listeners, rules, common, lookup } = settings;
        privilege::check()?;
        let Laid { footing, link, addresses, mtu, change } = Footing::lay(interfaces.clone(), Vec::new())?;
        let resolver = Resolver::with(lookup, Limits::alone(LINES)).map_err(LinkError::system("starting threads"))?;
        let routes = Routes::new(interfaces, |id| addresses[id.index()]);
        let mss = mtu.saturating_sub(HEADERS);
        let station = ProxyStation(Direct::new(listeners, rules, routes, common, resolver, mss)?);
        let mut proxy = Self { driver: Driver::with_station(link, Clock::start(), (), station), footing };
        proxy.follow(change);
        Ok(proxy)
    }

    /// The paths whose interfaces cannot be used now.
    pub fn missing(&self) -> impl Iterator<Item = PathId> + '_ {
        self.footing.missing()
    }

    /// Has connections use the interfaces that there are. One whose address has changed is gone, and comes again.
    fn follow(&mut self, Change { present, moved, .. }: Change) {
        let now = self.driver.now();
        let Some(station) = self.driver.station(()) else { return };
        let hall = station.0.hall_mut();
        hall.set_present(now, present.iter().copied().filter(|id| !moved.contains(id)).collect());
        hall.renew(now, &moved);
        hall.set_present(now, present);
    }

    /// State of the proxy now.
    pub fn status(&self) -> Status {
        self.state()
    }

    /// Serves programs until `stop` is set, and shows its state to those who ask at `window`. `changed` gives other rules, when there
    /// are some.
    ///
    /// # Errors
    /// A device fails, or the keeper has ended.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        window: Option<&Window>,
        changed: &mut dyn FnMut() -> Option<Rules>,
    ) -> Result<(), LinkError> {
        self.serve_until(stop, window, &mut |proxy| follow_rules(proxy, changed))
    }
}

impl Front for NativeProxy {
    type Link = NativeLink;
    type Station = Direct;

    fn driver(&self) -> &ProxyDriver<NativeLink, Direct> {
        &self.driver
    }

    fn driver_mut(&mut self) -> &mut ProxyDriver<NativeLink, Direct> {
        &mut self.driver
    }

    fn look(&mut self) -> Result<(), LinkError> {
        if let Some(change) = self.footing.look()? {
            self.follow(change);
        }
        Ok(())
    }

    fn state(&self) -> Status {
        state_of_proxy(self, "native", [("unsent", self.driver.link.unsent())].into_iter())
    }
}
