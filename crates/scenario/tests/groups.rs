//! Groups of hosts in scenario files.

mod common;

use anabranch_scenario::{Document, Scenario, TimelineChange};
use common::rendered;

const PATHS: &str = "duration = '9s'\n[[link]]\nname = 'core'\nrate = '9mbit'\ndelay = '5ms'\n\
    [[path]]\nname = 'a'\nlink = 'core'\n[[path]]\nname = 'b'\nrate = '4mbit'\ndelay = '9ms'\n";

fn with(rest: &str) -> Scenario {
    let text = format!("{PATHS}{rest}");
    Document::parse("groups", &text).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{text}")).scenario
}

/// The mistakes as users see them: each with its line.
fn mistake(rest: &str) -> String {
    let text = format!("{PATHS}{rest}");
    let wrong = Document::parse("groups", &text).expect_err(&text);
    rendered(&wrong)
}

#[test]
fn a_group_has_all_paths_and_the_scenarios_settings_unless_it_says_otherwise() {
    let scenario = with(
        "[[group]]\nname = 'g'\n[[group]]\nname = 'h'\ncount = 3\npaths = ['b']\nmptcp = false\n\
         congestion = 'reno'\nrecv_buffer = '1MiB'\nstart = '1s'\ntraffic = { kind = 'bulk', size = '1MB' }\n",
    );
    let [g, h] = &scenario.groups[..] else { panic!("two groups") };
    assert_eq!((g.count, &g.paths[..], h.count, &h.paths[..]), (1, &[0, 1][..], 3, &[1][..]));
    let (of_g, of_h) = (scenario.of_pair(g), scenario.of_pair(h));
    assert_eq!(of_g, Scenario { groups: Vec::new(), ..scenario.clone() });
    assert_eq!((of_h.topology.paths.len(), &*of_h.topology.paths[0].name), (1, "b"));
    assert_eq!((of_h.settings.mptcp, &*of_h.congestion.name, of_h.settings.recv_buffer), (false, "reno", 1 << 20));
    assert_eq!((of_h.traffic[0].total(), of_g.traffic[0].total()), (Some(1_000_000), None));
}

#[test]
fn what_is_written_reads_back() {
    let text = format!(
        "{PATHS}[[group]]\nname = 'g'\ncount = 2\npaths = ['b', 'a']\nscheduler = 'blest'\nstart_jitter = '5ms'\n\
         traffic = {{ kind = 'frames', size = 1000, interval = '10ms' }}\n"
    )
    .replace("delay = '5ms'\n", "delay = '5ms'\nper_pair = true\n");
    let document = Document::parse("groups", &text).unwrap();
    assert_eq!(document.scenario.per_pair, [0]);
    let again = Document::parse("groups", &document.resolved()).unwrap_or_else(|e| panic!("{e:#?}"));
    assert_eq!(again.scenario, document.scenario);
}

#[test]
fn a_pair_sees_the_changes_of_its_own_paths() {
    let scenario = with(
        "[[group]]\nname = 'g'\npaths = ['b']\nscheduler = 'blest'\n[[group]]\nname = 'h'\npaths = ['a']\n\
         [[timeline]]\nat = '1s'\nset = 'path.b.loss'\nvalue = '1%'\n\
         [[timeline]]\nat = '2s'\nset = 'connection.scheduler'\nvalue = 'redundant'\n",
    );
    let [g, h] = [0, 1].map(|n| scenario.of_pair(&scenario.groups[n]));
    let TimelineChange::Network(change) = &g.timeline[0].change else { panic!("{:?}", g.timeline) };
    assert_eq!(change.clone().path_mut(), Some(&mut 0));
    // It keeps its own scheduler; the other group has not the path.
    assert_eq!((g.timeline.len(), h.timeline.len()), (1, 1));
}

#[test]
fn mistakes_stand_where_they_are() {
    let rows = [
        ("[[group]]\ncount = 2\n", "`name` is missing in group", "[[group]]"),
        ("[[group]]\nname = 'g'\ncount = 10000000\n", "`group.count`", "10000000"),
        ("[[group]]\nname = 'g'\ncount = 6000\n[[group]]\nname = 'h'\ncount = 6000\n", "at most 10000 pairs", "6000"),
        ("[[group]]\nname = 'g'\npaths = []\n", "1 to 32 paths", "[]"),
        ("[[group]]\nname = 'g'\npaths = ['c']\n", "no path named \"c\"", "'c'"),
        ("[[group]]\nname = 'g'\npaths = ['a', 'a']\n", "a path twice", "'a'"),
        ("[[group]]\nname = 'g'\n[[group]]\nname = 'g'\n", "two groups named", "'g'"),
        ("[[group]]\nname = 'g'\ntraffic = {}\n", "`kind` is missing", "{}"),
        ("[[group]]\nname = 'g'\nmptcp = false\n", "plain TCP", "false"),
        ("[[group]]\nname = 'g'\nrecv_buffer = '600B'\n", "smaller than one segment", "'600B'"),
        ("[hosts]\nsender = 'linux'\n[[group]]\nname = 'g'\n", "virtual time alone", "'linux'"),
        ("[[group]]\nname = 'g'\n[[cross]]\nkind = 'tcp'\npath = 'a'\n", "its own copy of this path", "'a'"),
        (
            "[[link]]\nname = 'own'\nrate = '1mbit'\nper_pair = true\n[[group]]\nname = 'g'\n\
             [[cross]]\nkind = 'udp'\nrate = '1mbit'\nroute = ['core', 'own']\n",
            "its own copy of this link",
            "'own']",
        ),
        (
            "[[link]]\nname = 'own'\nrate = '1mbit'\nper_pair = true\n[[group]]\nname = 'g'\n\
             [[cross]]\nkind = 'tcp'\nlink = 'own'\n",
            "its own copy of this link",
            "link = 'own'",
        ),
        ("[[group]]\nname = 'g'\n[[timeline]]\nat = '1s'\nset = 'link.gone.rate'\nvalue = '1mbit'\n", "gone", "gone"),
        ("[[path]]\nname = 'c'\nroute = ['core', 'core']\n[[group]]\nname = 'g'\n", "goes in a circle", "'core'"),
        ("[[path]]\nname = 'c'\nroute = []\n[[group]]\nname = 'g'\n", "crosses no link", "[]"),
        ("[[path]]\nname = 'c'\nroute = ['gone']\n[[group]]\nname = 'g'\n", "no link named \"gone\"", "'gone'"),
        ("[[group]]\nname = 'g'\npahts = ['a']\n", "paths", "pahts"),
    ];
    for (rest, message, token) in rows {
        let said = mistake(rest);
        assert!(said.contains(message), "{rest}: {said}");
        assert!(said.contains("[groups:") && said.contains(token), "{rest}: {said}");
    }
}

#[test]
fn a_group_without_a_list_has_no_more_paths_than_a_connection() {
    let path = |n: usize| format!("[[path]]\nname = 'p{n}'\nlink = 'core'\n");
    let many: String = (0..31).map(path).collect();
    let said = mistake(&format!("{many}[[group]]\nname = 'g'\n"));
    assert!(said.contains("at most 32 paths") && said.contains("33"), "{said}");
    assert_eq!(with(&format!("{many}[[group]]\nname = 'g'\npaths = ['p30']\n")).groups[0].paths, [32]);
}

#[test]
fn unlimited_traffic_of_a_group_needs_an_end() {
    let text = PATHS.replace("duration = '9s'\n", "");
    let sized = "[[group]]\nname = 'g'\ntraffic = { kind = 'bulk', size = '1MB' }\n";
    assert!(Document::parse("groups", &format!("{text}{sized}")).is_ok());
    let endless = format!("{text}{sized}[[group]]\nname = 'h'\n");
    let wrong = Document::parse("groups", &endless).unwrap_err();
    assert!(wrong[0].to_string().contains("`duration` is missing"), "{wrong:?}");
}

/// A fabric, and a path over it.
const FABRIC: &str = "[[fabric]]\nname = 'dc'\nkind = 'fat-tree'\nk = 4\nrate = '9mbit'\ndelay = '10ms'\n[[path]]\nname = 'w'\nfabric = 'dc'\n";

#[test]
fn a_fabric_is_links_behind_those_of_the_file() {
    let scenario = with(&format!("{FABRIC}[[group]]\nname = 'g'\npaths = ['w']\n"));
    let names: Vec<&str> = scenario.topology.links.iter().map(|link| &*link.name).collect();
    assert_eq!((names.len(), names[0], names[1], names[2]), (1 + 96, "core", "dc-h0-e0", "dc-e0-h0"));
    // Six links of 10 ms each way: all have the queue of the longest way.
    let queue = |n: usize| format!("{:?}", scenario.topology.links[n].down.queue);
    assert!(queue(1).contains("135000") && (1..97).all(|n| queue(n) == queue(1)), "{}", queue(1));
    let path = &scenario.topology.paths[2];
    assert_eq!((path.down.bottleneck.route().len(), scenario.topology.round_trip(path).as_nanos()), (6, 120_000_000));
    let pair = scenario.of_pair(&scenario.groups[0]);
    assert!(pair.fabrics.is_empty() && pair.paths[0].fabric.is_none());
}

#[test]
fn a_fabric_reads_back_and_may_be_swept() {
    let text = format!(
        "{PATHS}{FABRIC}[[fabric]]\nname = 'ls'\nkind = 'leaf-spine'\nspines = 2\nrate = {{ down = '8mbit', up = '2mbit' }}\n\
         delay = '3ms'\nqueue = {{ kind = 'codel' }}\nloss = '1%'\n[[path]]\nname = 'v'\nfabric = 'ls'\n\
         [[group]]\nname = 'g'\npairing = 'incast'\ncount = 3\n[[timeline]]\nat = '1s'\nset = 'link.ls-l0-s1.rate'\nvalue = '1mbit'\n"
    );
    let document = Document::parse("groups", &text).unwrap_or_else(|e| panic!("{e:#?}"));
    let resolved = document.resolved();
    let again = Document::parse("groups", &resolved).unwrap_or_else(|e| panic!("{e:#?}"));
    assert!(again.scenario == document.scenario && again.resolved() == resolved, "{resolved}");
    assert_eq!(resolved.matches("[[link]]").count(), 1);
    let swept = Document::parse("groups", &format!("{text}[sweep]\nfabric.dc.k = [2, 4]\n")).unwrap();
    let links = swept.cells.iter().map(|(_, cell)| cell.topology.links.len());
    assert_eq!(links.collect::<Vec<_>>(), [1 + 12 + 48, 1 + 96 + 48]);
}

#[test]
fn mistakes_of_fabrics_stand_where_they_are() {
    let group = "[[group]]\nname = 'g'\npaths = ['w']\n";
    let rows = [
        (FABRIC.to_owned(), "that of a pair of hosts", "'dc'"),
        (FABRIC.replace("fabric = 'dc'", "fabric = 'cd'") + group, "there is no fabric named \"cd\"", "'cd'"),
        (FABRIC.replace("k = 4", "k = 3") + group, "`fabric.k`", "3"),
        (FABRIC.replace("k = 4", "k = 100000") + group, "`fabric.k`", "100000"),
        (FABRIC.replace("k = 4", "spines = 4") + group, "means nothing for a fabric", "spines"),
        (FABRIC.replace("'fat-tree'", "'fat-treee'") + group, "fat-tree", "'fat-treee'"),
        (FABRIC.replace("rate = '9mbit'\n", "") + group, "`rate` is missing", "[[fabric]]"),
        (FABRIC.replace("'9mbit'", "'9mbot'") + group, "9mbot", "'9mbot'"),
        (FABRIC.replace("delay = '10ms'", "delya = '10ms'") + group, "did you mean `delay`", "delya"),
        (FABRIC.replace("fabric = 'dc'", "fabric = 'dc'\nlink = 'core'") + group, "one of `fabric`, `route`", "'core'"),
        (
            FABRIC.replace("fabric = 'dc'", "fabric = 'dc'\nrate = '1mbit'") + group,
            "`rate` belongs to the fabric",
            "'dc'",
        ),
        (format!("{FABRIC}{}{group}", FABRIC.replace("'w'", "'x'")), "two fabrics named \"dc\"", "'dc'"),
        (
            FABRIC.replace("'fat-tree'\nk = 4", "'leaf-spine'\nleaves = 200\nspines = 200") + group,
            "at most 8000 links",
            "[[fabric]]",
        ),
        (FABRIC.replace("'fat-tree'\nk = 4", "'leaf-spine'\nleaves = 1\nhosts = 1") + group, "two hosts", "[[fabric]]"),
        (format!("{FABRIC}{group}pairing = 'all'\n"), "`group.pairing`", "'all'"),
        (
            format!("{FABRIC}{group}[[timeline]]\nat = '1s'\nset = 'link.dc-e0-c0.rate'\nvalue = '1mbit'\n"),
            "dc-e0-c0",
            "link.dc-e0-c0.rate",
        ),
        (FABRIC.replace("name = 'dc'\nkind", "kind") + group, "`name` is missing in fabric", "[[fabric]]"),
    ];
    for (rest, message, token) in rows {
        let said = mistake(&rest);
        assert!(said.contains(message), "{rest}: {said}");
        assert!(said.contains("[groups:") && said.contains(token), "{rest}: {said}");
    }
}
