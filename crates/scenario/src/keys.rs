//! Every key of a scenario file: its form, default and meaning. The reader, `explain`, the documentation, the JSON schema
//! and the suggestions for misspelt keys all read this table.

use crate::era;
use anabranch_workload::REQUEST_BYTES;

use Fallback::{Nothing, Required, Value};
use Section::{
    Arrivals, Connection, Cross, Hosts, Link, Loss, Path, Queue, Range, Reorder, Tcp, Timeline, Top, Traffic,
};

/// A part of a scenario file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Keys before the first header.
    Top,
    /// `[connection]`
    Connection,
    /// `[tcp]`
    Tcp,
    /// `[hosts]`
    Hosts,
    /// `[[path]]`
    Path,
    /// The table form of a path's `loss`.
    Loss,
    /// The table form of a path's `reorder`.
    Reorder,
    /// The table form of a path's or link's `queue`.
    Queue,
    /// `[[link]]`
    Link,
    /// `[[cross]]`
    Cross,
    /// The table form of a cross flow's `start` and `delay`.
    Range,
    /// `[[timeline]]`
    Timeline,
    /// `[[traffic]]`
    Traffic,
    /// The table form of the traffic's `arrivals`.
    Arrivals,
}

impl Section {
    /// All sections, in the order of a resolved scenario.
    pub const ALL: [Section; 14] = [
        Section::Top,
        Section::Connection,
        Section::Tcp,
        Section::Hosts,
        Section::Path,
        Section::Loss,
        Section::Reorder,
        Section::Queue,
        Section::Link,
        Section::Cross,
        Section::Range,
        Section::Timeline,
        Section::Traffic,
        Section::Arrivals,
    ];

    /// Dotted name; empty for the top.
    pub const fn name(self) -> &'static str {
        match self {
            Section::Top => "",
            Section::Connection => "connection",
            Section::Tcp => "tcp",
            Section::Hosts => "hosts",
            Section::Path => "path",
            Section::Loss => "path.loss",
            Section::Reorder => "path.reorder",
            Section::Queue => "path.queue",
            Section::Link => "link",
            Section::Cross => "cross",
            Section::Range => "cross.range",
            Section::Timeline => "timeline",
            Section::Traffic => "traffic",
            Section::Arrivals => "traffic.arrivals",
        }
    }

    /// True for sections that may repeat: `[[path]]`.
    pub const fn is_list(self) -> bool {
        matches!(self, Section::Path | Section::Link | Section::Cross | Section::Timeline | Section::Traffic)
    }

    /// True if it has a header of its own in a file.
    pub const fn has_header(self) -> bool {
        let of_keys =
            matches!(self, Section::Loss | Section::Reorder | Section::Queue | Section::Range | Section::Arrivals);
        !of_keys && !matches!(self, Section::Top)
    }

    /// A one-line description.
    pub const fn about(self) -> &'static str {
        match self {
            Section::Top => "the experiment as a whole",
            Section::Connection => "the multipath connection",
            Section::Tcp => "TCP on each subflow; the defaults follow Linux",
            Section::Hosts => "the host at each end",
            Section::Path => {
                "a path; the first one carries the first subflow, unless connection.first_path says otherwise"
            }
            Section::Loss => "bursty loss: two states, one draw per packet (netem's gemodel)",
            Section::Reorder => "packets that are held back while others overtake them",
            Section::Queue => "active queue management at the bottleneck of a path or a link",
            Section::Link => "a bottleneck that several paths name",
            Section::Cross => "other flows, alike, that share a bottleneck",
            Section::Range => "a range of times, of which each flow draws its own",
            Section::Timeline => "a change while the experiment runs",
            Section::Traffic => "the application",
            Section::Arrivals => "flows that begin one after the other",
        }
    }

    /// Keys of the section, in the order of a resolved scenario.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> + Clone {
        KEYS.iter().filter(move |key| key.section == self)
    }

    /// The key with this name.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// Any text.
    Text,
    /// Letters, digits, `-` and `_`.
    Name,
    /// A duration; `positive` refuses zero.
    Duration {
        /// Zero is refused.
        positive: bool,
    },
    /// Bits per second, above zero.
    Rate,
    /// Bytes.
    Size {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// A whole number.
    Integer {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// One of these whole numbers.
    Integers(&'static [i64]),
    /// A real number above `above`.
    Real {
        /// Excluded lower end.
        above: f64,
    },
    /// Percent or a fraction.
    Probability,
    /// `true` or `false`.
    Flag,
    /// One of these.
    Words(&'static [&'static str]),
    /// Money per size.
    Price,
    /// A queue's limit.
    Limit,
    /// A queue's limit or a table of [`Section::Queue`].
    Queue,
    /// The length of an average queue.
    Threshold,
    /// A duration or a table of [`Section::Range`].
    Range,
    /// A probability or a table of [`Section::Loss`].
    Loss,
    /// A probability or a table of [`Section::Reorder`].
    Reorder,
    /// `together`, or a table of [`Section::Arrivals`].
    Arrivals,
    /// A list of pairs of times.
    Outages,
    /// A file of recorded capacity.
    Trace,
    /// A scheduler, alone or with parameters.
    Scheduler,
    /// A congestion control, alone or with parameters.
    Congestion,
    /// The name of a path.
    PathName,
    /// `first`, `race`, or the name of a path.
    FirstPath,
    /// `begin`, `seed`, or a duration.
    TraceStart,
    /// The name of a link.
    LinkName,
    /// A key that may change while the experiment runs.
    Changeable,
    /// The form of another key.
    Value,
}

/// The directions to which a value applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// No direction.
    None,
    /// `{ down = …, up = … }`; a plain value applies to both.
    Both,
    /// `{ down = …, up = … }`; a plain value applies to `down` only.
    Down,
}

/// The default of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// None: the key is required.
    Required,
    /// No value, described by these words.
    Nothing(&'static str),
    /// This value, in the file's notation without quotes.
    Value(&'static str),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Section of the key.
    pub section: Section,
    /// Name in a file.
    pub name: &'static str,
    /// The form of its value.
    pub form: Form,
    /// Whether it has a value per direction.
    pub directions: Directions,
    /// Default of the key.
    pub fallback: Fallback,
    /// Meaning of the key.
    pub about: &'static str,
}

impl Key {
    /// Name with the section: `path.loss`, `seed`.
    pub fn full_name(&self) -> String {
        match self.section.name() {
            "" => self.name.into(),
            section => format!("{section}.{}", self.name),
        }
    }

    /// The directions that a plain value sets, as text; `None` if it has none.
    pub const fn scope(&self) -> Option<&'static str> {
        match self.directions {
            Directions::None => None,
            Directions::Both => Some("both; { down = …, up = … } sets each"),
            Directions::Down => Some("down (server to client) alone; { down = …, up = … } sets each"),
        }
    }

    /// Default as text.
    pub const fn default(&self) -> &'static str {
        match self.fallback {
            Fallback::Required => "required",
            Fallback::Nothing(words) | Fallback::Value(words) => words,
        }
    }
}

impl Form {
    /// The expected form as text.
    pub fn expected(&self) -> String {
        match self {
            Form::Text => "a string".into(),
            Form::Name => "a name of letters, digits, - and _, such as \"wlan\"".into(),
            Form::Duration { positive: true } => "a duration above zero, such as \"25ms\" or \"90s\"".into(),
            Form::Duration { positive: false } => "a duration, such as \"25ms\" or \"90s\"".into(),
            Form::Rate => "a rate above zero, such as \"25mbit\"".into(),
            Form::Size { min, max } => {
                format!("a size, such as \"64KB\" or \"16MiB\", or a number of bytes; {min} to {max} bytes")
            }
            Form::Integer { min, max: i64::MAX } => format!("a whole number, at least {min}"),
            Form::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Form::Integers(numbers) => numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" or "),
            Form::Real { above } => format!("a number above {above}"),
            Form::Probability => "a probability, such as \"1%\", or a fraction with a point, such as 0.01 or \"0.01\"".into(),
            Form::Flag => "true or false".into(),
            Form::Words(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or "),
            Form::Price => "a price per size, such as \"5/GB\", or per byte, such as 5e-9".into(),
            Form::Limit => "packets (\"100p\"), bytes (\"150KB\") or bandwidth-delay products (\"1bdp\")".into(),
            Form::Queue => format!("{}, or {{ kind = \"red\" or \"codel\", … }}", Form::Limit.expected()),
            Form::Threshold => "packets, such as 5, or bytes, such as \"7500B\"".into(),
            Form::Range => "a duration, such as \"25ms\", or { min = \"10ms\", max = \"50ms\" }".into(),
            Form::Loss => {
                format!("{}, or {{ kind = \"gilbert-elliott\", p = …, r = … }}", Form::Probability.expected())
            }
            Form::Reorder => format!("{}, or {{ probability = …, by = \"10ms\" }}", Form::Probability.expected()),
            Form::Arrivals => "\"together\" or { kind = \"poisson\", rate = 5.0 }".into(),
            Form::Outages => "a list of pairs of times, such as [[\"20s\", \"30s\"]]".into(),
            Form::Trace => "the name of a file in mahimahi's format".into(),
            Form::Scheduler => "a scheduler, such as \"minrtt+pr\", \"blest(delta=0.01)\" or { kind = \"blest\", delta = 0.01 }".into(),
            Form::Congestion => "a congestion control, such as \"olia\", \"cubic(beta=0.5)\" or { kind = \"cubic\", beta = 0.5 }".into(),
            Form::PathName => "the name of a [[path]]".into(),
            Form::FirstPath => "\"first\", \"race\" or the name of a [[path]]".into(),
            Form::TraceStart => "\"begin\", \"seed\", or a time in the trace, such as \"20s\"".into(),
            Form::LinkName => "the name of a [[link]]".into(),
            Form::Changeable => {
                "path.NAME.rate, path.NAME.delay, path.NAME.loss or link.NAME.rate, with .down or .up for one direction, \
                 or connection.scheduler"
                    .into()
            }
            Form::Value => "a value of the form that the changed key has".into(),
        }
    }
}

/// Every key.
pub fn keys() -> &'static [Key] {
    KEYS
}

/// The keys that `name` may mean: a full name (`path.loss`) means one, a bare one (`rate`) one per section that has it.
pub fn find_keys(name: &str) -> Vec<&'static Key> {
    let full: Vec<_> = KEYS.iter().filter(|key| key.full_name() == name).collect();
    if full.is_empty() { KEYS.iter().filter(|key| key.name == name).collect() } else { full }
}

/// Largest window that 16 bits and the greatest scale can offer (RFC 7323 §2.3).
const MAX_WINDOW: u64 = 65_535 << 14;
/// An IPv4 or IPv6 packet of 65 535 bytes less the headers and options that [`crate::full_packet`] counts.
const MAX_MSS: u64 = 65_435;
/// Far below what any path carries: options and headers are larger.
const MIN_MSS: u64 = 64;
/// Most connections of the traffic: each has its own port on the client.
pub(crate) const MAX_FLOWS: i64 = 10_000;
/// Most repetitions of a scenario.
pub const MAX_REPEAT: i64 = 1_000_000;
/// Far more than any network, and far from overflow in bits.
const MAX_BYTES: u64 = 1 << 60;

const FLAG: Form = Form::Flag;
const TIME: Form = Form::Duration { positive: false };
const POSITIVE_TIME: Form = Form::Duration { positive: true };
/// The least is the least `mss`: a buffer holds one segment.
const BUFFER: Form = Form::Size { min: MIN_MSS, max: MAX_WINDOW };
const PACKET: Form = Form::Size { min: 20, max: 65_535 };

const fn key(section: Section, name: &'static str, form: Form, fallback: Fallback, about: &'static str) -> Key {
    Key { section, name, form, directions: Directions::None, fallback, about }
}

const fn both(section: Section, name: &'static str, form: Form, fallback: Fallback, about: &'static str) -> Key {
    Key { section, name, form, directions: Directions::Both, fallback, about }
}

const fn down(name: &'static str, form: Form, fallback: Fallback, about: &'static str) -> Key {
    Key { section: Section::Path, name, form, directions: Directions::Down, fallback, about }
}

#[rustfmt::skip] // A table reads best with one key per row.
const KEYS: &[Key] = &[
    key(Top, "name", Form::Text, Nothing("the file's name"), "title of the experiment"),
    key(Top, "duration", POSITIVE_TIME, Nothing("until all traffic is delivered"), "measured time, after the warm-up; required if traffic is unlimited"),
    key(Top, "warmup", TIME, Value("0s"), "discarded time before the measured time; needs a duration"),
    key(Top, "seed", Form::Integer { min: 0, max: i64::MAX }, Value("1"), "seed of the first repetition; repetition r uses seed + r"),
    key(Top, "repeat", Form::Integer { min: 1, max: MAX_REPEAT }, Value("1"), "repetitions; a scenario without randomness is run once"),
    key(Top, "start", TIME, Value("0s"), "when the traffic starts, warm-up included; cross traffic may be under way by then"),
    key(Top, "start_jitter", TIME, Value("0s"), "random delay of the start, below this value; it breaks phase locks"),

    key(Connection, "scheduler", Form::Scheduler, Value("minrtt"), "packet scheduler; +pr adds opportunistic retransmission and penalisation, +or retransmission alone"),
    key(Connection, "congestion", Form::Congestion, Value("cubic"), "congestion control"),
    key(Connection, "mptcp", FLAG, Value("true"), "speak Multipath TCP; false = plain TCP without its options, over one path"),
    key(Connection, "checksum", FLAG, Value("false"), "require DSS checksums (RFC 8684 §3.3)"),
    key(Connection, "dss", Form::Integers(&[4, 8]), Value("8"), "bytes of the data sequence numbers and data acknowledgments that are sent (RFC 8684 §3.3)"),
    key(Connection, "mss", Form::Size { min: MIN_MSS, max: MAX_MSS }, Value("1400B"), "largest payload of a data segment, after all options"),
    key(Connection, "send_buffer", BUFFER, Value("16MiB"), "bytes written by the application and not yet acknowledged, at least mss; payload, not a kernel's memory"),
    key(Connection, "recv_buffer", BUFFER, Value("16MiB"), "the connection's receive window, at least mss"),
    key(Connection, "first_path", Form::FirstPath, Value("first"), "the path over which the client opens the connection; it joins over the others. first: the first [[path]]; NAME: the path of that name (rename it if it is first or race); race: a SYN with MP_CAPABLE over each path in turn, race_delay apart, backups last; the first answer decides, and a later SYN/ACK is reset (RFC 8305 §5, RobE_SIM of draft-amend-tcpm-mptcp-robe). The metric syns_sent is its cost"),
    key(Connection, "race_delay", TIME, Value("250ms"), "first_path = \"race\": from one path's SYN to the next one's (RFC 8305 §5: Connection Attempt Delay), 10 ms to 2 s; 0s: all at once"),
    key(Connection, "rejoin_after", POSITIVE_TIME, Value("1s"), "delay before the client joins a lost path again; doubles up to 16 s"),
    key(Connection, "orphan_timeout", POSITIVE_TIME, Value("60s"), "how long a connection without any subflow waits for one before it ends (Linux: net.mptcp.close_timeout)"),
    key(Connection, "early_rescue", FLAG, Value("true"), "retransmit a silent path's data on another path after about two round trips; false: after its retransmission timeout. linux-default always waits for the timeout"),

    key(Tcp, "era", Form::Words(era::NAMES), Nothing("none: today's TCP"), "stack of other years: replaces several of the defaults below, which single keys override; `check` prints them, docs/era.md has their sources and omissions. linux-3.x counts memory: set the kernel's buffers, not half of them"),
    key(Tcp, "recovery", Form::Words(&["rack", "sack", "fack"]), Value("rack"), "loss recovery: rack: RACK-TLP with PRR (RFC 8985, RFC 6937); sack: RFC 6675, as in older stacks; fack: as sack, but three packets below the highest SACKed one are lost until reordering is seen (Mathis and Mahdavi 1996; Linux's default until 4.15)"),
    key(Tcp, "tail_loss_probe", FLAG, Nothing("true with recovery = \"rack\", else false"), "probe for a lost tail: RFC 8985 §7 with rack; else draft-dukkipati-tcpm-tcp-loss-probe-01, as Linux 3.10 to 4.3 beside fack"),
    key(Tcp, "rto_min", POSITIVE_TIME, Value("200ms"), "least retransmission timeout, or least variance term of it; see rto_form"),
    key(Tcp, "rto_max", POSITIVE_TIME, Value("120s"), "greatest retransmission timeout after back-off"),
    key(Tcp, "rto_initial", POSITIVE_TIME, Value("1s"), "timeout before the first round-trip sample (RFC 6298 §2.1)"),
    key(Tcp, "rto_form", Form::Words(&["linux", "rfc6298"]), Value("linux"), "linux: srtt + max(rto_min, 4·deviation), the deviation falling once per round trip; rfc6298: max(rto_min, srtt + 4·rttvar)"),
    key(Tcp, "initial_window", Form::Integer { min: 1, max: 10_000 }, Value("10"), "initial congestion window in packets (RFC 6928)"),
    key(Tcp, "abc_limit", Form::Integer { min: 1, max: 1_000_000 }, Nothing("no limit, as Linux counts since 4.0"), "most packets per acknowledgment that count when a window grows: L of RFC 3465 §2.2; 1 counts acknowledgments, as in RFC 5681"),
    key(Tcp, "ack_counting", Form::Words(&["packets", "acks-in-avoidance"]), Value("packets"), "unit of growth in congestion avoidance: packets, up to abc_limit per acknowledgment; acks-in-avoidance: acknowledgments there, packets in slow start (Linux 3.13 to 3.19; cubic counts packets there too, as it made up for delayed acknowledgments)"),
    key(Tcp, "initial_ssthresh", Form::Threshold, Nothing("none: slow start continues until a loss"), "slow-start threshold at the beginning, in packets or bytes: 65535B in ns-3 until 2014 (RFC 5681 §3.1: arbitrarily high)"),
    key(Tcp, "idle_restart", FLAG, Value("true"), "shrink the congestion window after idling longer than a retransmission timeout (RFC 2861)"),
    key(Tcp, "limited_decay", Form::Words(&["none", "rfc2861", "linux"]), Value("none"), "decay of a congestion window that is not filled because the application writes too little (it never waits for room in the send buffer): none: no decay; rfc2861: each retransmission timeout without a full window removes half of the unused part, down to the initial window (§3.2); linux: the same, but each acknowledgment that may raise a window restarts that time, so that decay is rare"),
    key(Tcp, "receive_window", Form::Words(&["connection", "subflow"]), Value("connection"), "scope of the receive window: connection: one window, shared by all subflows (RFC 8684 §3.3.4); subflow: each subflow has a buffer of recv_buffer bytes for the data that came on it until the application reads it, as in simulators without a shared window; when a path dies, the others' windows may stay closed (Raiciu et al., NSDI 2012, §4.2)"),
    key(Tcp, "buffer_accounting", Form::Words(&["payload", "truesize"]), Value("payload"), "unit of send_buffer and recv_buffer: payload: bytes of payload; truesize: memory, as in Linux 3.x: the window is half of recv_buffer (tcp_adv_win_scale = 1) minus half of the memory of held segments, 2304 bytes for up to 1448; send_buffer holds as many such segments as fit"),
    key(Tcp, "autotune", FLAG, Value("false"), "buffers grow: the receive window from 64 KB to twice what the application reads in the longest round trip of all subflows and 16 segments more (Linux tcp_rcv_space_adjust, at connection level), the send buffer from 16 KiB to twice the congestion windows of all subflows (tcp_sndbuf_expand), up to recv_buffer and send_buffer"),
    key(Tcp, "delayed_ack", TIME, Value("40ms"), "longest delay of an acknowledgment; 0s acknowledges every segment"),
    key(Tcp, "quick_acks", Form::Integer { min: 0, max: 1_000_000 }, Value("16"), "segments acknowledged at once after the start; Linux continues while its window grows"),
    key(Tcp, "pacing", FLAG, Value("false"), "pace at 2·cwnd/srtt in slow start and 1.2·cwnd/srtt after it"),
    key(Tcp, "nagle", FLAG, Nothing("true for bulk; else false, because applications sensitive to delay set TCP_NODELAY"), "hold back small segments while data is outstanding (RFC 9293 §3.7.4)"),
    key(Tcp, "timestamps", FLAG, Value("true"), "offer timestamps (RFC 7323)"),
    key(Tcp, "sack", FLAG, Value("true"), "offer selective acknowledgments (RFC 2018)"),
    key(Tcp, "ecn", FLAG, Value("false"), "offer explicit congestion notification (RFC 3168) on every subflow; queues with ecn = true then mark packets in place of dropping them, and the sender reduces its window without a loss. docs/ecn.md"),
    key(Tcp, "syn_retries", Form::Integer { min: 0, max: 255 }, Value("6"), "retransmissions of a SYN before giving up"),
    key(Tcp, "retries", Form::Integer { min: 1, max: 255 }, Value("15"), "consecutive timeouts of one segment before the subflow is given up. A client then joins over its path again (rejoin_after). A server, which cannot join, gives a subflow up only if no other one can carry data; until then it continues to try"),
    key(Tcp, "keep_alive", POSITIVE_TIME, Nothing("never"), "probe an idle peer after this long (RFC 9293 §3.8.4)"),
    key(Tcp, "time_wait", TIME, Value("60s"), "how long TIME-WAIT lasts"),

    key(Hosts, "sender", Form::Words(&["engine", "linux"]), Value("engine"), "the server's host, which sends bulk data: this engine or the Linux kernel"),
    key(Hosts, "receiver", Form::Words(&["engine", "linux"]), Value("engine"), "the client's host, which connects"),
    key(Hosts, "sender_model", Form::Words(&["rfc", "linux"]), Value("rfc"), "rule by which a sending engine counts the peer's window. rfc: a DATA_ACK carries the window of its own segment (RFC 8684 §3.3.5); linux: the window of its subflow, which a duplicate acknowledgment does not shrink, so that the sender sometimes overruns the receiver's window; the scheduler linux-default then fills that to the last byte, ends bursts with a page, waits for what is left of the subflows' timers, and uses silent paths until they are stale. docs/lab/tight-receiver.md, docs/lab/choices.md"),
    key(Hosts, "receiver_model", Form::Words(&["rfc", "linux"]), Value("rfc"), "rule by which an engine counts its receive window. rfc: recv_buffer beyond the data read, regardless of out-of-order data (RFC 8684 §3.3.5); linux: out-of-order data reduces the window, half of the memory counts until every subflow has carried data, windows are in whole units of the window scale, only the subflow that freed much advertises it, and out-of-order data that ends beyond the window is dropped although its subflow acknowledged it. docs/lab/tight-receiver.md"),
    key(Hosts, "ip", Form::Integers(&[4, 6]), Value("4"), "IP version"),

    key(Path, "name", Form::Name, Required, "unique among paths and links"),
    both(Path, "rate", Form::Rate, Nothing("required, unless trace or link is given"), "capacity of the path's own bottleneck; IP header and overhead count"),
    both(Path, "trace", Form::Trace, Nothing("a fixed rate"), "recorded capacity in mahimahi's format instead of a rate: one millisecond per line, at which 1500 bytes may leave"),
    key(Path, "trace_start", Form::TraceStart, Value("begin"), "the part of the trace at time 0. begin: its beginning, so that every repetition is the same draw; seed: a place that each repetition draws from its seed, the same part of the way through the traces of all paths that say seed, so that traces of one length stay aligned; a time such as 20s: that place in every repetition"),
    both(Path, "link", Form::LinkName, Nothing("a bottleneck of its own"), "the shared link that is the path's bottleneck, instead of rate, trace and queue"),
    both(Path, "delay", TIME, Required, "one-way propagation delay"),
    both(Path, "queue", Form::Queue, Value("1bdp"), "capacity of the queue at the bottleneck, without the packet in transmission; 1bdp = initial rate (trace: mean) × the sum of both one-way delays, at least 10 full packets (mss + 80 bytes, IPv6: 100, + overhead)"),
    down("loss", Form::Loss, Value("0%"), "random loss after the bottleneck, of every packet, SYNs and ACKs too"),
    down("reorder", Form::Reorder, Value("0%"), "packets held back so that others overtake them"),
    down("duplicate", Form::Probability, Value("0%"), "probability that a packet arrives twice"),
    down("corrupt", Form::Probability, Value("0%"), "probability that a packet arrives with a wrong checksum, and is dropped there"),
    both(Path, "outage", Form::Outages, Value("[]"), "times in which no packet arrives, from the start of the run, warm-up included: [[\"20s\", \"30s\"]]"),
    both(Path, "overhead", Form::Integer { min: -39, max: 65_535 }, Value("0"), "bytes added to each packet's size; may be negative, to match a stated packet size"),
    both(Path, "device", FLAG, Value("false"), "the bottleneck, own or shared, is the sending host's own device, whose queue its scheduler can read (qaware)"),
    key(Path, "backup", FLAG, Value("false"), "used only if no other path works (RFC 8684 §3.3.8)"),
    key(Path, "price", Form::Price, Value("0/GB"), "price of data on this path; used by scheduler cost"),
    key(Path, "cap", Form::Size { min: 1, max: MAX_BYTES }, Nothing("no limit"), "payload that the path's tariff includes, counted at the sender, with retransmissions; used by scheduler cost"),
    key(Path, "weight", Form::Real { above: 0.0 }, Nothing("the path's rate (window over RTT), or 1 if another path has a weight"), "share of the traffic relative to the other paths' weights; used by scheduler weighted"),

    key(Loss, "kind", Form::Words(&["gilbert-elliott"]), Required, "the model of loss"),
    key(Loss, "p", Form::Probability, Required, "probability of going from good to bad, per packet"),
    key(Loss, "r", Form::Probability, Required, "probability of going from bad to good, per packet"),
    key(Loss, "h", Form::Probability, Value("0%"), "probability of delivery in the bad state"),
    key(Loss, "k", Form::Probability, Value("100%"), "probability of delivery in the good state"),

    key(Reorder, "probability", Form::Probability, Required, "probability that a packet is held back"),
    key(Reorder, "by", TIME, Value("10ms"), "how long a packet is held back"),

    key(Queue, "kind", Form::Words(&["red", "codel"]), Required, "red: Random Early Detection (Floyd & Jacobson 1993, as in ns-2); codel: Controlled Delay (RFC 8289)"),
    key(Queue, "limit", Form::Limit, Nothing("1bdp for red, 1000p for codel"), "capacity of the queue, as in a queue without a kind"),
    key(Queue, "ecn", FLAG, Value("false"), "mark ECN-capable packets (RFC 3168) in place of dropping them early; red: only while the average queue is below max; a full queue drops all the same"),
    key(Queue, "min", Form::Threshold, Value("5"), "red: average queue from which packets are dropped early, in packets or bytes (thresh_ of ns-2); 0: 5 packets, or half of the packets of 5 ms if that is more"),
    key(Queue, "max", Form::Threshold, Nothing("three times min"), "red: average queue at which the drop probability is max_p (maxthresh_); 0: three times min"),
    key(Queue, "max_p", Form::Probability, Value("10%"), "red: drop probability at max (1/linterm_)"),
    key(Queue, "weight", Form::Probability, Value("0.002"), "red: weight of the newest queue length in the average (q_weight_); 0: 1 - exp(-1/C), C = mean packets per second"),
    key(Queue, "gentle", FLAG, Value("true"), "red: beyond max the probability rises to 1 at twice max; false: it is 1 at once"),
    key(Queue, "wait", FLAG, Value("false"), "red: no early drop before 1/p packets have come since the last (ns-2's default); false: drops are uniform in 1 to 1/p, as in the paper"),
    key(Queue, "mean_packet", PACKET, Value("500B"), "red: mean size of a packet (mean_pktsize_): how fast the average falls while the queue is idle; thresholds in bytes drop larger packets more often in proportion to it"),
    key(Queue, "target", POSITIVE_TIME, Value("5ms"), "codel: acceptable standing delay"),
    key(Queue, "interval", POSITIVE_TIME, Value("100ms"), "codel: time for which the delay may exceed target; about the longest round trip"),

    key(Link, "name", Form::Name, Required, "unique among paths and links"),
    both(Link, "rate", Form::Rate, Nothing("required, unless trace is given"), "capacity"),
    both(Link, "trace", Form::Trace, Nothing("a fixed rate"), "recorded capacity in mahimahi's format, instead of a rate"),
    both(Link, "queue", Form::Queue, Value("1bdp"), "capacity of the queue; 1bdp uses the longest path that names the link"),

    key(Cross, "kind", Form::Words(&["tcp", "tcp-limited", "udp", "udp-onoff"]), Required, "tcp: as much as TCP carries; tcp-limited: TCP whose application writes packets at exponential intervals, without Nagle's algorithm; udp: constant bit rate; udp-onoff: Pareto on and exponential off times"),
    key(Cross, "path", Form::PathName, Nothing("required, unless link is given"), "the path whose bottleneck it shares"),
    key(Cross, "link", Form::LinkName, Nothing("required, unless path is given"), "the link that it crosses"),
    key(Cross, "direction", Form::Words(&["down", "up"]), Value("down"), "direction of the data: down = server to client, as the connection's, up = client to server"),
    key(Cross, "count", Form::Integer { min: 0, max: 1000 }, Value("1"), "number of such flows; each draws its own times, rates and packets"),
    key(Cross, "start", Form::Range, Value("0s"), "when it starts, warm-up included"),
    key(Cross, "stop", TIME, Nothing("never"), "when it stops"),
    key(Cross, "congestion", Form::Congestion, Value("cubic"), "tcp, tcp-limited: its congestion control; everything else is as in [connection] and [tcp]"),
    key(Cross, "delay", Form::Range, Nothing("that of the path, or of the first path across the link"), "tcp, tcp-limited: its own one-way delay behind the bottleneck, in each direction; a path's loss and other impairments apply to it too"),
    key(Cross, "size", Form::Size { min: 1, max: MAX_BYTES }, Nothing("until the end"), "tcp: bytes to transfer; a run without a duration waits for these flows too (cross_completion_mean_s)"),
    key(Cross, "packets_per_second", Form::Real { above: 0.0 }, Nothing("required for tcp-limited"), "tcp-limited: mean number of packets that the application writes; at most 1e6"),
    key(Cross, "rate", Form::Rate, Nothing("required for udp and udp-onoff"), "udp, udp-onoff: rate while on, counting whole IP packets"),
    key(Cross, "rate_distribution", Form::Words(&["fixed", "exponential"]), Value("fixed"), "tcp-limited, udp, udp-onoff: each flow's rate is as written, or drawn with that mean"),
    key(Cross, "packet", PACKET, Value("1000B"), "udp, udp-onoff: mean size of one IP packet; tcp-limited: of one write"),
    key(Cross, "packet_distribution", Form::Words(&["fixed", "exponential"]), Value("fixed"), "tcp-limited, udp-onoff: sizes are as written, or exponential, cut to 40 to 1500 bytes, with that mean after the cut"),
    key(Cross, "on", POSITIVE_TIME, Nothing("required for udp-onoff"), "udp-onoff: mean on time"),
    key(Cross, "off", POSITIVE_TIME, Nothing("required for udp-onoff"), "udp-onoff: mean off time"),
    key(Cross, "shape", Form::Real { above: 1.0 }, Value("1.5"), "udp-onoff: shape of the Pareto distribution of on times"),

    key(Range, "min", TIME, Required, "the shortest"),
    key(Range, "max", TIME, Required, "the longest; all between are equally likely"),

    key(Timeline, "at", TIME, Required, "when, warm-up included"),
    key(Timeline, "set", Form::Changeable, Required, "the key that changes: \"path.wlan.rate\""),
    key(Timeline, "value", Form::Value, Required, "its new value"),

    key(Traffic, "kind", Form::Words(&["bulk", "frames", "request", "web"]), Required, "bulk: the server sends as much as it can; frames: it writes frames of one size at a steady pace; request: the client sends requests and the server answers them, one after the other; web: the client requests a page's objects over several connections"),
    key(Traffic, "size", Form::Size { min: 1, max: MAX_BYTES }, Nothing("bulk: until the end; else required"), "bulk: bytes to transfer; frames: bytes of a frame; request: bytes of a response; web: bytes of all objects together"),
    key(Traffic, "interval", TIME, Nothing("frames: required; request: 0s"), "frames: time from one to the next, above zero; request: time from a response to the next request"),
    key(Traffic, "count", Form::Integer { min: 1, max: 1_000_000_000 }, Nothing("until the end"), "frames, request: number of frames or requests"),
    key(Traffic, "request", Form::Size { min: *REQUEST_BYTES.start(), max: *REQUEST_BYTES.end() }, Value("100B"), "request, web: bytes of a request"),
    key(Traffic, "objects", Form::Integer { min: 1, max: 100_000 }, Nothing("required for web"), "web: number of the page's objects"),
    key(Traffic, "connections", Form::Integer { min: 1, max: MAX_FLOWS }, Value("6"), "web: connections, opened together at the start, each of which requests the next object when one is complete; at most as many as there are objects"),
    key(Traffic, "connections_per", Form::Words(&["page", "object"]), Value("page"), "web: page: the connections last as long as the page and share its objects (HTTP/1.1); object: one connection per object, `connections` of them at a time, the next as soon as an object is complete (HTTP/1.0, RFC 1945 §1.3)"),
    key(Traffic, "sizes", Form::Words(&["equal", "lognormal"]), Value("equal"), "web: distribution of the page's bytes over its objects: equal, or lognormal (σ = 1.318 of the logarithm, Barford and Crovella 1998) and scaled to the page's size"),
    key(Traffic, "flows", Form::Integer { min: 1, max: MAX_FLOWS }, Value("1"), "bulk, frames, request: number of simultaneous instances, each on its own connection"),
    key(Traffic, "arrivals", Form::Arrivals, Value("together"), "when the flows begin: all at the start, or at random times after it"),

    key(Arrivals, "kind", Form::Words(&["poisson"]), Required, "poisson: with exponential times between them"),
    key(Arrivals, "rate", Form::Real { above: 0.0 }, Required, "mean arrivals per second"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal that is wrapped would carry its line break and blanks into pages, lists and the schema.
    #[test]
    fn texts_are_one_line() {
        for key in KEYS {
            assert!(
                !format!("{}{}{}", key.about, key.default(), key.form.expected()).contains('\n'),
                "{}",
                key.full_name()
            );
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<String> = KEYS.iter().map(Key::full_name).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn full_names_find_one_key_and_bare_ones_every_key() {
        assert_eq!(find_keys("path.rate").len(), 1);
        assert_eq!(find_keys("rate").len(), 4);
        assert_eq!(find_keys("seed")[0].default(), "1");
        assert!(find_keys("nonsense").is_empty());
    }
}
