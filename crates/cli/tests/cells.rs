//! Each key of a path or link may be written per direction, in a sweep and in a timeline, in virtual time, with kernels as hosts and in
//! `anabranch shell`, and has its place in the playground. The table is made of the keys, so that a key without its cells is an error, and a cell that is refused has its reason.

use anabranch_scenario::{Directions, Key, Section, keys};
use std::fmt::Write as _;
use std::process::{Command, Output, Stdio};

/// The keys of a path or link, that need no other keys, and two values of each.
fn of(section: &str) -> impl Iterator<Item = (&'static Key, [&'static str; 2])> {
    let keys = keys().iter().filter(move |key| key.section.name() == section && key.section != Section::Queue);
    keys.filter_map(|key| Some((key, values(key.name)?)))
}

/// Two values, as TOML has them; `None` for what makes another topology, of which there is nothing to change.
fn values(name: &str) -> Option<[&'static str; 2]> {
    Some(match name {
        "name" | "link" | "route" | "fabric" | "medium" | "per_pair" | "trace" | "trace_start" | "trace_end" => {
            return None;
        }
        "rate" => ["'9mbit'", "'8mbit'"],
        "burst" => ["'8KB'", "'9KB'"],
        "police" => ["{ rate = '7mbit', burst = '9KB' }", "{ rate = '6mbit', burst = '9KB' }"],
        "queue" => ["'30p'", "'20p'"],
        "delay" => ["'7ms'", "'8ms'"],
        "jitter" => ["'2ms'", "{ spread = '1ms', distribution = 'normal', order = 'free' }"],
        "overhead" => ["5", "-4"],
        "arq" => ["{ loss = '10%', attempts = 4, delay = '2ms' }", "{ loss = '20%', attempts = 3, delay = '1ms' }"],
        "aggregate" => ["'2ms'", "'1ms'"],
        "wake" => ["{ idle = '1s', delay = '20ms' }", "{ idle = '2s', delay = '10ms' }"],
        "slots" => [
            "{ every = '1s', step = '1ms', loss = '5%', burst = '20ms' }",
            "{ every = '2s', step = '2ms', loss = '4%', burst = '30ms' }",
        ],
        "middlebox" => [
            "[{ kind = 'strip', options = ['mp-join', 'add-addr'], on = 'syn' }, { kind = 'thin-acks', every = 2 }]",
            "[{ kind = 'translate', by = 7 }]",
        ],
        "preset" => ["'lte'", "'dsl'"],
        "loss" => ["'1%'", "'2%'"],
        "reorder" => ["{ probability = 0.1, by = '3ms' }", "{ probability = 0.2, by = '3ms' }"],
        "duplicate" | "corrupt" => ["'1%'", "'2%'"],
        "outage" => ["[['100ms', '150ms']]", "[['100ms', '200ms']]"],
        "mtu" => ["1300", "1280"],
        "device" | "backup" | "shared" => ["false", "true"],
        "start" => ["'100ms'", "'150ms'"],
        "stop" => ["'200ms'", "'250ms'"],
        "ip" => ["4", "6"],
        "mtu_signal" => ["'icmp'", "'none'"],
        "price" => ["'5/GB'", "'6/GB'"],
        "cap" => ["'3MB'", "'4MB'"],
        "weight" => ["2.5", "3"],
        unknown => panic!("{unknown} is a new key: it needs two values here"),
    })
}

/// Why no timeline changes a key.
fn constant(name: &str) -> &'static str {
    match name {
        "overhead" | "duplicate" | "corrupt" => "a property of the path's technology, not of its state",
        "outage" | "start" | "stop" => "says itself when",
        "device" | "ip" | "mtu_signal" | "shared" => "what the path is made of",
        "preset" => "defaults of other keys, which change themselves",
        unknown => panic!("{unknown} does not change in a timeline: say why"),
    }
}

/// A word of the reason for which kernels as hosts do not change a key, if they do not.
fn refused_live(name: &str) -> Option<&'static str> {
    match name {
        "price" | "cap" | "weight" => Some("Linux"),
        _ => None,
    }
}

/// A network of a path of its own and of one over a link, with `keys` of the first and `rest`.
fn scenario(keys: &str, rest: &str) -> String {
    // A router reports its MTU: kernels keep that of their interfaces.
    let signal = if keys.contains("mtu_signal") { "" } else { "mtu_signal = 'icmp'\n" };
    let rate = if keys.starts_with("rate") { "" } else { "rate = '10mbit'\n" };
    let delay = if keys.starts_with("delay") { "" } else { "delay = '10ms'\n" };
    let mtu = if keys.starts_with("mtu ") { "" } else { "mtu = 1480\n" };
    format!(
        "duration = '300ms'\n[connection]\ncongestion = 'cubic'\n[[link]]\nname = 'l'\nrate = '10mbit'\ndelay = '9ms'\n[[path]]\nname = \
         'a'\n{rate}{delay}{signal}{mtu}{keys}\n[[path]]\nname = 'b'\nlink = 'l'\ndelay = '5ms'\n{rest}"
    )
}

fn anabranch(text: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), text).unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder.path()).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn succeeds(text: &str, arguments: &[&str]) {
    let Output { status, stderr, .. } = anabranch(text, arguments);
    assert!(status.success(), "{arguments:?}: {}\n{text}", String::from_utf8_lossy(&stderr));
}

/// An entry that sets a key after 100 ms.
fn change(place: &str, key: &str, value: &str) -> String {
    format!("[[timeline]]\nat = '100ms'\nset = '{place}.{key}'\nvalue = {value}\n")
}

const VIRTUAL: [&str; 6] = ["run", "x.toml", "--scheduler", "minrtt", "--no-baselines", "--no-cache"];

#[test]
fn each_key_stands_per_direction_in_a_sweep_and_in_check() {
    for (key, [one, other]) in of("path") {
        let name = key.name;
        let written = match key.directions {
            Directions::None => format!("{name} = {one}"),
            Directions::Both | Directions::Down => format!("{name} = {{ down = {one}, up = {other} }}"),
        };
        succeeds(&scenario(&written, ""), &["check", "x.toml"]);
        let sweep = format!("[sweep]\n'path.a.{name}' = [{one}, {other}]\n");
        succeeds(&scenario("", &sweep), &["check", "x.toml"]);
    }
}

#[test]
fn each_key_changes_in_a_timeline_or_there_is_a_reason() {
    let mut all = String::new();
    for (section, place) in [("path", "path.a"), ("link", "link.l")] {
        for (key, [one, other]) in of(section) {
            if !key.changeable {
                println!("{place}.{}: {}", key.name, constant(key.name));
                let refused = anabranch(&scenario("", &change(place, key.name, one)), &["check", "x.toml"]);
                let said = String::from_utf8_lossy(&refused.stderr).into_owned();
                assert!(!refused.status.success() && said.contains("x.toml:"), "{place}.{}: {said}", key.name);
                continue;
            }
            all += &change(place, key.name, one);
            if key.directions != Directions::None {
                ["down", "up"].iter().for_each(|way| all += &change(place, &format!("{}.{way}", key.name), other));
            }
        }
    }
    // All at one time: in the order in which they are written.
    succeeds(&scenario("", &all), &VIRTUAL);
}

/// The changes that kernels as hosts make.
fn live() -> String {
    let mut all = String::new();
    for (section, place) in [("path", "path.a"), ("link", "link.l")] {
        let changeable = of(section).filter(|(key, _)| key.changeable && refused_live(key.name).is_none());
        changeable.for_each(|(key, [_, other])| all += &change(place, key.name, other));
    }
    all
}

#[test]
fn each_key_changes_under_programs_and_kernels_or_there_is_a_reason() {
    let shell = ["shell", "x.toml", "-q", "--no-preflight", "--", "sleep", "0.3"];
    let tried = anabranch(&scenario("", &live()), &shell);
    let said = String::from_utf8_lossy(&tried.stderr).into_owned();
    if said.contains("needs root") || said.contains("Multipath TCP") {
        eprintln!("SKIPPED each_key_changes_under_programs_and_kernels_or_there_is_a_reason: {said}");
        return;
    }
    assert!(tried.status.success(), "{said}");
    let kernels = ["run", "x.toml", "--sender", "linux", "--receiver", "linux", "--scheduler", "linux-default"];
    let kernels = [&kernels[..], &["--no-baselines", "--no-preflight"]].concat();
    succeeds(&scenario("", &live()), &kernels);
    let mut table = String::new();
    for (key, [_, other]) in of("path").filter(|(key, _)| key.changeable) {
        let Some(reason) = refused_live(key.name) else { continue };
        let text = scenario("", &change("path.a", key.name, other));
        for arguments in [&shell[..], &kernels] {
            let refused = anabranch(&text, arguments);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success() && said.contains(reason) && said.contains(key.name), "{said}");
            let _ = writeln!(table, "{}: {reason}", key.name);
        }
    }
    assert_eq!(table.lines().count(), 6, "{table}");
}

/// The keys of the playground's fields, each with an example.
fn fields_of_playground() -> Vec<(String, String)> {
    let source = include_str!("../../playground/site/waver.js");
    let (_, table) = source.split_once("const KEYS = [").expect("the table");
    let (table, _) = table.split_once("\n];").expect("its end");
    let rows = table.lines().filter_map(|row| row.trim().strip_prefix("[\"")?.strip_suffix("],"));
    let pairs = rows.filter_map(|row| row.split_once("\", "));
    pairs.map(|(key, example)| (key.to_owned(), example[1..example.len() - 1].to_owned())).collect()
}

/// Why a key of a path has no field in the playground; `None` if it needs one.
fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "name" => "what the fields are named after",
        "rate" | "delay" | "loss" => "dragged in the picture",
        "outage" => "Cut 1 s",
        "link" | "route" | "fabric" | "device" | "medium" | "shared" => "another network: a scenario to choose",
        "trace" | "trace_start" | "trace_end" => "the page reads no files",
        "preset" => "defaults of the other keys",
        "overhead" | "duplicate" | "corrupt" => "a technology's properties, which do not waver",
        "backup" | "price" | "cap" | "weight" => "the operator's policy, which does not waver by itself",
        _ => return None,
    })
}

#[test]
fn each_key_of_a_path_has_a_field_in_the_playground_or_there_is_a_reason() {
    let fields = fields_of_playground();
    let keys = keys().iter().filter(|key| key.section.name() == "path" && key.section != Section::Queue);
    for key in keys {
        let has_field = fields.iter().any(|(name, _)| name == key.name);
        match elsewhere(key.name) {
            None => assert!(has_field, "{} needs a field in waver.js, or a reason here", key.name),
            Some(reason) => assert!(!has_field, "{} has a field although: {reason}", key.name),
        }
    }
    for (name, example) in fields {
        // `mtu_signal` is of a path with an MTU, which `scenario` gives.
        let set = format!("path.a.{name}={example}");
        succeeds(&scenario("", ""), &["check", "x.toml", "--set", "duration=20s", "--set", &set]);
    }
}

/// A late path that a kernel as the client would not join is refused: a run names its line, the shell its name.
#[test]
fn a_late_path_of_another_ip_version_is_refused() {
    let late = "[[path]]\nname = 'c'\nrate = '9mbit'\ndelay = '9ms'\nip = 6\nstart = '100ms'\n";
    let text = scenario("", late);
    let line = 1 + text.lines().position(|line| line == "start = '100ms'").unwrap();
    let place = format!("x.toml:{line}:");
    let kernels = ["run", "x.toml", "--receiver", "linux"];
    for (arguments, named) in [(&["shell", "x.toml", "--", "true"][..], "path `c`"), (&kernels, &place)] {
        let Output { status, stderr, .. } = anabranch(&text, arguments);
        let said = String::from_utf8_lossy(&stderr).into_owned();
        assert!(!status.success() && said.contains(named) && said.contains("IP"), "{said}");
    }
    succeeds(&text, &["check", "x.toml"]);
}
