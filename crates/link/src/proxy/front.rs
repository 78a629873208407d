//! The part that the proxies with and without a server have in common: the station's hall, the state, and the loop.

use super::board::{Board, Served};
use super::hall::{Hall, Staged};
use super::rules::Rules;
use crate::station::Station;
use crate::{Driver, Link, LinkError, Status, Window};
use anabranch_units::{Duration, Instant, PathId};
use std::sync::atomic::{AtomicBool, Ordering};

/// The loop looks for signals, interfaces, other rules and readers of the state this often.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A station of programs.
pub(crate) trait Lobby {
    /// How far its lines are.
    type Stage: Staged;
    /// Its hall.
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

/// A proxy: its one station, over a link.
pub(crate) trait Front {
    /// The carrier of its packets.
    type Link: Link<()>;
    /// Its station.
    type Station: Lobby + Station;
    /// The loop with both.
    fn driver(&self) -> &Driver<Self::Link, (), Self::Station>;
    /// The same, to change it.
    fn driver_mut(&mut self) -> &mut Driver<Self::Link, (), Self::Station>;
    /// Follows the interfaces that come and go.
    ///
    /// # Errors
    /// They cannot be looked at any more.
    fn look(&mut self) -> Result<(), LinkError>;
    /// Its name in the state, and counts of its link.
    fn link_status(&self) -> (String, Vec<(&'static str, u64)>);

    /// From now on the rules are these.
    fn set_rules(&mut self, rules: Rules) {
        let now = self.driver().now();
        if let Some(station) = self.driver_mut().station(()) {
            station.hall_mut().set_rules(now, rules);
        }
    }

    /// The state now.
    fn state(&self) -> Status {
        let (driver, now) = (self.driver(), self.driver().now());
        let hall = driver.stations().next().map(|(_, station)| station.hall());
        let (name, counters) = self.link_status();
        let counters = counters.into_iter().chain([("unread", driver.unread())]);
        let counters = counters.map(|(name, count)| (name.to_owned(), count));
        let listening = hall.iter().flat_map(|hall| hall.locals()).map(|local| local.to_string());
        Status {
            anabranch: env!("CARGO_PKG_VERSION").to_owned(),
            listening: listening.collect::<Vec<_>>().join(", "),
            up_s: now.since(Instant::ZERO).as_secs_f64(),
            clients: hall.map(|hall| hall.status(now, &name)).into_iter().collect(),
            counters: counters.chain(hall.iter().flat_map(|hall| hall.failures())).collect(),
        }
    }

    /// Serves programs until `stop` is set, and shows the state to those who ask at `window`. `changed` gives other rules, when there
    /// are some.
    ///
    /// # Errors
    /// The link fails, or [`Self::look`].
    fn serve_until(
        &mut self,
        stop: &AtomicBool,
        window: Option<&Window>,
        changed: &mut dyn FnMut() -> Option<Rules>,
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
            if let Some(rules) = changed() {
                self.set_rules(rules);
            }
            if let Some(window) = window {
                window.answer(|| self.state());
            }
        }
        Ok(())
    }
}
