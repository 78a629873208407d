//! The packets that crossed the links, as a listener in virtual time counts them.

use anabranch_metrics::LinkMeter;
use anabranch_run::{Choice, Driver, Job, VirtualTime};
use anabranch_scenario::{Cell, Document};
use anabranch_units::{Duration, Instant};
use std::sync::Arc;

const SCENARIO: &str = r#"
name = "links"
duration = "4s"
[[path]]
name = "narrow"
rate = { down = "4mbit", up = "2mbit" }
delay = "20ms"
queue = "12p"
outage = [["2s", "2100ms"]]
[[path]]
name = "lossy"
rate = "8mbit"
delay = "10ms"
loss = "1%"
[[timeline]]
at = "2s"
set = "path.lossy.rate"
value = "2mbit"
[[traffic]]
kind = "bulk"
"#;

/// One run of a scenario.
fn job(text: &str) -> Job {
    let (cell, scenario) = Document::parse("links", text).unwrap().cells.remove(0);
    assert_eq!(cell, Cell::default());
    let choice = Choice::Multipath(scenario.scheduler.clone());
    Job::of(Arc::new(scenario), choice, 3)
}

#[test]
fn a_run_in_parts_has_the_events_of_a_run_in_one() {
    let sized =
        SCENARIO.replace("duration = \"4s\"\n", "").replace("kind = \"bulk\"", "kind = \"bulk\"\nsize = \"1MB\"");
    for text in [SCENARIO, &sized] {
        let job = job(text);
        let whole = VirtualTime::default().run(&job, &mut ()).unwrap();
        for step in [1, 77, 9000].map(Duration::from_millis) {
            let mut running = VirtualTime::default().begin(&job, (), |_| {}).unwrap();
            let mut to = Instant::ZERO;
            while running.advance(to).unwrap() {
                assert!(running.now() <= to);
                to += step;
            }
            assert_eq!(running.finish().0, whole, "in parts of {step}");
        }
    }
}

#[test]
fn totals_agree_with_the_metrics_and_the_capacities() {
    let job = job(SCENARIO);
    let timeline: Vec<_> = job.scenario.network_changes().collect();
    let mut meter = LinkMeter::new(&job.scenario.topology, &timeline, 2);
    let outcome = VirtualTime::default().run(&job, &mut meter).unwrap();
    let end = Instant::ZERO + Duration::from_secs(4);
    let totals = meter.finish(end);
    for (totals, name) in totals.iter().zip(["narrow", "lossy"]) {
        let metrics = &outcome.paths[name];
        assert_eq!(totals[0].queue_max_packets.map(f64::from), Some(metrics["queue_max_packets"]), "{name}");
        assert_eq!(totals[0].utilisation, Some(metrics["utilisation"]), "{name}");
        assert!(totals[0].bytes as f64 > metrics["sent_bytes"] * 0.9, "{name}: {totals:?}");
        assert!(totals[1].packets > 0 && totals[1].bytes < totals[0].bytes, "{name}: {totals:?}");
        assert!(totals[0].queue_mean_packets <= totals[0].queue_max_packets.map(f64::from), "{name}: {totals:?}");
    }
    let (narrow, lossy) = (&totals[0][0], &totals[1][0]);
    // Twelve packets wait at most; the delay-bandwidth product is more.
    assert!(narrow.queue_max_packets == Some(12) && narrow.drops.queue > 0, "{narrow:?}");
    assert!(narrow.drops.outage > 0 && narrow.drops.loss == 0, "{narrow:?}");
    let share = lossy.drops.loss as f64 / lossy.packets as f64;
    assert!(lossy.drops.outage == 0 && (0.003..0.03).contains(&share), "{lossy:?}");
    // 8 Mbit/s for 2 s, then 2 Mbit/s: never more than the capacity.
    assert!(lossy.bytes <= 2_500_000 + 1500, "{lossy:?}");
}
