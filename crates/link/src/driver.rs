//! The loop that runs engines over a link in real time.

use crate::station::{Engine, Station};
use crate::{LinkError, inner};
use anabranch_carrier::Addresses;
use anabranch_engine::Cx;
use anabranch_engine::endpoint::Endpoint;
use anabranch_lab::Clock;
use anabranch_sim::Raw;
use anabranch_trace::Recorder;
use anabranch_units::{Instant, PathId};
use anabranch_wire::Packet;
use std::os::fd::BorrowedFd;

/// A report of a link to one of its engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent<'a> {
    /// A new session, whose packets have these addresses: the engine's connections are lost.
    Began(Addresses),
    /// The session is over.
    Ended,
    /// The far end has begun the session again: its ends of the connections are lost.
    Forgotten,
    /// Packets of other sizes than before travel whole over a path: the largest has so many bytes.
    Resized(PathId, usize),
    /// A packet.
    Packet(&'a [u8]),
    /// A packet of a device, which may have left work to its receiver.
    Raw(&'a Raw),
}

/// Makes the station of a session that began; without one its packets are dropped.
pub type MakeStation<E, S = Engine> = Box<dyn FnMut(E, Addresses) -> Option<S> + Send>;

/// A carrier of stations' packets. `E` names a station among those that share the link.
pub trait Link<E> {
    /// Takes what has come, and calls `take` with all that means something to a station. False if nothing had come.
    ///
    /// # Errors
    /// A socket fails.
    fn receive(&mut self, now: Instant, take: &mut dyn FnMut(E, LinkEvent<'_>)) -> Result<bool, LinkError>;
    /// Sends a packet of a station over the path that its addresses belong to. It may be lost.
    fn send(&mut self, now: Instant, station: E, packet: &Packet);
    /// Does what is due, and sends what waits.
    fn flush(&mut self, now: Instant);
    /// When something is due next.
    fn next_timeout(&self) -> Instant;
    /// The sockets to wait for.
    fn inputs(&self) -> Vec<BorrowedFd<'_>>;
}

/// A link with the stations that use it, and the clock.
pub struct Driver<L, E, S = Engine> {
    /// The link.
    pub link: L,
    clock: Clock,
    stations: Stations<E, S>,
    packet: Packet,
}

struct Stations<E, S> {
    all: Vec<(E, S)>,
    make: MakeStation<E, S>,
    unread: u64,
}

impl<L, E, S> std::fmt::Debug for Driver<L, E, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("stations", &self.stations.all.len()).finish_non_exhaustive()
    }
}

/// Packets of one station that leave before the link is listened to again.
const BURST: usize = 256;
/// Turns of the loop in which resets leave at the end.
const RESET_TURNS: usize = 16;

impl<E: Copy + PartialEq, L: Link<E>, S: Station> Driver<L, E, S> {
    /// A driver without stations; `make` gives one to each session. `clock` is also the link's.
    pub fn new(link: L, clock: Clock, make: MakeStation<E, S>) -> Self {
        let stations = Stations { all: Vec::new(), make, unread: 0 };
        Self { link, clock, stations, packet: Packet::default() }
    }

    /// A driver with one station, which needs no session.
    pub fn with_station(link: L, clock: Clock, id: E, station: S) -> Self {
        let mut driver = Self::new(link, clock, Box::new(|_, _| None));
        driver.stations.all.push((id, station));
        driver
    }

    /// Packets that are no IPv4 packets with a TCP segment, or whose station is gone.
    pub fn unread(&self) -> u64 {
        self.stations.unread
    }

    /// The time of the link and the stations.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The station of that name, if its session has begun.
    pub fn station(&mut self, id: E) -> Option<&mut S> {
        self.stations.find(id)
    }

    /// Every station.
    pub fn stations(&self) -> impl Iterator<Item = &(E, S)> {
        self.stations.all.iter()
    }

    /// Every station, to change it.
    pub fn stations_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.stations.all.iter_mut().map(|(_, station)| station)
    }

    /// Lets the resets leave of connections that were aborted.
    ///
    /// # Errors
    /// A socket fails.
    pub fn send_resets(&mut self) -> Result<(), LinkError> {
        let now = self.now();
        (0..RESET_TURNS).try_for_each(|_| self.turn(now, &mut ()))
    }

    /// Sends and receives until something has happened, at the latest until `deadline`.
    ///
    /// # Errors
    /// A socket fails.
    pub fn turn(&mut self, deadline: Instant, recorder: &mut dyn Recorder) -> Result<(), LinkError> {
        let more = self.transmit(recorder);
        let now = self.clock.now();
        self.link.flush(now);
        // Packets that came meanwhile did not come before.
        let now = self.clock.now();
        let stations = &mut self.stations;
        let came = self.link.receive(now, &mut |id, incoming| stations.take(now, recorder, id, incoming))?;
        let worked = self.stations.all.iter_mut().fold(false, |any, (_, station)| station.work(now) || any);
        let expired = self.expire(recorder);
        let due = self.due();
        let busy = came || more || worked || expired || due <= now;
        if !busy && now < deadline {
            let mut inputs = self.link.inputs();
            self.stations.all.iter().for_each(|(_, station)| station.add_inputs(&mut inputs));
            self.clock.wait(due.min(deadline), &inputs);
        }
        Ok(())
    }

    /// Does what is due, after all that came was taken: a process that the system left waiting must not take for lost what has long been
    /// there. True if something was due.
    fn expire(&mut self, recorder: &mut dyn Recorder) -> bool {
        let (now, mut any) = (self.clock.now(), false);
        for (_, station) in &mut self.stations.all {
            if station.poll_timeout() <= now {
                station.handle_timeout(now, recorder);
                any = true;
            }
        }
        any
    }

    /// When something is due next.
    fn due(&mut self) -> Instant {
        let stations = self.stations.all.iter_mut().map(|(_, station)| station.poll_timeout());
        stations.chain([self.link.next_timeout()]).min().unwrap_or(Instant::MAX)
    }

    /// Sends what the stations have to send; one station does not keep the others waiting. True if there may be more.
    fn transmit(&mut self, recorder: &mut dyn Recorder) -> bool {
        let mut more = false;
        for (id, station) in &mut self.stations.all {
            let mut left = BURST;
            let now = self.clock.now();
            while left > 0 && station.transmit_into(now, recorder, &mut self.packet) {
                self.link.send(now, *id, &self.packet);
                left -= 1;
            }
            more |= left == 0;
        }
        more
    }
}

impl<E: Copy + PartialEq, L: Link<E>> Driver<L, E> {
    /// The engine of that name, to read from its connections and to write to them, with the context for that.
    pub fn with<T>(
        &mut self,
        id: E,
        recorder: &mut dyn Recorder,
        act: impl FnOnce(&mut Endpoint, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let now = self.clock.now();
        Some(self.stations.find(id)?.with(now, recorder, act))
    }
}

impl<E: Copy + PartialEq, S: Station> Stations<E, S> {
    fn find(&mut self, id: E) -> Option<&mut S> {
        self.all.iter_mut().find_map(|(known, station)| (*known == id).then_some(station))
    }

    fn take(&mut self, now: Instant, recorder: &mut dyn Recorder, id: E, incoming: LinkEvent<'_>) {
        match incoming {
            LinkEvent::Began(addresses) => {
                let station = (self.make)(id, addresses);
                self.all.retain(|(known, _)| *known != id);
                self.all.extend(station.map(|station| (id, station)));
            }
            LinkEvent::Ended => self.all.retain(|(known, _)| *known != id),
            LinkEvent::Forgotten => self.find(id).into_iter().for_each(Station::forget),
            LinkEvent::Resized(path, bytes) => {
                self.find(id).into_iter().for_each(|station| station.set_max_packet(now, path, bytes));
            }
            LinkEvent::Packet(bytes) => self.give(now, recorder, id, inner::read(bytes)),
            LinkEvent::Raw(raw) => self.give(now, recorder, id, raw.parse().ok()),
        }
    }

    fn give(&mut self, now: Instant, recorder: &mut dyn Recorder, id: E, packet: Option<Packet>) {
        match (self.find(id), packet) {
            (Some(station), Some(packet)) => station.receive(now, recorder, &packet),
            _ => self.unread += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Duration;
    use std::io::{PipeReader, pipe};
    use std::os::fd::AsFd;

    /// A station whose packet comes while the driver waits.
    struct Late {
        input: PipeReader,
        turns: u32,
    }

    impl Link<()> for Late {
        fn receive(&mut self, _: Instant, take: &mut dyn FnMut((), LinkEvent<'_>)) -> Result<bool, LinkError> {
            self.turns += 1;
            if self.turns == 2 {
                take((), LinkEvent::Packet(&Packet::default().emit()));
            }
            Ok(self.turns == 2)
        }

        fn send(&mut self, _: Instant, (): (), _: &Packet) {}
        fn flush(&mut self, _: Instant) {}

        fn next_timeout(&self) -> Instant {
            Instant::MAX
        }

        fn inputs(&self) -> Vec<BorrowedFd<'_>> {
            vec![self.input.as_fd()]
        }
    }

    /// Waits for a packet.
    #[derive(Default)]
    struct Waiting {
        until: Instant,
        came: bool,
        expired: bool,
    }

    impl Station for Waiting {
        fn receive(&mut self, _: Instant, _: &mut dyn Recorder, _: &Packet) {
            (self.came, self.until) = (true, Instant::MAX);
        }

        fn transmit_into(&mut self, _: Instant, _: &mut dyn Recorder, _: &mut Packet) -> bool {
            false
        }

        fn handle_timeout(&mut self, _: Instant, _: &mut dyn Recorder) {
            (self.expired, self.until) = (true, Instant::MAX);
        }

        fn poll_timeout(&mut self) -> Instant {
            self.until
        }
    }

    #[test]
    fn what_came_in_time_is_taken_before_the_timer_that_waits_for_it() {
        let (input, _output) = pipe().unwrap();
        let clock = Clock::start();
        let until = clock.now() + Duration::from_millis(20);
        let station = Waiting { until, ..Waiting::default() };
        let mut driver = Driver::with_station(Late { input, turns: 0 }, clock, (), station);
        while driver.link.turns < 2 {
            driver.turn(Instant::MAX, &mut ()).unwrap();
        }
        assert!(driver.now() >= until);
        let station = driver.station(()).unwrap();
        assert!(station.came && !station.expired);
    }
}
