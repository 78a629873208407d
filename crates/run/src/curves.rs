//! A run's values over time, and distributions.

use anabranch_metrics::{CurveRecorder, Density, MetricRef, RunMetrics};
use anabranch_trace::{Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Direction, Instant, PathId};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Curves by name. Over time, in bins from the beginning of the run on, warm-up included: `goodput_bps`, `ofo_packets`,
/// `ofo_bytes`, what the scheduler makes known by its name (`lambda`), `increment_efficiency`, `path.NAME.cwnd_packets`,
/// `.srtt_s`, `.queue_packets`, `.goodput_bps`. Where both ends send, these are of what the server sends; those of what the
/// client sends are `up.goodput_bps`… and `path.NAME, up.cwnd_packets`…. Distributions, over the measured time (RFC 5236): `rbd`, the share of
/// arrivals that left each number of packets in the reorder buffer, and `rd`, the share of packets with each displacement.
pub type Curves = IndexMap<String, Curve>;

/// Values at regular distances: value `i` belongs to `start + i·step`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Position of the first value. Seconds in curves over time, packets in distributions.
    pub start: f64,
    /// From one value to the next.
    pub step: f64,
    /// `None` where nothing was known.
    pub values: Vec<Option<f64>>,
}

/// A distribution ends where less than this lies beyond.
const TAIL: f64 = 1e-6;
/// Most values of a distribution; a longer one has a wider step.
const MOST: usize = 4096;

/// Draws one run's curves: give it every event, then call [`Drawn::finish`].
#[derive(Debug)]
pub struct Drawn {
    /// One per direction of the data.
    recorders: Vec<CurveRecorder>,
    /// The paths that the run uses.
    paths: Vec<(PathId, String)>,
}

impl Drawn {
    pub(crate) fn new(recorders: Vec<CurveRecorder>, paths: Vec<(PathId, String)>) -> Self {
        Self { recorders, paths }
    }

    /// The curves of the run that has these metrics.
    pub fn finish(self, metrics: &RunMetrics) -> Curves {
        let mut curves = Curves::new();
        let end = metrics.measured.1;
        let all = self.recorders.into_iter().zip([false, true]).flat_map(|(recorder, second)| {
            let step = recorder.bin().as_secs_f64();
            recorder.finish(end).into_iter().map(move |curve| (second, step, curve))
        });
        for (second, step, curve) in all {
            let name = match curve.path {
                None => format!("{}{}", if second { "up." } else { "" }, curve.name),
                Some(path) => match self.paths.iter().find(|(used, _)| *used == path) {
                    Some((_, name)) => {
                        let own = format!("{name}{}", if second { ", up" } else { "" });
                        MetricRef::of_path(&own, curve.name).to_string()
                    }
                    None => continue,
                },
            };
            curves.insert(name, Curve { start: 0.0, step, values: curve.values });
        }
        for (name, shares) in [("rbd", occupancies(&metrics.density)), ("rd", metrics.density.displacements())] {
            curves.extend(distribution(&shares).map(|curve| (name.to_owned(), curve)));
        }
        curves
    }
}

impl Recorder for Drawn {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.recorders.iter_mut().for_each(|recorder| recorder.record(now, origin, event));
    }
    fn link(&mut self, now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        self.recorders.iter_mut().for_each(|recorder| recorder.link(now, path, direction, size, what));
    }
}

fn occupancies(density: &Density) -> Vec<(i64, f64)> {
    density.occupancies().into_iter().map(|(packets, share)| (packets as i64, share)).collect()
}

/// Shares by number, ascending, as a curve without its thin ends. With a wider step, value `i` is the share of all numbers
/// from its place on to the next.
fn distribution(shares: &[(i64, f64)]) -> Option<Curve> {
    let thin = |ends: &mut dyn Iterator<Item = f64>| {
        let mut sum = 0.0;
        ends.take_while(|share| {
            sum += share;
            sum < TAIL
        })
        .count()
    };
    let low = thin(&mut shares.iter().map(|(_, share)| *share));
    let high = thin(&mut shares.iter().rev().map(|(_, share)| *share));
    let kept = shares.get(low..shares.len() - high)?;
    let (first, last) = (kept.first()?.0, kept.last()?.0);
    let width = (last - first) as usize + 1;
    let step = width.div_ceil(MOST);
    let mut values = vec![Some(0.0); width.div_ceil(step)];
    for (number, share) in kept {
        let place = (number - first) as usize / step;
        values[place] = values[place].map(|sum| sum + share);
    }
    Some(Curve { start: first as f64, step: step as f64, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(shares: &[(i64, f64)]) -> (f64, f64, Vec<f64>) {
        let curve = distribution(shares).expect("there are shares");
        (curve.start, curve.step, curve.values.into_iter().flatten().collect())
    }

    #[test]
    fn gaps_are_zero_and_displacements_may_be_negative() {
        assert_eq!(plain(&[(-2, 0.25), (0, 0.5), (1, 0.25)]), (-2.0, 1.0, vec![0.25, 0.0, 0.5, 0.25]));
        assert_eq!(distribution(&[]), None);
    }

    #[test]
    fn thin_ends_are_cut() {
        let shares = [(-900, 4e-7), (-3, 5e-7), (-2, 4e-7), (0, 0.999), (7, 6e-7), (8, 6e-7), (5000, 3e-7)];
        // Below −2 lie 9e-7, above 7 as much.
        assert_eq!(plain(&shares).0, -2.0);
        assert_eq!(plain(&shares).2.len(), 10);
    }

    #[test]
    fn a_wide_one_has_a_wider_step() {
        let shares: Vec<(i64, f64)> = (0..10_000).map(|n| (n, 1e-4)).collect();
        let (start, step, values) = plain(&shares);
        assert_eq!((start, step, values.len()), (0.0, 3.0, 3334));
        assert!((values[0] - 3e-4).abs() < 1e-12 && (values[3333] - 1e-4).abs() < 1e-12);
        assert!((values.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn extreme_numbers_do_not_exhaust_memory() {
        let (_, step, values) = plain(&[(-(1 << 20), 0.5), (1 << 20, 0.5)]);
        assert!(values.len() <= MOST && step == 513.0, "{step}");
    }
}
