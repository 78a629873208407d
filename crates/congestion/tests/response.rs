//! The response to loss, in a closed loop without an engine: rounds of one window each.

#![allow(clippy::disallowed_methods, reason = "the tolerance of a closed form forgives a last bit")]

use anabranch_congestion::{all, build, single_path_form};
use anabranch_plugin::congestion::{Acked, Loss};
use anabranch_plugin::schedule::PathView;
use anabranch_units::{Duration, Instant, PathId, Rng};

const PATH: PathId = PathId(0);
const RTT: Duration = Duration::from_millis(100);

/// Mean packets per round over `rounds`, after a warm-up of a tenth. `lost` decides per packet.
fn mean_window(name: &str, rounds: u64, mut lost: impl FnMut() -> bool) -> f64 {
    let mut control = build(name, &[]).expect("registered");
    let views = [PathView { srtt: Some(RTT), ..PathView::new(PATH, 1400) }];
    control.on_join(PATH, 10);
    let (mut now, mut sent, mut recovering) = (Instant::ZERO, 0, false);
    for round in 0..rounds + rounds / 10 {
        let window = control.window(PATH).cwnd;
        sent += if round >= rounds / 10 { u64::from(window) } else { 0 };
        let mut clean = true;
        for packet in 0..window {
            if lost() {
                clean = false;
                continue;
            }
            let mut ack = Acked::default();
            (ack.packets, ack.counted, ack.bytes, ack.rtt) = (1, 1, 1400, Some(RTT));
            ack.now = now + RTT * u64::from(packet) / u64::from(window);
            (ack.cwnd_limited, ack.may_grow, ack.round_ended) = (true, clean && !recovering, packet == 0);
            control.on_ack(PATH, &ack, &views);
        }
        now += RTT;
        // Recovery lasts for the round after the detection of a loss.
        recovering = !clean;
        if !clean {
            control.on_loss(PATH, now, Loss::Fast, &views);
        }
    }
    sent as f64 / rounds as f64
}

fn within(found: f64, expected: f64, share: f64, what: &str) {
    println!("{what}: {found:.1} packets, expected {expected:.1}");
    assert!((found / expected - 1.0).abs() <= share, "{what}: {found} packets, expected {expected}");
}

#[test]
fn reno_follows_the_square_root_of_random_loss() {
    for (p, rounds) in [(0.01, 100_000), (0.001, 100_000)] {
        let mut rng = Rng::stream(1, "loss");
        let found = mean_window("reno", rounds, || rng.chance(p));
        within(found, (1.5 / p).sqrt(), 0.15, &format!("reno at {p}"));
    }
}

#[test]
fn coupled_controls_alone_respond_as_reno() {
    for name in all().iter().map(|e| e.name).filter(|name| *name != "reno" && single_path_form(name) == "reno") {
        let mut rng = Rng::stream(1, "loss");
        let mut again = Rng::stream(1, "loss");
        let coupled = mean_window(name, 20_000, || rng.chance(0.005));
        let reno = mean_window("reno", 20_000, || again.chance(0.005));
        assert_eq!(coupled, reno, "{name}");
    }
}

#[test]
fn cubic_follows_its_response_function_at_periodic_loss() {
    // RFC 9438 §5.1 eq 5, deterministic loss model, in the cubic region: at 100 ms and low loss rates.
    for period in [30_000, 100_000] {
        let mut packet = 0_u64;
        let found = mean_window("cubic", 30_000, || {
            packet += 1;
            packet.is_multiple_of(period)
        });
        let expected = (0.4 * 3.7 / (4.0 * 0.3_f64)).powf(0.25) * (0.1 * period as f64).powf(0.75);
        within(found, expected, 0.15, &format!("cubic, one loss in {period}"));
    }
}
