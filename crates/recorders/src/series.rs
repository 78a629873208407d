//! Values over time, sampled at a fixed step.

use anabranch_trace::{Event, Held, LinkEvent, Origin, Recorder, WindowChange, value_name};
use anabranch_units::{ConnId, Direction, Duration, Instant, PathId, TrafficDirection};

/// Most samples kept: eleven hours at 10 ms. Later ones are dropped.
const MAX_SAMPLES: usize = 1 << 22;

/// Time series of one connection, of one direction of its data, as plain columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Length of a sample; sample `i` covers `[i·step, (i+1)·step)` from the run's beginning.
    pub step: Duration,
    /// The columns: those of the connection, then those of each path.
    pub columns: Vec<Column>,
}

/// One value over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name with the unit.
    pub name: &'static str,
    /// The path; `None` = the connection.
    pub path: Option<PathId>,
    /// One value per sample; NaN before the first value.
    pub values: Vec<f64>,
}

/// Samples events of the sender and the receiver: per path `cwnd_packets` and `srtt_s` (last value), `in_flight_packets`, and
/// `queue_packets` of the bottleneck on the way of the data (greatest value), `sent_bytes` (payload within the step); for the connection `ofo_bytes`
/// and `ofo_packets` (greatest value), `delivered_bytes` (within the step), and the values that its scheduler
/// publishes, such as λ (`lambda`), by name (last value).
///
/// A queue's length is the length after the last arrival, minus later departures: exact at arrivals; in between it
/// lags, because the network records departures late.
#[derive(Debug)]
pub struct SeriesRecorder {
    connection: ConnId,
    way: Direction,
    step: Duration,
    /// End of the open sample.
    boundary: Instant,
    ofo: Peak,
    held: Held,
    held_packets: Peak,
    delivered: u64,
    /// The scheduler's published values: the last value, and the column.
    told: Vec<(f64, Column)>,
    paths: Vec<PathNow>,
    columns: Vec<Column>,
}

/// A value and its maximum within the sample.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    value: u64,
    max: u64,
}

impl Peak {
    fn set(&mut self, value: u64) {
        self.value = value;
        self.max = self.max.max(value);
    }
    fn take(&mut self) -> f64 {
        core::mem::replace(&mut self.max, self.value) as f64
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct PathNow {
    window: Option<WindowChange>,
    in_flight: Peak,
    queue: Peak,
    sent: u64,
}

const OF_CONNECTION: [&str; 3] = ["ofo_bytes", "delivered_bytes", "ofo_packets"];
const OF_PATH: [&str; 5] = ["cwnd_packets", "srtt_s", "in_flight_packets", "queue_packets", "sent_bytes"];

impl SeriesRecorder {
    /// The default step.
    pub const STEP: Duration = Duration::from_millis(10);

    /// Samples `connection` and its first `paths` paths every `step` (at least a microsecond).
    pub fn new(connection: ConnId, paths: usize, step: Duration) -> Self {
        let paths = paths.min(PathId::LIMIT);
        let step = step.max(Duration::from_micros(1));
        let column = |name, path| Column { name, path, values: Vec::new() };
        let of_path = |i| OF_PATH.map(|name| column(name, Some(PathId(i as u8))));
        Self {
            connection,
            way: Direction::Down,
            step,
            boundary: Instant::ZERO + step,
            ofo: Peak::default(),
            held: Held::default(),
            held_packets: Peak::default(),
            delivered: 0,
            told: Vec::new(),
            paths: vec![PathNow::default(); paths],
            columns: OF_CONNECTION
                .map(|name| column(name, None))
                .into_iter()
                .chain((0..paths).flat_map(of_path))
                .collect(),
        }
    }

    /// The same of the data that flow this way; server → client unless it is called.
    pub fn sent(self, way: Direction) -> Self {
        Self { way, ..self }
    }

    /// The series up to `now`; a last incomplete sample counts.
    pub fn finish(mut self, now: Instant) -> Series {
        self.advance(now);
        if now > self.boundary - self.step {
            self.sample();
        }
        let told = self.told.into_iter().map(|(_, column)| column);
        self.columns.splice(OF_CONNECTION.len()..OF_CONNECTION.len(), told);
        Series { step: self.step, columns: self.columns }
    }

    fn advance(&mut self, now: Instant) {
        while now >= self.boundary && self.sample() {
            self.boundary += self.step;
        }
    }

    /// Closes the open sample; false if there are too many.
    fn sample(&mut self) -> bool {
        if self.columns[0].values.len() >= MAX_SAMPLES {
            return false;
        }
        let mut columns = self.columns.iter_mut();
        let mut push = |value| columns.next().expect("as many columns as values").values.push(value);
        push(self.ofo.take());
        push(core::mem::take(&mut self.delivered) as f64);
        push(self.held_packets.take());
        for path in &mut self.paths {
            push(path.window.map_or(f64::NAN, |w| w.cwnd as f64));
            let srtt = path.window.map(|w| w.srtt).filter(|srtt| !srtt.is_zero());
            push(srtt.map_or(f64::NAN, Duration::as_secs_f64));
            push(path.in_flight.take());
            push(path.queue.take());
            push(core::mem::take(&mut path.sent) as f64);
        }
        self.told.iter_mut().for_each(|(value, column)| column.values.push(*value));
        true
    }

    fn on_link(&mut self, origin: Origin, what: LinkEvent) {
        let Some(path) = self.paths.get_mut(origin.path.index()) else { return };
        match what {
            LinkEvent::Enqueued { queue_packets, .. } => path.queue.set(queue_packets as u64),
            LinkEvent::Departed => path.queue.value = path.queue.value.saturating_sub(1),
            LinkEvent::Dropped(_) | LinkEvent::Marked => {}
        }
    }

    fn on_value(&mut self, name: &'static str, value: f64) {
        match self.told.iter_mut().find(|(_, column)| column.name == name) {
            Some((told, _)) => *told = value,
            None => {
                let values = vec![f64::NAN; self.columns[0].values.len()];
                self.told.push((value, Column { name, path: None, values }));
            }
        }
    }

    fn on_sender(&mut self, origin: Origin, event: &Event) {
        let Some(path) = self.paths.get_mut(origin.path.index()) else { return };
        match *event {
            Event::DataSent { data, .. } => path.sent += data.len(),
            Event::Window(window) => {
                path.window = Some(window);
                path.in_flight.set(window.in_flight as u64);
            }
            _ => {}
        }
    }
}

/// A recorder for each direction of the data of one connection, in the order of [`TrafficDirection::ways`].
#[derive(Debug)]
pub struct SeriesRecorders(Vec<SeriesRecorder>);

impl SeriesRecorders {
    /// As [`SeriesRecorder::new`] with the default step.
    pub fn new(connection: ConnId, paths: usize, direction: TrafficDirection) -> Self {
        let own = |way: &Direction| SeriesRecorder::new(connection, paths, SeriesRecorder::STEP).sent(*way);
        Self(direction.ways().iter().map(own).collect())
    }

    /// As [`SeriesRecorder::finish`].
    pub fn finish(self, now: Instant) -> Vec<Series> {
        self.0.into_iter().map(|recorder| recorder.finish(now)).collect()
    }
}

impl Recorder for SeriesRecorders {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.0.iter_mut().for_each(|recorder| recorder.record(now, origin, event));
    }
}

impl Recorder for SeriesRecorder {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.advance(now);
        let (sender, is_receiver) = (self.way.sender(), origin.host == Some(self.way.receiver()));
        match (origin.host, event) {
            (None, Event::Link { direction, what, .. }) if *direction == self.way => self.on_link(origin, *what),
            (Some(_), _) if origin.connection != self.connection => {}
            (Some(host), Event::SchedulerValue { name, micro }) if host == sender => {
                self.on_value(value_name(name), *micro as f64 / 1e6)
            }
            (Some(_), Event::DataArrived { data, new, ofo }) if is_receiver => {
                self.ofo.set(*ofo);
                if *new > 0 {
                    self.held_packets.set(self.held.arrive(*data) as u64);
                }
            }
            (Some(_), Event::Delivered(range)) if is_receiver => self.delivered += range.len(),
            (Some(host), _) if host == sender => self.on_sender(origin, event),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_trace::SendKind;
    use anabranch_units::{Range, Side};

    fn at(host: Option<Side>, path: u8) -> Origin {
        Origin { host, connection: ConnId(0), path: PathId(path) }
    }

    fn column<'a>(series: &'a Series, name: &str, path: Option<u8>) -> &'a [f64] {
        &series.columns.iter().find(|c| c.name == name && c.path == path.map(PathId)).unwrap().values
    }

    fn arrived(ofo: u64) -> Event {
        Event::DataArrived { data: Range::new(1400, 2800), new: 1400, ofo }
    }

    fn link(what: LinkEvent) -> Event {
        Event::Link { direction: Direction::Down, size: 1500, what }
    }

    #[test]
    fn samples_hold_last_values_maxima_and_sums() {
        let mut recorder = SeriesRecorder::new(ConnId(0), 2, SeriesRecorder::STEP);
        let (server, client) = (Some(Side::Server), Some(Side::Client));
        let mut tell = |ms, origin, event: Event| recorder.record(Instant::from_millis(ms), origin, &event);
        let window = |cwnd, in_flight| WindowChange {
            cwnd,
            ssthresh: u32::MAX,
            in_flight,
            srtt: Duration::from_millis(50),
            rtt: None,
        };
        tell(1, at(client, 0), arrived(2800));
        tell(2, at(client, 0), arrived(1400));
        tell(3, at(client, 0), Event::Delivered(Range::new(0, 1400)));
        tell(4, at(server, 1), Event::DataSent { seq: 1, data: Range::new(0, 1400), kind: SendKind::First });
        tell(12, at(server, 1), Event::Window(window(10, 8)));
        tell(13, at(server, 1), Event::Window(window(11, 6)));
        tell(14, at(None, 0), link(LinkEvent::Enqueued { queue_packets: 3, queue_bytes: 4500 }));
        tell(15, at(None, 0), link(LinkEvent::Departed));
        tell(22, at(server, 0), Event::SchedulerValue { name: "blest.lambda", micro: 1_500_000 });
        tell(23, at(server, 0), Event::SchedulerValue { name: "blest.lambda", micro: -250_000 });
        tell(35, at(Some(Side::Server), 7), Event::Stall);
        let series = recorder.finish(Instant::from_millis(40));

        assert_eq!(column(&series, "ofo_bytes", None), [2800.0, 1400.0, 1400.0, 1400.0]);
        assert_eq!(column(&series, "delivered_bytes", None), [1400.0, 0.0, 0.0, 0.0]);
        assert_eq!(column(&series, "ofo_packets", None), [1.0, 1.0, 1.0, 1.0]);
        let lambda = column(&series, "lambda", None);
        assert!(lambda[0].is_nan() && lambda[1].is_nan() && lambda[2..] == [-0.25, -0.25], "{lambda:?}");
        let names: Vec<&str> = series.columns.iter().take(5).map(|c| c.name).collect();
        assert_eq!(names, ["ofo_bytes", "delivered_bytes", "ofo_packets", "lambda", "cwnd_packets"]);
        assert_eq!(column(&series, "sent_bytes", Some(1)), [1400.0, 0.0, 0.0, 0.0]);
        assert_eq!(column(&series, "cwnd_packets", Some(1))[1..], [11.0, 11.0, 11.0]);
        assert!(column(&series, "cwnd_packets", Some(1))[0].is_nan());
        assert_eq!(column(&series, "srtt_s", Some(1))[3], 0.05);
        assert_eq!(column(&series, "in_flight_packets", Some(1)), [0.0, 8.0, 6.0, 6.0]);
        assert_eq!(column(&series, "queue_packets", Some(0)), [0.0, 3.0, 2.0, 2.0]);
        assert!(series.columns.iter().all(|c| c.values.len() == 4));
    }

    #[test]
    fn other_connections_and_directions_do_not_count() {
        let mut recorder = SeriesRecorder::new(ConnId(0), 1, SeriesRecorder::STEP);
        let other = Origin { host: Some(Side::Client), connection: ConnId(1), path: PathId(0) };
        recorder.record(Instant::ZERO, other, &arrived(9));
        let up = LinkEvent::Enqueued { queue_packets: 9, queue_bytes: 9 };
        recorder.record(Instant::ZERO, at(None, 0), &Event::Link { direction: Direction::Up, size: 60, what: up });
        let series = recorder.finish(Instant::from_millis(5));
        assert_eq!(column(&series, "ofo_bytes", None), [0.0]);
        assert_eq!(column(&series, "queue_packets", Some(0)), [0.0]);
    }

    #[test]
    fn far_times_do_not_exhaust_memory() {
        let mut recorder = SeriesRecorder::new(ConnId(0), 0, Duration::ZERO);
        recorder.record(Instant::MAX, at(None, 0), &Event::Stall);
        assert_eq!(recorder.finish(Instant::MAX).columns[0].values.len(), MAX_SAMPLES);
    }
}
