//! A Multipath TCP connection: subflows below, one stream of bytes above (RFC 8684).
//!
//! Order of calls: `handle_*` whenever something came or is due, then `poll_transmit` until it gives nothing, then
//! `poll_event`; sleep until `poll_timeout`.

mod addresses;
mod close;
mod data;
mod fallback;
mod input;
mod join;
mod linux_window;
pub(crate) mod mapping;
mod open;
mod options;
mod output;
mod paths;
mod race;
mod reassembly;
mod room;
mod scheduling;
mod send_buffer;
mod timers;

pub(crate) use open::{asked, fresh_key, offers_multipath};
pub use paths::PathSetup;

use crate::congestion::CongestionControl;
use crate::cx::Cx;
use crate::schedule::{Assignment, Cause, Device, Scheduler, SchedulerEvent, View};
use crate::settings::{HostModel, Settings};
use crate::subflow::forward::PeerClock;
use crate::subflow::{FourTuple, State, Subflow};
use addresses::Addresses;
use anabranch_trace::{CloseReason, Event, Origin, SchedulerName, Violation};
use anabranch_units::{ConnId, DataSeq, Duration, Instant, PathId, Range, Side};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use fallback::{Failure, Infinite};
use paths::PathManager;
use race::Race;
use reassembly::Reassembly;
use room::Room;
use send_buffer::SendBuffer;

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

/// What the connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// MPTCP was offered or requested and is not agreed yet.
    Opening,
    /// MPTCP. `confirmed`: the peer has shown that it got our keys (RFC 8684 §3.1).
    Multipath { confirmed: bool },
    /// Plain TCP: never offered, refused, or fallen back to (RFC 8684 §3.7).
    Plain,
}

/// Keys, and what is derived from them (RFC 8684 §3.1).
#[derive(Clone, Copy, Debug, Default)]
struct Keys {
    local: u64,
    remote: u64,
    local_token: u32,
    remote_token: u32,
    local_idsn: DataSeq,
    remote_idsn: DataSeq,
}

/// Our DATA_FIN (RFC 8684 §3.3.3). It stands at the offset where the stream ends.
#[derive(Clone, Copy, Debug)]
struct DataFin {
    /// On its way, and when to send it again by itself.
    sent: Option<Instant>,
    repeats: u32,
    /// The subflows on which it is still to be sent, without payload: on every one, since one may have died unnoticed.
    due: u32,
    acked: bool,
}

/// A fixed distance between a subflow's sequence and the data sequence: plain TCP and infinite mappings.
#[derive(Clone, Copy, Debug, Default)]
struct Offset {
    sub: u64,
    data: u64,
}

/// What a driver or application is told. Each is said once until it is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// The first subflow is established.
    Established,
    /// Multipath TCP was given up for plain TCP (RFC 8684 §3.7). Where a checksum had failed, data that was changed on the
    /// way may be delivered from here on.
    FellBack,
    /// There is something to read, or the end of the stream was reached.
    Readable,
    /// There is room in the send buffer again.
    Writable,
    /// The connection ended. Nothing follows.
    Closed(CloseReason),
}

#[derive(Debug, Default)]
struct Pending {
    established: bool,
    fell_back: bool,
    readable: bool,
    writable: bool,
    closed: Option<CloseReason>,
    /// `closed` was told.
    told: bool,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    id: ConnId,
    side: Side,
    settings: Settings,
    peer_clock: PeerClock,
    scheduler: Box<dyn Scheduler>,
    congestion: Box<dyn CongestionControl>,
    view: Assignment,
    subflows: Vec<Subflow>,
    epoch: u64,
    mode: Mode,
    keys: Keys,
    /// A second subflow has come into use: the streams are no longer one subflow's sequences.
    joined: bool,
    /// The peer has sent a DSS: from then on a segment without one is no sign of plain TCP.
    dss_seen: bool,
    /// It has sent a data sequence number of 8 bytes: it must be acknowledged with 8 (RFC 8684 §3.3).
    peer_wide: bool,
    checksum: bool,
    paths: PathManager,
    race: Race,
    addresses: Addresses,
    // sending
    buffer: SendBuffer,
    /// Bytes that it may hold now.
    send_room: u64,
    /// End of the data that was sent at least once.
    sent_end: u64,
    /// The application finished writing.
    finished: bool,
    data_fin: DataFin,
    send_offset: Offset,
    wants_to_write: bool,
    window_blocked: bool,
    stalled: bool,
    // receiving
    reassembly: Reassembly,
    room: Room,
    /// Right edge of the window that was advertised last.
    announced: u64,
    /// The widest window that was ever advertised.
    widest: u64,
    peer_fin: Option<u64>,
    recv_offset: Offset,
    failure: Failure,
    /// The mapping that shows the peer a fall back, after one.
    infinite: Option<Infinite>,
    /// The end of the data that the peer had acknowledged before its newest acknowledgment.
    acked_before: u64,
    checking: data::Checking,
    // timers
    /// To what something happened since [`Self::poll_nearer`], so that it may have something to send, or a deadline that
    /// has come nearer: a set of the subflows' [`PathId::bit`]s and [`WHOLE`].
    touched: u64,
    /// Zero-window probing: when, and how often so far.
    persist: (Instant, u32),
    /// The subflow that was probed last, and when.
    asked: Option<(PathId, Instant)>,
    /// A DATA_ACK came since, or another option of a peer that speaks MPTCP.
    data_ack_heard: bool,
    /// Without any subflow since.
    orphaned: Option<Instant>,
    /// Subflows that came into use and were lost since either stream last moved.
    vain: u32,
    /// The peer closes subflows because both streams have ended, since.
    closing: Option<Instant>,
    due: Option<Cause>,
    /// When the scheduler wants to be called again, as it said in its last round.
    wakeup: Instant,
    pending: Pending,
    closed: bool,
    /// The scheduler has a value worth a trace, and what was last recorded of it.
    has_value: bool,
    last_value: Option<i64>,
}

/// The connection as a whole, beside the bits of its subflows.
const WHOLE: u64 = 1 << PathId::LIMIT;
/// All subflows, and the connection as a whole.
const ALL: u64 = u64::MAX;

/// How long a connection without any subflow waits for one, as Linux's `net.mptcp.close_timeout`.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

impl Connection {
    /// `local`: our end of the first subflow, as far as it is known.
    fn new(setup: Setup, side: Side, local: SocketAddr) -> Self {
        let Setup { id, settings, scheduler, congestion, paths, announce, accept_announced } = setup;
        let mode = if settings.mptcp { Mode::Opening } else { Mode::Plain };
        let mut view = Assignment::new(settings.tcp.nagle);
        view.set_send_buffer(settings.send_buffer, paths.len());
        if mode == Mode::Plain {
            view.set_in_sequence();
        }
        view.set_releases(settings.sender_model == HostModel::Linux);
        Self {
            has_value: scheduler.values().is_some(),
            id,
            side,
            peer_clock: PeerClock::default(),
            scheduler,
            congestion,
            view,
            subflows: Vec::with_capacity(paths.len()),
            epoch: 0,
            mode,
            keys: Keys::default(),
            joined: false,
            dss_seen: false,
            peer_wide: false,
            checksum: settings.checksum,
            paths: PathManager::new(side, paths, accept_announced, settings.rejoin_after),
            race: Race::default(),
            addresses: Addresses::new(local, &announce),
            buffer: SendBuffer::default(),
            send_room: room::send_room(&settings),
            sent_end: 0,
            finished: false,
            data_fin: DataFin { sent: None, repeats: 0, due: 0, acked: false },
            send_offset: Offset { sub: 1, data: 0 },
            wants_to_write: false,
            window_blocked: false,
            stalled: false,
            reassembly: Reassembly::default(),
            room: Room::new(&settings),
            announced: 0,
            widest: 0,
            peer_fin: None,
            recv_offset: Offset { sub: 1, data: 0 },
            failure: Failure::None,
            infinite: None,
            acked_before: 0,
            checking: data::Checking::default(),
            touched: ALL,
            persist: (Instant::MAX, 0),
            asked: None,
            data_ack_heard: true,
            orphaned: None,
            vain: 0,
            closing: None,
            due: None,
            wakeup: Instant::MAX,
            pending: Pending::default(),
            closed: false,
            last_value: None,
            settings,
        }
    }

    // ---- for applications ----

    /// Takes as much of `bytes` as the send buffer has room for; returns how much that was. Zero after [`Self::finish`].
    pub fn write(&mut self, cx: &mut Cx<'_>, mut bytes: Bytes) -> usize {
        if self.finished || self.closed {
            return 0;
        }
        let room = self.writable();
        let taken = room.min(bytes.len() as u64);
        // A full buffer leaves the application waiting, whether or not it offered more than fitted.
        self.wants_to_write = taken == room;
        self.view.set_buffer_full(self.wants_to_write);
        if taken > 0 {
            for i in 0..self.subflows.len() {
                self.note_starved(i);
            }
            bytes.truncate(taken as usize);
            let start = self.buffer.end();
            self.buffer.push(bytes);
            self.view.set_written(self.buffer.end());
            self.record(cx, None, Event::Written(Range::new(start, self.buffer.end())));
            self.due.get_or_insert(Cause::Written);
        }
        taken as usize
    }

    /// The next `len` bytes that are written belong together: schedulers that know of messages plan by them. Refused
    /// if `len` is zero, or while the message before is not wholly written.
    pub fn begin_message(&mut self, len: u64) -> bool {
        !self.finished && self.view.begin_message(len)
    }

    /// Bytes that [`Self::write`] would take now.
    pub fn writable(&self) -> u64 {
        if self.finished || self.closed { 0 } else { self.send_room.saturating_sub(self.buffer.len()) }
    }

    /// Bytes written and not acknowledged by the peer.
    pub fn unacknowledged(&self) -> u64 {
        self.buffer.len()
    }

    /// No more will be written: the stream ends here.
    pub fn finish(&mut self, cx: &mut Cx<'_>) {
        if !self.finished && !self.closed {
            self.finished = true;
            self.view.set_ended();
            self.record(cx, None, Event::WriteEnd(self.buffer.end()));
            self.due.get_or_insert(Cause::Written);
            self.settle(cx);
        }
    }

    /// The next bytes of the stream.
    pub fn read(&mut self, cx: &mut Cx<'_>) -> Option<Bytes> {
        let (range, bytes) = self.reassembly.read()?;
        self.record(cx, None, Event::Delivered(range));
        if self.room.is_sized() {
            self.right_size(cx.now);
        }
        self.window_opened();
        Some(bytes)
    }

    /// Everything that the peer wrote was read, and it will write no more.
    pub fn read_finished(&self) -> bool {
        self.peer_fin.is_some_and(|fin| self.reassembly.read_bytes() >= fin)
    }

    /// Ends the connection at once: MP_FASTCLOSE on every subflow, or RST without MPTCP (RFC 8684 §3.5).
    pub fn abort(&mut self, cx: &mut Cx<'_>) {
        self.abort_with(cx, CloseReason::Aborted);
    }

    // ---- for drivers ----

    /// Its number in traces.
    pub fn id(&self) -> ConnId {
        self.id
    }

    /// It speaks MPTCP (and has not fallen back).
    pub fn is_multipath(&self) -> bool {
        matches!(self.mode, Mode::Multipath { .. })
    }

    /// Our token, by which the peer's joins name the connection; `None` without MPTCP.
    pub fn token(&self) -> Option<u32> {
        self.settings.mptcp.then_some(self.keys.local_token)
    }

    /// The subflows that exist now.
    pub fn subflows(&self) -> impl Iterator<Item = (PathId, FourTuple, State)> + '_ {
        self.subflows.iter().map(|s| (s.id, s.tuple, s.state))
    }

    /// Counts the subflows that came and went: as long as it is the same, so is the set of [`Self::subflows`].
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What its scheduler sees.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The peer has shown that it got our SYN/ACK, or never had to.
    pub(crate) fn is_proven(&self) -> bool {
        self.subflows.first().is_none_or(|s| s.state != State::SynReceived)
    }

    /// The connection ended, and its subflows are gone.
    pub fn is_closed(&self) -> bool {
        self.closed && self.subflows.is_empty()
    }

    /// The connection ended; subflows may be left.
    pub(crate) fn has_ended(&self) -> bool {
        self.closed
    }

    /// It ended in order, everything was read, and that was told: nothing but old duplicates is waited for (TIME-WAIT).
    pub(crate) fn only_lingers(&self) -> bool {
        let over = self.closed && self.pending.told && self.read_finished();
        over && self.subflows.iter().all(|s| s.state == State::TimeWait)
    }

    /// It [is closed](Self::is_closed), and that was told.
    pub(crate) fn is_over(&self) -> bool {
        self.pending.told && self.is_closed()
    }

    /// Sets whether a path is a backup, and tells the peer with MP_PRIO (RFC 8684 §3.3.8).
    pub fn set_backup(&mut self, id: PathId, backup: bool) {
        self.paths.set_backup(id, backup);
        if let Some(i) = self.index(id).filter(|_| self.mode != Mode::Plain) {
            self.subflows[i].backup.0 = backup;
            // Before a peer is known to have our keys, they go first (RFC 8684 §3.1).
            if self.mode == (Mode::Multipath { confirmed: true }) {
                self.subflows[i].signal_backup();
            }
            self.refresh_usability();
            self.due.get_or_insert(Cause::PathChange(id));
        }
    }

    /// What the device is known to hold by which the path leaves. Good for the next round: tell it before.
    pub fn set_device(&mut self, id: PathId, device: Device) {
        if let Some(p) = self.view.path_mut(id) {
            p.device = Some(device);
        }
    }

    /// Puts another scheduler in place of the present one. What that one bound and did not send is bound anew; what is in
    /// flight stays. Congestion control has no such method: its windows are the state of the subflows themselves.
    pub fn set_scheduler(&mut self, cx: &mut Cx<'_>, name: SchedulerName, mut scheduler: Box<dyn Scheduler>) {
        if self.closed {
            return;
        }
        self.view.take_all_back();
        scheduler.seed(cx.rng.fork("scheduler"));
        self.has_value = scheduler.values().is_some();
        self.scheduler = scheduler;
        self.record(cx, None, Event::Scheduler(name));
        // Whether silent paths are usable depends on the scheduler.
        self.refresh_usability();
        for path in self.view.paths().iter().filter(|path| path.usable) {
            self.scheduler.on_event(&SchedulerEvent::PathUp { path: path.id }, &self.view);
        }
        self.due.get_or_insert(Cause::Written);
    }

    /// What the driver or application should know.
    pub fn poll_event(&mut self) -> Option<ConnectionEvent> {
        let pending = &mut self.pending;
        if core::mem::take(&mut pending.established) {
            return Some(ConnectionEvent::Established);
        }
        if core::mem::take(&mut pending.fell_back) {
            return Some(ConnectionEvent::FellBack);
        }
        if core::mem::take(&mut pending.readable) {
            return Some(ConnectionEvent::Readable);
        }
        if core::mem::take(&mut pending.writable) {
            return Some(ConnectionEvent::Writable);
        }
        let reason = pending.closed.take()?;
        pending.told = true;
        Some(ConnectionEvent::Closed(reason))
    }

    /// There is something in [`Self::poll_event`].
    pub(crate) fn has_events(&self) -> bool {
        let Pending { established, fell_back, readable, writable, closed, .. } = &self.pending;
        *established | *fell_back | *readable | *writable | closed.is_some()
    }

    // ---- shared by the parts ----

    fn index(&self, id: PathId) -> Option<usize> {
        id.place_in(&self.subflows, |s| s.id)
    }

    fn record(&self, cx: &mut Cx<'_>, path: Option<PathId>, event: Event) {
        let origin = Origin { host: Some(self.side), connection: self.id, path: path.unwrap_or_default() };
        cx.recorder.record(cx.now, origin, &event);
    }

    fn violation(&self, cx: &mut Cx<'_>, i: usize, violation: Violation) {
        self.record(cx, Some(self.subflows[i].id), Event::Violation(violation));
    }

    fn speaks_mptcp(&self) -> bool {
        matches!(self.mode, Mode::Multipath { .. })
    }
}
