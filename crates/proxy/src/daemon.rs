//! The common part of commands with one station: the loop, the state, and the rules that change.

use crate::connection_table::{ConnectionTable, ProxyDriver, ProxyEnd};
use crate::ingress::{FlowStage, Ingress};
use crate::rules::Rules;
use anabranch_link::{ClientStatus, Link, LinkError, Status, StatusSocket};
use anabranch_units::{Duration, Instant, PathId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The loop looks for signals, interfaces, other rules and readers of the state this often.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// An end to which programs come.
pub(crate) trait IngressEnd {
    /// How far its flows are.
    type Stage: FlowStage;
    /// Programs and their flows.
    fn ingress(&self) -> &Ingress<Self::Stage>;
    /// The same, to change it.
    fn ingress_mut(&mut self) -> &mut Ingress<Self::Stage>;
    /// See [`ProxyEnd::serve`].
    fn serve(&mut self, now: Instant) -> bool;
    /// See [`Station::set_max_packet`].
    fn set_max_packet(&mut self, _now: Instant, _path: PathId, _bytes: usize) {}
}

impl<T: IngressEnd> ProxyEnd for T {
    type Stage = T::Stage;

    fn table(&self) -> &ConnectionTable<T::Stage> {
        &self.ingress().table
    }

    fn table_mut(&mut self) -> &mut ConnectionTable<T::Stage> {
        &mut self.ingress_mut().table
    }

    fn serve(&mut self, now: Instant) -> bool {
        IngressEnd::serve(self, now)
    }

    fn set_max_packet(&mut self, now: Instant, path: PathId, bytes: usize) {
        IngressEnd::set_max_packet(self, now, path, bytes);
    }
}

/// A command that serves with one station over a link, until it is stopped.
pub(crate) trait Daemon {
    /// The carrier of its packets.
    type Link: Link<()>;
    /// The end of proxied connections that it serves.
    type Station: ProxyEnd;
    /// The loop with both.
    fn driver(&self) -> &ProxyDriver<Self::Link, Self::Station>;
    /// The same, to change it.
    fn driver_mut(&mut self) -> &mut ProxyDriver<Self::Link, Self::Station>;
    /// Follows the interfaces that come and go.
    ///
    /// # Errors
    /// They cannot be looked at any more.
    fn look(&mut self) -> Result<(), LinkError>;
    /// The state now.
    fn state(&self) -> Status;

    /// Serves until `stop` is set, shows the state to those who ask at `status_socket`, and calls `each` at every look. At the end all
    /// connections are reset.
    ///
    /// # Errors
    /// The link fails, or [`Self::look`].
    fn serve_until(
        &mut self,
        stop: &AtomicBool,
        status_socket: Option<&StatusSocket>,
        each: &mut dyn FnMut(&mut Self),
    ) -> Result<(), LinkError> {
        let mut next = Instant::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let until = self.driver().now() + LOOK;
            self.driver_mut().turn(until, &mut ())?;
            let now = self.driver().now();
            if now < next {
                continue;
            }
            next = now + LOOK;
            self.look()?;
            each(self);
            if let Some(status_socket) = status_socket {
                status_socket.answer(|| self.state());
            }
        }
        let now = self.driver().now();
        self.driver_mut().stations_mut().for_each(|station| station.0.table_mut().abort(now));
        self.driver_mut().send_resets()
    }
}

/// A look at rules that may have changed.
pub(crate) fn follow_rules<F: Daemon>(daemon: &mut F, changed: &mut dyn FnMut() -> Option<Rules>)
where
    F::Station: IngressEnd,
{
    let (Some(rules), now) = (changed(), daemon.driver().now()) else { return };
    if let Some(station) = daemon.driver_mut().station(()) {
        station.0.ingress_mut().set_rules(now, rules);
    }
}

/// The state of a proxy, whose link has this name and these counts.
pub(crate) fn state_of_proxy<F: Daemon>(
    daemon: &F,
    link: &str,
    counts: impl Iterator<Item = (&'static str, u64)>,
) -> Status
where
    F::Station: IngressEnd,
{
    let (driver, now) = (daemon.driver(), daemon.driver().now());
    let ingress = driver.stations().next().map(|(_, station)| station.0.ingress());
    let locals = ingress.iter().flat_map(|ingress| ingress.locals()).map(|local| local.to_string()).collect();
    let counts = counts.chain([("unread", driver.unread())]).map(|(name, count)| (name.to_owned(), count));
    let counts = counts.chain(ingress.iter().flat_map(|ingress| ingress.failures())).collect();
    status(now, locals, ingress.map(|ingress| ingress.status(now, link)), counts)
}

/// A state of a command with one station.
pub(crate) fn status(
    now: Instant,
    locals: Vec<String>,
    client: Option<ClientStatus>,
    counters: BTreeMap<String, u64>,
) -> Status {
    Status {
        anabranch: env!("CARGO_PKG_VERSION").to_owned(),
        listening: locals.join(", "),
        up_s: now.since(Instant::ZERO).as_secs_f64(),
        clients: client.into_iter().collect(),
        counters,
    }
}
