//! Time series as `series/*.csv` holds them, made short enough to draw.

use super::recorded;
use crate::chart::Curve;
use anabranch_metrics::MetricRef;
use anabranch_run::Job;
use std::io;

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
    /// Writes what [`Self::parse`] reads.
    ///
    /// # Errors
    /// `to` takes no more.
    pub fn write(&self, to: impl io::Write) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(to);
        table.write_record(["time_s"].into_iter().chain(self.columns.iter().map(|column| &*column.name)))?;
        for (sample, time) in self.time_s.iter().enumerate() {
            let field = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            table.write_field(time.to_string())?;
            table.write_record(self.columns.iter().map(|column| field(column.values[sample])))?;
        }
        table.flush()
    }

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

    /// The samples of a job's recorders, one per direction of its data, as their file reads, with the columns of the paths in use alone;
    /// and what the recordings of these paths offer meanwhile. What the client sends where both send is of paths `NAME, up`.
    pub fn of(sampled: &[anabranch_recorders::Series], job: &Job) -> Self {
        let paths = &job.scenario.topology.paths;
        let used = |path: usize| job.choice.uses(path);
        let named = |column: &anabranch_recorders::Column, second: bool| match (column.path, second) {
            (None, false) => Some(column.name.to_owned()),
            (None, true) => Some(format!("up.{}", column.name)),
            (Some(path), second) if used(path.index()) => {
                let own = format!("{}{}", paths[path.index()].name, if second { ", up" } else { "" });
                Some(MetricRef::of_path(&own, column.name).to_string())
            }
            (Some(_), _) => None,
        };
        let known = |value: &f64| value.is_finite().then_some(*value);
        let of = |(column, second)| {
            let column: &anabranch_recorders::Column = column;
            Some(Column { name: named(column, second)?, values: column.values.iter().map(known).collect() })
        };
        let Some(first) = sampled.first() else { return Self::default() };
        let samples = first.columns.first().map_or(0, |column| column.values.len());
        let time_s = (0..samples as u64).map(|sample| (first.step * sample).as_secs_f64()).collect();
        let offered = recorded::columns(job, (first.step, samples as u64));
        let offered = offered.into_iter().map(|(name, values)| Column { name, values });
        let ways = sampled.iter().zip([false, true]);
        let columns = ways.flat_map(|(way, second)| way.columns.iter().map(move |column| (column, second)));
        Self { time_s, columns: columns.filter_map(of).chain(offered).collect() }
    }

    /// How many curves it has.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// From the first sample to the end of the last.
    pub(super) fn duration_s(&self) -> f64 {
        self.step() * self.time_s.len() as f64
    }

    /// The names of its columns.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// The greatest absolute value of a column.
    pub(super) fn greatest(&self, name: &str) -> f64 {
        let values = self.column(name).into_iter().flat_map(|column| column.values.iter().flatten());
        values.fold(0.0, |most: f64, value| most.max(value.abs()))
    }

    fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The column's mean within each of at most `steps` steps, in a unit of which `per` of its own make one.
    pub(super) fn means(&self, name: &str, per: f64, steps: usize) -> Option<Curve> {
        let column = self.column(name)?;
        let mean = |chunk: &[Option<f64>]| {
            let known = chunk.iter().flatten().count();
            (known > 0).then(|| chunk.iter().flatten().sum::<f64>() / known as f64 / per)
        };
        Some(self.curve(steps, |from, to| mean(&column.values[from..to])))
    }

    /// A column of bytes within samples as a rate in bit/s: at each step the mean over the `window_s` seconds around it.
    pub(super) fn moving_rate(&self, name: &str, window_s: f64, per: f64, steps: usize) -> Option<Curve> {
        let sums = sums(self.column(name)?);
        let half = (window_s / self.step() / 2.0).max(0.5) as usize;
        let rate = |from: usize, to: usize| {
            let middle = usize::midpoint(from, to);
            let (from, to) = (middle.saturating_sub(half).min(from), (middle + half).max(to).min(sums.len() - 1));
            Some(8.0 * (sums[to] - sums[from]) / ((to - from) as f64 * self.step()) / per)
        };
        Some(self.curve(steps, rate))
    }

    /// The sum of a column up to the end of each step.
    pub(super) fn total(&self, name: &str, per: f64, steps: usize) -> Option<Curve> {
        let sums = sums(self.column(name)?);
        Some(self.curve(steps, |_, to| Some(sums[to] / per)))
    }

    /// `of` the samples from … to (exclusive) of each step.
    fn curve(&self, steps: usize, of: impl Fn(usize, usize) -> Option<f64>) -> Curve {
        let samples = self.time_s.len();
        let together = samples.div_ceil(steps).max(1);
        let value = |from: usize| of(from, (from + together).min(samples)).map(rounded);
        Curve {
            start_s: self.time_s.first().copied().unwrap_or(0.0),
            step_s: self.step() * together as f64,
            mean: (0..samples).step_by(together).map(value).collect(),
            ..Curve::default()
        }
    }

    /// Between two samples.
    fn step(&self) -> f64 {
        match self.time_s.as_slice() {
            [first, .., last] if last > first => (last - first) / (self.time_s.len() - 1) as f64,
            _ => 1.0,
        }
    }
}

/// Entry i: the sum of the values before sample i.
fn sums(column: &Column) -> Vec<f64> {
    let mut sum = 0.0;
    let values = column.values.iter().map(|value| {
        sum += value.unwrap_or(0.0);
        sum
    });
    [0.0].into_iter().chain(values).collect()
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
    fn steps_have_the_mean_of_what_is_known_in_them() {
        let series = Series::parse(TEXT).unwrap();
        assert_eq!(series.names().count(), 5);
        assert_eq!(series.greatest("path.a.b.srtt_s"), 2.0);
        assert_eq!(series.means("path.a.b.srtt_s", 1.0, 4).unwrap().mean, [None, Some(0.5), Some(2.0), Some(2.0)]);
        let curve = series.means("path.a.b.srtt_s", 0.5, 2).unwrap();
        assert_eq!((curve.mean, curve.step_s), (vec![Some(1.0), Some(4.0)], 0.02));
        assert_eq!(series.means("path.c.srtt_s", 1.0, 4), None);
    }

    #[test]
    fn a_rate_is_a_moving_mean_in_which_a_burst_counts_with_its_part() {
        // 1000 bytes in every sample of 10 ms, and a burst of 100 000 in one.
        let bytes = |i: usize| if i == 500 { 100_000 } else { 1000 };
        let lines: String = (0..1000).map(|i| format!("{},{}\n", i as f64 / 100.0, bytes(i))).collect();
        let series = Series::parse(&format!("time_s,delivered_bytes\n{lines}")).unwrap();
        let curve = series.moving_rate("delivered_bytes", 1.0, 1e6, 1000).unwrap();
        let most = curve.mean.iter().flatten().copied().fold(0.0, f64::max);
        assert_eq!(curve.mean[200], Some(0.8));
        assert!((most - 0.8 - 8.0 * 99_000.0 / 1e6).abs() < 0.01, "over one second: {most}");
        let total = series.total("delivered_bytes", 1e6, 10).unwrap();
        assert_eq!((total.mean[0], *total.mean.last().unwrap()), (Some(0.1), Some(1.099)));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        assert_eq!(Series::parse("time,x\n0,1\n").unwrap_err(), "line 1: the first column is `time`, not `time_s`");
        assert_eq!(Series::parse("time_s,x\n0,1\n0.01,wide\n").unwrap_err(), "line 3: `wide` is not a number");
        assert_eq!(Series::parse("time_s,x\n0,inf\n").unwrap_err(), "line 2: `inf` is not a number");
        assert_eq!(Series::parse("time_s,x\n,1\n").unwrap_err(), "line 2: no time");
        assert!(Series::parse("time_s,x\n0,1,2\n").unwrap_err().contains("line: 2"));
        assert_eq!(Series::parse("time_s,x\n").unwrap().means("x", 1.0, 4).unwrap().mean, []);
    }
}
