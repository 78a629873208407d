//! The table: each scheduler with its rival, network and metric.

use super::Wants::{Less, More};
use super::{Network, Purpose, Verdict, Wants};

macro_rules! networks {
    ($($name:literal: $around:expr),* $(,)?) => {
        &[$(Network {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".toml")),
            around: &$around,
        }),*]
    };
}

/// Every network, in the order of the page, and those around it: what tells its paths apart, and the application, halved and
/// doubled.
pub const NETWORKS: &[Network] = networks![
    "delays": ["path.far.delay=15ms", "path.far.delay=60ms", "path.far.rate=2mbit", "path.far.rate=8mbit"],
    "way-back": ["path.near.delay.up=30ms", "path.near.delay.up=120ms", "path.far.rate=2mbit", "path.far.rate=8mbit"],
    "tight": [
        "path.far.delay=30ms", "path.far.delay=120ms", "path.far.rate=500kbit", "path.far.rate=2mbit", "recv_buffer=32KiB",
        "recv_buffer=128KiB",
    ],
    "chunks": [
        "path.far.delay=50ms", "path.far.delay=200ms", "path.far.rate=500kbit", "path.far.rate=2mbit", "traffic.size=32KB",
        "traffic.size=128KB",
    ],
    "thin": [
        "path.wide.delay=15ms", "path.wide.delay=60ms", "path.thin.rate=1mbit", "path.thin.rate=4mbit", "traffic.size=10KB",
        "traffic.size=40KB",
    ],
    "equal": [
        "path.two.delay=10ms", "path.two.delay=40ms", "path.two.rate=2mbit", "path.two.rate=8mbit", "traffic.size=10KB",
        "traffic.size=40KB",
    ],
    "lossy": [
        "path.second.delay=10ms", "path.second.delay=40ms", "path.second.loss=1.5%", "path.second.loss=6%", "traffic.size=5KB",
        "traffic.size=20KB",
    ],
    "lossy-near": ["path.near.loss=2.5%", "path.near.loss=10%", "path.far.delay=100ms", "path.far.delay=400ms"],
    "wifi-3g": ["path.wifi.loss=0.25%", "path.wifi.loss=1%", "path.3g.delay=100ms", "path.3g.delay=400ms"],
    "far-first": ["path.far.delay=30ms", "path.far.delay=120ms", "traffic.size=5KB", "traffic.size=20KB"],
    "device": ["path.lte.delay=15ms", "path.lte.delay=60ms", "cross.0.rate=3mbit", "cross.0.rate=12mbit"],
    "tariffs": ["path.lte.delay=5ms", "path.lte.delay=20ms", "traffic.size=5KB", "traffic.size=20KB"],
];

/// Held against minRTT.
const fn row(
    scheduler: &'static str,
    (network, metric, wants): (&'static str, &'static str, Wants),
    claim: &'static str,
    source: &'static str,
) -> Purpose {
    let (against, verdict, reason) = ("minrtt", Verdict::Shown, "");
    Purpose { scheduler, against, claim, source, network, metric, wants, verdict, reason }
}

impl Purpose {
    const fn against(self, against: &'static str) -> Self {
        Self { against, ..self }
    }

    const fn not_shown(self, reason: &'static str) -> Self {
        Self { verdict: Verdict::NotShown, reason, ..self }
    }
}

type Aim = (&'static str, &'static str, Wants);
const DELAYS: Aim = ("delays", "rbd_mean_packets", Less);
const WAY_BACK: Aim = ("way-back", "rbd_mean_packets", Less);
const TIGHT: Aim = ("tight", "goodput_bps", More);
const CHUNKS: Aim = ("chunks", "response_mean_s", Less);
const THIN: Aim = ("thin", "response_mean_s", Less);
const EQUAL: Aim = ("equal", "app_delay_mean_s", Less);

const KIMURA: &str = "Kimura et al., IEEE Communications Letters 2017";
const FERLIN: &str = "Ferlin et al., IFIP Networking 2016, §V";
const LE: &str = "Le and Bui, FDPS, §III";

/// Every scheduler of the registry, in its order, and the suffixes.
pub const PURPOSES: &[Purpose] = &[
    row(
        "fifo",
        ("far-first", "path.far.share", More),
        "paths are not compared: any with room takes the next segment",
        "Le and Bui, FDPS (baseline)",
    ),
    row("roundrobin", EQUAL, "a burst is spread over the paths in turn", "Linux, mptcp_rr.c"),
    row(
        "minrtt",
        ("far-first", "response_mean_s", Less),
        "short data stays on the path with the lowest round-trip time",
        "Linux, mptcp_sched.c",
    )
    .against("roundrobin"),
    row("daps", TIGHT, "planned arrivals keep the receive buffer from blocking", "Kuhn et al., ICC 2014"),
    row("daps-pull", TIGHT, "as daps", "Kuhn et al., ICC 2014"),
    row("daps-ack", TIGHT, "as daps", "Kuhn et al., ICC 2014"),
    row("daps2", TIGHT, "as daps, for two paths", "Dong et al., IEEE Access 2019, algorithm 1").not_shown(
        "In each cycle the printed rule gives the fast path one packet for each of its round trips that fits into one of the slow \
         path, and the slow path its whole window, which fills the receive window. With `rounds`, our repair, the claim comes \
         out: next row of the table.",
    ),
    row("daps2(rounds=true)", TIGHT, "as daps, for two paths", "our repair of the same"),
    row(
        "otias",
        TIGHT,
        "each segment is queued where it arrives first, so that the receive buffer does not block",
        "Yang et al., 2014",
    ),
    row("otias-module", TIGHT, "as otias", "Yang et al., 2014"),
    row("otias-paper", TIGHT, "as otias", "Yang et al., 2014"),
    row("blest", TIGHT, "a slow path that would block the window is not used", FERLIN),
    row("blest-linux", TIGHT, "as blest", "Linux, mptcp_blest.c"),
    row("cp", TIGHT, "a slower path only if the reordering fits the receive buffer", "Oh and Lee, Computer Networks 2015"),
    row("hsr", THIN, "the path that sends fastest, not the nearest", KIMURA),
    row("lws", THIN, "the path with the most room in its window, not the nearest", KIMURA),
    row("lts", THIN, "delay weighed against room in the window", KIMURA),
    row("fps", TIGHT, "what the slow path sends arrives in order, so that the window does not block", "Mirani et al., 2010"),
    row(
        "f2pdps",
        ("lossy-near", "goodput_bps", More),
        "a prediction that knows of losses is better than FPS's on lossy paths",
        "Ni et al., ICCCN 2014",
    )
    .against("fps"),
    row(
        "fps-ocps",
        ("wifi-3g", "goodput_bps", More),
        "feedback corrects FPS's predictions: more throughput",
        "Ni et al., ICC 2015, figure 5",
    )
    .against("fps"),
    row(
        "f2pdps-ocps",
        ("wifi-3g", "goodput_bps", More),
        "feedback corrects F²P-DPS's predictions: more throughput",
        "Ni et al., ICC 2015, figure 5",
    )
    .against("f2pdps"),
    row("fdps", WAY_BACK, "measured forward delays keep order where half a round trip misleads", LE),
    row("fdps-star", WAY_BACK, "as fdps", LE),
    row("kim2012", DELAYS, "a path skips what faster ones deliver meanwhile: less reordering", "Kim et al., APCC 2012"),
    row("mtcs", EQUAL, "a stream's packets go where they arrive first", "Tsai et al., IET Communications 2010"),
    row("lssctp", EQUAL, "load in proportion to window over RTT", "Abd El Al et al., Computer Communications 2004"),
    row("bas", THIN, "the path that drains its load first, by measured bandwidth", "Casetti and Gaiotto, VTC 2004"),
    row("barre", EQUAL, "blocks in proportion to window over RTT", "Barré, PhD thesis, 2011"),
    row("ecf", CHUNKS, "no slow path for the end of a chunk if the fast one is done sooner", "Lim et al., CoNEXT 2017"),
    row("ecf-linux", CHUNKS, "as ecf", "Linux, mptcp_ecf.c"),
    row("stms", TIGHT, "paths that slide together need less buffer: more throughput", "Shi et al., USENIX ATC 2018"),
    row("dems", CHUNKS, "a chunk from both ends, so that both paths finish together", "Guo et al., MobiCom 2017"),
    row("redundant", ("lossy", "response_p95_s", Less), "the first copy counts: losses do not delay", "Frommgen et al., ICC 2016"),
    row(
        "qaware",
        ("device", "app_delay_mean_s", Less),
        "the host's device queue is known at once, an RTT only later",
        "Shreedhar et al., IFIP Networking 2018",
    ),
    row("peekaboo", TIGHT, "learns whether waiting for the fast path pays", "Wu et al., JSAC 2020"),
    row("srpt-ecf", CHUNKS, "as ecf, by what is left of each message", "Jonglez et al., IFIP Networking 2020"),
    row("sttf", CHUNKS, "short transfers: where a segment arrives first, windows growing", "Hurtig et al., ToN 2019"),
    row(
        "linux-default",
        ("delays", "goodput_bps", More),
        "data is bound ahead of the windows, so that none is left unused",
        "Linux, net/mptcp/protocol.c",
    ),
    row("weighted", ("tariffs", "path.lte.share", Less), "the operator's shares: a quarter over LTE", "Goyal et al., SIGCOMM 1996"),
    row(
        "active-backup",
        ("tariffs", "path.lte.share", Less),
        "the first path carries everything as long as it works",
        "Linux, bonding.rst",
    ),
    row("cost", ("tariffs", "price", Less), "the cheapest path first", "draft-bonaventure-iccrg-schedulers-02"),
    row("playahead", CHUNKS, "each segment goes where it arrives first, so that all paths finish together", "docs/lab/forward.md"),
    row("minrtt+pr", TIGHT, "data that blocks the window is retransmitted on another path, and its path slowed down", "Raiciu et al., NSDI 2012"),
    row("minrtt+or", TIGHT, "data that blocks the window is retransmitted on another path", "Raiciu et al., NSDI 2012"),
];
