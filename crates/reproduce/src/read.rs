//! `claims.toml` → a checked [`Paper`].

use crate::claim::{Claim, Kind, RATIO, Side, Unit};
use crate::paper::{Figure, Item, Paper, Row, Sensitivity};
use crate::read_theory::{ModelText, PointText};
use anabranch_metrics::METRICS;
use anabranch_run::labels;
use anabranch_scenario::{Override, PlugIn, nearest};
use anabranch_units::Duration;
use indexmap::IndexMap;
use serde::Deserialize;
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

pub(crate) type Word = Spanned<String>;
pub(crate) type Settings = IndexMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperText {
    key: String,
    title: String,
    authors: String,
    venue: String,
    item: Vec<ItemText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemText {
    id: Word,
    title: String,
    #[serde(rename = "where")]
    place: String,
    scenario: String,
    rows: Vec<Word>,
    #[serde(default = "yes")]
    baselines: bool,
    /// Seconds.
    curves: Option<f64>,
    #[serde(default)]
    live: bool,
    #[serde(default)]
    variants: IndexMap<String, Settings>,
    #[serde(default)]
    quick: Settings,
    #[serde(default)]
    packets: Vec<Word>,
    #[serde(default)]
    figure: Vec<FigureText>,
    #[serde(default)]
    claim: Vec<ClaimText>,
    #[serde(default)]
    sensitivity: Vec<SensitivityText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SensitivityText {
    name: String,
    why: String,
    #[serde(default)]
    set: Settings,
    #[serde(default)]
    rows: Vec<Word>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureText {
    pub kind: Word,
    metric: Option<Word>,
    pub x: Option<String>,
    #[serde(default)]
    pub models: Vec<Spanned<ModelText>>,
    /// Parameter of the models that is across.
    pub over: Option<Word>,
    /// Of the models.
    #[serde(default)]
    pub range: [f64; 2],
    curve: Option<String>,
    #[serde(default)]
    log: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimText {
    pub text: Word,
    #[serde(rename = "where")]
    place: Option<String>,
    metric: Word,
    unit: Option<Word>,
    #[serde(default)]
    at: Settings,
    value: Option<Spanned<SideText>>,
    of: Option<Spanned<SideText>>,
    against: Option<Spanned<SideText>>,
    order: Option<Vec<Word>>,
    best: Option<Word>,
    pub published: Option<f64>,
    pub band: Option<[f64; 2]>,
    #[serde(default)]
    spread: bool,
    pub model: Option<Spanned<ModelText>>,
    pub fit: Option<Spanned<SideText>>,
    #[serde(default)]
    pub points: Vec<PointText>,
    #[serde(default)]
    pub measured: Settings,
    pub cycle: Option<Spanned<SideText>>,
    pub statistic: Option<Word>,
    open: Option<String>,
    reason: Option<String>,
}

/// `"otias"`, or `{ row = "otias", at = { … }, metric = …, per = … }`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum SideText {
    Row(String),
    Full {
        row: String,
        #[serde(default)]
        at: Settings,
        metric: Option<String>,
        per: Option<Box<SideText>>,
    },
}

fn yes() -> bool {
    true
}

/// Reads the text of a `claims.toml`.
///
/// # Errors
/// All that is wrong with it, or the first thing that keeps it from being read at all.
pub fn read(text: &str) -> Result<Paper, Vec<Mistake>> {
    let paper: PaperText = toml::from_str(text).map_err(|error| {
        vec![Mistake { at: error.span().unwrap_or(0..0), message: error.message().to_owned(), help: None }]
    })?;
    let mut reader = Reader::default();
    let items: Vec<Item> = paper.item.into_iter().map(|item| reader.item(item)).collect();
    if !reader.mistakes.is_empty() {
        return Err(reader.mistakes);
    }
    Ok(Paper { key: paper.key, title: paper.title, authors: paper.authors, venue: paper.venue, items })
}

/// Gathers mistakes, so that all of a file are told at once.
#[derive(Default)]
pub(crate) struct Reader {
    mistakes: Vec<Mistake>,
    ids: Vec<String>,
}

impl Reader {
    pub(crate) fn mistake(&mut self, at: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.mistakes.push(Mistake { at, message: message.into(), help });
    }

    fn item(&mut self, item: ItemText) -> Item {
        let id = item.id.get_ref().clone();
        if self.ids.contains(&id) {
            self.mistake(item.id.span(), format!("two items are called `{id}`"), None);
        }
        self.ids.push(id.clone());
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

    pub(crate) fn needs<T>(&mut self, text: &Word, having: &str, key: &str) -> Option<T> {
        self.mistake(text.span(), format!("a claim with `{having}` needs `{key}`"), None);
        None
    }

    pub(crate) fn side(&mut self, text: &Spanned<SideText>, rows: &[Row]) -> Side {
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

    fn row(&mut self, at: Range<usize>, name: &str, rows: &[Row]) {
        if !name.starts_with("single:") && !rows.iter().any(|row| row.label == name) {
            let rows: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
            self.unknown(at, "row of this item", name, &rows);
        }
    }

    /// What a claim may ask for: a metric, or how many times another it is.
    pub(crate) fn metric_or_ratio(&mut self, at: Range<usize>, name: &str) -> String {
        match name.split_once(RATIO) {
            Some((of, to)) => [of, to].map(|part| self.metric(at.clone(), part)).join(RATIO),
            None => self.metric(at, name),
        }
    }

    /// A metric, one of a path, or a curve's mean over a time.
    pub(crate) fn metric(&mut self, at: Range<usize>, name: &str) -> String {
        let bare = name.strip_prefix("path.").and_then(|rest| rest.rsplit_once('.')).map_or(name, |(_, metric)| metric);
        // Curves are named by schedulers and paths: whether there is one only a run can tell.
        if !name.contains('[') && !METRICS.iter().any(|metric| metric.name == bare) {
            let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            self.unknown(at, "metric", bare, &names);
        }
        name.to_owned()
    }

    pub(crate) fn unknown(&mut self, at: Range<usize>, what: &str, typed: &str, known: &[&str]) {
        let help = match nearest(typed, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("there are {}", known.iter().filter(|k| !k.is_empty()).copied().collect::<Vec<_>>().join(", "))
            }
        };
        self.mistake(at, format!("`{typed}` is no {what}"), Some(help));
    }
}

fn overrides(origin: &str, set: Settings) -> Vec<Override> {
    set.into_iter().map(|(key, value)| Override::new(origin, key, value)).collect()
}
