//! BBR, version 1: its model of the path sets the pacing rate and the amount in flight (Cardwell et al.).

use crate::single::{SinglePath, Uncoupled};
use crate::window::WindowState;
use crate::windowed_max::WindowedMax;
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::{Acked, Loss, PACED_HEADERS};
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{PathView, RecoveryPhase};
use anabranch_units::{Duration, Instant, Rate};

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "bbr",
    aliases: &["bbr1"],
    about: "BBR version 1 per subflow, uncoupled: paces at the measured rate of the bottleneck, as Linux's bbr",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Uncoupled::new(Bbr::default())),
};

const PAGE: &str = "\
## Idea
Loss is not congestion, and a full queue is too late a sign of it. Model the path instead by two values, the bottleneck's
rate and the round-trip time without a queue; send at that rate, with about their product in flight, and probe at
intervals whether either has changed.

## Rule
bw = greatest delivery rate of the last 10 round trips, without application-limited samples unless they are greater;
min_rtt = least RTT of the last 10 s; BDP = bw min_rtt; both in packets.
Startup: pacing gain 2.89, window gain 2.89, until bw has not grown by a quarter in three round trips that were not
application-limited. Drain: pacing gain 1/2.89, until no more than the BDP is in flight.
ProbeBW: pacing gains 1.25, 0.75 and six times 1, each for one min_rtt (1.25 until as much is in flight or lost, 0.75
until no more than the BDP is); window gain 2.
ProbeRTT: when min_rtt is 10 s old: window 4 until as little is in flight, then for 200 ms and a round trip.
pacing rate = 0.99 pacing gain bw, and does not fall in Startup. Window target = window gain BDP and 3 quanta (1 packet below
1.2 Mbit/s, 2 below 24 Mbit/s, else the packets of 1 ms, 64 KB at most), 2 packets more in the phase of 1.25, and once
the pipe was full the greatest burst of acknowledged packets beyond bw in the last 10 round trips, at most 100 ms of bw;
the window grows towards it by the packets acknowledged, and is at least 4.
Loss: packet conservation for one round trip; then as before. Retransmission timeout: the window is the flight plus 1;
after the recovery its former value is restored.

## When it helps
With random loss, with shallow buffers that Reno cannot use, with deep buffers that Reno fills: high rate, short queue.

## When it hurts
Beside others: with shallow queues it takes more than its share and loses much, with deep ones its flows keep about one
BDP queued. Short paths gain over long ones less than Reno's, flows that start together share badly for long. On several
subflows through one bottleneck it takes as many shares as it has subflows.

## Departures
As in the draft, and unlike in Linux, there is no detection of a policer (the long-term rate), and windows are not
rounded to even numbers; bursts of acknowledgments are counted as in Linux. The first phase of ProbeBW is derived from
the time, because a congestion control has no random stream. ECN marks are ignored, as in both. A scheduler's penalty
halves the window, which then grows as usual.

## References
N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V. Jacobson, \"BBR: congestion-based congestion control\", ACM Queue 14(5),
2016; draft-cardwell-iccrg-bbr-congestion-control-00; draft-cheng-iccrg-delivery-rate-estimation-02; Linux's tcp_bbr.
";

/// 2/ln 2: the least gain that doubles the rate each round (draft §4.3.2.1).
const HIGH_GAIN: f64 = 2.885;
const CWND_GAIN: f64 = 2.0;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The pacing rate stays below the bandwidth, so that a queue drains in the long run (Linux
/// `bbr_pacing_margin_percent`).
const MARGIN: f64 = 0.99;
/// Least window, in packets.
const MIN_PIPE: u32 = 4;
const BW_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Limit of the window's allowance for acknowledgments in bursts, in seconds at the path's rate (Linux).
const MAX_BURST: f64 = 0.1;
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

/// The state of BBR's machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    Drain,
    /// A phase of [`CYCLE`], and its begin.
    ProbeBw(usize, Instant),
    /// Once the flight is small enough: the earliest end, and the packets that must be delivered by then.
    ProbeRtt(Option<(Instant, u64)>),
}

/// The recovery phase at the last acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repair {
    None,
    /// A loss was found since.
    Found,
    /// Packet conservation, until this many packets are delivered.
    Conserving(u64),
    /// The recovery continues, and the window grows again.
    Growing,
}

/// BBR on one subflow. Rates in packets per second.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    /// Packets delivered.
    delivered: u64,
    /// A round ends when a packet is acknowledged that was sent after this many had been delivered.
    round_end: u64,
    round: u64,
    round_start: bool,
    bw: WindowedMax,
    /// Packets acknowledged beyond the rate.
    burst: WindowedMax,
    counting: (Instant, f64),
    /// Samples whose `prior_delivered` lies in this range were limited by ProbeRTT's window.
    low: (u64, u64),
    min_rtt: Option<(Duration, Instant)>,
    /// Greatest rate at the last growth, and rounds without growth since.
    full: (f64, u32),
    is_full: bool,
    pacing: Option<Rate>,
    repair: Repair,
    /// The window to restore after a recovery or ProbeRTT, and the one before the last loss.
    prior_cwnd: u32,
    undo_cwnd: Option<u32>,
    idle_restart: bool,
    /// The initial window.
    initial: u32,
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            mode: Mode::Startup,
            delivered: 0,
            round_end: 0,
            round: 0,
            round_start: false,
            bw: WindowedMax::new(BW_ROUNDS),
            burst: WindowedMax::new(BW_ROUNDS),
            counting: (Instant::ZERO, 0.0),
            low: (u64::MAX, 0),
            min_rtt: None,
            full: (0.0, 0),
            is_full: false,
            pacing: None,
            repair: Repair::None,
            prior_cwnd: 0,
            undo_cwnd: None,
            idle_restart: false,
            initial: 1,
        }
    }
}

impl Bbr {
    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            Mode::ProbeBw(phase, _) => (CYCLE[phase], CWND_GAIN),
            Mode::ProbeRtt(_) => (1.0, 1.0),
        }
    }

    /// Packets in flight at `gain` times the BDP (draft §4.2.3.2); the initial window before an RTT is known.
    fn inflight(&self, gain: f64, mss: u32) -> u32 {
        let Some((min_rtt, _)) = self.min_rtt else { return self.initial };
        // Linux `bbr_quantization_budget`: the probe must exceed a small BDP.
        let probe = if matches!(self.mode, Mode::ProbeBw(0, _)) { 2 } else { 0 };
        let quanta = 3 * self.quantum(mss) + probe;
        let packets = libm::ceil(gain * self.bw.get() * min_rtt.as_secs_f64());
        (packets as u32).saturating_add(quanta)
    }

    /// Packets that may leave in one burst (draft §4.2.2).
    fn quantum(&self, mss: u32) -> u32 {
        match self.pacing.map_or(0, Rate::as_bps) {
            0..1_200_000 => 1,
            1_200_000..24_000_000 => 2,
            bps => ((bps / 8000).min(65_536) / u64::from(mss.max(1))).max(1) as u32,
        }
    }

    /// Counts rounds, and takes the delivery rate (draft §4.1.1).
    fn update_bandwidth(&mut self, ack: &Acked) {
        self.delivered += u64::from(ack.packets);
        self.round_start = false;
        let Some(sample) = ack.rate else { return };
        if sample.prior_delivered >= self.round_end {
            self.round_end = self.delivered;
            self.round += 1;
            self.round_start = true;
        }
        let rate = sample.delivered as f64 / sample.interval.as_secs_f64();
        if !self.is_limited(ack) || rate >= self.bw.get() {
            self.bw.insert(self.round, rate);
        }
    }

    /// The sample was limited by the application or by ProbeRTT, not by the path.
    fn is_limited(&self, ack: &Acked) -> bool {
        ack.rate.is_some_and(|s| s.app_limited || (self.low.0..=self.low.1).contains(&s.prior_delivered))
    }

    /// Packets acknowledged beyond the expected number since the acknowledgment rate last fell below the bandwidth
    /// (Linux `bbr_update_ack_aggregation`).
    fn count_burst(&mut self, window: &WindowState, ack: &Acked) {
        let (since, before) = self.counting;
        let mut expected = self.bw.get() * ack.now.since(since).as_secs_f64();
        self.counting.1 = before + f64::from(ack.packets);
        if before <= expected {
            self.counting = (ack.now, f64::from(ack.packets));
            expected = 0.0;
        }
        let extra = (self.counting.1 - expected).min(f64::from(window.cwnd()));
        self.burst.insert(self.round, extra.max(0.0));
    }

    /// draft §4.3.4.3
    fn advance_cycle(&mut self, ack: &Acked, path: &PathView) {
        let Mode::ProbeBw(phase, since) = self.mode else { return };
        let Some((min_rtt, _)) = self.min_rtt else { return };
        let long_enough = ack.now.since(since) > min_rtt;
        let over = match CYCLE[phase] {
            gain if gain > 1.0 => long_enough && (ack.lost > 0 || ack.prior_in_flight >= self.inflight(gain, path.mss)),
            gain if gain < 1.0 => long_enough || ack.prior_in_flight <= self.inflight(1.0, path.mss),
            _ => long_enough,
        };
        if over {
            self.mode = Mode::ProbeBw((phase + 1) % CYCLE.len(), ack.now);
        }
    }

    /// draft §4.3.2.2
    fn check_full_pipe(&mut self, ack: &Acked) {
        if self.is_full || !self.round_start || self.is_limited(ack) {
            return;
        }
        if self.bw.get() >= self.full.0 * 1.25 {
            self.full = (self.bw.get(), 0);
            return;
        }
        self.full.1 += 1;
        self.is_full = self.full.1 >= 3;
    }

    /// draft §4.3.3
    fn check_drain(&mut self, now: Instant, path: &PathView) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && path.in_flight <= self.inflight(1.0, path.mss) {
            self.enter_probe_bw(now);
        }
    }

    fn enter_probe_bw(&mut self, now: Instant) {
        // Any phase except the draining one.
        let phase = 2 + (now.as_nanos() / 1000 % (CYCLE.len() as u64 - 1)) as usize;
        self.mode = Mode::ProbeBw(phase % CYCLE.len(), now);
    }

    /// A small segment that was alone in flight: its receiver may have delayed the acknowledgment (Linux
    /// `FLAG_ACK_MAYBE_DELAYED`).
    fn may_be_delayed(&self, ack: &Acked, path: &PathView) -> bool {
        let alone = ack.rate.is_some_and(|sample| sample.prior_delivered + 1 == self.delivered);
        alone && ack.packets == 1 && ack.bytes < u64::from(path.mss)
    }

    /// draft §4.1.2, §4.3.5
    fn update_min_rtt(&mut self, window: &mut WindowState, ack: &Acked, path: &PathView) {
        let expired = self.min_rtt.is_some_and(|(_, at)| ack.now.since(at) > MIN_RTT_WINDOW);
        let renewed = expired && !self.may_be_delayed(ack, path);
        if let Some(rtt) = ack.rtt
            && (renewed || self.min_rtt.is_none_or(|(min, _)| rtt <= min))
        {
            self.min_rtt = Some((rtt, ack.now));
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.mode = Mode::ProbeRtt(None);
            self.save(window);
            self.low = (self.delivered, self.delivered);
        }
        if let Mode::ProbeRtt(until) = self.mode {
            self.low.1 = self.delivered + u64::from(path.in_flight);
            self.probe_rtt(window, ack, path, until);
        }
        self.idle_restart &= ack.packets == 0;
    }

    fn probe_rtt(&mut self, window: &mut WindowState, ack: &Acked, path: &PathView, until: Option<(Instant, u64)>) {
        match until {
            None if path.in_flight <= MIN_PIPE => {
                self.round_end = self.delivered;
                self.mode = Mode::ProbeRtt(Some((ack.now + PROBE_RTT_TIME, self.round)));
            }
            Some((until, round)) if self.round > round && ack.now > until => {
                self.min_rtt = self.min_rtt.map(|(min, _)| (min, ack.now));
                window.set(window.cwnd().max(self.prior_cwnd));
                if self.is_full {
                    self.enter_probe_bw(ack.now);
                } else {
                    self.mode = Mode::Startup;
                }
            }
            _ => {}
        }
    }

    /// draft §4.2.1
    fn set_pacing(&mut self, window: &WindowState, path: &PathView) {
        let (gain, _) = self.gains();
        let packets_per_second = match (self.bw.get(), path.srtt) {
            (bw, _) if bw > 0.0 => MARGIN * gain * bw,
            (_, Some(srtt)) if self.pacing.is_none() => {
                HIGH_GAIN * f64::from(window.cwnd()) / srtt.max(Duration::from_nanos(1)).as_secs_f64()
            }
            _ => return,
        };
        let bits = packets_per_second * (f64::from(path.mss) + PACED_HEADERS as f64) * 8.0;
        let rate = Rate::from_bps((bits as u64).max(1));
        if self.is_full || self.pacing.is_none_or(|pacing| rate > pacing) {
            self.pacing = Some(rate);
        }
    }

    /// Saves the window to restore, unless one is saved already.
    fn save(&mut self, window: &WindowState) {
        let apart = self.repair != Repair::None || matches!(self.mode, Mode::ProbeRtt(_));
        self.prior_cwnd = if apart { self.prior_cwnd.max(window.cwnd()) } else { window.cwnd() };
    }

    /// Follows loss recovery (draft §4.2.3.4). True if that decides the window.
    fn repair(&mut self, window: &mut WindowState, ack: &Acked, path: &PathView) -> bool {
        let recovering = matches!(path.recovery, RecoveryPhase::Recovery | RecoveryPhase::Loss);
        let sustained = path.in_flight.saturating_add(ack.packets);
        if ack.lost > 0 {
            window.set(window.cwnd().saturating_sub(ack.lost).max(1));
        }
        match self.repair {
            Repair::None => return false,
            _ if !recovering => {
                self.repair = Repair::None;
                window.set(window.cwnd().max(self.prior_cwnd));
                return false;
            }
            Repair::Found => {
                // The next round starts now.
                self.round_end = self.delivered;
                self.repair = Repair::Conserving(self.round);
                window.set(sustained);
            }
            Repair::Conserving(round) if self.round > round => self.repair = Repair::Growing,
            Repair::Conserving(_) | Repair::Growing => {}
        }
        let conserving = matches!(self.repair, Repair::Conserving(_));
        if conserving {
            window.set(window.cwnd().max(sustained));
        }
        conserving
    }

    /// draft §4.2.3.6
    fn set_cwnd(&mut self, window: &mut WindowState, ack: &Acked, path: &PathView) {
        if ack.packets > 0 && !self.repair(window, ack, path) {
            let burst = if self.is_full { self.burst.get().min(MAX_BURST * self.bw.get()) } else { 0.0 };
            let target = self.inflight(self.gains().1, path.mss).saturating_add(burst as u32);
            let grown = window.cwnd().saturating_add(ack.packets);
            let cwnd = match self.is_full {
                true => grown.min(target),
                false if window.cwnd() < target || self.delivered < u64::from(self.initial) => grown,
                false => window.cwnd(),
            };
            window.set(cwnd.max(MIN_PIPE));
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            window.set(window.cwnd().min(MIN_PIPE));
        }
    }
}

impl SinglePath for Bbr {
    const RATE_BASED: bool = true;

    fn on_ack(&mut self, window: &mut WindowState, ack: &Acked, path: &PathView) {
        self.initial = window.initial();
        self.update_bandwidth(ack);
        self.count_burst(window, ack);
        self.advance_cycle(ack, path);
        self.check_full_pipe(ack);
        self.check_drain(ack.now, path);
        self.update_min_rtt(window, ack, path);
        self.set_pacing(window, path);
        self.set_cwnd(window, ack, path);
    }

    /// BBR has no threshold.
    fn ssthresh(&mut self, window: &WindowState) -> u32 {
        window.ssthresh()
    }

    fn on_loss(&mut self, window: &mut WindowState, _now: Instant, loss: Loss, path: &PathView) {
        match loss {
            Loss::Fast => {
                self.save(window);
                self.undo_cwnd = Some(window.cwnd());
                self.repair = Repair::Found;
            }
            Loss::Timeout { again } => {
                self.save(window);
                if !again {
                    self.undo_cwnd = Some(window.cwnd());
                }
                self.full = (0.0, 0);
                self.repair = Repair::Growing;
                window.set(path.in_flight.saturating_add(1));
            }
            Loss::Penalty => window.set(window.cwnd() / 2),
            Loss::Marked => {}
        }
    }

    fn on_undo(&mut self, window: &mut WindowState, _now: Instant) {
        if let Some(cwnd) = self.undo_cwnd.take() {
            window.set(window.cwnd().max(cwnd));
            self.full = (0.0, 0);
        }
    }

    fn on_idle(&mut self, _window: &mut WindowState, _now: Instant, _idle: Duration, _rto: Duration) {
        self.idle_restart = true;
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_plugin::congestion::RateSample;
    use anabranch_units::PathId;

    /// A subflow with 40 ms of round-trip time; each acknowledgment ends a round.
    struct Bench {
        bbr: Bbr,
        window: WindowState,
        path: PathView,
        now: Instant,
        delivered: u64,
        rtt: u64,
        lost: u32,
        app_limited: bool,
    }

    impl Bench {
        fn new() -> Self {
            let path =
                PathView { srtt: Some(Duration::from_millis(40)), in_flight: 80, ..PathView::new(PathId(0), 1400) };
            let window = WindowState::new(10);
            Self {
                bbr: Bbr::default(),
                window,
                path,
                now: Instant::ZERO,
                delivered: 0,
                rtt: 40,
                lost: 0,
                app_limited: false,
            }
        }

        /// One round later: an acknowledgment of `packets` with a delivery rate of `per_round` packets in 40 ms.
        fn ack(&mut self, packets: u32, per_round: u64) -> &mut Self {
            self.now += Duration::from_millis(40);
            let mut ack = Acked::default();
            (ack.now, ack.packets, ack.lost) = (self.now, packets, self.lost);
            (ack.rtt, ack.prior_in_flight) = (Some(Duration::from_millis(self.rtt)), self.path.in_flight + packets);
            ack.rate = Some(RateSample {
                delivered: per_round,
                prior_delivered: self.delivered,
                interval: Duration::from_millis(40),
                app_limited: self.app_limited,
            });
            self.delivered += u64::from(packets);
            self.bbr.on_ack(&mut self.window, &ack, &self.path);
            self
        }

        fn acks(&mut self, rounds: u32, packets: u32, per_round: u64) {
            for _ in 0..rounds {
                self.ack(packets, per_round);
            }
        }

        /// A path of 40 packets in 40 ms, filled.
        fn cruising() -> Self {
            let mut b = Self::new();
            for per_round in [10, 20, 40, 40, 40, 40] {
                b.ack(per_round as u32, per_round);
            }
            b.path.in_flight = 40;
            b.ack(40, 40);
            assert!(matches!(b.bbr.mode, Mode::ProbeBw(..)), "{:?}", b.bbr.mode);
            b
        }

        fn lose(&mut self, loss: Loss) -> &mut Self {
            self.bbr.on_loss(&mut self.window, self.now, loss, &self.path);
            self
        }

        /// The pacing rate in packets per second.
        fn paced(&self) -> f64 {
            self.bbr.pacing.map_or(0.0, |rate| rate.as_bps() as f64 / (1480.0 * 8.0))
        }
    }

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-4, "{found} is not {expected}");
    }

    #[test]
    fn startup_doubles_until_three_rounds_bring_no_growth() {
        let mut b = Bench::new();
        for (per_round, mode) in [(10, Mode::Startup), (20, Mode::Startup), (40, Mode::Startup), (42, Mode::Startup)] {
            b.ack(10, per_round);
            assert_eq!(b.bbr.mode, mode);
            close(b.paced(), 0.99 * 2.885 * per_round as f64 / 0.04);
        }
        b.ack(10, 43);
        assert_eq!(b.bbr.mode, Mode::Startup);
        b.ack(10, 44);
        assert_eq!(b.bbr.mode, Mode::Drain);
        close(b.paced(), 0.99 / 2.885 * 44.0 / 0.04);
        // The limit is the BDP of 44 and three quanta of two.
        b.path.in_flight = 51;
        b.ack(10, 44);
        assert_eq!(b.bbr.mode, Mode::Drain);
        b.path.in_flight = 50;
        b.ack(10, 44);
        assert!(matches!(b.bbr.mode, Mode::ProbeBw(..)));
    }

    #[test]
    fn want_of_data_neither_fills_the_pipe_nor_lowers_the_rate() {
        let mut b = Bench::new();
        b.ack(10, 20).app_limited = true;
        b.acks(20, 1, 1);
        assert_eq!((b.bbr.mode, b.bbr.bw.get()), (Mode::Startup, 500.0));
        b.ack(1, 30);
        assert_eq!(b.bbr.bw.get(), 750.0, "faster than thought, all the same");
    }

    #[test]
    fn the_rate_is_the_greatest_of_ten_rounds() {
        let mut b = Bench::cruising();
        b.acks(9, 30, 30);
        assert_eq!(b.bbr.bw.get(), 1000.0);
        b.ack(30, 30);
        assert_eq!(b.bbr.bw.get(), 750.0);
    }

    #[test]
    fn the_cycle_probes_and_drains_once_in_eight_round_trips() {
        let mut b = Bench::cruising();
        b.path.in_flight = 60;
        let mut gains = Vec::new();
        for _ in 0..16 {
            b.now += Duration::from_millis(1);
            b.ack(40, 40);
            gains.push((b.paced() / 0.99 / 1000.0 * 100.0).round() as u32);
        }
        let at = gains.iter().position(|gain| *gain == 125).expect("it probes");
        assert_eq!(gains[at..at + 9], [125, 75, 100, 100, 100, 100, 100, 100, 125]);
        // Probing continues until a quarter more than the BDP is in flight.
        let mut b = Bench::cruising();
        (b.bbr.mode, b.path.in_flight) = (Mode::ProbeBw(0, b.now), 4);
        for _ in 0..5 {
            b.now += Duration::from_millis(1);
            b.ack(40, 40);
            assert!(matches!(b.bbr.mode, Mode::ProbeBw(0, _)));
        }
        b.path.in_flight = 17;
        b.ack(40, 40);
        assert!(matches!(b.bbr.mode, Mode::ProbeBw(0, _)));
        b.path.in_flight = 18;
        b.ack(40, 40);
        assert!(matches!(b.bbr.mode, Mode::ProbeBw(1, _)), "1.25 times 40, three quanta, and 2");
        // Draining lasts a round trip, or until the flight is at most the BDP.
        for (in_flight, phase) in [(46, 1), (45, 2)] {
            // The phase began too recently for a round trip to be over.
            b.bbr.mode = Mode::ProbeBw(1, b.now + Duration::from_secs(1));
            b.path.in_flight = in_flight;
            b.ack(1, 40);
            assert!(matches!(b.bbr.mode, Mode::ProbeBw(p, _) if p == phase), "{in_flight}: {:?}", b.bbr.mode);
        }
    }

    #[test]
    fn the_window_is_twice_the_bdp_and_three_quanta() {
        let mut b = Bench::cruising();
        b.acks(10, 40, 40);
        // With one acknowledgment per round trip, all of it arrives in one burst.
        assert_eq!(b.window.cwnd(), 2 * 40 + 3 * 2 + 40);
    }

    #[test]
    fn what_comes_at_once_is_counted_against_the_rate_until_it_falls_behind() {
        let mut b = Bench::cruising();
        b.bbr.burst = WindowedMax::new(BW_ROUNDS);
        let burst = |b: &mut Bench, ms: u64, packets: u32| {
            let mut ack = Acked::default();
            (ack.now, ack.packets) = (b.now + Duration::from_millis(ms), packets);
            b.bbr.count_burst(&b.window, &ack);
            b.bbr.burst.get()
        };
        b.window.set(100);
        // The path carries one packet per millisecond.
        b.bbr.counting = (b.now, 0.0);
        assert_eq!(burst(&mut b, 10, 12), 12.0, "12 in no time");
        assert_eq!(burst(&mut b, 11, 10), 21.0, "22 in a millisecond");
        assert_eq!(burst(&mut b, 60, 5), 21.0, "fell behind");
        assert_eq!(b.bbr.counting, (b.now + Duration::from_millis(60), 5.0));
    }

    #[test]
    fn after_ten_seconds_the_least_round_trip_time_is_sought_with_four_packets() {
        let mut b = Bench::cruising();
        b.rtt = 60;
        let started = b.now;
        while !matches!(b.bbr.mode, Mode::ProbeRtt(_)) {
            b.ack(40, 40);
        }
        assert!((9_900..10_200).contains(&b.now.since(started).as_millis()));
        let before = b.bbr.prior_cwnd;
        assert!(before > 80);
        assert_eq!(b.window.cwnd(), 4);
        (b.path.in_flight, b.rtt) = (4, 40);
        b.ack(4, 4);
        let low_since = b.now;
        while matches!(b.bbr.mode, Mode::ProbeRtt(_)) {
            assert_eq!(b.ack(4, 4).window.cwnd().min(5), if matches!(b.bbr.mode, Mode::ProbeRtt(_)) { 4 } else { 5 });
        }
        assert!((200..=280).contains(&b.now.since(low_since).as_millis()));
        assert!(b.window.cwnd() >= before);
        assert_eq!(b.bbr.bw.get(), 1000.0, "four packets a round trip say nothing about the path");
        assert_eq!(b.bbr.min_rtt.map(|(rtt, _)| rtt.as_millis()), Some(40));
    }

    #[test]
    fn an_old_least_round_trip_time_is_not_renewed_by_an_acknowledgment_that_may_be_delayed() {
        for (bytes, rtt) in [(1399, 40), (1400, 60)] {
            let mut b = Bench::cruising();
            b.now += Duration::from_secs(11);
            let mut ack = Acked::default();
            (ack.now, ack.packets, ack.bytes) = (b.now, 1, bytes);
            ack.rtt = Some(Duration::from_millis(60));
            ack.rate = Some(RateSample {
                delivered: 1,
                prior_delivered: b.delivered,
                interval: Duration::from_millis(60),
                app_limited: true,
            });
            b.bbr.on_ack(&mut b.window, &ack, &b.path);
            assert_eq!(b.bbr.min_rtt.map(|(rtt, _)| rtt.as_millis()), Some(rtt), "{bytes}");
        }
    }

    #[test]
    fn before_a_round_trip_time_is_known_the_initial_window_is_kept_to() {
        let mut b = Bench::new();
        b.window = WindowState::new(3);
        b.bbr.initial = b.window.initial();
        assert_eq!(b.bbr.inflight(2.0, 1400), 3);
    }

    #[test]
    fn for_a_round_after_a_loss_no_more_is_sent_than_arrives() {
        let mut b = Bench::cruising();
        b.acks(10, 40, 40);
        b.bbr.mode = Mode::ProbeBw(2, b.now);
        let before = b.ack(40, 40).window.cwnd();
        b.lose(Loss::Fast);
        (b.path.recovery, b.path.in_flight, b.lost) = (RecoveryPhase::Recovery, 30, 5);
        assert_eq!(b.ack(3, 40).window.cwnd(), 33);
        b.lost = 0;
        // The round is over: the window grows up to the target.
        assert_eq!(b.ack(10, 40).window.cwnd(), 43);
        b.path.recovery = RecoveryPhase::Open;
        assert_eq!(b.ack(10, 40).window.cwnd(), before);
        b.lose(Loss::Marked);
        assert_eq!(b.window.cwnd(), before);
    }

    #[test]
    fn a_timeout_leaves_what_is_in_flight_and_an_undo_takes_it_back() {
        let mut b = Bench::cruising();
        let before = b.window.cwnd();
        b.path.in_flight = 0;
        b.lose(Loss::Timeout { again: false }).lose(Loss::Timeout { again: true });
        assert_eq!(b.window.cwnd(), 1);
        b.path.recovery = RecoveryPhase::Loss;
        assert_eq!(b.ack(1, 40).window.cwnd(), 4);
        b.bbr.on_undo(&mut b.window, b.now);
        assert_eq!(b.window.cwnd(), before);
        b.lose(Loss::Penalty);
        assert_eq!(b.window.cwnd(), before / 2);
    }

    /// An acknowledgment, `ms` later, of `packets` sent when `prior_delivered` had been delivered.
    fn late(b: &mut Bench, ms: u64, packets: u32, prior_delivered: u64) -> Acked {
        b.now += Duration::from_millis(ms);
        let mut ack = Acked::default();
        (ack.now, ack.packets, ack.rtt) = (b.now, packets, Some(Duration::from_millis(b.rtt)));
        let interval = Duration::from_millis(40);
        ack.rate = Some(RateSample { delivered: 40, prior_delivered, interval, app_limited: false });
        b.delivered += u64::from(packets);
        ack
    }

    #[test]
    fn a_round_ends_with_what_was_sent_after_it_began() {
        let mut b = Bench::new();
        let mut round_after = |packets, prior_delivered| {
            let ack = late(&mut b, 10, packets, prior_delivered);
            b.bbr.on_ack(&mut b.window, &ack, &b.path);
            b.bbr.round
        };
        assert_eq!(round_after(10, 0), 1);
        // Sent before the ten were delivered.
        assert_eq!([round_after(5, 0), round_after(5, 9)], [1, 1]);
        // The next round began when 20 had been delivered and one more was.
        assert_eq!([round_after(1, 10), round_after(9, 20), round_after(1, 21)], [2, 2, 3]);
    }

    #[test]
    fn before_the_first_rate_the_initial_window_is_paced_over_a_round_trip() {
        let mut b = Bench::new();
        let mut ack = late(&mut b, 40, 1, 0);
        ack.rate = None;
        b.bbr.on_ack(&mut b.window, &ack, &b.path);
        close(b.paced(), 2.885 * 10.0 / 0.04);
    }

    #[test]
    fn the_pacing_rate_is_told() {
        let mut control = Uncoupled::new(Bbr::default());
        control.on_join(PathId(0), 10);
        assert_eq!(control.window(PathId(0)).pacing, None);
        let mut b = Bench::new();
        let ack = late(&mut b, 40, 1, 0);
        control.on_ack(PathId(0), &ack, &[b.path]);
        b.bbr.on_ack(&mut b.window, &ack, &b.path);
        assert_eq!(control.window(PathId(0)).pacing, b.bbr.pacing);
        assert!(b.bbr.pacing.is_some());
    }

    #[test]
    fn there_is_never_a_threshold() {
        let mut b = Bench::cruising();
        for loss in [Loss::Fast, Loss::Marked, Loss::Penalty, Loss::Timeout { again: false }] {
            b.lose(loss);
            assert_eq!((b.window.ssthresh(), b.bbr.ssthresh(&b.window)), (u32::MAX, u32::MAX), "{loss:?}");
        }
    }

    #[test]
    fn in_startup_the_window_grows_up_to_its_target() {
        // 2.885 times 40 packets, and three quanta of three.
        for (before, after) in [(123, 124), (124, 125), (125, 125), (130, 130)] {
            let mut b = Bench::new();
            b.acks(2, 40, 40);
            b.window.set(before);
            assert_eq!(b.ack(1, 40).window.cwnd(), after);
        }
        // The first packets are a poor estimate of the rate: below ten, the target does not apply.
        let mut b = Bench::new();
        assert_eq!(b.ack(9, 1).window.cwnd(), 19);
        assert_eq!(b.ack(1, 1).window.cwnd(), 19);
    }

    #[test]
    fn what_is_lost_leaves_the_window() {
        let mut b = Bench::cruising();
        b.lose(Loss::Fast);
        (b.path.recovery, b.path.in_flight) = (RecoveryPhase::Recovery, 30);
        b.acks(2, 10, 40);
        let before = b.window.cwnd();
        b.lost = 7;
        assert_eq!(b.ack(2, 40).window.cwnd(), before - 7 + 2);
    }

    #[test]
    fn a_phase_that_neither_probes_nor_drains_lasts_a_round_trip() {
        let mut b = Bench::cruising();
        b.bbr.mode = Mode::ProbeBw(2, b.now + Duration::from_secs(1));
        b.path.in_flight = 4;
        b.ack(1, 40);
        assert!(matches!(b.bbr.mode, Mode::ProbeBw(2, _)), "however little is in flight");
    }

    #[test]
    fn the_cycle_begins_anywhere_but_with_the_drain() {
        let mut b = Bench::new();
        let mut begun = [0; CYCLE.len()];
        for us in 0..70 {
            b.bbr.enter_probe_bw(Instant::ZERO + Duration::from_micros(us));
            let Mode::ProbeBw(phase, _) = b.bbr.mode else { panic!("{:?}", b.bbr.mode) };
            begun[phase] += 1;
        }
        assert_eq!(begun, [10, 0, 10, 10, 10, 10, 10, 10]);
    }

    /// Ten seconds after the least RTT was seen, with `in_flight` packets in flight.
    fn probing_rtt(in_flight: u32) -> Bench {
        let mut b = Bench::cruising();
        (b.rtt, b.path.in_flight) = (60, in_flight);
        while !matches!(b.bbr.mode, Mode::ProbeRtt(_)) {
            b.ack(40, 40);
        }
        b
    }

    #[test]
    fn the_least_round_trip_time_is_sought_for_a_round_trip_at_least() {
        let mut b = probing_rtt(4);
        let before = b.delivered;
        for _ in 0..10 {
            // Sent before the flight was small: the round trip is not over.
            let ack = late(&mut b, 100, 1, before - 1);
            b.bbr.on_ack(&mut b.window, &ack, &b.path);
            assert!(matches!(b.bbr.mode, Mode::ProbeRtt(_)));
        }
        let ack = late(&mut b, 1, 1, before);
        b.bbr.on_ack(&mut b.window, &ack, &b.path);
        assert!(matches!(b.bbr.mode, Mode::ProbeBw(..)));
    }

    #[test]
    fn what_is_in_flight_in_probe_rtt_says_nothing_about_the_path() {
        let mut b = probing_rtt(30);
        let limited = |b: &mut Bench, prior_delivered| {
            let ack = late(b, 0, 0, prior_delivered);
            b.bbr.is_limited(&ack)
        };
        let delivered = b.delivered;
        let seen = [0, 30, 31].map(|more| limited(&mut b, delivered + more));
        assert_eq!(seen, [true, true, false]);
        assert!(!limited(&mut b, delivered - 1), "sent before");
    }
}
