//! Users of a link: they exchange packets over it.

use crate::secrets::seed;
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
    /// The far end has forgotten all connections.
    fn forget(&mut self) {}
    /// Serves what is not the link: sockets of its own. False if there was nothing to do.
    fn work(&mut self, _now: Instant) -> bool {
        false
    }
    /// Adds the descriptors that are readable when there is such work.
    fn add_inputs<'a>(&'a self, _inputs: &mut Vec<BorrowedFd<'a>>) {}
}

/// One engine with its random numbers.
#[derive(Debug)]
pub struct Engine {
    /// The engine.
    pub endpoint: Endpoint,
    rng: Rng,
}

impl Engine {
    /// An engine with a seed for its first keys that must be unpredictable.
    pub fn new(endpoint: Endpoint, seed: u64) -> Self {
        Self { endpoint, rng: Rng::stream(seed, "engine") }
    }

    /// Lends the endpoint, to read from connections and to write to them, with the context for that.
    ///
    /// A peer that sees some numbers of a stream may compute the next ones. So keys, initial sequence numbers and nonces of one call have a stream
    /// of their own, which the system's random numbers begin (RFC 9293 §3.4.1, RFC 6528 §3; RFC 8684 §5).
    pub fn with<T>(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        act: impl FnOnce(&mut Endpoint, &mut Cx<'_>) -> T,
    ) -> T {
        let next = self.rng.clone().bits();
        let done = act(&mut self.endpoint, &mut Cx { now, recorder, rng: &mut self.rng });
        if self.rng.clone().bits() != next {
            self.rng = Rng::stream(seed(), "engine");
        }
        done
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

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{Flags, Segment};
    use std::net::Ipv4Addr;

    /// The initial sequence numbers by which an engine with this seed answers two SYNs.
    fn answers(seed: u64) -> [u32; 2] {
        let mut engine = Engine::new(Endpoint::new(4), seed);
        engine.endpoint.listen_for_complete(80, anabranch_engine::Settings::default(), Box::new(|_| None));
        [5_000, 5_001].map(|src_port| {
            let segment = Segment { src_port, dst_port: 80, flags: Flags::SYN, window: 1_000, ..Segment::default() };
            let [src, dst] = [1, 2].map(|host| Ipv4Addr::new(192, 0, 2, host).into());
            let (now, mut packet) = (Instant::from_millis(1), Packet { src, dst, segment });
            engine.receive(now, &mut (), &packet);
            assert!(engine.transmit_into(now, &mut (), &mut packet));
            packet.segment.seq.0
        })
    }

    #[test]
    fn two_syns_are_not_answered_from_one_stream() {
        let (one, same) = (answers(7), answers(7));
        assert_eq!(one[0], same[0]);
        assert_ne!(one[1], same[1]);
    }
}
