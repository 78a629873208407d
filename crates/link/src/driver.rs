//! The loop that runs an engine over a link in real time.

use crate::LinkError;
use anabranch_engine::Cx;
use anabranch_engine::endpoint::Endpoint;
use anabranch_lab::Clock;
use anabranch_trace::Recorder;
use anabranch_units::{Instant, Rng};
use anabranch_wire::Packet;
use bytes::Bytes;
use std::os::fd::BorrowedFd;

/// A report of a link to one of its engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A new session: the engine's connections are lost.
    Began,
    /// The session is over.
    Ended,
    /// A packet.
    Packet(&'a [u8]),
}

/// Makes an engine for a session that began, with a seed for its keys that must be unpredictable.
pub type Make<E> = Box<dyn FnMut(E) -> (Endpoint, u64) + Send>;

/// It carries the packets of engines. `E` names an engine among those that share the link.
pub trait Link<E> {
    /// Takes what has come, and calls `take` with all that means something to an engine. False if nothing had come.
    ///
    /// # Errors
    /// A socket fails.
    fn receive(&mut self, now: Instant, take: &mut dyn FnMut(E, Incoming<'_>)) -> Result<bool, LinkError>;
    /// Sends a packet of an engine over the path that its addresses belong to. It may be lost.
    fn send(&mut self, now: Instant, engine: E, packet: &[u8]);
    /// Does what is due, and sends what waits.
    fn flush(&mut self, now: Instant);
    /// When something is due next.
    fn next_timeout(&self) -> Instant;
    /// The sockets to wait for.
    fn inputs(&self) -> Vec<BorrowedFd<'_>>;
}

/// An engine with its random numbers.
struct Hosted<E> {
    id: E,
    endpoint: Endpoint,
    rng: Rng,
}

/// A link with the engines that use it, and the clock.
pub struct Driver<L, E> {
    /// The link.
    pub link: L,
    clock: Clock,
    hosts: Hosts<E>,
    packet: Packet,
}

/// The engines.
struct Hosts<E> {
    engines: Vec<Hosted<E>>,
    make: Make<E>,
    unread: u64,
}

impl<L, E> std::fmt::Debug for Driver<L, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("engines", &self.hosts.engines.len()).finish_non_exhaustive()
    }
}

/// Packets of one engine that leave before the link is listened to again.
const BURST: usize = 256;

impl<E: Copy + PartialEq, L: Link<E>> Driver<L, E> {
    /// A driver without engines; `make` gives one to each session. `clock` is also the link's.
    pub fn new(link: L, clock: Clock, make: Make<E>) -> Self {
        let hosts = Hosts { engines: Vec::new(), make, unread: 0 };
        Self { link, clock, hosts, packet: Packet::default() }
    }

    /// Packets that are no IPv4 packets with a TCP segment, or whose engine is gone.
    pub fn unread(&self) -> u64 {
        self.hosts.unread
    }

    /// The time of the link and the engines.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The engine of that name, to read from its connections and to write to them, with the context for that.
    pub fn with<T>(
        &mut self,
        id: E,
        recorder: &mut dyn Recorder,
        act: impl FnOnce(&mut Endpoint, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let now = self.clock.now();
        let hosted = self.hosts.find(id)?;
        Some(act(&mut hosted.endpoint, &mut Cx { now, recorder, rng: &mut hosted.rng }))
    }

    /// Sends and receives until something has happened, at the latest until `deadline`.
    ///
    /// # Errors
    /// A socket fails.
    pub fn turn(&mut self, deadline: Instant, recorder: &mut dyn Recorder) -> Result<(), LinkError> {
        let more = self.transmit(recorder);
        let now = self.clock.now();
        self.link.flush(now);
        let hosts = &mut self.hosts;
        let came = self.link.receive(now, &mut |id, incoming| hosts.take(now, recorder, id, incoming))?;
        let due = self.due();
        let busy = came || more || due <= now;
        if !busy && now < deadline {
            self.clock.wait(due.min(deadline), &self.link.inputs());
        }
        let now = self.clock.now();
        for Hosted { endpoint, rng, .. } in &mut self.hosts.engines {
            if endpoint.poll_timeout().is_some_and(|at| at <= now) {
                endpoint.handle_timeout(&mut Cx { now, recorder: &mut *recorder, rng });
            }
        }
        Ok(())
    }

    /// When something is due next.
    fn due(&self) -> Instant {
        let engines = self.hosts.engines.iter().filter_map(|hosted| hosted.endpoint.poll_timeout());
        engines.chain([self.link.next_timeout()]).min().unwrap_or(Instant::MAX)
    }

    /// Sends what the engines have to send; one engine does not keep the others waiting. True if there may be more.
    fn transmit(&mut self, recorder: &mut dyn Recorder) -> bool {
        let mut more = false;
        for Hosted { id, endpoint, rng } in &mut self.hosts.engines {
            let mut left = BURST;
            let now = self.clock.now();
            let mut cx = Cx { now, recorder: &mut *recorder, rng };
            while left > 0 && endpoint.transmit_into(&mut cx, &mut self.packet).is_some() {
                self.link.send(now, *id, &self.packet.emit());
                left -= 1;
            }
            more |= left == 0;
        }
        more
    }
}

impl<E: Copy + PartialEq> Hosts<E> {
    fn find(&mut self, id: E) -> Option<&mut Hosted<E>> {
        self.engines.iter_mut().find(|hosted| hosted.id == id)
    }

    fn take(&mut self, now: Instant, recorder: &mut dyn Recorder, id: E, incoming: Incoming<'_>) {
        match incoming {
            Incoming::Began => {
                let (endpoint, seed) = (self.make)(id);
                self.engines.retain(|hosted| hosted.id != id);
                self.engines.push(Hosted { id, endpoint, rng: Rng::stream(seed, "engine") });
            }
            Incoming::Ended => self.engines.retain(|hosted| hosted.id != id),
            Incoming::Packet(bytes) => {
                let packet = Packet::parse(Bytes::copy_from_slice(bytes)).ok();
                match (self.find(id), packet) {
                    (Some(Hosted { endpoint, rng, .. }), Some(packet)) => {
                        endpoint.handle_packet(&mut Cx { now, recorder, rng }, &packet);
                    }
                    _ => self.unread += 1,
                }
            }
        }
    }
}
