//! The far end of real links.

use crate::measure::Desk;
use crate::{Driver, LinkError, ServerLink};
use anabranch_carrier::files::Client;
use anabranch_carrier::{Limits, PeerId, StaticKey};
use anabranch_lab::Clock;
use anabranch_units::Duration;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The loop looks for signals this often.
const LOOK: Duration = Duration::from_millis(50);

/// A server for the clients of a list.
#[derive(Debug)]
pub struct Host {
    driver: Driver<ServerLink, PeerId, Desk>,
}

impl Host {
    /// Listens at `local`. Each client may measure.
    ///
    /// # Errors
    /// The system refuses the socket.
    pub fn listen(local: SocketAddr, key: StaticKey, clients: Vec<Client>) -> Result<Self, LinkError> {
        let link = ServerLink::listen(local, key, clients, Limits::default())?;
        let make = |_, addresses| Desk::new(addresses);
        Ok(Self { driver: Driver::new(link, Clock::start(), Box::new(make)) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not know it.
    pub fn local(&self) -> Result<SocketAddr, LinkError> {
        self.driver.link.local()
    }

    /// Counts of all that came and was refused, with their names.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        self.driver.link.counters().all().collect::<Vec<_>>().into_iter()
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// The socket fails.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), LinkError> {
        while !stop.load(Ordering::Relaxed) {
            let deadline = self.driver.now() + LOOK;
            self.driver.turn(deadline, &mut ())?;
        }
        Ok(())
    }
}
