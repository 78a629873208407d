//! Values as the page's script reads them, inside HTML.

mod decisions;

use crate::chart::Chart;
use anabranch_recorders::{Fate, Timeline};
use anabranch_trace::SendKind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// JSON that ends no `<script>` element and begins none.
pub fn json(value: &impl Serialize) -> String {
    // Maps have string keys; a number that is not finite becomes null.
    serde_json::to_string(value).unwrap_or_default().replace('<', "\\u003c")
}

/// Effort of compression, from 0 to 10: more would take longer than it is worth.
const EFFORT: u8 = 6;

/// The chart for the script: a timeline as columns, compressed; everything else as it is.
pub fn chart(chart: &Chart) -> String {
    match chart {
        Chart::Timeline(timeline) => {
            let columns = serde_json::to_vec(&Columns::of(timeline)).unwrap_or_default();
            let deflated = STANDARD.encode(miniz_oxide::deflate::compress_to_vec(&columns, EFFORT));
            json(&Packed { kind: "timeline", deflated })
        }
        _ => json(chart),
    }
}

/// JSON that the page inflates (RFC 1951) when it draws.
#[derive(Serialize)]
struct Packed {
    kind: &'static str,
    deflated: String,
}

/// A link target that holds the whole file.
pub fn data_link(media_type: &str, text: &str) -> String {
    format!("data:{media_type};charset=utf-8;base64,{}", STANDARD.encode(text))
}

/// A source expression for a script element with this very text (Content Security Policy 3 §2.3.1).
pub fn script_hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// A timeline in little space: one array per field, and each value against a near one. Data count against the end of the packet
/// before; in microseconds, sendings against the one before, binding and arrival against the sending, the others
/// against the arrival.
#[derive(Serialize)]
struct Columns<'a> {
    paths: &'a [String],
    duration_s: f64,
    data: Vec<i64>,
    /// The place of every packet whose size differs from that of the packet before, with its size.
    sizes: Vec<(usize, u64)>,
    path: Vec<usize>,
    bound: Vec<i64>,
    sent: Vec<i64>,
    arrived: Vec<Option<i64>>,
    ordered: Vec<Option<i64>>,
    delivered: Vec<Option<i64>>,
    /// Places of the packets that were not sent for the first time, with the kind of their sending.
    again: Vec<(usize, SendKind)>,
    /// Places of the packets that met these fates; of the others, the times say what there is to know.
    waiting: Vec<usize>,
    on_the_way: Vec<usize>,
    lost: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<decisions::Columns<'a>>,
}

impl<'a> Columns<'a> {
    fn of(timeline: &'a Timeline) -> Self {
        let micros = |seconds: f64| (seconds * 1e6).round() as i64;
        // Indices beyond the paths are those of the last.
        let last = timeline.paths.len().saturating_sub(1);
        let met = |fate| {
            let places = timeline.packets.iter().enumerate();
            places.filter(|(_, packet)| packet.fate == fate).map(|(place, _)| place).collect()
        };
        let mut columns = Self {
            paths: &timeline.paths,
            duration_s: timeline.duration_s,
            data: Vec::new(),
            sizes: Vec::new(),
            path: Vec::new(),
            bound: Vec::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
            ordered: Vec::new(),
            delivered: Vec::new(),
            again: Vec::new(),
            waiting: met(Fate::Waiting),
            on_the_way: met(Fate::OnTheWay),
            lost: met(Fate::Lost),
            decisions: decisions::Columns::of(timeline),
        };
        let known = timeline.knows_subflows();
        let (mut before, mut data_end, mut size) = (0, 0, 0);
        for (place, packet) in timeline.packets.iter().enumerate() {
            let sent = micros(packet.sent_s);
            let since = |seconds: f64| micros(seconds).saturating_sub(sent);
            let arrived = packet.arrived_s.map(since);
            let waited = |seconds: Option<f64>| Some(since(seconds?).saturating_sub(arrived?));
            columns.data.push(packet.data_start.wrapping_sub(data_end).cast_signed());
            let own = packet.data_end.saturating_sub(packet.data_start);
            if own != size {
                columns.sizes.push((place, own));
            }
            columns.path.push(packet.path.min(last));
            columns.bound.push(since(packet.bound_s));
            columns.sent.push(sent.saturating_sub(before));
            columns.arrived.push(arrived);
            columns.ordered.push(waited(if known { packet.subflow_in_order_s } else { packet.arrived_s }));
            columns.delivered.push(waited(packet.delivered_s));
            if packet.kind != SendKind::First {
                columns.again.push((place, packet.kind));
            }
            (before, data_end, size) = (sent, packet.data_end, own);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_recorders::TimelinePacket;
    use serde_json::json;

    #[test]
    fn json_cannot_leave_its_element() {
        assert_eq!(json(&"</script><b>&\u{2028}"), "\"\\u003c/script>\\u003cb>&\u{2028}\"");
        assert_eq!(json(&[f64::NAN, f64::INFINITY, 1.0]), "[null,null,1.0]");
    }

    #[test]
    fn scripts_are_known_by_their_hash() {
        // The example of Content Security Policy 3 §2.3.1, over `alert('Hello, world.');`.
        let hash = script_hash("alert('Hello, world.');");
        assert_eq!(hash, "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='");
    }

    #[test]
    fn data_links_hold_the_text() {
        assert_eq!(data_link("text/csv", "a,±\n"), "data:text/csv;charset=utf-8;base64,YSzCsQo=");
    }

    #[test]
    fn a_timeline_becomes_columns_of_differences() {
        let packet = |sent_s, path, arrived_s| TimelinePacket {
            data_start: 1400,
            data_end: 2800,
            path,
            bound_s: sent_s - 0.001,
            sent_s,
            arrived_s,
            subflow_in_order_s: arrived_s.map(|_| 2.0),
            delivered_s: arrived_s.map(|_| 3.0),
            kind: SendKind::Rescue,
            fate: if arrived_s.is_some() { Fate::Delivered } else { Fate::Lost },
        };
        let packets = vec![packet(1.0, 0, Some(1.5)), packet(1.25, 9, None)];
        let timeline = Timeline { paths: vec!["wlan".into(), "3g".into()], duration_s: 4.0, packets, decisions: None };
        let packed: serde_json::Value = serde_json::from_str(&chart(&Chart::Timeline(timeline))).unwrap();
        assert_eq!(packed["kind"], "timeline");
        let deflated = STANDARD.decode(packed["deflated"].as_str().unwrap()).unwrap();
        let inflated = miniz_oxide::inflate::decompress_to_vec(&deflated).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&inflated).unwrap();
        let expected = json!({
            "paths": ["wlan", "3g"], "duration_s": 4.0,
            "data": [1400, -1400], "sizes": [[0, 1400]], "path": [0, 1], "bound": [-1000, -1000],
            "sent": [1_000_000, 250_000], "arrived": [500_000, null],
            "ordered": [500_000, null], "delivered": [1_500_000, null],
            "again": [[0, "rescue"], [1, "rescue"]], "waiting": [], "on_the_way": [], "lost": [1],
        });
        assert_eq!(value, expected);
    }
}
