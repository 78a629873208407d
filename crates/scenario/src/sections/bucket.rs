//! `police` and `burst`: the token buckets of a bottleneck.

use super::fields::{Fields, Pair};
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Form, Key, MAX_BYTES, Section};
use crate::notation::{Notation, RATE, size};
use crate::row::{Row, inline};
use crate::tree::{Node, Report};
use anabranch_network::BucketSpec;
use anabranch_units::{Direction, Rate};

pub(crate) const POLICE: Notation<BucketSpec> = Notation {
    form: Form::Table(Section::Police, "{ rate = \"20mbit\", burst = \"32KB\" }"),
    read: police,
    write: written_police,
};
pub(crate) const BURST: Notation<u64> = size(1, MAX_BYTES);

/// A bucket before it is read.
pub(crate) const BLANK: BucketSpec = BucketSpec { rate: Rate::from_bps(0), burst: 0 };

/// Keys of `police`.
pub(crate) fn rows(bucket: &mut BucketSpec) -> Vec<Row<'_>> {
    vec![
        Row::new("rate", RATE, &mut bucket.rate, "the rate at which the token bucket fills").required(),
        Row::new(
            "burst",
            BURST,
            &mut bucket.burst,
            "the size of the token bucket, which is full at first; at least a full packet",
        )
        .required(),
    ]
}

fn police(report: &mut Report, key: &'static Key, node: &Node) -> Option<BucketSpec> {
    if node.as_table().is_none() {
        value::wrong_type(report, key, node);
        return None;
    }
    let mut bucket = BLANK;
    Fields::open(report, Section::Police, Some(node)).fill(report, None, rows(&mut bucket)).then_some(bucket)
}

fn written_police(bucket: &BucketSpec) -> String {
    inline(&[], &rows(&mut bucket.clone()))
}

/// Both token buckets of a bottleneck, as written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buckets {
    pub burst: Option<u64>,
    pub police: Option<BucketSpec>,
}

/// Reads both keys per direction.
pub(crate) fn buckets(report: &mut Report, fields: &Fields<'_>) -> Pair<Buckets> {
    let mut burst = fields.pair(report, "burst", BURST.read);
    let mut police = fields.pair(report, "police", POLICE.read);
    let mut both = |direction| Buckets { burst: burst.take(direction), police: police.take(direction) };
    Pair { down: both(Direction::Down), up: both(Direction::Up) }
}

impl Buckets {
    /// Reports a burst that no full packet of `packet` bytes passes, and one of a recorded capacity.
    pub fn check(&self, report: &mut Report, fields: &Fields<'_>, direction: Direction, packet: u64) {
        let burst = *fields.places("burst").get(direction);
        let police = *fields.places("police").get(direction);
        if let (Some(node), Some(bytes)) = (burst, self.burst) {
            check_burst(report, node, bytes, packet);
            if fields.places("trace").get(direction).is_some() {
                report
                    .error(Code::Conflict, node.at, "`burst` is of a `rate`, and this capacity is recorded")
                    .label("has a `trace`")
                    .help("leave `burst` out: a trace says itself when packets leave");
            }
        }
        if let (Some(node), Some(bucket)) = (police, self.police) {
            check_burst(report, node, bucket.burst, packet);
        }
    }
}

/// Reports a burst below a full packet at `node`, a size or a table with a `burst`.
pub(crate) fn check_burst(report: &mut Report, node: &Node, burst: u64, packet: u64) {
    if burst < packet {
        let at = node.as_table().and_then(|table| table.get("burst")).unwrap_or(node).at;
        report
            .error(Code::ImpossibleValue, at, format!("a burst of {burst} bytes is below a full packet"))
            .label("no full packet would ever pass")
            .help(format!("a full packet has {packet} bytes: mss, headers and overhead"));
    }
}
