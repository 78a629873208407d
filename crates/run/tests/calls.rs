//! Calls: frames both ways with a deadline, what comes too late, and how long that lasts.

mod common;

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_units::Rng;
use common::{multipath, run, scenario};

fn over(text: &str, scheduler: &str) -> RunOutcome {
    run(text, multipath(scheduler))
}

fn one_path(path: &str, traffic: &str) -> RunOutcome {
    over(
        &format!("duration = '10s'\n[[path]]\nname = 'a'\nrate = '20mbit'\n{path}\n[[traffic]]\n{traffic}\n"),
        "minrtt",
    )
}

const VIDEO: &str = "kind = 'call'\nvideo = '1mbit'";

#[test]
fn a_call_sends_its_rates_both_ways_and_is_in_time() {
    let run = one_path("delay = '20ms'", VIDEO);
    for way in ["goodput_down_bps", "goodput_up_bps"] {
        // 1 Mbit/s of pictures within their draws, and 32 kbit/s of speech.
        assert!((run.metrics[way] / 1.032e6 - 1.0).abs() < 0.06, "{way}: {:?}", run.metrics);
    }
    for metric in
        ["late_ratio", "late_down_ratio", "late_up_ratio", "late_per_minute", "stall_s", "stall_ratio", "freeze_max_s"]
    {
        assert_eq!(run.metrics[metric], 0.0, "{metric}");
    }
    let delay = run.metrics["app_delay_mean_s"];
    assert!((0.020..0.040).contains(&delay) && run.metrics["oracle_ratio"] > 0.5, "{:?}", run.metrics);
}

#[test]
fn every_frame_over_a_path_longer_than_its_deadline_is_late() {
    let run = one_path("delay = '151ms'", "kind = 'call'");
    assert_eq!((run.metrics["late_ratio"], run.metrics["stall_ratio"]), (1.0, 1.0));
    // Fifty frames per second each way.
    assert!((run.metrics["late_per_minute"] / 3000.0 - 1.0).abs() < 0.01, "{:?}", run.metrics);
    let patient = one_path("delay = '151ms'", "kind = 'call'\ndeadline = '400ms'");
    assert_eq!(patient.metrics["late_ratio"], 0.0);
}

/// The way up is silent for a second: the frames of this direction freeze for that time, those of the other do not.
#[test]
fn a_silent_way_freezes_its_own_direction() {
    let run = one_path("delay = '10ms'\noutage = { up = [['4s', '5s']] }", "kind = 'call'");
    let value = |name: &str| run.metrics[name];
    // Frames captured from 150 ms before its end on are in time if retransmissions are; a timeout may double the freeze.
    assert!((0.85..2.0).contains(&value("freeze_max_up_s")), "{:?}", run.metrics);
    assert_eq!(value("freeze_max_s"), value("freeze_max_up_s").max(value("freeze_max_down_s")));
    assert!((value("stall_s") - value("stall_up_s") - value("stall_down_s")).abs() < 1e-9);
    assert!(value("late_up_ratio") > 0.08 && value("late_down_ratio") < value("late_up_ratio"), "{:?}", run.metrics);
}

#[test]
fn frames_have_the_metrics_of_deadlines_only_with_a_deadline() {
    let frames = "kind = 'frames'\nsize = '1KB'\ninterval = '20ms'";
    let without = one_path("delay = '20ms'", frames);
    assert!(!without.metrics.keys().any(|name| name.starts_with("late") || name.starts_with("stall")));
    let with = one_path("delay = '20ms'", &format!("{frames}\ndeadline = '10ms'"));
    assert_eq!(with.metrics["late_ratio"], 1.0);
    assert!(!with.metrics.contains_key("late_down_ratio"), "one direction");
    // A deadline changes what is measured, and nothing of what happens.
    assert_eq!(with.digest, without.digest);
}

/// A seed draws sizes, and every other the same number of frames.
#[test]
fn sizes_are_drawn_by_the_seed() {
    let text =
        format!("duration = '3s'\n[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '20ms'\n[[traffic]]\n{VIDEO}\n");
    let scenario = scenario(&text);
    let digest = |seed| {
        let job = Job::of(scenario.clone(), Choice::Single(0), seed);
        VirtualTime::default().run(&job, &mut ()).unwrap().digest
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

/// Every scheduler over random networks, each way and both: frames arrive, and ratios are ratios.
#[test]
fn every_scheduler_carries_a_call_over_random_networks() {
    let mut rng = Rng::stream(1, "calls");
    for entry in anabranch_schedulers::all() {
        for direction in ["down", "up", "both"] {
            let mut text = String::from("duration = '4s'\n");
            for n in 0..1 + rng.below(3) {
                let (mbit, ms, loss) = (1 + rng.below(20), 2 + rng.below(120), rng.below(4));
                text += &format!(
                    "[[path]]\nname = 'p{n}'\nrate = '{mbit}mbit'\ndelay = '{ms}ms'\nloss = {{ down = '{loss}%', up = '{loss}%' }}\n"
                );
            }
            let video = if rng.chance(0.5) { "video = '500kbit'\n" } else { "" };
            text += &format!("[[traffic]]\nkind = 'call'\n{video}direction = '{direction}'\n");
            let run = over(&text, entry.name);
            let what = format!("{}, {direction}\n{text}{:?}", entry.name, run.metrics);
            assert!(run.metrics["goodput_bps"] > 0.0, "{what}");
            for ratio in ["late_ratio", "stall_ratio"] {
                assert!((0.0..=1.0).contains(&run.metrics[ratio]), "{ratio}: {what}");
            }
            assert!(run.metrics["freeze_max_s"] <= run.metrics["stall_s"] + 1e-9, "{what}");
            assert_eq!(run.metrics.contains_key("late_up_ratio"), direction == "both", "{what}");
        }
    }
}

/// The scheduler `cost` learns from the application how long its frames may wait for the cheap path: a frame that more than fills its window
/// and its queue overflows into the dear one only if it would be late.
#[test]
fn an_application_tells_schedulers_its_deadline() {
    let share = |deadline: &str| {
        let text = format!(
            "duration = '20s'\n[[path]]\nname = 'cheap'\nrate = '1mbit'\ndelay = '20ms'\nqueue = '10p'\nprice = '1/GB'\n[[path]]\n\
             name = 'dear'\nrate = '20mbit'\ndelay = '10ms'\nprice = '5/GB'\n[[traffic]]\nkind = 'frames'\nsize = '30KB'\n\
             interval = '500ms'\n{deadline}\n"
        );
        over(&text, "cost").paths["dear"]["share"]
    };
    let (unknown, hasty, patient) = (share(""), share("deadline = '50ms'"), share("deadline = '450ms'"));
    assert!(hasty > 0.2 && unknown > 0.2 && patient < 0.05, "{unknown} {hasty} {patient}");
}
