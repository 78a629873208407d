//! Values in a scenario file's notation.

use crate::quantity::{self, QueueLimit};
use crate::read::{Manager, Queue};
use crate::scenario::{Distribution, PlugIn, TimeRange};
use crate::tree::quoted;
use anabranch_engine::plugin::{Kind, Parameter};
use anabranch_network::{CodelSpec, LossSpec, ReorderSpec};
use anabranch_units::{Duration, Instant};

pub(super) fn shown(duration: Duration) -> String {
    quoted(&duration.to_string())
}

pub(super) fn range(range: TimeRange) -> String {
    if range.is_fixed() {
        return shown(range.min);
    }
    format!("{{ min = {}, max = {} }}", shown(range.min), shown(range.max))
}

pub(super) fn distribution(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Fixed => "\"fixed\"",
        Distribution::Exponential => "\"exponential\"",
    }
}

pub(super) fn instant(at: Instant) -> String {
    shown(at.since(Instant::ZERO))
}

/// In the largest unit that divides it.
pub(super) fn bytes(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let (unit, size) =
        units.into_iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size)).unwrap_or(("B", 1));
    quoted(&format!("{}{unit}", bytes / size))
}

/// In percent where that reads back to the same number, otherwise as a fraction.
pub(super) fn probability(p: f64) -> String {
    let percent = format!("{}%", p * 100.0);
    if quantity::probability(&percent) == Ok(p) { quoted(&percent) } else { format!("{p:?}") }
}

/// Per gigabyte where that reads back to the same number, otherwise per byte.
pub(super) fn price(price: f64) -> String {
    let per_gigabyte = format!("{}/GB", price * 1e9);
    if quantity::price(&per_gigabyte) == Ok(price) { quoted(&per_gigabyte) } else { format!("{price:?}") }
}

pub(super) fn loss(loss: &LossSpec) -> String {
    match *loss {
        LossSpec::None => probability(0.0),
        LossSpec::Bernoulli(p) => probability(p),
        LossSpec::GilbertElliott { p, r, h, k } => {
            let [p, r, h, k] = [p, r, h, k].map(probability);
            format!("{{ kind = \"gilbert-elliott\", p = {p}, r = {r}, h = {h}, k = {k} }}")
        }
    }
}

pub(super) fn reorder(reorder: ReorderSpec) -> String {
    format!("{{ probability = {}, by = {} }}", probability(reorder.probability), shown(reorder.by))
}

pub(super) fn outages(outages: &[(Instant, Instant)]) -> String {
    let pairs: Vec<_> = outages.iter().map(|(from, to)| format!("[{}, {}]", instant(*from), instant(*to))).collect();
    format!("[{}]", pairs.join(", "))
}

pub(super) fn queue(queue: &Queue) -> String {
    let limit = self::limit(queue.limit);
    match queue.manager {
        Manager::Nobody => limit,
        Manager::Codel(CodelSpec { target, interval, ecn }) => {
            let (target, interval) = (shown(target), shown(interval));
            format!("{{ kind = \"codel\", limit = {limit}, target = {target}, interval = {interval}, ecn = {ecn} }}")
        }
        Manager::Red(red) => {
            let threshold = |amount: f64| match red.in_bytes && amount > 0.0 {
                true => quoted(&format!("{amount}B")),
                false => format!("{amount:?}"),
            };
            let (min, max, mean) = (threshold(red.min), threshold(red.max), red.mean_packet);
            let [max_p, weight] = [red.max_p, red.weight].map(probability);
            let (gentle, wait, ecn) = (red.gentle, red.wait, red.ecn);
            format!(
                "{{ kind = \"red\", limit = {limit}, min = {min}, max = {max}, max_p = {max_p}, weight = {weight}, \
                 gentle = {gentle}, wait = {wait}, ecn = {ecn}, mean_packet = {mean} }}"
            )
        }
    }
}

fn limit(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(packets) => quoted(&format!("{packets}p")),
        QueueLimit::Bytes(bytes) => self::bytes(bytes),
        QueueLimit::Bdp(millionths) => quoted(&format!("{}bdp", millionths as f64 / 1e6)),
    }
}

/// A scheduler or congestion control with every parameter.
pub(super) fn plug_in(plug_in: &PlugIn) -> String {
    let value = |parameter: &Parameter| {
        let given = plug_in.parameters.iter().find(|(name, _)| name == parameter.name);
        value(parameter, given.map_or(parameter.default, |(_, value)| *value))
    };
    let parameters: Vec<_> = known(plug_in).iter().map(|p| format!("{} = {}", p.name, value(p))).collect();
    match parameters.is_empty() {
        true => quoted(&plug_in.name),
        false => format!("{{ kind = {}, {} }}", quoted(&plug_in.name), parameters.join(", ")),
    }
}

impl PlugIn {
    /// `blest(delta=0.01)`, as scenarios and options accept it; `blest` where all parameters have their defaults.
    pub fn with_parameters(&self) -> String {
        let known = known(self);
        let written = |(name, number): &(String, f64)| {
            let parameter = known.iter().find(|parameter| parameter.name == name);
            let text = parameter.map_or_else(|| number.to_string(), |parameter| value(parameter, *number));
            format!("{name}={}", text.strip_suffix(".0").unwrap_or(&text))
        };
        let parameters: Vec<String> = self.parameters.iter().map(written).collect();
        match parameters.is_empty() {
            true => self.name.clone(),
            false => format!("{}({})", self.name, parameters.join(",")),
        }
    }
}

/// The parameters that it has. No scheduler has the name of a congestion control.
fn known(plug_in: &PlugIn) -> Vec<&'static Parameter> {
    match anabranch_schedulers::resolve(&plug_in.name) {
        Ok(found) => found.parameters().collect(),
        Err(_) => anabranch_congestion::find(&plug_in.name).map_or(&[][..], |entry| entry.parameters).iter().collect(),
    }
}

fn value(parameter: &Parameter, value: f64) -> String {
    if parameter.kind == Kind::Flag { (value != 0.0).to_string() } else { format!("{value:?}") }
}
