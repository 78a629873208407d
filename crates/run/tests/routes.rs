//! Routes over several links: shares, bounds, what results say of each link.

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::Document;
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::Instant;
use std::sync::Arc;

fn run_with(text: &str, seed: u64, listener: &mut dyn Recorder) -> RunOutcome {
    let scenario = Document::parse("routes", text).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{text}")).scenario;
    let choice = Choice::Multipath(scenario.scheduler.clone());
    let job = Job::of(Arc::new(scenario), choice, seed);
    VirtualTime::default().run(&job, listener).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run(text: &str) -> RunOutcome {
    run_with(text, 1, &mut ())
}

/// Links in a row with fair queues, of so many Mbit/s, and a path over all of them; TCP crosses each.
fn parking_lot(rates: &[u32]) -> String {
    let link = |(n, rate): (usize, &u32)| {
        format!(
            "[[link]]\nname = 'l{n}'\nrate = '{rate}mbit'\ndelay = '3ms'\nqueue = {{ kind = 'fq_codel' }}\n\
             [[cross]]\nkind = 'tcp'\nlink = 'l{n}'\ndelay = '10ms'\n"
        )
    };
    let links: String = rates.iter().enumerate().map(link).collect();
    let names: Vec<String> = (0..rates.len()).map(|n| format!("'l{n}'")).collect();
    let route = names.join(", ");
    format!(
        "duration = '20s'\nwarmup = '5s'\n[connection]\nmptcp = false\ncongestion = 'cubic'\nmss = 1448\n{links}\
         [[path]]\nname = 'long'\nroute = [{route}]\ndelay = '2ms'\n[[traffic]]\nkind = 'bulk'\n"
    )
}

#[test]
fn equal_flows_have_max_min_shares_of_a_parking_lot() {
    for rates in [&[12, 12, 12][..], &[12, 8, 12]] {
        let outcome = run(&parking_lot(rates));
        // Half of the narrowest link; of each packet of 1500 bytes 1448 are payload.
        let share = f64::from(*rates.iter().min().unwrap()) * 1e6 / 2.0 * 1448.0 / 1500.0;
        let goodput = outcome.metrics["goodput_bps"];
        assert!((goodput / share - 1.0).abs() < 0.05, "{rates:?}: {goodput} of {share}");
        for n in 0..rates.len() {
            let used = outcome.metrics[&*format!("link.l{n}.down.utilisation")];
            assert!(used > 0.95, "{rates:?}: link {n}: {used}");
        }
    }
}

#[test]
fn a_route_alone_reaches_its_bound() {
    let text = "duration = '20s'\nwarmup = '5s'\n[connection]\nmptcp = false\ncongestion = 'reno'\n\
        [[link]]\nname = 'a'\nrate = '20mbit'\ndelay = '5ms'\n[[link]]\nname = 'b'\nrate = '10mbit'\ndelay = '5ms'\n\
        [[link]]\nname = 'c'\nrate = '30mbit'\ndelay = '5ms'\n[[path]]\nname = 'p'\nroute = ['a', 'b', 'c']\n[[traffic]]\nkind = 'bulk'\n";
    let outcome = run(text);
    let ratio = outcome.metrics["oracle_ratio"];
    assert!(0.97 < ratio && ratio <= 1.0, "{ratio}");
    // Only the narrowest link drops, and the path has its figures.
    let of = |link: &str, value: &str| outcome.metrics[&*format!("link.{link}.down.{value}")];
    assert!(of("b", "dropped_packets") > 0.0 && of("a", "dropped_packets") + of("c", "dropped_packets") == 0.0);
    assert!((of("a", "utilisation") - 0.5).abs() < 0.05 && (of("c", "utilisation") - 1.0 / 3.0).abs() < 0.05);
    assert_eq!(outcome.paths["p"]["queue_max_packets"], of("b", "queue_max_packets"));
}

#[test]
fn two_paths_reach_the_most_that_their_links_carry_together() {
    // Both cross the core; beyond it one has 6 Mbit/s and the other 30: 16 through the core, 6 of them over the first.
    let text = "duration = '20s'\nwarmup = '5s'\n[connection]\ncongestion = 'reno'\n[[link]]\nname = 'core'\nrate = '16mbit'\ndelay = '5ms'\n\
        [[link]]\nname = 'one'\nrate = '6mbit'\ndelay = '5ms'\n[[link]]\nname = 'two'\nrate = '30mbit'\ndelay = '5ms'\n\
        [[path]]\nname = 'p'\nroute = ['core', 'one']\n[[path]]\nname = 'q'\nroute = ['core', 'two']\n[[traffic]]\nkind = 'bulk'\n";
    let outcome = run(text);
    let ratio = outcome.metrics["oracle_ratio"];
    assert!(0.95 < ratio && ratio <= 1.0, "{ratio}");
    assert!(outcome.metrics["link.core.down.utilisation"] > 0.97);
}

/// Needs both hosts' events in one order.
struct InOrder;

impl Recorder for InOrder {
    fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}
}

#[test]
fn hosts_run_ahead_over_routes_with_the_same_outcome() {
    let text = "duration = '5s'\n[connection]\ncongestion = 'cubic'\n\
        [[link]]\nname = 'core'\nrate = '30mbit'\ndelay = '4ms'\nqueue = '40p'\n\
        [[link]]\nname = 'dsl'\nrate = { down = '15mbit', up = '2mbit' }\ndelay = '6ms'\njitter = '1ms'\nloss = '0.2%'\n\
        [[link]]\nname = 'lte'\nrate = '12mbit'\ndelay = '20ms'\narq = { loss = '5%', attempts = 3, delay = '8ms' }\n\
        [[path]]\nname = 'home'\nroute = ['core', 'dsl']\ndelay = '1ms'\n\
        [[path]]\nname = 'mobile'\nroute = ['core', 'lte']\ndelay = '3ms'\n\
        [[cross]]\nkind = 'tcp'\nroute = ['core', 'lte']\nstart = '1s'\n\
        [[cross]]\nkind = 'udp-onoff'\nroute = ['dsl', 'core']\nrate = '3mbit'\non = '300ms'\noff = '300ms'\n\
        [[cross]]\nkind = 'udp'\nlink = 'core'\nrate = '2mbit'\ndirection = 'up'\n\
        [[timeline]]\nat = '2s'\nset = 'link.lte.delay'\nvalue = '30ms'\n\
        [[timeline]]\nat = '3s'\nset = 'link.core.rate'\nvalue = '10mbit'\n[[traffic]]\nkind = 'bulk'\n";
    for seed in 1..6 {
        let [ahead, in_order] = [run_with(text, seed, &mut ()), run_with(text, seed, &mut InOrder)];
        assert_eq!(ahead, in_order, "seed {seed}");
        assert!(ahead.metrics["goodput_bps"] > 5e6);
    }
}
