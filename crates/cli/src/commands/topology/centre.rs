//! Data centres.

use super::{TCP, list, opening};
use crate::args::{CentreArguments, CommonArguments, FatTreeArguments, LeafSpineArguments, TrafficPattern};
use anabranch_scenario::{Shape, quoted};

pub(super) fn fat_tree(own: &FatTreeArguments) -> String {
    let shape = Shape::FatTree { k: own.k };
    fabric("fat tree", shape, &format!("k     = {}\n", own.k), &own.centre)
}

pub(super) fn leaf_spine(own: &LeafSpineArguments) -> String {
    let LeafSpineArguments { leaves, spines, hosts, centre } = own;
    let shape = Shape::LeafSpine { leaves: *leaves, spines: *spines, hosts: *hosts };
    fabric("leaves and spines", shape, &format!("leaves = {leaves}\nspines = {spines}\nhosts = {hosts}\n"), centre)
}

fn fabric(name: &str, shape: Shape, keys: &str, centre: &CentreArguments) -> String {
    let CentreArguments { traffic, pairs, subflows, size, rate, delay, queue, congestion, duration, warmup, seed } =
        centre;
    let (pairing, usual) = match traffic {
        TrafficPattern::Permutation => ("permutation", shape.hosts()),
        TrafficPattern::Incast => ("incast", shape.hosts() - 1),
        TrafficPattern::Random => ("random", shape.hosts()),
    };
    let common = CommonArguments { congestion: congestion.clone(), duration: duration.clone(), warmup: warmup.clone() };
    let about = format!(
        "{} hosts. The seed draws who sends to whom, and the ways that the switches' hashes choose.",
        shape.hosts()
    );
    let mut text =
        opening(name, &about, &common).replace("\"1s\"\n\n", &format!("\"10ms\"\nseed         = {seed}\n\n"));
    text += &format!(
        "\n[[fabric]]\nname  = \"dc\"\nkind  = {}\n{keys}rate  = {}\ndelay = {}\nqueue = {}\n",
        quoted(shape.name()),
        quoted(rate),
        quoted(delay),
        quoted(queue)
    );
    let ways: Vec<String> = (1..=*subflows).map(|n| format!("way{n}")).collect();
    text.extend(ways.iter().map(|way| format!("\n[[path]]\nname   = \"{way}\"\nfabric = \"dc\"\n")));
    let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
    let count = pairs.unwrap_or(usual);
    text += &format!(
        "\n[[group]]\nname    = \"hosts\"\ncount   = {count}\npairing = \"{pairing}\"\npaths   = {}\n",
        list(&ways)
    );
    if *subflows == 1 {
        text += TCP;
    }
    if let Some(size) = size {
        text += &format!("traffic = {{ kind = \"bulk\", size = {} }}\n", quoted(size));
    }
    text
}
