//! The rates at which a video is encoded.

use anabranch_units::Rate;
use std::sync::Arc;

/// Rates of the same video, each higher than the one before; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder(Arc<[Rate]>);

/// A published ladder.
struct Known {
    name: &'static str,
    /// In kbit/s.
    rates: &'static [u64],
}

const KNOWN: [Known; 2] = [
    // Mao et al., Neural Adaptive Video Streaming with Pensieve (SIGCOMM 2017), §5.1: 240p to 1440p. Also that of the MPC players' code.
    Known { name: "pensieve", rates: &[300, 750, 1200, 1850, 2850, 4300] },
    // Apple, HLS Authoring Specification for Apple Devices, average bit rates of H.264/AVC for 16:9.
    Known { name: "apple", rates: &[145, 365, 730, 1100, 2000, 3000, 4500, 6000, 7800] },
];

impl Ladder {
    /// Names of the published ladders; the first is the usual one.
    pub const NAMES: [&'static str; KNOWN.len()] = [KNOWN[0].name, KNOWN[1].name];

    /// Ladder of these rates; `None` unless there is one, the first is above zero and each is above the one before.
    pub fn new(rates: &[Rate]) -> Option<Self> {
        let first = rates.first()?;
        let ascends = rates.windows(2).all(|pair| pair[0] < pair[1]);
        (first.as_bps() > 0 && ascends).then(|| Self(rates.into()))
    }

    /// The published ladder of this name.
    pub fn named(name: &str) -> Option<Self> {
        let known = KNOWN.iter().find(|known| known.name == name)?;
        Some(Self::of(known))
    }

    fn of(known: &Known) -> Self {
        Self(known.rates.iter().map(|kbit| Rate::from_bps(kbit * 1000)).collect())
    }

    /// Name of a published ladder.
    pub fn name(&self) -> Option<&'static str> {
        KNOWN.iter().find(|known| Self::of(known) == *self).map(|known| known.name)
    }

    /// Rates, the lowest first.
    pub fn rates(&self) -> &[Rate] {
        &self.0
    }
}

impl Default for Ladder {
    fn default() -> Self {
        Self::of(&KNOWN[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_ladders_ascend_and_are_known_by_name() {
        for name in Ladder::NAMES {
            let ladder = Ladder::named(name).unwrap();
            assert_eq!((Ladder::new(ladder.rates()).as_ref(), ladder.name()), (Some(&ladder), Some(name)));
        }
        assert_eq!((Ladder::default().name(), Ladder::named("none")), (Some("pensieve"), None));
    }

    #[test]
    fn a_ladder_has_rates_and_ascends() {
        let of = |rates: &[u64]| Ladder::new(&rates.iter().map(|bps| Rate::from_bps(*bps)).collect::<Vec<_>>());
        assert!(of(&[1]).is_some() && of(&[5, 6, 9]).is_some_and(|ladder| ladder.name().is_none()));
        for wrong in [&[][..], &[0, 1], &[2, 2], &[3, 2]] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }
}
