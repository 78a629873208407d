//! The scenarios of Khalili, Gast, Popovic, Upadhyay and Le Boudec, "MPTCP is not Pareto-Optimal", CoNEXT 2012.

use super::{TCP, group, opening, path};
use crate::args::{OliaArguments, OliaBArguments, TestbedArguments};
use anabranch_scenario::quoted;
use anabranch_units::Rate;

/// Scenario A: users with two paths reach a server over access points of their own or over the shared one.
pub(super) fn a(own: &OliaArguments) -> String {
    let OliaArguments { n1, n2, c1, c2, testbed } = own;
    let about = "Scenario A: two-path users pass the server's bottleneck on both paths, and the access point on one.";
    [
        opening("scenario A", about, &testbed.common),
        bottleneck("server", times(*c1, *n1), testbed),
        bottleneck("ap", times(*c2, *n2), testbed),
        long(path("private", &["server"]), testbed),
        long(path("shared", &["server", "ap"]), testbed),
        long(path("single", &["ap"]), testbed),
        group("two-path", *n1, &["private", "shared"]),
        group("one-path", *n2, &["single"]) + TCP,
    ]
    .concat()
}

/// Scenario B: blue users have provider X and, over Y, provider T; red ones have T, and over X a second path to it.
pub(super) fn b(own: &OliaBArguments) -> String {
    let OliaBArguments { users, cx, ct, single, testbed } = own;
    let about = "Scenario B: does a second path of red users, over both X and T, take more from others than it brings?";
    let red = match single {
        true => group("red", *users, &["over-t"]) + TCP,
        false => group("red", *users, &["over-t", "over-both"]),
    };
    [
        opening("scenario B", about, &testbed.common),
        bottleneck("x", *cx, testbed),
        bottleneck("t", *ct, testbed),
        long(path("over-x", &["x"]), testbed),
        long(path("over-t", &["t"]), testbed),
        long(path("over-both", &["x", "t"]), testbed),
        group("blue", *users, &["over-x", "over-t"]),
        red,
    ]
    .concat()
}

/// Scenario C: users with two paths have an access point of their own and one that others share.
pub(super) fn c(own: &OliaArguments) -> String {
    let OliaArguments { n1, n2, c1, c2, testbed } = own;
    let about =
        "Scenario C: how much do users with an access point of their own take from those who have the other alone?";
    [
        opening("scenario C", about, &testbed.common),
        bottleneck("ap1", times(*c1, *n1), testbed),
        bottleneck("ap2", times(*c2, *n2), testbed),
        long(path("own", &["ap1"]), testbed),
        long(path("shared", &["ap2"]), testbed),
        group("two-path", *n1, &["own", "shared"]),
        group("one-path", *n2, &["shared"]) + TCP,
    ]
    .concat()
}

fn times(rate: Rate, users: u32) -> Rate {
    Rate::from_bps(rate.as_bps().saturating_mul(users.into()))
}

/// A path with the testbed's delay, which all have alike however many links they cross.
fn long(path: String, testbed: &TestbedArguments) -> String {
    format!("{path}delay = {}\n", quoted(&testbed.delay))
}

/// A link with the testbed's queue.
fn bottleneck(name: &str, rate: Rate, testbed: &TestbedArguments) -> String {
    let queue = testbed.queue.as_ref().map_or_else(|| red(rate), |queue| quoted(queue));
    super::bottleneck(name, &rate.to_string(), &queue)
}

/// RED of the testbed: at 10 Mbit/s no drops up to 25 packets, 10 % at 50, all at 100; in proportion at other rates.
fn red(rate: Rate) -> String {
    let packets = |at_10_mbit: f64| (at_10_mbit * rate.as_bps() as f64 / 1e7).max(1.0).round() as u64;
    let [min, max, limit] = [25.0, 50.0, 100.0].map(packets);
    format!(
        "{{ kind = \"red\", min = \"{min}p\", max = \"{max}p\", max_p = \"10%\", mean_packet = 1500, limit = \"{limit}p\" }}"
    )
}
