//! Video in segments: start-up, stalls, rates and quality of experience over networks.

mod common;

use anabranch_run::RunOutcome;
use anabranch_units::Rng;
use common::{multipath, run};

fn over(text: &str, scheduler: &str) -> RunOutcome {
    run(text, multipath(scheduler))
}

fn one_path(rate: &str, traffic: &str) -> RunOutcome {
    let path = format!("[[path]]\nname = 'a'\nrate = '{rate}'\ndelay = '20ms'\n");
    over(&format!("duration = '60s'\n{path}[[traffic]]\nkind = 'video'\n{traffic}\n"), "minrtt")
}

/// Over 20 Mbit/s the highest rate of 4.3 Mbit/s plays without a stall; what comes is what is played and what the buffer holds.
#[test]
fn a_fast_path_plays_the_highest_rate_without_a_stall() {
    let run = one_path("20mbit", "abr = 'fixed(rung=6)'\nlength = '40s'");
    let value = |name: &str| run.metrics[name];
    assert_eq!(
        (value("stall_s"), value("stall_ratio"), value("freeze_max_s"), value("switches")),
        (0.0, 0.0, 0.0, 0.0)
    );
    assert_eq!((value("bitrate_mean_bps"), value("played_s")), (4.3e6, 40.0));
    // 2.15 MB at 20 Mbit/s take 0.86 s; slow start and handshake add less than a second.
    assert!((0.86..1.6).contains(&value("startup_s")), "{:?}", run.metrics);
    assert!((value("qoe") - (4.3 - 3.0 * value("startup_s") / 10.0)).abs() < 1e-9, "{:?}", run.metrics);
    // Ten segments of 2.15 MB in a minute.
    assert!((value("goodput_bps") / (10.0 * 2_150_000.0 * 8.0 / 60.0) - 1.0).abs() < 1e-6, "{:?}", run.metrics);
    assert!(!run.metrics.contains_key("live_latency_s") && !run.metrics.contains_key("late_ratio"));
    assert!(!run.metrics.contains_key("oracle_ratio"), "a video has no bound");
}

/// A rate above what the path carries stalls; the rules that adapt do not, and give less.
#[test]
fn a_rate_above_the_path_stalls_and_the_rules_do_not() {
    let fixed = one_path("2mbit", "abr = 'fixed(rung=5)'");
    // 2.85 over 2 Mbit/s with headers: play is possible for less than 70 % of the time.
    assert!((0.25..0.45).contains(&fixed.metrics["stall_ratio"]), "{:?}", fixed.metrics);
    for rule in ["bola", "bba", "throughput"] {
        let run = one_path("2mbit", &format!("abr = '{rule}'"));
        assert!(
            run.metrics["stall_s"] == 0.0 && run.metrics["qoe"] > fixed.metrics["qoe"],
            "{rule}: {:?}",
            run.metrics
        );
        assert!((300e3..2e6).contains(&run.metrics["bitrate_mean_bps"]), "{rule}: {:?}", run.metrics);
        assert!(run.metrics["startup_s"] < fixed.metrics["startup_s"], "{rule}: {:?}", run.metrics);
    }
}

/// A path that falls silent at 20 s for 20 s: the request of 20.2 s is lost, with 8 s in the buffer, so play stalls at 28.2 s. Retransmissions
/// come after 0.244 s and twice that each time (RFC 6298 §5.5), the first behind the silence at 20.2 + 127 · 0.244 = 51.2 s.
#[test]
fn an_outage_longer_than_the_buffer_is_a_stall() {
    let path = "[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '20ms'\noutage = [['20s', '40s']]\n";
    let traffic = "[[traffic]]\nkind = 'video'\nabr = 'fixed'\nbuffer = '12s'\n";
    let run = over(&format!("duration = '60s'\n{path}{traffic}"), "minrtt");
    assert!((22.0..24.0).contains(&run.metrics["stall_s"]), "{:?}", run.metrics);
    assert_eq!(run.metrics["stall_s"], run.metrics["freeze_max_s"]);
    let time = run.metrics["startup_s"] + run.metrics["stall_s"] + run.metrics["played_s"];
    assert!((time - 60.0).abs() < 1e-6, "{time}");
}

/// Live, 8 s behind: one segment per 4 s, so the buffer never holds more, and latency is what was requested and the waits.
#[test]
fn a_live_video_is_as_late_as_asked_for_and_its_waits() {
    let run = one_path("20mbit", "live = '8s'\nabr = 'throughput'");
    let value = |name: &str| run.metrics[name];
    assert_eq!(value("stall_s"), 0.0);
    // Startup counts from the first SYN, latency from the connection's establishment, a round trip later.
    assert!((value("live_latency_s") - 8.0 - value("startup_s") + 0.04).abs() < 0.01, "{:?}", run.metrics);
    // Two segments at first, one each 4 s until the end.
    let lowest = one_path("20mbit", "live = '8s'\nabr = 'fixed'");
    let segments = lowest.metrics["goodput_bps"] * 60.0 / 8.0 / 150_000.0;
    assert!((15.5..17.5).contains(&segments), "{segments}");
}

#[test]
fn flows_play_side_by_side() {
    let run = one_path("6mbit", "flows = 3\nabr = 'bola'");
    assert!(run.metrics["stall_ratio"] < 0.2 && run.metrics["played_s"] > 40.0, "{:?}", run.metrics);
}

/// The same seed and rule give the same bytes; another rule, others.
#[test]
fn a_video_is_deterministic() {
    let digest = |rule: &str| one_path("3mbit", &format!("abr = '{rule}'")).digest;
    assert_eq!(digest("bola"), digest("bola"));
    assert_ne!(digest("bola"), digest("bba"));
    assert_ne!(digest("bola"), digest("bola(gp=1)"));
}

/// Every scheduler with every rule over random networks: start-up, stalls and play are all the time there is, and ratios are ratios.
#[test]
fn every_scheduler_plays_by_every_rule_over_random_networks() {
    let mut rng = Rng::stream(1, "videos");
    for entry in anabranch_schedulers::all() {
        for abr in anabranch_workload::abr::registry::all() {
            let mut text = String::from("duration = '12s'\n");
            for n in 0..1 + rng.below(3) {
                let (kbit, ms, loss) = (200 + rng.below(6000), 2 + rng.below(120), rng.below(4));
                text += &format!(
                    "[[path]]\nname = 'p{n}'\nrate = '{kbit}kbit'\ndelay = '{ms}ms'\nloss = {{ down = '{loss}%', up = '{loss}%' }}\n"
                );
            }
            let live = if rng.chance(0.3) { "live = '3s'\n" } else { "" };
            let (start, ladder) = (1 + rng.below(3), if rng.chance(0.5) { "pensieve" } else { "apple" });
            text += &format!("[[traffic]]\nkind = 'video'\nsegment = '1s'\nbuffer = '5s'\nstart_at = '{start}s'\n");
            text += &format!("ladder = '{ladder}'\n{live}abr = '{}'\n", abr.name);
            let run = over(&text, entry.name);
            let what = format!("{}\n{text}{:?}", entry.name, run.metrics);
            let value = |name: &str| run.metrics.get(name).copied();
            let (startup, played) = (value("startup_s").unwrap(), value("played_s").unwrap());
            let time = startup + played + value("stall_s").unwrap_or(0.0);
            assert!((time - 12.0).abs() < 1e-6, "{time}: {what}");
            assert!(value("stall_ratio").is_none_or(|ratio| (0.0..=1.0).contains(&ratio)), "{what}");
            assert!(value("stall_s").is_some() == (played > 0.0), "{what}");
            assert!(value("freeze_max_s") <= value("stall_s"), "{what}");
            assert!(value("qoe").is_none_or(|qoe| qoe <= 7.8), "{what}");
            assert!(value("bitrate_mean_bps").is_none_or(|rate| (145e3..=7.8e6).contains(&rate)), "{what}");
        }
    }
}
