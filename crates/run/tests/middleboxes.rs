//! Connections behind middleboxes in virtual time: Multipath TCP, plain TCP, one path of two, or nothing, and which of the
//! packets they refuse are counted.

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::{Document, PlugIn};
use anabranch_trace::{DropCause, Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Instant, PathId, Side};
use anabranch_wire::{Ecn, Flags, Packet};
use std::sync::Arc;

/// Observations at a client and in its network.
#[derive(Default)]
struct Seen {
    /// Bytes of payload that arrived over each path.
    arrived: [usize; 2],
    /// Segments with payload that arrived with a mapping, and those without.
    mapped: [usize; 2],
    /// Pure acknowledgments without SACK blocks that the server got, and that the client sent.
    acknowledged: [usize; 2],
    /// Segments that arrived as ECN-capable.
    capable: usize,
    /// The longest payload.
    longest: usize,
    /// Packets that a middlebox refused.
    refused: usize,
    /// When the last payload arrived.
    last: Instant,
}

impl Recorder for Seen {
    fn record(&mut self, _now: Instant, _origin: Origin, event: &Event) {
        let refused = matches!(event, Event::Link { what: LinkEvent::Dropped(DropCause::Middlebox), .. });
        self.refused += usize::from(refused);
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        let segment = &packet.segment;
        let is_ack = segment.payload.is_empty() && segment.flags == Flags::ACK && segment.options.sack().is_empty();
        match (host, sent) {
            (Side::Client, true) => self.acknowledged[1] += usize::from(is_ack),
            (Side::Server, false) => self.acknowledged[0] += usize::from(is_ack),
            (Side::Client, false) if !segment.payload.is_empty() => {
                self.arrived[path.index()] += segment.payload.len();
                let is_mapped = segment.options.dss().is_some_and(|dss| dss.mapping.is_some());
                self.mapped[usize::from(!is_mapped)] += 1;
                self.capable += usize::from(segment.ecn != Ecn::NotEct);
                self.longest = self.longest.max(segment.payload.len());
                self.last = now;
            }
            _ => {}
        }
    }
}

impl Seen {
    /// All data came over the first path.
    fn is_first_alone(&self) -> bool {
        self.arrived[0] >= BYTES && self.arrived[1] == 0
    }
}

const BYTES: usize = 3_000_000;

fn run(of_a: &str, of_b: &str, rest: &str) -> (RunOutcome, Seen) {
    let traffic = if rest.contains("[[traffic]]") { "" } else { "[[traffic]]\nkind = 'bulk'\nsize = '3MB'\n" };
    let text = format!(
        "[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '10ms'\n{of_a}\n[[path]]\nname = 'b'\nrate = '20mbit'\ndelay = \
         '20ms'\n{of_b}\n{traffic}{rest}"
    );
    let scenario = Document::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong:#?}")).scenario;
    let job =
        Job::of(Arc::new(scenario), Choice::Multipath(PlugIn { name: "minrtt".into(), parameters: Vec::new() }), 1);
    let mut seen = Seen::default();
    let outcome = VirtualTime::default().run(&job, &mut seen).unwrap_or_else(|wrong| panic!("{of_a}{of_b}: {wrong}"));
    (outcome, seen)
}

fn boxed(of: &str) -> String {
    format!("middlebox = {of}")
}

#[test]
fn options_that_are_stripped_leave_plain_tcp_or_one_path() {
    let (_, clean) = run("", "", "");
    assert!(clean.mapped[1] == 0 && clean.arrived.iter().all(|bytes| *bytes > BYTES / 5));
    // RFC 8684 §3.7: without MP_CAPABLE both ends speak plain TCP.
    for way in ["up", "down"] {
        for options in ["'mptcp'", "'mp-capable'"] {
            let strip = boxed(&format!("{{ {way} = [{{ kind = 'strip', options = {options} }}] }}"));
            let (_, seen) = run(&strip, "", "");
            assert!(seen.mapped[0] == 0 && seen.is_first_alone(), "{way} {options}: {:?}", seen.arrived);
        }
    }
    // mptcp_net-next #518, #544: joins that lose their option are closed, and the connection continues over the first path.
    for (way, on) in [("up", "syn"), ("down", "syn"), ("up", "all"), ("down", "all")] {
        let strip = boxed(&format!("{{ {way} = [{{ kind = 'strip', options = 'mp-join', on = '{on}' }}] }}"));
        let (_, seen) = run("", &strip, "");
        assert!(seen.mapped[1] == 0 && seen.is_first_alone(), "{way} {on}: {:?}", seen.arrived);
    }
}

#[test]
fn numbers_sizes_and_addresses_make_no_difference() {
    for of in [
        "[{ kind = 'translate' }]",
        "[{ kind = 'translate', by = 4294967295 }, { kind = 'translate' }]",
        "[{ kind = 'split', size = 500 }]",
        "{ down = [{ kind = 'coalesce', within = '2ms' }], up = [] }",
        "[{ kind = 'strip', options = 'add-addr' }]",
        "[{ kind = 'forget', idle = '5s' }]",
    ] {
        let (_, seen) = run(&boxed(of), &boxed(of), "");
        assert!(seen.mapped[1] == 0 && seen.arrived.iter().all(|bytes| *bytes > BYTES / 5), "{of}: {:?}", seen.arrived);
        assert_eq!(seen.refused, 0);
    }
    assert_eq!(run(&boxed("[{ kind = 'split', size = 500 }]"), "", "").1.refused, 0);
}

#[test]
fn an_mss_is_that_of_the_box_and_ecn_is_cleared() {
    let mss = boxed("[{ kind = 'mss', most = 1000 }]");
    assert!(run(&mss, &mss, "").1.longest <= 1000);
    let ecn = "[tcp]\necn = true\n";
    let with = |of: &str| run(of, of, ecn).1.capable;
    assert!(with("") > 1000);
    assert_eq!(with(&boxed("[{ kind = 'ecn' }]")), 0);
}

#[test]
fn thinned_acknowledgments_carry_the_same_data() {
    let (plain, thick) = run("", "", "");
    let thin = boxed("{ up = [{ kind = 'thin-acks', every = 8, within = '20ms' }], down = [] }");
    let (thinned, seen) = run(&thin, &thin, "");
    let ways = (thick.acknowledged, seen.acknowledged);
    assert!(thick.acknowledged[0] > 900 && seen.acknowledged[0] * 3 < seen.acknowledged[1], "{ways:?}");
    let [before, after] = [plain, thinned].map(|outcome| outcome.metrics["completion_s"]);
    assert!(after < 1.5 * before, "{after} after {before}");
}

/// A NAT that forgets both paths while the application is silent (public reports: a late join, a connection that idles).
#[test]
fn a_forgotten_path_is_left_for_the_other() {
    let idle = "[[traffic]]\nkind = 'request'\nsize = '200KB'\ncount = 3\ninterval = '4s'\n";
    let of = |answer: &str| boxed(&format!("[{{ kind = 'forget', idle = '2s', answer = '{answer}' }}]"));
    for answer in ["silence", "reset"] {
        let (_, seen) = run(&of(answer), "", idle);
        assert!(seen.refused > 0 && seen.arrived[1] > 200_000, "{answer}: {:?}", seen.arrived);
        let total: usize = seen.arrived.iter().sum();
        assert!(total >= 600_000, "{answer}: {total}");
    }
}

#[test]
fn a_late_join_that_is_refused_leaves_the_first_path() {
    for answer in ["reset", "silence"] {
        let reject = format!("[{{ kind = 'reject', options = 'mp-join', on = 'syn', answer = '{answer}' }}]");
        let (_, seen) = run("", &format!("start = '200ms'\n{}", boxed(&reject)), "");
        assert!(seen.mapped[1] == 0 && seen.is_first_alone(), "{answer}: {:?}", seen.arrived);
        assert!(seen.refused > 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_digest_and_no_box_none() {
    let of = boxed("[{ kind = 'translate' }, { kind = 'thin-acks' }, { kind = 'coalesce' }]");
    let digest = |a: &str| run(a, "", "").0.digest;
    assert_eq!(digest(&of), digest(&of));
    assert_ne!(digest(&of), digest(""));
    assert_eq!(digest("middlebox = []"), digest(""));
}
