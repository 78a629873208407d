//! Maps of two swept keys: how much more or less a scheduler has than the reference, cell by cell.

use super::rows::Main;
use crate::quantity::{key_in_words, positions};
use crate::svg::{CLOSE, escape, open};
use anabranch_metrics::{Better, SIGNIFICANT, Verdict};
use anabranch_run::{CellValues, Comparison, ResultRow, Results};
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// More columns or rows than this are too many to read.
const MOST: usize = 40;
const CELL: (usize, usize) = (46, 24);
/// Left of a map, above it, and between two.
const MARGIN: (usize, usize) = (110, 62);
const GAP: usize = 28;
/// Better and worse, as red, green, blue: blue and vermillion of the palette.
const COLOURS: ([f64; 3], [f64; 3]) = ([0.0, 114.0, 178.0], [213.0, 94.0, 0.0]);

/// A map for each scheduler but the first, over two swept keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    down: Side,
    across: Side,
    maps: Vec<Map>,
    /// In the metric that is compared.
    lower_is_better: bool,
}

/// A swept key: its values as written, by rising number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Side {
    key: String,
    values: Vec<String>,
}

/// One scheduler against the reference: a percentage and whether it is significant, by row and column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Map {
    title: String,
    cells: Vec<Vec<Option<(f64, bool)>>>,
}

impl Gain {
    /// In the metric `main`; `None` unless two keys are swept over numbers.
    pub fn of(results: &Results, rows: &[ResultRow<'_>], main: &Main) -> Option<Self> {
        let (down, across) = sides(rows)?;
        let multipath: Vec<&ResultRow<'_>> = rows.iter().filter(|row| !row.kind().is_single()).collect();
        let reference = multipath.first()?.scheduler;
        let others = multipath.iter().filter(|row| row.scheduler != reference);
        let names: IndexSet<&str> = others.map(|row| row.name.as_str()).collect();
        // By the swept values, then by name.
        let place = |cell: &CellValues| Some((cell.get(&down.key)?.clone(), cell.get(&across.key)?.clone()));
        let mut rows_at: IndexMap<(String, String), Vec<&ResultRow<'_>>> = IndexMap::new();
        for (place, row) in multipath.iter().filter_map(|row| Some((place(row.cell)?, *row))) {
            rows_at.entry(place).or_default().push(row);
        }
        let mut comparisons_at: IndexMap<(String, String), Vec<(&Comparison, Verdict)>> = IndexMap::new();
        for (comparison, verdict) in results.verdicts(&main.name, reference) {
            if let Some(place) = place(&comparison.cell) {
                comparisons_at.entry(place).or_default().push((comparison, verdict));
            }
        }
        let map = |name: &str| {
            let of = |y: &String, x: &String| {
                let place = (y.clone(), x.clone());
                let rows = rows_at.get(&place)?;
                let row = rows.iter().find(|row| row.name == name)?;
                let other =
                    rows.iter().find(|other| (other.scheduler, other.congestion) == (reference, row.congestion))?;
                let base = other.get(&main.name)?.mean;
                let is_it =
                    |(c, _): &&(&Comparison, Verdict)| (&*c.a, &*c.congestion) == (row.scheduler, row.congestion);
                let (comparison, verdict) = comparisons_at.get(&place)?.iter().find(is_it)?;
                let is_sure = *verdict == Verdict::Differs;
                (base != 0.0).then(|| (100.0 * comparison.mean_diff / base.abs(), is_sure))
            };
            let cells = down.values.iter().map(|y| across.values.iter().map(|x| of(y, x)).collect()).collect();
            Map { title: format!("{name} − {reference}: {}, %", main.label()), cells }
        };
        let maps: Vec<Map> = names.iter().map(|name| map(name)).collect();
        let lower_is_better = main.info.better == Some(Better::Lower);
        (!maps.is_empty()).then_some(Self { down, across, maps, lower_is_better })
    }

    /// The maps as an SVG element.
    pub fn svg(&self) -> String {
        let Self { down, across, maps, lower_is_better } = self;
        draw(maps, down, across, &|value| if *lower_is_better { value < 0.0 } else { value > 0.0 })
    }
}

/// The two keys, the one with fewer values first: it goes down.
fn sides(rows: &[ResultRow<'_>]) -> Option<(Side, Side)> {
    let keys: Vec<&String> = rows.first()?.cell.keys().collect();
    let [a, b] = keys[..] else { return None };
    let side = |key: &String| {
        let values = rows.iter().filter_map(|row: &ResultRow<'_>| CellValues::get(row.cell, key));
        let values: IndexSet<&str> = values.map(String::as_str).collect();
        let values: Vec<&str> = values.into_iter().collect();
        let are_numbers = values.iter().all(|value| value.starts_with(|c: char| c.is_ascii_digit()));
        let numbers = positions(key, &values).1;
        let mut sorted: Vec<(f64, &str)> = numbers.into_iter().zip(values).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let values: Vec<String> = sorted.into_iter().map(|(_, value)| value.to_owned()).collect();
        (are_numbers && (2..=MOST).contains(&values.len())).then(|| Side { key: key.clone(), values })
    };
    let (a, b) = (side(a)?, side(b)?);
    Some(if a.values.len() <= b.values.len() { (a, b) } else { (b, a) })
}

fn draw(maps: &[Map], down: &Side, across: &Side, is_better: &dyn Fn(f64) -> bool) -> String {
    let all = maps.iter().flat_map(|map| map.cells.iter().flatten().flatten());
    let most = all.map(|(value, _)| value.abs()).fold(1.0, f64::max);
    let height = MARGIN.1 + down.values.len() * CELL.1 + GAP;
    let width = MARGIN.0 + across.values.len() * CELL.0 + 12;
    let name = format!("Difference from the reference over {} and {}", across.key, down.key);
    let mut text = open(width.max(420), 34 + maps.len() * height, Some(&name));
    let _ = writeln!(
        text,
        "<text x=\"8\" y=\"14\">Blue is better than the reference, orange worse; the deepest colour is {most:.0} %.</text>"
    );
    let _ = writeln!(
        text,
        "<text x=\"8\" y=\"28\">Bold: paired t test over the seeds, p &lt; {SIGNIFICANT} after Holm's correction, or nothing is random; the others are pale.</text>"
    );
    for (n, map) in maps.iter().enumerate() {
        let top = 34 + n * height;
        let _ = writeln!(
            text,
            "<text x=\"8\" y=\"{}\" font-size=\"13\" font-weight=\"bold\">{}</text>",
            top + 18,
            escape(&map.title)
        );
        let _ =
            writeln!(text, "<text x=\"{}\" y=\"{}\">{}</text>", MARGIN.0, top + 38, escape(&key_in_words(&across.key)));
        let _ =
            writeln!(text, "<text x=\"8\" y=\"{}\">{}</text>", top + MARGIN.1 - 6, escape(&key_in_words(&down.key)));
        for (x, value) in across.values.iter().enumerate() {
            let at = MARGIN.0 + x * CELL.0 + CELL.0 / 2;
            let _ = writeln!(
                text,
                "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                top + MARGIN.1 - 6,
                escape(value)
            );
        }
        for (y, (label, cells)) in down.values.iter().zip(&map.cells).enumerate() {
            let at = top + MARGIN.1 + y * CELL.1;
            let _ = writeln!(
                text,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                MARGIN.0 - 8,
                at + 16,
                escape(label)
            );
            for (x, cell) in cells.iter().enumerate().filter_map(|(x, cell)| Some((x, (*cell)?))) {
                square(&mut text, (MARGIN.0 + x * CELL.0, at), cell, most, is_better(cell.0));
            }
        }
    }
    text + CLOSE
}

fn square(text: &mut String, (x, y): (usize, usize), (value, is_sure): (f64, bool), most: f64, is_better: bool) {
    let (deep, weight) = if is_sure { (1.0, "bold") } else { (0.3, "normal") };
    let depth = (value.abs() / most).sqrt() * deep;
    let colour = if is_better { COLOURS.0 } else { COLOURS.1 };
    let mix = |n: usize| (255.0 + depth * 0.85 * (colour[n] - 255.0)).round() as u8;
    let ink = if depth > 0.75 { "#ffffff" } else { "#23272d" };
    let (red, green, blue) = (mix(0), mix(1), mix(2));
    let _ = writeln!(
        text,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"#{red:02x}{green:02x}{blue:02x}\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"{weight}\" fill=\"{ink}\">{value:+.1}</text>",
        CELL.0 - 1,
        CELL.1 - 1,
        x + CELL.0 / 2,
        y + 16
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_metrics::MetricInfo;
    use serde_json::json;

    fn results(cells: &[(&str, &str, f64, f64)]) -> Results {
        let mut summary = Vec::new();
        let mut comparisons = Vec::new();
        for (delay, buffer, diff, p) in cells {
            let cell = json!({ "path.b.delay": delay, "recv_buffer": buffer });
            for (scheduler, mean) in [("minrtt", 10e6), ("blest", 10e6 + diff * 1e5)] {
                summary.push(
                    json!({ "scheduler": scheduler, "congestion": "cubic", "cell": cell, "metric": "goodput_bps",
                    "n": 5, "mean": mean, "median": mean, "p95": mean }),
                );
            }
            comparisons.push(json!({ "a": "blest", "b": "minrtt", "congestion": "cubic", "cell": cell, "p": p,
                "metric": "goodput_bps", "n": 5, "mean_diff": diff * 1e5 }));
        }
        let document = json!({ "schema": 1, "anabranch": "", "scenario": "", "digest": "", "runs": [],
            "summary": summary, "comparisons": comparisons });
        serde_json::from_value(document).unwrap()
    }

    fn main(metric: &str) -> Main {
        MetricInfo::of_run(metric).unwrap().into()
    }

    #[test]
    fn two_swept_numbers_make_a_map() {
        let results = results(&[
            ("10ms", "64KiB", 12.5, 0.001),
            ("10ms", "1MiB", 0.4, 0.6),
            ("0.2s", "64KiB", -50.0, 0.01),
            ("0.2s", "1MiB", 0.0, 1.0),
            ("40ms", "64KiB", 3.0, 0.04),
        ]);
        let picture = Gain::of(&results, &results.rows(), &main("goodput_bps")).unwrap().svg();
        // By rising value, whatever the unit; the key with fewer values goes down.
        let places: Vec<usize> = ["10ms", "40ms", "0.2s"].map(|v| picture.find(&format!(">{v}<")).unwrap()).into();
        assert!(places.is_sorted(), "{picture}");
        assert!(picture.contains(">64KiB<") && picture.find(">64KiB<") < picture.find(">1MiB<"));
        assert!(picture.contains("font-weight=\"bold\" fill=\"#23272d\">+12.5<"), "{picture}");
        assert!(picture.contains("font-weight=\"normal\" fill=\"#23272d\">+0.4<"), "{picture}");
        assert!(
            picture.contains("fill=\"#ffffff\">-50.0<") && picture.contains("the deepest colour is 50 %"),
            "{picture}"
        );
        assert_eq!(picture.matches("<rect").count(), 1 + 5, "a cell that was not run stays white");
    }

    #[test]
    fn one_key_or_words_make_none() {
        let goodput = main("goodput_bps");
        let words = results(&[("near", "64KiB", 1.0, 0.5), ("far", "1MiB", 1.0, 0.5)]);
        assert_eq!(Gain::of(&words, &words.rows(), &goodput), None);
        let mut one = results(&[("10ms", "64KiB", 1.0, 0.5), ("20ms", "64KiB", 1.0, 0.5)]);
        assert_eq!(Gain::of(&one, &one.rows(), &goodput), None, "one value is no axis");
        one.summary
            .iter_mut()
            .for_each(|summary| drop(std::sync::Arc::make_mut(&mut summary.cell).shift_remove("recv_buffer")));
        assert_eq!(Gain::of(&one, &one.rows(), &goodput), None);
    }
}
