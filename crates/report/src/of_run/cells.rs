//! A sweep's cells, as groups or as an axis.

use crate::quantity::split;
use anabranch_run::{CellValues, ResultRow};

/// `path.wlan.loss = 1%`; empty without a sweep.
pub fn name(cell: &CellValues) -> String {
    cell.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

/// The one key that the cells sweep, if its values are at least three figures of one unit: with that unit.
pub fn axis(rows: &[ResultRow<'_>]) -> Option<(String, String)> {
    let (key, first) = rows.first()?.cell.first()?;
    let unit = split(first)?.1;
    let mut values: Vec<f64> = Vec::new();
    for row in rows {
        let (value, its_unit) = split(row.cell.get(key).filter(|_| row.cell.len() == 1)?)?;
        if its_unit != unit {
            return None;
        }
        if !values.contains(&value) {
            values.push(value);
        }
    }
    (values.len() >= 3).then(|| (key.clone(), unit.to_owned()))
}

/// The place of a row on the axis.
pub fn position(row: &ResultRow<'_>) -> Option<f64> {
    split(row.cell.first()?.1).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(key: &str, values: &[&str]) -> Vec<CellValues> {
        values.iter().map(|value| [(key.to_owned(), (*value).to_owned())].into()).collect()
    }

    fn axis_of(cells: &[CellValues]) -> Option<(String, String)> {
        let row = |cell| ResultRow::bare("minrtt", "cubic", cell);
        axis(&cells.iter().map(row).collect::<Vec<_>>())
    }

    #[test]
    fn figures_of_one_unit_make_an_axis() {
        let loss = cells("path.wlan.loss", &["0.5%", "1%", "2%"]);
        assert_eq!(axis_of(&loss), Some(("path.wlan.loss".into(), "%".into())));
        assert_eq!(position(&ResultRow::bare("minrtt", "cubic", &loss[0])), Some(0.5));
        let buffers = cells("connection.recv_buffer", &["64KiB", "128KiB", "256KiB"]);
        assert_eq!(axis_of(&buffers), Some(("connection.recv_buffer".into(), "KiB".into())));
    }

    #[test]
    fn words_mixed_units_and_pairs_are_groups() {
        assert_eq!(axis_of(&cells("connection.congestion", &["lia", "olia", "reno"])), None);
        assert_eq!(axis_of(&cells("path.wlan.rate", &["500kbit", "1mbit", "2mbit"])), None);
        assert_eq!(axis_of(&cells("path.wlan.loss", &["1%", "2%"])), None);
        assert_eq!(axis_of(&[CellValues::new()]), None);
        let mut two = cells("path.wlan.loss", &["1%", "2%", "3%"]);
        two[1].insert("seed".into(), "4".into());
        assert_eq!(axis_of(&two), None);
        assert_eq!(split("é"), None);
    }
}
