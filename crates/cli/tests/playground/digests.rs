//! The same runs, natively and in the browser.

use super::{digests_of, native, served};
use serde_json::{Value, json};

/// Schedulers of different kinds: one segment at a time, waiting, by a plan, redundant, random.
const SCHEDULERS: [&str; 7] = ["minrtt", "blest", "daps", "redundant", "ecf+or", "stms", "peekaboo"];

/// Every preset, with two of the schedulers and two seeds each, for two virtual seconds; beside them each path alone.
#[test]
fn more_than_fifty_runs_have_one_digest_in_chromium_and_natively() {
    let Some((_server, mut page)) = served() else { return };
    let names: Vec<String> =
        serde_json::from_value(page.value("page.model.catalogue.presets.map((one) => one.name)")).unwrap();
    page.value("import('/client.js').then(({ engine }) => { window.other = engine(); return true; })");
    let mut runs = 0;
    for (at, name) in names.iter().enumerate() {
        let pair = [SCHEDULERS[2 * at % 7], SCHEDULERS[(2 * at + 1) % 7]];
        let set = json!(["duration=2s", "warmup=0s", "repeat=2"]);
        let request = format!(
            "{{ name: 's.toml', text: page.model.catalogue.presets[{at}].text, set: {set}, schedulers: {} }}",
            json!(pair)
        );
        let ask = |call: &str, of: &str| {
            format!("window.other.ask('{call}', {{ request: {request} }}).then((answer) => {of})")
        };
        let ours: Value = page.value(&ask("compare", "answer.results.runs.map((run) => run.digest)"));
        let toml = page.text(&ask("describe", "answer.toml"));
        let theirs = digests_of(&native(&toml, &["--scheduler", &pair.join(",")]));
        assert_eq!(ours, json!(theirs), "{name} with {pair:?}");
        runs += theirs.len();
        // In slices, watched, with a witness around its scheduler: the same run.
        let live = "window.other.ask('advance', { to: 0.3 }).then(() => window.other.ask('advance', { to: 0.31 }))\
                    .then(() => window.other.ask('advance', { to: 1e9 })).then(() => window.other.ask('finish'))";
        let first = set_scheduler(&request, pair[0]);
        let live = page.text(&format!(
            "window.other.ask('begin', {{ request: {first} }}).then(() => {live}).then((one) => one.digest)"
        ));
        assert_eq!(live, theirs[0], "{name} with {} in slices", pair[0]);
    }
    assert!(runs > 50, "{runs} runs");
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// The request with this scheduler as the scenario's own, and packets to be followed.
fn set_scheduler(request: &str, scheduler: &str) -> String {
    request
        .replace("schedulers:", "packets: 5000, schedulers:")
        .replace("\"duration=2s\"", &format!("\"duration=2s\",\"connection.scheduler={scheduler}\""))
}
