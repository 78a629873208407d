//! One rate for all segments.

use super::{Abr, AbrView};
use anabranch_plugin::registry::{Entry, Handle, whole};

const RUNG: Handle<u64> =
    whole("rung", 1, 1..=100).about("place in the ladder, 1 the lowest rate; beyond the ladder, the highest");

/// The registry's entry.
pub const ENTRY: Entry<dyn Abr> = Entry {
    name: "fixed",
    aliases: &["constant"],
    about: "one rate for all segments",
    page: PAGE,
    parameters: &[RUNG.parameter],
    build: |parameters| Box::new(Fixed { place: RUNG.of(parameters).saturating_sub(1) as usize }),
};

const PAGE: &str = "\
# Idea
No adaptation: what a player does whose viewer chose the quality by hand.

# Rule
Each segment has the rate at place `rung` of the ladder.

# When it helps
As a reference: startup and stalls then follow from the network alone.

# When it hurts
On a path that is slower than the rate, play stalls again and again; on a faster one, quality stays low.

# Departures
None.

# References
None.
";

#[derive(Debug)]
struct Fixed {
    place: usize,
}

impl Abr for Fixed {
    fn choose(&mut self, view: &AbrView<'_>) -> usize {
        self.place.min(view.ladder.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Duration, Rate};

    #[test]
    fn the_rung_counts_from_one_and_ends_with_the_ladder() {
        let ladder = [300, 750, 1200].map(Rate::from_bps);
        let (segment, level, capacity) = (Duration::from_secs(4), Duration::ZERO, Duration::from_secs(30));
        let view = AbrView { ladder: &ladder, segment, level, capacity, last: None };
        let of = |rung: f64| ENTRY.build(&[("rung".into(), rung)]).choose(&view);
        assert_eq!([of(1.0), of(3.0), of(9.0), ENTRY.build(&[]).choose(&view)], [0, 2, 2, 0]);
    }
}
