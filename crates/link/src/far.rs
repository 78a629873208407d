//! A client's station at the server: the services that it may use.

use crate::measure::Desk;
use crate::proxy::{Exit, PORT};
use crate::station::Station;
use crate::status::{ClientStatus, PathState};
use anabranch_trace::Recorder;
use anabranch_units::{Instant, PathId};
use anabranch_wire::Packet;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The services of one client.
#[derive(Debug)]
pub(crate) struct Far {
    pub desk: Option<Desk>,
    pub exit: Option<Exit>,
    /// The proxy sends first in this turn.
    proxy_first: bool,
}

impl Far {
    /// A client with these services.
    pub fn new(desk: Option<Desk>, exit: Option<Exit>) -> Self {
        Self { desk, exit, proxy_first: false }
    }

    /// The state of the client `name`: that of its measurement under way, or of its proxied connections.
    pub fn status(&self, now: Instant, name: &str, address: &dyn Fn(PathId) -> Option<SocketAddr>) -> ClientStatus {
        let measured = self.desk.as_ref().map(|desk| desk.status(now, name, address));
        let proxied = self.exit.as_ref().map(|exit| exit.status(now, name, &|id| Some(address(id)?.to_string())));
        match (measured, proxied) {
            (Some(measured), Some(proxied)) if measured.scheduler.is_none() => proxied,
            (Some(measured), _) => measured,
            (None, Some(proxied)) => proxied,
            (None, None) => {
                let path = |id: u8| {
                    Some(PathState { path: id, address: address(PathId(id))?.to_string(), ..PathState::default() })
                };
                let paths = (0..anabranch_carrier::MAX_PATHS as u8).filter_map(path).collect();
                ClientStatus { name: name.to_owned(), paths, ..ClientStatus::default() }
            }
        }
    }

    /// Ends all connections at once, so that the client need not wait for what does not come.
    pub fn abort(&mut self, now: Instant) {
        if let Some(exit) = &mut self.exit {
            exit.abort(now);
        }
    }

    /// The services, each as a station, in the order in which they send.
    fn stations(&mut self) -> impl Iterator<Item = &mut dyn Station> {
        let desk = self.desk.as_mut().map(|desk| desk as &mut dyn Station);
        let exit = self.exit.as_mut().map(|exit| exit as &mut dyn Station);
        let order = if self.proxy_first { [exit, desk] } else { [desk, exit] };
        order.into_iter().flatten()
    }
}

impl Station for Far {
    fn receive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet) {
        match (&mut self.exit, &mut self.desk) {
            (Some(exit), _) if packet.segment.dst_port == PORT => exit.receive(now, recorder, packet),
            (_, Some(desk)) => desk.receive(now, recorder, packet),
            _ => {}
        }
    }

    fn transmit_into(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &mut Packet) -> bool {
        let sent = self.stations().any(|station| station.transmit_into(now, recorder, packet));
        self.proxy_first = !self.proxy_first;
        sent
    }

    fn handle_timeout(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        self.stations().for_each(|station| station.handle_timeout(now, recorder));
    }

    fn poll_timeout(&mut self) -> Instant {
        self.stations().map(|station| station.poll_timeout()).min().unwrap_or(Instant::MAX)
    }

    fn set_max_packet(&mut self, now: Instant, path: PathId, bytes: usize) {
        self.stations().for_each(|station| station.set_max_packet(now, path, bytes));
    }

    fn work(&mut self, now: Instant) -> bool {
        self.exit.as_mut().is_some_and(|exit| exit.work(now))
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.exit.as_ref()?.input()
    }
}
