//! BOLA-BASIC: utility of a rate against the buffer, per bit.

use super::{Abr, AbrView};
use anabranch_plugin::registry::{Entry, Handle, number};

const GP: Handle<f64> =
    number("gp", 5.0, 0.01..=100.0).about("γp: weight of playing without stalls against the utility of the rate");

/// The registry's entry.
pub const ENTRY: Entry<dyn Abr> = Entry {
    name: "bola",
    aliases: &["bola-basic"],
    about: "the rate with the most utility per bit, at the buffer that there is",
    page: PAGE,
    parameters: &[GP.parameter],
    build: |parameters| Box::new(Bola { gp: GP.of(parameters) }),
};

const PAGE: &str = "\
# Idea
A rate is worth the logarithm of its bits. A full buffer makes bits cheap, an empty one dear (Lyapunov optimisation). No throughput is predicted.

# Rule
Utility of rate m: v = ln(S_m ÷ S_lowest), with S the bytes of a segment. With Q the buffer in segments, the next segment has the rate with
the greatest

    (V·(v + γp) − Q) ÷ S

where V = (Qmax − 1) ÷ (v_highest + γp), and Qmax is the buffer's size in segments. So the buffer never exceeds Qmax (theorem 1),
and BOLA requests no segment exactly while there is no room for one.

# When it helps
With a buffer of many segments: close to the best utility that any rule could have (theorem 1), whatever the network does.

# When it hurts
With a buffer of few segments, whose levels then lie far apart; and at the beginning, where an empty buffer means the lowest rate.

# Departures
BOLA-BASIC alone: neither BOLA-FINITE (which changes V at the ends of a video), nor BOLA-O and BOLA-U (which use throughput against
oscillation), nor dash.js's placeholder buffer.

# References
Spiteri, Urgaonkar, Sitaraman: BOLA: Near-Optimal Bitrate Adaptation for Online Videos. INFOCOM 2016: BOLA-BASIC,
theorem 1 (the bound), and its evaluation (γp = 5, logarithmic utility).
";

#[derive(Debug)]
struct Bola {
    gp: f64,
}

impl Bola {
    /// The objective of each rate of the ladder, per bit per second.
    fn objectives<'a>(&self, view: &'a AbrView<'_>) -> impl Iterator<Item = f64> + use<'a> {
        let rate = |place: usize| view.ladder[place].as_bps() as f64;
        // Segments of a rate have S in proportion to it. Logarithmic utility, as evaluated: υ = ln(S ÷ S_min).
        let utility = move |place: usize| libm::log(rate(place) / rate(0));
        let segment = view.segment.as_secs_f64();
        let (q, q_max) = (view.level.as_secs_f64() / segment, view.capacity.as_secs_f64() / segment);
        let gp = self.gp;
        // Theorem 1: Q ≤ V·(υ₁ + γp) + 1, which is to be Qmax.
        let v = (q_max - 1.0) / (utility(view.ladder.len() - 1) + gp);
        // BOLA-BASIC: maximise (V·(υ + γp) − Q) ÷ S.
        (0..view.ladder.len()).map(move |place| (v * (utility(place) + gp) - q) / rate(place))
    }
}

impl Abr for Bola {
    fn choose(&mut self, view: &AbrView<'_>) -> usize {
        let better = |best: (usize, f64), other: (usize, f64)| if other.1 > best.1 { other } else { best };
        self.objectives(view).enumerate().reduce(better).map_or(0, |(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Duration, Rate};
    use proptest::prelude::*;

    fn choose(level: f64) -> usize {
        let ladder = [1, 2, 4].map(|mbit| Rate::from_bps(mbit * 1_000_000));
        let (segment, capacity) = (Duration::from_secs(2), Duration::from_secs(20));
        let view = AbrView { ladder: &ladder, segment, level: Duration::from_secs_f64(level), capacity, last: None };
        ENTRY.build(&[]).choose(&view)
    }

    /// Rates of 1, 2 and 4, utilities 0, ln 2 = 0.693, ln 4 = 1.386; Qmax = 10, so V = 9/6.386 = 1.4093. V(v + 5) = 7.0464, 8.0232, 9.
    /// Two rates are as good as each other where (a − Q)/S = (b − Q)/2S, so Q = 2a − b:
    /// lowest and middle at 2 · 7.0464 − 8.0232 = 6.0696 segments = 12.139 s; middle and highest at 2 · 8.0232 − 9 = 7.0464 = 14.093 s.
    #[test]
    fn rates_change_where_worked_out_by_hand() {
        assert_eq!(
            [choose(0.0), choose(12.13), choose(12.15), choose(14.08), choose(14.10), choose(18.0)],
            [0, 0, 1, 1, 2, 2]
        );
    }

    proptest! {
        /// Theorem 1: while the buffer has room for a segment, some rate is worth it; without room, none is. So Q ≤ Qmax.
        #[test]
        fn no_rate_is_worth_more_than_the_buffer_holds(
            rates in prop::collection::btree_set(1000u64..50_000_000, 1..12),
            (segment, room, gp) in (500u64..10_000, 0u64..200_000, 0.1f64..20.0),
            part in 0.0f64..1.5,
        ) {
            let ladder: Vec<Rate> = rates.into_iter().map(Rate::from_bps).collect();
            let ms = Duration::from_millis;
            let level = (room as f64 * part) as u64;
            let view = AbrView { ladder: &ladder, segment: ms(segment), level: ms(level), capacity: ms(segment + room), last: None };
            let best = Bola { gp }.objectives(&view).fold(f64::MIN, f64::max);
            // In V·(υ + γp) − Q of the highest rate, segments.
            let margin = best * 50e6;
            prop_assert!(if level <= room { margin > -1e-6 } else { best < 1e-12 }, "{level} of {room}: {best}");
        }

        #[test]
        fn a_fuller_buffer_never_means_a_lower_rate(
            rates in prop::collection::btree_set(1000u64..50_000_000, 1..12), levels in (0u64..26_000, 0u64..26_000),
        ) {
            let ladder: Vec<Rate> = rates.into_iter().map(Rate::from_bps).collect();
            let of = |level: u64| {
                let (segment, capacity) = (Duration::from_secs(4), Duration::from_secs(30));
                let level = Duration::from_millis(level);
                ENTRY.build(&[]).choose(&AbrView { ladder: &ladder, segment, level, capacity, last: None })
            };
            prop_assert!(of(levels.0.min(levels.1)) <= of(levels.0.max(levels.1)));
        }
    }
}
