//! Groups of hosts: one pair is what a file without groups is, shares, figures per group, determinism.

use anabranch_run::{Choice, Driver, Job, Options, Plan, RunError, RunOutcome, Variant, VirtualTime};
use anabranch_scenario::{Document, Scenario};
use std::sync::Arc;

fn parse(text: &str) -> Scenario {
    Document::parse("groups", text).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{text}")).scenario
}

fn job(text: &str, seed: u64) -> Job {
    let scenario = parse(text);
    let choice = Choice::Multipath(scenario.scheduler.clone());
    Job::of(Arc::new(scenario), choice, seed)
}

fn run(text: &str, seed: u64) -> RunOutcome {
    VirtualTime::default().run(&job(text, seed), &mut ()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Two paths, one over a link and one of its own, with luck, changes and cross traffic.
const PLAIN: &str = "duration = '4s'\nwarmup = '1s'\nstart_jitter = '300ms'\n[connection]\nscheduler = 'blest'\ncongestion = 'lia'\n\
    [[link]]\nname = 'core'\nrate = '20mbit'\ndelay = '8ms'\nloss = '0.1%'\n\
    [[path]]\nname = 'wifi'\nrate = '9mbit'\ndelay = '6ms'\nloss = '0.2%'\n\
    [[path]]\nname = 'lte'\nlink = 'core'\ndelay = '3ms'\n\
    [[cross]]\nkind = 'tcp'\nlink = 'core'\n[[cross]]\nkind = 'udp'\nlink = 'core'\nrate = '1mbit'\n\
    [[timeline]]\nat = '2s'\nset = 'path.wifi.rate'\nvalue = '5mbit'\n\
    [[timeline]]\nat = '2500ms'\nset = 'link.core.rate'\nvalue = '12mbit'\n\
    [[timeline]]\nat = '3s'\nset = 'connection.scheduler'\nvalue = 'minrtt'\n";

#[test]
fn one_pair_runs_as_the_file_without_groups() {
    let plain = run(PLAIN, 3);
    let grouped = run(&format!("{PLAIN}[[group]]\nname = 'g'\n"), 3);
    assert_eq!(grouped.digest, plain.digest);
    assert_eq!(grouped.metrics["goodput_bps"], plain.metrics["goodput_bps"]);
    for end in ["dropped_packets", "utilisation"] {
        let name = format!("link.core.down.{end}");
        assert_eq!(grouped.metrics[&*name], plain.metrics[&*name], "{name}");
    }
}

/// `count` pairs with plain TCP over a link of 24 Mbit/s with fair queues, beside `others` with a slower access of their own.
fn shared(count: u32, others: &str) -> String {
    format!(
        "duration = '15s'\nwarmup = '5s'\nstart_jitter = '200ms'\n[connection]\nmptcp = false\ncongestion = 'reno'\nmss = 1448\n\
         [[link]]\nname = 'core'\nrate = '24mbit'\ndelay = '10ms'\nqueue = {{ kind = 'fq_codel' }}\n\
         [[link]]\nname = 'slow'\nrate = '2mbit'\ndelay = '1ms'\nper_pair = true\n\
         [[path]]\nname = 'fast'\nroute = ['core']\n[[path]]\nname = 'slow-access'\nroute = ['core', 'slow']\n\
         [[group]]\nname = 'fast'\ncount = {count}\npaths = ['fast']\n{others}"
    )
}

#[test]
fn pairs_have_max_min_shares() {
    // Four with 2 Mbit/s each of their own lines; the rest of the core is for the other four.
    let others = "[[group]]\nname = 'slow'\ncount = 4\npaths = ['slow-access']\n";
    let outcome = run(&shared(4, others), 1);
    let payload = 1448.0 / 1500.0;
    for (group, share) in [("fast", 4e6), ("slow", 2e6)] {
        for end in ["min", "mean", "max"] {
            let goodput = outcome.metrics[&*format!("group.{group}.goodput_{end}_bps")];
            assert!((goodput / (share * payload) - 1.0).abs() < 0.06, "{group}, {end}: {goodput}");
        }
    }
    let of = |name: &str| outcome.metrics[name];
    assert!((of("goodput_bps") - of("group.fast.goodput_bps") - of("group.slow.goodput_bps")).abs() < 1.0);
    assert!(of("group.fast.fairness") > 0.99 && of("group.slow.fairness") > 0.99);
    // (4 + 2)² / (2 · (16 + 4)).
    assert!((of("fairness_groups") - 0.9).abs() < 0.01, "{}", of("fairness_groups"));
    assert!((of("fairness_pairs") - 0.9).abs() < 0.01, "{}", of("fairness_pairs"));
    // Max-flow: the core is the bound of all pairs together.
    assert!((0.93..=1.0).contains(&of("oracle_ratio")), "{}", of("oracle_ratio"));
    // Lines of which each pair has its own are in no table of links.
    assert!(outcome.metrics.contains_key("link.core.down.utilisation"));
    assert!(outcome.metrics.keys().all(|name| !name.starts_with("link.slow")), "{:?}", outcome.metrics);
}

#[test]
fn each_pair_has_its_own_copy_of_a_path_and_its_own_luck() {
    let text = "duration = '6s'\nwarmup = '1s'\n[connection]\nmptcp = false\n[[path]]\nname = 'p'\nrate = '8mbit'\n\
        delay = '10ms'\nloss = '1%'\n[[group]]\nname = 'g'\ncount = 3\n";
    let outcome = run(text, 1);
    let of = |name: &str| outcome.metrics[name];
    assert!(of("group.g.goodput_bps") > 1.5 * 8e6, "{}", of("group.g.goodput_bps"));
    assert!(of("group.g.goodput_min_bps") < of("group.g.goodput_max_bps"));
    assert_ne!(outcome.digest, run(text, 2).digest);
    assert_eq!(outcome.digest, run(text, 1).digest);
}

#[test]
fn a_group_keeps_its_own_settings_whatever_a_run_compares() {
    let text = shared(
        1,
        "[[group]]\nname = 'own'\npaths = ['fast', 'slow-access']\nmptcp = true\nscheduler = 'redundant'\n\
         congestion = 'olia'\ntraffic = { kind = 'bulk', size = '2MB' }\n",
    );
    let with = |scheduler: &str| {
        let mut job = job(&text, 1);
        job.choice = Choice::Multipath(anabranch_scenario::scheduler("test", scheduler).unwrap());
        VirtualTime::default().run(&job, &mut ()).unwrap()
    };
    // The other group has one path and plain TCP: no scheduler.
    assert_eq!(with("minrtt").digest, with("roundrobin").digest);
    assert!(with("minrtt").metrics.contains_key("group.own.completion_s"));
}

#[test]
fn a_run_ends_when_all_pairs_are_done() {
    let text =
        shared(3, "traffic = { kind = 'bulk', size = '300KB' }\n").replace("duration = '15s'\nwarmup = '5s'\n", "");
    let outcome = run(&text, 1);
    assert!(outcome.finished);
    let (last, mean) = (outcome.metrics["completion_s"], outcome.metrics["group.fast.completion_s"]);
    assert!(mean <= last && last < 1.0, "{mean} {last}");
}

#[test]
fn groups_have_no_baselines_and_no_other_driver() {
    let scenario = parse(&shared(2, ""));
    let plan = Plan::new(&[Variant { cell: Vec::new(), scenario: scenario.into() }], &Options::default());
    assert!(plan.jobs().all(|job| matches!(job.choice, Choice::Multipath(_))));
    let begun = VirtualTime::default().begin(&job(&shared(2, ""), 1), (), |_| {});
    let Err(RunError::Unsupported { what }) = begun else { panic!("a driver of one pair took groups") };
    assert!(what.contains("groups of hosts"), "{what}");
}
