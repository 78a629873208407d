//! `anabranch model`

mod common;

use common::{errors, output};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&output(&[arguments, &["--format", "json"]].concat())).unwrap()
}

#[test]
fn alone_it_lists_all_models_with_their_parameters() {
    let list = output(&["model"]);
    let listed = json(&["model"]);
    let csv = output(&["model", "--format", "csv"]);
    assert_eq!(csv.lines().next(), Some("model,parameter,default,range,unit,meaning"));
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), anabranch_models::all().len() + 1);
    for model in listed {
        let name = model["name"].as_str().unwrap();
        assert!(list.contains(&format!("\n{name}: ")) || list.starts_with(name), "{name}");
        assert!(!model["source"].as_str().unwrap().is_empty());
        for parameter in model["parameters"].as_array().unwrap() {
            let parameter_name = parameter["parameter"].as_str().unwrap();
            assert!(list.contains(&format!("\n| {parameter_name} ")), "{parameter_name}");
            assert!(csv.contains(&format!("\n{name},{parameter_name},")), "{parameter_name}");
            // The default reads back.
            let set = format!("{parameter_name}={}", parameter["default"].as_str().unwrap());
            assert_eq!(output(&["model", name, "--set", &set]), output(&["model", name]), "{set}");
        }
    }
}

#[test]
fn every_model_is_explained_in_the_same_form() {
    for model in json(&["model"]).as_array().unwrap() {
        let name = model["name"].as_str().unwrap();
        let page = output(&["explain", name]);
        assert!(page.starts_with(&format!("{name} (model): ")) && page.contains("\nsource: "), "{page}");
        let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# ")).collect();
        assert_eq!(headings[..4], ["Idea", "Equations", "Departures", "References"], "{name}");
        assert_eq!(page.matches("```").count() % 2, 0, "{name}");
        for column in model["columns"].as_array().unwrap() {
            assert!(page.contains(column["column"].as_str().unwrap()), "{name}");
        }
    }
}

#[test]
fn the_examples_of_the_help_work() {
    let help = output(&["model", "--help"]);
    let examples: Vec<Vec<&str>> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  anabranch "))
        .map(|line| line.split(' ').collect())
        .collect();
    assert!(examples.len() >= 5, "{help}");
    for example in examples {
        assert!(output(&example).lines().count() > 2, "{example:?}");
    }
}

#[test]
fn a_table_has_the_settings_and_one_row_a_value() {
    insta::assert_snapshot!(
        output(&["model", "bufferbloat-loss", "--set", "bdp=floor", "--set", "rate=10mbit", "--sweep", "buffer=0,1,8"]),
        @r"
    bufferbloat-loss: loss rate of a flow that fills a bottleneck's buffer, over the buffer's size
    rate=10mbit rtt=15ms packet=1500 bdp=floor delayed_ack=2

    buffer      bdp  storage  cycle    cycle  loss ratio  cycle text  cycle text  loss ratio text
            packets  packets     ms  packets           %          ms     packets                %
    ─────────────────────────────────────────────────────────────────────────────────────────────
    0            12       12    152      139      0.7194         122         114           0.8772
    1            12       24    562      493      0.2028         504         444           0.2252
    8            12      108  10693     9019      0.0111       10432        8802           0.0114

    `anabranch explain bufferbloat-loss` says what these are.
    "
    );
}

#[test]
fn figures_have_the_digits_that_say_something() {
    let text = output(&["model", "delayed-start", "--sweep", "gamma=1..8"]);
    let longest = text.split_whitespace().filter_map(|word| word.split_once('.')).map(|(_, digits)| digits.len()).max();
    assert_eq!(longest, Some(4), "{text}");
}

#[test]
fn sweeps_multiply_and_keep_decimal_numbers() {
    let answer = json(&["model", "increment-efficiency", "--sweep", "beta=1,2", "--sweep", "gamma=1..2:0.1"]);
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 11);
    assert_eq!((rows[3]["beta"].as_f64(), rows[3]["gamma"].as_f64()), (Some(1.0), Some(1.3)));
    assert_eq!(rows[21]["efficiency"].as_f64(), Some(0.25));
    assert_eq!(answer["parameters"], serde_json::json!({ "window": 10.0 }));
    // Times go in tenths of the range, words by name.
    let cycle = output(&["model", "idle-restart", "--sweep", "idle=0s..1s", "--format", "csv"]);
    assert!(cycle.starts_with("idle,window_packets,ssthresh_packets\n0.0,80,40\n0.1,80,40\n"), "{cycle}");
    assert_eq!(cycle.lines().last(), Some("1.0,10,60"));
    let modes = output(&["model", "delayed-start", "--sweep", "loss_mode=any,literal", "--format", "csv"]);
    assert!(modes.lines().nth(1).unwrap().starts_with("any,8,213.38"), "{modes}");
}

#[test]
fn the_oracle_answers_for_a_scenario() {
    let csv = output(&["model", "oracle", "wifi-lte", "--format", "csv"]);
    let faster = output(&["model", "oracle", "wifi-lte", "--set", "path.lte.rate=100mbit", "--format", "csv"]);
    let least = |text: &str| -> Vec<f64> {
        text.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect()
    };
    let (least_before, least_after) = (least(&csv), least(&faster));
    assert!(csv.starts_with("paths,metric,value\nall,completion_s,"), "{csv}");
    assert!(least_before[0] < least_before[1] && least_before[0] < least_before[2], "{csv}");
    assert!(least_after[0] < least_before[0] && least_after[1] == least_before[1], "{faster}");
    assert!(output(&["model", "oracle", "wifi-lte"]).contains("\nleast completion time;"));
    assert_eq!(json(&["model", "oracle", "wifi-lte"])[0]["paths"], "all");
}

#[test]
fn mistakes_are_underlined_with_the_nearest_word() {
    let wrong = |arguments: &[&str], parts: &[&str]| {
        let text = errors(&[&["model"], arguments].concat(), 2);
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    wrong(&["delayed-strt"], &["there is no model `delayed-strt`", "did you mean `delayed-start`?"]);
    wrong(&["delayed-start", "--set", "gama=4"], &["`gama` is no parameter", "did you mean `gamma`?"]);
    wrong(&["delayed-start", "--set", "zzz=4"], &["choose from gamma, loss"]);
    wrong(&["delayed-start", "--set", "gamma"], &["`gamma` has no value"]);
    wrong(&["delayed-start", "--set", "loss_mode=anny"], &["`anny` is unknown", "did you mean `any`?"]);
    wrong(&["delayed-start", "--set", "gamma=51"], &["`51` is out of range", "0.01 to 50"]);
    wrong(&["delayed-start", "--set", "loss=1"], &["`1` cannot be read", "1%"]);
    wrong(&["rtt-cycle", "--set", "rate=10mbps"], &["10mbit"]);
    wrong(&["rtt-cycle", "--set", "steps=2.5"], &["a whole number from 1 to 1000"]);
    wrong(&["rtt-cycle", "--sweep", "rtt=10ms..1ms"], &["`10ms..1ms` is no range"]);
    wrong(&["rtt-cycle", "--sweep", "rtt=10ms..20ms:0s"], &["is no range"]);
    wrong(&["rtt-cycle", "--sweep", "steps=1..9:0.5"], &["leads to 1.5, which is out of range"]);
    wrong(&["delayed-start", "--sweep", "gamma=1,2", "--sweep", "gamma=3,4"], &["`gamma` is swept twice"]);
    wrong(&["increment-efficiency", "--sweep", "beta=0..9:0.01", "--sweep", "gamma=1..9:0.01"], &["10000 rows"]);
    wrong(&["rtt-cycle", "--set", "steps=1000", "--sweep", "buffer=0..9"], &["10000 rows"]);
    wrong(&["delayed-start", "--sweep", "gamma=0.01..50:0.0000001"], &["has more than 10000 values"]);
    // All at once.
    wrong(&["delayed-start", "--set", "gama=4", "--set", "gamma=51"], &["gama", "51"]);
    wrong(&["delayed-start", "wifi-lte"], &["takes no scenario"]);
    wrong(&["oracle"], &["needs a scenario"]);
    wrong(&["oracle", "wifi-ltee"], &["did you mean `wifi-lte`?"]);
    wrong(&["oracle", "wifi-lte", "--sweep", "a=1..2"], &["[sweep]"]);
    wrong(&["--set", "gamma=4"], &["no model is named"]);
}

/// The words between backticks.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_document_says_what_the_models_say() {
    let text = include_str!("../../../docs/models.md");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let [_, model, settings, quoted, printed, closest, changes, _] = row[..] else { panic!("{row:?}") };
        let model = code(model)[0];
        let column = match model {
            "delayed-start" => "expected_packets",
            "bufferbloat-loss" => "loss_ratio",
            _ => "efficiency",
        };
        let check = |told: &str, settings: &[&str]| {
            let arguments: Vec<&str> =
                ["model", model].into_iter().chain(settings.iter().flat_map(|set| ["--set", set])).collect();
            let value = json(&arguments)["rows"][0][column].as_f64().unwrap();
            let (number, per) = told.strip_suffix(" %").map_or((told, 1.0), |number| (number, 100.0));
            let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            assert_eq!(format!("{:.decimals$}", value * per), number, "{arguments:?}");
        };
        check(printed, &code(settings));
        check(closest, &[code(settings), code(changes)].concat());
        assert!(quoted.chars().next().is_some_and(|digit| digit.is_ascii_digit()), "{quoted}");
    }
}
