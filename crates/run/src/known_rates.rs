//! Schedulers that know their paths' true capacities: the part of a result that is the estimator's.

use anabranch_engine::schedule::{Around, AroundRounds, PathView, Round, Scheduler};
use anabranch_metrics::CapacityCurve;
use anabranch_network::LossSpec;
use anabranch_scenario::PlugIn;
use anabranch_units::{Duration, Instant};

/// Before the name of a scheduler. No scenario can write it: the readers know registered names alone.
const PREFIX: &str = "known-rates+";
/// The capacity of a moment is the mean over so long from then on: a recorded one has no rate at a point.
const SPAN: Duration = Duration::from_millis(100);

/// `scheduler` with the true capacities in place of measured ones; `None` if it reads none.
pub fn with_known_rates(scheduler: &PlugIn) -> Option<PlugIn> {
    let built = anabranch_schedulers::build(&scheduler.name, &scheduler.parameters).ok()?;
    let name = format!("{PREFIX}{}", scheduler.name);
    built.measures_capacity().then(|| PlugIn { name, ..scheduler.clone() })
}

/// A scheduler of this name knows what no sender can: it is a yardstick, and has no place among the schedulers.
pub fn knows_rates(name: &str) -> bool {
    registered(name).1
}

/// The scheduler of the registry behind `name`, and whether it knows the true capacities.
pub(crate) fn registered(name: &str) -> (&str, bool) {
    name.strip_prefix(PREFIX).map_or((name, false), |name| (name, true))
}

/// No rate is less, in bytes per second: a rate of zero cannot be divided by, and this one delivers nothing in a run either.
const LEAST: f64 = 1.0;

/// From the first time to the second.
pub(crate) type Span = (Instant, Instant);

/// One subflow's part of the bottleneck of a path.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    capacity: CapacityCurve,
    flows: u32,
    /// Outages, by their begin.
    outages: Vec<Span>,
}

impl Share {
    /// An equal part for each of the `flows` with congestion control that cross a bottleneck of this capacity and may send
    /// at a time. In `outages`, in any order, the path carries nothing.
    pub fn new(capacity: CapacityCurve, flows: u32, mut outages: Vec<Span>) -> Self {
        outages.sort_unstable();
        Self { capacity, flows, outages }
    }

    /// Bytes that one flow may send from `from` to `to`.
    fn bytes(&self, from: Instant, to: Instant) -> f64 {
        let (mut open, mut at) = (0.0, from);
        for &(begin, end) in self.outages.iter().filter(|(begin, end)| *begin < to && from < *end) {
            open += self.capacity.bytes(at, begin.max(at));
            at = at.max(end.min(to));
        }
        (open + self.capacity.bytes(at, to)) / f64::from(self.flows.max(1))
    }
}

/// When a path loses everything. `losses`: the loss from each time on, ascending.
pub(crate) fn all_lost(losses: impl Iterator<Item = (Instant, LossSpec)>) -> Vec<Span> {
    let (mut spans, mut since) = (Vec::new(), None);
    for (at, loss) in losses {
        match since {
            None if loss.is_total() => since = Some(at),
            Some(begin) if !loss.is_total() => {
                spans.push((begin, at));
                since = None;
            }
            _ => {}
        }
    }
    spans.extend(since.map(|begin| (begin, Instant::MAX)));
    spans
}

/// Puts the true capacity into each path's view before its scheduler reads it: its part of the bottleneck. Bursts of other
/// traffic without congestion control are not deducted.
#[derive(Clone, Debug)]
pub(crate) struct KnownRates {
    /// Capacities by path id; `None` for one without a limit.
    capacities: Vec<Option<Share>>,
    /// Bytes of a packet without payload.
    headers: u64,
}

impl KnownRates {
    /// `inner` with these capacities.
    pub fn around(inner: Box<dyn Scheduler>, capacities: Vec<Option<Share>>, headers: u64) -> Box<dyn Scheduler> {
        Box::new(Around { wrapper: Self { capacities, headers }, inner })
    }

    /// Payload bytes per second.
    fn rate(&self, now: Instant, path: &PathView) -> Option<f64> {
        let share = self.capacities.get(path.id.index())?.as_ref()?;
        let payload = f64::from(path.mss) / (f64::from(path.mss) + self.headers as f64);
        Some((share.bytes(now, now + SPAN) / SPAN.as_secs_f64() * payload).max(LEAST))
    }

    fn assume(&self, round: &mut Round<'_>) {
        for n in 0..round.paths().len() {
            let path = round.paths()[n];
            if let Some(rate) = self.rate(round.now(), &path) {
                round.assume_capacity(path.id, rate);
            }
        }
    }
}

impl AroundRounds for KnownRates {
    fn schedule(&mut self, inner: &mut dyn Scheduler, round: &mut Round<'_>) {
        self.assume(round);
        inner.schedule(round);
    }
    fn rescue(&mut self, inner: &mut dyn Scheduler, round: &mut Round<'_>) {
        self.assume(round);
        inner.rescue(round);
    }
    fn pass_on(&mut self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::congestion::FixedWindows;
    use anabranch_engine::schedule::{Assignment, Cause};
    use anabranch_network::CapacitySpec;
    use anabranch_units::{PathId, Rate};
    use std::sync::{Arc, Mutex};

    fn plug_in(name: &str) -> PlugIn {
        PlugIn { name: name.into(), parameters: Vec::new() }
    }

    #[test]
    fn only_schedulers_that_read_capacities_can_know_them() {
        let known = with_known_rates(&plug_in("playahead")).unwrap();
        assert_eq!(registered(&known.name), ("playahead", true));
        assert_eq!(registered("playahead"), ("playahead", false));
        assert!(with_known_rates(&plug_in("fdps")).is_none());
        let capacity = PlugIn { parameters: vec![("capacity".into(), 1.0)], ..plug_in("fdps") };
        assert_eq!(with_known_rates(&capacity).unwrap().parameters, capacity.parameters);
        assert!(anabranch_scenario::scheduler("test", "known-rates+playahead").is_err());
    }

    /// One flow alone.
    fn whole(capacity: CapacityCurve) -> Share {
        Share::new(capacity, 1, Vec::new())
    }

    /// Notes the capacities that it sees.
    #[derive(Debug)]
    struct Noting(Arc<Mutex<Vec<Option<f64>>>>);

    impl Scheduler for Noting {
        fn schedule(&mut self, round: &mut Round<'_>) {
            *self.0.lock().unwrap() = round.paths().iter().map(PathView::capacity_rate).collect();
        }
    }

    #[test]
    fn the_scheduler_that_takes_over_knows_them_too() {
        let curve = || Some(whole(CapacityCurve::new(CapacitySpec::Fixed(Rate::from_bps(8_000_000)))));
        let (seen, mut view) = (Arc::default(), Assignment::new(false));
        view.measure_capacity(true);
        view.set_path(PathView::new(PathId(0), 1400));
        let mut first = KnownRates::around(Box::new(Noting(Arc::default())), vec![curve()], 0);
        let mut next = first.give_way_to(Box::new(Noting(Arc::clone(&seen))));
        next.schedule(&mut Round::new(&mut view, &mut FixedWindows::default(), Cause::Written));
        assert_eq!(*seen.lock().unwrap(), [Some(1e6)]);
    }

    #[test]
    fn a_round_sees_the_true_capacity_of_the_moment() {
        let mut falling = CapacityCurve::new(CapacitySpec::Fixed(Rate::from_bps(12_000_000)));
        falling.change(Instant::from_millis(1000), CapacitySpec::Fixed(Rate::from_bps(0)));
        let (seen, mut view) = (Arc::default(), Assignment::new(false));
        view.measure_capacity(true);
        [0, 1].into_iter().for_each(|id| view.set_path(PathView::new(PathId(id), 1400)));
        let mut known = KnownRates::around(Box::new(Noting(Arc::clone(&seen))), vec![Some(whole(falling)), None], 100);
        // 1,400 of 1,500 bytes of 1.5 MB/s; half of that where it ends after 50 of 100 ms.
        for (at, rate) in [(500, 1.4e6), (950, 0.7e6), (1000, LEAST)] {
            view.set_now(Instant::from_millis(at));
            known.schedule(&mut Round::new(&mut view, &mut FixedWindows::default(), Cause::Written));
            let rates = seen.lock().unwrap().clone();
            assert!(rates[0].is_some_and(|seen| (seen / rate - 1.0).abs() < 1e-6) && rates[1].is_none(), "{rates:?}");
        }
    }

    #[test]
    fn flows_have_equal_parts_and_outages_none() {
        let capacity = CapacityCurve::new(CapacitySpec::Fixed(Rate::from_bps(8_000_000)));
        let ms = Instant::from_millis;
        let share = Share::new(capacity, 4, vec![(ms(180), ms(220)), (ms(100), ms(200))]);
        // 250 bytes per millisecond, and none from 100 to 220 ms.
        for (from, to, bytes) in [(0, 100, 25_000.0), (50, 150, 12_500.0), (110, 210, 0.0), (170, 270, 12_500.0)] {
            assert_eq!(share.bytes(ms(from), ms(to)), bytes, "{from} to {to} ms");
        }
    }

    #[test]
    fn a_loss_of_everything_is_an_outage() {
        let ms = Instant::from_millis;
        let loss = |at: u64, of: f64| (ms(at), LossSpec::Bernoulli(of));
        let back = [(ms(0), LossSpec::None), loss(100, 0.1), loss(200, 1.0), loss(250, 1.0), loss(300, 0.99)];
        assert_eq!(all_lost(back.into_iter()), [(ms(200), ms(300))]);
        let gone = all_lost([loss(0, 1.0), loss(50, 0.0), loss(100, 1.0)].into_iter());
        assert_eq!(gone, [(ms(0), ms(50)), (ms(100), Instant::MAX)]);
        let share = Share::new(CapacityCurve::new(CapacitySpec::Fixed(Rate::from_bps(8_000_000))), 1, gone);
        assert_eq!([(0, 100), (100, 200)].map(|(from, to)| share.bytes(ms(from), ms(to))), [50_000.0, 0.0]);
    }
}
