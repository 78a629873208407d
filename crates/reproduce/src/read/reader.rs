//! What every part of a `claims.toml` is checked by.

use super::text::{SideText, Word};
use crate::claim::{RATIO, Side};
use crate::paper::Row;
use anabranch_metrics::METRICS;
use anabranch_scenario::nearest;
use std::ops::Range;
use toml::Spanned;

/// Something wrong with a `claims.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The token's bytes in the text.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// Gathers mistakes, so that all of a file are told at once.
#[derive(Default)]
pub struct Reader {
    pub mistakes: Vec<Mistake>,
}

impl Reader {
    pub fn mistake(&mut self, at: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.mistakes.push(Mistake { at, message: message.into(), help });
    }

    pub fn needs<T>(&mut self, text: &Word, having: &str, key: &str) -> Option<T> {
        self.mistake(text.span(), format!("a claim with `{having}` needs `{key}`"), None);
        None
    }

    pub fn side(&mut self, text: &Spanned<SideText>, rows: &[Row]) -> Side {
        self.side_at(text.span(), text.get_ref(), rows)
    }

    fn side_at(&mut self, span: Range<usize>, text: &SideText, rows: &[Row]) -> Side {
        let side = match text {
            SideText::Row(row) => Side { row: row.clone(), metric: None, at: Vec::new(), per: None },
            SideText::Full { row, at, metric, per } => Side {
                row: row.clone(),
                metric: metric.as_ref().map(|metric| self.metric_or_ratio(span.clone(), metric)),
                at: at.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
                per: per.as_ref().map(|per| Box::new(self.side_at(span.clone(), per, rows))),
            },
        };
        self.row(span, &side.row, rows);
        side
    }

    pub fn row(&mut self, at: Range<usize>, name: &str, rows: &[Row]) {
        if !name.starts_with("single:") && !rows.iter().any(|row| row.label == name) {
            let rows: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
            self.unknown(at, "row of this item", name, &rows);
        }
    }

    /// What a claim may ask for: a metric, or how many times another it is.
    pub fn metric_or_ratio(&mut self, at: Range<usize>, name: &str) -> String {
        match name.split_once(RATIO) {
            Some((of, to)) => [of, to].map(|part| self.metric(at.clone(), part)).join(RATIO),
            None => self.metric(at, name),
        }
    }

    /// A metric, one of a path, or a curve's mean over a time.
    pub fn metric(&mut self, at: Range<usize>, name: &str) -> String {
        let bare = name.strip_prefix("path.").and_then(|rest| rest.rsplit_once('.')).map_or(name, |(_, metric)| metric);
        // Curves are named by schedulers and paths: whether there is one only a run can tell.
        if !name.contains('[') && !METRICS.iter().any(|metric| metric.name == bare) {
            let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            self.unknown(at, "metric", bare, &names);
        }
        name.to_owned()
    }

    pub fn unknown(&mut self, at: Range<usize>, what: &str, typed: &str, known: &[&str]) {
        let help = match nearest(typed, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("there are {}", known.iter().filter(|k| !k.is_empty()).copied().collect::<Vec<_>>().join(", "))
            }
        };
        self.mistake(at, format!("`{typed}` is no {what}"), Some(help));
    }
}
