//! A path that falls silent, as two Linux 6.18 kernels deal with it and as `sender_model = "linux"` does.

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::Document;
use std::sync::Arc;

/// A run with both models: `model`, and the `rest` of the scenario. The first path is silent from `silent.0` to `silent.1` seconds.
fn run(model: &str, [first, second]: [&str; 2], silent: (u32, u32), rest: &str) -> RunOutcome {
    let text = format!(
        "name = 'failover'\n[connection]\nscheduler = 'linux-default'\ncongestion = {{ kind = 'cubic', linux = true }}\n\
         [tcp]\nquick_acks = 1040\n[hosts]\nsender_model = '{model}'\nreceiver_model = '{model}'\n\
         [[path]]\nname = 'a'\n{first}\noutage = [['{}s', '{}s']]\n[[path]]\nname = 'b'\n{second}\n[[traffic]]\n{rest}",
        silent.0, silent.1,
    );
    let scenario = Document::parse("failover", &text).unwrap().cells.remove(0).1;
    let choice = Choice::Multipath(scenario.scheduler.clone());
    VirtualTime::default().run(&Job::of(Arc::new(scenario), choice, 1), &mut ()).unwrap()
}

/// Frames of 10 KB every 20 ms over two paths of 100 Mbit/s, of which the first is silent from 5 s on.
fn frames(model: &str) -> RunOutcome {
    let path = "rate = '100mbit'\ndelay = '1ms'\nqueue = '25KB'";
    run(model, [path; 2], (5, 15), "kind = 'frames'\nsize = '10KB'\ninterval = '20ms'\ncount = 740")
}

/// Two kernels, `anabranch run FILE --sender linux --receiver linux --no-baselines`, five runs: an outage of 0.41 s, 99 of 100 frames
/// within 557 to 613 ms, 112 to 123 packets rescued, 5 timeouts, no probe. The connection's timer finds the second path
/// busy after 200 ms, because the last packet of a frame waits for its delayed acknowledgment.
#[test]
fn frames_wait_for_the_connections_timer_and_everything_goes_again_once_the_path_is_stale() {
    let outcome = frames("linux");
    let [outage, p99] = ["outage_s", "app_delay_p99_s"].map(|name| outcome.metrics[name]);
    assert!((0.39..0.43).contains(&outage), "{outage}");
    assert!((0.48..0.62).contains(&p99), "{p99}");
    let rescued = outcome.metrics["rescued_packets"];
    assert!((100.0..140.0).contains(&rescued), "{rescued}");
    assert_eq!(["timeouts", "path_probes"].map(|name| outcome.metrics[name]), [5.0, 0.0]);
}

/// Two kernels, `docs/lab/failover.sh`, of outages of 10 s at 2 s (docs/lab/failover.md): nothing is delivered for 0.55 ± 0.10 s with delays of 10 and
/// 30 ms, and for 0.63 ± 0.17 s with 40 and 30 ms; 934 ± 130 and 1253 ± 286 KB are rescued; 6 timeouts, no probe.
#[test]
fn a_bulk_transfer_stalls_and_sends_everything_again() {
    for (delay, least, most) in [(10, 800e3, 1070e3), (40, 960e3, 1540e3)] {
        let first = format!("rate = '20mbit'\ndelay = '{delay}ms'\nqueue = '100KB'");
        let second = "rate = '10mbit'\ndelay = '30ms'\nqueue = '100KB'";
        let outcome = run("linux", [&first, second], (2, 12), "kind = 'bulk'\nsize = '40MB'");
        let [outage, rescued] = ["outage_s", "rescued_bytes"].map(|name| outcome.metrics[name]);
        assert!((0.45..0.75).contains(&outage), "{delay} ms: {outage}");
        assert!((least..most).contains(&rescued), "{delay} ms: {rescued}");
        assert_eq!(["timeouts", "path_probes"].map(|name| outcome.metrics[name]), [6.0, 0.0], "{delay} ms");
    }
}

#[test]
fn otherwise_a_path_that_timed_out_is_relieved_at_once_and_probed() {
    let outcome = frames("rfc");
    assert_eq!(outcome.metrics["rescued_packets"], 8.0);
    assert!(outcome.metrics["outage_s"] < 0.25 && outcome.metrics["path_probes"] > 0.0, "{:?}", outcome.metrics);
}
