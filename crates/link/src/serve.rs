//! The far end of real links.

use crate::far::Far;
use crate::measure::Desk;
use crate::memory::Memory;
use crate::proxy::{Exit, ExitSettings, Own};
use crate::{Driver, LinkError, ServerLink, Status, Window};
use anabranch_carrier::files::Client;
use anabranch_carrier::{Limits, PeerId, StaticKey};
use anabranch_lab::Clock;
use anabranch_units::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that the runs of all clients may take: a part of what packaging/anabranch-serve.service allows.
const MEMORY: u64 = 1 << 30;
/// The loop looks for signals this often.
const LOOK: Duration = Duration::from_millis(50);

/// The services for clients.
#[derive(Debug, Default)]
pub struct Services {
    /// Measure.
    pub measure: bool,
    /// Use the server as the far end of their proxies.
    pub proxy: Option<ExitSettings>,
}

/// A server for the clients of a list.
#[derive(Debug)]
pub struct Host {
    driver: Driver<ServerLink, PeerId, Far>,
    /// When the next reader of the state is served.
    look: Instant,
}

impl Host {
    /// Listens at `local`. Each client may use these services.
    ///
    /// # Errors
    /// The system refuses the socket.
    pub fn listen(
        local: SocketAddr,
        key: StaticKey,
        clients: Vec<Client>,
        services: Services,
    ) -> Result<Self, LinkError> {
        let Services { measure, proxy } = services;
        // Proxied connections outlive a silence; the session has to, too.
        let keep = proxy.as_ref().map_or(Duration::ZERO, |proxy| proxy.common.orphan_timeout);
        if proxy.is_some() {
            Own::look().map_err(LinkError::system("listing the addresses of this host, which no client may dial"))?;
        }
        let link = ServerLink::listen(local, key, clients, Limits::default(), keep)?;
        let memory = Memory::new(MEMORY);
        let buffers = Memory::new(proxy.as_ref().map_or(0, |proxy| proxy.memory));
        let make = move |_, addresses| {
            let desk = measure.then(|| Desk::new(addresses, memory.clone()));
            // Without a file descriptor left there is no proxy in this session.
            let exit = proxy.as_ref().and_then(|settings| Exit::new(addresses, settings, &buffers).ok());
            Some(Far::new(desk, exit))
        };
        Ok(Self { driver: Driver::new(link, Clock::start(), Box::new(make)), look: Instant::ZERO })
    }

    /// State of the server now.
    pub fn status(&self) -> Status {
        let (link, now) = (&self.driver.link, self.driver.now());
        let client = |(peer, far): &(PeerId, Far)| {
            let address = |path| link.address(*peer, path).map(|(address, _)| address);
            far.status(now, link.name(*peer).unwrap_or_default(), &address)
        };
        Status {
            anabranch: env!("CARGO_PKG_VERSION").to_owned(),
            listening: self.local().map(|local| local.to_string()).unwrap_or_default(),
            up_s: now.since(Instant::ZERO).as_secs_f64(),
            clients: self.driver.stations().map(client).collect(),
            counters: self.counters().map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not know it.
    pub fn local(&self) -> Result<SocketAddr, LinkError> {
        self.driver.link.local()
    }

    /// Counts of all that came and was refused, with their names; `unsent`: datagrams that the system did not take; `unread`: packets
    /// that no station could read.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let own = [("unsent", self.driver.link.unsent()), ("unread", self.driver.unread())];
        self.driver.link.counters().all().chain(own).collect::<Vec<_>>().into_iter()
    }

    /// Serves until `stop` is set, and shows its state to those who ask at `window`. At the end proxied connections are reset.
    ///
    /// # Errors
    /// The socket fails.
    pub fn run(&mut self, stop: &AtomicBool, window: Option<&Window>) -> Result<(), LinkError> {
        while !stop.load(Ordering::Relaxed) {
            let deadline = self.driver.now() + LOOK;
            self.driver.turn(deadline, &mut ())?;
            if let Some(window) = window.filter(|_| self.driver.now() >= self.look) {
                self.look = self.driver.now() + LOOK;
                window.answer(|| self.status());
            }
        }
        let now = self.driver.now();
        self.driver.stations_mut().for_each(|far| far.abort(now));
        self.driver.say_goodbye()
    }
}
