//! A script as values.

use super::pattern::{Address, Pattern, Sort};
use core::time::Duration;

/// A script: its clauses, the host's settings, and the steps.
#[derive(Clone, Debug)]
pub struct Script {
    /// File of the script, relative to the suite's root.
    pub file: String,
    /// The comment before the first line, in one line.
    pub title: String,
    /// The clauses that it tests; the page lists it under the first.
    pub clauses: Vec<Clause>,
    /// The result that Linux gives.
    pub kernel: KernelWord,
    /// The result that the engine gives.
    pub engine: EngineWord,
    /// The settings of the host under test.
    pub settings: Settings,
    /// Paths that differ from the defaults.
    pub paths: Vec<PathLine>,
    /// Paths over which the host joins on its own.
    pub joins: Vec<JoinLine>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Script {
    /// The host under test opens the connection.
    pub fn is_client(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.what, What::Call(Call::Connect)))
    }
}

/// A section of a document, and the name of a rule in a section that has many: `rfc9293 3.10.7.4 RST`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clause {
    /// `rfc8684`.
    pub document: String,
    /// `3.1`.
    pub section: String,
    /// `RST`, or nothing.
    pub rule: String,
}

/// The expected result for Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelWord {
    /// The kernel passes.
    Passes,
    /// The kernel fails, for this reason.
    Differs(String),
    /// The script cannot be tested with a kernel, for this reason.
    Skipped(String),
}

/// The expected result for the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineWord {
    /// The engine passes.
    Passes,
    /// The engine fails because of a defect.
    Fails(String),
    /// The engine fails on purpose: it leaves the clause out.
    LeavesOut(String),
}

/// Settings of the host under test. Defaults are Linux's.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Speak MPTCP.
    pub mptcp: bool,
    /// Require DSS checksums.
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
    /// Offer ECN.
    pub ecn: bool,
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
    /// A client's paths race for the first subflow; the time between their SYNs.
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
            ecn: false,
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

/// `path 1 local.0 peer.1 port 5000`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLine {
    /// The number of the path.
    pub path: u8,
    /// Index of the host's address.
    pub local: u8,
    /// Index of the peer's address.
    pub peer: u8,
    /// The peer's port, if not the default.
    pub port: Option<u16>,
    /// The host's port, if not the default.
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

/// When a step is due after the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// The earliest time.
    pub least: Duration,
    /// The latest time.
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

/// A line of the script.
#[derive(Clone, Debug)]
pub struct Step {
    /// Number of the step's line.
    pub line: usize,
    /// Text of the step.
    pub text: String,
    /// The time.
    pub after: After,
    /// The action or expectation.
    pub what: What,
}

/// The action or expectation of a line.
#[derive(Clone, Debug)]
pub enum What {
    /// The peer sends a packet.
    In(u8, Pattern),
    /// The host sends a packet.
    Out(u8, Pattern, Need),
    /// The host sends nothing for this time.
    Quiet(Duration),
    /// The application calls.
    Call(Call),
    /// The connection is in this state.
    State(State),
    /// A counter has this value.
    Count(Counter, String, u64),
    /// From here on the path carries a new connection.
    Anew(u8),
}

/// Whether an expected packet must come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The host must support this.
    Required,
    /// At most once, at any time from here on.
    Optional,
    /// Any number of times, from here on.
    Ignored,
}

/// A call of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Listens.
    Listen,
    /// Begins to connect over path 0.
    Connect,
    /// Accepts the connection.
    Accept,
    /// Writes the next bytes of the pattern.
    Write(usize),
    /// Writes these bytes.
    WriteText(Vec<u8>),
    /// Reads this many bytes of the peer's pattern.
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
    /// Withdraws an address.
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
    /// The handshake is not complete.
    Opening,
    /// The connection speaks MPTCP.
    Multipath,
    /// The connection speaks plain TCP, from the start or after a fallback.
    Fallback,
    /// The connection ended.
    Closed(Closed),
    /// The connection has not ended.
    Open,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Both directions in order.
    Finished,
    /// The peer's RST or MP_FASTCLOSE ended it.
    Reset,
    /// No answer came.
    TimedOut,
    /// The SYN was refused.
    Refused,
    /// The application ended it.
    Aborted,
}

/// The owner of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Violations that the engine records, by name.
    Engine,
    /// Linux's MIB, by `nstat`'s name.
    Kernel,
}
