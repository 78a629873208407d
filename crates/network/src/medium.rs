//! Shared air: a medium that several bottlenecks divide, in turns.

use anabranch_units::Duration;
use std::sync::Arc;

/// A medium on which one station sends at a time. Each direction of a path or link is a station. Stations that have something
/// to send take turns, so that each has as many opportunities as any other, whatever its rate: 802.11's DCF in the long run. So a slow
/// station slows down all of them (Heusse et al., "Performance anomaly of 802.11b", INFOCOM 2003).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediumSpec {
    /// Name, which its bottlenecks have in common.
    pub name: String,
    /// Airtime before the first bit of each turn: contention, preamble, acknowledgment.
    pub overhead: Duration,
    /// The most packets of one turn: an aggregated frame; at least 1.
    pub packets: u32,
}

/// A medium while it is used.
#[derive(Debug)]
pub(crate) struct Medium {
    pub spec: Arc<MediumSpec>,
    /// Drains by index, in the order of their turns.
    pub stations: Vec<usize>,
    /// Place of the station that sends or sent last.
    last: usize,
    /// Packets that it may send in its turn yet.
    left: u32,
}

impl Medium {
    pub fn new(spec: Arc<MediumSpec>) -> Self {
        Self { spec, stations: Vec::new(), last: 0, left: 0 }
    }

    /// The station that sends next on the free medium, and the overhead of its packet; `waits` says which stations want to.
    pub fn next(&mut self, waits: impl Fn(usize) -> bool) -> Option<(usize, Duration)> {
        let last = self.stations[self.last];
        if self.left > 0 && waits(last) {
            self.left -= 1;
            return Some((last, Duration::ZERO));
        }
        self.left = 0;
        let places = (self.last + 1..self.stations.len()).chain(0..=self.last);
        self.last = places.into_iter().find(|place| waits(self.stations[*place]))?;
        self.left = self.spec.packets.saturating_sub(1);
        Some((self.stations[self.last], self.spec.overhead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stations_take_turns_of_several_packets() {
        let overhead = Duration::from_micros(100);
        let mut medium = Medium::new(Arc::new(MediumSpec { name: "air".into(), overhead, packets: 2 }));
        medium.stations = vec![7, 8, 9];
        let turns: Vec<_> = (0..6).map(|_| medium.next(|station| station != 8)).collect();
        let [one, other] = [9, 7].map(|station| [Some((station, overhead)), Some((station, Duration::ZERO))]);
        assert_eq!(turns, [one, other, one].concat());
        // A turn ends when its station has nothing more.
        assert_eq!(medium.next(|station| station == 8), Some((8, overhead)));
        assert_eq!(medium.next(|_| false), None);
        assert_eq!(medium.next(|_| true), Some((9, overhead)));
    }
}
