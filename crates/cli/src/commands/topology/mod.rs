//! `anabranch topology`

mod centre;
mod shared;
mod testbed;

use crate::args::{CommonArguments, TopologyArguments};
use anabranch_scenario::quoted;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::load::Loaded;

/// A scenario file of many hosts. What the flags make of it has passed every check.
pub fn topology(arguments: &TopologyArguments) -> Result<String, Failure> {
    let text = match arguments {
        TopologyArguments::Dumbbell(own) => shared::dumbbell(own),
        TopologyArguments::ParkingLot(own) => shared::parking_lot(own),
        TopologyArguments::OliaA(own) => testbed::a(own),
        TopologyArguments::OliaB(own) => testbed::b(own),
        TopologyArguments::OliaC(own) => testbed::c(own),
        TopologyArguments::Torus(own) => shared::torus(own),
        TopologyArguments::Cell(own) => shared::cell(own),
        TopologyArguments::LeafSpine(own) => centre::leaf_spine(own),
        TopologyArguments::FatTree(own) => centre::fat_tree(own),
    };
    Loaded::given("what these flags make", &text, Vec::new()).map(|_| text)
}

/// The lines before the network. `about` is a comment.
fn opening(name: &str, about: &str, common: &CommonArguments) -> String {
    let CommonArguments { congestion, duration, warmup } = common;
    format!(
        "# {about}\nname         = {}\nduration     = {}\nwarmup       = {}\nstart_jitter = \"1s\"\n\n\
         [connection]\ncongestion = {}\n",
        quoted(name),
        quoted(duration),
        quoted(warmup),
        quoted(congestion)
    )
}

/// A `[[link]]` with a delay.
fn link(name: &str, rate: &str, delay: &str, queue: &str) -> String {
    bottleneck(name, rate, &quoted(queue)) + &format!("delay = {}\n", quoted(delay))
}

/// A `[[link]]` without a delay; `queue` is in TOML.
fn bottleneck(name: &str, rate: &str, queue: &str) -> String {
    format!("\n[[link]]\nname  = \"{name}\"\nrate  = {}\nqueue = {queue}\n", quoted(rate))
}

/// A `[[path]]` over links.
fn path(name: &str, route: &[&str]) -> String {
    format!("\n[[path]]\nname  = \"{name}\"\nroute = {}\n", list(route))
}

/// A `[[group]]` over paths.
fn group(name: &str, count: u32, paths: &[&str]) -> String {
    format!("\n[[group]]\nname  = \"{name}\"\ncount = {count}\npaths = {}\n", list(paths))
}

/// The lines that make a group one of TCP.
const TCP: &str = "mptcp = false\ncongestion = \"reno\"\n";

fn list(names: &[&str]) -> String {
    format!("[{}]", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
}
