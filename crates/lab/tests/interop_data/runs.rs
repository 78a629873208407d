//! Whole runs of scenarios, as in `anabranch run`.

use anabranch_run::{Driver, Options, Plan, Pool, Results, Runner, Variant};
use anabranch_scenario::{NoFiles, Override, Source, read, scheduler};
use std::sync::Arc;

/// Sender, receiver and scheduler: a kernel at one end or at both.
pub const WITH_A_KERNEL: [(&str, &str, &str); 3] =
    [("engine", "linux", "minrtt"), ("linux", "engine", "linux-default"), ("linux", "linux", "linux-default")];

/// Runs the scenario `text` with these keys set and these schedulers, without baselines.
pub fn run(
    driver: &dyn Driver,
    pool: &dyn Pool,
    text: &str,
    set: &[(&str, &str)],
    schedulers: &[&str],
    real_time: bool,
) -> Results {
    let overrides: Vec<Override> = set.iter().map(|(key, value)| Override::new("the test", *key, *value)).collect();
    let source = Source { name: "a scenario".into(), text: text.into() };
    let cells = read(&source, &overrides, &NoFiles).expect("a valid scenario").cells.into_iter();
    let variants: Vec<Variant> = cells.map(|(cell, scenario)| Variant { cell, scenario: Arc::new(scenario) }).collect();
    let schedulers = schedulers.iter().map(|name| scheduler("the test", name).expect("a scheduler")).collect();
    let options = Options { schedulers, baselines: false, real_time, ..Options::default() };
    let plan = Plan::new(&variants, &options);
    driver.prepare(&plan).expect("this machine can");
    Runner { driver, pool, observer: &() }.run(&plan).expect("runs that end in order")
}
