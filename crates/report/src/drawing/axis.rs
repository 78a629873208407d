//! A scale from values to points, with round ticks.

use crate::chart;

/// A scale of one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    /// Distance of ticks on a linear axis; none on a logarithmic one.
    step: Option<f64>,
}

impl Scale {
    /// For `values`, about `ticks` intervals long: from zero unless the axis is logarithmic or `tight`.
    pub fn of(axis: &chart::Axis, values: impl Iterator<Item = f64>, ticks: f64, tight: bool) -> Self {
        let all: Vec<f64> = values.filter(|value| value.is_finite() && (!axis.log || *value > 0.0)).collect();
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return Self { low: 0.0, high: 1.0, step: (!axis.log).then_some(0.5) };
        }
        if axis.log {
            let (low, high) = if low < high { (low, high) } else { (low / 2.0, high * 2.0) };
            return Self { low, high, step: None };
        }
        let (low, high) = if tight { (low, high) } else { (low.min(0.0), high.max(0.0)) };
        let high = if low < high { high } else { low + 1.0 };
        let step = round_step((high - low) / ticks);
        if tight {
            return Self { low, high, step: Some(step) };
        }
        Self {
            low: step * libm::floor(low / step + 1e-9),
            high: step * libm::ceil(high / step - 1e-9),
            step: Some(step),
        }
    }

    /// The least value.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The place of `value` from 0 to 1; a value beyond an end lies at the end.
    pub fn place(&self, value: f64) -> f64 {
        let share = match self.step {
            Some(_) => (value - self.low) / (self.high - self.low),
            None => libm::log(value.max(self.low) / self.low) / libm::log(self.high / self.low),
        };
        share.clamp(0.0, 1.0)
    }

    /// Values with their labels; on a logarithmic axis 1, 2 and 5, or over more than two decades powers of ten.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let Some(step) = self.step else { return self.log_ticks() };
        let (first, last) = (libm::ceil(self.low / step - 1e-9), libm::floor(self.high / step + 1e-9));
        let decimals = (-libm::floor(libm::log10(step) + 1e-9)).max(0.0) as usize;
        let count = (last - first).max(0.0) as usize;
        (0..=count).map(|n| step * (first + n as f64)).map(|value| (value, label(value, decimals))).collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let factors: &[f64] = if self.high / self.low > 100.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let decades = libm::floor(libm::log10(self.low)) as i32..=libm::ceil(libm::log10(self.high)) as i32;
        let values =
            decades.flat_map(|decade| factors.iter().map(move |factor| factor * libm::pow(10.0, f64::from(decade))));
        let within = values.filter(|value| *value >= self.low * 0.999 && *value <= self.high * 1.001);
        within.map(|value| (value, label(value, (-libm::floor(libm::log10(value) + 1e-9)).max(0.0) as usize))).collect()
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(least)));
    [1.0, 2.0, 5.0].into_iter().map(|factor| factor * power).find(|step| *step >= least * 0.999).unwrap_or(10.0 * power)
}

/// `0.05`, `2500`, `20k`, `5M`; `0` has no sign.
fn label(value: f64, decimals: usize) -> String {
    let size = libm::fabs(value);
    let plain = |value: f64| format!("{value}");
    match size {
        0.0..1e-9 => "0".to_owned(),
        1e6.. => plain(libm::round(value / 1e3) / 1e3) + "M",
        1e4.. => plain(libm::round(value) / 1e3) + "k",
        _ if decimals > 4 => format!("{value:e}"),
        _ => format!("{value:.decimals$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(log: bool, tight: bool, values: &[f64]) -> Vec<String> {
        let axis = chart::Axis { log, ..chart::Axis::linear("x") };
        let scale = Scale::of(&axis, values.iter().copied(), 5.0, tight);
        scale.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(labels(false, false, &[7.3]), ["0", "2", "4", "6", "8"]);
        assert_eq!(labels(false, false, &[-0.3, 0.4]), ["-0.4", "-0.2", "0", "0.2", "0.4"]);
        assert_eq!(labels(false, true, &[3.0, 9.0]), ["4", "6", "8"]);
        assert_eq!(labels(true, false, &[0.5, 30.0]), ["0.5", "1", "2", "5", "10", "20"]);
        assert_eq!(labels(true, false, &[1.0, 1e5]), ["1", "10", "100", "1000", "10k", "100k"]);
        assert_eq!(labels(false, false, &[]), ["0.0", "0.5", "1.0"].map(|text| text.replace("0.0", "0")));
    }

    #[test]
    fn a_value_has_its_place() {
        let scale = Scale::of(&chart::Axis::linear("x"), [8.0].into_iter(), 5.0, false);
        assert_eq!([0.0, 4.0, 8.0, 99.0].map(|value| scale.place(value)), [0.0, 0.5, 1.0, 1.0]);
    }
}
