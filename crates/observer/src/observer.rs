//! Assigns packets to subflows, and follows the connection's mode.

use crate::mappings::Entry;
use crate::stream::{Incoming, Outgoing};
use crate::subflow::{Distance, FourTuple, Stage, Subflow};
use anabranch_trace::{Event, Origin, PathState, Recorder, Violation};
use anabranch_units::{ConnId, Instant, PathId, Range, Side};
use anabranch_wire::{Flags, Mapping, MpCapable, MpJoin, MptcpOption, Packet, Segment};

/// Most subflows at a time, closed ones included.
const MAX_SUBFLOWS: usize = 64;

/// Counts of data that could not be followed. All zero: the events are complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfollowed {
    /// Packets of no subflow of the connection: another connection's, a join with an unknown token, a capture that
    /// began after the handshake.
    pub stray_packets: u64,
    /// Payload bytes without mapping.
    pub unmapped_bytes: u64,
    /// Bytes that the host acknowledged before they were seen to arrive: the capture has a hole. They are recorded as
    /// arrived at the acknowledgment.
    pub missed_bytes: u64,
    /// Items left out because they would exceed a memory limit.
    pub overflows: u64,
}

/// The protocol of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Not negotiated yet.
    Opening,
    /// MPTCP.
    Multipath,
    /// Plain TCP, from the start or after a fallback (RFC 8684 §3.7).
    Plain,
}

/// Follows one connection at one host. The connection is that of the first SYN; memory is bounded.
#[derive(Clone, Debug)]
pub struct Observer {
    host: Side,
    connection: ConnId,
    pub(crate) mode: Mode,
    /// The host's SYN offered MPTCP.
    pub(crate) offered: bool,
    /// The peer has sent a DSS: from then on a segment without one does not imply plain TCP.
    pub(crate) dss_seen: bool,
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Incoming,
    /// In [`Mode::Plain`]: the distances from subflow to data sequence, sent and received.
    pub(crate) plain: (Distance, Distance),
    pub(crate) subflows: Vec<Subflow>,
    pub(crate) unfollowed: Unfollowed,
    begun: bool,
}

/// The output of events.
pub(crate) struct Out<'a> {
    pub now: Instant,
    origin: Origin,
    recorder: &'a mut dyn Recorder,
}

impl Out<'_> {
    /// Records an event of the connection.
    pub fn tell(&mut self, event: Event) {
        self.recorder.record(self.now, self.origin, &event);
    }

    /// Records an event of a path.
    pub fn tell_of(&mut self, path: PathId, event: Event) {
        self.recorder.record(self.now, Origin { path, ..self.origin }, &event);
    }
}

/// The first MP_CAPABLE of version 1.
pub(crate) fn capable(segment: &Segment) -> Option<MpCapable> {
    segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Capable(c) if c.version == 1 => Some(*c),
        _ => None,
    })
}

/// The first MP_JOIN.
pub(crate) fn join(segment: &Segment) -> Option<MpJoin> {
    segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Join(j) => Some(*j),
        _ => None,
    })
}

/// The token by which a SYN joins a connection.
pub(crate) fn joined_token(segment: &Segment) -> Option<u32> {
    match join(segment) {
        Some(MpJoin::Syn { token, .. }) => Some(token),
        _ => None,
    }
}

/// The subflow offset nearest to `near` of which a mapping holds 32 bits.
pub(crate) fn subflow_offset(low: u32, near: u64) -> Option<u64> {
    near.checked_add_signed(i64::from(low.wrapping_sub(near as u32) as i32))
}

impl Observer {
    /// An observer before the first packet. Events will name `host` and `connection`.
    pub fn new(host: Side, connection: ConnId) -> Self {
        Self {
            host,
            connection,
            mode: Mode::Opening,
            offered: false,
            dss_seen: false,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            plain: (Distance::default(), Distance::default()),
            subflows: Vec::new(),
            unfollowed: Unfollowed::default(),
            begun: false,
        }
    }

    /// The data that could not be followed so far.
    pub fn unfollowed(&self) -> Unfollowed {
        let waiting: u64 = self.subflows.iter().map(|s| s.receiving.unmapped_bytes()).sum();
        Unfollowed { unmapped_bytes: self.unfollowed.unmapped_bytes + waiting, ..self.unfollowed }
    }

    /// A packet that the host sent or received on the network path `path`, in their order. The events go to `recorder`.
    pub fn packet(&mut self, now: Instant, sent: bool, path: PathId, packet: &Packet, recorder: &mut dyn Recorder) {
        let origin = Origin { host: Some(self.host), connection: self.connection, path: PathId(0) };
        let out = &mut Out { now, origin, recorder };
        let segment = &packet.segment;
        let tuple = FourTuple::of(packet, sent);
        let syn = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::RST);
        let known = self.subflows.iter().position(|s| s.tuple == tuple);
        let index = match known {
            Some(i) if syn && self.begins_anew(i, sent, segment) => {
                self.forget(i);
                self.begin(tuple, path, sent, segment)
            }
            None if syn => self.begin(tuple, path, sent, segment),
            known => known,
        };
        let Some(i) = index else {
            self.unfollowed.stray_packets += 1;
            return;
        };
        match (self.subflows[i].stage, sent) {
            // Packets still under way, and the host's answers to them, are not part of the connection.
            (Stage::Closed, _) => {}
            (_, true) => self.on_sent(out, i, segment),
            (_, false) => self.on_received(out, i, segment),
        }
    }

    /// The connection's number.
    pub(crate) fn connection(&self) -> ConnId {
        self.connection
    }

    /// Whether a SYN that the host sent, or received, with this token joins the connection. RFC 8684 §3.2: it is the
    /// receiver's.
    pub(crate) fn is_joined_by(&self, sent: bool, token: u32) -> bool {
        let receiver = if sent { self.incoming.owner } else { self.outgoing.owner };
        receiver.is_some_and(|owner| owner.token == token)
    }

    /// A SYN of another candidate for the first subflow (RobE_SIM): from the same client port, before any was
    /// established.
    fn is_raced_by(&self, tuple: FourTuple, sent: bool, syn: &Segment) -> bool {
        let port = |t: FourTuple| if sent { t.local.port() } else { t.remote.port() };
        let opening = |s: &Subflow| matches!(s.stage, Stage::SynSent | Stage::SynReceived | Stage::Closed);
        let same = self.subflows.iter().all(|s| opening(s) && port(s.tuple) == port(tuple));
        self.mode == Mode::Opening && same && capable(syn).is_some()
    }

    /// More than one subflow may still become the first.
    pub(crate) fn is_racing(&self) -> bool {
        self.subflows.iter().filter(|s| !s.join && s.is_live()).count() > 1
    }

    /// Makes subflow `first` the connection's first: the other candidates are given up.
    pub(crate) fn end_race(&mut self, out: &mut Out<'_>, first: usize) {
        for (_, s) in self.subflows.iter_mut().enumerate().filter(|(n, s)| *n != first && !s.join && s.is_live()) {
            let told = s.offers.0.is_some();
            s.stage = Stage::Closed;
            if told {
                out.tell_of(s.path, Event::Path(PathState::Closed));
            }
        }
    }

    /// A SYN replaces a subflow that has ended.
    fn begins_anew(&self, i: usize, sent: bool, syn: &Segment) -> bool {
        let s = &self.subflows[i];
        let isn = if sent { s.sending.isn } else { s.receiving.isn };
        !s.is_live() && syn.seq != isn
    }

    /// A SYN between new ends: the connection's first, or a join.
    fn begin(&mut self, tuple: FourTuple, path: PathId, sent: bool, syn: &Segment) -> Option<usize> {
        let joins = match joined_token(syn) {
            Some(token) if self.is_joined_by(sent, token) => true,
            Some(_) => return None,
            None if self.begun && !self.is_raced_by(tuple, sent, syn) => return None,
            None => false,
        };
        if self.subflows.len() >= MAX_SUBFLOWS {
            let Some(over) = self.subflows.iter().position(|s| !s.is_live()) else {
                self.unfollowed.overflows += 1;
                return None;
            };
            self.forget(over);
        }
        self.begun = true;
        let stage = if sent { Stage::SynSent } else { Stage::SynReceived };
        self.subflows.push(Subflow::new(tuple, path, stage, joins, syn.seq));
        Some(self.subflows.len() - 1)
    }

    /// Makes room for another subflow.
    fn forget(&mut self, i: usize) {
        self.unfollowed.unmapped_bytes += self.subflows.remove(i).receiving.unmapped_bytes();
    }

    /// The peer's segment broke a rule, and the host had to ignore all or part of it.
    pub(crate) fn violation(&self, out: &mut Out<'_>, i: usize, what: Violation) {
        out.tell_of(self.subflows[i].path, Event::Violation(what));
    }

    /// The subflow was reset or refused. Its packets still under way belong to no subflow.
    pub(crate) fn drop_subflow(&mut self, out: &mut Out<'_>, i: usize) {
        let s = &mut self.subflows[i];
        // No event has named a subflow that the host did not answer, or a join of the peer without authentication; a
        // closed one has had its event.
        let proven = !(s.join && s.stage == Stage::SynReceived);
        let told = s.offers.0.is_some() && s.is_live() && proven;
        s.stage = Stage::Closed;
        if told {
            out.tell_of(s.path, Event::Path(PathState::Dead));
        }
    }

    /// Both FINs are acknowledged.
    pub(crate) fn close_if_over(&mut self, out: &mut Out<'_>, i: usize) {
        let s = &mut self.subflows[i];
        let fin_acked = s.sending.fin.is_some_and(|fin| s.sending.una > fin);
        if s.is_live() && fin_acked && s.receiving.is_finished() {
            s.stage = if s.sending.fin_answers { Stage::Closed } else { Stage::TimeWait };
            out.tell_of(s.path, Event::Path(PathState::Closed));
        }
    }

    /// From here on the connection is plain TCP over its only subflow (RFC 8684 §3.7).
    pub(crate) fn fall_back(&mut self, out: &mut Out<'_>, i: usize) {
        if self.mode == Mode::Plain {
            return;
        }
        self.mode = Mode::Plain;
        out.tell(Event::Fallback);
        // Mapped data keeps its place; new data follows in the subflow's own sequence.
        let s = &self.subflows[i];
        let unacked = s.sending.mappings.end().unwrap_or(0);
        let sent = Distance { sub: s.sending.nxt, data: unacked.max(self.outgoing.acked) };
        let received = Distance { sub: s.receiving.unplaced(), data: self.incoming.next() };
        self.plain = (sent, received);
    }

    /// The mapping in a segment, of the stream in its direction. MP_CAPABLE holds that of the first data (RFC 8684
    /// §3.1).
    pub(crate) fn mapping_of(&self, sent: bool, segment: &Segment) -> Option<(Mapping, bool)> {
        if let Some(dss) = segment.options.dss() {
            return dss.mapping.map(|mapping| (mapping, dss.data_fin));
        }
        let (len, checksum) = capable(segment)?.data.filter(|(len, _)| *len > 0)?;
        let owner = if sent { self.outgoing.owner } else { self.incoming.owner };
        let data_seq = owner?.first();
        Some((Mapping { data_seq, wide: true, subflow_seq: 1, len, checksum }, false))
    }

    /// The place of a finite mapping. `nears`: the expected data offset and subflow offset.
    pub(crate) fn place(&self, sent: bool, mapping: &Mapping, data_fin: bool, nears: (u64, u64)) -> Option<Entry> {
        let owner = if sent { self.outgoing.owner } else { self.incoming.owner };
        let data = owner?.mapped(mapping, nears.0)?;
        let len = u64::from(mapping.len).saturating_sub(u64::from(data_fin));
        // A DATA_FIN alone has no place in the subflow.
        let sub = if data_fin && len == 0 { 0 } else { subflow_offset(mapping.subflow_seq, nears.1)? };
        let whole = !sent && mapping.checksum.is_some();
        Some(Entry { sub: Range::new(sub, sub + len), data, whole })
    }
}
