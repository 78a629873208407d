//! Everything about a connection that a user may set. Defaults follow Linux.

use anabranch_units::{Duration, PathId};

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryKind {
    /// RACK-TLP (RFC 8985) with PRR (RFC 6937).
    Rack,
    /// SACK-based recovery of RFC 6675, no tail loss probe: the stacks of the older papers.
    Sack,
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

/// TCP settings of a subflow.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSettings {
    /// Loss recovery.
    pub recovery: RecoveryKind,
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
    /// Restart the window after idling longer than an RTO (RFC 2861).
    pub idle_restart: bool,
    /// Longest delay of an acknowledgment; zero acknowledges every segment.
    pub delayed_ack: Duration,
    /// Segments acknowledged at once after the start, so that the peer's slow start is not held back. Linux's number is 16
    /// (`TCP_MAX_QUICKACKS`), but it goes on while its window grows (`tcp_grow_window`).
    pub quick_acks: u32,
    /// Pace at 2·cwnd/srtt in slow start, 1.2·cwnd/srtt after (Linux's ratios).
    pub pacing: bool,
    /// Hold back small segments while data is outstanding (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
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
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(120),
            rto_initial: Duration::from_secs(1),
            rto_form: RtoForm::Linux,
            initial_window: 10,
            abc_limit: u32::MAX,
            idle_restart: true,
            delayed_ack: Duration::from_millis(40),
            quick_acks: 16,
            pacing: false,
            nagle: true,
            timestamps: true,
            sack: true,
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

/// Whose way of counting a receive window is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostModel {
    /// As the RFCs say: the window reaches `recv_buffer` bytes beyond what was read, whatever waits out of order, and every
    /// DATA_ACK brings the window of its own segment (RFC 8684 §3.3.5).
    #[default]
    Rfc,
    /// As Linux 6.18; see `connection/linux_window.rs`.
    Linux,
}

/// The path over which a client's connection opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstPath {
    /// The first of its list.
    #[default]
    First,
    /// This one; the first of the list if it is not there.
    On(PathId),
    /// The one over which the peer answers first, of all that were tried so far; see [`Settings::race_delay`].
    Race,
}

/// Settings of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Of each subflow.
    pub tcp: TcpSettings,
    /// Speak Multipath TCP; `false` = plain TCP without its options.
    pub mptcp: bool,
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
    /// How that window is counted.
    pub receiver_model: HostModel,
    /// How the peer's window is counted.
    pub sender_model: HostModel,
    /// The path over which a client's connection opens.
    pub first_path: FirstPath,
    /// In a race: the time from one path's SYN to the next one's, RFC 8305's Connection Attempt Delay; zero sends all at once
    /// (RobE_SIM).
    pub race_delay: Duration,
    /// First delay before a lost path is tried again, doubled up to [`Settings::REJOIN_MAX`].
    pub rejoin_after: Duration,
    /// Send what a silent path carries again elsewhere before its retransmission timeout, as soon as it has been silent
    /// for about two round trips while others deliver. A scheduler may decline.
    pub early_rescue: bool,
}

impl Settings {
    /// Longest delay between two attempts to join over a lost path.
    pub const REJOIN_MAX: Duration = Duration::from_secs(16);
    /// Time from one path's SYN to the next one's: RFC 8305 §5's value where nothing is known of a path's RTT.
    pub const RACE_DELAY: Duration = Duration::from_millis(250);
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tcp: TcpSettings::default(),
            mptcp: true,
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
            early_rescue: true,
        }
    }
}
