//! A run's values over time, in bins.

use crate::IncrementEfficiency;
use crate::over_time::RealMean;
use anabranch_trace::{Event, Held, LinkEvent, Origin, PathState, Recorder, WindowChange, value_name};
use anabranch_units::{ConnId, Direction, Duration, Instant, PathId, Range};

/// Most bins of a curve; what comes later is left out.
const MAX_BINS: usize = 1 << 20;

/// The curves to record.
#[derive(Clone, Debug)]
pub struct CurveConfig {
    /// The connection.
    pub connection: ConnId,
    /// The way of its data.
    pub way: Direction,
    /// Length of a bin; at least a microsecond.
    pub bin: Duration,
    /// How many paths there are.
    pub paths: usize,
    /// LIA over the paths 0 and 1: for `increment_efficiency`.
    pub efficiency: bool,
}

/// One value over time: bin `i` covers `[i·bin, (i+1)·bin)` from the run's beginning; `None` where nothing was known.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeCurve {
    /// Quantity of the curve, with the unit.
    pub name: &'static str,
    /// Path of the curve; `None` = of the connection.
    pub path: Option<PathId>,
    /// One value per bin; the last bin may be shorter than the others.
    pub values: Vec<Option<f64>>,
}

/// Folds events into curves: `goodput_bps` (delivered), `ofo_packets` and `ofo_bytes` (held out of order at the receiver),
/// what the scheduler makes known, `increment_efficiency`; of each path `cwnd_packets`, `srtt_s`, `queue_packets` (the
/// greatest length of its bottleneck on the way of the data) and `goodput_bps` (data that arrived over it as the first). Means over
/// a bin's time unless stated otherwise.
#[derive(Debug)]
pub struct CurveRecorder {
    config: CurveConfig,
    goodput: Bins<Rate>,
    held: Held,
    ofo_packets: Bins<RealMean>,
    ofo_bytes: Bins<RealMean>,
    told: Vec<(&'static str, Bins<RealMean>)>,
    efficiency: Option<(IncrementEfficiency, Bins<RealMean>)>,
    paths: Vec<PathCurves>,
}

#[derive(Debug)]
struct PathCurves {
    cwnd: Bins<RealMean>,
    srtt: Bins<RealMean>,
    queue: Bins<Peak>,
    goodput: Bins<Rate>,
}

/// How a bin sums up the values in it.
trait Fold {
    /// The bin ends at `at`, and the next begins.
    fn close(&mut self, at: Instant) -> Option<f64>;
}

impl Fold for RealMean {
    fn close(&mut self, at: Instant) -> Option<f64> {
        self.advance(at);
        let mean = self.mean();
        self.restart(at);
        mean
    }
}

/// Bytes in the bin, as bits per second.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    bytes: u64,
    since: Instant,
}

impl Fold for Rate {
    fn close(&mut self, at: Instant) -> Option<f64> {
        let passed = at.since(self.since).as_secs_f64();
        let rate = core::mem::take(&mut self.bytes) as f64 * 8.0 / passed;
        self.since = at;
        (passed > 0.0).then_some(rate)
    }
}

/// The greatest value in the bin.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    value: u32,
    max: u32,
}

impl Fold for Peak {
    fn close(&mut self, _at: Instant) -> Option<f64> {
        Some(f64::from(core::mem::replace(&mut self.max, self.value)))
    }
}

/// One curve as it grows.
#[derive(Debug)]
struct Bins<F> {
    step: Duration,
    /// End of the open bin.
    end: Instant,
    fold: F,
    values: Vec<Option<f64>>,
}

impl<F: Fold> Bins<F> {
    fn new(step: Duration, fold: F) -> Self {
        Self { step, end: Instant::ZERO + step, fold, values: Vec::new() }
    }

    /// The open bin is that of `now`.
    fn at(&mut self, now: Instant) -> &mut F {
        while now >= self.end && self.values.len() < MAX_BINS {
            let value = self.fold.close(self.end);
            self.values.push(value);
            self.end += self.step;
        }
        &mut self.fold
    }

    /// A last bin that has only begun counts.
    fn finish(mut self, now: Instant) -> Vec<Option<f64>> {
        let begun = self.at(now).close(now);
        if now > self.end - self.step && self.values.len() < MAX_BINS {
            self.values.push(begun);
        }
        self.values
    }
}

impl PathCurves {
    fn new(step: Duration) -> Self {
        Self {
            cwnd: Bins::new(step, RealMean::default()),
            srtt: Bins::new(step, RealMean::default()),
            queue: Bins::new(step, Peak::default()),
            goodput: Bins::new(step, Rate::default()),
        }
    }

    fn on_window(&mut self, now: Instant, window: Option<&WindowChange>) {
        let srtt = window.map(|w| w.srtt.as_secs_f64()).filter(|srtt| *srtt > 0.0);
        self.cwnd.at(now).set(now, window.map(|w| f64::from(w.cwnd)));
        self.srtt.at(now).set(now, srtt);
    }

    fn on_link(&mut self, now: Instant, what: LinkEvent) {
        let queue = self.queue.at(now);
        match what {
            LinkEvent::Enqueued { queue_packets, .. } => {
                queue.value = queue_packets;
                queue.max = queue.max.max(queue_packets);
            }
            LinkEvent::Departed => queue.value = queue.value.saturating_sub(1),
            LinkEvent::Dropped(_) | LinkEvent::Marked => {}
        }
    }
}

impl CurveRecorder {
    /// Ready for the first event.
    pub fn new(mut config: CurveConfig) -> Self {
        config.bin = config.bin.max(Duration::from_micros(1));
        let step = config.bin;
        let mean = || Bins::new(step, RealMean::default());
        // Before anything arrives, nothing is held.
        let held = || {
            let mut bins = mean();
            bins.fold.set(Instant::ZERO, Some(0.0));
            bins
        };
        Self {
            goodput: Bins::new(step, Rate::default()),
            held: Held::default(),
            ofo_packets: held(),
            ofo_bytes: held(),
            told: Vec::new(),
            efficiency: config.efficiency.then(|| (IncrementEfficiency::default(), mean())),
            paths: (0..config.paths).map(|_| PathCurves::new(step)).collect(),
            config,
        }
    }

    /// The length of a bin.
    pub const fn bin(&self) -> Duration {
        self.config.bin
    }

    /// The curves up to `now`: those of the connection, then those of each path.
    pub fn finish(self, now: Instant) -> Vec<TimeCurve> {
        let of_connection = |name, values| TimeCurve { name, path: None, values };
        let mut curves = vec![
            of_connection("goodput_bps", self.goodput.finish(now)),
            of_connection("ofo_packets", self.ofo_packets.finish(now)),
            of_connection("ofo_bytes", self.ofo_bytes.finish(now)),
        ];
        curves.extend(self.told.into_iter().map(|(name, bins)| of_connection(name, bins.finish(now))));
        curves.extend(self.efficiency.map(|(_, bins)| of_connection("increment_efficiency", bins.finish(now))));
        for (index, path) in self.paths.into_iter().enumerate() {
            let of_path = |name, values| TimeCurve { name, path: Some(PathId(index as u8)), values };
            curves.extend([
                of_path("cwnd_packets", path.cwnd.finish(now)),
                of_path("srtt_s", path.srtt.finish(now)),
                of_path("queue_packets", path.queue.finish(now)),
                of_path("goodput_bps", path.goodput.finish(now)),
            ]);
        }
        curves
    }

    fn on_sender(&mut self, now: Instant, path: PathId, event: &Event) {
        let window = match event {
            Event::SchedulerValue { name, micro } => return self.on_value(now, value_name(name), *micro as f64 / 1e6),
            Event::Window(window) => Some(window),
            Event::Path(PathState::Closed | PathState::Dead) => None,
            _ => return,
        };
        if let Some((efficiency, bins)) = &mut self.efficiency {
            efficiency.set(path, window);
            bins.at(now).set(now, efficiency.value());
        }
        if let Some(curves) = self.paths.get_mut(path.index()) {
            curves.on_window(now, window);
        }
    }

    fn on_value(&mut self, now: Instant, name: &'static str, value: f64) {
        let place = self.told.iter().position(|(told, _)| *told == name).unwrap_or_else(|| {
            self.told.push((name, Bins::new(self.config.bin, RealMean::default())));
            self.told.len() - 1
        });
        self.told[place].1.at(now).set(now, Some(value));
    }

    fn on_arrived(&mut self, now: Instant, path: PathId, data: Range, new: u64, ofo: u64) {
        self.ofo_bytes.at(now).set(now, Some(ofo as f64));
        if new > 0 {
            let packets = self.held.arrive(data);
            self.ofo_packets.at(now).set(now, Some(packets as f64));
        }
        if let Some(curves) = self.paths.get_mut(path.index()) {
            curves.goodput.at(now).bytes += new;
        }
    }
}

impl Recorder for CurveRecorder {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        let (sender, receiver) = (self.config.way.sender(), self.config.way.receiver());
        match (origin.host, event) {
            (None, Event::Link { direction, what, .. }) if *direction == self.config.way => {
                if let Some(curves) = self.paths.get_mut(origin.path.index()) {
                    curves.on_link(now, *what);
                }
            }
            (Some(_), _) if origin.connection != self.config.connection => {}
            (Some(host), Event::DataArrived { data, new, ofo }) if host == receiver => {
                self.on_arrived(now, origin.path, *data, *new, *ofo);
            }
            (Some(host), Event::Delivered(range)) if host == receiver => self.goodput.at(now).bytes += range.len(),
            (Some(host), _) if host == sender => self.on_sender(now, origin.path, event),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Side;

    struct Run(CurveRecorder);

    impl Run {
        fn new(bin_ms: u64, efficiency: bool) -> Self {
            let bin = Duration::from_millis(bin_ms);
            Self(CurveRecorder::new(CurveConfig {
                connection: ConnId(0),
                way: Direction::Down,
                bin,
                paths: 2,
                efficiency,
            }))
        }
        fn tell(&mut self, ms: u64, host: Option<Side>, path: u8, event: Event) -> &mut Self {
            let origin = Origin { host, connection: ConnId(0), path: PathId(path) };
            self.0.record(Instant::from_millis(ms), origin, &event);
            self
        }
        fn arrived(&mut self, ms: u64, path: u8, start: u64, new: u64, ofo: u64) -> &mut Self {
            let data = Range::new(start, start + 1000);
            self.tell(ms, Some(Side::Client), path, Event::DataArrived { data, new, ofo })
        }
        fn window(&mut self, ms: u64, path: u8, cwnd: u32, srtt_ms: u64) -> &mut Self {
            let srtt = Duration::from_millis(srtt_ms);
            let change = WindowChange { cwnd, ssthresh: u32::MAX, in_flight: 0, srtt, rtt: None };
            self.tell(ms, Some(Side::Server), path, Event::Window(change))
        }
        fn end(self, ms: u64) -> Vec<TimeCurve> {
            self.0.finish(Instant::from_millis(ms))
        }
    }

    #[track_caller]
    fn check(curves: &[TimeCurve], name: &str, path: Option<u8>, expected: &[Option<f64>]) {
        let curve = curves.iter().find(|c| c.name == name && c.path == path.map(PathId)).expect(name);
        let near = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs(),
            (a, b) => a == b,
        };
        let alike = curve.values.len() == expected.len() && curve.values.iter().zip(expected).all(near);
        assert!(alike, "{name}: {:?} instead of {expected:?}", curve.values);
    }

    #[test]
    fn bytes_are_rates_and_the_last_bin_may_be_short() {
        let mut run = Run::new(100, false);
        let delivered = |start, end| Event::Delivered(Range::new(start, end));
        run.tell(10, Some(Side::Client), 0, delivered(0, 1000))
            .tell(100, Some(Side::Client), 0, delivered(1000, 3000))
            .tell(310, Some(Side::Client), 0, delivered(3000, 3500));
        run.arrived(20, 1, 0, 1000, 0).arrived(30, 1, 0, 0, 0);
        let curves = run.end(350);
        check(&curves, "goodput_bps", None, &[80e3, 160e3, 0.0, 80e3].map(Some));
        check(&curves, "goodput_bps", Some(1), &[80e3, 0.0, 0.0, 0.0].map(Some));
        check(&curves, "goodput_bps", Some(0), &[Some(0.0); 4]);
    }

    #[test]
    fn what_is_held_is_a_mean_over_time() {
        let mut run = Run::new(100, false);
        // One packet from 50 ms, two from 75, none from 150; a copy changes nothing.
        run.arrived(50, 0, 1000, 1000, 1000).arrived(75, 0, 2000, 1000, 2000).arrived(80, 1, 2000, 0, 2000);
        run.arrived(150, 1, 0, 1000, 0);
        let curves = run.end(200);
        check(&curves, "ofo_packets", None, &[Some(0.75), Some(1.0)]);
        check(&curves, "ofo_bytes", None, &[Some(750.0), Some(1000.0)]);
    }

    #[test]
    fn schedulers_values_paths_and_queues() {
        let mut run = Run::new(10, false);
        let told = |micro| Event::SchedulerValue { name: "blest.lambda", micro };
        run.tell(15, Some(Side::Server), 0, told(1_000_000)).tell(25, Some(Side::Server), 0, told(-500_000));
        run.window(12, 1, 10, 0).window(15, 1, 20, 50);
        run.tell(28, Some(Side::Server), 1, Event::Path(PathState::Dead));
        let link = |what| Event::Link { direction: Direction::Down, size: 1500, what };
        let waits = |queue_packets| link(LinkEvent::Enqueued { queue_packets, queue_bytes: 0 });
        run.tell(11, None, 0, waits(3)).tell(12, None, 0, link(LinkEvent::Departed));
        let up = Event::Link {
            direction: Direction::Up,
            size: 60,
            what: LinkEvent::Enqueued { queue_packets: 9, queue_bytes: 0 },
        };
        run.tell(13, None, 0, up);
        let other = Origin { host: Some(Side::Client), connection: ConnId(4), path: PathId(0) };
        run.0.record(Instant::from_millis(14), other, &Event::Delivered(Range::new(0, 99)));
        let curves = run.end(40);
        check(&curves, "lambda", None, &[None, Some(1.0), Some(0.25), Some(-0.5)]);
        check(&curves, "cwnd_packets", Some(1), &[None, Some((10.0 * 3.0 + 20.0 * 5.0) / 8.0), Some(20.0), None]);
        check(&curves, "srtt_s", Some(1), &[None, Some(0.05), Some(0.05), None]);
        check(&curves, "queue_packets", Some(0), &[0.0, 3.0, 2.0, 2.0].map(Some));
        check(&curves, "goodput_bps", None, &[Some(0.0); 4]);
        assert!(curves.iter().all(|curve| curve.values.len() == 4 && curve.name != "increment_efficiency"));
    }

    #[test]
    fn the_increase_of_lia() {
        let mut run = Run::new(10, true);
        run.window(0, 0, 10, 20).window(10, 1, 20, 40).window(25, 1, 20, 160);
        // β = 2; γ = 2, then 8.
        check(&run.end(30), "increment_efficiency", None, &[None, Some(0.25), Some((0.25 + 0.64) / 2.0)]);
    }

    #[test]
    fn far_times_do_not_exhaust_memory() {
        let mut run = Run::new(0, false);
        run.window(u64::MAX / 2_000_000, 0, 10, 20);
        assert!(run.end(u64::MAX / 1_000_000).iter().all(|curve| curve.values.len() == MAX_BINS));
    }
}
