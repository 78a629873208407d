//! The packets of one connection over time, as `timeline/*.json` of a results directory holds them.

use serde::{Deserialize, Serialize};

/// What became of each packet of payload, in the order in which they were sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The paths' names, in the scenario's order.
    pub paths: Vec<String>,
    /// End of the time that was watched, in seconds since the run began.
    pub duration_s: f64,
    /// The packets.
    pub packets: Vec<Packet>,
}

/// One packet of payload. Times are seconds since the run began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Packet {
    /// First byte, as an offset in the data sequence.
    pub data_start: u64,
    /// One past the last byte.
    pub data_end: u64,
    /// Index into [`Timeline::paths`].
    pub path: usize,
    /// When the scheduler bound it to its subflow.
    pub bound_s: f64,
    /// When the subflow sent it.
    pub sent_s: f64,
    /// When the receiver got it; absent if it was lost.
    #[serde(default)]
    pub arrived_s: Option<f64>,
    /// When the application got its last byte, in order; absent if that was after the end.
    #[serde(default)]
    pub delivered_s: Option<f64>,
    /// Why it was sent.
    pub kind: Kind,
}

/// Why a packet was sent, as `SendKind` of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// For the first time.
    First,
    /// Opportunistic retransmission on another subflow.
    Opportunistic,
    /// After a timeout, silence or the death of the subflow that carried it.
    Rescue,
    /// A redundant copy.
    Copy,
    /// TCP retransmission on the same subflow.
    Retransmission,
}

impl Packet {
    /// How long it waited at the receiver for earlier data, in seconds: head-of-line blocking. Absent if it was lost, or
    /// came after another copy of it was delivered, or its delivery was not seen.
    pub fn waited_s(&self) -> Option<f64> {
        let waited = self.delivered_s? - self.arrived_s?;
        (waited >= 0.0).then_some(waited)
    }
}

impl Timeline {
    /// The first `limit` packets, with the time until the last of them was delivered or, if none was, sent.
    pub fn first(&self, limit: usize) -> Self {
        if self.packets.len() <= limit {
            return self.clone();
        }
        let packets = self.packets[..limit].to_vec();
        let end = |packet: &Packet| packet.delivered_s.or(packet.arrived_s).unwrap_or(packet.sent_s);
        let duration_s = packets.iter().map(end).fold(0.0, f64::max);
        Self { paths: self.paths.clone(), duration_s, packets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sent_s: f64, arrived_s: Option<f64>, delivered_s: Option<f64>) -> Packet {
        Packet {
            data_start: 0,
            data_end: 1400,
            path: 0,
            bound_s: sent_s,
            sent_s,
            arrived_s,
            delivered_s,
            kind: Kind::First,
        }
    }

    #[test]
    fn a_file_is_read_as_it_is_described() {
        let text = r#"{"paths": ["wlan"], "duration_s": 2.5, "packets": [{"data_start": 1, "data_end": 1401, "path": 0,
            "bound_s": 0.5, "sent_s": 0.75, "arrived_s": null, "delivered_s": null, "kind": "opportunistic"}]}"#;
        let timeline: Timeline = serde_json::from_str(text).unwrap();
        let expected = Packet {
            data_start: 1,
            data_end: 1401,
            bound_s: 0.5,
            kind: Kind::Opportunistic,
            ..packet(0.75, None, None)
        };
        assert_eq!(timeline, Timeline { paths: vec!["wlan".into()], duration_s: 2.5, packets: vec![expected] });
    }

    #[test]
    fn waiting_begins_with_the_arrival_and_late_copies_do_not_wait() {
        assert_eq!(packet(1.0, Some(1.25), Some(1.75)).waited_s(), Some(0.5));
        assert_eq!(packet(1.0, Some(1.25), Some(1.25)).waited_s(), Some(0.0));
        assert_eq!(packet(1.0, Some(2.0), Some(1.75)).waited_s(), None);
        assert_eq!(packet(1.0, None, Some(1.75)).waited_s(), None);
    }

    #[test]
    fn a_cut_ends_when_its_packets_have_been_delivered() {
        let packets =
            vec![packet(0.0, Some(1.0), Some(4.0)), packet(1.0, Some(2.0), Some(3.0)), packet(9.0, None, None)];
        let timeline = Timeline { paths: vec![], duration_s: 20.0, packets };
        assert_eq!(timeline.first(3), timeline);
        assert_eq!((timeline.first(2).duration_s, timeline.first(2).packets.len()), (4.0, 2));
    }
}
