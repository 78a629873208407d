//! A host: its listeners and connections, and which packet belongs to which (RFC 9293 §3.10.7.1, RFC 8684 §3.2).

mod handshakes;
mod path_mtu;
mod syn_queue;

use crate::connection::{Connection, ConnectionEvent, Setup};
use crate::cx::Cx;
use crate::four_tuple::FourTuple;
use crate::schedule::Device;
use crate::settings::Settings;
use crate::slots::Slots;
use crate::subflow::State;
use anabranch_plugin::ensemble::Ensemble;
use anabranch_units::{Instant, PathId, SeqNumber};
use anabranch_wire::{Flags, MptcpOption, Packet, Reason, Segment};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use syn_queue::SynQueue;

pub use crate::slots::Handle;

/// Makes the setup of a connection that a listener accepts. While many handshakes are half open it is asked when the peer
/// has completed one, whose SYN was answered with the settings that it gave last.
pub type Accept = Box<dyn FnMut(FourTuple) -> Option<Setup> + Send>;

#[derive(Debug)]
struct Slot {
    connection: Connection,
    /// The connection may have something to send or report.
    awake: bool,
    /// The connection is among those that have something to report.
    listed: bool,
    /// The connection's entry among the timers.
    timer: Instant,
    /// The connection's entries among the ends, and the state of its subflows that they are for.
    ends: Vec<Ends>,
    epoch: u64,
    /// The connection ended while it sent, and a timer has said so.
    prompted: bool,
    /// The connection's SYN/ACK is not acknowledged yet.
    unproven: bool,
    /// The connection is among those that linger.
    lingers: bool,
}

impl Slot {
    /// Puts it among those that have something to tell, if it has.
    #[inline]
    fn list(&mut self, handle: Handle, news: &mut Vec<Handle>) {
        if self.connection.has_events() && !core::mem::replace(&mut self.listed, true) {
            news.push(handle);
        }
    }
}

struct Listener {
    accept: Accept,
    /// Settings of the connection that the listener accepted last.
    settings: Option<Settings>,
    /// No handshake has a connection before it is complete.
    complete_only: bool,
}

impl Listener {
    /// A SYN without an offer of Multipath TCP is refused, as far as the last connection tells.
    fn requires_multipath(&self) -> bool {
        self.settings.as_ref().is_some_and(|settings| settings.mptcp_required)
    }
}

/// A subflow's two ends in the order in which they are looked for: the ports first, for those differ most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    /// The remote one, then ours.
    ports: u32,
    remote: IpAddr,
    local: IpAddr,
}

/// The peer has shown that it got our SYN/ACK, or never had to.
fn is_proven(connection: &Connection) -> bool {
    connection.subflows().next().is_none_or(|(.., state)| state != State::SynReceived)
}

fn ports(local: u16, remote: u16) -> u32 {
    u32::from(remote) << 16 | u32::from(local)
}

impl From<&FourTuple> for Ends {
    /// An IPv4-mapped address (RFC 4291 §2.5.5.2) is the IPv4 address.
    fn from(FourTuple { local, remote }: &FourTuple) -> Self {
        let (remote_ip, local_ip) = (remote.ip().to_canonical(), local.ip().to_canonical());
        Self { ports: ports(local.port(), remote.port()), remote: remote_ip, local: local_ip }
    }
}

/// All bits of an address in one word.
#[inline(always)]
fn folded(address: &IpAddr) -> u32 {
    match address {
        IpAddr::V4(ip) => ip.to_bits(),
        IpAddr::V6(ip) => {
            let bits = ip.to_bits();
            let half = (bits ^ bits >> 64) as u64;
            (half ^ half >> 32) as u32
        }
    }
}

/// Connections that may have something to send, first come first. Nearly always there is one at most, which has a place
/// of its own.
#[derive(Default)]
struct Awake {
    first: Option<Handle>,
    more: VecDeque<Handle>,
}

impl Awake {
    #[inline(always)]
    fn push(&mut self, handle: Handle) {
        match self.first {
            None => self.first = Some(handle),
            Some(_) => self.more.push_back(handle),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Handle> {
        self.first.iter().chain(&self.more)
    }

    fn pop(&mut self) {
        self.first = if self.more.is_empty() { None } else { self.more.pop_front() };
    }
}

/// Times at which something of a connection may be due.
struct Timers {
    set: BTreeSet<(Instant, Handle)>,
    /// The first; `MAX` for none.
    next: Instant,
}

impl Default for Timers {
    fn default() -> Self {
        Self { set: BTreeSet::new(), next: Instant::MAX }
    }
}

impl Timers {
    /// From `before` to `after`; `MAX` is no time.
    #[inline(never)]
    fn change(&mut self, handle: Handle, before: Instant, after: Instant) {
        // In this order a set of one does not give its memory back and take it again.
        if after < Instant::MAX {
            self.set.insert((after, handle));
        }
        if before < Instant::MAX {
            self.set.remove(&(before, handle));
        }
        self.next = self.set.first().map_or(Instant::MAX, |(at, _)| *at);
    }

    /// Takes the first, if its time has come.
    fn pop(&mut self, now: Instant) -> Option<Handle> {
        let (at, handle) = self.set.first().copied().filter(|(at, _)| *at <= now)?;
        self.change(handle, at, Instant::MAX);
        Some(handle)
    }
}

/// A subflow by the index of its connection. Small, since among thousands of subflows each look at one is a miss of the caches. The addresses
/// are compared with those that the subflow itself has.
#[derive(Clone, Copy, Debug)]
struct Recalled {
    ports: u32,
    /// [`Self::NOBODY`] where none is.
    index: u32,
    path: PathId,
}

impl Recalled {
    const NOBODY: u32 = u32::MAX;
}

/// Subflows whose segments came lately, each in the one place that its ends give it: nearly every segment belongs to one.
struct Recent {
    /// A power of two.
    places: Vec<Recalled>,
    /// Bits of a word that are too many to number them.
    shift: u32,
}

impl Recent {
    /// Places at first: enough for the subflows of one connection.
    const FEWEST: usize = 16;

    /// So many places, a power of two.
    fn of(count: usize) -> Self {
        let nobody = Recalled { ports: 0, index: Recalled::NOBODY, path: PathId(0) };
        Self { places: vec![nobody; count], shift: u64::BITS - count.trailing_zeros() }
    }

    /// Places for four times as many subflows as there are, so that few share one.
    fn make_room(&mut self, subflows: usize) {
        let wanted = (4 * subflows).next_power_of_two().max(Self::FEWEST);
        if self.places.len() < wanted {
            *self = Self::of(wanted);
        }
    }

    /// Where these ends are looked for.
    #[inline(always)]
    fn place(&self, ports: u32, remote: &IpAddr, local: &IpAddr) -> usize {
        let addresses = folded(remote) ^ folded(local).rotate_left(16);
        // Fibonacci hashing: the uppermost bits of the product depend on all bits of both.
        let mixed = (u64::from(ports) << 32 | u64::from(addresses)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> self.shift) as usize
    }

    /// The subflow that a packet to this host probably belongs to, by the index of its connection; its addresses are not compared yet.
    #[inline(always)]
    fn find(&self, packet: &Packet) -> Option<(usize, PathId)> {
        let ports = ports(packet.segment.dst_port, packet.segment.src_port);
        let recalled = &self.places[self.place(ports, &packet.src, &packet.dst)];
        (recalled.ports == ports).then_some((recalled.index as usize, recalled.path))
    }

    fn insert(&mut self, ends: &Ends, handle: Handle, path: PathId) {
        let place = self.place(ends.ports, &ends.remote, &ends.local);
        let index = u32::try_from(handle.index()).unwrap_or(Recalled::NOBODY);
        self.places[place] = Recalled { ports: ends.ports, index, path };
    }

    /// These ends belong to another subflow, or to none.
    fn forget(&mut self, ends: &Ends) {
        let place = self.place(ends.ports, &ends.remote, &ends.local);
        self.places[place].index = Recalled::NOBODY;
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self::of(Self::FEWEST)
    }
}

/// A host: listeners, and all connections with their subflows.
///
/// A program that embeds the engine begins here; `examples/endpoints.rs` is a whole one. The endpoint opens no socket and reads no clock. Its
/// driver passes the time in each [`Cx`], which never goes back, and makes these calls:
///
/// 1. [`listen`](Self::listen) or [`connect`](Self::connect), once.
/// 2. [`handle_packet`](Self::handle_packet) for each packet that arrives, and [`handle_timeout`](Self::handle_timeout) when the time of
///    [`poll_timeout`](Self::poll_timeout) has come.
/// 3. [`poll_accept`](Self::poll_accept) and [`poll_news`](Self::poll_news), each until it returns `None`: the application reads from and
///    writes to a connection that [`news_of`](Self::news_of) lends.
/// 4. [`transmit_into`](Self::transmit_into) until it returns `None`: each packet leaves over its path. Then it sleeps until a packet
///    arrives or a time-out is due.
///
/// Step 4 follows each of the others, and every call of a [`Connection`]: acknowledgments and data wait for it. The order of events, packets
/// and random numbers follows from the arguments alone. A [`Handle`] stays valid until its connection is forgotten, and no later connection
/// has the same.
pub struct Endpoint {
    slots: Slots<Slot>,
    ends: BTreeMap<Ends, (Handle, PathId)>,
    /// A part of `ends`.
    recent: Recent,
    tokens: BTreeMap<u32, Handle>,
    listeners: BTreeMap<u16, Listener>,
    /// Handshakes that have no connection, or none yet.
    syns: SynQueue,
    /// Connections whose SYN/ACK is not acknowledged yet.
    unproven: BTreeSet<Handle>,
    /// Connections that may have something to send.
    awake: Awake,
    /// Connections that had unread events when they had nothing more to send, or when time had passed.
    news: Vec<Handle>,
    /// One entry per connection at most. It may be too early; the connection is asked when it comes up.
    timers: Timers,
    /// Resets for segments that belong to no connection.
    replies: VecDeque<Packet>,
    /// There may be resets, or SYN/ACKs of handshakes that have no connection.
    has_replies: bool,
    /// Connections to be accepted.
    accepted: VecDeque<Handle>,
    /// Connections in TIME-WAIT, the first to come first. Some may be gone.
    lingering: VecDeque<Handle>,
    /// The knowledge that its connections share; lent to one for each of its calls.
    ensemble: Option<Box<Ensemble>>,
    /// Most connections; more are refused.
    limit: usize,
}

/// Most resets waiting to be sent: a flood of stray segments takes no more memory than this.
const MAX_REPLIES: usize = 64;

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint").field("connections", &self.slots.len()).finish_non_exhaustive()
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self::new(65_536)
    }
}

impl Endpoint {
    /// A host without connections that will hold at most `limit`.
    pub fn new(limit: usize) -> Self {
        Self {
            slots: Slots::new(),
            ends: BTreeMap::new(),
            recent: Recent::default(),
            tokens: BTreeMap::new(),
            listeners: BTreeMap::new(),
            syns: SynQueue::default(),
            unproven: BTreeSet::new(),
            awake: Awake::default(),
            news: Vec::new(),
            timers: Timers::default(),
            replies: VecDeque::new(),
            has_replies: false,
            accepted: VecDeque::new(),
            lingering: VecDeque::new(),
            ensemble: Some(Box::default()),
            limit,
        }
    }

    /// Accepts connections to `port`, on every address.
    pub fn listen(&mut self, port: u16, accept: Accept) {
        self.listeners.insert(port, Listener { accept, settings: None, complete_only: false });
    }

    /// As [`Self::listen`], but `accept` is asked when a handshake is complete, as accept(2) is answered: of the SYNs of a race
    /// only the winner's makes a connection. SYNs are answered with `settings`.
    pub fn listen_for_complete(&mut self, port: u16, settings: Settings, accept: Accept) {
        self.listeners.insert(port, Listener { accept, settings: Some(settings), complete_only: true });
    }

    /// Opens a connection; a path that names no local port draws one when it is opened.
    pub fn connect(&mut self, cx: &mut Cx<'_>, setup: Setup) -> Handle {
        let tokens = &self.tokens;
        let connection = Connection::connect(cx, setup, &|token| tokens.contains_key(&token));
        self.adopt(connection)
    }

    fn adopt(&mut self, connection: Connection) -> Handle {
        let token = connection.token();
        let (timer, ends) = (Instant::MAX, Vec::new());
        let slot = Slot {
            connection,
            awake: false,
            listed: false,
            timer,
            ends,
            epoch: 0,
            prompted: false,
            unproven: false,
            lingers: false,
        };
        let handle = self.slots.insert(slot);
        if let Some(token) = token {
            self.tokens.insert(token, handle);
        }
        self.wake(handle);
        handle
    }

    /// A connection accepted since the last call.
    pub fn poll_accept(&mut self) -> Option<Handle> {
        self.accepted.pop_front()
    }

    /// A connection, to read from or write to. The endpoint polls its segments and timers again afterwards.
    pub fn connection_mut(&mut self, handle: Handle) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(handle)?;
        if !core::mem::replace(&mut slot.awake, true) {
            self.awake.push(handle);
        }
        Some(&mut slot.connection)
    }

    /// A connection, to look at.
    pub fn connection(&self, handle: Handle) -> Option<&Connection> {
        self.slots.get(handle).map(|slot| &slot.connection)
    }

    /// How many connections there are, those that are closing included.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there is no connection.
    pub fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }

    /// The next event of a connection. One that reported [`ConnectionEvent::Closed`] is forgotten with the next
    /// [`Self::poll_transmit`] after its last subflow is gone: read first what is left to be read.
    pub fn poll_event(&mut self, handle: Handle) -> Option<ConnectionEvent> {
        let slot = self.slots.get_mut(handle)?;
        let event = slot.connection.poll_event();
        if matches!(event, Some(ConnectionEvent::Closed(_))) {
            self.wake(handle);
        }
        event
    }

    /// [`Self::news_of`] has something.
    #[inline]
    pub fn has_news(&self, handle: Handle) -> bool {
        self.slots.get(handle).is_some_and(|slot| slot.connection.has_events())
    }

    /// A connection as [`Self::connection_mut`] gives it, if something happened to it: [`Connection::poll_event`] says what.
    pub fn news_of(&mut self, handle: Handle) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(handle).filter(|slot| slot.connection.has_events())?;
        if !core::mem::replace(&mut slot.awake, true) {
            self.awake.push(handle);
        }
        Some(&mut slot.connection)
    }

    /// The next connection with unread events, as of the last time that passed and of the last call of a transmit function that
    /// had nothing more to send: see [`Self::news_of`]. Each comes once, in no particular order.
    pub fn poll_news(&mut self) -> Option<Handle> {
        while let Some(handle) = self.news.pop() {
            if let Some(slot) = self.slots.get_mut(handle) {
                slot.listed = false;
                if slot.connection.has_events() {
                    return Some(handle);
                }
            }
        }
        None
    }

    /// Takes a packet that was addressed to this host. Returns the connection it belongs to.
    #[inline]
    pub fn handle_packet(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Option<Handle> {
        match self.recall(packet) {
            Some((handle, path)) if self.handle_segment(cx, handle, path, &packet.segment) => Some(handle),
            _ => self.handle_other_packet(cx, packet),
        }
    }

    /// The subflow that a packet belongs to, if one came on it lately.
    #[inline(always)]
    fn recall(&self, packet: &Packet) -> Option<(Handle, PathId)> {
        let (index, path) = self.recent.find(packet)?;
        let (handle, slot) = self.slots.at(index)?;
        slot.connection.subflows.has(path, packet).then_some((handle, path))
    }

    /// Takes a segment of a subflow; false if there is no such connection.
    #[inline(always)]
    fn handle_segment(&mut self, cx: &mut Cx<'_>, handle: Handle, path: PathId, segment: &Segment) -> bool {
        let Some(slot) = self.slots.get_mut(handle) else { return false };
        slot.connection.member_mut().borrow(&mut self.ensemble);
        slot.connection.handle_segment(cx, path, segment);
        slot.connection.member_mut().give_back(&mut self.ensemble);
        if !core::mem::replace(&mut slot.awake, true) {
            self.awake.push(handle);
        }
        true
    }

    /// Takes a packet of a subflow that had none lately, or of none.
    #[inline(never)]
    fn handle_other_packet(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Option<Handle> {
        let segment = &packet.segment;
        let tuple =
            FourTuple { local: (packet.dst, segment.dst_port).into(), remote: (packet.src, segment.src_port).into() };
        let ends = Ends::from(&tuple);
        if let Some((handle, path)) = self.ends.get(&ends).copied() {
            self.recent.insert(&ends, handle, path);
            if self.handle_segment(cx, handle, path, segment) {
                return Some(handle);
            }
        }
        self.has_replies = true;
        if !self.syns.is_empty()
            && let Some(handle) = self.on_half_open(cx, tuple, packet)
        {
            return handle;
        }
        let syn = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::RST);
        if syn {
            return self.on_syn(cx, tuple, packet);
        }
        self.reset(tuple, packet, None);
        None
    }

    /// RFC 9293 §3.10.7.1: a segment for a connection that does not exist is answered with a reset.
    fn reset(&mut self, tuple: FourTuple, packet: &Packet, reason: Option<Reason>) {
        let segment = &packet.segment;
        if segment.flags.has(Flags::RST) || self.replies.len() >= MAX_REPLIES {
            return;
        }
        let mut answer = Segment {
            src_port: tuple.local.port(),
            dst_port: tuple.remote.port(),
            flags: Flags::RST,
            ..Segment::default()
        };
        if segment.flags.has(Flags::ACK) {
            answer.seq = segment.ack;
        } else {
            answer.flags = Flags::RST | Flags::ACK;
            answer.seq = SeqNumber(0);
            answer.ack = segment.seq.at(u64::from(segment.seq_len()));
        }
        if let Some(reason) = reason {
            answer.options.push_mptcp(MptcpOption::TcpRst(reason));
        }
        self.replies.push_back(Packet { src: packet.dst, dst: packet.src, segment: answer });
    }

    /// Sets the contents of a device of this host, for the connections that are about to send on `path`.
    pub fn set_device(&mut self, path: PathId, device: Device) {
        for handle in self.awake.iter() {
            if let Some(slot) = self.slots.get_mut(*handle) {
                slot.connection.set_device(path, device);
            }
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.has_replies |= self.syns.handle_timeout(cx.now);
        while let Some(handle) = self.timers.pop(cx.now) {
            let Some(slot) = self.slots.get_mut(handle) else { continue };
            slot.timer = Instant::MAX;
            if slot.connection.poll_timeout().is_some_and(|due| due <= cx.now) {
                slot.connection.handle_timeout(cx);
            }
            slot.list(handle, &mut self.news);
            self.wake(handle);
        }
    }

    /// When to call [`Self::handle_timeout`]; at the earliest, since an entry may be out of date.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let at = self.timers.next.min(self.syns.next());
        (at < Instant::MAX).then_some(at)
    }

    /// The next packet to send, with the path of its connection; what belongs to no connection has none. Ask until there is none.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<(Option<PathId>, Packet)> {
        let mut packet = Packet::default();
        let path = self.transmit_into(cx, &mut packet)?;
        Some((path, packet))
    }

    /// As [`Self::poll_transmit`], into a packet that is overwritten.
    #[inline(always)]
    pub fn transmit_into(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> Option<Option<PathId>> {
        if self.has_replies
            && let Some(path) = self.transmit_beside(cx, packet)
        {
            return Some(path);
        }
        while let Some(handle) = self.awake.first {
            if let Some(slot) = self.slots.get_mut(handle) {
                slot.connection.member_mut().borrow(&mut self.ensemble);
                let sent = slot.connection.transmit_into(cx, packet);
                slot.connection.member_mut().give_back(&mut self.ensemble);
                if let Some(path) = sent {
                    return Some(Some(path));
                }
                // Nothing more to send for now: note the timer, forget what is gone.
                slot.awake = false;
                slot.list(handle, &mut self.news);
                let newborn_or_dying = slot.unproven | slot.connection.has_ended();
                // One that ended by what it sent has a timer due, once, so that the driver asks what became of it.
                let ended = newborn_or_dying && slot.connection.is_closed() && !slot.connection.is_over();
                let at = match ended && !core::mem::replace(&mut slot.prompted, true) {
                    true => cx.now,
                    false => slot.connection.deadline(),
                };
                if at < slot.timer {
                    self.timers.change(handle, slot.timer, at);
                    slot.timer = at;
                }
                debug_assert!(
                    slot.connection.poll_timeout().is_none_or(|due| slot.timer <= due),
                    "a deadline is missed"
                );
                if slot.epoch != slot.connection.subflows.epoch() {
                    self.index_ends(handle);
                }
                if newborn_or_dying {
                    self.attend(handle);
                }
            }
            self.awake.pop();
        }
        None
    }

    /// The next packet that belongs to no connection.
    #[cold]
    fn transmit_beside(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> Option<Option<PathId>> {
        if let Some(reply) = self.replies.pop_front() {
            *packet = reply;
            return Some(None);
        }
        let answer = self.answer_syn(cx, packet);
        self.has_replies = answer.is_some();
        answer
    }

    /// Looks how far a connection is at the beginning or the end of its life.
    #[cold]
    fn attend(&mut self, handle: Handle) {
        let Some(slot) = self.slots.get_mut(handle) else { return };
        if slot.unproven && is_proven(&slot.connection) {
            slot.unproven = false;
            self.unproven.remove(&handle);
        }
        if !slot.lingers && slot.connection.only_lingers() {
            slot.lingers = true;
            self.lingering.push_back(handle);
        }
        if slot.connection.is_over() {
            self.forget(handle);
        }
    }

    fn forget(&mut self, handle: Handle) {
        let Some(mut slot) = self.slots.remove(handle) else { return };
        self.ensemble.iter_mut().for_each(|ensemble| ensemble.without(slot.connection.member_mut()));
        self.unproven.remove(&handle);
        if slot.listed {
            self.news.retain(|listed| *listed != handle);
        }
        self.timers.change(handle, slot.timer, Instant::MAX);
        for ends in slot.ends {
            self.recent.forget(&ends);
            if self.ends.get(&ends).is_some_and(|(h, _)| *h == handle) {
                self.ends.remove(&ends);
            }
        }
        if let Some(token) = slot.connection.token() {
            self.tokens.remove(&token);
        }
        self.accepted.retain(|accepted| *accepted != handle);
        while self.lingering.front().is_some_and(|first| self.slots.get(*first).is_none()) {
            self.lingering.pop_front();
        }
    }

    /// True if no connection must go before another one comes.
    fn has_free_slot(&self) -> bool {
        self.slots.len() < self.limit || !self.lingering.is_empty()
    }

    /// True if there is room for a connection whose peer has shown its address. One in TIME-WAIT makes room: the oldest, as
    /// Linux does where there are too many (`tcp_max_tw_buckets`); else one whose peer has shown nothing yet.
    fn has_room(&mut self) -> bool {
        while self.slots.len() >= self.limit
            && let Some(least) = self.lingering.pop_front().or_else(|| self.unproven.pop_first())
        {
            self.forget(least);
        }
        self.slots.len() < self.limit
    }

    fn wake(&mut self, handle: Handle) {
        if let Some(slot) = self.slots.get_mut(handle)
            && !slot.awake
        {
            slot.awake = true;
            self.awake.push(handle);
        }
    }

    fn index_ends(&mut self, handle: Handle) {
        let Some(slot) = self.slots.get_mut(handle) else { return };
        for ends in slot.ends.drain(..) {
            self.recent.forget(&ends);
            if self.ends.get(&ends).is_some_and(|(h, _)| *h == handle) {
                self.ends.remove(&ends);
            }
        }
        slot.ends.reserve_exact(slot.connection.subflows.len());
        for (path, tuple, _) in slot.connection.subflows() {
            // Another connection's subflow keeps its ends: a join that drew the same port fails and draws again.
            let owner = self.ends.entry(Ends::from(&tuple)).or_insert((handle, path));
            if *owner == (handle, path) {
                slot.ends.push(Ends::from(&tuple));
            }
        }
        slot.epoch = slot.connection.subflows.epoch();
        self.recent.make_room(self.ends.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// A server's ends of a client's subflow.
    fn ends(client: IpAddr, port: u16) -> Ends {
        let server = if client.is_ipv4() { IpAddr::from([10, 0, 0, 9]) } else { Ipv6Addr::LOCALHOST.into() };
        Ends::from(&FourTuple { local: (server, 80).into(), remote: (client, port).into() })
    }

    #[test]
    fn subflows_that_differ_in_one_port_or_in_any_part_of_an_address_have_places_of_their_own() {
        let mut recent = Recent::default();
        recent.make_room(100);
        let used = |all: &mut dyn Iterator<Item = Ends>| {
            all.map(|ends| recent.place(ends.ports, &ends.remote, &ends.local)).collect::<BTreeSet<_>>().len()
        };
        let v4 = IpAddr::from([10, 0, 0, 1]);
        // By chance alone, 100 of 256 places would be 83 different ones.
        assert!(used(&mut (50_000..50_100).map(|port| ends(v4, port))) > 65);
        assert!(used(&mut (0..100).map(|n| ends(IpAddr::from([10, 0, n, 1]), 50_000))) > 65);
        for part in 0..8 {
            let address = |n: u16| {
                let mut parts = [0xfd00, 0, 0, 0, 0, 0, 0, 1];
                parts[part] += n;
                IpAddr::from(Ipv6Addr::from(parts))
            };
            assert!(used(&mut (0..100).map(|n| ends(address(n), 50_000))) > 65, "part {part}");
        }
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_address() {
        let plain = Ipv4Addr::new(10, 0, 0, 1);
        let mapped = FourTuple {
            local: (Ipv4Addr::new(10, 0, 0, 9).to_ipv6_mapped(), 80).into(),
            remote: (plain.to_ipv6_mapped(), 50_000).into(),
        };
        assert_eq!(Ends::from(&mapped), ends(plain.into(), 50_000));
    }
}
