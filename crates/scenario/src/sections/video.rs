//! `[[traffic]]` of kind `video`.

use super::fields::Fields;
use super::traffic::REQUEST;
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Form, Key};
use crate::notation::{ABR, Notation, POSITIVE_TIME};
use crate::row::Row;
use crate::scenario::{PlugIn, TrafficKind};
use crate::tree::{Node, Report, Value, quoted};
use anabranch_units::{Duration, Rate};
use anabranch_workload::{Ladder, abr};

const LADDER: Notation<Ladder> = Notation { form: Form::Ladder, read: ladder, write: written_ladder };
/// Most bytes of a segment: an hour at 1 Gbit/s is less.
const MAX_SEGMENT: u64 = 1 << 39;

/// Video by its usual values: the segments of Pensieve (SIGCOMM 2017, §5.1), the buffer of Yin et al. (SIGCOMM 2015, §7).
pub(super) fn blank() -> TrafficKind {
    let none = None;
    TrafficKind::Video {
        ladder: Ladder::default(),
        segment: Duration::from_secs(4),
        length: none,
        buffer: Duration::from_secs(30),
        start_at: none,
        resume_at: none,
        abr: PlugIn::named(abr::registry::all()[0].name),
        live: none,
        request: 100,
    }
}

/// Keys of the kind; none of another.
#[rustfmt::skip] // A table reads best with one key per row.
pub(super) fn rows(kind: &mut TrafficKind) -> Vec<Row<'_>> {
    let TrafficKind::Video { ladder, segment, length, buffer, start_at, resume_at, abr, live, request } = kind else { return Vec::new() };
    vec![
        Row::new("ladder", LADDER, ladder, "rates at which each segment is there. pensieve: 300, 750, 1200, 1850, 2850 and 4300 kbit/s (Mao et al., SIGCOMM 2017); apple: 145, 365, 730, 1100, 2000, 3000, 4500, 6000 and 7800 kbit/s (HLS Authoring Specification, H.264); or a list, the lowest first"),
        Row::new("segment", POSITIVE_TIME, segment, "playing time of a segment; its bytes are rate × segment"),
        Row::optional("length", POSITIVE_TIME, length, "playing time of the video, rounded up to whole segments").silent("longer than the run"),
        Row::new("buffer", POSITIVE_TIME, buffer, "most playing time that the player keeps: it requests a segment when the last one has come and this one has room"),
        Row::optional("start_at", POSITIVE_TIME, start_at, "playing time in the buffer at which play begins").silent("one segment"),
        Row::optional("resume_at", POSITIVE_TIME, resume_at, "playing time in the buffer at which play continues after a stall").silent("one segment"),
        Row::new("abr", ABR, abr, "which rate the player requests next, by a rule of `anabranch list abrs`"),
        Row::optional("live", POSITIVE_TIME, live, "live: how far behind the newest moment the player begins, at least a segment. That many whole segments are there when the connection is established, and one more appears per `segment`. The player never skips: startup and stalls add to its latency").silent("all segments are there from the beginning"),
        Row::new("request", REQUEST, request, "bytes of a request"),
    ]
}

/// The buffer holds what the player waits for, and a segment is not beyond all networks.
pub(super) fn check(report: &mut Report, fields: &Fields<'_>, kind: &TrafficKind) {
    let TrafficKind::Video { ladder, segment, buffer, live, .. } = kind else { return };
    let Some(video) = kind.video() else { return };
    if !fields.are_sound(report, &["ladder", "segment", "buffer", "start_at", "resume_at", "live"]) {
        return;
    }
    let mut complain = |key: &str, why: &str| {
        // A value that is not written is a default, and `segment` or `buffer` is what contradicts it.
        let place = [key, "buffer", "segment", "ladder"].into_iter().find_map(|key| Some((key, fields.written(key)?)));
        if let Some((place, node)) = place {
            let why = if place == key { why.to_owned() } else { format!("contradicts `{key}`, which {why}") };
            value::impossible(report, fields.key(place), node, &why);
        }
    };
    if ladder.rates().last().is_some_and(|rate| rate.bytes_in(*segment) > MAX_SEGMENT) {
        return complain("segment", "makes segments of more than 512 GiB");
    }
    if buffer < segment {
        return complain("buffer", "is shorter than a segment");
    }
    if live.is_some_and(|live| live < *segment) {
        return complain("live", "is shorter than a segment, and no segment is there at the beginning");
    }
    // Whole segments that fit.
    let fits = Duration::from_nanos(buffer.as_nanos() - buffer.as_nanos() % segment.as_nanos());
    for (key, level) in [("start_at", video.rule.start_at), ("resume_at", video.rule.resume_at)] {
        if level > fits {
            return complain(key, "is more than the whole segments that the buffer has room for");
        }
    }
}

/// A name, or a list of rates.
fn ladder(report: &mut Report, key: &'static Key, node: &Node) -> Option<Ladder> {
    if let Some(name) = node.as_text() {
        let found = Ladder::named(name);
        if found.is_none() {
            let message = format!("there is no ladder \"{name}\"");
            value::unknown_word(report, Code::UnknownWord, node, message, Ladder::NAMES.into_iter());
        }
        return found;
    }
    let Value::List(items) = &node.value else {
        value::wrong_type(report, key, node);
        return None;
    };
    let mut rates: Vec<Rate> = Vec::new();
    for item in items {
        let rate = value::rate(report, key, item)?;
        if rates.last().is_some_and(|last| *last >= rate) {
            value::impossible(report, key, item, "is not above the rate before it");
            return None;
        }
        rates.push(rate);
    }
    let ladder = Ladder::new(&rates);
    if ladder.is_none() {
        value::impossible(report, key, node, "has no rate");
    }
    ladder
}

fn written_ladder(ladder: &Ladder) -> String {
    let rates = || ladder.rates().iter().map(|rate| quoted(&rate.to_string())).collect::<Vec<_>>().join(", ");
    ladder.name().map_or_else(|| format!("[{}]", rates()), quoted)
}
