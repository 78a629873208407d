//! A Multipath TCP connection: subflows below, one stream of bytes above (RFC 8684).
//!
//! Order of calls: `handle_*` whenever something came or is due, then `transmit_into` until it gives nothing, then
//! `poll_event`; sleep until `poll_timeout`.
//!
//! The connection conducts its parts, each of which owns its state and knows no other: the session (keys, options, fall
//! back), the send side, the receive side, the paths, and the subflows. It passes the values that one part returns to
//! the next.

mod events;
mod life;
mod lifetime;
mod segments;
mod transmit;

pub use crate::paths::{OwnEnd, PathSetup};
pub use events::ConnectionEvent;

use crate::congestion::CongestionControl;
use crate::cx::{Cx, Frame};
use crate::four_tuple::FourTuple;
use crate::mode::Mode;
use crate::paths::{Addresses, PathManager, Paths, Race};
use crate::receiving::Receiving;
use crate::schedule::{Device, PathPolicy, Scheduler, View};
use crate::sending::Sending;
use crate::session::Session;
use crate::settings::Settings;
use crate::subflow::forward::PeerClock;
use crate::subflow::{State, Subflows};
use anabranch_plugin::ensemble::Member;
use anabranch_trace::{CloseReason, Event, SchedulerName};
use anabranch_units::{ConnId, Instant, PathId, SeqNumber, Side};
use anabranch_wire::Reason;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use events::Pending;
use lifetime::Lifetime;

/// Everything that a new connection needs.
#[derive(Debug)]
pub struct Setup {
    /// Number in traces.
    pub id: ConnId,
    /// Settings.
    pub settings: Settings,
    /// Packet scheduler.
    pub scheduler: Box<dyn Scheduler>,
    /// Congestion control.
    pub congestion: Box<dyn CongestionControl>,
    /// Paths known beforehand. A client connects over the one that [`Settings::first_path`] says and joins the others; a
    /// server uses the list to give subflows the ids that both ends know.
    pub paths: Vec<PathSetup>,
    /// Further addresses of ours to announce with ADD_ADDR, with their address IDs and ports; see
    /// [`Connection::announce`].
    pub announce: Vec<(u8, IpAddr, Option<u16>)>,
    /// Join to addresses that the peer announces.
    pub accept_announced: bool,
}

impl Setup {
    /// The first connection in traces, with the default settings. It announces no address, and joins to none that the peer announces.
    pub fn new(scheduler: Box<dyn Scheduler>, congestion: Box<dyn CongestionControl>, paths: Vec<PathSetup>) -> Self {
        Self {
            id: ConnId(0),
            settings: Settings::default(),
            scheduler,
            congestion,
            paths,
            announce: Vec::new(),
            accept_announced: false,
        }
    }
}

/// A Multipath TCP connection: one stream of bytes in each direction, over the subflows that its paths have.
///
/// An [`Endpoint`](crate::endpoint::Endpoint) makes connections and lends them; whoever borrowed one lets the endpoint transmit afterwards.
/// Calls for applications:
///
/// - [`write`](Self::write) takes bytes while the send buffer has room, and [`ConnectionEvent::Writable`] announces new room;
///   [`finish`](Self::finish) ends the stream. What was written before the connection is established waits.
/// - [`read`](Self::read) returns bytes in order, until [`read_finished`](Self::read_finished).
/// - [`abort`](Self::abort) ends both directions at once.
///
/// Each may be called at any time, even after the end, when it does nothing. [`ConnectionEvent::Closed`] is the last event: with
/// [`CloseReason::Finished`] all bytes of both streams and their ends were acknowledged, with any other reason some may be missing.
///
/// Calls for operators ([`set_path`](Self::set_path), [`set_options`](Self::set_options), [`withdraw`](Self::withdraw),
/// [`set_scheduler`](Self::set_scheduler)) lose no byte.
#[derive(Debug)]
pub struct Connection {
    pub(crate) frame: Frame,
    session: Session,
    sending: Sending,
    receiving: Receiving,
    pub(crate) subflows: Subflows,
    paths: Paths,
    /// Forward delays of all subflows are taken by it.
    peer_clock: PeerClock,
    lifetime: Lifetime,
    pending: Pending,
}

/// The protocol is agreed on, or changes: both streams are numbered accordingly.
fn speak(mode: Mode, sending: &mut Sending, receiving: &mut Receiving) {
    sending.speak(mode);
    receiving.speak(mode);
}

impl Connection {
    /// `local`: our end of the first subflow, as far as it is known.
    fn new(cx: &mut Cx<'_>, setup: Setup, side: Side, local: SocketAddr, race: Race) -> Self {
        let Setup { id, settings, mut scheduler, congestion, paths, announce, accept_announced } = setup;
        scheduler.seed(cx.rng.fork("scheduler"));
        let (count, known) = (paths.len(), PathManager::new(side, paths, accept_announced, settings.rejoin_after));
        Self {
            session: Session::new(&settings),
            sending: Sending::new(&settings, scheduler, congestion, count),
            receiving: Receiving::new(&settings),
            subflows: Subflows::with_capacity(count),
            paths: Paths { known, own: Addresses::new(local, &announce), race },
            peer_clock: PeerClock::default(),
            lifetime: Lifetime::default(),
            pending: Pending::default(),
            frame: Frame { id, side, settings },
        }
    }

    // ---- for applications ----

    /// Takes as much of `bytes` as the send buffer has room for; returns how much that was. Zero after [`Self::finish`].
    pub fn write(&mut self, cx: &mut Cx<'_>, bytes: Bytes) -> usize {
        self.sending.write(&mut cx.scope(&self.frame), &mut self.subflows, bytes)
    }

    /// The next `len` bytes are a message, late after `deadline`: for schedulers. Refused if `len` is 0, or while one is not wholly written.
    pub fn begin_message(&mut self, len: u64, deadline: Option<Instant>) -> bool {
        self.sending.begin_message(len, deadline)
    }

    /// Bytes that [`Self::write`] would take now.
    pub fn writable(&self) -> u64 {
        self.sending.stream.room()
    }

    /// Bytes written and not acknowledged by the peer.
    pub fn unacknowledged(&self) -> u64 {
        self.sending.stream.unacknowledged()
    }

    /// No more will be written: the stream ends here.
    pub fn finish(&mut self, cx: &mut Cx<'_>) {
        self.sending.finish(&mut cx.scope(&self.frame));
        self.settle(cx);
    }

    /// The next bytes of the stream.
    #[inline]
    pub fn read(&mut self, cx: &mut Cx<'_>) -> Option<Bytes> {
        let (range, bytes) = self.receiving.read(cx.now, &mut self.subflows)?;
        cx.scope(&self.frame).record(None, Event::Delivered(range));
        Some(bytes)
    }

    /// Everything that the peer wrote was read, and it will write no more.
    pub fn read_finished(&self) -> bool {
        self.receiving.is_read()
    }

    /// Ends the connection at once: MP_FASTCLOSE on every subflow, or RST without MPTCP (RFC 8684 §3.5).
    pub fn abort(&mut self, cx: &mut Cx<'_>) {
        self.break_off(cx, CloseReason::Aborted);
        self.settle(cx);
    }

    // ---- for drivers ----

    /// Number of the connection in traces.
    pub fn id(&self) -> ConnId {
        self.frame.id
    }

    /// The connection speaks MPTCP (and has not fallen back).
    pub fn is_multipath(&self) -> bool {
        self.session.is_multipath()
    }

    /// Our token, by which the peer's joins name the connection; `None` without MPTCP.
    pub fn token(&self) -> Option<u32> {
        self.session.token()
    }

    /// The subflows that exist now.
    pub fn subflows(&self) -> impl Iterator<Item = (PathId, FourTuple, State)> + '_ {
        self.subflows.iter().map(|s| (s.id, s.tuple, s.state))
    }

    /// The connection's part in the endpoint's ensemble.
    pub(crate) const fn member_mut(&mut self) -> &mut Member {
        self.sending.member_mut()
    }

    /// The scheduler's view.
    pub fn view(&self) -> &View {
        self.sending.view()
    }

    /// The connection ended, and its subflows are gone.
    pub fn is_closed(&self) -> bool {
        self.lifetime.closed && self.subflows.is_empty()
    }

    /// The connection ended; subflows may be left.
    pub(crate) fn has_ended(&self) -> bool {
        self.lifetime.closed
    }

    /// The connection ended in order, everything was read, and that was polled: only old duplicates are waited for (TIME-WAIT).
    pub(crate) fn only_lingers(&self) -> bool {
        self.pending.over && self.read_finished() && self.subflows.iter().all(|s| s.state == State::TimeWait)
    }

    /// The connection [is closed](Self::is_closed), and that was polled.
    pub(crate) fn is_over(&self) -> bool {
        self.pending.over && self.is_closed()
    }

    /// Sets whether a path is a backup, and tells the peer with MP_PRIO (RFC 8684 §3.3.8).
    pub fn set_backup(&mut self, id: PathId, backup: bool) {
        if self.paths.set_backup(self.session.mode(), &mut self.subflows, id, backup) {
            self.sending.on_backup(id);
        }
    }

    /// Adds a path, or sets backup flag, policy and MSS of one. A client joins over it at once, even if it was lost or withdrawn.
    pub fn set_path(&mut self, path: PathSetup) {
        self.set_options(path.id, path.backup, path.policy);
        self.sending.set_mss(&self.frame.settings, &mut self.subflows, path.id, path.mss);
        self.paths.known.set(path);
    }

    /// Sets backup flag (see [`Self::set_backup`]) and policy of a path, if the path is known.
    pub fn set_options(&mut self, id: PathId, backup: bool, policy: PathPolicy) {
        self.sending.set_policy(id, policy);
        self.paths.known.set_policy(id, policy);
        self.set_backup(id, backup);
    }

    /// Sets the most payload bytes of a segment on a path, if the path is known; what is bound to it or under way is cut.
    pub fn set_mss(&mut self, id: PathId, mss: u32) {
        self.paths.known.set_mss(id, mss);
        self.sending.set_mss(&self.frame.settings, &mut self.subflows, id, Some(mss));
    }

    /// A router on a path has dropped our packet with sequence number `seq`, and carries none above `mtu` bytes.
    pub(crate) fn on_too_big(&mut self, cx: &mut Cx<'_>, path: PathId, seq: SeqNumber, mtu: u32) {
        let mss = self.sending.on_too_big(&mut cx.scope(&self.frame), &mut self.subflows, path, (seq, mtu));
        mss.into_iter().for_each(|mss| self.paths.known.set_mss(path, mss));
    }

    /// Sets the contents of the device by which the path leaves. Valid for the next round.
    pub fn set_device(&mut self, id: PathId, device: Device) {
        self.sending.set_device(id, device);
    }

    /// Puts another scheduler in place of the present one. What that one bound and did not send is bound again; what is in
    /// flight stays. Congestion control has no such method: its windows are the state of the subflows themselves.
    pub fn set_scheduler(&mut self, cx: &mut Cx<'_>, name: SchedulerName, mut scheduler: Box<dyn Scheduler>) {
        scheduler.seed(cx.rng.fork("scheduler"));
        self.sending.set_scheduler(&mut cx.scope(&self.frame), &mut self.subflows, name, scheduler);
    }

    /// Announces an address of ours with ADD_ADDR, until it is echoed or was sent four times (RFC 8684 §3.4.1). With a port, joins to that
    /// port are accepted too. False if `id` is 0 or another address's, or the address has an ID already; see [`Self::address_id`].
    pub fn announce(&mut self, cx: &mut Cx<'_>, id: u8, address: impl Into<OwnEnd>, port: Option<u16>) -> bool {
        self.paths.own.announce(cx.now, id, address.into(), port)
    }

    /// The ID under which the peer knows a local end, if it has one.
    pub fn address_id(&self, local: SocketAddr) -> Option<u8> {
        self.paths.address_id(&self.subflows, local)
    }

    /// Tells the peer with REMOVE_ADDR that an address is gone, and closes the subflows over it (RFC 8684 §3.4.2). ID 0: the first one's.
    pub fn withdraw(&mut self, cx: &mut Cx<'_>, id: u8) {
        self.paths.withdraw(cx.now, &mut self.subflows, id);
        self.manage_paths(cx);
        self.settle(cx);
    }

    /// Resets a subflow with MP_TCPRST (RFC 8684 §3.6). A client joins over the path again if the reason is transient. False: there is none.
    /// Without MPTCP there is no other: the connection ends with [`CloseReason::Aborted`], unless both ends have closed it.
    pub fn reset_path(&mut self, cx: &mut Cx<'_>, id: PathId, reason: Reason) -> bool {
        let is_there = self.paths.reset(&mut self.subflows, id, reason);
        self.settle(cx);
        is_there
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.pending.poll(&mut self.receiving.readable, &mut self.sending.stream.writable)
    }

    /// There is something in [`Self::poll_event`].
    pub(crate) fn has_events(&self) -> bool {
        self.pending.is_any(self.receiving.readable, self.sending.stream.writable)
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        Some(self.deadline()).filter(|at| *at < Instant::MAX)
    }
}
