//! Claims about equations: their text.

use super::reader::Reader;
use super::text::{ClaimText, FigureText, ModelText, PointText};
use crate::claim::{Kind, Point, Statistic};
use crate::figure::Figure;
use crate::item_row::ItemRow;
use crate::prediction::Prediction;
use anabranch_models::{all, find};
use indexmap::IndexMap;
use toml::Spanned;

/// A line fits this number of points, whatever they are.
const LEAST_POINTS: usize = 3;
/// The number of lines that make the curve of a model.
const STEPS: u32 = 100;

impl Reader {
    /// The kind of a claim with `model`, `fit` or `cycle`.
    pub fn theory(&mut self, text: &ClaimText, rows: &[ItemRow]) -> Option<Kind> {
        let having = if text.fit.is_some() {
            "fit"
        } else if text.cycle.is_some() {
            "cycle"
        } else {
            "model"
        };
        let Some(published) = text.published else { return self.needs(&text.text, having, "published") };
        let Some([low, high]) = text.band else { return self.needs(&text.text, having, "band") };
        let (band, model) = ((low, high), text.model.as_ref().map(|model| self.prediction(model)));
        match (&text.fit, &text.cycle) {
            (None, None) => Some(Kind::Model { by: model?, published, band }),
            (Some(of), None) => {
                let Some(to) = model else { return self.needs(&text.text, having, "model") };
                if text.points.len() < LEAST_POINTS {
                    let message = format!("a fit needs {LEAST_POINTS} `points`");
                    self.mistake(text.text.span(), message, None);
                }
                let point = |text: &PointText| Point { at: pairs(&text.at), set: pairs(&text.set) };
                let points = text.points.iter().map(point).collect();
                for metric in text.measured.values() {
                    self.metric_or_ratio(text.text.span(), metric);
                }
                let measured = pairs(&text.measured);
                Some(Kind::Fit { of: self.side(of, rows), to, points, measured, published, band })
            }
            (None, Some(of)) => {
                let statistic = self.statistic(text, model)?;
                Some(Kind::Cycle { of: self.side(of, rows), statistic, published, band })
            }
            (Some(_), Some(of)) => {
                self.mistake(of.span(), "a claim is a fit or of a cycle, not both", None);
                None
            }
        }
    }

    /// A scatter plot with what models give over one of their parameters.
    pub fn scatter(&mut self, text: &FigureText, metric: String) -> Option<Figure> {
        let (Some(x), Some(over)) = (&text.x, &text.over) else {
            self.mistake(text.kind.span(), "a figure of kind \"scatter\" needs `x` and `over`", None);
            return None;
        };
        let x = self.metric_or_ratio(text.kind.span(), x);
        let [from, to] = text.range;
        let mut models = Vec::new();
        for model in &text.models {
            let prediction = self.prediction(model);
            let at = |step: u32| from + (to - from) * f64::from(step) / f64::from(STEPS);
            let point = |step| Ok((at(step), prediction.value(&[(over.get_ref().clone(), at(step))])?));
            match (0..=STEPS).map(point).collect::<Result<Vec<_>, String>>() {
                Ok(points) => models.push((prediction.to_string(), points)),
                Err(why) => self.mistake(over.span(), why, None),
            }
        }
        Some(Figure::Scatter { x, metric, models })
    }

    fn statistic(&mut self, text: &ClaimText, model: Option<Prediction>) -> Option<Statistic> {
        let Some(word) = &text.statistic else { return self.needs(&text.text, "cycle", "statistic") };
        match (word.get_ref().as_str(), model) {
            ("length", _) => Some(Statistic::Length),
            ("fall", _) => Some(Statistic::Fall),
            ("fit", Some(model)) => Some(Statistic::Fit(model)),
            ("fit", None) => self.needs(&text.text, "cycle", "model"),
            (other, _) => {
                self.unknown(word.span(), "statistic of a cycle", other, &["length", "fall", "fit"]);
                None
            }
        }
    }

    fn prediction(&mut self, text: &Spanned<ModelText>) -> Prediction {
        let ModelText { name, set, column } = text.get_ref();
        let prediction = Prediction { model: name.clone(), set: pairs(set), column: column.clone() };
        match find(name) {
            None => {
                let names: Vec<&str> = all().iter().map(|model| model.name).collect();
                self.unknown(text.span(), "model", name, &names);
            }
            Some(model) => {
                for parameter in set.keys().filter(|name| !model.parameters.iter().any(|known| known.name == **name)) {
                    let names: Vec<&str> = model.parameters.iter().map(|parameter| parameter.name).collect();
                    self.unknown(text.span(), "parameter of this model", parameter, &names);
                }
                if !model.columns.iter().any(|known| known.name == column) {
                    let names: Vec<&str> = model.columns.iter().map(|column| column.name).collect();
                    self.unknown(text.span(), "column of this model", column, &names);
                }
            }
        }
        prediction
    }
}

fn pairs<T: Clone>(settings: &IndexMap<String, T>) -> Vec<(String, T)> {
    settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}
