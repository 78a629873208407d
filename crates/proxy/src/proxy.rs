//! The proxy as a whole: the session with the server, its interfaces, its programs.

use crate::connection_pool::ConnectionPool;
use crate::connection_table::{ProxyDriver, ProxyStation};
use crate::daemon::{Daemon, IngressEnd, LOOK, follow_rules, state_of_proxy};
use crate::interfaces::{Interfaces, SILENCE};
use crate::listeners::Listeners;
use crate::message::{PORT, Refusal};
use crate::routes::Routes;
use crate::rules::Rules;
use crate::setup::ConnectionSettings;
use crate::tunnel_ingress::TunnelIngress;
use anabranch_lab::Clock;
use anabranch_link::{ClientLink, Driver, LinkError, PeerError, SessionSettings, Station, Status, StatusSocket};
use anabranch_units::Duration;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long the server has to answer the first handshake.
const HANDSHAKE: Duration = Duration::from_secs(8);

/// The settings of a proxy.
#[derive(Debug)]
pub struct ProxySettings {
    /// The server, and the interfaces.
    pub session: SessionSettings,
    /// Where programs reach it.
    pub listeners: Listeners,
    /// The treatment of their connections.
    pub rules: Rules,
    /// Settings of the connections with the server.
    pub connections: ConnectionSettings,
}

/// A proxy with a session.
#[derive(Debug)]
pub struct Proxy {
    driver: ProxyDriver<ClientLink, TunnelIngress>,
    interfaces: Interfaces,
    address: SocketAddr,
    /// The server is given up after this time without a word: connections wait for `orphan_timeout`, and one that only receives has no timer
    /// of its own.
    patience: Duration,
}

impl Proxy {
    /// Joins the server over the interfaces that there are. Returns what is wrong with the others, too.
    ///
    /// # Errors
    /// There is no interface, the server does not answer, or the system refuses something.
    pub fn open(settings: ProxySettings, stop: &AtomicBool) -> Result<(Self, Vec<LinkError>), LinkError> {
        let ProxySettings { session, listeners, rules, connections } = settings;
        let SessionSettings { key, server, address, interfaces: names } = session;
        let (clock, patience) = (Clock::start(), connections.orphan_timeout + SILENCE);
        let mut link = ClientLink::new(clock.now(), key, server, address);
        let mut interfaces = Interfaces::new(address, names.clone());
        let mut missing = interfaces.look(clock.now(), &mut link);
        if missing.len() == names.len() && !missing.is_empty() {
            return Err(missing.swap_remove(0));
        }
        let inner = link.addresses();
        let (routes, far) = (Routes::new(names.clone(), |id| inner.client(id)), (inner.server(), PORT).into());
        // A link of a client begins once.
        let mut station = Some(ProxyStation(TunnelIngress::new(
            listeners,
            rules,
            routes,
            far,
            ConnectionPool::new(far, connections),
        )?));
        let make = move |(), _| station.take();
        let mut driver = Driver::new(link, clock, Box::new(make));
        let until = driver.now() + HANDSHAKE;
        while !driver.link.is_established() {
            if stop.load(Ordering::Relaxed) {
                return Err(LinkError::Interrupted);
            }
            if driver.now() >= until {
                return Err(LinkError::Peer(PeerError::NoHandshake { address, interfaces: names.join(", ") }));
            }
            driver.turn(until.min(driver.now() + LOOK), &mut ())?;
        }
        let mut proxy = Self { driver, interfaces, address, patience };
        proxy.follow();
        proxy.await_welcome(stop)?;
        Ok((proxy, missing))
    }

    /// Waits until the server has shown that it serves proxies.
    fn await_welcome(&mut self, stop: &AtomicBool) -> Result<(), LinkError> {
        let (until, address) = (self.driver.now() + HANDSHAKE, self.address);
        let refused = |why: &str| Err(LinkError::Peer(PeerError::Refused { address, why: why.to_owned() }));
        loop {
            let answer = self.driver.station(()).and_then(|station| station.0.answer_of_server());
            match answer {
                // A server that is full today has room tomorrow.
                Some(Ok(()) | Err(Refusal::TooMany)) => return Ok(()),
                Some(Err(_)) => return refused("it speaks another version of the proxy's messages"),
                None if self.driver.now() >= until => {
                    return refused("it serves no proxies; is `serve --proxy` running there?");
                }
                None if stop.load(Ordering::Relaxed) => return Err(LinkError::Interrupted),
                None => self.driver.turn(until.min(self.driver.now() + LOOK), &mut ())?,
            }
        }
    }

    /// Has connections use the interfaces that there are.
    fn follow(&mut self) {
        let now = self.driver.now();
        let present = self.interfaces.present(now, &self.driver.link);
        if let Some(station) = self.driver.station(()) {
            station.0.ingress_mut().set_present(now, present);
        }
    }

    /// State of the proxy now.
    pub fn status(&self) -> Status {
        self.state()
    }

    /// Serves programs until `stop` is set, and shows its state to those who ask at `status_socket`. `changed` gives other rules, when there
    /// are some; `say` gets lines for the user.
    ///
    /// # Errors
    /// A socket fails.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        status_socket: Option<&StatusSocket>,
        changed: &mut dyn FnMut() -> Option<Rules>,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), LinkError> {
        self.serve_until(stop, status_socket, &mut |proxy| {
            follow_rules(proxy, changed);
            let now = proxy.driver.now();
            let notice = proxy.driver.station(()).and_then(|station| station.0.ingress_mut().notice(now));
            notice.iter().for_each(|line| say(line));
        })
    }
}

impl Daemon for Proxy {
    type Link = ClientLink;
    type Station = TunnelIngress;

    fn driver(&self) -> &ProxyDriver<ClientLink, TunnelIngress> {
        &self.driver
    }

    fn driver_mut(&mut self) -> &mut ProxyDriver<ClientLink, TunnelIngress> {
        &mut self.driver
    }

    fn look(&mut self) -> Result<(), LinkError> {
        let now = self.driver.now();
        if now >= self.interfaces.next() {
            self.interfaces.look(now, &mut self.driver.link);
            self.follow();
        }
        if self.driver.link.heard().is_some_and(|heard| now.since(heard) >= self.patience) {
            self.driver.stations_mut().for_each(Station::forget);
        }
        Ok(())
    }

    fn state(&self) -> Status {
        let (link, counters) = (&self.driver.link, self.driver.link.counters());
        let counts = counters.all().chain([("unsent", link.unsent())]);
        state_of_proxy(self, &format!("to {}", self.address), counts)
    }
}
