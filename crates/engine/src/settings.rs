//! Everything about a connection that a user may set. Defaults follow Linux.

use crate::schedule::SenderPolicy;
use anabranch_units::{Duration, PathId};

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryKind {
    /// RACK-TLP (RFC 8985) with PRR (RFC 6937).
    Rack,
    /// SACK-based recovery of RFC 6675: the stacks of the older papers.
    Sack,
    /// As [`Self::Sack`], but what lies three packets below the highest that is SACKed is lost, as long as no reordering was
    /// seen: forward acknowledgments (Mathis and Mahdavi, SIGCOMM 1996), Linux's default until 4.15.
    Fack,
}

/// The unit by which a window grows in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckCounting {
    /// Packets, as many as [`TcpSettings::abc_limit`] lets an acknowledgment count for.
    #[default]
    Packets,
    /// Acknowledgments in congestion avoidance, and packets in slow start: Linux 3.13 to 3.19.
    AcksInAvoidance,
}

/// The slow-start threshold at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialThreshold {
    /// So many packets.
    Packets(u32),
    /// So many bytes.
    Bytes(u64),
}

impl InitialThreshold {
    /// In packets of `mss` bytes: slow start ends with the packet that reaches it.
    pub fn packets(self, mss: u32) -> u32 {
        match self {
            Self::Packets(packets) => packets,
            Self::Bytes(bytes) => u32::try_from(bytes.div_ceil(u64::from(mss.max(1)))).unwrap_or(u32::MAX),
        }
    }
}

/// The decay of a window that is not filled because the application writes too little (RFC 2861 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitedDecay {
    /// The window stays.
    #[default]
    None,
    /// After each retransmission timeout in which it was never full, half of what was not used is gone.
    Rfc2861,
    /// The same, but the time starts again with each acknowledgment that could let a window grow: Linux.
    Linux,
}

/// How the retransmission timeout is made of srtt and rttvar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoForm {
    /// srtt + max(`rto_min`, 4·deviation) as Linux does, with its estimator: the deviation's greatest value in a round
    /// trip counts, shorter round trips hardly raise it, and it falls once per round trip.
    Linux,
    /// max(`rto_min`, srtt + 4·rttvar): RFC 6298 §2.
    Rfc6298,
}

/// The owner of the receive window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveWindow {
    /// The connection's, the same on all subflows (RFC 8684 §3.3.4).
    #[default]
    Connection,
    /// Each subflow's: it has a receive buffer of its own, which the bytes fill that came on it until the application reads
    /// them. Both ends must have it so. When a subflow is lost, what it carried may find no room on the others, whose windows
    /// only that data would open (Raiciu et al., NSDI 2012, §4.2).
    Subflow,
}

/// The unit of a buffer's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferAccounting {
    /// Bytes of payload.
    #[default]
    Payload,
    /// Memory, as Linux 3.x: half of the receive buffer is offered as window (`tcp_adv_win_scale` = 1), and each segment takes
    /// a whole buffer, 2304 bytes for 1448.
    Truesize,
}

/// TCP settings of a subflow.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSettings {
    /// Loss recovery.
    pub recovery: RecoveryKind,
    /// Probe for a lost tail; `None` = with RACK only.
    pub tail_loss_probe: Option<bool>,
    /// Least retransmission timeout, or least variance term; see `rto_form`.
    pub rto_min: Duration,
    /// Greatest retransmission timeout after back-off.
    pub rto_max: Duration,
    /// Timeout before the first RTT sample (RFC 6298 §2.1).
    pub rto_initial: Duration,
    /// Form of the timeout.
    pub rto_form: RtoForm,
    /// Initial congestion window, packets (RFC 6928).
    pub initial_window: u32,
    /// Most packets that one acknowledgment counts for when a window grows: L of RFC 3465 §2.2, also in congestion
    /// avoidance. 1 counts acknowledgments (RFC 5681 §3.1), `u32::MAX` every packet, as Linux does since 4.0.
    pub abc_limit: u32,
    /// The unit of growth in congestion avoidance.
    pub ack_counting: AckCounting,
    /// Packets of the congestion window that may be free while it counts as used.
    pub cwnd_slack: u32,
    /// Slow start includes a window that equals its threshold, which it then passes by one packet.
    pub slow_start_at_threshold: bool,
    /// The slow-start threshold at the beginning; `None` = none.
    pub initial_ssthresh: Option<InitialThreshold>,
    /// Restart the window after idling longer than an RTO (RFC 2861).
    pub idle_restart: bool,
    /// Repeated timeouts make segments smaller: the path may drop larger ones silently. Then larger ones are tried (RFC 4821 §7; Linux
    /// `tcp_mtu_probing` = 1).
    pub mtu_probing: bool,
    /// The decay of a window that is not used up.
    pub limited_decay: LimitedDecay,
    /// The owner of the receive window.
    pub receive_window: ReceiveWindow,
    /// The unit of `send_buffer` and `recv_buffer`.
    pub buffer_accounting: BufferAccounting,
    /// The window begins at 64 KB and grows with what the application reads in a round trip, and the send buffer at 16 KiB and
    /// grows with the congestion windows; the buffers' sizes are their limits.
    pub autotune: bool,
    /// Longest delay of an acknowledgment; zero acknowledges every segment.
    pub delayed_ack: Duration,
    /// Segments acknowledged at once after the start, so that the peer's slow start is not held back. Linux's number is 16
    /// (`TCP_MAX_QUICKACKS`), but Linux continues while its window grows (`tcp_grow_window`).
    pub quick_acks: u32,
    /// Pace at 2·cwnd/srtt in slow start, 1.2·cwnd/srtt after (Linux's ratios).
    pub pacing: bool,
    /// Hold back small segments while data is outstanding (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Offer explicit congestion notification (RFC 3168): where the peer agrees, queues may mark packets in place of dropping them.
    pub ecn: bool,
    /// Retransmissions of a SYN before giving up.
    pub syn_retries: u32,
    /// Consecutive retransmission timeouts of one segment before the subflow is given up.
    pub retries: u32,
    /// Probe an idle peer after this long; `None` = never (RFC 9293 §3.8.4).
    pub keep_alive: Option<Duration>,
    /// How long TIME-WAIT lasts.
    pub time_wait: Duration,
}

impl Default for TcpSettings {
    fn default() -> Self {
        Self {
            recovery: RecoveryKind::Rack,
            tail_loss_probe: None,
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(120),
            rto_initial: Duration::from_secs(1),
            rto_form: RtoForm::Linux,
            initial_window: 10,
            abc_limit: u32::MAX,
            ack_counting: AckCounting::Packets,
            cwnd_slack: 0,
            slow_start_at_threshold: false,
            initial_ssthresh: None,
            idle_restart: true,
            mtu_probing: false,
            limited_decay: LimitedDecay::None,
            receive_window: ReceiveWindow::Connection,
            buffer_accounting: BufferAccounting::Payload,
            autotune: false,
            delayed_ack: Duration::from_millis(40),
            quick_acks: 16,
            pacing: false,
            nagle: true,
            timestamps: true,
            sack: true,
            ecn: false,
            syn_retries: 6,
            retries: 15,
            keep_alive: None,
            time_wait: Duration::from_secs(60),
        }
    }
}

/// Bytes of the data sequence numbers and data acknowledgments that we send; both are always understood
/// (RFC 8684 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DssWidth {
    /// The low 4 bytes. Acknowledgments have 8 all the same once the peer's sequence numbers do.
    Four,
    /// All 8 bytes.
    Eight,
}

/// The host that a sender or receiver acts like, where the RFCs leave a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostModel {
    /// As the RFCs say: the window reaches `recv_buffer` bytes beyond what was read, whatever waits out of order, and every
    /// DATA_ACK brings the window of its own segment (RFC 8684 §3.3.5).
    #[default]
    Rfc,
    /// As Linux 6.18; see [`SenderPolicy::LINUX`] and `receiving/policy.rs`.
    Linux,
}

impl From<HostModel> for SenderPolicy {
    fn from(model: HostModel) -> Self {
        match model {
            HostModel::Rfc => Self::RFC,
            HostModel::Linux => Self::LINUX,
        }
    }
}

/// The path over which a client's connection opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstPath {
    /// The first of its list.
    #[default]
    First,
    /// The path with this id; the first of the list if there is none.
    On(PathId),
    /// The one over which the peer answers first, of all that were tried so far; see [`Settings::race_delay`].
    Race,
}

/// Settings of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Settings of each subflow.
    pub tcp: TcpSettings,
    /// Speak Multipath TCP; `false` = plain TCP without its options.
    pub mptcp: bool,
    /// Never speak plain TCP instead (RFC 8684 §3.7): each SYN offers Multipath TCP, one without an offer is reset, and a
    /// connection that would fall back ends. For paths on which nothing removes options.
    pub mptcp_required: bool,
    /// Require DSS checksums (RFC 8684 §3.3).
    pub checksum: bool,
    /// Bytes of data sequence numbers and data acknowledgments.
    pub dss: DssWidth,
    /// Largest payload of a data segment in bytes, after all options.
    pub mss: u32,
    /// Bytes that the application may have written and the peer not yet acknowledged.
    pub send_buffer: u64,
    /// Bytes offered as the connection's receive window.
    pub recv_buffer: u64,
    /// How that window is counted, and when acknowledgments leave.
    pub receiver_model: HostModel,
    /// The sender's [choices](SenderPolicy), how the peer's window is counted among them.
    pub sender_model: HostModel,
    /// The path over which a client's connection opens.
    pub first_path: FirstPath,
    /// In a race: the time from one path's SYN to the next one's, RFC 8305's Connection Attempt Delay; zero sends all at once
    /// (RobE_SIM).
    pub race_delay: Duration,
    /// First delay before a lost path is tried again, doubled up to [`Settings::REJOIN_MAX`].
    pub rejoin_after: Duration,
    /// How long a connection without any subflow waits for one, as Linux's `net.mptcp.close_timeout`.
    pub orphan_timeout: Duration,
    /// Send what a silent path carries again elsewhere before its retransmission timeout, as soon as it has been silent
    /// for about two round trips while others deliver. A scheduler may decline.
    pub early_rescue: bool,
}

impl Settings {
    /// Longest delay between two attempts to join over a lost path.
    pub const REJOIN_MAX: Duration = Duration::from_secs(16);
    /// Time from one path's SYN to the next one's: RFC 8305 §5's value where nothing is known of a path's RTT.
    pub const RACE_DELAY: Duration = Duration::from_millis(250);

    /// How many bytes are taken beyond a receive window of `window` bytes with Multipath TCP: an eighth.
    pub const fn grace(window: u64) -> u64 {
        window / 8
    }

    /// The most bytes of payload that a connection holds: its buffers, and what is taken beyond the window.
    pub const fn memory(send_buffer: u64, recv_buffer: u64) -> u64 {
        send_buffer.saturating_add(recv_buffer).saturating_add(Self::grace(recv_buffer))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tcp: TcpSettings::default(),
            mptcp: true,
            mptcp_required: false,
            checksum: false,
            dss: DssWidth::Eight,
            mss: 1400,
            send_buffer: 16 << 20,
            recv_buffer: 16 << 20,
            receiver_model: HostModel::Rfc,
            sender_model: HostModel::Rfc,
            first_path: FirstPath::First,
            race_delay: Settings::RACE_DELAY,
            rejoin_after: Duration::from_secs(1),
            orphan_timeout: Duration::from_secs(60),
            early_rescue: true,
        }
    }
}
