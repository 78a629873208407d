//! A server: its clients, and the services that they may use.

use crate::services::{ClientServices, Service};
use crate::{Driver, LinkError, ServerLink, Status, StatusSocket};
use anabranch_carrier::files::Client;
use anabranch_carrier::{Limits, PeerId, StaticKey};
use anabranch_lab::Clock;
use anabranch_units::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The loop looks for signals this often.
const LOOK: Duration = Duration::from_millis(50);

/// A server for the clients of a list.
#[derive(Debug)]
pub struct Server {
    driver: Driver<ServerLink, PeerId, ClientServices>,
    /// When the next reader of the state is served.
    look: Instant,
}

impl Server {
    /// Listens at `local`. Each client may use these services, which send in turn.
    ///
    /// # Errors
    /// The system refuses the socket.
    pub fn listen(
        local: SocketAddr,
        key: StaticKey,
        clients: Vec<Client>,
        mut services: Vec<Box<dyn Service>>,
    ) -> Result<Self, LinkError> {
        let keep = services.iter().map(|service| service.keep()).max().unwrap_or_default();
        let link = ServerLink::listen(local, key, clients, Limits::default(), keep)?;
        let make = move |_, addresses| {
            Some(ClientServices::new(services.iter_mut().filter_map(|service| service.begin(addresses)).collect()))
        };
        Ok(Self { driver: Driver::new(link, Clock::start(), Box::new(make)), look: Instant::ZERO })
    }

    /// State of the server now.
    pub fn status(&self) -> Status {
        let (link, now) = (&self.driver.link, self.driver.now());
        let client = |(peer, services): &(PeerId, ClientServices)| {
            let address = |path| link.address(*peer, path).map(|(address, _)| address);
            services.status(now, link.name(*peer).unwrap_or_default(), &address)
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

    /// Serves until `stop` is set, and shows its state to those who ask at `status_socket`. At the end proxied connections are reset.
    ///
    /// # Errors
    /// The socket fails.
    pub fn run(&mut self, stop: &AtomicBool, status_socket: Option<&StatusSocket>) -> Result<(), LinkError> {
        while !stop.load(Ordering::Relaxed) {
            let deadline = self.driver.now() + LOOK;
            self.driver.turn(deadline, &mut ())?;
            if let Some(status_socket) = status_socket.filter(|_| self.driver.now() >= self.look) {
                self.look = self.driver.now() + LOOK;
                status_socket.answer(|| self.status());
            }
        }
        let now = self.driver.now();
        self.driver.stations_mut().for_each(|services| services.abort(now));
        self.driver.send_resets()
    }
}
