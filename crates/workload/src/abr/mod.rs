//! Bitrate adaptation (ABR): which rate of its ladder a player requests next.

mod bba;
mod bola;
mod fixed;
pub mod registry;
mod throughput;

use anabranch_units::{Duration, Rate};
use core::fmt::Debug;

/// A player at the time at which it requests a segment.
#[derive(Clone, Copy, Debug)]
pub struct AbrView<'a> {
    /// Rates, the lowest first; at least one.
    pub ladder: &'a [Rate],
    /// Playing time of a segment.
    pub segment: Duration,
    /// Playing time in the buffer.
    pub level: Duration,
    /// Most playing time that the buffer takes; at least a segment.
    pub capacity: Duration,
    /// Place in the ladder of the segment before; `None` for the first.
    pub last: Option<usize>,
}

impl AbrView<'_> {
    /// The place of the highest rate that `fits`; of the lowest if none does.
    fn highest(&self, fits: impl Fn(f64) -> bool) -> usize {
        self.ladder.iter().rposition(|rate| fits(rate.as_bps() as f64)).unwrap_or(0)
    }
}

/// A rule that chooses the rate of each segment.
pub trait Abr: Debug + Send {
    /// The place in the ladder of the segment that is requested now. One beyond the ladder means its highest rate.
    fn choose(&mut self, view: &AbrView<'_>) -> usize;
    /// A segment of `bytes` is complete, `time` after it was requested.
    fn on_segment(&mut self, _bytes: u64, _time: Duration) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each rule gives a place in every state of a player, and the same for the same.
        #[test]
        fn every_rule_chooses(
            rates in prop::collection::btree_set(1u64..50_000_000, 1..12),
            (segment, room, level) in (1u64..20_000, 0u64..300_000, 0u64..300_000),
            past in prop::collection::vec((1u64..10_000_000, 1u64..100_000), 0..12),
        ) {
            let ladder: Vec<Rate> = rates.into_iter().map(Rate::from_bps).collect();
            let ms = Duration::from_millis;
            for entry in registry::all() {
                let mut last = None;
                let mut two = [entry.build(&[]), entry.build(&[])];
                for (bytes, time) in &past {
                    let level = ms(level.min(room));
                    let view = AbrView { ladder: &ladder, segment: ms(segment), level, capacity: ms(segment + room), last };
                    let places = two.each_mut().map(|rule| rule.choose(&view));
                    prop_assert!(places[0] < ladder.len() && places[0] == places[1], "{}", entry.name);
                    last = Some(places[0]);
                    two.iter_mut().for_each(|rule| rule.on_segment(*bytes, ms(*time)));
                }
            }
        }
    }
}
