//! Fabrics: each pair has ways of its own, which the seed draws.

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::Document;
use std::sync::Arc;

fn run(text: &str, seed: u64) -> RunOutcome {
    let scenario = Document::parse("fabrics", text).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{text}")).scenario;
    let choice = Choice::Multipath(scenario.scheduler.clone());
    VirtualTime::default().run(&Job::of(Arc::new(scenario), choice, seed), &mut ()).unwrap()
}

/// A fat tree of 16 hosts with cables of 10 Mbit/s, and `subflows` for each of `count` pairs.
fn tree(subflows: u32, count: u32, group: &str) -> String {
    let path = |n| format!("[[path]]\nname = 'w{n}'\nfabric = 'dc'\n");
    let paths: String = (0..subflows).map(path).collect();
    format!(
        "duration = '2s'\nwarmup = '1s'\n[connection]\ncongestion = 'lia'\n\
         [[fabric]]\nname = 'dc'\nkind = 'fat-tree'\nk = 4\nrate = '10mbit'\ndelay = '20us'\nqueue = '30p'\n{paths}\
         [[group]]\nname = 'g'\ncount = {count}\n{group}"
    )
}

/// Cables that carried data, by the used share of their capacity.
fn used(outcome: &RunOutcome) -> Vec<(&str, f64)> {
    let of = outcome.metrics.iter().filter_map(|(name, value)| {
        let link = name.strip_prefix("link.")?.strip_suffix(".down.utilisation")?;
        Some((link, *value))
    });
    of.filter(|(_, share)| *share > 0.0).collect()
}

#[test]
fn a_pair_takes_the_cables_of_its_way() {
    let outcome = run(&tree(1, 1, "mptcp = false\n"), 1);
    let used = used(&outcome);
    assert!([2, 4, 6].contains(&used.len()), "{used:?}");
    assert!(used.iter().all(|(_, share)| *share > 0.8), "{used:?}");
    assert!(outcome.metrics["goodput_bps"] > 9e6);
}

#[test]
fn an_incast_shares_the_receivers_cable() {
    let outcome = run(&tree(1, 15, "pairing = 'incast'\nmptcp = false\n"), 1);
    assert!((8.5e6..1e7).contains(&outcome.metrics["goodput_bps"]), "{}", outcome.metrics["goodput_bps"]);
    let to_hosts = used(&outcome).into_iter().filter(|(name, _)| name.contains("-h") && !name.starts_with("dc-h"));
    assert_eq!(to_hosts.count(), 1);
}

#[test]
fn more_subflows_find_more_of_a_permutations_capacity() {
    // Raiciu et al., SIGCOMM 2011, §4: one path per pair collides, several fill the network.
    let [one, eight] =
        [tree(1, 16, "mptcp = false\n"), tree(8, 16, "")].map(|text| run(&text, 1).metrics["goodput_bps"]);
    assert!(eight > 1.2 * one, "{one} {eight}");
    assert!(eight < 160e6);
}

#[test]
fn the_seed_draws_the_ways_and_nothing_else_does() {
    let text = tree(2, 6, "");
    let first = run(&text, 1);
    assert_eq!(run(&text, 1).digest, first.digest);
    let ways =
        |text: &str, seed| used(&run(text, seed)).into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    assert_ne!(ways(&text, 2), ways(&text, 1));
    assert_eq!(ways(&text.replace("'lia'", "'olia'"), 1), ways(&text, 1));
}

#[test]
fn a_link_of_a_fabric_changes_by_its_name() {
    let text = tree(1, 1, "mptcp = false\n");
    let outcome = run(&text, 1);
    let (link, _) = used(&outcome)[0];
    let slower = format!("{text}[[timeline]]\nat = '500ms'\nset = 'link.{link}.rate'\nvalue = '2mbit'\n");
    assert!(run(&slower, 1).metrics["goodput_bps"] < 2e6);
}
