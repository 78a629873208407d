//! The capacity of a bottleneck over time.

use anabranch_network::{CapacitySpec, CapacityTrace, Change};
use anabranch_units::{Direction, Instant};

/// The capacity of one bottleneck over time, changes of rate included.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityCurve {
    /// From each time on, until the next; the first begins the run.
    pieces: Vec<(Instant, CapacitySpec)>,
}

impl CapacityCurve {
    /// The same from beginning to end.
    pub fn new(spec: CapacitySpec) -> Self {
        Self { pieces: vec![(Instant::ZERO, spec)] }
    }

    /// From `at` on the capacity is `spec`; calls come in order of time.
    pub fn change(&mut self, at: Instant, spec: CapacitySpec) {
        self.pieces.push((at, spec));
    }

    /// One rate from beginning to end.
    pub fn is_constant(&self) -> bool {
        matches!(self.pieces[..], [(_, CapacitySpec::Fixed(_))])
    }

    /// Bytes that it could carry after `from` and up to `to`. A recorded opportunity at `from` itself does not count: what
    /// comes to the bottleneck in that very moment has missed it.
    pub fn bytes(&self, from: Instant, to: Instant) -> f64 {
        let ends = self.pieces.iter().skip(1).map(|(at, _)| *at).chain([Instant::MAX]);
        let within = self.pieces.iter().zip(ends).map(|((start, spec), end)| (from.max(*start), to.min(end), spec));
        within.filter(|(from, to, _)| from < to).map(|(from, to, spec)| bytes_of(spec, from, to)).sum()
    }
}

/// The capacity of one bottleneck with those changes of a timeline that apply to it.
pub(crate) fn after_changes(
    spec: &CapacitySpec,
    timeline: &[(Instant, Change)],
    applies: impl Fn(&Change) -> bool,
) -> CapacityCurve {
    let mut capacity = CapacityCurve::new(spec.clone());
    if let CapacitySpec::Trace(_) = spec {
        // Recorded capacity has no rate to set.
        return capacity;
    }
    for (at, change) in timeline {
        if let (true, Change::PathRate(_, _, rate) | Change::LinkRate(_, _, rate)) = (applies(change), change) {
            capacity.change(*at, CapacitySpec::Fixed(*rate));
        }
    }
    capacity
}

/// True if `change` sets the rate of path `index`'s own bottleneck in `direction`.
pub(crate) fn is_path_rate(change: &Change, index: usize, direction: Direction) -> bool {
    matches!(change, Change::PathRate(i, d, _) if (*i, *d) == (index, direction))
}

/// True if `change` sets the rate of link `index` in `direction`.
pub(crate) fn is_link_rate(change: &Change, index: usize, direction: Direction) -> bool {
    matches!(change, Change::LinkRate(i, d, _) if (*i, *d) == (index, direction))
}

fn bytes_of(spec: &CapacitySpec, from: Instant, to: Instant) -> f64 {
    match spec {
        CapacitySpec::Fixed(rate) => rate.as_bps() as f64 * to.since(from).as_secs_f64() / 8.0,
        CapacitySpec::Trace(trace) => {
            (trace.first_after(to) - trace.first_after(from)) as f64 * CapacityTrace::BYTES as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rate;
    use std::sync::Arc;

    const fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn rates_change() {
        let mut capacity = CapacityCurve::new(CapacitySpec::Fixed(Rate::from_bps(8_000_000)));
        capacity.change(ms(100), CapacitySpec::Fixed(Rate::from_bps(16_000_000)));
        capacity.change(ms(200), CapacitySpec::Fixed(Rate::from_bps(0)));
        assert_eq!(capacity.bytes(ms(0), ms(50)), 50_000.0);
        assert_eq!(capacity.bytes(ms(50), ms(150)), 50_000.0 + 100_000.0);
        assert_eq!(capacity.bytes(ms(150), ms(900)), 100_000.0);
        assert_eq!(capacity.bytes(ms(150), ms(150)), 0.0);
        assert_eq!(capacity.bytes(ms(150), ms(100)), 0.0);
    }

    #[test]
    fn traces_repeat() {
        let trace = CapacityTrace::new(vec![0, 3, 3, 10]);
        let capacity = CapacityCurve::new(CapacitySpec::Trace(Arc::new(trace)));
        let count = |from, to| capacity.bytes(from, to) / CapacityTrace::BYTES as f64;
        assert_eq!(count(ms(0), Instant::from_nanos(2_999_999)), 0.0);
        assert_eq!(count(ms(0), ms(3)), 2.0);
        assert_eq!(count(ms(3), ms(9)), 0.0);
        // The last opportunity of one round and the first of the next come together.
        assert_eq!(count(ms(9), ms(10)), 2.0);
        assert_eq!(count(ms(0), ms(1000)), 400.0);
        let empty = CapacityCurve::new(CapacitySpec::Trace(Arc::new(CapacityTrace::new(vec![]))));
        assert_eq!(empty.bytes(ms(0), ms(10)), 0.0);
    }
}
