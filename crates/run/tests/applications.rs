//! Several applications at once, between one pair of hosts.

mod common;

use anabranch_run::{Choice, Driver, Job, VirtualTime};
use anabranch_units::{Duration, Instant, Rng};
use common::{multipath, run, scenario};

const PATHS: &str = r#"
[[path]]
name = "near"
rate = { down = "8mbit", up = "3mbit" }
delay = "10ms"
[[path]]
name = "far"
rate = { down = "4mbit", up = "2mbit" }
delay = "40ms"
"#;

const CALL: &str = "[[traffic]]\nname = 'call'\nkind = 'call'\nvideo = '500kbit'\n";

fn call_beside(other: &str) -> String {
    format!("duration = '20s'\n{PATHS}{CALL}{other}")
}

/// A name, and a start that is the scenario's, change nothing.
#[test]
fn one_application_runs_as_before_whatever_its_name() {
    for traffic in ["kind = 'bulk'", "kind = 'call'", "kind = 'web'\nsize = '100KB'\nobjects = 5"] {
        let of = |top: &str, own: &str| {
            run(
                &format!("duration = '3s'\nstart_jitter = '5ms'\n{top}{PATHS}[[traffic]]\n{traffic}\n{own}"),
                multipath("blest"),
            )
        };
        let plain = of("start = '1s'", "");
        assert_eq!(of("start = '1s'", "name = 'only'"), plain, "{traffic}");
        assert_eq!(of("", "start = '1s'").digest, plain.digest, "{traffic}");
        assert!(plain.metrics.keys().all(|name| !name.starts_with("traffic.")));
    }
}

#[test]
fn each_application_has_the_metrics_of_its_kind_and_the_connection_their_sums() {
    let backup = "[[traffic]]\nname = 'backup'\nkind = 'bulk'\ndirection = 'up'\nstart = '5s'\nstop = '15s'\n";
    let page = "[[traffic]]\nname = 'page'\nkind = 'web'\nsize = '300KB'\nobjects = 10\nstart = '2s'\n";
    let run = run(&call_beside(&format!("{backup}{page}")), multipath("minrtt"));
    let value = |name: &str| run.metrics[name];
    assert!(value("traffic.call.late_per_minute") >= 0.0 && value("traffic.call.app_delay_mean_s") > 0.0);
    assert!(value("traffic.page.completion_s") > 0.0 && value("traffic.page.completion_s") < 5.0);
    assert!(value("traffic.backup.goodput_bps") > 2e6, "{:?}", run.metrics);
    for absent in
        ["app_delay_mean_s", "late_ratio", "completion_s", "traffic.backup.late_ratio", "traffic.call.completion_s"]
    {
        assert!(!run.metrics.contains_key(absent), "{absent}");
    }
    // Bytes: the call's in 20 s, the backup's in its 10 s, the page's once. Requests are no data.
    let bytes = |bps: f64, seconds: f64| bps * seconds / 8.0;
    let call = ["down", "up"].map(|way| bytes(value(&format!("traffic.call.goodput_{way}_bps")), 20.0));
    let backup = bytes(value("traffic.backup.goodput_bps"), 10.0);
    let all = ["goodput_down_bps", "goodput_up_bps", "goodput_bps"].map(|name| bytes(value(name), 20.0));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 2.0, "{a} {b}: {:?}", run.metrics);
    near(all[0], call[0] + 300_000.0);
    near(all[1], call[1] + backup);
    near(all[2], all[0] + all[1]);
    for counter in ["retransmitted_packets", "syns_sent", "timeouts"] {
        let own = ["call", "backup", "page"].map(|name| value(&format!("traffic.{name}.{counter}")));
        near(value(counter), own.iter().sum());
    }
    // The bound is that of the way which the backup fills; what else flows there counts, too.
    let ratio = value("oracle_ratio");
    assert!(ratio > 0.3 && ratio < 1.0, "{ratio}");
}

/// The paths are shared: beside a backup without end a call's frames queue behind the backup's packets.
#[test]
fn applications_share_the_queues_of_their_paths() {
    let alone = run(&format!("duration = '20s'\n{PATHS}{CALL}"), multipath("minrtt"));
    let beside =
        run(&call_beside("[[traffic]]\nname = 'backup'\nkind = 'bulk'\ndirection = 'up'\n"), multipath("minrtt"));
    assert_eq!(alone.metrics["late_up_ratio"], 0.0);
    assert!(beside.metrics["traffic.call.app_delay_p99_s"] > 2.0 * alone.metrics["app_delay_p99_s"]);
    // Down there is nothing but the call and acknowledgments.
    assert!(beside.metrics["traffic.call.goodput_down_bps"] > 0.99 * alone.metrics["goodput_down_bps"]);
}

#[test]
fn a_path_alone_carries_all_applications() {
    let text = call_beside("[[traffic]]\nname = 'download'\nkind = 'bulk'\n");
    for path in 0..2 {
        let run = run(&text, Choice::Single(path));
        assert!(run.metrics["traffic.call.goodput_up_bps"] > 4e5, "{:?}", run.metrics);
        assert!(run.metrics["traffic.download.goodput_bps"] > 1e6 && run.metrics["oracle_ratio"] <= 1.0);
        assert_eq!(run.paths.len(), 1);
    }
}

/// Sized applications end the run together; one that starts later delays the bound by as much.
#[test]
fn sized_applications_end_the_run_when_all_are_complete() {
    let text = format!(
        "{PATHS}[[traffic]]\nname = 'first'\nkind = 'bulk'\nsize = '2MB'\n[[traffic]]\nname = 'second'\nkind = 'bulk'\n\
         size = '500KB'\ndirection = 'up'\nstart = '6s'\n"
    );
    let run = run(&text, multipath("minrtt"));
    let value = |name: &str| run.metrics[name];
    assert!(run.finished);
    let last = (6.0 + value("traffic.second.completion_s")).max(value("traffic.first.completion_s"));
    // Times count from the first SYN of each, which leaves when it starts.
    assert!((value("completion_s") - last).abs() < 1e-6, "{:?}", run.metrics);
    assert!(value("oracle_ratio") > 0.9 && value("oracle_ratio") <= 1.0);
}

/// Without a duration the run ends when the last application does, be it complete or stopped; nothing opens after the stop.
#[test]
fn an_application_stops_with_all_its_connections() {
    let text = format!(
        "{PATHS}[[traffic]]\nname = 'a'\nkind = 'bulk'\nstop = '3s'\n[[traffic]]\nname = 'many'\nkind = 'bulk'\nsize = '10KB'\n\
         flows = 50\narrivals = {{ kind = 'poisson', rate = 10.0 }}\nstop = '2s'\n"
    );
    let run = run(&text, multipath("minrtt"));
    assert!(!run.finished, "fifty flows do not begin in two seconds");
    let opened = run.metrics["traffic.many.syns_sent"];
    assert!((5.0..40.0).contains(&opened), "{opened}");
    assert!(run.metrics["traffic.a.goodput_bps"] > 8e6, "{:?}", run.metrics);
}

/// A shorter run leaves out an application that begins later.
#[test]
fn an_application_that_starts_after_the_end_has_no_metrics() {
    let run = run(&call_beside("[[traffic]]\nname = 'late'\nkind = 'bulk'\nstart = '20s'\n"), multipath("minrtt"));
    assert!(run.metrics.keys().all(|name| !name.starts_with("traffic.late.")));
    assert!(run.metrics["traffic.call.late_ratio"] == 0.0 && run.finished);
}

/// The random draws of one application do not depend on those of another, and each has its own.
#[test]
fn a_second_application_draws_for_itself() {
    let text = format!("duration = '10s'\n{PATHS}{CALL}{}", CALL.replace("'call'\nkind", "'other'\nkind"));
    let run = run(&text, multipath("minrtt"));
    let [call, other] = ["call", "other"].map(|name| run.metrics[&*format!("traffic.{name}.goodput_down_bps")]);
    assert!(call != other && (call / other - 1.0).abs() < 0.1, "{call} {other}");
}

/// Changes during the run reach the connections of each application.
#[test]
fn changes_of_hosts_reach_every_application() {
    let switch = "[[timeline]]\nat = '3s'\nset = 'connection.scheduler'\nvalue = 'redundant'\n";
    let late = PATHS.replace("delay = \"40ms\"", "delay = \"40ms\"\nstart = '2s'\nstop = '8s'");
    let text =
        format!("duration = '10s'\n{late}{switch}{CALL}[[traffic]]\nname = 'other'\nkind = 'call'\nstart = '1s'\n");
    let run = run(&text, multipath("minrtt"));
    for name in ["call", "other"] {
        let copies = run.metrics[&*format!("traffic.{name}.copied_packets")];
        assert!(copies > 100.0, "{name}: {copies}");
    }
}

fn kinds() -> [(&'static str, &'static str); 5] {
    [
        ("bulk", "kind = 'bulk'\nsize = '150KB'\n"),
        ("frames", "kind = 'frames'\nsize = '2KB'\ninterval = '20ms'\ncount = 50\ndeadline = '200ms'\n"),
        ("call", "kind = 'call'\nvideo = '300kbit'\nstop = '2500ms'\n"),
        ("request", "kind = 'request'\nsize = '20KB'\ninterval = '50ms'\ncount = 5\n"),
        ("web", "kind = 'web'\nsize = '120KB'\nobjects = 8\nconnections = 3\n"),
    ]
}

/// Two paths with a random rate, delay and loss.
fn random_paths(rng: &mut Rng) -> String {
    let mut path = |name| {
        let (rate, delay) = (1 + rng.below(20), 2 + rng.below(60));
        let loss = rng.below(3);
        format!("[[path]]\nname = '{name}'\nrate = '{rate}mbit'\ndelay = '{delay}ms'\nloss = '{loss}%'\n")
    };
    [path("a"), path("b")].concat()
}

/// Each kind with each scheduler beside a second application, over random networks: all sized data is complete.
#[test]
fn every_kind_with_every_scheduler_finishes_beside_another() {
    let mut rng = Rng::stream(5, "applications");
    for (n, entry) in anabranch_schedulers::all().iter().enumerate() {
        let scheduler = entry.name;
        for (k, (name, traffic)) in kinds().into_iter().enumerate() {
            let (_, other) = kinds()[(n + k) % 5];
            let start = 10 * rng.below(100);
            let text = format!(
                "{}[[traffic]]\nname = 'one'\n{traffic}[[traffic]]\nname = 'other'\nstart = '{start}ms'\n{other}",
                random_paths(&mut rng)
            );
            let job = Job::of(scenario(&text), multipath(scheduler), n as u64);
            let run = VirtualTime::default()
                .run(&job, &mut ())
                .unwrap_or_else(|error| panic!("{scheduler} {name}: {error}\n{text}"));
            assert!(run.finished, "{scheduler}, {name}:\n{text}");
            let most = Duration::from_secs(300);
            assert!(run.measured.unwrap().time.1 < Instant::ZERO + most, "{scheduler}, {name}:\n{text}");
        }
    }
}
