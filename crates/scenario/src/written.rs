//! Values in a scenario file's notation.

use crate::quantity::{self, QueueLimit, UNLIMITED};
use crate::scenario::PlugIn;
use crate::tree::quoted;
use anabranch_network::Threshold;
use anabranch_plugin::registry::{Kind, Parameter};
use anabranch_units::{Duration, Instant};
use anabranch_workload::abr;

pub(crate) fn duration(duration: Duration) -> String {
    quoted(&duration.to_string())
}

pub(crate) fn instant(at: Instant) -> String {
    duration(at.since(Instant::ZERO))
}

/// In the largest unit that divides it.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let (unit, size) =
        units.into_iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size)).unwrap_or(("B", 1));
    quoted(&format!("{}{unit}", bytes / size))
}

/// In percent where that reads back to the same number, otherwise as a fraction.
pub(crate) fn probability(p: f64) -> String {
    let percent = format!("{}%", p * 100.0);
    if quantity::probability(&percent) == Ok(p) { quoted(&percent) } else { format!("{p:?}") }
}

/// Per gigabyte where that reads back to the same number, otherwise per byte.
pub(crate) fn price(price: f64) -> String {
    let per_gigabyte = format!("{}/GB", price * 1e9);
    if quantity::price(&per_gigabyte) == Ok(price) { quoted(&per_gigabyte) } else { format!("{price:?}") }
}

pub(crate) fn limit(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(packets) => quoted(&format!("{packets}p")),
        QueueLimit::Bytes(size) => bytes(size),
        QueueLimit::Unlimited => quoted(UNLIMITED),
        QueueLimit::Bdp(millionths) => quoted(&format!("{}bdp", millionths as f64 / 1e6)),
    }
}

/// The length of an average queue: a number is packets.
pub(crate) fn threshold(threshold: Threshold) -> String {
    match threshold.in_bytes {
        true => quoted(&format!("{}B", threshold.amount)),
        false => threshold.amount.to_string(),
    }
}

/// A scheduler or congestion control with every parameter.
pub(crate) fn plug_in(plug_in: &PlugIn) -> String {
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

/// The parameters that it has. No two registries have a name in common.
fn known(plug_in: &PlugIn) -> Vec<&'static Parameter> {
    let name = &plug_in.name;
    match anabranch_schedulers::resolve(name) {
        Ok(found) => found.parameters().collect(),
        Err(_) => {
            let congestion = anabranch_congestion::find(name).map(|entry| entry.parameters);
            let abr = || abr::registry::find(name).map(|entry| entry.parameters);
            congestion.or_else(abr).unwrap_or_default().iter().collect()
        }
    }
}

fn value(parameter: &Parameter, value: f64) -> String {
    if parameter.kind == Kind::Flag { (value != 0.0).to_string() } else { format!("{value:?}") }
}
