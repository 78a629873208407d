//! CUBIC: the window as a cubic function of time since the last loss (RFC 9438).

use crate::hystart::HyStart;
use crate::single::{SinglePath, Uncoupled};
use crate::window::{MIN_SSTHRESH, WindowState, begins_episode, whole};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::{Acked, Loss};
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag, number};
use anabranch_plugin::schedule::PathView;
use anabranch_units::{Duration, Instant};

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "cubic",
    aliases: &["uncoupled-cubic"],
    about: "CUBIC per subflow, uncoupled: a cubic function of the time since the last loss; Linux's default",
    page: PAGE,
    parameters: &[C.parameter, BETA.parameter, FAST_CONVERGENCE.parameter, HYSTART.parameter, LINUX.parameter],
    build: |parameters| Box::new(Uncoupled::new(Cubic::new(parameters))),
};

const C: Handle<f64> = number("c", 0.4, 0.01..=10.0).unit("packets/s³").about("steepness of the curve (RFC 9438 §5.1)");
const BETA: Handle<f64> =
    number("beta", 0.7, 0.1..=0.95).about("what remains of the window after a loss (RFC 9438 §4.6)");
const FAST_CONVERGENCE: Handle<bool> =
    flag("fast_convergence", true).about("aim lower if the window had not regained its last maximum (RFC 9438 §4.7)");
const HYSTART: Handle<bool> =
    flag("hystart", true).about("leave slow start when acknowledgment trains or delays say that the path is full");
const LINUX: Handle<bool> = flag("linux", false)
    .about("as Linux: W_est in whole packets and never faster than alpha; t passes while the window is not the limit");

const PAGE: &str = "\
## Idea
After a loss, return quickly to just below the window at which it happened, stay there, then probe ever faster. The
growth depends on time, not on the round-trip time. Several subflows grow independently.

## Rule
W(t) = C (t - K)^3 + W_max, K = cbrt((W_max - w_epoch) / C), t = time of congestion avoidance since the last loss.
Per acknowledged packet: w += (target - w) / w, target = W(t + RTT) held within [w, 1.5 w].
Reno-friendly region: where W(t) < W_est, w = W_est, with W_est += alpha / w per acknowledged packet,
alpha = 3 (1 - beta) / (1 + beta), and 1 once W_est has regained the window before the last reduction.
linux = true counts W_est as Linux does: one packet per floor(floor(8/alpha) w / 8) acknowledged ones, which is floor(15
w / 8), and no faster once the window is regained. At 1 % loss and 50 ms the throughput is a tenth lower. Its target is
W(t + least RTT). Its t passes while the window is not the limit, but not between the last packet and one that is sent
after nothing was in flight.
Loss or ECN mark, once per episode: W_max = w, or w (1 + beta) / 2 under fast convergence if w had not regained W_max;
ssthresh = max(beta w, 2), w = ssthresh.
Retransmission timeout: the same ssthresh, w = 1, and the next curve starts at its initial window with K = 0.
Slow start ends at ssthresh, at a loss, or when HyStart finds the path full: from 16 packets on, once acknowledgments
at most 2 ms apart have come for (least RTT + 1 ms) / 2 of a round (all of it when paced), or once the least of eight or
more RTT samples of a round exceeds the least RTT by an eighth, at least 4 and at most 16 ms.

## When it helps
On long fast paths, where Reno needs minutes to regain its window.

## When it hurts
It keeps deep buffers full. On several subflows through one bottleneck it takes several shares. HyStart may leave slow
start too early where the delay varies, as on wireless links.

## Departures
beta applies to the window and not to the flight size, as in Linux. Before the first loss, and before the first one after
a timeout, congestion avoidance adds at least a twentieth per round trip, as in Linux. t leaves out time in which the
window was not the limit: between two acknowledgments at most one RTT counts, so idle periods shorter than a timeout are
left out too.
In the Reno-friendly region w follows W_est by at most one packet per two acknowledged ones (Linux's bound for all of
CUBIC), because a scheduler's penalty does not change W_est and the curve, and the window must not return at once. After
a spurious loss the curve is restored with the window, as the RFC requires and Linux does not.
HyStart is Linux's (ack train and delay increase) rather than HyStart++ (RFC 9406), because results are compared with
Linux, whose CUBIC has no HyStart++; its allowance for aggregation is a fixed 1 ms, which is Linux's value below 2
Gbit/s.

## References
RFC 9438; S. Ha, I. Rhee, L. Xu, \"CUBIC: a new TCP-friendly high-speed TCP variant\", 2008; S. Ha, I. Rhee, \"Taming the
elephants: new TCP slow start\", 2011.
";

/// CUBIC on one subflow.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: Config,
    curve: Curve,
    before: Option<Curve>,
    last_ack: Instant,
    /// When the last packet was sent, if nothing has been in flight since.
    drained: Option<Instant>,
    hystart: Option<HyStart>,
}

#[derive(Clone, Copy, Debug)]
struct Config {
    c: f64,
    beta: f64,
    alpha: f64,
    fast_convergence: bool,
    linux: bool,
}

/// State from past losses. Windows in packets; zero = no loss yet.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    w_max: f64,
    w_prior: f64,
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance: its time at the window's limit, K in seconds, and in packets the plateau of the
/// curve (W_max) and Reno's estimate (W_est).
#[derive(Clone, Copy, Debug)]
struct Epoch {
    elapsed: Duration,
    k: f64,
    plateau: f64,
    w_est: f64,
    /// Acknowledged packets that have not yet raised W_est, where it grows in whole packets.
    counted: f64,
}

impl Config {
    fn new(c: f64, beta: f64, fast_convergence: bool, linux: bool) -> Self {
        // RFC 9438 §4.3
        Self { c, beta, alpha: 3.0 * (1.0 - beta) / (1.0 + beta), fast_convergence, linux }
    }
}

impl Epoch {
    fn begin(config: &Config, w: f64, w_max: f64) -> Self {
        // RFC 9438 §4.2 eq 2; without a previous loss, and above the last W_max, the curve starts flat (§4.10).
        let k = if w < w_max { libm::cbrt((w_max - w) / config.c) } else { 0.0 };
        Self { elapsed: Duration::ZERO, k, plateau: w_max.max(w), w_est: w, counted: 0.0 }
    }

    /// The cubic function at `t` seconds (RFC 9438 §4.2 eq 1).
    fn at(&self, config: &Config, t: f64) -> f64 {
        let d = t - self.k;
        config.c * (d * d * d) + self.plateau
    }

    /// The growth of W_est in Linux 6.18 (`bictcp_update`).
    fn whole_packets(&mut self, config: &Config, w: f64, acked: f64) -> f64 {
        let each = (libm::floor(8.0 / config.alpha) * libm::floor(w + 1e-9) / 8.0).max(1.0);
        let each = libm::floor(each);
        self.counted += acked;
        let mut grown = 0.0;
        while self.counted > each {
            self.counted -= each;
            grown += 1.0;
        }
        grown
    }

    /// The window after `acked` packets at window `w`.
    fn grow(&mut self, config: &Config, w: f64, w_prior: f64, acked: u32, rtt: Duration) -> f64 {
        let acked = f64::from(acked);
        self.w_est += if config.linux {
            self.whole_packets(config, w, acked)
        } else {
            let alpha = if self.w_est < w_prior { config.alpha } else { 1.0 };
            alpha * acked / w // RFC 9438 §4.3 eq 4
        };
        let t = self.elapsed.as_secs_f64();
        if self.at(config, t) < self.w_est {
            return self.w_est.clamp(w, w + acked / 2.0);
        }
        let target = self.at(config, t + rtt.as_secs_f64()).clamp(w, 1.5 * w); // RFC 9438 §4.2
        w + (target - w) * (acked / w).min(1.0) // RFC 9438 §4.4
    }
}

impl Cubic {
    fn new(parameters: &Parameters<'_>) -> Self {
        Self {
            config: Config::new(
                C.of(parameters),
                BETA.of(parameters),
                FAST_CONVERGENCE.of(parameters),
                LINUX.of(parameters),
            ),
            curve: Curve::default(),
            before: None,
            last_ack: Instant::ZERO,
            drained: None,
            hystart: HYSTART.of(parameters).then(HyStart::default),
        }
    }

    /// The time of a Linux kernel's curve passes whether or not the window is the limit. What is sent after nothing was in
    /// flight moves the curve on by the time since the transmission before.
    ///
    /// Linux 6.18: `bictcp_update`, `cubictcp_cwnd_event`.
    fn pass(&mut self, ack: &Acked, since_last: Duration, path: &PathView) {
        let sent = ack.rtt.map(|rtt| ack.now - rtt);
        let idle = self.drained.take().zip(sent).map_or(Duration::ZERO, |(before, sent)| sent.since(before));
        if let Some(epoch) = &mut self.curve.epoch {
            epoch.elapsed = (epoch.elapsed + since_last).saturating_sub(idle);
        }
        self.drained = sent.filter(|_| path.in_flight == 0);
    }

    fn avoid(&mut self, window: &mut WindowState, acked: u32, since_last: Duration, rtt: Duration) {
        let w = window.exact();
        let config = &self.config;
        let epoch = match &mut self.curve.epoch {
            Some(epoch) => {
                // An uninterrupted transmission is acknowledged at least once per RTT; the excess was idle (RFC 9438
                // §5.8).
                if !config.linux {
                    epoch.elapsed += since_last.min(rtt);
                }
                epoch
            }
            none => none.insert(Epoch::begin(config, w, self.curve.w_max)),
        };
        let grown = epoch.grow(config, w, self.curve.w_prior, acked, rtt) - w;
        // Without a loss the curve is a poor estimate of the path's capacity: growth is at least a twentieth per round
        // trip, as in Linux (`bictcp_update`).
        let least = if self.curve.w_max > 0.0 { 0.0 } else { f64::from(acked) / 20.0 };
        window.add(grown.max(least));
    }
}

impl SinglePath for Cubic {
    fn on_ack(&mut self, window: &mut WindowState, ack: &Acked, path: &PathView) {
        let since_last = ack.now.since(core::mem::replace(&mut self.last_ack, ack.now));
        if let Some(hystart) = self.hystart.as_mut().filter(|_| window.in_slow_start())
            && hystart.on_ack(ack, window.cwnd(), path.pacing.is_some())
        {
            window.end_slow_start();
        }
        if self.config.linux {
            self.pass(ack, since_last, path);
        }
        // When it counted acknowledgments, Linux multiplied by its estimate of packets per acknowledgment
        // (`delayed_ack`).
        let acked = window.slow_start_by_packets(ack);
        if acked > 0 {
            // Linux looks ahead by the least round trip (`delay_min`).
            let rtt = if self.config.linux { path.min_rtt } else { path.srtt.max(ack.rtt) }.unwrap_or(Duration::ZERO);
            self.avoid(window, acked, since_last, rtt);
        }
    }

    fn ssthresh(&mut self, window: &WindowState) -> u32 {
        let w = f64::from(window.cwnd());
        let Config { beta, fast_convergence, .. } = self.config;
        let released = fast_convergence && w < self.curve.w_max; // RFC 9438 §4.7
        self.curve = Curve { w_max: if released { w * (1.0 + beta) / 2.0 } else { w }, w_prior: w, epoch: None };
        whole(beta * w).max(MIN_SSTHRESH) // RFC 9438 §4.6
    }

    fn on_loss(&mut self, window: &mut WindowState, _now: Instant, loss: Loss, _path: &PathView) {
        let mut ssthresh = window.ssthresh();
        if begins_episode(loss) {
            self.before = (loss != Loss::Marked).then_some(self.curve);
            ssthresh = self.ssthresh(window);
        }
        if matches!(loss, Loss::Timeout { .. }) {
            // RFC 9438 §4.8: the next stage begins at its initial window.
            self.curve = Curve { w_max: 0.0, epoch: None, ..self.curve };
            self.hystart = self.hystart.is_some().then(HyStart::default);
        }
        window.on_loss(loss, ssthresh);
    }

    fn on_undo(&mut self, window: &mut WindowState, _now: Instant) {
        self.curve = self.before.take().unwrap_or(self.curve); // RFC 9438 §4.9
        window.undo();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::PathId;

    const RFC: Config = Config { c: 0.4, beta: 0.7, alpha: 0.9 / 1.7, fast_convergence: true, linux: false };
    const MS100: Duration = Duration::from_millis(100);

    fn cubic(given: &[(String, f64)]) -> Cubic {
        Cubic::new(&Parameters::new(ENTRY.parameters, given))
    }

    fn path() -> PathView {
        PathView { srtt: Some(MS100), ..PathView::new(PathId(0), 1400) }
    }

    fn ack(packets: u32, now_ms: u64) -> Acked {
        let mut ack = Acked::default();
        (ack.counted, ack.cwnd_limited, ack.may_grow) = (packets, true, true);
        (ack.now, ack.rtt) = (Instant::from_millis(now_ms), Some(MS100));
        ack
    }

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn curve_vectors() {
        let config = Config::new(0.4, 0.7, true, false);
        close(config.alpha, 0.5294, 5e-5);
        let epoch = Epoch::begin(&config, 70.0, 100.0);
        close(epoch.k, 4.2172, 5e-5);
        for (t, w) in [(1.0, 86.681), (2.0, 95.640), (epoch.k, 100.0), (6.0, 102.267)] {
            close(epoch.at(&config, t), w, 5e-4);
        }
        close(epoch.at(&config, 2.1), 96.204, 5e-4);
    }

    #[test]
    fn cubic_region_vector() {
        let mut epoch = Epoch::begin(&RFC, 70.0, 100.0);
        epoch.elapsed = Duration::from_secs(2);
        let grown = epoch.grow(&RFC, 95.0, 100.0, 1, MS100);
        close(grown - 95.0, 0.012674, 5e-7);
    }

    #[test]
    fn friendly_estimate_after_twenty_rounds() {
        let mut epoch = Epoch::begin(&RFC, 70.0, 100.0);
        for _ in 0..20 {
            epoch.grow(&RFC, 80.0, 100.0, 80, MS100);
        }
        close(epoch.w_est, 80.588, 5e-4);
        assert!(epoch.at(&RFC, 2.0) > epoch.w_est, "2 s after the loss the curve leads");
    }

    #[test]
    fn where_the_curve_meets_the_friendly_estimate_it_leads() {
        // RFC 9438 §4.3: the estimate decides where W(t) is less. Both are at 16 packets here; a second later the curve
        // is C higher.
        let mut epoch = Epoch::begin(&RFC, 16.0, 0.0);
        epoch.w_est = 15.9375;
        let grown = epoch.grow(&RFC, 16.0, 0.0, 1, Duration::from_secs(1));
        assert_eq!(epoch.w_est, 16.0);
        close(grown, 16.0 + 0.4 / 16.0, 1e-12);
    }

    #[test]
    fn the_estimate_grows_by_one_once_it_has_regained_the_window() {
        let mut epoch = Epoch::begin(&RFC, 100.0, 0.0);
        epoch.grow(&RFC, 100.0, 100.0, 100, MS100);
        close(epoch.w_est, 101.0, 1e-12);
    }

    #[test]
    fn linux_counts_whole_packets_and_goes_on_as_it_did() {
        // ⌊15 · 10 / 8⌋ = 18 acknowledged packets per step; the first step after one more, which carries over between
        // windows.
        let linux = Config { linux: true, ..RFC };
        let mut epoch = Epoch::begin(&linux, 10.0, 0.0);
        let mut grown = |packets: u32| {
            (0..packets).for_each(|_| {
                epoch.grow(&linux, 10.0, 10.0, 1, MS100);
            });
            epoch.w_est
        };
        assert_eq!([grown(18), grown(1), grown(17), grown(1), grown(36)], [10.0, 11.0, 11.0, 12.0, 14.0]);
    }

    /// The age of the curve after acknowledgments at these milliseconds, the first of which begins it, of packets sent so many
    /// milliseconds before; with `true` nothing is in flight after one.
    fn age(linux: f64, acks: &[(u64, u64, bool)]) -> u64 {
        let (mut c, mut window) = (cubic(&[("linux".to_owned(), linux)]), WindowState::at(20, u32::MAX));
        c.on_loss(&mut window, Instant::ZERO, Loss::Fast, &path());
        for (i, (now, rtt, drained)) in acks.iter().enumerate() {
            let mut ack = ack(1, *now);
            // The window is the limit for the first and the last.
            ack.cwnd_limited = i == 0 || i + 1 == acks.len();
            ack.rtt = Some(Duration::from_millis(*rtt));
            c.on_ack(&mut window, &ack, &PathView { in_flight: u32::from(!drained), ..path() });
        }
        c.curve.epoch.unwrap().elapsed.as_millis()
    }

    #[test]
    fn linux_time_passes_while_the_window_is_not_the_limit() {
        let acks = [(1000, 100, false), (1500, 100, false), (2000, 100, false)];
        assert_eq!((age(0.0, &acks), age(1.0, &acks)), (100, 1000));
    }

    #[test]
    fn linux_leaves_out_the_time_between_the_last_transmission_and_one_after_nothing_was_in_flight() {
        // Sent at 900, and then not before 1400.
        assert_eq!(age(1.0, &[(1000, 100, true), (1500, 100, false)]), 0);
        assert_eq!(age(1.0, &[(1000, 100, true), (1500, 100, false), (1600, 100, false)]), 100);
    }

    #[test]
    fn short_round_trips_follow_the_friendly_estimate() {
        // At 10 ms Reno's line exceeds the curve, which would reach only 14.7 in this time.
        let (mut c, mut window, mut now) = (cubic(&[]), WindowState::at(20, u32::MAX), 0);
        c.on_loss(&mut window, Instant::ZERO, Loss::Fast, &path());
        let fast = PathView { srtt: Some(Duration::from_millis(10)), ..path() };
        for _ in 0..10 {
            let mut ack = ack(window.cwnd(), now);
            ack.rtt = fast.srtt;
            c.on_ack(&mut window, &ack, &fast);
            now += 10;
        }
        close(window.exact(), 14.0 + 10.0 * RFC.alpha, 0.3);
    }

    #[test]
    fn fast_convergence_vector() {
        let (mut c, mut window) = (cubic(&[]), WindowState::at(80, 40));
        c.curve.w_max = 100.0;
        c.on_loss(&mut window, Instant::ZERO, Loss::Fast, &path());
        close(c.curve.w_max, 68.0, 1e-9);
        assert_eq!((window.cwnd(), window.ssthresh()), (56, 56));

        let mut without = cubic(&[("fast_convergence".to_owned(), 0.0)]);
        (without.curve.w_max, window) = (100.0, WindowState::at(80, 40));
        without.on_loss(&mut window, Instant::ZERO, Loss::Fast, &path());
        close(without.curve.w_max, 80.0, 0.0);
    }

    #[test]
    fn after_a_timeout_the_curve_starts_flat() {
        let (mut c, mut window) = (cubic(&[]), WindowState::at(100, 40));
        c.on_loss(&mut window, Instant::ZERO, Loss::Timeout { again: false }, &path());
        assert_eq!((window.cwnd(), window.ssthresh()), (1, 70));
        c.on_ack(&mut window, &ack(69, 0), &path());
        c.on_ack(&mut window, &ack(1, 1), &path());
        let epoch = c.curve.epoch.expect("congestion avoidance began");
        assert_eq!((epoch.k, epoch.plateau), (0.0, 70.0));
    }

    #[test]
    fn every_timeout_ends_the_stage() {
        let (mut c, mut window) = (cubic(&[]), WindowState::at(4, 2));
        c.on_loss(&mut window, Instant::ZERO, Loss::Timeout { again: false }, &path());
        (0..4).for_each(|ms| c.on_ack(&mut window, &ack(1, ms), &path()));
        assert!(c.curve.epoch.is_some(), "congestion avoidance began");
        c.on_loss(&mut window, Instant::ZERO, Loss::Timeout { again: true }, &path());
        assert!(c.curve.epoch.is_none());
    }

    /// Time of the curve after acknowledgments at these milliseconds; the flag says whether the window was the limit.
    fn elapsed(acks: &[(u64, bool)]) -> Duration {
        let (mut c, mut window) = (cubic(&[]), WindowState::at(70, 70));
        for (now, limited) in acks {
            let mut ack = ack(2, *now);
            ack.cwnd_limited = *limited;
            c.on_ack(&mut window, &ack, &path());
        }
        c.curve.epoch.map_or(Duration::ZERO, |e| e.elapsed)
    }

    #[test]
    fn only_time_under_the_window_counts() {
        assert_eq!(elapsed(&[(0, true), (60, true), (120, true)]), Duration::from_millis(120));
        assert_eq!(elapsed(&[(0, true), (60, false), (120, false), (150, true)]), Duration::from_millis(30));
        // Idle for 5 s: one round trip of it was the flight of the packet that ended it.
        assert_eq!(elapsed(&[(0, true), (50, true), (5050, true), (5060, true)]), Duration::from_millis(160));
    }

    #[test]
    fn an_undo_restores_the_curve() {
        let (mut c, mut window) = (cubic(&[]), WindowState::at(70, 70));
        c.curve.w_max = 100.0;
        c.on_ack(&mut window, &ack(1, 0), &path());
        c.on_ack(&mut window, &ack(1, 50), &path());
        let (curve, cwnd) = (format!("{:?}", c.curve), window.cwnd());
        for loss in [Loss::Fast, Loss::Timeout { again: false }] {
            c.on_loss(&mut window, Instant::ZERO, loss, &path());
            assert_ne!(format!("{:?}", c.curve), curve);
            c.on_undo(&mut window, Instant::ZERO);
            assert_eq!((format!("{:?}", c.curve), window.cwnd()), (curve.clone(), cwnd));
        }
    }

    #[test]
    fn a_penalised_window_returns_without_a_burst() {
        // W_est stays at its value before the penalty.
        let (mut c, mut window) = (cubic(&[]), WindowState::at(70, 70));
        c.on_ack(&mut window, &ack(1, 0), &path());
        c.on_loss(&mut window, Instant::ZERO, Loss::Penalty, &path());
        assert_eq!((window.cwnd(), window.ssthresh()), (35, 35));
        for now in 1..=10 {
            let before = window.exact();
            c.on_ack(&mut window, &ack(2, now), &path());
            assert!(window.exact() > before && window.exact() <= before + 1.0);
        }
    }

    #[test]
    fn before_a_loss_the_window_grows_by_a_twentieth_per_round_trip() {
        // As in Linux: from 88 packets at 210 ms to 112 in 1.1 s.
        let (mut c, mut window) = (cubic(&[]), WindowState::at(88, 88));
        let mut grown = |w_max: f64, rounds: u64| {
            let start = window.exact();
            c.curve.w_max = w_max;
            for round in 0..rounds {
                let all = ack(window.cwnd(), round * 100);
                c.on_ack(&mut window, &all, &path());
            }
            window.exact() / start
        };
        close(grown(0.0, 5), 1.276, 0.02);
        assert!(grown(200.0, 1) < 1.04, "the curve alone");
        close(grown(0.0, 1), 1.05, 0.01);
    }

    #[test]
    fn hystart_sets_the_threshold_unless_switched_off() {
        let run = |mut c: Cubic| {
            let mut window = WindowState::at(64, u32::MAX);
            for now in 0..60 {
                c.on_ack(&mut window, &ack(1, now), &path());
            }
            window.ssthresh()
        };
        assert_eq!(run(cubic(&[])), 64 + 51);
        assert_eq!(run(cubic(&[("hystart".to_owned(), 0.0)])), u32::MAX);
    }
}
