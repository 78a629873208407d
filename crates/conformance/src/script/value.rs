//! A script as values.

use super::pattern::{Pattern, Sort};
use core::net::IpAddr;
use core::time::Duration;

/// A script: what it stands for, how the host is set, and what happens.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its file, relative to the suite's root.
    pub file: String,
    /// The comment before the first line, in one line.
    pub title: String,
    /// The clauses that it tests; the first is the one it stands under.
    pub clauses: Vec<Clause>,
    /// What Linux does.
    pub kernel: KernelWord,
    /// What the engine does.
    pub engine: EngineWord,
    /// How the host under test is set.
    pub settings: Settings,
    /// Paths that differ from the usual ones.
    pub paths: Vec<PathLine>,
    /// Paths over which the host joins by itself.
    pub joins: Vec<JoinLine>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

impl Script {
    /// The host under test opens the connection.
    pub fn is_client(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.what, What::Call(Call::Connect)))
    }
}

/// A section of a document, and a rule of it in words where it has many: `rfc9293 3.10.7.4 RST`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clause {
    /// `rfc8684`.
    pub document: String,
    /// `3.1`.
    pub section: String,
    /// `RST`, or nothing.
    pub rule: String,
}

/// What a script says of Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelWord {
    /// It passes.
    Passes,
    /// It fails, for this reason.
    Differs(String),
    /// It cannot be asked, for this reason.
    Skipped(String),
}

/// What a script says of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineWord {
    /// It passes.
    Passes,
    /// It fails by a defect.
    Fails(String),
    /// It fails on purpose.
    LeavesOut(String),
}

/// How the host under test is set. What is not named is as Linux has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Speak MPTCP.
    pub mptcp: bool,
    /// Ask for DSS checksums.
    pub checksum: bool,
    /// The MSS that the host announces: the MTU less IP and TCP header.
    pub mss: u16,
    /// Bytes of the receive window.
    pub recv_buffer: u64,
    /// Bytes of the send buffer.
    pub send_buffer: u64,
    /// Offer timestamps.
    pub timestamps: bool,
    /// Offer SACK.
    pub sack: bool,
    /// Hold small segments back (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Restart the window after idling.
    pub idle_restart: bool,
    /// RACK-TLP; else RFC 6675.
    pub rack: bool,
    /// Acknowledge every segment at once.
    pub quick_ack: bool,
    /// Initial window in segments.
    pub initial_window: u32,
    /// Least retransmission timeout.
    pub rto_min: Duration,
    /// Greatest retransmission timeout.
    pub rto_max: Duration,
    /// Repeats of a SYN.
    pub syn_retries: u32,
    /// Repeats of a segment.
    pub retries: u32,
    /// Time in TIME-WAIT.
    pub time_wait: Duration,
    /// Probe an idle peer after this.
    pub keep_alive: Option<Duration>,
    /// Packet scheduler of the engine.
    pub scheduler: String,
    /// Congestion control.
    pub congestion: String,
    /// Join to announced addresses.
    pub accept_announced: bool,
    /// Bytes of data sequence numbers and data acknowledgments: 4 or 8.
    pub dss: u8,
    /// IPv6.
    pub ipv6: bool,
    /// A client's paths race for the first subflow, with so much time between their SYNs.
    pub race: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mptcp: true,
            checksum: false,
            mss: 1460,
            recv_buffer: 1 << 20,
            send_buffer: 1 << 20,
            timestamps: false,
            sack: true,
            nagle: false,
            idle_restart: true,
            rack: true,
            quick_ack: false,
            initial_window: 10,
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(120),
            syn_retries: 6,
            retries: 15,
            time_wait: Duration::from_secs(60),
            keep_alive: None,
            scheduler: "minrtt".into(),
            congestion: "reno".into(),
            accept_announced: false,
            dss: 8,
            ipv6: false,
            race: None,
        }
    }
}

/// An end of a path, by whose address it is and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// Of the host under test: `local.1`.
    Local(u8),
    /// Of the script: `peer.1`.
    Peer(u8),
    /// Written out.
    Literal(IpAddr),
}

/// `path 1 local.0 peer.1 port 5000`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLine {
    /// Which.
    pub path: u8,
    /// Index of the host's address.
    pub local: u8,
    /// Index of the peer's address.
    pub peer: u8,
    /// The peer's port, if not the usual one.
    pub port: Option<u16>,
    /// The host's port, if not the usual one.
    pub local_port: Option<u16>,
}

/// `join 1 backup`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinLine {
    /// Over which path.
    pub path: u8,
    /// As a backup.
    pub backup: bool,
}

/// When a step is due after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// At the earliest.
    pub least: Duration,
    /// At the latest.
    pub most: Most,
}

/// The end of the time in which a packet is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    /// At that time.
    Exactly,
    /// `+0.2~0.3`
    Until(Duration),
    /// `+0.2~`
    Open,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// When.
    pub after: After,
    /// What.
    pub what: What,
}

/// What a line does or expects.
#[derive(Clone, Debug)]
pub enum What {
    /// The peer sends a packet.
    In(u8, Pattern),
    /// The host sends a packet.
    Out(u8, Pattern, Need),
    /// The host sends nothing for so long.
    Quiet(Duration),
    /// The application calls.
    Call(Call),
    /// The connection is in this state.
    State(State),
    /// A counter has this value.
    Count(Counter, String, u64),
    /// From here on a path's numbers are those of a new connection.
    Anew(u8),
}

/// Whether an outgoing packet must come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It must.
    Required,
    /// Once or not at all, at any time from here on.
    Optional,
    /// Any number, from here on.
    Ignored,
}

/// What an application does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Listens.
    Listen,
    /// Begins to connect over path 0.
    Connect,
    /// Takes the connection.
    Accept,
    /// Writes the next bytes of the pattern.
    Write(usize),
    /// Writes these bytes.
    WriteText(Vec<u8>),
    /// Reads so many bytes of the peer's pattern.
    Read(usize, Sort),
    /// Reads these bytes.
    ReadText(Vec<u8>),
    /// Reads the end of the stream.
    ReadEnd,
    /// There is nothing to read.
    ReadNothing,
    /// Ends its own direction.
    Shutdown,
    /// Closes the socket.
    Close,
    /// Ends the connection at once.
    Abort,
    /// Announces an address under an ID, with a port or without.
    Announce(u8, Address, Option<u16>),
    /// Takes an address back.
    Withdraw(u8),
    /// Makes a path a backup, or no longer.
    Backup(u8, bool),
    /// Resets a path's subflow.
    ResetPath(u8),
}

/// A state of the connection that the application can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The handshake is complete.
    Established,
    /// It is not.
    Opening,
    /// It speaks MPTCP.
    Multipath,
    /// It does not, or no longer.
    Fallback,
    /// It ended.
    Closed(Closed),
    /// It has not ended.
    Open,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Both directions in order.
    Finished,
    /// By the peer's RST or MP_FASTCLOSE.
    Reset,
    /// Nobody answered.
    TimedOut,
    /// The SYN was refused.
    Refused,
    /// By the application.
    Aborted,
}

/// Whose counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Violations that the engine records, by name.
    Engine,
    /// Linux's MIB, by `nstat`'s name.
    Kernel,
}
