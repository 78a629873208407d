//! The fates of a connection's packets, in the format of `timeline/*.json` in a results directory.

use anabranch_trace::{Decisions, SendKind};
use serde::{Deserialize, Serialize};

/// The packets of payload that a connection's server sent from a given time on. Times are seconds since the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The paths' names.
    pub paths: Vec<String>,
    /// End of the observed time.
    pub duration_s: f64,
    /// In the order of sending.
    pub packets: Vec<TimelinePacket>,
    /// The scheduler's views when it bound them, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
}

/// The times and fate of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelinePacket {
    /// First offset in the data sequence.
    pub data_start: u64,
    /// Offset behind the last byte.
    pub data_end: u64,
    /// Index into [`Timeline::paths`].
    pub path: usize,
    /// When it was bound to the subflow: before it was sent, if the scheduler queues ahead of the window.
    pub bound_s: f64,
    /// When it was sent.
    pub sent_s: f64,
    /// When it reached the receiving host; `None` = not before the end.
    pub arrived_s: Option<f64>,
    /// When its subflow passed its last byte to the connection: later than `arrived_s` where an earlier segment of the subflow was
    /// missing. From then on it is in the connection's out-of-order queue (OFO) until `delivered_s`. `None` = not until the end.
    #[serde(default)]
    pub subflow_in_order_s: Option<f64>,
    /// When the application received its last byte, in order; `None` unless it was delivered.
    pub delivered_s: Option<f64>,
    /// Why it was sent.
    pub kind: SendKind,
    /// Fate of the packet at the end.
    pub fate: Fate,
}

/// The fate of a packet at the end of the observed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The application received its data from it.
    Delivered,
    /// The packet arrived after other packets with the same data.
    Superseded,
    /// The packet had arrived and waited for earlier data.
    Waiting,
    /// The packet was still in flight, or its loss was not yet visible.
    OnTheWay,
    /// The packet will not arrive: on a path that keeps the order a later packet arrived, or it is twice as old as the slowest
    /// packet of its path.
    Lost,
}

impl TimelinePacket {
    /// How long it waited at the receiver for earlier data, in seconds: head-of-line blocking, of its own subflow and of the
    /// connection. Absent unless it was delivered.
    pub fn waited_s(&self) -> Option<f64> {
        Some(self.delivered_s? - self.arrived_s?)
    }

    /// The part of [`Self::waited_s`] that it waited for earlier segments of its own subflow.
    pub fn waited_in_subflow_s(&self) -> Option<f64> {
        Some(self.subflow_in_order_s.or(self.delivered_s)? - self.arrived_s?)
    }

    /// The time of the last event, in a run that ended at `end`.
    fn until(&self, end: f64) -> f64 {
        match self.fate {
            Fate::Waiting | Fate::OnTheWay => end,
            _ => self.delivered_s.or(self.arrived_s).unwrap_or(self.sent_s),
        }
    }
}

impl Timeline {
    /// The timeline has the times at which subflows passed packets on; older versions did not write them.
    pub fn knows_subflows(&self) -> bool {
        self.packets.iter().any(|packet| packet.subflow_in_order_s.is_some())
    }

    /// The first `limit` packets, with the time until their last event.
    pub fn first(&self, limit: usize) -> Self {
        if self.packets.len() <= limit {
            return self.clone();
        }
        let packets = self.packets[..limit].to_vec();
        let duration_s = packets.iter().map(|packet| packet.until(self.duration_s)).fold(0.0, f64::max);
        let decisions = self.decisions.as_ref().map(|decisions| decisions.only(&self.used_by(&packets)));
        Self { paths: self.paths.clone(), duration_s, packets, decisions }
    }

    /// The place of the decision that bound a packet; none for data that was sent before, or if only one path could carry data.
    pub fn decision_of(&self, packet: &TimelinePacket) -> Option<usize> {
        self.decisions.as_ref().filter(|_| packet.kind == SendKind::First)?.at(packet.bound_s)
    }

    /// Leaves only the decisions that bound one of the packets.
    pub fn forget_other_decisions(&mut self) {
        let used = self.used_by(&self.packets);
        self.decisions.iter_mut().for_each(|decisions| decisions.keep(&used));
    }

    /// The places of the decisions that bound one of `packets`, which ascend.
    fn used_by(&self, packets: &[TimelinePacket]) -> Vec<usize> {
        let mut used: Vec<usize> = packets.iter().filter_map(|packet| self.decision_of(packet)).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// The number of packets with this fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.packets.iter().filter(|packet| packet.fate == fate).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sent_s: f64, arrived_s: Option<f64>, delivered_s: Option<f64>) -> TimelinePacket {
        TimelinePacket {
            data_start: 0,
            data_end: 1400,
            path: 0,
            bound_s: sent_s,
            sent_s,
            arrived_s,
            subflow_in_order_s: arrived_s,
            delivered_s,
            kind: SendKind::First,
            fate: match (arrived_s, delivered_s) {
                (_, Some(_)) => Fate::Delivered,
                (Some(_), None) => Fate::Waiting,
                (None, None) => Fate::Lost,
            },
        }
    }

    #[test]
    fn a_file_is_read_as_it_is_described() {
        let text = r#"{"paths": ["wlan"], "duration_s": 2.5, "packets": [{"data_start": 1, "data_end": 1401, "path": 0,
            "bound_s": 0.5, "sent_s": 0.75, "arrived_s": null, "subflow_in_order_s": null, "delivered_s": null, "kind": "opportunistic", "fate": "on_the_way"}]}"#;
        let timeline: Timeline = serde_json::from_str(text).unwrap();
        let expected = TimelinePacket {
            data_start: 1,
            data_end: 1401,
            bound_s: 0.5,
            kind: SendKind::Opportunistic,
            fate: Fate::OnTheWay,
            ..packet(0.75, None, None)
        };
        assert_eq!(
            timeline,
            Timeline { paths: vec!["wlan".into()], duration_s: 2.5, packets: vec![expected], decisions: None }
        );
    }

    #[test]
    fn waiting_begins_with_the_arrival() {
        assert_eq!(packet(1.0, Some(1.25), Some(1.75)).waited_s(), Some(0.5));
        assert_eq!(packet(1.0, Some(1.25), Some(1.25)).waited_s(), Some(0.0));
        assert_eq!(packet(1.0, Some(1.25), None).waited_s(), None);
        assert_eq!(packet(1.0, None, None).waited_s(), None);
        let of_subflow =
            |subflow_in_order_s| TimelinePacket { subflow_in_order_s, ..packet(1.0, Some(1.25), Some(1.75)) };
        assert_eq!(
            [Some(1.5), Some(1.25), None].map(|at| of_subflow(at).waited_in_subflow_s()),
            [0.25, 0.0, 0.5].map(Some)
        );
    }

    #[test]
    fn a_cut_ends_when_its_packets_have_been_delivered() {
        let packets =
            vec![packet(0.0, Some(1.0), Some(4.0)), packet(1.0, Some(2.0), Some(3.0)), packet(9.0, None, None)];
        let timeline = Timeline { paths: vec![], duration_s: 20.0, packets, decisions: None };
        assert_eq!(timeline.first(3), timeline);
        assert_eq!((timeline.first(2).duration_s, timeline.first(2).packets.len()), (4.0, 2));
        // A packet that still waits at the end has waited until the end.
        let mut waiting = timeline.clone();
        waiting.packets[0] = packet(0.0, Some(1.0), None);
        assert_eq!(waiting.first(2).duration_s, 20.0);
    }
}
