//! The checks of every part of a `claims.toml`.

use super::text::{SideText, SpannedText};
use crate::claim::{RATIO, Side};
use crate::item_row::ItemRow;
use anabranch_metrics::{METRICS, MetricRef};
use anabranch_run::RowKind;
use anabranch_scenario::nearest;
use std::ops::Range;
use toml::Spanned;

/// Something wrong with a `claims.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The token's bytes in the text.
    pub at: Range<usize>,
    /// The mistake.
    pub message: String,
    /// A valid form.
    pub help: Option<String>,
}

/// Gathers mistakes, so that all of a file are reported at once.
#[derive(Default)]
pub struct Reader {
    pub mistakes: Vec<Mistake>,
}

impl Reader {
    pub fn mistake(&mut self, at: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.mistakes.push(Mistake { at, message: message.into(), help });
    }

    pub fn needs<T>(&mut self, text: &SpannedText, having: &str, key: &str) -> Option<T> {
        self.mistake(text.span(), format!("a claim with `{having}` needs `{key}`"), None);
        None
    }

    pub fn side(&mut self, text: &Spanned<SideText>, rows: &[ItemRow]) -> Side {
        self.side_at(text.span(), text.get_ref(), rows)
    }

    fn side_at(&mut self, span: Range<usize>, text: &SideText, rows: &[ItemRow]) -> Side {
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

    pub fn row(&mut self, at: Range<usize>, name: &str, rows: &[ItemRow]) {
        if !RowKind::of(name).is_single() && !rows.iter().any(|row| row.name == name) {
            let rows: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            self.unknown(at, "row of this item", name, &rows);
        }
    }

    /// The metric of a claim, or the ratio of two.
    pub fn metric_or_ratio(&mut self, at: Range<usize>, name: &str) -> String {
        match name.split_once(RATIO) {
            Some((of, to)) => [of, to].map(|part| self.metric(at.clone(), part)).join(RATIO),
            None => self.metric(at, name),
        }
    }

    /// A metric, one of a path, or a curve's mean over a time.
    pub fn metric(&mut self, at: Range<usize>, name: &str) -> String {
        let metric = MetricRef::parse(name);
        // Curves are named by schedulers and paths: whether there is one only a run can tell.
        if !name.contains('[') && metric.info().is_none() {
            let known = METRICS.iter().filter(|info| info.per_path == metric.path.is_some());
            let names: Vec<&str> = known.map(|info| info.name).collect();
            self.unknown(at, "metric", metric.name, &names);
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
