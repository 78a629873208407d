//! A sweep's cells, as groups or as an axis.

use crate::quantity::{positions, split};
use anabranch_run::ResultRow;
use indexmap::{IndexMap, IndexSet};

/// `path.wlan.loss = 1%`; empty without a sweep.
pub fn name<'a>(cell: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    cell.into_iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

/// The terminal has a table per cell up to this number, and transfers that did not finish are counted per cell.
pub const APART: usize = 4;

/// The axis of the one key that the cells sweep.
#[derive(Debug, PartialEq)]
pub struct SweptAxis {
    /// The key.
    pub key: String,
    /// Unit of the positions.
    pub unit: String,
    /// The greatest position is so many times the least that only logarithms tell the small ones apart.
    pub is_log: bool,
    /// Where each value stands, by its text.
    places: IndexMap<String, f64>,
}

/// From this ratio of the greatest value to the least on.
const DECADES: f64 = 30.0;

impl SweptAxis {
    /// The one key that the cells sweep, if its values are at least three numbers of one kind.
    pub fn of(rows: &[ResultRow<'_>]) -> Option<Self> {
        let (key, _) = rows.first()?.cell.first()?;
        let mut texts: IndexSet<&str> = IndexSet::new();
        for row in rows {
            let text = row.cell.get(key).filter(|_| row.cell.len() == 1)?;
            split(text)?;
            texts.insert(text);
        }
        let texts: Vec<&str> = texts.into_iter().collect();
        let units: Vec<&str> = texts.iter().filter_map(|text| Some(split(text)?.1)).collect();
        let (unit, numbers) = positions(key, &texts);
        let is_one_kind = !unit.is_empty() || units.iter().all(|unit| unit.is_empty());
        let (least, most) = numbers.iter().fold((f64::INFINITY, 0.0f64), |(a, b), n| (a.min(*n), b.max(*n)));
        let is_log = least > 0.0 && most >= DECADES * least;
        let places: IndexMap<String, f64> = texts.into_iter().map(str::to_owned).zip(numbers).collect();
        (is_one_kind && places.len() >= 3).then(|| Self { key: key.clone(), unit, is_log, places })
    }

    /// The place of a row.
    pub fn position(&self, row: &ResultRow<'_>) -> Option<f64> {
        self.places.get(row.cell.get(&self.key)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_run::CellValues;

    fn cells(key: &str, values: &[&str]) -> Vec<CellValues> {
        values.iter().map(|value| [(key.to_owned(), (*value).to_owned())].into()).collect()
    }

    fn axis_of(cells: &[CellValues]) -> Option<(String, String, bool)> {
        let row = |cell| ResultRow::bare("minrtt", "cubic", cell);
        let axis = SweptAxis::of(&cells.iter().map(row).collect::<Vec<_>>())?;
        Some((axis.key, axis.unit, axis.is_log))
    }

    #[test]
    fn figures_of_one_unit_make_an_axis() {
        let loss = cells("path.wlan.loss", &["0.5%", "1%", "2%"]);
        assert_eq!(axis_of(&loss), Some(("path.wlan.loss".into(), "%".into(), false)));
        let buffers = cells("connection.recv_buffer", &["64KiB", "1MiB", "16MiB"]);
        assert_eq!(axis_of(&buffers), Some(("connection.recv_buffer".into(), "KiB".into(), true)));
        let rows: Vec<ResultRow<'_>> = buffers.iter().map(|cell| ResultRow::bare("minrtt", "cubic", cell)).collect();
        assert_eq!(SweptAxis::of(&rows).unwrap().position(&rows[1]), Some(1024.0));
        let rates = cells("path.wlan.rate", &["500kbit", "1mbit", "2mbit"]);
        assert_eq!(axis_of(&rates), Some(("path.wlan.rate".into(), "kbit".into(), false)));
    }

    #[test]
    fn words_mixed_kinds_and_pairs_are_groups() {
        assert_eq!(axis_of(&cells("connection.congestion", &["lia", "olia", "reno"])), None);
        assert_eq!(axis_of(&cells("path.wlan.queue", &["100p", "1bdp", "20KB"])), None);
        assert_eq!(axis_of(&cells("path.wlan.loss", &["1%", "2%"])), None);
        assert_eq!(axis_of(&[CellValues::new()]), None);
        let mut two = cells("path.wlan.loss", &["1%", "2%", "3%"]);
        two[1].insert("seed".into(), "4".into());
        assert_eq!(axis_of(&two), None);
        assert_eq!(split("é"), None);
    }
}
