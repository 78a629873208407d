//! Every printed topology is a scenario that passes `check` and runs, whatever its flags.

use assert_cmd::Command;

/// Flags of each name; the first row of a name has its defaults.
const FLAGS: [(&str, &str); 27] = [
    ("dumbbell", ""),
    ("dumbbell", "--multipath 1 --single 7 --rate 5mbit --delay 3ms --queue 20p --congestion olia"),
    ("dumbbell", "--rate 1gbit --queue 64KB"),
    ("parking-lot", ""),
    ("parking-lot", "--links 1 --through 2 --local 3"),
    ("parking-lot", "--links 7 --rate 3mbit"),
    ("olia-a", ""),
    ("olia-a", "--n1 20 --n2 3 --c1 1.5mbit --c2 750kbit --congestion olia"),
    ("olia-a", "--delay 5ms --queue 50p"),
    ("olia-b", ""),
    ("olia-b", "--single --users 2"),
    ("olia-b", "--cx 1mbit --ct 100mbit"),
    ("olia-c", ""),
    ("olia-c", "--n1 1 --n2 30 --c2 3mbit"),
    ("torus", ""),
    ("torus", "--links 3 --narrow 1mbit --queue 40p"),
    ("torus", "--links 12 --rate 2mbit"),
    ("cell", ""),
    ("cell", "--homes 3 --phones 0 --cell 20mbit --line 6mbit"),
    ("leaf-spine", ""),
    ("leaf-spine", "--leaves 2 --spines 1 --hosts 1 --traffic incast"),
    ("leaf-spine", "--leaves 6 --hosts 8 --traffic incast --pairs 5 --size 32KB"),
    ("fat-tree", ""),
    ("fat-tree", "--k 2 --subflows 1 --traffic random"),
    ("fat-tree", "--k 6 --traffic incast --pairs 4 --size 100KB --subflows 8"),
    ("fat-tree", "--k 8 --traffic permutation --pairs 20 --subflows 2 --seed 9 --rate 10mbit"),
    ("fat-tree", "--k 16 --traffic random --pairs 2 --rate 10mbit"),
];

fn anabranch(arguments: &[&str], input: &str) -> (i32, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let output = command.args(arguments).write_stdin(input).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// The file that a topology with these flags prints.
fn printed(name: &str, flags: &str) -> String {
    let arguments: Vec<&str> = ["topology", name].into_iter().chain(flags.split_whitespace()).collect();
    let (code, text) = anabranch(&arguments, "");
    assert_eq!(code, 0, "{arguments:?}: {text}");
    text
}

#[test]
fn every_topology_passes_check_and_runs() {
    for (name, flags) in FLAGS {
        let text = printed(name, flags);
        let (code, checked) = anabranch(&["check", "-"], &text);
        assert_eq!(code, 0, "{name} {flags}: {checked}");
        let again = anabranch(&["check", "-"], &checked);
        assert_eq!(again, (0, checked), "{name} {flags}");
        let short = ["run", "-", "--set", "duration=30ms", "--set", "warmup=0s", "--set", "start_jitter=0s"];
        let (code, table) = anabranch(&short, &text);
        assert!(code == 0 && table.contains("minrtt"), "{name} {flags}: {table}");
    }
}

#[test]
fn files_are_short_however_many_hosts_they_have() {
    let lines = |name, flags| printed(name, flags).lines().count();
    assert_eq!(lines("fat-tree", "--k 2"), lines("fat-tree", "--k 16"));
    assert!(lines("fat-tree", "--k 8 --subflows 8") < 60);
    assert_eq!(lines("cell", "--homes 2"), lines("cell", "--homes 2000"));
    for name in ["dumbbell", "parking-lot", "olia-a", "olia-b", "olia-c", "torus", "cell", "leaf-spine", "fat-tree"] {
        assert!(lines(name, "") <= 90, "{name}: {}", lines(name, ""));
    }
}

#[test]
fn every_name_is_tried_above_and_has_an_example() {
    let (_, help) = anabranch(&["topology", "--help"], "");
    let commands = help.split("Commands:").nth(1).unwrap().lines().skip(1);
    let named = commands.map_while(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names: Vec<&str> =
        named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    assert!(names.len() >= 9, "{names:?}");
    for name in names {
        assert!(FLAGS.iter().filter(|(tried, _)| *tried == name).count() >= 2, "{name}");
        let (_, help) = anabranch(&["topology", name, "--help"], "");
        let example = help.lines().find_map(|line| line.trim().strip_prefix(&format!("anabranch topology {name} ")));
        printed(name, example.unwrap_or_else(|| panic!("{help}")));
    }
}

#[test]
fn flags_that_make_no_scenario_say_which() {
    let rows = [
        ("fat-tree --k 5", "an even number from 2 to 16"),
        ("fat-tree --subflows 33", "33 is not in 1..=32"),
        ("fat-tree --rate fast", "what these flags make"),
        ("olia-a --c1 0mbit", "a rate above zero"),
        ("dumbbell --congestion lai", "did you mean"),
        ("parking-lot --links 0", "0 is not in 1..=30"),
        ("leaf-spine --leaves 64 --spines 64 --hosts 64", "at most 8000 links"),
        ("dumbell", "dumbbell"),
    ];
    for (flags, message) in rows {
        let arguments: Vec<&str> = ["topology"].into_iter().chain(flags.split_whitespace()).collect();
        let (code, text) = anabranch(&arguments, "");
        assert!(code == 2 && text.contains(message), "{flags}: {code} {text}");
    }
}
