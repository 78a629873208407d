//! Time series as `series/*.csv` holds them, made short enough to draw.

use crate::chart::{Curve, Panel, TimeSeries};
use crate::quantity::Quantity;
use anabranch_metrics::MetricRef;

/// Values of all series in one page, of which each curve has three per step.
const VALUES: usize = 150_000;

/// Steps of a curve, at least and at most.
const STEPS: (usize, usize) = (100, 400);

/// Columns over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The samples' beginnings.
    time_s: Vec<f64>,
    columns: Vec<Column>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Column {
    name: String,
    values: Vec<Option<f64>>,
}

impl Series {
    /// Reads CSV: a header with `time_s` first, then a line a sample; empty fields are unknown values.
    ///
    /// # Errors
    /// The mistake, with the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        if header.get(0) != Some("time_s") {
            return Err(format!("line 1: the first column is `{}`, not `time_s`", header.get(0).unwrap_or("")));
        }
        let column = |name: &str| Column { name: name.to_owned(), values: Vec::new() };
        let mut series = Self { time_s: Vec::new(), columns: header.iter().skip(1).map(column).collect() };
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let line = record.position().map_or(0, csv::Position::line);
            let mut fields = record.iter().map(|field| match field {
                "" => Ok(None),
                _ => match field.parse::<f64>() {
                    Ok(value) if value.is_finite() => Ok(Some(value)),
                    _ => Err(format!("line {line}: `{field}` is not a number")),
                },
            });
            let time = fields.next().transpose()?.flatten();
            series.time_s.push(time.ok_or_else(|| format!("line {line}: no time"))?);
            for (column, value) in series.columns.iter_mut().zip(fields) {
                column.values.push(value?);
            }
        }
        Ok(series)
    }

    /// How many curves it has.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// A panel a quantity, a curve a path. `columns` = those of all series of the page, which share the room.
    pub fn chart(&self, columns: usize) -> TimeSeries {
        let steps = (VALUES / 3 / columns.max(1)).clamp(STEPS.0, STEPS.1);
        let mut panels: Vec<(&str, Vec<(&str, &Column)>)> = Vec::new();
        for column in &self.columns {
            let MetricRef { path, name: quantity } = MetricRef::parse(&column.name);
            let path = path.unwrap_or_default();
            match panels
                .iter_mut()
                .find(|(name, curves)| *name == quantity && curves[0].0.is_empty() == path.is_empty())
            {
                Some((_, curves)) => curves.push((path, column)),
                None => panels.push((quantity, vec![(path, column)])),
            }
        }
        TimeSeries { panels: panels.into_iter().map(|(name, curves)| self.panel(name, &curves, steps)).collect() }
    }

    fn panel(&self, name: &str, curves: &[(&str, &Column)], steps: usize) -> Panel {
        let step = self.step();
        // A count within a sample is shown as a rate.
        let counted = ["delivered_bytes", "sent_bytes"].contains(&name);
        let quantity = match name {
            "delivered_bytes" => Quantity { per: 1e6 * step / 8.0, ..Quantity::of("goodput_bps", 0.0) },
            "sent_bytes" => Quantity { per: 1e6 * step / 8.0, ..Quantity::of("sent_bps", 0.0) },
            _ => Quantity::of(name, greatest(curves)),
        };
        let curve = |(path, column): &(&str, &Column)| self.curve(path, column, quantity.per, steps, !counted);
        Panel { axis: quantity.axis(), curves: curves.iter().map(curve).collect() }
    }

    fn curve(&self, path: &str, column: &Column, per: f64, steps: usize, band: bool) -> Curve {
        let together = column.values.len().div_ceil(steps).max(1);
        let mut curve = Curve {
            name: path.to_owned(),
            start_s: self.time_s.first().copied().unwrap_or(0.0),
            step_s: self.step() * together as f64,
            ..Curve::default()
        };
        for chunk in column.values.chunks(together) {
            let known: Vec<f64> = chunk.iter().flatten().map(|value| value / per).collect();
            let some = |value: f64| (!known.is_empty()).then(|| rounded(value));
            curve.mean.push(some(known.iter().sum::<f64>() / known.len() as f64));
            if band {
                curve.low.push(some(known.iter().copied().fold(f64::MAX, f64::min)));
                curve.high.push(some(known.iter().copied().fold(f64::MIN, f64::max)));
            }
        }
        curve
    }

    /// Between two samples.
    fn step(&self) -> f64 {
        match self.time_s.as_slice() {
            [first, .., last] if last > first => (last - first) / (self.time_s.len() - 1) as f64,
            _ => 1.0,
        }
    }
}

fn greatest(curves: &[(&str, &Column)]) -> f64 {
    curves.iter().flat_map(|(_, column)| column.values.iter().flatten()).fold(0.0, |most: f64, v| most.max(v.abs()))
}

/// Four digits that count: what a chart can show.
fn rounded(value: f64) -> f64 {
    crate::describe::figure(value).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "time_s,ofo_bytes,delivered_bytes,path.a.b.srtt_s,path.3g.srtt_s,lambda\n\
                        0,0,12500,,0.05,1\n0.01,1024,0,0.5,0.05,1\n0.02,2048,12500,2,0.07,1\n0.03,0,0,2,0.09,0.5\n";

    #[test]
    fn a_panel_holds_one_quantity_of_all_paths() {
        let chart = Series::parse(TEXT).unwrap().chart(5);
        let panels: Vec<(&str, Vec<&str>)> = chart
            .panels
            .iter()
            .map(|panel| (&*panel.axis.label, panel.curves.iter().map(|curve| &*curve.name).collect()))
            .collect();
        let expected =
            [("OFO, KiB", vec![""]), ("goodput, Mbit/s", vec![""]), ("SRTT, s", vec!["a.b", "3g"]), ("λ", vec![""])];
        assert_eq!(panels, expected);
        assert_eq!(chart.panels[0].curves[0].mean, [Some(0.0), Some(1.0), Some(2.0), Some(0.0)]);
        // 12 500 bytes within 10 ms.
        assert_eq!(chart.panels[1].curves[0].mean, [Some(10.0), Some(0.0), Some(10.0), Some(0.0)]);
        assert!(chart.panels[1].curves[0].low.is_empty());
        assert_eq!(chart.panels[2].curves[0].mean[0], None);
    }

    #[test]
    fn long_series_are_told_by_mean_and_extremes_of_each_step() {
        let lines: String = (0..1000).map(|i| format!("{},{}\n", i as f64 / 100.0, i % 10)).collect();
        let series = Series::parse(&format!("time_s,path.a.cwnd_packets\n{lines}")).unwrap();
        let chart = series.chart(1_000_000);
        let curve = &chart.panels[0].curves[0];
        assert_eq!(
            (curve.mean.len(), curve.mean[0], curve.low[0], curve.high[0]),
            (100, Some(4.5), Some(0.0), Some(9.0))
        );
        assert!((curve.step_s - 0.1).abs() < 1e-9);
        assert_eq!(series.chart(1).panels[0].curves[0].mean.len(), 334);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        assert_eq!(Series::parse("time,x\n0,1\n").unwrap_err(), "line 1: the first column is `time`, not `time_s`");
        assert_eq!(Series::parse("time_s,x\n0,1\n0.01,wide\n").unwrap_err(), "line 3: `wide` is not a number");
        assert_eq!(Series::parse("time_s,x\n0,inf\n").unwrap_err(), "line 2: `inf` is not a number");
        assert_eq!(Series::parse("time_s,x\n,1\n").unwrap_err(), "line 2: no time");
        assert!(Series::parse("time_s,x\n0,1,2\n").unwrap_err().contains("line: 2"));
        assert_eq!(Series::parse("time_s,x\n").unwrap().chart(1).panels[0].curves[0].mean, []);
    }
}
