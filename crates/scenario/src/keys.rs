//! The table of keys: form, default and meaning of each. `explain`, the documentation, the JSON schema and the suggestions for
//! misspelt keys read it. Its rows stand in `sections`, each beside the code that reads its section.

use crate::notation::{Notation, size};
use crate::sections;
use std::sync::LazyLock;

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
    /// The table form of a path's `jitter`.
    Jitter,
    /// The `arq` of a path.
    Arq,
    /// The `wake` of a path.
    Wake,
    /// The `slots` of a path.
    Slots,
    /// A box of a path's `middlebox`.
    Middlebox,
    /// The `police` of a path or link.
    Police,
    /// The table form of a path's or link's `queue`.
    Queue,
    /// `[[link]]`
    Link,
    /// `[[fabric]]`
    Fabric,
    /// `[[medium]]`
    Medium,
    /// `[[group]]`
    Group,
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
    pub const ALL: [Section; 23] = [
        Section::Top,
        Section::Connection,
        Section::Tcp,
        Section::Hosts,
        Section::Path,
        Section::Loss,
        Section::Reorder,
        Section::Jitter,
        Section::Arq,
        Section::Wake,
        Section::Slots,
        Section::Middlebox,
        Section::Police,
        Section::Queue,
        Section::Link,
        Section::Fabric,
        Section::Medium,
        Section::Group,
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
            Section::Jitter => "path.jitter",
            Section::Arq => "path.arq",
            Section::Wake => "path.wake",
            Section::Slots => "path.slots",
            Section::Middlebox => "path.middlebox",
            Section::Police => "path.police",
            Section::Queue => "path.queue",
            Section::Link => "link",
            Section::Fabric => "fabric",
            Section::Medium => "medium",
            Section::Group => "group",
            Section::Cross => "cross",
            Section::Range => "cross.range",
            Section::Timeline => "timeline",
            Section::Traffic => "traffic",
            Section::Arrivals => "traffic.arrivals",
        }
    }

    /// True for sections that may repeat: `[[path]]`.
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            Section::Path
                | Section::Link
                | Section::Fabric
                | Section::Medium
                | Section::Group
                | Section::Cross
                | Section::Timeline
                | Section::Traffic
        )
    }

    /// True if it has a header of its own in a file.
    pub const fn has_header(self) -> bool {
        let of_keys = matches!(
            self,
            Section::Loss
                | Section::Reorder
                | Section::Jitter
                | Section::Arq
                | Section::Wake
                | Section::Slots
                | Section::Middlebox
                | Section::Police
                | Section::Queue
                | Section::Range
                | Section::Arrivals
        );
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
            Section::Jitter => "a delay that varies per packet, as netem's does",
            Section::Arq => "retransmission below IP, of packets that a link loses",
            Section::Wake => "a device that sleeps when it idles",
            Section::Slots => "slots of a schedule, each with its own delay and a lossy beginning",
            Section::Middlebox => "a box on a path that changes, makes, holds back or refuses segments",
            Section::Police => "a policer's token bucket before the queue of a path or a link",
            Section::Queue => "active queue management at the bottleneck of a path or a link",
            Section::Link => "a bottleneck that paths and cross traffic cross, with what lies behind it",
            Section::Fabric => {
                "switches and cables between many hosts: each direction of a cable is a link with these keys, whose direction down has the data and whose direction up has the answers"
            }
            Section::Medium => {
                "air over which one of several stations sends at a time: each direction of a path or link that names it is one"
            }
            Section::Group => {
                "pairs of hosts, alike, with their own copies of paths; a file without groups has one pair over all paths"
            }
            Section::Cross => "other flows, alike, that share a bottleneck",
            Section::Range => "a range of times, of which each flow draws its own",
            Section::Timeline => "a change while the experiment runs",
            Section::Traffic => "the application",
            Section::Arrivals => "flows that begin one after the other",
        }
    }

    /// Keys of the section, in the order of a resolved scenario. Keys of several kinds may have one name.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> + Clone {
        KEYS.iter().filter(move |key| key.section == self)
    }

    /// The first key with this name.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }

    /// The key with this name that applies to `kind`; any with this name without a kind.
    pub fn key_of(self, name: &str, kind: Option<&str>) -> Option<&'static Key> {
        let counts = |key: &&'static Key| kind.is_none_or(|kind| key.counts_for(kind));
        self.keys().filter(counts).find(|key| key.name == name)
    }

    /// The noun that a kind of it qualifies.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Section::Queue => "a queue",
            Section::Fabric => "a fabric",
            Section::Middlebox => "a middlebox",
            Section::Cross => "cross traffic",
            Section::Traffic => "traffic",
            _ => "a table",
        }
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
    /// A duration or a table of [`Section::Jitter`].
    Jitter,
    /// A table of this section, with an example.
    Table(Section, &'static str),
    /// A distribution of delays, or a file with a table of one.
    DelayDistribution,
    /// `together`, or a table of [`Section::Arrivals`].
    Arrivals,
    /// A list of pairs of times.
    Outages,
    /// A list of tables of [`Section::Middlebox`].
    Middleboxes,
    /// A kind of option, or a list of them.
    Options,
    /// A file of recorded capacity.
    Trace,
    /// A scheduler, alone or with parameters.
    Scheduler,
    /// A congestion control, alone or with parameters.
    Congestion,
    /// A rule of bitrate adaptation, alone or with parameters.
    Abr,
    /// The name of a ladder, or a list of rates.
    Ladder,
    /// The name of a path.
    PathName,
    /// `first`, `race`, or the name of a path.
    FirstPath,
    /// `begin`, `seed`, or a duration.
    TraceStart,
    /// The name of a link.
    LinkName,
    /// The name of a fabric.
    FabricName,
    /// A list of names of links.
    Route,
    /// A list of names of paths.
    Paths,
    /// The name of a medium.
    MediumName,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// None: the key is required.
    Required,
    /// No value, described by these words.
    Nothing(&'static str),
    /// This value, in the file's notation without quotes.
    Value(String),
}

/// One key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Section of the key.
    pub section: Section,
    /// Kinds of traffic, cross traffic or queue that have the key; empty if it is there for all.
    pub kinds: Vec<&'static str>,
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
    /// Whether a timeline may change the key.
    pub changeable: bool,
}

impl Key {
    /// Whether the absent key has a value.
    pub(crate) fn has_default(&self) -> bool {
        matches!(self.fallback, Fallback::Value(_))
    }

    /// Whether the key has a meaning for this kind.
    pub fn counts_for(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// The kinds that have the key, as text between `before` and `after`; empty if it is there for all.
    pub fn kinds_between(&self, before: &str, after: &str) -> String {
        if self.kinds.is_empty() { String::new() } else { format!("{before}{}{after}", self.kinds.join(", ")) }
    }

    /// Whether the key differs from `other` in its kinds alone.
    pub(crate) fn is_alike(&self, other: &Key) -> bool {
        let alike = (self.name, self.about, &self.fallback) == (other.name, other.about, &other.fallback);
        alike && self.form == other.form && self.directions == other.directions
    }

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
    pub fn default(&self) -> &str {
        match &self.fallback {
            Fallback::Required => "required",
            Fallback::Nothing(words) => words,
            Fallback::Value(text) => text,
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
            Form::Probability => {
                "a probability, such as \"1%\", or a fraction with a point, such as 0.01 or \"0.01\"".into()
            }
            Form::Flag => "true or false".into(),
            Form::Words(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or "),
            Form::Price => "a price per size, such as \"5/GB\", or per byte, such as 5e-9".into(),
            Form::Limit => {
                "packets (\"100p\"), bytes (\"150KB\"), bandwidth-delay products (\"1bdp\") or \"unlimited\"".into()
            }
            Form::Queue => {
                let kinds = Form::Words(anabranch_network::Discipline::NAMES).expected();
                format!("{}, or {{ kind = {kinds}, … }}", Form::Limit.expected())
            }
            Form::Threshold => "packets, such as 5, or bytes, such as \"7500B\"".into(),
            Form::Range => "a duration, such as \"25ms\", or { min = \"10ms\", max = \"50ms\" }".into(),
            Form::Loss => {
                format!("{}, or {{ kind = \"gilbert-elliott\", p = …, r = … }}", Form::Probability.expected())
            }
            Form::Reorder => format!("{}, or {{ probability = …, by = \"10ms\" }}", Form::Probability.expected()),
            Form::Jitter => "a duration, such as \"5ms\", or { spread = \"5ms\", distribution = \"normal\", … }".into(),
            Form::Table(_, example) => format!("a table such as {example}"),
            Form::DelayDistribution => {
                format!("{}, or a file such as \"mine.dist\"", Form::Words(self.words()).expected())
            }
            Form::Arrivals => "\"together\" or { kind = \"poisson\", rate = 5.0 }".into(),
            Form::Outages => "a list of pairs of times, such as [[\"20s\", \"30s\"]]".into(),
            Form::Middleboxes => "a list of boxes, such as [{ kind = \"strip\", options = \"mp-join\" }]".into(),
            Form::Options => format!("a list of {}", Form::Words(self.words()).expected()),
            Form::Trace => "the name of a file in CSV or in mahimahi's format".into(),
            Form::Scheduler | Form::Congestion | Form::Abr => self.plug_in().into(),
            Form::Ladder => {
                "\"pensieve\", \"apple\" or a list of rates, the lowest first, such as [\"1mbit\", \"3mbit\"]".into()
            }
            Form::PathName | Form::LinkName | Form::FabricName | Form::MediumName => self.one_named(),
            Form::Route => "a list of names of [[link]]s".into(),
            Form::Paths => "a list of names of [[path]]s".into(),
            Form::FirstPath => "\"first\", \"race\" or the name of a [[path]]".into(),
            Form::TraceStart => "\"begin\", \"seed\", or a time in the trace, such as \"20s\"".into(),
            Form::Changeable => {
                format!("{}, with .down or .up for one direction, or connection.scheduler", changeable_of_ways())
            }
            Form::Value => "a value of the form that the changed key has".into(),
        }
    }
}

impl Form {
    /// Notations of a plug-in.
    const fn plug_in(self) -> &'static str {
        match self {
            Form::Congestion => {
                "a congestion control, such as \"olia\", \"cubic(beta=0.5)\" or { kind = \"cubic\", beta = 0.5 }"
            }
            Form::Abr => "an ABR, such as \"bola\", \"bola(gp=8)\" or { kind = \"bola\", gp = 8 }",
            _ => "a scheduler, such as \"minrtt+pr\", \"blest(delta=0.01)\" or { kind = \"blest\", delta = 0.01 }",
        }
    }

    /// A name of a table, in words.
    fn one_named(self) -> String {
        format!("the name of a [[{}]]", self.named())
    }

    /// The section whose tables it names.
    const fn named(self) -> &'static str {
        match self {
            Form::PathName => "path",
            Form::MediumName => "medium",
            Form::FabricName => "fabric",
            _ => "link",
        }
    }
}

/// Every key, section by section.
pub fn keys() -> &'static [Key] {
    &KEYS
}

/// The keys of paths and links that a timeline may change, as it names them.
fn changeable_of_ways() -> String {
    let keys = changeable().filter(|key| key.section.is_list());
    let names: Vec<_> = keys.map(|key| format!("{}.NAME.{}", key.section.name(), key.name)).collect();
    names.join(", ")
}

/// Keys that a timeline may change.
pub(crate) fn changeable() -> impl Iterator<Item = &'static Key> + Clone {
    KEYS.iter().filter(|key| key.changeable)
}

/// The keys that `name` may mean: a full name (`path.loss`) means one per kind, a bare one (`rate`) those of every section.
pub fn find_keys(name: &str) -> Vec<&'static Key> {
    let full: Vec<_> = KEYS.iter().filter(|key| key.full_name() == name).collect();
    if full.is_empty() { KEYS.iter().filter(|key| key.name == name).collect() } else { full }
}

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| Section::ALL.into_iter().flat_map(sections::keys).collect());

/// Largest window that 16 bits and the greatest scale can offer (RFC 7323 §2.3).
const MAX_WINDOW: u64 = 65_535 << 14;
/// An IPv4 or IPv6 packet of 65 535 bytes less the headers and options that [`crate::full_packet`] counts.
pub(crate) const MAX_MSS: u64 = 65_435;
/// Far below what any path carries: options and headers are larger.
pub(crate) const MIN_MSS: u64 = 64;
/// Most connections of the traffic: each has its own port on the client.
pub(crate) const MAX_FLOWS: i64 = 10_000;
/// Most repetitions of a scenario.
pub const MAX_REPEAT: i64 = 1_000_000;
/// Far more than any network, and far from overflow in bits.
pub(crate) const MAX_BYTES: u64 = 1 << 60;
/// The least is the least `mss`: a buffer holds one segment.
pub(crate) const BUFFER: Notation<u64> = size(MIN_MSS, MAX_WINDOW);

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal that is wrapped would carry its line break and blanks into pages, lists and the schema.
    #[test]
    fn texts_are_one_line() {
        for key in keys() {
            assert!(
                !format!("{}{}{}", key.about, key.default(), key.form.expected()).contains('\n'),
                "{}",
                key.full_name()
            );
        }
    }

    #[test]
    fn names_are_unique() {
        for (n, key) in keys().iter().enumerate() {
            let same = |other: &&Key| other.full_name() == key.full_name();
            for other in keys()[..n].iter().filter(same) {
                let apart = !key.kinds.is_empty() && key.kinds.iter().all(|kind| !other.counts_for(kind));
                assert!(apart, "{} twice", key.full_name());
            }
        }
    }

    #[test]
    fn full_names_find_one_key_and_bare_ones_every_key() {
        assert_eq!(find_keys("path.rate").len(), 1);
        assert_eq!(find_keys("rate").len(), 6);
        assert_eq!(find_keys("seed")[0].default(), "1");
        assert!(find_keys("nonsense").is_empty());
    }
}
