//! The prediction of a closed-form model for a metric, and how well measurements follow it.

use anabranch_models::{Model, Values, find};
use std::fmt;

/// A number that a model gives, in the metric's own unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Name of the model.
    pub model: String,
    /// Parameters that are not at their defaults; a parameter that takes words has the index of one.
    pub set: Vec<(String, f64)>,
    /// Which of its columns.
    pub column: String,
}

impl Prediction {
    /// The column of every row, with more parameters set.
    ///
    /// # Errors
    /// In a few words, what there is not.
    pub fn column(&self, set: &[(String, f64)]) -> Result<Vec<f64>, String> {
        self.columns(set, &[&self.column]).map(|rows| rows.into_iter().map(|row| row[0]).collect())
    }

    /// The number, with more parameters set; of several rows the first.
    ///
    /// # Errors
    /// In a few words, what there is not.
    pub fn value(&self, set: &[(String, f64)]) -> Result<f64, String> {
        self.column(set)?.first().copied().ok_or_else(|| format!("{} gives nothing", self.model))
    }

    /// Every row of the model, of it these columns.
    pub(crate) fn columns(&self, set: &[(String, f64)], names: &[&str]) -> Result<Vec<Vec<f64>>, String> {
        let model = find(&self.model).ok_or_else(|| format!("there is no model {}", self.model))?;
        let mut values = Values::new(model.parameters);
        for (name, value) in self.set.iter().chain(set) {
            if !values.set(name, *value) {
                return Err(format!("{} takes no {name} = {value}", self.model));
            }
        }
        let places = names.iter().map(|name| place(model, name)).collect::<Result<Vec<_>, String>>()?;
        let rows = (model.evaluate)(&values);
        Ok(rows.into_iter().map(|row| places.iter().map(|&place| row[place]).collect()).collect())
    }
}

impl fmt::Display for Prediction {
    /// `delayed-start (rounds_factor = 1)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<String> = self.set.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        match set.is_empty() {
            true => f.write_str(&self.model),
            false => write!(f, "{} ({})", self.model, set.join(", ")),
        }
    }
}

fn place(model: &Model, column: &str) -> Result<usize, String> {
    let place = model.columns.iter().position(|known| known.name == column);
    place.ok_or_else(|| format!("{} has no column {column}", model.name))
}

/// R² of the regression of y on x: the square of their correlation. `None` if either does not vary.
pub(crate) fn r_squared(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let (x, y) = pairs.iter().fold((0.0, 0.0), |(x, y), pair| (x + pair.0 / n, y + pair.1 / n));
    let sum = |of: fn(f64, f64) -> f64| pairs.iter().map(|pair| of(pair.0 - x, pair.1 - y)).sum::<f64>();
    let (xx, yy, xy) = (sum(|x, _| x * x), sum(|_, y| y * y), sum(|x, y| x * y));
    (xx > 0.0 && yy > 0.0).then(|| xy * xy / (xx * yy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn efficiency(gamma: f64) -> Prediction {
        let set = vec![("gamma".to_owned(), gamma)];
        Prediction { model: "increment-efficiency".into(), set, column: "efficiency".into() }
    }

    #[test]
    fn later_settings_stand_over_earlier_ones() {
        assert_eq!(efficiency(2.0).value(&[]), Ok(0.25));
        assert_eq!(efficiency(2.0).value(&[("gamma".into(), 8.0)]), Ok(0.64));
        assert_eq!(
            efficiency(2.0).value(&[("delta".into(), 8.0)]),
            Err("increment-efficiency takes no delta = 8".into())
        );
        let column = Prediction { column: "effort".into(), ..efficiency(2.0) };
        assert_eq!(column.value(&[]), Err("increment-efficiency has no column effort".into()));
    }

    #[test]
    fn a_regression_explains_a_line_wholly_and_nothing_of_what_does_not_vary() {
        assert!((r_squared(&[(1.0, 5.0), (2.0, 3.0), (4.0, -1.0)]).unwrap() - 1.0).abs() < 1e-12);
        // Anscombe's first set (1973): R² = 0.67.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let pairs: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        assert!((r_squared(&pairs).unwrap() - 0.667).abs() < 5e-4);
        assert_eq!(r_squared(&[(1.0, 2.0), (3.0, 2.0)]), None);
    }
}
