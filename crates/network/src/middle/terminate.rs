//! A box that terminates TCP: a performance-enhancing proxy that splits each connection in two (RFC 3135 §2.4, §3.1).
//!
//! The handshake passes, without the options that the box does not speak. From then on the box acknowledges data to each side, holds it,
//! and sends it to the other side by a timer and a window of its own. It keeps both sides' sequence numbers.

mod pace;
mod relay;
mod stream;

use super::flows::{Flow, Flows, MOST};
use super::reject::refuse;
use super::{Answer, BoxKind, Carried, Middlebox, OptionKind, OptionSet, Passed};
use crate::{Parameter, Value};
use anabranch_units::{Instant, SeqNumber};
use anabranch_wire::{Flags, Segment};
use relay::{Opening, Relay, Side};

/// Termination of TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminateSpec {
    /// Bytes that the box holds for each direction of a connection.
    pub buffer: u32,
    /// Options that it strips from SYNs, beside those of which it has its own.
    pub options: OptionSet,
}

impl Default for TerminateSpec {
    fn default() -> Self {
        Self { buffer: 262_144, options: OptionKind::Mptcp.into() }
    }
}

impl BoxKind for TerminateSpec {
    const NAME: &'static str = "terminate";
    const ABOUT: &'static str =
        "terminates TCP (a performance-enhancing proxy): it acknowledges data to each side, and sends it on by itself";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new(
                "buffer",
                Value::Whole(&mut self.buffer, 1500, 1 << 30),
                "bytes that it holds for each direction of a connection",
            ),
            Parameter::new(
                "options",
                Value::Options(&mut self.options),
                "options that it strips from SYNs; SACK and timestamps always, and all options of other segments",
            ),
        ]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Terminate { spec: self, connections: Flows::new() })
    }
}

/// A connection that the box knows.
#[derive(Debug)]
enum Connection {
    /// The handshake passes.
    Opening(Opening),
    /// The box stands between the two halves.
    Open(Box<Relay>),
}

#[derive(Debug)]
struct Terminate {
    spec: TerminateSpec,
    connections: Flows<Connection>,
}

impl Middlebox for Terminate {
    fn along(&mut self, now: Instant, carried: Carried, passed: &mut Passed) {
        self.take(now, Side::Along, carried, passed);
    }

    fn against(&mut self, now: Instant, carried: Carried, passed: &mut Passed) {
        self.take(now, Side::Against, carried, passed);
    }

    fn due(&self) -> Instant {
        self.connections.values().map(Connection::due).min().unwrap_or(Instant::MAX)
    }

    fn wake(&mut self, now: Instant, passed: &mut Passed) {
        self.connections.retain(|_, connection| match connection {
            Connection::Open(relay) if relay.due() <= now => relay.wake(now, passed),
            _ => true,
        });
    }
}

impl Connection {
    fn due(&self) -> Instant {
        match self {
            Self::Opening(_) => Instant::MAX,
            Self::Open(relay) => relay.due(),
        }
    }

    /// Whether a SYN may begin another connection of the same ports.
    fn may_go(&self) -> bool {
        matches!(self, Self::Open(relay) if relay.is_over())
    }
}

impl Terminate {
    fn take(&mut self, now: Instant, from: Side, carried: Carried, passed: &mut Passed) {
        let flow = Flow::of_both(&carried.packet);
        if self.connections.get(&flow).is_some_and(Connection::may_go) && begins(&carried.packet.segment) {
            self.connections.remove(&flow);
        }
        match self.connections.get_mut(&flow) {
            None => self.begin(flow, from, carried, passed),
            Some(Connection::Open(relay)) => {
                if !relay.take(now, from, &carried, passed) {
                    self.connections.remove(&flow);
                }
            }
            Some(Connection::Opening(opening)) => {
                if carried.packet.segment.flags.has(Flags::RST) {
                    passed.push(from, carried);
                    self.connections.remove(&flow);
                } else if let Some(mut relay) = opening.completed(from, &carried, self.spec) {
                    relay.open(now, from, &carried, passed);
                    self.connections.insert(flow, Connection::Open(Box::new(relay)));
                } else {
                    opening.take(from, carried, self.spec, passed);
                }
            }
        }
    }

    /// A segment of a connection that the box does not know.
    fn begin(&mut self, flow: Flow, from: Side, mut carried: Carried, passed: &mut Passed) {
        if self.connections.len() >= MOST {
            self.connections.retain(|_, connection| matches!(connection, Connection::Open(relay) if !relay.is_over()));
        }
        if begins(&carried.packet.segment) && self.connections.len() < MOST {
            let opening = Opening::new(from, &mut carried, self.spec);
            self.connections.insert(flow, Connection::Opening(opening));
            passed.push(from, carried);
        } else if carried.packet.segment.flags.has(Flags::RST) {
            passed.push(from, carried);
        } else {
            disown(from, &carried, passed);
        }
    }
}

/// Whether a segment begins a connection.
fn begins(segment: &Segment) -> bool {
    segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK)
}

/// Ends a connection of which the box knows nothing: bytes that another box acknowledged may be lost, so both ends shall receive a reset. The
/// sender receives one at once. The receiver gets a segment that is outside of its window. It answers (RFC 9293 §3.10.7.4), and its
/// answer tells which reset it accepts.
fn disown(from: Side, carried: &Carried, passed: &mut Passed) {
    if let Some(reset) = refuse(carried, Answer::Reset) {
        passed.push(from.other(), reset);
    }
    let Segment { src_port, dst_port, seq, ack, flags, .. } = carried.packet.segment;
    if flags.has(Flags::ACK) && !flags.has(Flags::SYN) {
        let seq = SeqNumber(seq.0.wrapping_add(1 << 31));
        let probe = Segment { src_port, dst_port, seq, ack, flags: Flags::ACK, ..Segment::default() };
        let mut onward = carried.clone();
        onward.packet.segment = probe;
        passed.push(from, onward);
    }
    passed.dropped.push(carried.packet.len() as u32);
}

impl Passed {
    /// A segment leaves in the direction in which one of this side travels.
    fn push(&mut self, from: Side, carried: Carried) {
        match from {
            Side::Along => self.along.push(carried),
            Side::Against => self.against.push(carried),
        }
    }
}
