//! Which end sends: `traffic.direction`. Uploads take the rates of the way up, have their sender at the client, and are else as downloads;
//! both directions at once are two flows of data on each connection.

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::{Document, PlugIn, Scenario};
use anabranch_trace::{DecisionLog, Event, Origin, Recorder};
use anabranch_units::{Instant, Rng, Side};
use std::sync::Arc;

fn scenario(text: &str) -> Scenario {
    Document::parse("direction", text).unwrap_or_else(|error| panic!("{error:?}")).cells.remove(0).1
}

fn plug_in(name: &str) -> PlugIn {
    PlugIn { name: name.into(), parameters: Vec::new() }
}

fn run(scenario: &Arc<Scenario>, choice: Choice) -> RunOutcome {
    VirtualTime::default().run(&Job::of(scenario.clone(), choice, 1), &mut ()).unwrap()
}

fn over_all(text: &str) -> RunOutcome {
    let scenario = Arc::new(scenario(text));
    let scheduler = scenario.scheduler.clone();
    run(&scenario, Choice::Multipath(scheduler))
}

/// One path, 8 Mbit/s up and 80 Mbit/s down, 10 ms each way, and a queue that never overflows.
fn asymmetric(direction: &str) -> String {
    format!(
        "[[path]]\nname = 'a'\nrate = {{ up = '8mbit', down = '80mbit' }}\ndelay = '10ms'\nqueue = '20000p'\n\
         [[traffic]]\nkind = 'bulk'\nsize = '7MB'\ndirection = '{direction}'\n"
    )
}

#[test]
fn a_transfer_takes_the_rate_of_its_own_way() {
    // 5,000 packets of 1,400 bytes and 52 of IP, TCP and timestamps: 58.08 Mbit.
    let bits = 5_000.0 * 1_452.0 * 8.0;
    // An upload begins with the third segment, 20 ms after the SYN, and its last bit travels 10 ms; a download begins 10 ms later.
    // 10 packets fill the way up for 14.5 ms of each of the first round trips: slow start costs less than one. The way down of
    // 80 Mbit/s holds 138 packets: rounds of 10, 20, 40 and 80 packets leave four round trips partly idle.
    for (direction, rate, begins, slow_start) in [("up", 8e6, 0.02, 0.02), ("down", 80e6, 0.03, 0.08)] {
        let alone = run(&Arc::new(scenario(&asymmetric(direction))), Choice::Single(0));
        let time = alone.metrics["completion_s"];
        let least = bits / rate + begins + 0.01;
        assert!(time >= least - 1e-9 && time <= least + slow_start, "{direction}: {time} s, at least {least} s");
        let ratio = alone.metrics["oracle_ratio"];
        assert!((least / time - ratio).abs() < 1e-3 && ratio <= 1.0, "{direction}: {ratio}");
        let goodput = alone.metrics["goodput_bps"];
        assert!((goodput - 56e6 / time).abs() < 1.0, "{direction}: {goodput}");
        assert!(alone.paths["a"]["utilisation"] > 0.9 * least / time, "{direction}: {:?}", alone.paths);
    }
}

/// The hosts with events of data.
#[derive(Default)]
struct Ends {
    sent: Vec<Side>,
    delivered: Vec<Side>,
    log: Option<DecisionLog>,
}

impl Recorder for Ends {
    fn record(&mut self, _now: Instant, origin: Origin, event: &Event) {
        let list = match event {
            Event::DataSent { data, .. } if !data.is_empty() => &mut self.sent,
            Event::Delivered(_) => &mut self.delivered,
            _ => return,
        };
        list.extend(origin.host.filter(|host| !list.contains(host)));
    }

    fn decisions(&self) -> Option<DecisionLog> {
        self.log.clone()
    }
}

const TWO: &str = "[[path]]\nname = 'a'\nrate = '10mbit'\ndelay = '10ms'\n\
                   [[path]]\nname = 'b'\nrate = '10mbit'\ndelay = '30ms'\n";

#[test]
fn scheduler_and_decisions_are_at_the_end_that_sends() {
    let both = vec![Side::Client, Side::Server];
    let cases = [("up", vec![Side::Client]), ("down", vec![Side::Server]), ("both", both)];
    for (direction, senders) in cases {
        let text = format!("{TWO}[[traffic]]\nkind = 'bulk'\nsize = '500KB'\ndirection = '{direction}'\n");
        let scenario = Arc::new(scenario(&text));
        let sender = scenario.direction().first().sender();
        let log = DecisionLog::new(anabranch_run::CONNECTION, Instant::ZERO, 1000).of(sender);
        let mut ends = Ends { log: Some(log.clone()), ..Ends::default() };
        let job = Job::of(scenario.clone(), Choice::Multipath(plug_in("minrtt")), 1);
        VirtualTime::default().run(&job, &mut ends).unwrap();
        ends.sent.sort_unstable();
        ends.delivered.sort_unstable();
        let receivers: Vec<Side> =
            if senders.len() == 2 { senders.clone() } else { vec![senders[0].sends().receiver()] };
        assert_eq!((&ends.sent, &ends.delivered), (&senders, &receivers), "{direction}");
        assert!(log.take().rows.len() > 100, "{direction}: the sender's decisions");
    }
    // The client's scheduler decides over which path an upload goes.
    let share = |scheduler: &str| {
        let text = format!("duration = '3s'\n{TWO}[[traffic]]\nkind = 'bulk'\ndirection = 'up'\n");
        let scenario = Arc::new(scenario(&text));
        run(&scenario, Choice::Multipath(plug_in(scheduler))).paths["b"]["sent_ratio"]
    };
    assert!(share("redundant") > 0.6 && share("minrtt") < 0.52);
}

#[test]
fn both_directions_at_once_have_metrics_each_and_together() {
    let text = "[[path]]\nname = 'a'\nrate = { down = '20mbit', up = '5mbit' }\ndelay = '10ms'\n\
                [[path]]\nname = 'b'\nrate = { down = '10mbit', up = '5mbit' }\ndelay = '20ms'\n\
                [[traffic]]\nkind = 'bulk'\nsize = '3MB'\ndirection = 'both'\n";
    let of = over_all(text);
    let value = |name: &str| of.metrics[name];
    assert!(of.finished);
    assert_eq!(value("delivered_bytes"), 6e6);
    let (down, up) = (value("completion_down_s"), value("completion_up_s"));
    assert!(down < up && (up - value("completion_s")).abs() < 1e-12, "{down} s down, {up} s up");
    // 3 MB over 10 Mbit/s up and 30 Mbit/s down, and acknowledgments.
    assert!((2.4..3.2).contains(&up) && (0.8..1.6).contains(&down), "{down} s down, {up} s up");
    let sum = value("goodput_down_bps") + value("goodput_up_bps");
    assert!((sum - value("goodput_bps")).abs() < 1e-3 * sum && (value("goodput_bps") - 48e6 / up).abs() < 1.0);
    assert!((0.7..=1.0).contains(&value("oracle_ratio")), "{}", value("oracle_ratio"));
    // Without end.
    let endless = over_all(&text.replace("size = '3MB'", "").replacen("[[path]]", "duration = '5s'\n[[path]]", 1));
    let (down, up) = (endless.metrics["goodput_down_bps"], endless.metrics["goodput_up_bps"]);
    // Acknowledgments of the download wait behind the data of the upload: it does not fill its 30 Mbit/s.
    assert!((10e6..30e6).contains(&down) && (7e6..10e6).contains(&up), "{down} bit/s down, {up} bit/s up");
    assert!((0.5..=1.0).contains(&endless.metrics["oracle_ratio"]), "{:?}", endless.metrics);
    assert!(!endless.metrics.contains_key("completion_down_s") && !endless.metrics.contains_key("completion_s"));
    // One direction alone has no metric for each.
    let alone = over_all(&text.replace("both", "up"));
    assert!(!alone.metrics.contains_key("goodput_up_bps") && !alone.metrics.contains_key("goodput_down_bps"));
}

#[test]
fn frames_flow_either_way_and_both_ways() {
    let of = |direction: &str| {
        let text = format!(
            "{TWO}[[traffic]]\nkind = 'frames'\nsize = '5KB'\ninterval = '20ms'\ncount = 50\ndirection = '{direction}'\n"
        );
        over_all(&text)
    };
    for direction in ["down", "up", "both"] {
        let run = of(direction);
        let delay = run.metrics["app_delay_mean_s"];
        assert!(run.finished && (0.010..0.050).contains(&delay), "{direction}: {delay} s");
        assert!((0.3..=1.0).contains(&run.metrics["oracle_ratio"]), "{direction}: {:?}", run.metrics);
        assert_eq!(run.metrics["delivered_bytes"], if direction == "both" { 500e3 } else { 250e3 });
    }
}

#[test]
fn losses_count_on_the_way_of_the_data() {
    let lossy = |way: &str, direction: &str| {
        let text = format!(
            "duration = '10s'\n[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '20ms'\nloss = {{ {way} = '3%' }}\n\
             [[traffic]]\nkind = 'bulk'\ndirection = '{direction}'\n"
        );
        over_all(&text).metrics["goodput_bps"]
    };
    for (way, other) in [("up", "down"), ("down", "up")] {
        assert!(lossy(way, way) < 0.5 * lossy(way, other), "lossy {way}");
    }
}

/// A network whose paths are the same both ways, without losses: what a download meets an upload meets, too.
fn symmetric(rng: &mut Rng) -> (String, f64) {
    let (mut text, mut longest) = (String::new(), 0.0_f64);
    for n in 0..1 + rng.below(3) {
        let (mbit, ms) = (1 + rng.below(40), 2 + rng.below(80));
        longest = longest.max(2e-3 * ms as f64);
        let queue = 20 + rng.below(300);
        text += &format!("[[path]]\nname = 'p{n}'\nrate = '{mbit}mbit'\ndelay = '{ms}ms'\nqueue = '{queue}p'\n");
    }
    (text, longest)
}

/// Every scheduler with every congestion control, each over random networks: an upload completes as a download does, up to what the
/// handshake makes of it. The band is of the whole: transfers are chaotic (a round trip decides whether a queue overflows), so each pair
/// may differ, and all together may not.
#[test]
fn an_upload_over_symmetric_paths_takes_as_long_as_a_download() {
    let mut rng = Rng::stream(1, "direction");
    let (mut differences, mut far) = (Vec::new(), Vec::new());
    let schedulers: Vec<&str> = anabranch_schedulers::all().iter().map(|entry| entry.name).collect();
    for congestion in anabranch_congestion::all() {
        for scheduler in &schedulers {
            let (paths, longest) = symmetric(&mut rng);
            let size = 200_000 + rng.below(800_000);
            let time = |direction: &str| {
                let text = format!("{paths}[[traffic]]\nkind = 'bulk'\nsize = {size}\ndirection = '{direction}'\n");
                let scenario = Arc::new(scenario(&text));
                let mut job = Job::of(scenario, Choice::Multipath(plug_in(scheduler)), 1);
                job.congestion = plug_in(congestion.name);
                let outcome = VirtualTime::default().run(&job, &mut ()).unwrap();
                let what = format!("{scheduler}, {}, {direction}", congestion.name);
                assert!(outcome.finished, "{what}");
                let ratio = outcome.metrics["oracle_ratio"];
                assert!(ratio > 0.0 && ratio <= 1.0, "{what}: {ratio} of the oracle");
                outcome.metrics["completion_s"]
            };
            let (down, up) = (time("down"), time("up"));
            let difference = (up - down) / down;
            differences.push(difference);
            if (up - down).abs() > 2.0 * longest + 0.1 * down {
                far.push(format!("{scheduler}, {}: {up:.3} s up, {down:.3} s down", congestion.name));
            }
        }
    }
    differences.sort_by(f64::total_cmp);
    let median = differences[differences.len() / 2];
    println!("{} pairs, median {median:+.4}, far: {far:#?}", differences.len());
    assert!(median.abs() < 0.05, "median {median}");
    assert!(far.len() * 20 <= differences.len(), "{} of {}: {far:#?}", far.len(), differences.len());
}
