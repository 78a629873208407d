//! Users of a link: they exchange packets over it.

use anabranch_engine::Cx;
use anabranch_engine::endpoint::Endpoint;
use anabranch_trace::Recorder;
use anabranch_units::{Instant, PathId, Rng};
use anabranch_wire::Packet;
use std::os::fd::BorrowedFd;

/// One engine on a link, or several that share its addresses.
pub trait Station {
    /// Takes a packet.
    fn receive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet);
    /// Writes the next packet to send. False if there is none.
    fn transmit_into(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &mut Packet) -> bool;
    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant, recorder: &mut dyn Recorder);
    /// When something is due next; [`Instant::MAX`] for never.
    fn poll_timeout(&mut self) -> Instant;
    /// The largest packet, in bytes, that travels whole over a path from now on. Larger ones cost two datagrams.
    fn set_max_packet(&mut self, _now: Instant, _path: PathId, _bytes: usize) {}
    /// Serves what is not the link: sockets of its own. False if there was nothing to do.
    fn work(&mut self, _now: Instant) -> bool {
        false
    }
    /// It is readable when there is such work.
    fn input(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// One engine with its random numbers.
#[derive(Debug)]
pub struct Engine {
    /// The engine.
    pub endpoint: Endpoint,
    rng: Rng,
}

impl Engine {
    /// With a seed for its keys that must be unpredictable.
    pub fn new(endpoint: Endpoint, seed: u64) -> Self {
        Self { endpoint, rng: Rng::stream(seed, "engine") }
    }

    /// Its endpoint, to read from connections and to write to them, with the context for that.
    pub fn with<T>(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        act: impl FnOnce(&mut Endpoint, &mut Cx<'_>) -> T,
    ) -> T {
        act(&mut self.endpoint, &mut Cx { now, recorder, rng: &mut self.rng })
    }
}

impl Station for Engine {
    fn receive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet) {
        self.with(now, recorder, |endpoint, cx| endpoint.handle_packet(cx, packet));
    }

    fn transmit_into(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &mut Packet) -> bool {
        self.with(now, recorder, |endpoint, cx| endpoint.transmit_into(cx, packet)).is_some()
    }

    fn handle_timeout(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        self.with(now, recorder, Endpoint::handle_timeout);
    }

    fn poll_timeout(&mut self) -> Instant {
        self.endpoint.poll_timeout().unwrap_or(Instant::MAX)
    }
}
