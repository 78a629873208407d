//! `claims.toml` → a checked [`Paper`].

mod reader;
mod text;
mod theory;

pub use reader::Mistake;
pub(crate) use reader::Reader;
pub(crate) use text::{Settings, SpannedText};

use crate::claim::{Claim, Kind, Standing, Unit, half_to_twice};
use crate::figure::Figure;
use crate::finding::Finding;
use crate::item_row::ItemRow;
use crate::paper::{Item, Paper};
use crate::reading::Reading;
use anabranch_scenario::{Override, PlugIn};
use anabranch_units::Duration;
use text::{ClaimText, FigureText, FindingText, ItemText, PaperText, ReadingText, ShownText};
use toml::Spanned;
use xxhash_rust::xxh3::xxh3_128;

/// Ways to read an item, the one as written among them: more would be a search for the one that agrees.
const MOST_READINGS: usize = 12;

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
    Ok(Paper {
        key: paper.key,
        title: paper.title,
        authors: paper.authors,
        venue: paper.venue,
        repetitions: paper.repetitions,
        headline: paper.headline,
        in_short: paper.in_short,
        conclusion: paper.conclusion,
        claims_digest: format!("{:032x}", xxh3_128(text.as_bytes())),
        items,
    })
}

impl Reader {
    fn item(&mut self, item: ItemText) -> Item {
        let id = item.id.get_ref().clone();
        let rows = self.rows(&item.rows);
        item.packets.iter().for_each(|row| self.row(row.span(), row.get_ref(), &rows));
        self.names(&item.reading, &item.sensitivity, &item.finding);
        let readings: Vec<SpannedText> =
            item.reading.iter().chain(&item.sensitivity).map(|text| text.name.clone()).collect();
        let findings: Vec<String> = item.finding.iter().map(|finding| finding.id.get_ref().clone()).collect();
        let claims = item.claim.into_iter().inspect(|claim| {
            if let Some(reason) = claim.reason.as_ref().filter(|reason| !findings.contains(reason.get_ref())) {
                let known: Vec<&str> = findings.iter().map(String::as_str).collect();
                self.unknown(reason.span(), "finding of this item", reason.get_ref(), &known);
            }
        });
        let claims: Vec<ClaimText> = claims.collect();
        let of_kind = |texts: Vec<ReadingText>, open: bool| texts.into_iter().map(move |text| (text, open));
        let readings_text = of_kind(item.reading, true).chain(of_kind(item.sensitivity, false));
        Item {
            figures: item.figure.into_iter().filter_map(|figure| self.figure(figure)).collect(),
            anchors: item.anchor.into_iter().filter_map(|anchor| self.anchor(anchor, &rows, &item.place)).collect(),
            claims: claims.into_iter().filter_map(|claim| self.claim(claim, &rows, &item.place)).collect(),
            readings: readings_text.map(|(text, open)| self.reading(text, open, rows.len())).collect(),
            findings: item.finding.into_iter().map(|finding| self.finding(finding, &rows, &readings)).collect(),
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
        }
    }

    /// Names by which an item's readings and findings are called.
    fn names(&mut self, readings: &[ReadingText], sensitivities: &[ReadingText], findings: &[FindingText]) {
        let of_readings: Vec<&SpannedText> = readings.iter().chain(sensitivities).map(|text| &text.name).collect();
        let of_findings: Vec<&SpannedText> = findings.iter().map(|text| &text.id).collect();
        for (names, what) in [(of_readings, "readings"), (of_findings, "findings")] {
            for (n, name) in names.iter().enumerate() {
                if names[..n].iter().any(|other| other.get_ref() == name.get_ref()) {
                    self.mistake(name.span(), format!("two {what} are called `{}`", name.get_ref()), None);
                }
            }
        }
        if let Some(text) = readings.get(MOST_READINGS - 1) {
            let message = format!("an item has at most {MOST_READINGS} readings, the one as written among them");
            self.mistake(text.name.span(), message, None);
        }
    }

    /// A published value of a baseline row.
    fn anchor(&mut self, text: ClaimText, rows: &[ItemRow], place: &str) -> Option<Claim> {
        let at = text.text.span();
        let claim = self.claim(text, rows, place)?;
        match claim.kind {
            Kind::Value { published, .. } if published > 0.0 => Some(claim),
            _ => {
                self.mistake(
                    at,
                    "an anchor is a published value above zero",
                    Some("give `value` and `published`".into()),
                );
                None
            }
        }
    }

    fn finding(&mut self, text: FindingText, rows: &[ItemRow], readings: &[SpannedText]) -> Finding {
        let shown = text.shown.into_iter().filter_map(|shown| self.shown(shown, rows, readings)).collect();
        Finding { id: text.id.into_inner(), text: text.text, shown }
    }

    fn shown(
        &mut self,
        text: ShownText,
        rows: &[ItemRow],
        readings: &[SpannedText],
    ) -> Option<(Option<String>, Claim)> {
        if let Some(reading) = text.reading.as_ref().filter(|r| !readings.iter().any(|n| n.get_ref() == r.get_ref())) {
            let known: Vec<&str> = readings.iter().map(|name| name.get_ref().as_str()).collect();
            self.unknown(reading.span(), "reading of this item", reading.get_ref(), &known);
        }
        let (of, against) = (self.side(&text.of, rows), text.against.map(|side| self.side(&side, rows)));
        let band = (text.band[0], text.band[1]);
        let kind = match against {
            Some(against) => Kind::Change { of, against, published: None, band, spread: false },
            None => Kind::Value { of, published: 0.0, band: Some(band) },
        };
        let claim = Claim {
            text: String::new(),
            place: String::new(),
            metric: self.metric_or_ratio(text.metric.span(), text.metric.get_ref()),
            unit: self.unit(text.unit.as_ref()),
            at: text.at.into_iter().collect(),
            kind,
            standing: Standing::Testable,
            headline: false,
            uncertainty: None,
            post_hoc: None,
            reason: None,
        };
        Some((text.reading.map(Spanned::into_inner), claim))
    }

    /// Schedulers, by their names.
    pub(crate) fn rows(&mut self, words: &[SpannedText]) -> Vec<ItemRow> {
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
        ItemRow::all(plug_ins)
    }

    fn reading(&mut self, text: ReadingText, open: bool, rows: usize) -> Reading {
        if let (Some(first), true) = (text.rows.first(), !text.rows.is_empty() && text.rows.len() != rows) {
            let message = format!("{} rows stand in the place of {rows}", text.rows.len());
            self.mistake(first.span(), message, Some("name one for each row of the item, in its order".into()));
        }
        if let (Some(first), true) = (text.rows.first(), open) {
            let help = "[[item.sensitivity]] takes rows".to_owned();
            self.mistake(first.span(), "the baselines cannot distinguish readings of a scheduler", Some(help));
        }
        let rows = self.rows(&text.rows);
        let (name, set) = (text.name.into_inner(), overrides("claims.toml", text.set));
        Reading { set, name, why: text.why, rows, open, post_hoc: text.post_hoc }
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

    fn claim(&mut self, text: ClaimText, rows: &[ItemRow], place: &str) -> Option<Claim> {
        let metric = match &text.cycle {
            // Which curves there are only a run can tell.
            Some(_) => text.metric.get_ref().clone(),
            None => self.metric_or_ratio(text.metric.span(), text.metric.get_ref()),
        };
        let kind = self.kind(&text, rows)?;
        let standing = self.standing(&text);
        Some(Claim {
            unit: self.unit(text.unit.as_ref()),
            text: text.text.into_inner(),
            place: text.place.unwrap_or_else(|| place.to_owned()),
            metric,
            at: text.at.into_iter().collect(),
            kind,
            standing,
            headline: text.headline,
            uncertainty: text.uncertainty,
            post_hoc: text.post_hoc,
            reason: text.reason.map(Spanned::into_inner),
        })
    }

    pub(crate) fn unit(&mut self, word: Option<&SpannedText>) -> Unit {
        let Some(word) = word else { return Unit::NONE };
        Unit::named(word.get_ref()).unwrap_or_else(|| {
            let names: Vec<&str> = Unit::ALL.iter().map(|unit| unit.name).collect();
            self.unknown(word.span(), "unit", word.get_ref(), &names);
            Unit::NONE
        })
    }

    fn standing(&mut self, text: &ClaimText) -> Standing {
        let said = [
            text.open.clone().map(Standing::Open),
            text.contradicted.clone().map(Standing::Contradicted),
            text.trivial.clone().map(Standing::Trivial),
            text.duplicate.clone().map(Standing::Duplicate),
        ];
        let mut said = said.into_iter().flatten();
        let standing = said.next().unwrap_or(Standing::Testable);
        if said.next().is_some() {
            let help = "give one of `open`, `contradicted`, `trivial`, `duplicate`".to_owned();
            self.mistake(text.text.span(), "a claim has one standing", Some(help));
        }
        standing
    }

    fn kind(&mut self, text: &ClaimText, rows: &[ItemRow]) -> Option<Kind> {
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
                let size = text.published.filter(|published| *published != 0.0).map(half_to_twice);
                let Some(band) = band.or(size) else { return self.needs(&text.text, "of", "band") };
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
