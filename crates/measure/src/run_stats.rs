//! The load of each path during a run, for `anabranch status`.

use anabranch_link::PathStats;
use anabranch_trace::{Event, Origin, Recorder, SendKind};
use anabranch_units::Instant;
use std::collections::BTreeMap;

/// All paths, by connection and path.
#[derive(Debug, Default)]
pub(crate) struct RunStats {
    pub paths: BTreeMap<(u32, u8), PathStats>,
    /// Bytes that applications received.
    pub delivered: u64,
    /// Bytes that applications wrote.
    written: u64,
    /// How far the peer has acknowledged each connection's stream.
    acked: BTreeMap<u32, u64>,
    /// Sum of these.
    pub acked_bytes: u64,
}

impl RunStats {
    /// The peer has acknowledged all that applications wrote.
    pub fn is_acked(&self) -> bool {
        self.acked_bytes >= self.written
    }
}

impl Recorder for RunStats {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        let key = (origin.connection.0, origin.path.0);
        match event {
            Event::DataSent { data, kind, .. } => {
                let path = self.paths.entry(key).or_default();
                path.add(now, data.len());
                path.retransmitted += u64::from(*kind == SendKind::Retransmission);
            }
            Event::Window(window) => {
                let path = self.paths.entry(key).or_default();
                (path.srtt, path.cwnd, path.in_flight) = (window.srtt, window.cwnd, window.in_flight);
            }
            Event::Delivered(data) => self.delivered += data.len(),
            Event::Written(data) => self.written += data.len(),
            Event::DataAcked(offset) => {
                let acked = self.acked.entry(origin.connection.0).or_default();
                self.acked_bytes += offset.saturating_sub(*acked);
                *acked = (*acked).max(*offset);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{ConnId, PathId, Range, Side};

    #[test]
    fn a_rate_is_that_of_the_last_whole_second() {
        let mut stats = RunStats::default();
        let origin = Origin { host: Some(Side::Server), connection: ConnId(0), path: PathId(1) };
        let mut sent = |ms, kind| {
            stats.record(
                Instant::from_millis(ms),
                origin,
                &Event::DataSent { seq: 1, data: Range::new(0, 1000), kind },
            );
        };
        sent(100, SendKind::First);
        sent(900, SendKind::First);
        sent(1_500, SendKind::Retransmission);
        stats.record(Instant::from_millis(1_600), origin, &Event::Delivered(Range::new(5, 12)));
        assert_eq!(stats.delivered, 7);
        let path = stats.paths[&(0, 1)];
        assert_eq!((path.sent_bytes, path.packets, path.retransmitted), (3000, 3, 1));
        let rates = [1_600, 2_100, 3_100].map(|ms| path.rate_bps(Instant::from_millis(ms)));
        assert_eq!(rates, [16_000, 8_000, 0]);
    }
}
