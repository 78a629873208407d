//! Metrics in units that people read.

use crate::chart::Axis;
use anabranch_metrics::{MetricRef, Scale};

/// How a metric is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// `OFO mean, KiB`.
    pub label: String,
    /// How much of the metric's unit makes one of the label's.
    pub per: f64,
    /// Whether values below zero have a meaning.
    pub signed: bool,
}

impl Quantity {
    /// The metric or curve `name`, whose values reach up to `greatest`: `path.wlan.srtt_mean_s` is `SRTT mean of path wlan, ms`.
    pub fn of(name: &str, greatest: f64) -> Self {
        let metric = MetricRef::parse(name);
        let (application, name) = metric.application().unzip();
        let owner = metric.path.map(of_path).or(application.map(of_application)).unwrap_or_default();
        Self::in_words(MetricRef { name: name.unwrap_or(metric.name), ..metric }, &owner, greatest)
    }

    /// The metric `name` of a path that is named elsewhere.
    pub fn of_any_path(name: &str, greatest: f64) -> Self {
        Self::in_words(MetricRef::of_path("", name), "", greatest)
    }

    fn in_words(metric: MetricRef<'_>, path: &str, greatest: f64) -> Self {
        let (label, scale, signed) = match metric.info() {
            Some(info) => (info.label.to_owned(), info.scale, info.signed),
            None => {
                let (stem, scale) = Scale::of_name(metric.name);
                (words(stem), scale, false)
            }
        };
        let scale = scale.fitted(greatest);
        Self { label: scale.after(&(label + path)), per: scale.per, signed }
    }

    /// A linear axis of it.
    pub fn axis(&self) -> Axis {
        Axis { label: self.label.clone(), log: false, signed: self.signed }
    }
}

/// A scenario's key as people say it: `path.wlan.recv_buffer` is `receive buffer of path wlan`.
pub fn key_in_words(key: &str) -> String {
    // Keys of paths are written as metrics of paths are.
    let MetricRef { path, name } = MetricRef::parse(key);
    let name = name.strip_prefix("connection.").unwrap_or(name);
    words(name) + &path.map(of_path).unwrap_or_default()
}

/// A key with the unit of its values: `delay of path wlan, ms`.
pub fn key_label(key: &str, unit: &str) -> String {
    let comma = if unit.is_empty() { "" } else { ", " };
    format!("{}{comma}{unit}", key_in_words(key))
}

/// Behind the label of an application's metric.
pub fn of_application(application: &str) -> String {
    format!(" of {application}")
}

fn of_path(path: &str) -> String {
    format!(" of path {path}")
}

fn words(name: &str) -> String {
    name.split(['_', '.']).map(word).collect::<Vec<_>>().join(" ")
}

/// `1.5Mbit` as 1.5 and `Mbit`.
pub fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim().trim_matches('"');
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok()?;
    Some((value, text[end..].trim()))
}

/// Values of the swept key `key` as numbers of one unit, with that unit: as written, or if they differ in units, in the least
/// of them. What is no number counts by its place.
pub fn positions(key: &str, texts: &[&str]) -> (String, Vec<f64>) {
    let by_place = || (String::new(), (0..texts.len()).map(|place| place as f64).collect());
    let Some(values) = texts.iter().map(|text| split(text)).collect::<Option<Vec<_>>>() else { return by_place() };
    let first = values.first().map_or("", |(_, unit)| unit);
    if values.iter().all(|(_, unit)| *unit == first) {
        return (first.to_owned(), values.iter().map(|(value, _)| *value).collect());
    }
    let one = |unit: &str| anabranch_scenario::swept(key, &format!("1{unit}"));
    let Some(ones) = values.iter().map(|(_, unit)| one(unit)).collect::<Option<Vec<_>>>() else { return by_place() };
    if ones.iter().any(|one| one.unit != ones[0].unit) {
        return by_place();
    }
    let least = ones.iter().map(|one| one.number).fold(f64::INFINITY, f64::min);
    let unit = ones.iter().position(|one| one.number == least).map_or("", |place| values[place].1);
    (unit.to_owned(), values.iter().zip(&ones).map(|((value, _), one)| value * one.number / least).collect())
}

/// Abbreviations as they are written.
fn word(word: &str) -> &str {
    match word {
        "ofo" => "OFO",
        "rbd" => "RBD",
        "srtt" => "SRTT",
        "rtt" => "RTT",
        "tcp" => "TCP",
        "recv" => "receive",
        "lambda" => "λ",
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swept_values_stand_on_one_scale() {
        let of = |key: &str, texts: &[&str]| positions(key, texts);
        assert_eq!(of("path.a.delay", &["10ms", "300ms"]), ("ms".into(), vec![10.0, 300.0]));
        assert_eq!(of("path.a.delay", &["10ms", "0.5sec"]), ("ms".into(), vec![10.0, 500.0]));
        assert_eq!(of("connection.recv_buffer", &["64KB", "1MB"]), ("KB".into(), vec![64.0, 1000.0]));
        assert_eq!(of("path.a.loss", &["0.5%", "5%"]), ("%".into(), vec![0.5, 5.0]));
        assert_eq!(of("traffic.flows", &["3", "7"]), (String::new(), vec![3.0, 7.0]));
        assert_eq!(of("congestion", &["lia", "olia"]), (String::new(), vec![0.0, 1.0]));
        assert_eq!(of("path.a.queue", &["1p", "2KB"]), (String::new(), vec![0.0, 1.0]));
        assert_eq!(of("path.a.queue", &["1KiB", "2KB"]), ("KB".into(), vec![1.024, 2.0]));
        // A key that scenarios do not have.
        assert_eq!(of("variant", &["1x", "2y"]), (String::new(), vec![0.0, 1.0]));
    }

    #[test]
    fn keys_are_told_in_words() {
        let keys = ["path.r2.delay", "connection.recv_buffer", "traffic.size", "tcp.idle_restart"].map(key_in_words);
        assert_eq!(keys, ["delay of path r2", "receive buffer", "traffic size", "TCP idle restart"]);
    }

    #[test]
    fn metrics_are_named_with_the_unit_that_is_read() {
        let label = |name, greatest| Quantity::of(name, greatest).label;
        assert_eq!(label("goodput_bps", 5e6), "goodput, Mbit/s");
        assert_eq!(label("ofo_mean_bytes", 5e6), "OFO mean, KiB");
        assert_eq!(label("app_delay_p99_s", 0.4), "frame p99, ms");
        assert_eq!(label("completion_s", 4.0), "completion time, s");
        assert_eq!(label("aggregation_benefit", 1.0), "benefit");
        assert_eq!(Quantity::of("completion_s", 0.5).per, 1e-3);
        assert_eq!(label("timeouts", 3.0), "timeouts");
        assert_eq!((label("srtt_s", 0.2), label("lambda", 2.0)), ("SRTT, ms".into(), "λ".into()), "curves");
        assert_eq!(label("traffic.call.app_delay_p99_s", 0.4), "frame p99 of call, ms");
        assert_eq!(label("path.cell.srtt_mean_s", 0.2), "SRTT mean of path cell, ms");
        assert_eq!(label("path.a.b.share", 0.2), "share of path a.b, %");
    }
}
