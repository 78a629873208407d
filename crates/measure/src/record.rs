//! A path as all downloads over it alone show it: what a scenario says of it.

use crate::idle::IdleRtt;
use crate::path_sample::{PathSample, SILENCE};
use anabranch_scenario::{Scenario, TrafficKind};
use anabranch_units::{Duration, TrafficDirection};

/// A path is constant if nine of ten steps are within ten per cent of their median.
pub(crate) const STEADY: f64 = 0.1;
pub(crate) const MOST: f64 = 0.9;
/// A line of a trace has at most so many bytes: time in microseconds of eleven days, rate in bit/s, round trip in microseconds.
const TRACE_LINE: f64 = 48.0;
/// Challenges of a path are no closer together.
pub(crate) const SPACING: Duration = Duration::from_millis(10);
/// Packets of a step at least, so that one more or less is no change of the rate.
const PACKETS: f64 = 50.0;

/// Bytes of a trace at most for each step of its capacity.
pub(crate) fn bytes_per_step(step: Duration) -> f64 {
    TRACE_LINE * (2.0 + step.as_secs_f64() / SPACING.as_secs_f64())
}

/// The capacity of a path, in packets of the carrier: the outer IP header counts.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedCapacity {
    /// Always the same. Bit/s.
    Constant(f64),
    /// Bit/s in each step of time.
    Varying {
        /// Length of every step.
        step: Duration,
        /// In the order in which they were seen; times in which nothing waited for the path are left out.
        rates: Vec<f64>,
        /// Steps after them, for which the trace has no room.
        left_out: usize,
    },
    /// Data did not wait long enough for the path in any step: the mean of what came. Bit/s.
    AtLeast(f64),
}

/// A path as it was recorded, from the server to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRecord {
    /// The path's capacity while data waited for it.
    pub capacity: RecordedCapacity,
    /// How long data waited for it, in the steps of `capacity`; of [`RecordedCapacity::AtLeast`], in all.
    pub seen: Duration,
    /// Bytes that its queue holds.
    pub queue: u64,
    /// Packets were lost at a queue of that length; otherwise it may be longer.
    pub is_full: bool,
    /// Packets that met a short queue, and how many of them were lost.
    pub light: u64,
    /// See `light`.
    pub lost: u64,
    /// Challenges of the idle path that were answered, in order.
    pub idle: Vec<IdleRtt>,
    /// Bytes of the largest packet that the path was found to carry whole, without the carrier's.
    pub largest_packet: usize,
}

/// Everything that was seen of one path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathSamples {
    samples: Vec<PathSample>,
    idle: Vec<IdleRtt>,
}

/// Whether runs of this scenario over one path show it: they have one connection, which always has data.
pub fn is_recordable(scenario: &Scenario) -> bool {
    let bulk = |kind: &TrafficKind| matches!(kind, TrafficKind::Bulk { .. });
    let is_download = scenario.direction() == TrafficDirection::Down;
    matches!(&scenario.traffic[..], [traffic] if is_download && traffic.connections() == 1 && bulk(&traffic.kind))
}

impl PathSamples {
    /// Another download.
    pub fn add(&mut self, sample: Option<PathSample>) {
        self.samples.extend(sample);
    }

    /// Challenges of the idle path.
    pub fn add_idle(&mut self, times: &[IdleRtt]) {
        self.idle.extend(times);
    }

    /// The path, which carries packets of `largest_packet` bytes, and whose trace may have `room` bytes; `None` if nothing came through it.
    pub fn read(&self, largest_packet: usize, room: u64) -> Option<PathRecord> {
        let sum = |of: fn(&PathSample) -> u64| self.samples.iter().map(of).sum::<u64>();
        let (packets, bytes) = (sum(|sample| sample.packets), sum(|sample| sample.bytes));
        let (capacity, seen) = self.capacity(bytes as f64 / packets as f64, room)?;
        let mut full: Vec<u64> = self.samples.iter().filter_map(|sample| sample.full).collect();
        full.sort_unstable();
        let deepest = self.samples.iter().map(|sample| sample.deepest).max().unwrap_or(0);
        Some(PathRecord {
            capacity,
            seen,
            queue: full.get(full.len() / 2).copied().unwrap_or(deepest),
            is_full: !full.is_empty(),
            light: sum(|sample| sample.light),
            lost: sum(|sample| sample.lost),
            idle: self.idle.clone(),
            largest_packet,
        })
    }

    /// The capacity, and how long it was seen. `packet` is the mean length of a packet.
    fn capacity(&self, packet: f64, room: u64) -> Option<(RecordedCapacity, Duration)> {
        // A step is as long as the path takes for its packets: an outage, out of which nothing came, makes it no longer.
        let busy_periods =
            || self.samples.iter().flat_map(|sample| &sample.busy_periods).filter(|period| period.bytes > 0);
        let busy: i64 = busy_periods().map(|period| period.to - period.from).sum();
        let bytes: u64 = busy_periods().map(|period| period.bytes).sum();
        let span = PACKETS * packet * busy as f64 / bytes as f64;
        let steps =
            if span.is_finite() { self.steps((span as i64).max(SILENCE.as_nanos() as i64)) } else { Vec::new() };
        let mut sorted: Vec<f64> = steps.iter().map(Step::rate).filter(|rate| *rate > 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let Some(median) = sorted.get(sorted.len() / 2).copied() else {
            return self.least().map(|rate| (RecordedCapacity::AtLeast(rate), Duration::from_nanos(busy as u64)));
        };
        let near = sorted.iter().filter(|rate| (**rate / median - 1.0).abs() <= STEADY).count();
        // A path that carried nothing for a while was not constant.
        let is_constant = sorted.len() == steps.len() && near as f64 >= MOST * sorted.len() as f64;
        let step = Duration::from_nanos(span.max(SILENCE.as_nanos() as f64) as u64);
        let fitting = if is_constant { &steps[..] } else { within(&steps, step, room) };
        let (bytes, time): (f64, f64) = fitting.iter().fold((0.0, 0.0), |(b, t), step| (b + step.bytes, t + step.busy));
        let capacity = if is_constant {
            RecordedCapacity::Constant(bytes * 8e9 / time)
        } else {
            let rates = fitting.iter().map(Step::rate).collect();
            RecordedCapacity::Varying { step, rates, left_out: steps.len() - fitting.len() }
        };
        Some((capacity, Duration::from_nanos(time as u64)))
    }

    /// Where the path was busy nearly all the time of a step.
    fn steps(&self, span: i64) -> Vec<Step> {
        let of_one = |sample: &PathSample| {
            let begin = sample.busy_periods.first().map_or(0, |period| period.from);
            let end = sample.busy_periods.iter().map(|period| period.to).max().unwrap_or(begin);
            let mut steps = vec![Step::default(); ((end - begin) / span) as usize + 1];
            for period in &sample.busy_periods {
                let (from, to) = (period.from - begin, (period.to - begin).max(period.from - begin + 1));
                let per = period.bytes as f64 / (to - from) as f64;
                for (n, step) in
                    (from / span..).zip(&mut steps[(from / span) as usize..]).take_while(|(n, _)| n * span < to)
                {
                    let within = (to.min((n + 1) * span) - from.max(n * span)) as f64;
                    step.busy += within;
                    step.bytes += within * per;
                }
            }
            steps
        };
        let steps = self.samples.iter().flat_map(of_one);
        steps.filter(|step| step.busy >= MOST * span as f64).collect()
    }

    /// The mean rate of the best download.
    fn least(&self) -> Option<f64> {
        let rate = |sample: &PathSample| sample.bytes as f64 * 8e9 / sample.lasted as f64;
        self.samples.iter().map(rate).filter(|rate| rate.is_finite()).max_by(f64::total_cmp).filter(|rate| *rate > 0.0)
    }
}

/// The first steps, so many that their trace has room in `room` bytes.
fn within(steps: &[Step], step: Duration, room: u64) -> &[Step] {
    &steps[..steps.len().min((room as f64 / bytes_per_step(step)) as usize)]
}

/// A part of the time, and what came in it.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Nanoseconds in which data waited for the path.
    busy: f64,
    bytes: f64,
}

impl Step {
    /// Bit/s.
    fn rate(&self) -> f64 {
        self.bytes * 8e9 / self.busy
    }
}

impl PathRecord {
    /// The one-way delay: half of the least round-trip time.
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.idle.iter().map(|one| one.rtt).min().map_or(0, |least| least.as_nanos() / 2))
    }

    /// Mean capacity, in bit/s.
    pub fn mean_rate(&self) -> f64 {
        match &self.capacity {
            RecordedCapacity::Constant(rate) | RecordedCapacity::AtLeast(rate) => *rate,
            RecordedCapacity::Varying { rates, .. } => rates.iter().sum::<f64>() / rates.len().max(1) as f64,
        }
    }

    /// The share of packets that are lost without a full queue.
    pub fn loss(&self) -> f64 {
        if self.light == 0 { 0.0 } else { self.lost as f64 / self.light as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::IdleRtt;
    use crate::path_sample::PacketRecorder;
    use anabranch_network::Recording;
    use anabranch_run::{Choice, Driver, Job, VirtualTime};
    use anabranch_scenario::PlugIn;
    use anabranch_units::Instant;
    use std::sync::Arc;

    const ROOM: u64 = 64 << 20;

    /// A download over a path of the simulator, as real links see it.
    fn record(path: &str, more: &str) -> PathRecord {
        recording(path, more).read(1_440, ROOM).unwrap()
    }

    fn recording(path: &str, more: &str) -> PathSamples {
        let text = format!(
            "duration = \"10s\"\n{more}\n[[path]]\nname = \"a\"\ndelay = \"10ms\"\noverhead = 60\n{path}\n\
             [[traffic]]\nkind = \"bulk\"\n"
        );
        let scenario = Arc::new(anabranch_scenario::read_unswept("test", &text).unwrap());
        assert!(is_recordable(&scenario));
        let congestion = PlugIn { name: "cubic".to_owned(), parameters: Vec::new() };
        let job = Job { congestion, ..Job::of(scenario, Choice::Single(0), 1) };
        let mut recorder = PacketRecorder::default();
        VirtualTime::default().run(&job, &mut recorder).unwrap();
        let mut recording = PathSamples::default();
        recording.add(recorder.read(60));
        let idle =
            [21_000, 20_100, 20_500].map(|micros| IdleRtt { at: Instant::ZERO, rtt: Duration::from_micros(micros) });
        recording.add_idle(&idle);
        recording
    }

    fn near(found: f64, expected: f64, part: f64) -> bool {
        (found / expected - 1.0).abs() <= part
    }

    #[test]
    fn a_constant_path_comes_back() {
        let record = record("rate = \"20mbit\"\nqueue = \"100000B\"", "");
        let RecordedCapacity::Constant(rate) = record.capacity else { panic!("{record:?}") };
        assert!(near(rate, 20e6, 0.002), "{rate}");
        assert_eq!(record.delay(), Duration::from_micros(10_050));
        // A packet has 1,512 bytes: one more has no room in a full queue, and one may have left before the next is lost.
        assert!(record.is_full && (100_000 - 2 * 1_512..=100_000).contains(&record.queue), "{}", record.queue);
        assert!(record.light > 100 && record.lost == 0, "losses at the full queue are its own: {record:?}");
        assert_eq!(record.trace(), None);
    }

    #[test]
    fn losses_without_a_full_queue_are_the_paths() {
        let record = record("rate = \"20mbit\"\nloss = { down = \"1%\" }", "");
        assert!(near(record.loss(), 0.01, 0.3), "{} of {}", record.lost, record.light);
        // Mathis: 1.22 segments per round trip and root of the loss are 7 Mbit/s, of which CUBIC reaches half or more.
        assert!((3.5e6..=20.1e6).contains(&record.mean_rate()), "a lower bound: {:?}", record.capacity);
    }

    #[test]
    fn a_path_that_changes_comes_back_as_a_trace() {
        let slower = "[[timeline]]\nat = \"4s\"\nset = \"path.a.rate\"\nvalue = \"5mbit\"";
        let record = record("rate = \"20mbit\"\nqueue = \"100000B\"", slower);
        let RecordedCapacity::Varying { step, rates, left_out: 0 } = &record.capacity else { panic!("{record:?}") };
        let (fast, slow) = (&rates[..rates.len() / 3], &rates[rates.len() / 2..]);
        assert!(fast.iter().all(|rate| near(*rate, 20e6, 0.02)), "{rates:?}");
        assert!(slow.iter().all(|rate| near(*rate, 5e6, 0.02)), "{rates:?}");
        let trace = Recording::parse(&record.trace().unwrap()).unwrap();
        let steps = trace.down.rate.unwrap();
        assert!(near(steps.mean_rate().as_bps() as f64, record.mean_rate(), 0.01), "{}", steps.mean_rate().as_bps());
        let period = steps.steps().duration().as_secs_f64();
        assert!(near(period, rates.len() as f64 * step.as_secs_f64(), 0.01) && near(period, 10.0, 0.05), "{period}");
    }

    #[test]
    fn an_outage_is_a_part_of_the_trace() {
        let record = record("rate = \"20mbit\"\noutage = [[\"4s\", \"6s\"]]", "");
        let RecordedCapacity::Varying { step, rates, .. } = &record.capacity else { panic!("{record:?}") };
        let silent = rates.iter().filter(|rate| **rate == 0.0).count() as f64 * step.as_secs_f64();
        // The sender notices the end with its next retransmission: the trace is a lower bound.
        assert!((1.7..=4.1).contains(&silent), "{silent} s: {rates:?}");
        assert_eq!(record.lost, 0, "what an outage loses is no random loss");
    }

    #[test]
    fn a_path_that_is_cut_most_of_the_time_keeps_its_outage() {
        let record = record("rate = \"20mbit\"\noutage = [[\"2s\", \"6s\"]]", "");
        let RecordedCapacity::Varying { rates, .. } = &record.capacity else { panic!("{record:?}") };
        let open: Vec<f64> = rates.iter().copied().filter(|rate| *rate > 0.0).collect();
        assert!(2 * open.len() < rates.len() + 20, "{} of {} steps: {rates:?}", open.len(), rates.len());
        let steady = open.iter().filter(|rate| near(**rate, 20e6, 0.05)).count();
        assert!(steady * 10 >= open.len() * 9, "{rates:?}");
    }

    #[test]
    fn a_trace_has_no_more_bytes_than_room_and_says_what_it_leaves_out() {
        let slower = "[[timeline]]\nat = \"4s\"\nset = \"path.a.rate\"\nvalue = \"5mbit\"";
        let recording = recording("rate = \"20mbit\"\nqueue = \"100000B\"", slower);
        let whole = recording.read(1_440, ROOM).unwrap();
        let RecordedCapacity::Varying { rates: all, .. } = &whole.capacity else { panic!("{whole:?}") };
        let room = 30_000;
        let part = recording.read(1_440, room).unwrap();
        let RecordedCapacity::Varying { rates, left_out, .. } = &part.capacity else { panic!("{part:?}") };
        assert!(*left_out > 0 && rates.len() + left_out == all.len() && all.starts_with(rates), "{part:?}");
        let text = part.trace().unwrap();
        assert!((1..=room).contains(&(text.len() as u64)), "{} bytes", text.len());
        assert!(part.seen < whole.seen);
    }

    #[test]
    fn a_path_for_which_no_data_waits_has_a_least_rate() {
        let record = record("rate = \"1gbit\"", "[connection]\nrecv_buffer = \"50KB\"");
        let RecordedCapacity::AtLeast(rate) = record.capacity else { panic!("{record:?}") };
        // 50 KB per round trip of 20 ms.
        assert!((10e6..=25e6).contains(&rate) && record.lost == 0, "{rate}");
    }
}
