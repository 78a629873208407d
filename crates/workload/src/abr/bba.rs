//! Buffer-based rate adaptation: BBA-0.

use super::{Abr, AbrView};
use anabranch_plugin::registry::{Entry, Handle, number};

const RESERVOIR: Handle<f64> = number("reservoir", 0.375, 0.0..=1.0)
    .about("part of the greatest buffer at a request up to which the lowest rate is taken: 90 s of 240 s");
const CUSHION: Handle<f64> = number("cushion", 0.525, 0.01..=1.0)
    .about("part behind the reservoir over which the rate rises to the highest: 126 s of 240 s");

/// The registry's entry.
pub const ENTRY: Entry<dyn Abr> = Entry {
    name: "bba",
    aliases: &["bba-0"],
    about: "the rate rises linearly with the buffer, and holds until it would leave its step",
    page: PAGE,
    parameters: &[RESERVOIR.parameter, CUSHION.parameter],
    build: |parameters| Box::new(Bba { reservoir: RESERVOIR.of(parameters), cushion: CUSHION.of(parameters) }),
};

const PAGE: &str = "\
# Idea
The buffer says all that matters: while it holds enough, a higher rate costs nothing. No throughput is predicted.

# Rule
f(B) is the lowest rate up to the reservoir, the highest from reservoir + cushion on, and a straight line between. With R the last
rate, R+ and R− the rates next to it:

- B ≤ reservoir: the lowest rate. B ≥ reservoir + cushion: the highest.
- f(B) ≥ R+: the highest rate below f(B). f(B) ≤ R−: the lowest rate above f(B).
- Else R again.

# When it helps
With a large buffer: stalls are rare, and rates change only when f(B) passes the next rate.

# When it hurts
At the beginning, where the buffer does not show what the path carries: it stays at the lowest rate until the reservoir is full. With a small buffer,
each segment moves B by a large part of the cushion.

# Departures
The paper has a buffer of 240 s, a reservoir of 90 s, and the highest rate at 90 % of the buffer. Here both are parts of the greatest
buffer at which a segment is requested: `buffer` less one segment. The first segment counts as after one of the lowest rate. Of BBA-1 (a reservoir from
the sizes of segments to come), BBA-2 (a faster start) and BBA-Others nothing is here.

# References
Huang, Johari, McKeown, Trunnell, Watson: A Buffer-Based Approach to Rate Adaptation: Evidence from a Large Video Streaming Service.
SIGCOMM 2014, algorithm 1 (BBA-0).
";

#[derive(Debug)]
struct Bba {
    reservoir: f64,
    cushion: f64,
}

impl Abr for Bba {
    fn choose(&mut self, view: &AbrView<'_>) -> usize {
        let rate = |place: usize| view.ladder[place].as_bps() as f64;
        let highest = view.ladder.len() - 1;
        let last = view.last.unwrap_or(0).min(highest);
        let most = view.capacity.saturating_sub(view.segment).as_secs_f64();
        let (reservoir, cushion) = (self.reservoir * most, self.cushion * most);
        let level = view.level.as_secs_f64();
        // Huang et al., algorithm 1: in the order of its lines.
        if level <= reservoir {
            return 0;
        }
        if level >= reservoir + cushion {
            return highest;
        }
        // f(B): the line from (reservoir, R_min) to (reservoir + cushion, R_max).
        let f = rate(0) + (level - reservoir) / cushion * (rate(highest) - rate(0));
        let (up, down) = ((last + 1).min(highest), last.saturating_sub(1));
        if f >= rate(up) {
            return view.highest(|rate| rate < f);
        }
        if f <= rate(down) {
            return view.ladder.iter().position(|rate| rate.as_bps() as f64 > f).unwrap_or(highest);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Duration, Rate};

    /// The paper's buffer: 240 s at most at a request, with segments of 4 s, so a reservoir of 90 s and the highest rate from 216 s on.
    fn choose(level: f64, last: Option<usize>) -> usize {
        let ladder = [235, 375, 560, 750, 1050, 1750, 2350, 3000].map(|kbit| Rate::from_bps(kbit * 1000));
        let (segment, capacity) = (Duration::from_secs(4), Duration::from_secs(244));
        let view = AbrView { ladder: &ladder, segment, level: Duration::from_secs_f64(level), capacity, last };
        ENTRY.build(&[]).choose(&view)
    }

    /// f(B) = 235 + (B − 90)/126 · 2765 kbit/s: at 153 s, the middle of the cushion, 1617.5; at 120 s 893.3; at 100 s 454.4.
    #[test]
    fn the_map_is_linear_between_reservoir_and_cushion() {
        assert_eq!(
            [choose(0.0, None), choose(90.0, Some(7)), choose(216.0, Some(0)), choose(240.0, Some(3))],
            [0, 0, 7, 7]
        );
        // From the lowest rate up: the highest below f(B).
        assert_eq!([choose(100.0, Some(0)), choose(120.0, Some(0)), choose(153.0, Some(0))], [1, 3, 4]);
        // From the highest down: the lowest above f(B).
        assert_eq!([choose(100.0, Some(7)), choose(120.0, Some(7)), choose(153.0, Some(7))], [2, 4, 5]);
    }

    /// At 153 s f is 1617.5 kbit/s, between 1050 and 1750: either rate holds, and no other.
    #[test]
    fn a_rate_holds_until_f_passes_the_next() {
        assert_eq!(
            [choose(153.0, Some(4)), choose(153.0, Some(5)), choose(153.0, Some(3)), choose(153.0, Some(6))],
            [4, 5, 4, 5]
        );
        // f = 1750 at 90 + 126 · 1515/2765 = 159.04 s: a moment before, 1050 holds; a moment after, the rule climbs to the highest below f.
        assert_eq!([choose(159.0, Some(4)), choose(159.1, Some(4))], [4, 5]);
        assert_eq!([choose(153.0, None), choose(91.0, None)], [4, 0]);
    }
}
