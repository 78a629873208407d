//! A scenario is run from Rust: two schedulers over two paths, and plain TCP over each.

use anabranch_run::{Options, Plan, Runner, Serial, Variant, VirtualTime};
use anabranch_scenario::{Diagnostic, NoFiles, PlugIn, Source, read, scheduler};
use std::error::Error;
use std::sync::Arc;

const SCENARIO: &str = r#"
name = "Wi-Fi and LTE"
repeat = 5

[[path]]
name = "wifi"
rate = "30mbit"
delay = "15ms"
loss = "0.5%"

[[path]]
name = "lte"
rate = "15mbit"
delay = "45ms"

[[traffic]]
kind = "bulk"
size = "4MiB"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let source = Source { name: "example.toml".into(), text: SCENARIO.into() };
    // Errors are lists of diagnostics: file, line, word, and the nearest valid one.
    let said = |wrong: Vec<Diagnostic>| wrong.iter().map(|one| one.message.clone()).collect::<Vec<_>>().join("; ");
    let document = read(&source, &[], &NoFiles).map_err(said)?;
    let variant = |(cell, scenario)| Variant { cell, scenario: Arc::new(scenario) };
    let variants: Vec<Variant> = document.cells.into_iter().map(variant).collect();
    let schedulers: Result<Vec<PlugIn>, _> =
        ["minrtt", "blest"].map(|name| scheduler("example", name)).into_iter().collect();
    let schedulers = schedulers.map_err(said)?;
    let plan = Plan::new(&variants, &Options { schedulers, ..Options::default() });
    let results = Runner { driver: &VirtualTime::default(), pool: &Serial, observer: &() }.run(&plan)?;
    for summary in results.summary.iter().filter(|summary| &*summary.metric == "completion_s") {
        println!("{:12} {:.3} s, mean of {}", summary.scheduler, summary.mean, summary.n);
    }
    results.diagnosis.iter().for_each(|finding| println!("{}", finding.text));
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
