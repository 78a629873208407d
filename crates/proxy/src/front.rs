//! The part that programs with one station have in common: its hall, where programs come to it, the state, and the loop.

use crate::board::{Board, ProxyDriver, Served};
use crate::hall::{Hall, Staged};
use crate::rules::Rules;
use anabranch_link::{ClientStatus, Link, LinkError, Status, Window};
use anabranch_units::{Duration, Instant, PathId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The loop looks for signals, interfaces, other rules and readers of the state this often.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A station of programs.
pub(crate) trait Lobby {
    /// How far its lines are.
    type Stage: Staged;
    /// Hall of the front.
    fn hall(&self) -> &Hall<Self::Stage>;
    /// The same, to change it.
    fn hall_mut(&mut self) -> &mut Hall<Self::Stage>;
    /// See [`Served::serve`].
    fn serve(&mut self, now: Instant) -> bool;
    /// See [`Station::set_max_packet`].
    fn set_max_packet(&mut self, _now: Instant, _path: PathId, _bytes: usize) {}
}

impl<T: Lobby> Served for T {
    type Stage = T::Stage;

    fn board(&self) -> &Board<T::Stage> {
        &self.hall().board
    }

    fn board_mut(&mut self) -> &mut Board<T::Stage> {
        &mut self.hall_mut().board
    }

    fn serve(&mut self, now: Instant) -> bool {
        Lobby::serve(self, now)
    }

    fn set_max_packet(&mut self, now: Instant, path: PathId, bytes: usize) {
        Lobby::set_max_packet(self, now, path, bytes);
    }
}

/// One station over a link.
pub(crate) trait Front {
    /// The carrier of its packets.
    type Link: Link<()>;
    /// Station of the front.
    type Station: Served;
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

    /// Serves until `stop` is set, shows the state to those who ask at `window`, and calls `each` at every look. At the end all
    /// connections are reset.
    ///
    /// # Errors
    /// The link fails, or [`Self::look`].
    fn serve_until(
        &mut self,
        stop: &AtomicBool,
        window: Option<&Window>,
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
            if let Some(window) = window {
                window.answer(|| self.state());
            }
        }
        let now = self.driver().now();
        self.driver_mut().stations_mut().for_each(|station| station.0.board_mut().abort(now));
        self.driver_mut().say_goodbye()
    }
}

/// A look at rules that may have changed.
pub(crate) fn follow_rules<F: Front>(front: &mut F, changed: &mut dyn FnMut() -> Option<Rules>)
where
    F::Station: Lobby,
{
    let (Some(rules), now) = (changed(), front.driver().now()) else { return };
    if let Some(station) = front.driver_mut().station(()) {
        station.0.hall_mut().set_rules(now, rules);
    }
}

/// The state of a proxy, whose link has this name and these counts.
pub(crate) fn state_of_proxy<F: Front>(
    front: &F,
    link: &str,
    counts: impl Iterator<Item = (&'static str, u64)>,
) -> Status
where
    F::Station: Lobby,
{
    let (driver, now) = (front.driver(), front.driver().now());
    let hall = driver.stations().next().map(|(_, station)| station.0.hall());
    let locals = hall.iter().flat_map(|hall| hall.locals()).map(|local| local.to_string()).collect();
    let counts = counts.chain([("unread", driver.unread())]).map(|(name, count)| (name.to_owned(), count));
    let counts = counts.chain(hall.iter().flat_map(|hall| hall.failures())).collect();
    status(now, locals, hall.map(|hall| hall.status(now, link)), counts)
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
