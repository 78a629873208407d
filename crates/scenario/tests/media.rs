//! `shared`, `medium`, `[[medium]]`: read, printed, swept, and refused where they are impossible.

mod common;

use anabranch_network::{Bottleneck, MediumSpec};
use anabranch_scenario::{Document, Scenario, swept};
use anabranch_units::Duration;
use common::rendered;

const PATH: &str = "duration = '10s'\n[[path]]\nname = 'a'\ndelay = '20ms'\n";
const AIR: &str = "[[medium]]\nname = 'air'\n";

fn document(keys: &str) -> Document {
    Document::parse("x.toml", &format!("{PATH}{keys}")).unwrap_or_else(|errors| panic!("{}", rendered(&errors)))
}

fn mistake(keys: &str) -> String {
    rendered(&Document::parse("x.toml", &format!("{PATH}{keys}")).map(|_| keys).expect_err("is refused"))
}

/// Media of each path's down and up, and of each link's.
fn media(scenario: &Scenario) -> Vec<Option<&MediumSpec>> {
    let topology = &scenario.topology;
    let ways = topology.paths.iter().flat_map(|path| [&path.down, &path.up]);
    let owns = ways.filter_map(|way| match &way.bottleneck {
        Bottleneck::Own(own) => Some(own),
        Bottleneck::Route(_) => None,
    });
    let all = owns.chain(topology.links.iter().flat_map(|link| [&link.down, &link.up]));
    all.map(|spec| spec.medium.as_deref()).collect()
}

fn reads_back(document: &Document) {
    let again =
        Document::parse("x.toml", &document.resolved()).unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
    assert_eq!(again.scenario, document.scenario, "{}", document.resolved());
}

#[test]
fn a_medium_is_its_own_unless_shared_or_named() {
    assert_eq!(media(&document("rate = '9mbit'\n").scenario), [None, None]);
    assert_eq!(media(&document("rate = '9mbit'\nshared = false\n").scenario), [None, None]);
    let shared =
        document("rate = '9mbit'\nshared = true\n[[path]]\nname = 'b'\nrate = '1mbit'\ndelay = '1ms'\nshared = true\n");
    let found = media(&shared.scenario);
    assert_eq!(found[0], Some(&MediumSpec { name: "path.a".into(), overhead: Duration::ZERO, packets: 1 }));
    assert!(found[0] == found[1] && found[2] == found[3] && found[0] != found[2], "each path its own: {found:?}");
    reads_back(&shared);
}

#[test]
fn paths_links_and_directions_name_a_medium() {
    let text = "rate = '9mbit'\nmedium = { up = 'air' }\n[[path]]\nname = 'b'\nlink = 'ap'\ndelay = '1ms'\n\
        [[link]]\nname = 'ap'\nrate = '8mbit'\nmedium = 'air'\n[[medium]]\nname = 'air'\noverhead = '150us'\npackets = 32\n";
    let named = document(text);
    let air = MediumSpec { name: "air".into(), overhead: Duration::from_micros(150), packets: 32 };
    assert_eq!(media(&named.scenario), [None, Some(&air), Some(&air), Some(&air)]);
    reads_back(&named);
    assert_eq!(swept("medium.air.overhead", "100us").map(|swept| swept.number), Some(1e-4));
    let set = anabranch_scenario::read(
        &anabranch_scenario::Source { name: "x.toml".into(), text: format!("{PATH}{text}") },
        &[anabranch_scenario::Override::parse("--set", "medium.air.packets=4")],
        &anabranch_scenario::NoFiles,
    );
    let set = set.unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
    assert_eq!(media(&set.scenario)[1].map(|medium| medium.packets), Some(4));
}

#[test]
fn what_divides_nothing_is_refused_where_it_stands() {
    let rate = |keys: &str| format!("rate = '9mbit'\n{keys}");
    for (keys, at, message) in [
        (rate(AIR), "7:8", "no path uses the medium \"air\""),
        (
            rate(&format!("[[link]]\nname = 'l'\nrate = '1mbit'\nmedium = 'air'\n{AIR}")),
            "11:8",
            "no path uses the medium",
        ),
        (rate(&format!("medium = 'sir'\n{AIR}")), "6:10", "there is no medium named \"sir\""),
        (
            rate(&format!("medium = 'air'\nshared = true\n{AIR}")),
            "7:10",
            "a path has a medium of its own (`shared`) or a named one",
        ),
        (rate(&format!("medium = 'air'\nburst = '9KB'\n{AIR}")), "7:9", "a station of a shared medium has a rate"),
        (rate("medium = 'air'\n"), "6:10", "add [[medium]] with `name = \"air\"`"),
        (rate("shared = 1\n"), "6:10", "`path.shared` cannot be an integer"),
        (
            rate("shared = true\n[[timeline]]\nat = '1s'\nset = 'path.a.burst'\nvalue = '9KB'\n"),
            "10:9",
            "a station of a shared medium has a rate",
        ),
        (rate("medium = 'a'\n[[medium]]\nname = 'a'\n"), "8:8", "there are two paths, links or media named \"a\""),
        (rate("medium = 'air'\n[[medium]]\nname = 'air'\npackets = 0\n"), "9:11", "`medium.packets` cannot be 0"),
        (
            "shared = true\nlink = 'l'\n[[link]]\nname = 'l'\nrate = '1mbit'\n".into(),
            "5:10",
            "`shared` is of a path with bottlenecks of its own",
        ),
        (
            "link = 'l'\nmedium = 'air'\n[[link]]\nname = 'l'\nrate = '1mbit'\n[[medium]]\nname = 'air'\n".into(),
            "6:10",
            "`medium` belongs to the link",
        ),
    ] {
        let said = mistake(&keys);
        assert!(said.contains(&format!("x.toml:{at}")) && said.contains(message), "{keys}\n{said}");
    }
}

#[test]
fn keys_beside_a_preset_take_the_place_of_its_shared_air() {
    let presets = |keys: &str| document(&format!("preset = 'wifi-busy'\n{keys}"));
    assert!(media(&presets("").scenario)[0].is_some());
    assert_eq!(media(&presets("shared = false\n").scenario), [None, None]);
    assert_eq!(media(&presets("burst = '64KB'\n").scenario), [None, None]);
    assert_eq!(
        media(&presets("medium = 'air'\n[[medium]]\nname = 'air'\n").scenario)[1].map(|m| m.name.as_str()),
        Some("air")
    );
}
