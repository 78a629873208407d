//! One TCP subflow: small parts that pass values. Parts do not call each other; the subflow calls them.

pub(crate) mod acceptance;
pub(crate) mod ack;
mod all;
mod ecn;
pub(crate) mod forward;
pub(crate) mod half_open;
mod handed;
pub(crate) mod handshake;
pub(crate) mod life;
pub(crate) mod mapping;
mod path_mtu;
pub(crate) mod receive;
pub(crate) mod segments;
pub(crate) mod sender;
mod shown;
pub(crate) mod stamps;
mod state;
pub(crate) mod usage;
pub(crate) mod window;

pub(crate) use all::{Handle, Lent, Subflows};
pub use state::{Move, State};

use crate::deadlines::NEVER;
use crate::four_tuple::FourTuple;
use crate::schedule::ForwardDelay;
use crate::settings::{HostModel, Settings, TcpSettings};
use ack::AckPolicy;
use anabranch_trace::PathState;
use anabranch_units::{Duration, Instant, PathId, RangeSet, SeqNumber};
use anabranch_wire::{AddAddr, MptcpOption, Packet, Reason};
use core::net::IpAddr;
use ecn::EcnState;
use handed::Handed;
use handshake::{Handshake, Terms};
use mapping::Placement;
use receive::Receiver;
use sender::Sender;
use stamps::Stamps;
use std::collections::VecDeque;
use usage::{Allowed, Pacer, Underuse, WindowUsage};
use window::SendWindow;

/// Least time between two answers of a subflow to segments that an off-path attacker may have sent: challenge ACKs
/// (RFC 5961 §7 requires a limit), and acknowledgments of segments that are not acceptable. Two ends that disagree would
/// answer each other for ever. Linux's `tcp_invalid_ratelimit`.
const ANSWER_GAP: Duration = Duration::from_millis(500);

/// Signals that wait on a subflow, at most: a flood of ADD_ADDRs is echoed no faster than acknowledgments leave.
const MAX_SIGNALS: usize = 16;

/// A [`FourTuple`] taken apart, as packets carry it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketEnds {
    pub src: IpAddr,
    pub dst: IpAddr,
    src_port: u16,
    dst_port: u16,
}

impl PacketEnds {
    /// A packet travels between these ends, the other way.
    #[inline(always)]
    pub fn answered_by(&self, packet: &Packet) -> bool {
        let Packet { src, dst, segment } = packet;
        self.src_port == segment.dst_port && self.dst_port == segment.src_port && self.src == *dst && self.dst == *src
    }
}

impl From<FourTuple> for PacketEnds {
    fn from(FourTuple { local, remote }: FourTuple) -> Self {
        Self { src: local.ip(), dst: remote.ip(), src_port: local.port(), dst_port: remote.port() }
    }
}

/// A value of each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Both<T> {
    pub ours: T,
    pub theirs: T,
}

/// How the data of a subflow was acknowledged so far (RFC 8684 §3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Not at all.
    None,
    /// Without a DATA_ACK.
    Bare,
    /// The peer answered with a DATA_ACK: options pass in both directions. Or it is plain TCP, which has none.
    Mapped,
}

/// How a subflow ends by reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    /// RST with MP_TCPRST where MPTCP is spoken.
    Because(Reason),
    /// RST with MP_FASTCLOSE: the whole connection is aborted.
    FastClose,
    /// RST with MP_FAIL: a checksum failed at this data sequence number.
    Fail(u64),
}

/// A subflow's own FIN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fin {
    /// To be sent after the last data.
    pub wanted: bool,
    /// Offset of the FIN, once sent.
    pub offset: Option<u64>,
}

/// One subflow.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub id: PathId,
    pub tuple: FourTuple,
    /// Ends of the packets that the subflow sends.
    pub ends: PacketEnds,
    pub state: State,
    /// The state that was recorded last.
    reported: PathState,
    /// Made by MP_JOIN.
    pub join: bool,
    pub answers: Answers,
    /// Reset because options did not come, or by the peer.
    broken: bool,
    pub isn: SeqNumber,
    pub peer_isn: SeqNumber,
    pub terms: Terms,
    pub handshake: Handshake,
    sender: Sender,
    /// The window that congestion control decided on last.
    allowed: Allowed,
    pub receiver: Receiver,
    pub acks: AckPolicy,
    pub ecn: EcnState,
    /// The offset that was acknowledged last (`Last.ACK.sent`).
    acked_to: u64,
    /// The window that was offered with it.
    offered: u64,
    /// The window of this subflow as a Linux peer has it from this subflow's segments: see [`Subflow::acknowledges`]. Linux also widens
    /// it to the connection's (Linux 6.18: `mptcp_check_allowed_size`), which no acknowledgment shows.
    pub taken: u64,
    stamps: Stamps,
    forward: Option<ForwardDelay>,
    /// The DATA_ACK of the segment that is being processed.
    pub data_ack: Option<u64>,
    pub placement: Placement,
    usage: WindowUsage,
    underuse: Underuse,
    /// A round trip as the receiver sees it; `None` where no part needs it.
    trip: Option<Duration>,
    /// Where its receive buffer is its own: the data that came on it and was not read, and the right edge that was offered.
    pub unread: RangeSet,
    pub own_edge: u64,
    pacer: Pacer,
    pub fin: Fin,
    pub reset: Option<Reset>,
    /// A reset is due that answers an acknowledgment of this number and changes nothing here.
    refusal: Option<SeqNumber>,
    /// Used as a backup only, by either end's wish.
    pub backup: Both<bool>,
    /// Timed out, or silent while others delivered; nothing acknowledged since.
    pub failing: bool,
    /// When the failing path is probed next; [`NEVER`]: not at all, since no other carries the data.
    path_probe: Instant,
    /// A probe of the failing path was sent and not answered.
    probed: bool,
    /// Options waiting for a pure acknowledgment to carry them.
    signals: VecDeque<MptcpOption>,
    /// A tail loss probe is to be sent.
    probe: bool,
    /// A segment just below the window is to be sent, which the peer must answer (RFC 9293 §3.8.6.1, §3.8.4).
    window_probe: bool,
    last_sent: Option<Instant>,
    pub last_heard: Instant,
    /// The window was restarted for the idle time since `last_sent`.
    idle_done: bool,
    /// The window field of the peer's last segment.
    peer_window: u16,
    /// The peer's window on this subflow.
    window: SendWindow,
    handed: Handed,
    /// When keep-alive or TIME-WAIT ends; which, follows from the state.
    linger: Instant,
    /// Keep-alive probes without an answer.
    probes: u32,
    /// A reset came that may be an attacker's, and nothing has come since this time, the first probe's.
    doubted: Option<Instant>,
    /// Earliest time of the next answer to a segment that an off-path attacker may have sent (RFC 5961 §7).
    answer_after: Instant,
    derived: all::Derived,
}

impl Subflow {
    /// A subflow about to begin its handshake.
    pub fn new(id: PathId, tuple: FourTuple, settings: &Settings, isn: SeqNumber, now: Instant) -> Self {
        let tcp: &TcpSettings = &settings.tcp;
        let acks = AckPolicy::new(tcp.delayed_ack, tcp.quick_acks);
        Self {
            id,
            tuple,
            ends: tuple.into(),
            state: State::Closed,
            reported: PathState::Opening,
            join: false,
            answers: Answers::None,
            broken: false,
            isn,
            peer_isn: SeqNumber(0),
            terms: Terms::default(),
            handshake: Handshake::new(tcp, now),
            sender: Sender::new(tcp, false),
            allowed: Allowed { cwnd: 1, ssthresh: u32::MAX },
            receiver: Receiver::default(),
            acks: if settings.receiver_model == HostModel::Linux { acks.small_when_read() } else { acks },
            ecn: EcnState::default(),
            acked_to: 1,
            offered: 0,
            taken: 0,
            stamps: Stamps::new(),
            forward: None,
            data_ack: None,
            placement: Placement::default(),
            usage: WindowUsage::new(tcp.cwnd_slack),
            underuse: Underuse::default(),
            trip: None,
            unread: RangeSet::new(),
            own_edge: 0,
            pacer: Pacer::default(),
            fin: Fin::default(),
            reset: None,
            refusal: None,
            backup: Both::default(),
            failing: false,
            path_probe: NEVER,
            probed: false,
            signals: VecDeque::new(),
            probe: false,
            window_probe: false,
            last_sent: None,
            last_heard: now,
            idle_done: false,
            peer_window: 0,
            window: SendWindow::default(),
            handed: Handed::default(),
            linger: NEVER,
            probes: 0,
            doubted: None,
            answer_after: Instant::ZERO,
            derived: all::Derived::default(),
        }
    }

    /// Moves to the next state; an impossible move leaves it as it is and says so.
    pub fn go(&mut self, by: Move) -> bool {
        match self.state.after(by) {
            Some(state) => {
                self.state = state;
                if by == Move::FinAcked {
                    self.sender.give_back();
                }
                true
            }
            None => false,
        }
    }

    /// True if a segment that an off-path attacker may have sent may be answered now; the next one only after `ANSWER_GAP`.
    pub fn may_answer(&mut self, now: Instant) -> bool {
        let may = now >= self.answer_after;
        if may {
            self.answer_after = now + ANSWER_GAP;
        }
        may
    }

    /// May carry data of the connection: handshake complete on both sides, our FIN not sent.
    pub fn may_carry(&self) -> bool {
        self.state.may_send() && self.handshake.confirmed && !self.fin.wanted && self.reset.is_none()
    }

    /// May carry data, has fallen silent, is a backup: three bits.
    #[inline(always)]
    pub(super) fn standing(&self) -> u8 {
        u8::from(self.may_carry()) | u8::from(self.failing) << 1 | u8::from(self.is_backup()) << 2
    }

    /// RFC 9293 §3.8.6: what the peer's window no longer admits is not retransmitted, but for the first packet, of which
    /// [a part](Self::cut) may leave.
    pub fn may_repeat(&self, sent: &sender::Sent) -> bool {
        sent.seq().start <= self.sender.una() || self.window.admits(sent.seq().end)
    }

    /// A join of ours whose third ACK may not have come yet.
    pub fn is_unproven(&self) -> bool {
        !self.handshake.confirmed && self.join && self.handshake.active
    }

    /// MP_PRIO informs the peer whether this is a backup (RFC 8684 §3.3.8); only the last one counts.
    pub fn signal_backup(&mut self) {
        self.signals.retain(|signal| !matches!(signal, MptcpOption::Prio { .. }));
        self.signals.push_back(MptcpOption::Prio { backup: self.backup.ours });
    }

    /// Echoes an ADD_ADDR of the peer's (RFC 8684 §3.4.1).
    pub fn echo(&mut self, announced: AddAddr) {
        if self.signals.len() < MAX_SIGNALS {
            self.signals.push_back(MptcpOption::AddAddr(AddAddr { hmac: None, ..announced }));
            self.acks.demand();
        }
    }

    /// Answers the peer's MP_FAIL in kind (RFC 8684 §3.7).
    pub fn signal_failure(&mut self, data_seq: u64) {
        if self.signals.is_empty() {
            self.signals.push_back(MptcpOption::Fail { data_seq });
        }
        self.acks.demand();
    }

    /// Has the next pure acknowledgment carry `option`.
    pub fn signal(&mut self, option: MptcpOption) {
        self.signals.push_back(option);
    }

    /// The recorder knows that its handshake was completed.
    pub fn has_opened(&self) -> bool {
        self.reported != PathState::Opening
    }

    /// Whether we use it as a backup only.
    pub fn set_backup(&mut self, backup: bool) {
        self.backup.ours = backup;
    }

    /// Whether the peer wants it used as a backup only.
    pub fn set_backup_to_peer(&mut self, backup: bool) {
        self.backup.theirs = backup;
    }

    /// The peer has acknowledged data of it in this way.
    pub fn answered(&mut self, answers: Answers) {
        self.answers = answers;
    }

    /// The segment that is being processed has a DATA_ACK of all below `upto`, which may be new.
    #[inline(always)]
    pub fn on_data_ack(&mut self, upto: u64, is_new: bool) {
        if is_new {
            // RFC 8684 §3.7: the peer's options come, also with a segment that acknowledges nothing new on the subflow.
            self.answers = Answers::Mapped;
        }
        self.data_ack = Some(upto);
    }

    /// Used as a backup only.
    pub fn is_backup(&self) -> bool {
        self.backup.ours || self.backup.theirs
    }

    /// The subflow ended before it was of any use: a join of ours was reset, because something on its path may take options off, or nothing of its
    /// data was ever acknowledged. Nothing follows from the end of one that carried no data.
    pub fn was_in_vain(&self) -> bool {
        let sent = self.sender.nxt() > 1;
        let refused = self.broken && (sent || self.reported == PathState::Opening);
        let silent = sent && self.sender.una() <= 1 && self.sender.has_timed_out();
        self.answers != Answers::Mapped && (silent || refused && self.join && self.handshake.active)
    }

    /// A join on `tuple` takes its place: same ends but for the peer's port, and it is silent.
    pub fn is_replaced_by(&self, tuple: FourTuple) -> bool {
        let (ours, theirs) = (self.tuple, tuple);
        let same = ours.local == theirs.local && ours.remote.ip() == theirs.remote.ip();
        same && ours.remote != theirs.remote && self.sender.has_timed_out()
    }
}
