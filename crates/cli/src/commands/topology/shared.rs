//! Topologies of links that pairs share.

use super::{TCP, group, link, opening, path};
use crate::args::{CellArguments, DumbbellArguments, ParkingLotArguments, TorusArguments};

pub(super) fn dumbbell(own: &DumbbellArguments) -> String {
    let DumbbellArguments { multipath, single, rate, delay, queue, common } = own;
    let about = "A dumbbell: do two subflows get more than one TCP at the same bottleneck?";
    [
        opening("dumbbell", about, common),
        link("bottleneck", rate, delay, queue),
        path("first", &["bottleneck"]),
        path("second", &["bottleneck"]),
        group("multipath", *multipath, &["first", "second"]),
        group("single", *single, &["first"]) + TCP,
    ]
    .concat()
}

pub(super) fn parking_lot(own: &ParkingLotArguments) -> String {
    let ParkingLotArguments { links, through, local, rate, delay, queue, common } = own;
    let about = "A parking lot: pairs that cross every link meet others at each of them.";
    let names: Vec<String> = (1..=*links).map(|n| format!("l{n}")).collect();
    let route: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut text = opening("parking lot", about, common);
    text.extend(route.iter().map(|name| link(name, rate, delay, queue)));
    text += &path("through", &route);
    text.extend(route.iter().map(|name| path(&format!("over-{name}"), &[name])));
    text += &group("through", *through, &["through"]);
    text += TCP;
    text.extend(route.iter().map(|name| group(&format!("at-{name}"), *local, &[&format!("over-{name}")]) + TCP));
    text
}

pub(super) fn torus(own: &TorusArguments) -> String {
    let TorusArguments { links, rate, narrow, delay, queue, common } = own;
    let about =
        "A torus (Wischik et al., NSDI 2011): each pair has the paths of two neighbours, and can shift load away.";
    let mut text = opening("torus", about, common);
    for n in 1..=*links {
        let rate = narrow.as_ref().filter(|_| n == 3).unwrap_or(rate);
        text += &link(&format!("l{n}"), rate, delay, queue);
    }
    text.extend((1..=*links).map(|n| path(&format!("p{n}"), &[&format!("l{n}")])));
    let next = |n: u32| n % links + 1;
    text.extend((1..=*links).map(|n| group(&format!("g{n}"), 1, &[&format!("p{n}"), &format!("p{}", next(n))])));
    text
}

pub(super) fn cell(own: &CellArguments) -> String {
    let CellArguments { homes, phones, cell, line, common } = own;
    let about =
        "A cell: homes have a line each and the cell, phones the cell alone. How much do homes leave to phones?";
    let mut text = opening("cell", about, common);
    text += &link("cell", cell, "25ms", "1bdp");
    text += &link("line", line, "10ms", "1bdp");
    text += "per_pair = true               # each home has its own\n";
    text += &path("over-line", &["line"]);
    text += &path("over-cell", &["cell"]);
    text += &group("homes", *homes, &["over-line", "over-cell"]);
    if *phones > 0 {
        text += &group("phones", *phones, &["over-cell"]);
        text += TCP;
    }
    text
}
