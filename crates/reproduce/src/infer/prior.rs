//! The knowledge of a parameter before any run.

use anabranch_scenario::Override;

/// How the values of a range are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal steps are equally likely.
    Linear,
    /// Equal factors are equally likely.
    Log,
}

/// One value of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The value, or its name.
    pub name: String,
    /// The keys that it sets.
    pub set: Vec<Override>,
}

/// A range of numbers with one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The keys, all of which get the drawn value.
    pub keys: Vec<String>,
    /// Least value; above zero where the spacing is logarithmic.
    pub low: f64,
    /// Greatest value, above `low`.
    pub high: f64,
    /// Written behind the number: `ms`, `p`; empty for a plain number.
    pub unit: String,
    /// Whole numbers alone.
    pub whole: bool,
    /// How the values are spread.
    pub spacing: Spacing,
}

/// The values that a parameter may have.
#[derive(Clone, Debug, PartialEq)]
pub enum Prior {
    /// Each of these is as likely as any other.
    List(Vec<Choice>),
    /// Any of a range.
    Range(Range),
}

/// Cells into which a range is divided where shares are counted.
const CELLS: usize = 10;

impl Prior {
    /// The cells in which shares are counted, each as likely as any other: the values of a list, tenths of a range.
    pub fn cells(&self) -> usize {
        match self {
            Self::List(choices) => choices.len(),
            Self::Range(_) => CELLS,
        }
    }

    /// The cell of a position from 0 (the first value) to 1 (behind the last).
    pub fn cell(&self, position: f64) -> usize {
        ((position * self.cells() as f64) as usize).min(self.cells() - 1)
    }

    /// The value at a position, as a scenario file has it.
    pub fn text(&self, position: f64) -> String {
        match self {
            Self::List(choices) => choices[self.cell(position)].name.clone(),
            Self::Range(range) => range.text(position),
        }
    }

    /// The settings of the value at a position.
    pub fn set(&self, position: f64) -> Vec<Override> {
        match self {
            Self::List(choices) => choices[self.cell(position)].set.clone(),
            Self::Range(range) => {
                let text = range.text(position);
                range.keys.iter().map(|key| Override::new(ORIGIN, key, &text)).collect()
            }
        }
    }

    /// Positions by which one sees whether all values are possible: the ends of a range, every value of a list.
    pub fn extremes(&self) -> Vec<f64> {
        match self {
            Self::List(choices) => (0..choices.len()).map(|n| (n as f64 + 0.5) / choices.len() as f64).collect(),
            Self::Range(_) => vec![0.0, 1.0],
        }
    }
}

/// The origin of settings, for messages.
pub(super) const ORIGIN: &str = "unsaid";

impl Range {
    fn text(&self, position: f64) -> String {
        // A whole number has a step of its own behind it.
        let high = if self.whole { self.high + 1.0 } else { self.high };
        let value = match self.spacing {
            Spacing::Linear => self.low + position * (high - self.low),
            Spacing::Log => libm::exp(libm::log(self.low) + position * (libm::log(high) - libm::log(self.low))),
        };
        let number = match self.whole {
            true => format!("{}", value.floor().clamp(self.low, self.high)),
            false => figures(value.clamp(self.low, self.high)),
        };
        format!("{number}{}", self.unit)
    }
}

/// Four figures of a number, without trailing zeros.
fn figures(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let decimals = (3.0 - libm::floor(libm::log10(value.abs()))).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: f64, high: f64, whole: bool, spacing: Spacing) -> Prior {
        Prior::Range(Range { keys: vec!["k".into()], low, high, unit: "ms".into(), whole, spacing })
    }

    #[test]
    fn the_middle_of_a_range_depends_on_its_spacing() {
        assert_eq!(range(1.0, 100.0, false, Spacing::Linear).text(0.5), "50.5ms");
        assert_eq!(range(1.0, 100.0, false, Spacing::Log).text(0.5), "10ms");
        assert_eq!(range(0.001, 0.1, false, Spacing::Log).text(0.0), "0.001ms");
        assert_eq!(range(1.0, 100_000.0, false, Spacing::Linear).text(1.0), "100000ms");
    }

    #[test]
    fn whole_numbers_are_equally_likely_up_to_both_ends() {
        let prior = range(2.0, 4.0, true, Spacing::Linear);
        let texts: Vec<String> = (0..9).map(|n| prior.text((f64::from(n) + 0.5) / 9.0)).collect();
        assert_eq!(texts.join(" "), "2ms 2ms 2ms 3ms 3ms 3ms 4ms 4ms 4ms");
        assert_eq!(prior.text(1.0), "4ms");
    }
}
