//! Metrics: names, units, how they are shown. Every table, chart and file reads them here.

pub mod names;
mod reference;
mod scale;
mod table;

pub use reference::MetricRef;
pub use scale::Scale;
pub use table::METRICS;

use crate::inference::Better;

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricInfo {
    /// Name in results.
    pub name: &'static str,
    /// Name in tables and charts.
    pub label: &'static str,
    /// Unit in results; empty for counts and ratios.
    pub unit: &'static str,
    /// The unit in which tables show it.
    pub scale: Scale,
    /// Which end is the good one; `None` where neither is.
    pub better: Option<Better>,
    /// Values below zero have a meaning.
    pub signed: bool,
    /// Definition of the metric, in a sentence or two.
    pub about: &'static str,
    /// One value per path, not one per run.
    pub per_path: bool,
}

impl MetricInfo {
    const fn new(name: &'static str, label: &'static str, about: &'static str, per_path: bool) -> Self {
        let (unit, scale) = scale::of_name(name);
        Self { name, label, unit, scale, better: None, signed: false, about, per_path }
    }

    const fn more(self) -> Self {
        Self { better: Some(Better::Higher), ..self }
    }

    const fn less(self) -> Self {
        Self { better: Some(Better::Lower), ..self }
    }

    const fn in_ms(self) -> Self {
        Self { scale: Scale::MS, ..self }
    }

    const fn in_percent(self) -> Self {
        Self { scale: Scale::PERCENT, ..self }
    }

    const fn decimals(self, decimals: usize) -> Self {
        Self { scale: Scale { decimals, ..self.scale }, ..self }
    }

    const fn signed(self) -> Self {
        Self { signed: true, ..self }
    }
}

/// Where a metric of the connection is shown. Each level has all that the levels below it have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prominence {
    /// In files, and in charts that the reader unfolds.
    Listed,
    /// Also in the report's summary and comparisons.
    Summarised,
    /// Also in the table on the terminal.
    Tabled,
    /// The metric's chart is open.
    Charted,
    /// The measure of one kind of traffic. The table on the terminal has only the [`main_metric`] of these.
    Main,
}

/// A place in the order of columns.
struct Shown {
    name: &'static str,
    prominence: Prominence,
}

const fn shown(name: &'static str, prominence: Prominence) -> Shown {
    Shown { name, prominence }
}

/// All metrics above [`Prominence::Listed`], in the order of columns. Of several main metrics that a row has, the last is
/// the main one: each exists for one kind of traffic only, except goodput.
const SHOWN: [Shown; 31] = [
    shown(names::GOODPUT, Prominence::Main),
    shown(names::COMPLETION, Prominence::Main),
    shown(names::FLOW_COMPLETION, Prominence::Main),
    shown(names::RESPONSE, Prominence::Main),
    shown(names::FRAME_DELAY, Prominence::Main),
    shown(names::QOE, Prominence::Main),
    shown(names::BITRATE, Prominence::Tabled),
    shown(names::STARTUP, Prominence::Tabled),
    shown(names::STALL, Prominence::Charted),
    shown(names::SWITCHES, Prominence::Tabled),
    shown(names::GOODPUT_DOWN, Prominence::Tabled),
    shown(names::GOODPUT_UP, Prominence::Tabled),
    shown(names::COMPLETION_DOWN, Prominence::Tabled),
    shown(names::COMPLETION_UP, Prominence::Tabled),
    shown("app_delay_p99_s", Prominence::Charted),
    shown(names::LATE, Prominence::Charted),
    shown(names::LATE_DOWN, Prominence::Summarised),
    shown(names::LATE_UP, Prominence::Summarised),
    shown(names::LATE_PER_MINUTE, Prominence::Tabled),
    shown(names::FREEZE, Prominence::Tabled),
    shown("response_p99_s", Prominence::Charted),
    shown("flow_completion_p95_s", Prominence::Charted),
    shown("flow_completion_max_s", Prominence::Tabled),
    shown(names::BEST_SINGLE_RATIO, Prominence::Tabled),
    shown(names::BENEFIT, Prominence::Charted),
    shown(names::ORACLE_RATIO, Prominence::Tabled),
    shown(names::OFO_MEAN, Prominence::Charted),
    shown("opportunistic_packets", Prominence::Tabled),
    shown("reinjected_packets", Prominence::Summarised),
    shown(names::RETRANSMITTED, Prominence::Summarised),
    shown(names::PRICE, Prominence::Summarised),
];

impl MetricInfo {
    /// The metric of the connection that is called `name`.
    pub fn of_run(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|info| !info.per_path && info.name == name)
    }

    /// The metric of a path that is called `name`.
    pub fn of_path(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|info| info.per_path && info.name == name)
    }

    /// Where it is shown.
    pub fn prominence(&self) -> Prominence {
        let place = SHOWN.iter().find(|shown| !self.per_path && shown.name == self.name);
        place.map_or(Prominence::Listed, |shown| shown.prominence)
    }

    /// The label with the unit of `scale`: `OFO mean, KiB`.
    pub fn label_in(&self, scale: Scale) -> String {
        scale.after(self.label)
    }
}

/// The metrics of the connection that have at least this prominence, in the order of columns.
pub fn shown_metrics(least: Prominence) -> impl Iterator<Item = &'static MetricInfo> {
    let shown = SHOWN.iter().filter(move |shown| shown.prominence >= least);
    shown.filter_map(|shown| MetricInfo::of_run(shown.name))
}

/// The main metric of runs which have the metrics that `has` knows: a video's QoE, else the frames' delay, else the response time, else
/// the completion time (of several flows, that of each), else goodput.
pub fn main_metric(has: impl Fn(&str) -> bool) -> &'static MetricInfo {
    let present = shown_metrics(Prominence::Main).filter(|info| has(info.name));
    present.last().unwrap_or(&METRICS[0])
}

/// The main metrics of runs that have the metrics `names`, by their names in results: one for each of several applications, else the
/// [`main_metric`]. Of an application with deadlines it is the late frames per minute.
pub fn main_metrics<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<(String, &'static MetricInfo)> {
    let names: Vec<&str> = names.into_iter().collect();
    let mut applications: Vec<(&str, Vec<&str>)> = Vec::new();
    for (application, metric) in names.iter().filter_map(|name| MetricRef::parse(name).application()) {
        match applications.iter_mut().find(|(known, _)| *known == application) {
            Some((_, metrics)) => metrics.push(metric),
            None => applications.push((application, vec![metric])),
        }
    }
    if applications.is_empty() {
        let main = main_metric(|name| names.contains(&name));
        return vec![(main.name.to_owned(), main)];
    }
    let of = |(application, metrics): (&str, Vec<&str>)| {
        let late = MetricInfo::of_run(names::LATE_PER_MINUTE).filter(|late| metrics.contains(&late.name));
        let main = late.unwrap_or_else(|| main_metric(|name| metrics.contains(&name)));
        (MetricRef::of_application(application, main.name), main)
    };
    applications.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_units() {
        for metric in METRICS {
            let unit = match metric.name {
                n if n.ends_with("_bps") => "bit/s",
                n if n.ends_with("_s") => "s",
                n if n.ends_with("_bytes") => "byte",
                n if n.ends_with("_packets") => "packet",
                _ => "",
            };
            assert_eq!(metric.unit, unit, "{}", metric.name);
        }
    }

    #[test]
    fn names_and_labels_are_unique_within_their_kind() {
        for (i, a) in METRICS.iter().enumerate() {
            assert!(METRICS[..i].iter().all(|b| (a.name, a.per_path) != (b.name, b.per_path)), "{}", a.name);
            let same = |b: &&MetricInfo| (a.label, a.unit, a.per_path) == (b.label, b.unit, b.per_path);
            assert!(!METRICS[..i].iter().any(|b| same(&b)), "two metrics are called {}", a.label);
        }
    }

    #[test]
    fn what_is_shown_is_a_metric_of_the_connection_and_has_one_place() {
        for (i, shown) in SHOWN.iter().enumerate() {
            assert!(MetricInfo::of_run(shown.name).is_some(), "{}", shown.name);
            assert!(SHOWN[..i].iter().all(|other| other.name != shown.name), "{}", shown.name);
        }
    }

    #[test]
    fn a_main_metric_has_a_good_end() {
        for info in shown_metrics(Prominence::Main) {
            let higher = [names::GOODPUT, names::QOE].contains(&info.name);
            let better = if higher { Better::Higher } else { Better::Lower };
            assert_eq!(info.better, Some(better), "{}: times are to be short", info.name);
        }
    }

    #[test]
    fn of_several_main_metrics_the_one_of_the_traffic_says_most() {
        let of = |names: &[&str]| main_metric(|name| names.contains(&name)).name;
        assert_eq!(of(&[]), "goodput_bps");
        assert_eq!(of(&["completion_s", "goodput_bps"]), "completion_s");
        assert_eq!(of(&["goodput_bps", "completion_s", "flow_completion_mean_s"]), "flow_completion_mean_s");
        assert_eq!(of(&["goodput_bps", "completion_s", "response_mean_s"]), "response_mean_s");
        assert_eq!(of(&["goodput_bps", "app_delay_mean_s", "completion_s"]), "app_delay_mean_s");
        assert_eq!(of(&["goodput_bps", "qoe", "stall_s"]), "qoe");
    }

    #[test]
    fn each_of_several_applications_has_a_main_metric() {
        let of =
            |names: &[&str]| main_metrics(names.iter().copied()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(of(&["goodput_bps", "completion_s"]), ["completion_s"]);
        let several = [
            "goodput_bps",
            "traffic.call.app_delay_mean_s",
            "traffic.sync.goodput_bps",
            "traffic.call.late_per_minute",
        ];
        assert_eq!(of(&several), ["traffic.call.late_per_minute", "traffic.sync.goodput_bps"]);
        let telemetry = ["traffic.telemetry.goodput_bps", "traffic.telemetry.app_delay_mean_s"];
        assert_eq!(of(&telemetry), ["traffic.telemetry.app_delay_mean_s"]);
    }
}
