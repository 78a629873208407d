//! Recordings of paths as CSV: a header that names `time_s` and any of rate, delay or RTT, and loss, of both directions or of each.

use crate::{RateSteps, Steps};
use anabranch_units::{Direction, Duration, Rate};
use core::fmt;
use std::sync::Arc;

/// The recording of one direction of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Recorded rate.
    pub rate: Option<Arc<RateSteps>>,
    /// Recorded one-way delay.
    pub delay: Option<Arc<Steps<Duration>>>,
    /// The probability that a packet is lost.
    pub loss: Option<Arc<Steps<f64>>>,
}

/// A recording of both directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Server → client.
    pub down: Recorded,
    /// Client → server.
    pub up: Recorded,
}

/// Why a text is not a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// Line, from 1.
    pub line: usize,
    /// The fault, as a part of a sentence.
    pub what: String,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl core::error::Error for RecordingError {}

/// The quantity of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Time,
    Rate,
    Delay,
    Loss,
}

/// The names of columns, and the factor that makes seconds, bit/s or a fraction of their values.
const COLUMNS: [(&str, Quantity, f64); 11] = [
    ("time_s", Quantity::Time, 1.0),
    ("time_ms", Quantity::Time, 1e-3),
    ("rate_bps", Quantity::Rate, 1.0),
    ("rate_kbps", Quantity::Rate, 1e3),
    ("rate_mbps", Quantity::Rate, 1e6),
    ("delay_ms", Quantity::Delay, 1e-3),
    ("delay_s", Quantity::Delay, 1.0),
    ("rtt_ms", Quantity::Delay, 0.5e-3),
    ("rtt_s", Quantity::Delay, 0.5),
    ("loss", Quantity::Loss, 1.0),
    ("loss_percent", Quantity::Loss, 1e-2),
];

/// A column that the header names.
#[derive(Clone, Copy, Debug)]
struct Column {
    name: &'static str,
    quantity: Quantity,
    factor: f64,
    /// Both, if none is named.
    direction: Option<Direction>,
}

impl Column {
    fn of(name: &str) -> Option<Self> {
        let ends = [("_down", Direction::Down), ("_up", Direction::Up)];
        let end = ends.into_iter().find_map(|(end, direction)| Some((name.strip_suffix(end)?, direction)));
        let (stem, direction) = end.map_or((name, None), |(stem, direction)| (stem, Some(direction)));
        let (name, quantity, factor) = COLUMNS.into_iter().find(|(known, ..)| *known == stem)?;
        (quantity != Quantity::Time || direction.is_none()).then_some(Self { name, quantity, factor, direction })
    }

    fn is_of(&self, quantity: Quantity, direction: Direction) -> bool {
        self.quantity == quantity && self.direction.is_none_or(|own| own == direction)
    }

    /// The value of `text`, in the quantity's unit.
    fn value(&self, text: &str) -> Result<f64, String> {
        let value: f64 =
            text.parse().map_err(|_| format!("`{}` is not a number in column {}", cut(text), self.name))?;
        let value = value * self.factor;
        let (most, bound) = match self.quantity {
            Quantity::Time => (1e10, "300 years"),
            Quantity::Delay => (3.6e6, "1000 hours"),
            Quantity::Rate => (1e15, "1 Pbit/s"),
            Quantity::Loss => (1.0, "all packets"),
        };
        match value {
            value if value.is_nan() => Err(format!("`{}` is not a number in column {}", cut(text), self.name)),
            value if value < 0.0 => Err(format!("`{}` is negative in column {}", cut(text), self.name)),
            value if value <= most => Ok(value),
            _ => Err(format!("`{}` is more than {bound} in column {}", cut(text), self.name)),
        }
    }
}

/// Longest time that a recording may last.
const LONGEST: Duration = Duration::from_secs(3_600_000);

fn cut(text: &str) -> String {
    text.chars().take(24).collect()
}

fn fault<T>(line: usize, what: impl Into<String>) -> Result<T, RecordingError> {
    Err(RecordingError { line, what: what.into() })
}

impl Recording {
    /// Whether the text begins with a header, other than mahimahi's format.
    pub fn is_one(text: &str) -> bool {
        filled(text).next().is_some_and(|(_, line)| {
            let named = || COLUMNS.iter().any(|(name, ..)| line.starts_with(name));
            line.chars().any(char::is_alphabetic) && (line.contains(',') || line.starts_with("time") || named())
        })
    }

    /// Reads a recording. An empty cell keeps the value before; a line that begins with `#` is a comment.
    ///
    /// # Errors
    /// The first fault, with its line.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut rest = filled(text);
        let Some((first, header)) = rest.next() else { return fault(1, "the trace is empty") };
        let columns = columns(first, header)?;
        let mut rows: Vec<(Duration, Vec<Option<f64>>)> = Vec::new();
        for (line, text) in rest {
            let row = row(line, text, &columns)?;
            if rows.last().is_some_and(|(before, _)| row.0 < *before) {
                return fault(line, "its time is before that of the line before");
            }
            if rows.first().is_some_and(|(begin, _)| row.0.saturating_sub(*begin) > LONGEST) {
                return fault(line, "its time is more than 1000 hours after the first");
            }
            rows.push(row);
        }
        if rows.is_empty() {
            return fault(first, "the trace has a header and no line of values");
        }
        let is_idle = |place: usize| rows.iter().all(|(_, values)| values[place].is_none_or(|rate| rate == 0.0));
        let mut rates = columns.iter().enumerate().filter(|(_, column)| column.quantity == Quantity::Rate);
        if let Some((_, idle)) = rates.find(|(place, _)| is_idle(*place)) {
            return fault(first, format!("no value in column {} is above zero: nothing would ever pass", idle.name));
        }
        let of = |direction| Recorded {
            rate: steps(&rows, &columns, Quantity::Rate, direction, |bps| Rate::from_bps(libm::round(bps) as u64))
                .map(|steps| Arc::new(RateSteps::from(steps))),
            delay: steps(&rows, &columns, Quantity::Delay, direction, seconds).map(Arc::new),
            loss: steps(&rows, &columns, Quantity::Loss, direction, |loss| loss).map(Arc::new),
        };
        Ok(Self { down: of(Direction::Down), up: of(Direction::Up) })
    }

    /// One direction of it.
    pub fn of(&self, direction: Direction) -> &Recorded {
        if direction == Direction::Down { &self.down } else { &self.up }
    }
}

impl Recorded {
    /// The same, with its last values for ever.
    #[must_use]
    pub fn held(&self) -> Self {
        Self {
            rate: self.rate.as_ref().map(|rate| Arc::new(RateSteps::from(rate.steps().held()))),
            delay: self.delay.as_ref().map(|delay| Arc::new(delay.held())),
            loss: self.loss.as_ref().map(|loss| Arc::new(loss.held())),
        }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_nanos(libm::round(seconds * 1e9) as u64)
}

/// Lines with their numbers. They end in a line feed, with or without a carriage return, or all in a carriage return; a byte order
/// mark before them does not count.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.trim_start_matches('\u{feff}').trim_end();
    let end = if text.contains('\n') { '\n' } else { '\r' };
    text.split(end).enumerate().map(|(n, line)| (n + 1, line.trim()))
}

/// Lines with something in them that is no comment.
fn filled(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines(text).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// The cells of a line, without quotes.
fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"').trim()).collect()
}

/// The columns of a header: a time, something else, and nothing twice.
fn columns(line: usize, header: &str) -> Result<Vec<Column>, RecordingError> {
    if let Some(other) = [';', '\t'].into_iter().find(|other| header.contains(*other) && !header.contains(',')) {
        let other = if other == ';' { "semicolons" } else { "tabs" };
        return fault(line, format!("its columns are separated by {other}; a trace has commas, and points in numbers"));
    }
    let names = cells(header);
    let mut columns: Vec<Column> = Vec::new();
    for name in &names {
        let Some(column) = Column::of(name) else {
            let known = COLUMNS.map(|(name, ..)| name).join(", ");
            return fault(
                line,
                format!(
                    "there is no column `{}`; columns are {known}, but for the time each with _down or _up too",
                    cut(name)
                ),
            );
        };
        for direction in [Direction::Down, Direction::Up] {
            let taken =
                |other: &&Column| other.is_of(column.quantity, direction) && column.is_of(column.quantity, direction);
            if let Some(other) = columns.iter().find(taken) {
                return fault(
                    line,
                    format!("columns {} and {} say the same of one direction", other.name, column.name),
                );
            }
        }
        columns.push(column);
    }
    if columns.iter().all(|column| column.quantity != Quantity::Time) {
        return fault(line, format!("there is no column time_s among {}", cut(header)));
    }
    if columns.len() < 2 {
        return fault(line, "there is a time and nothing else");
    }
    Ok(columns)
}

/// The time of a line, and its values in the order of `columns`.
fn row(line: usize, text: &str, columns: &[Column]) -> Result<(Duration, Vec<Option<f64>>), RecordingError> {
    let cells = cells(text);
    if cells.len() != columns.len() {
        return fault(line, format!("{} values for {} columns", cells.len(), columns.len()));
    }
    let (mut time, mut values) = (None, Vec::with_capacity(cells.len()));
    for (column, cell) in columns.iter().zip(cells) {
        let value = if cell.is_empty() { None } else { Some(column.value(cell).or_else(|what| fault(line, what))?) };
        if column.quantity == Quantity::Time {
            time = value;
        }
        values.push(value);
    }
    let Some(time) = time else { return fault(line, "there is no time") };
    Ok((seconds(time), values))
}

/// The values of one quantity. Before the first value that is there, it counts too.
fn steps<T: Copy + PartialEq>(
    rows: &[(Duration, Vec<Option<f64>>)],
    columns: &[Column],
    quantity: Quantity,
    direction: Direction,
    make: impl Fn(f64) -> T,
) -> Option<Steps<T>> {
    let place = columns.iter().position(|column| column.is_of(quantity, direction))?;
    let mut value = rows.iter().find_map(|(_, values)| values[place])?;
    let points: Vec<_> = rows
        .iter()
        .map(|(at, values)| {
            value = values[place].unwrap_or(value);
            (*at, make(value))
        })
        .collect();
    Steps::new(&points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Instant;

    #[test]
    fn a_recording_has_any_of_its_columns() {
        let text = "# a drive\ntime_s,rate_mbps_down,rate_kbps_up,rtt_ms,loss_percent\n10,20,500,50,\n11,,600,80,2\n\n12.5,10,600,40,0\n";
        assert!(Recording::is_one(text) && !Recording::is_one("1\n2\n") && !Recording::is_one(""));
        let recording = Recording::parse(text).unwrap();
        let at = Instant::from_millis;
        let (down, up) = (&recording.down, &recording.up);
        assert_eq!(down.rate.as_ref().unwrap().steps().at(at(1500)), Rate::from_bps(20_000_000));
        assert_eq!(up.rate.as_ref().unwrap().steps().at(at(1500)), Rate::from_bps(600_000));
        assert_eq!(down.delay.as_ref().unwrap().at(at(1000)), Duration::from_millis(40));
        assert_eq!(up.delay, down.delay);
        assert_eq!([0, 1000, 2600].map(|ms| down.loss.as_ref().unwrap().at(at(ms))), [0.02, 0.02, 0.0]);
        let delay = down.delay.as_ref().unwrap();
        assert_eq!(delay.duration(), Duration::from_millis(4000));
        assert_eq!(delay.begun_at(Duration::from_secs(1)).at(at(0)), Duration::from_millis(40));
    }

    #[test]
    fn spreadsheets_and_epochs_change_nothing() {
        let plain = Recording::parse("time_s,rate_mbps\n0,20\n1,10\n");
        for text in [
            "\u{feff}time_s,rate_mbps\n0,20\n1,10\n",
            "time_s,rate_mbps\r\n0,20\r\n1,10\r\n",
            "time_s,rate_mbps\r0,20\r1,10\r",
            "\"time_s\",\"rate_mbps\"\n\"0\",\"20\"\n\"1\", \"10\"\n",
            "time_s , rate_mbps \n0 , 20\n1 , 10\n",
            "time_s,rate_mbps\n1700000000,20\n1700000001,10\n",
            "time_ms,rate_mbps\n1700000000000,20\n1700000001000,10\n",
        ] {
            assert!(Recording::is_one(text), "{text:?}");
            assert_eq!(Recording::parse(text), plain, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_recording_is_refused_by_its_line() {
        let said = |text: &str| Recording::parse(text).unwrap_err().to_string();
        assert_eq!(said(""), "line 1: the trace is empty");
        assert_eq!(said("rate_bps,loss\n1,0\n"), "line 1: there is no column time_s among rate_bps,loss");
        assert_eq!(said("time_s\n1\n"), "line 1: there is a time and nothing else");
        assert!(Recording::is_one("rate_mbps_down\n5\n"), "a header, though of one column");
        assert_eq!(said("rate_mbps_down\n5\n"), "line 1: there is no column time_s among rate_mbps_down");
        let idle = "line 1: no value in column rate_bps is above zero: nothing would ever pass";
        assert_eq!(
            (said("time_s,rate_bps\n0,0\n1,0\n"), said("time_s,rate_bps,loss\n0,,0\n")),
            (idle.into(), idle.into())
        );
        assert!(said("time_s,speed\n").starts_with("line 1: there is no column `speed`; columns are time_s, "));
        assert_eq!(said("time_s,rate_bps\n"), "line 1: the trace has a header and no line of values");
        assert_eq!(said("time_s,rate_bps\n1,5\n0.5,5\n"), "line 3: its time is before that of the line before");
        assert_eq!(said("time_s,rate_bps\n1,x\n"), "line 2: `x` is not a number in column rate_bps");
        assert_eq!(said("time_s,loss\n1,5\n"), "line 2: `5` is more than all packets in column loss");
        assert_eq!(said("time_s,delay_ms\n1,-5\n"), "line 2: `-5` is negative in column delay_ms");
        assert_eq!(said("time_s,delay_ms\n1,nan\n"), "line 2: `nan` is not a number in column delay_ms");
        assert_eq!(said("time_s,rate_bps\n1,inf\n"), "line 2: `inf` is more than 1 Pbit/s in column rate_bps");
        assert_eq!(said("time_s,rate_bps\n1,-inf\n"), "line 2: `-inf` is negative in column rate_bps");
        assert_eq!(said("time_ms,loss\n1e14,0\n"), "line 2: `1e14` is more than 300 years in column time_ms");
        let long = "line 3: its time is more than 1000 hours after the first";
        assert_eq!(said("time_s,loss\n1700000000,0\n1703600001,0\n"), long);
        for (separator, name) in [(";", "semicolons"), ("\t", "tabs")] {
            let text = format!("# a\ntime_s{separator}rate_bps\n1{separator}5\n");
            let expected =
                format!("line 2: its columns are separated by {name}; a trace has commas, and points in numbers");
            assert_eq!(said(&text), expected);
        }
        assert_eq!(said("time_s,loss\r1,0\r2,x\r"), "line 3: `x` is not a number in column loss");
        assert_eq!(said("time_s,delay_ms\n1\n"), "line 2: 1 values for 2 columns");
        assert_eq!(said("time_s,delay_ms\n,1\n"), "line 2: there is no time");
        assert_eq!(
            said("time_s,rate_bps,rate_mbps_up\n"),
            "line 1: columns rate_bps and rate_mbps say the same of one direction"
        );
    }
}
