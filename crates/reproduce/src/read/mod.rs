//! `claims.toml` → a checked [`Paper`].

mod reader;
mod text;
mod theory;

pub use reader::Mistake;

use crate::claim::{Claim, Kind, Unit};
use crate::paper::{Figure, Item, Paper, Row, Sensitivity};
use anabranch_run::labels;
use anabranch_scenario::{Override, PlugIn};
use anabranch_units::Duration;
use reader::Reader;
use text::{ClaimText, FigureText, ItemText, PaperText, SensitivityText, Settings, Word};
use toml::Spanned;

/// Reads the text of a `claims.toml`.
///
/// # Errors
/// All that is wrong with it, or the first thing that keeps it from being read at all.
pub fn read(text: &str) -> Result<Paper, Vec<Mistake>> {
    let paper: PaperText = toml::from_str(text).map_err(|error| {
        vec![Mistake { at: error.span().unwrap_or(0..0), message: error.message().to_owned(), help: None }]
    })?;
    let mut reader = Reader::default();
    for (n, item) in paper.item.iter().enumerate() {
        if paper.item[..n].iter().any(|other| other.id.get_ref() == item.id.get_ref()) {
            reader.mistake(item.id.span(), format!("two items are called `{}`", item.id.get_ref()), None);
        }
    }
    let items: Vec<Item> = paper.item.into_iter().map(|item| reader.item(item)).collect();
    if !reader.mistakes.is_empty() {
        return Err(reader.mistakes);
    }
    Ok(Paper { key: paper.key, title: paper.title, authors: paper.authors, venue: paper.venue, items })
}

impl Reader {
    fn item(&mut self, item: ItemText) -> Item {
        let id = item.id.get_ref().clone();
        let rows = self.rows(&item.rows);
        item.packets.iter().for_each(|row| self.row(row.span(), row.get_ref(), &rows));
        let sensitivity = item.sensitivity.into_iter().map(|s| self.sensitivity(s, rows.len())).collect();
        Item {
            figures: item.figure.into_iter().filter_map(|figure| self.figure(figure)).collect(),
            claims: item.claim.into_iter().filter_map(|claim| self.claim(claim, &rows, &item.place)).collect(),
            variants: item.variants.into_iter().map(|(name, set)| (name, overrides("claims.toml", set))).collect(),
            quick: overrides("claims.toml", item.quick),
            packets: item.packets.into_iter().map(Spanned::into_inner).collect(),
            id,
            title: item.title,
            place: item.place,
            scenario: item.scenario,
            rows,
            baselines: item.baselines,
            curves: item.curves.map(Duration::from_secs_f64),
            live: item.live,
            sensitivity,
        }
    }

    /// Schedulers, with the names that results print.
    fn rows(&mut self, words: &[Word]) -> Vec<Row> {
        let mut plug_ins: Vec<PlugIn> = Vec::new();
        for word in words {
            match anabranch_scenario::scheduler("rows", word.get_ref()) {
                Ok(plug_in) => plug_ins.push(plug_in),
                Err(diagnostics) => {
                    let help = diagnostics.into_iter().next().and_then(|diagnostic| diagnostic.help);
                    self.mistake(word.span(), format!("`{}` is no scheduler", word.get_ref()), help);
                }
            }
        }
        let labels = labels(&plug_ins);
        plug_ins.into_iter().zip(labels).map(|(plug_in, label)| Row { plug_in, label }).collect()
    }

    fn sensitivity(&mut self, text: SensitivityText, rows: usize) -> Sensitivity {
        if let (Some(first), true) = (text.rows.first(), !text.rows.is_empty() && text.rows.len() != rows) {
            let message = format!("{} rows stand in the place of {rows}", text.rows.len());
            self.mistake(first.span(), message, Some("name one for each row of the item, in its order".into()));
        }
        let rows = self.rows(&text.rows);
        Sensitivity { set: overrides("claims.toml", text.set), name: text.name, why: text.why, rows }
    }

    fn figure(&mut self, figure: FigureText) -> Option<Figure> {
        let needed = |reader: &mut Self, key: &str| {
            let message = format!("a figure of kind \"{}\" needs `{key}`", figure.kind.get_ref());
            reader.mistake(figure.kind.span(), message, None);
        };
        let metric = figure.metric.as_ref().map(|metric| self.metric(metric.span(), metric.get_ref()));
        match figure.kind.get_ref().as_str() {
            kind @ ("bars" | "lines") => {
                let Some(metric) = metric else {
                    needed(self, "metric");
                    return None;
                };
                match (kind, figure.x) {
                    ("bars", _) => Some(Figure::Bars { metric }),
                    (_, Some(x)) => Some(Figure::Lines { x, metric, log: figure.log }),
                    (_, None) => {
                        needed(self, "x");
                        None
                    }
                }
            }
            "scatter" => match metric {
                Some(metric) => self.scatter(&figure, metric),
                None => {
                    needed(self, "metric");
                    None
                }
            },
            kind @ ("time" | "distribution") => match figure.curve {
                Some(curve) if kind == "time" => Some(Figure::Time { curve }),
                Some(curve) => Some(Figure::Distribution { curve }),
                None => {
                    needed(self, "curve");
                    None
                }
            },
            other => {
                let kinds = ["bars", "lines", "time", "distribution", "scatter"];
                self.unknown(figure.kind.span(), "kind of figure", other, &kinds);
                None
            }
        }
    }

    fn claim(&mut self, text: ClaimText, rows: &[Row], place: &str) -> Option<Claim> {
        let metric = match &text.cycle {
            // Which curves there are only a run can tell.
            Some(_) => text.metric.get_ref().clone(),
            None => self.metric_or_ratio(text.metric.span(), text.metric.get_ref()),
        };
        let unit = match &text.unit {
            None => Unit::NONE,
            Some(word) => Unit::named(word.get_ref()).unwrap_or_else(|| {
                let names: Vec<&str> = Unit::ALL.iter().map(|unit| unit.name).collect();
                self.unknown(word.span(), "unit", word.get_ref(), &names);
                Unit::NONE
            }),
        };
        let kind = self.kind(&text, rows)?;
        Some(Claim {
            text: text.text.into_inner(),
            place: text.place.unwrap_or_else(|| place.to_owned()),
            metric,
            unit,
            at: text.at.into_iter().collect(),
            kind,
            open: text.open,
            reason: text.reason,
        })
    }

    fn kind(&mut self, text: &ClaimText, rows: &[Row]) -> Option<Kind> {
        let band = text.band.map(|[low, high]| (low, high));
        if let Some((low, high)) = band
            && low > high
        {
            self.mistake(text.text.span(), format!("the band from {low} to {high} is empty"), None);
        }
        if text.model.is_some() || text.fit.is_some() || text.cycle.is_some() {
            return self.theory(text, rows);
        }
        match (&text.value, &text.of, &text.against, &text.order) {
            (Some(of), None, None, None) => {
                let (of, published) = (self.side(of, rows), text.published);
                let Some(published) = published else { return self.needs(&text.text, "value", "published") };
                Some(Kind::Value { of, published, band })
            }
            (None, Some(of), Some(against), None) => {
                let (of, against) = (self.side(of, rows), self.side(against, rows));
                let Some(band) = band else { return self.needs(&text.text, "of", "band") };
                Some(Kind::Change { of, against, published: text.published, band, spread: text.spread })
            }
            (None, None, None, Some(order)) => {
                order.iter().for_each(|row| self.row(row.span(), row.get_ref(), rows));
                let more = match text.best.as_ref().map(|word| (word, word.get_ref().as_str())) {
                    Some((_, "most")) => true,
                    Some((_, "least")) => false,
                    Some((word, other)) => {
                        self.unknown(word.span(), "word", other, &["most", "least"]);
                        false
                    }
                    None => return self.needs(&text.text, "order", "best"),
                };
                Some(Kind::Order { rows: order.iter().map(|row| row.get_ref().clone()).collect(), more })
            }
            _ => {
                let help = "give `value`, `of` and `against`, `order`, `model`, `fit` or `cycle`".to_owned();
                self.mistake(
                    text.text.span(),
                    "a claim is a value, a change or an order, or one on a model",
                    Some(help),
                );
                None
            }
        }
    }
}

fn overrides(origin: &str, set: Settings) -> Vec<Override> {
    set.into_iter().map(|(key, value)| Override::new(origin, key, value)).collect()
}
