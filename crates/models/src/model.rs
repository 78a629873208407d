//! The description of a model in the registry.

use anabranch_units::{Duration, Rate};

/// A closed-form model: parameters in, rows of numbers out.
pub struct Model {
    /// Canonical name.
    pub name: &'static str,
    /// One line for lists.
    pub about: &'static str,
    /// Source of the model, in a few words.
    pub source: &'static str,
    /// The reference page: headings *Idea*, *Equations*, *Departures*, *References*.
    pub page: &'static str,
    /// Inputs.
    pub parameters: &'static [Parameter],
    /// Columns of the rows.
    pub columns: &'static [Column],
    /// Computes the rows, each as long as `columns`. Values are in range.
    pub evaluate: fn(&Values<'_>) -> Vec<Vec<f64>>,
}

/// An input. The value of a parameter with words is the word's index.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// The default.
    pub default: f64,
    /// The allowed values.
    pub range: Range,
    /// Unit of the value.
    pub unit: Unit,
    /// One line.
    pub about: &'static str,
}

/// The values that a parameter allows.
#[derive(Clone, Copy, Debug)]
pub enum Range {
    /// Real numbers from the first to the second.
    Real(f64, f64),
    /// Whole numbers from the first to the second.
    Whole(u32, u32),
    /// One word of a list.
    Words(&'static [&'static str]),
}

/// The unit of a number, in SI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A ratio, a count of no particular thing, or a word.
    None,
    /// Packets.
    Packets,
    /// Round trips.
    Rounds,
    /// Bytes.
    Bytes,
    /// Bandwidth-delay products.
    Bdp,
    /// Bits per second.
    Rate,
    /// Seconds.
    Time,
    /// A probability.
    Probability,
}

/// One output.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name in JSON and CSV.
    pub name: &'static str,
    /// Unit of the numbers.
    pub unit: Unit,
    /// One line.
    pub about: &'static str,
}

impl Unit {
    /// Symbol of the unit; empty for none.
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::None | Unit::Probability => "",
            Unit::Packets => "packets",
            Unit::Rounds => "rounds",
            Unit::Bytes => "bytes",
            Unit::Bdp => "bdp",
            Unit::Rate => "bit/s",
            Unit::Time => "s",
        }
    }
}

impl Parameter {
    /// Value of the parameter; its default if the model does not have it.
    pub fn of(&self, values: &Values<'_>) -> f64 {
        values.index(self.name).map_or(self.default, |index| values.values[index])
    }

    /// Value of the parameter as a whole number.
    pub fn whole(&self, values: &Values<'_>) -> u32 {
        self.of(values) as u32
    }

    /// True if `value` is allowed. Never for NaN.
    pub fn accepts(&self, value: f64) -> bool {
        match self.range {
            Range::Real(min, max) => (min..=max).contains(&value),
            Range::Whole(min, max) => is_whole(value, min.into(), max.into()),
            Range::Words(words) => is_whole(value, 0.0, words.len() as f64 - 1.0),
        }
    }

    /// The allowed values in a few words.
    pub fn expected(&self) -> String {
        match self.range {
            Range::Real(min, max) => format!("{} to {}", self.show(min), self.show(max)),
            Range::Whole(min, max) => format!("a whole number from {min} to {max}"),
            Range::Words(words) => words.join(", "),
        }
    }

    /// A value as users write it: the word, or the number with its usual unit.
    pub fn show(&self, value: f64) -> String {
        match (self.range, self.unit) {
            (Range::Words(words), _) => words.get(value as usize).copied().unwrap_or_default().to_owned(),
            (_, Unit::Rate) => Rate::from_bps(value as u64).to_string(),
            (_, Unit::Time) => Duration::from_secs_f64(value).to_string(),
            (_, Unit::Probability) => format!("{}%", rounded(value * 100.0)),
            _ => rounded(value).to_string(),
        }
    }
}

fn is_whole(value: f64, min: f64, max: f64) -> bool {
    (min..=max).contains(&value) && libm::floor(value) == value
}

/// Removes the rounding error that a multiplication adds in the last digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.9}").parse().unwrap_or(value)
}

/// The values of a model's parameters.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    parameters: &'a [Parameter],
    values: Vec<f64>,
}

impl<'a> Values<'a> {
    /// The defaults.
    pub fn new(parameters: &'a [Parameter]) -> Self {
        Self { parameters, values: parameters.iter().map(|parameter| parameter.default).collect() }
    }

    /// Sets the parameter `name`; false if there is none or it does not accept `value`.
    #[must_use]
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        let index = self.index(name).filter(|index| self.parameters[*index].accepts(value));
        if let Some(index) = index {
            self.values[index] = value;
        }
        index.is_some()
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[Parameter] = &[
        Parameter { name: "rate", default: 1e7, range: Range::Real(1.0, 1e9), unit: Unit::Rate, about: "" },
        Parameter { name: "n", default: 2.0, range: Range::Whole(1, 4), unit: Unit::Packets, about: "" },
        Parameter { name: "mode", default: 1.0, range: Range::Words(&["a", "b"]), unit: Unit::None, about: "" },
    ];

    #[test]
    fn values_stay_in_range() {
        let mut values = Values::new(LIST);
        assert_eq!(LIST.iter().map(|p| p.of(&values)).collect::<Vec<_>>(), [1e7, 2.0, 1.0]);
        assert!(values.set("n", 4.0) && values.set("rate", 1e9) && values.set("mode", 0.0));
        for (name, value) in [("n", 2.5), ("n", 5.0), ("rate", f64::NAN), ("mode", 2.0), ("none", 0.0)] {
            assert!(!values.set(name, value), "{name} {value}");
        }
        assert_eq!(LIST.iter().map(|p| p.of(&values)).collect::<Vec<_>>(), [1e9, 4.0, 0.0]);
    }

    #[test]
    fn values_read_as_they_are_written() {
        assert_eq!(LIST[0].expected(), "1bit to 1gbit");
        assert_eq!([LIST[2].show(1.0), LIST[2].expected()], ["b", "a, b"]);
        let with = |unit, value| Parameter { unit, ..LIST[0] }.show(value);
        assert_eq!(with(Unit::Time, 0.015), "15ms");
        assert_eq!([with(Unit::Time, 2.5), with(Unit::Time, 1e-6), with(Unit::Time, 0.0)], ["2.5s", "1us", "0s"]);
        assert_eq!(with(Unit::Probability, 0.009), "0.9%");
    }
}
