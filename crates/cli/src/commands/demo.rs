//! `anabranch demo`

use super::run::{execute, print};
use crate::args::{DemoArguments, Format};
use crate::outcome::Outcome;
use anabranch_run::{Driver, Options};
use anabranch_scenario::Override;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::load::{Loaded, schedulers};
use anabranch_workbench::making::Making;
use anabranch_workbench::watch::Wanted;

/// The scenario, shortened so that two cores need well under a minute.
const SCENARIO: &str = "blest-3g-wlan-bulk";
const SHORTENED: [(&str, &str); 2] = [("warmup", "10s"), ("duration", "30s")];

/// The schedulers that the demo compares.
const SCHEDULERS: [&str; 6] = ["minrtt+pr", "minrtt", "daps", "otias", "blest+or", "roundrobin"];

const READING: &str = "
Benefit 1: the paths add up. 0: no better than the better path alone. Below 0: multipath hurts, for
bytes of one path wait for the other in an out-of-order queue (OFO). A small window matters:
  anabranch run blest-3g-wlan-bulk --scheduler minrtt+pr,daps --set recv_buffer=512KiB --repeat 10
Charts, series over time and p values, as a page to open:
  anabranch demo --out results --open
";

/// Six schedulers and both single paths on a built-in scenario.
pub fn demo(arguments: &DemoArguments, driver: &dyn Driver) -> Result<Outcome, Failure> {
    let mut overrides = SHORTENED.map(|(key, value)| Override::new("demo", key, value)).to_vec();
    overrides.push(Override::new("--repeat", "repeat", arguments.repeat.to_string()));
    let loaded = Loaded::builtin(SCENARIO, overrides)?;
    let options = Options { schedulers: schedulers("demo", &SCHEDULERS)?, ..Options::default() };
    let (results, wrong) = execute(&loaded, &options, &arguments.output, Wanted::default(), Making::Kept(driver))?;
    let reading = if arguments.output.format == Format::Table { READING } else { "" };
    Ok(Outcome::new(print(&results, arguments.output.format) + reading, wrong))
}
