//! Metrics in units that people read.

/// How a metric is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// `OFO mean, KiB`.
    pub label: String,
    /// How much of the metric's unit makes one of the label's.
    pub per: f64,
}

impl Quantity {
    /// The metric `name`, whose values reach up to `greatest`.
    pub fn of(name: &str, greatest: f64) -> Self {
        let units: [(&str, &str, f64); 4] = [
            ("_bps", "Mbit/s", 1e6),
            ("_bytes", "KiB", 1024.0),
            ("_packets", "packets", 1.0),
            if greatest < 1.0 { ("_s", "ms", 1e-3) } else { ("_s", "s", 1.0) },
        ];
        let unit = units.iter().find_map(|(ending, unit, per)| Some((name.strip_suffix(ending)?, *unit, *per)));
        let (stem, unit, per) = unit.unwrap_or((name, "", 1.0));
        let words: Vec<&str> = stem.split('_').map(word).collect();
        let comma = if unit.is_empty() { "" } else { ", " };
        Self { label: format!("{}{comma}{unit}", words.join(" ")), per }
    }
}

/// Abbreviations as they are written.
fn word(word: &str) -> &str {
    match word {
        "ofo" => "OFO",
        "rbd" => "RBD",
        "srtt" => "SRTT",
        "rtt" => "RTT",
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_named_with_the_unit_that_is_read() {
        let label = |name, greatest| Quantity::of(name, greatest).label;
        assert_eq!(label("goodput_bps", 5e6), "goodput, Mbit/s");
        assert_eq!(label("ofo_mean_bytes", 5e6), "OFO mean, KiB");
        assert_eq!(label("app_delay_p99_s", 0.4), "app delay p99, ms");
        assert_eq!(label("completion_s", 4.0), "completion, s");
        assert_eq!(label("aggregation_benefit", 1.0), "aggregation benefit");
        assert_eq!(Quantity::of("completion_s", 0.5).per, 1e-3);
        assert_eq!(label("timeouts", 3.0), "timeouts");
    }
}
