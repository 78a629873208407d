//! The proxy without a server: its devices, its interfaces, its programs.

use super::ground::Ground;
use super::{NativeLink, Orders, Ready, Turns, privilege};
use crate::measure::HEADERS;
use crate::proxy::{Common, Direct, Front, LINES, Limits, Listeners, Lobby, Lookup, Resolver, Routes, Rules};
use crate::{Driver, LinkError, Status, Window};
use anabranch_lab::{Clock, Tun};
use anabranch_units::PathId;
use std::sync::atomic::AtomicBool;

/// The MTU of a device until its interface is known.
const MTU: u16 = 1_500;
/// Turns of the loop in which connections are aborted at the end.
const FAREWELL: usize = 16;

/// The settings of a proxy without a server.
pub struct NativeSettings {
    /// One per path, the preferred one first.
    pub interfaces: Vec<String>,
    /// Where programs reach it.
    pub listeners: Listeners,
    /// The treatment of their connections.
    pub rules: Rules,
    /// Of the connections with targets.
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
    driver: Driver<NativeLink, (), Direct>,
    ground: Ground,
    turns: Turns,
    /// The last turn of each interface, also while it is gone.
    last: Turns,
}

/// Opens the device of each path; they are named after this process.
fn devices(count: usize) -> Result<(Vec<String>, Vec<Tun>), LinkError> {
    let names: Vec<String> = (0..count).map(|path| format!("anab{}-{path}", std::process::id())).collect();
    let devices = names.iter().map(|name| Tun::open(name, MTU, true)).collect::<Result<Vec<_>, _>>()?;
    Ok((names, devices))
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
        let mut ground = Ground::start()?;
        let (names, devices) = devices(interfaces.len())?;
        let orders = Orders { interfaces, devices: names };
        let Ready { addresses, mtu, turns } = ground.set_up(&orders)?;
        privilege::leave()?;
        let resolver = Resolver::with(lookup, Limits::alone(LINES)).map_err(LinkError::system("starting threads"))?;
        let routes = Routes::new(orders.interfaces, |id| addresses[id.index()]);
        let mss = mtu.saturating_sub(HEADERS);
        let station = Direct::new(listeners, rules, routes, common, resolver, mss)?;
        let link = NativeLink::new(addresses.into_iter().zip(devices));
        let driver = Driver::with_station(link, Clock::start(), (), station);
        let mut proxy = Self { driver, ground, turns: Turns::new(), last: Turns::new() };
        proxy.follow(turns);
        Ok(proxy)
    }

    /// The paths whose interfaces cannot be used now.
    pub fn missing(&self) -> impl Iterator<Item = PathId> + '_ {
        let missing = self.turns.iter().enumerate().filter(|(_, turn)| turn.is_none());
        missing.map(|(path, _)| PathId(path as u8))
    }

    /// Has connections use the interfaces that there are. One whose address has changed is gone, and comes anew; what is left over it
    /// is lost.
    fn follow(&mut self, turns: Turns) {
        let now = self.driver.now();
        let Some(station) = self.driver.station(()) else { return };
        let ids = || (0..turns.len()).map(|path| PathId(path as u8));
        let last = |path: usize| self.last.get(path).copied().flatten();
        let is_other = |id: &PathId| {
            turns[id.index()].is_some() && last(id.index()).is_some_and(|last| turns[id.index()] != Some(last))
        };
        let present: Vec<PathId> = ids().filter(|id| turns[id.index()].is_some()).collect();
        let others: Vec<PathId> = ids().filter(is_other).collect();
        let hall = station.hall_mut();
        hall.set_present(now, present.iter().copied().filter(|id| !others.contains(id)).collect());
        hall.renew(now, &others);
        hall.set_present(now, present);
        self.last = (0..turns.len()).map(|path| turns[path].or(last(path))).collect();
        self.turns = turns;
    }

    /// Its state now.
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
        self.serve_until(stop, window, changed)?;
        self.say_goodbye()
    }

    /// Resets all connections: their targets need not wait for what does not come.
    fn say_goodbye(&mut self) -> Result<(), LinkError> {
        let now = self.driver.now();
        if let Some(station) = self.driver.station(()) {
            station.abort(now);
        }
        (0..FAREWELL).try_for_each(|_| self.driver.turn(now, &mut ()))
    }
}

impl Front for NativeProxy {
    type Link = NativeLink;
    type Station = Direct;

    fn driver(&self) -> &Driver<NativeLink, (), Direct> {
        &self.driver
    }

    fn driver_mut(&mut self) -> &mut Driver<NativeLink, (), Direct> {
        &mut self.driver
    }

    fn look(&mut self) -> Result<(), LinkError> {
        if let Some(turns) = self.ground.look()? {
            self.follow(turns);
        }
        Ok(())
    }

    fn link_status(&self) -> (String, Vec<(&'static str, u64)>) {
        ("native".to_owned(), vec![("unsent", self.driver.link.unsent())])
    }
}
