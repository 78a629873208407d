//! A curve that rises and falls again and again, cut into its cycles.

/// A fall to less than this share of what it was ends a cycle.
const FALL: f64 = 0.75;
/// The least number of values in a cycle; fewer are a disturbance.
const LEAST: usize = 4;

/// A rise from a trough to the peak before the next fall.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cycle {
    /// From the peak before it to its own peak, in steps of the curve: a fall and a rise.
    pub length: f64,
    /// Trough ÷ peak before it.
    pub fall: f64,
    /// From the trough to the peak.
    pub rise: Vec<f64>,
}

/// The whole cycles of a curve: from a peak through the trough after it to the next peak.
pub(crate) fn cycles(values: &[f64]) -> Vec<Cycle> {
    let mut turns = turns(values).into_iter();
    // The curve begins in the midst of a cycle.
    let Some((mut peak, mut trough)) = turns.next() else { return Vec::new() };
    let mut cycles = Vec::new();
    for (next_peak, next_trough) in turns {
        let rise = values[trough..=next_peak].to_vec();
        if rise.len() >= LEAST {
            let fall = values[trough] / values[peak];
            cycles.push(Cycle { length: (next_peak - peak) as f64, fall, rise });
        }
        (peak, trough) = (next_peak, next_trough);
    }
    cycles
}

/// Places of each peak and of the trough that follows it.
fn turns(values: &[f64]) -> Vec<(usize, usize)> {
    let mut turns = Vec::new();
    let (mut peak, mut trough) = (0, None);
    for place in 0..values.len() {
        let value = values[place];
        match trough {
            None if value >= values[peak] => peak = place,
            None if value < FALL * values[peak] => trough = Some(place),
            None => {}
            Some(low) if value <= values[low] => trough = Some(place),
            Some(low) if value * FALL > values[low] => {
                turns.push((peak, low));
                (peak, trough) = (place, None);
            }
            Some(_) => {}
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sawtooth_is_cut_at_its_peaks() {
        let tooth = [4.0, 5.0, 6.0, 7.0, 8.0];
        let values: Vec<f64> = tooth.into_iter().cycle().take(23).collect();
        let found = cycles(&values);
        // The first rise has no peak before it; the last has no fall after it.
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], Cycle { length: 5.0, fall: 0.5, rise: tooth.to_vec() });
        assert!(found.iter().all(|cycle| *cycle == found[0]));
    }

    #[test]
    fn what_hardly_falls_has_no_cycle() {
        assert_eq!(cycles(&[1.0, 2.0, 1.9, 2.1, 1.8, 2.0]), []);
        assert_eq!(cycles(&[]), []);
    }
}
