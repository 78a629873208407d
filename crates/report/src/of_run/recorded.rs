//! Rate, round trip and loss over time, as the recordings of a run's paths have them.

use anabranch_metrics::{CapacityCurve, MetricRef};
use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, PathSpec, WaySpec};
use anabranch_run::{Job, layout};
use anabranch_units::{Direction, Duration, Instant};

/// Recorded rate on the way of the data, in bit/s.
pub const RATE: &str = "trace_rate_bps";
/// Recorded delay of both directions together, in seconds. A direction without a recording counts with its constant delay.
pub const RTT: &str = "trace_rtt_s";
/// Recorded probability of loss on the way of the data, 0 to 1.
pub const LOSS: &str = "trace_loss";

/// A column: its name, and a value per sample.
type Column = (String, Vec<Option<f64>>);

/// The columns of a job's recorded paths, over samples of this length and number.
pub fn columns(job: &Job, (step, samples): (Duration, u64)) -> Vec<Column> {
    let topology = layout::topology(&job.scenario, job.seed);
    let used = topology.paths.iter().enumerate().filter(|(path, _)| job.choice.uses(*path));
    let way = job.scenario.direction().first();
    used.flat_map(|(_, path)| of_path(path, way, (step, samples))).collect()
}

fn of_path(path: &PathSpec, direction: Direction, (step, samples): (Duration, u64)) -> Vec<Column> {
    let column = |name: &str, value: &dyn Fn(Instant) -> f64| {
        let begins = (0..samples).map(|sample| Instant::ZERO + step * sample);
        (MetricRef::of_path(&path.name, name).to_string(), begins.map(|begin| Some(value(begin))).collect())
    };
    let (way, mut columns) = (path.way(direction), Vec::new());
    if let Bottleneck::Own(BottleneckSpec { capacity, .. }) = &way.bottleneck
        && matches!(capacity, CapacitySpec::Trace(_) | CapacitySpec::Steps(_))
    {
        let curve = CapacityCurve::new(capacity.clone());
        columns.push(column(RATE, &|begin| 8.0 * curve.bytes(begin, begin + step) / step.as_secs_f64()));
    }
    if path.down.recorded_delay.is_some() || path.up.recorded_delay.is_some() {
        columns.push(column(RTT, &|begin| (delay(&path.down, begin) + delay(&path.up, begin)).as_secs_f64()));
    }
    if let Some(loss) = &way.recorded_loss {
        columns.push(column(LOSS, &|begin| loss.at(begin)));
    }
    columns
}

fn delay(way: &WaySpec, at: Instant) -> Duration {
    way.recorded_delay.as_ref().map_or(way.delay, |steps| steps.at(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_network::Recording;
    use anabranch_run::{Options, Plan, Variant};
    use anabranch_scenario::{Document, TraceStart};
    use std::sync::Arc;

    #[test]
    fn columns_have_what_the_run_is_offered_from_where_its_trace_begins() {
        let text = "duration = '4s'\n[[path]]\nname = 'a'\nrate = '1mbit'\ndelay = '5ms'\n\
                    [[path]]\nname = 'b'\nrate = '1mbit'\ndelay = '5ms'\n[[traffic]]\nkind = 'bulk'\n";
        let mut scenario = Document::parse("x.toml", text).unwrap().scenario;
        let trace = "time_s,rate_mbps,delay_ms_down,loss_percent\n0,8,20,0\n1,4,30,50\n";
        let recorded = Recording::parse(trace).unwrap().down;
        let down = &mut scenario.topology.paths[1].down;
        let Bottleneck::Own(own) = &mut down.bottleneck else { panic!("its own") };
        own.capacity = CapacitySpec::Steps(recorded.rate.unwrap());
        (down.recorded_delay, down.recorded_loss) = (recorded.delay, recorded.loss);
        scenario.paths[1].trace_start = TraceStart::At(Duration::from_secs(1));
        let variant = Variant { cell: Default::default(), scenario: Arc::new(scenario) };
        let plan = Plan::new(&[variant], &Options::default());
        let of = |row: usize| columns(&plan.jobs().nth(row).unwrap(), (Duration::from_millis(500), 4));
        let column = |name: &str, values: [f64; 4]| (format!("path.b.{name}"), values.map(Some).to_vec());
        let expected = [
            column(RATE, [4e6, 4e6, 8e6, 8e6]),
            // Up is 5 ms.
            column(RTT, [0.035, 0.035, 0.025, 0.025]),
            column(LOSS, [0.5, 0.5, 0.0, 0.0]),
        ];
        assert_eq!(of(0), expected);
        let alone = |path: usize| plan.jobs().position(|job| job.choice == anabranch_run::Choice::Single(path));
        assert_eq!(of(alone(0).unwrap()), []);
        assert_eq!(of(alone(1).unwrap()), expected);
    }
}
