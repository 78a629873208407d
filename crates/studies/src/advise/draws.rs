//! Draws around what was measured: links vary, and a measurement errs.

use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, LossSpec, QueueSpec, Topology, WaySpec};
use anabranch_scenario::Scenario;
use anabranch_units::{Duration, Rate, Rng};

/// Losses are rare events, so a measured share of them errs by this many times the error of the rest.
const LOSS_ERRS: f64 = 3.0;

/// The scenario of draw `number`, the first of which is 0: the input itself. In each other draw the rates, delays, queues and losses
/// of a path are multiplied by factors that are uniform in 1 ± `error`, for losses 1 ± 3 `error` and never below zero. Recorded
/// capacities stay, since their seed draws where they begin.
pub(super) fn draw(scenario: &Scenario, number: u32, error: f64) -> Scenario {
    let mut drawn = Scenario { repeat: 1, seed: scenario.seed.wrapping_add(number.into()), ..scenario.clone() };
    if number > 0 {
        vary(&mut drawn.topology, drawn.seed, error);
    }
    drawn
}

fn vary(topology: &mut Topology, seed: u64, error: f64) {
    for path in &mut topology.paths {
        let factors = Factors::new(seed, &path.name, error);
        [&mut path.down, &mut path.up].into_iter().for_each(|way| factors.way(way));
    }
    for link in &mut topology.links {
        let factors = Factors::new(seed, &link.name, error);
        [&mut link.down, &mut link.up].into_iter().for_each(|bottleneck| factors.bottleneck(bottleneck));
        link.behind.iter_mut().flat_map(|behind| behind.iter_mut()).for_each(|way| factors.behind(way));
    }
}

/// Factors of the values of a path or link, in both directions.
struct Factors {
    rate: f64,
    delay: f64,
    queue: f64,
    loss: f64,
}

impl Factors {
    fn new(seed: u64, name: &str, error: f64) -> Self {
        let mut rng = Rng::stream(seed, &format!("advise.{name}"));
        let mut factor = |error: f64| (1.0 + error * (2.0 * rng.unit() - 1.0)).max(0.0);
        Self { rate: factor(error), delay: factor(error), queue: factor(error), loss: factor(LOSS_ERRS * error) }
    }

    fn way(&self, way: &mut WaySpec) {
        if let Bottleneck::Own(own) = &mut way.bottleneck {
            self.bottleneck(own);
        }
        self.behind(way);
    }

    fn behind(&self, way: &mut WaySpec) {
        way.delay = Duration::from_secs_f64(way.delay.as_secs_f64() * self.delay);
        if let LossSpec::Bernoulli(p) = &mut way.loss {
            // A loss of everything is an outage.
            *p = if *p < 1.0 { (*p * self.loss).min(0.99) } else { *p };
        }
    }

    fn bottleneck(&self, bottleneck: &mut BottleneckSpec) {
        if let CapacitySpec::Fixed(rate) = &mut bottleneck.capacity {
            *rate = Rate::from_bps(scaled(rate.as_bps(), self.rate));
        }
        match &mut bottleneck.queue {
            QueueSpec::Packets(packets) => *packets = scaled((*packets).into(), self.queue) as u32,
            QueueSpec::Bytes(bytes) => *bytes = scaled(*bytes, self.queue),
            QueueSpec::Managed(..) => {}
        }
    }
}

/// Never zero.
fn scaled(value: u64, factor: f64) -> u64 {
    ((value as f64 * factor) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::tests::TWO;
    use anabranch_scenario::Document;
    use anabranch_units::Direction;

    fn rates(scenario: &Scenario) -> Vec<u64> {
        let own = |at: usize| scenario.topology.narrowest(at, Direction::Down).unwrap().1.capacity.initial_rate();
        (0..2).map(|at| own(at).as_bps()).collect()
    }

    #[test]
    fn the_first_draw_is_the_input_and_the_others_lie_around_it() {
        let scenario = Document::parse("x.toml", TWO).unwrap().scenario;
        assert_eq!(draw(&scenario, 0, 0.5).topology, scenario.topology);
        assert_eq!(draw(&scenario, 3, 0.0).topology.paths[0].down.delay, scenario.topology.paths[0].down.delay);
        let drawn: Vec<Vec<u64>> = (1..200).map(|number| rates(&draw(&scenario, number, 0.1))).collect();
        for (path, rate) in rates(&scenario).into_iter().enumerate() {
            let of = || drawn.iter().map(|rates| rates[path] as f64 / rate as f64);
            assert!(of().all(|factor| (0.9..=1.1).contains(&factor)));
            // Both halves, and near both ends.
            assert!(of().any(|factor| factor < 0.92) && of().any(|factor| factor > 1.08));
        }
        // Each path has factors of its own.
        assert!(drawn.iter().any(|rates| rates[0] as f64 / 20e6 > 1.05 && (rates[1] as f64 / 10e6) < 0.95));
        assert_eq!(draw(&scenario, 7, 0.1), draw(&scenario, 7, 0.1));
    }
}
