//! Several values in one word, for sweeps: `1%,2%`, `10ms..200ms*2`.

use crate::quantity::{RATE, SIZE, TIME, Units, parts};
use std::ops::Range;

/// The most values of one list.
const MOST: usize = 10_000;

/// Why a list cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFault {
    /// The part of the text.
    pub at: Range<usize>,
    /// The fault.
    pub label: String,
    /// Text to write instead.
    pub help: String,
}

/// The values of `text`, each with its place in it.
///
/// Commas separate values, except inside of brackets. A value may be a range, which includes its ends: `A..B*F` multiplies
/// by F, `A..B/N` gives N values at equal distances, `A..B:STEP` adds STEP, `A..B` adds 1, or a tenth of the range where
/// values have a unit.
///
/// # Errors
/// A range that is none, or that has more than 10,000 values.
pub fn listed(text: &str) -> Result<Vec<(Range<usize>, String)>, ListFault> {
    let mut values = Vec::new();
    for at in outside_brackets(text) {
        match text[at.clone()].find("..").filter(|_| text[at.clone()].starts_with(|c: char| c.is_ascii_digit())) {
            Some(dots) => {
                values.extend(range(text, &at, at.start + dots)?.into_iter().map(|value| (at.clone(), value)))
            }
            None => values.push((at.clone(), text[at].to_owned())),
        }
        if values.len() > MOST {
            return Err(too_many(0..text.len()));
        }
    }
    Ok(values)
}

/// The places between commas outside of brackets, without the blanks around: `blest(delta=0.01,lambda=2)` is one.
pub fn outside_brackets(text: &str) -> Vec<Range<usize>> {
    let mut depth = 0u32;
    let mut start = 0;
    let mut places = Vec::new();
    for (at, c) in text.char_indices().chain([(text.len(), ',')]) {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 || at == text.len() => {
                let word = &text[start..at];
                let from = start + word.len() - word.trim_start().len();
                places.push(from..from.max(start + word.trim_end().len()));
                start = at + 1;
            }
            _ => {}
        }
    }
    places
}

/// A quantity of a range's unit.
struct Scale<'a> {
    /// As written behind the first value.
    unit: &'a str,
    /// Units, with a multiple of the smallest one if values are whole numbers of that.
    family: Option<(&'static Units, u64)>,
}

impl<'a> Scale<'a> {
    fn of(unit: &'a str) -> Self {
        let family = [&RATE, &TIME, &SIZE].into_iter().find_map(|units| Some((units, units.multiple(unit)?)));
        Self { unit, family }
    }

    /// `word` as a number of this unit.
    fn read(&self, word: &str) -> Option<f64> {
        let (number, unit) = parts(word)?;
        match self.family {
            _ if unit == self.unit => Some(number),
            Some((units, multiple)) => Some(number * units.multiple(unit)? as f64 / multiple as f64),
            None => None,
        }
    }

    /// In the notation of scenario files.
    fn write(&self, number: f64) -> String {
        // As written in decimal: 0.1 + 2·0.1 is 0.3.
        let decimal = |number: f64| format!("{number:.12e}").parse().unwrap_or(number);
        let Some((units, multiple)) = self.family else {
            let whole = self.unit == "p";
            return format!("{}{}", if whole { number.round() } else { decimal(number) }, self.unit);
        };
        let smallest = (number * multiple as f64).round();
        let text = format!("{}{}", smallest / multiple as f64, self.unit);
        match units.read(&text) {
            Ok(read) if read as f64 == smallest => text,
            _ => format!("{smallest}{}", units.units[0].0),
        }
    }
}

/// How a range advances.
#[derive(Clone, Copy)]
enum Step {
    Times(f64),
    Parts(usize),
    Plus(f64),
}

/// The values of the range at `at`, whose dots are at `dots`.
fn range(text: &str, at: &Range<usize>, dots: usize) -> Result<Vec<String>, ListFault> {
    let fault = |at: Range<usize>, label: &str, help: &str| ListFault { at, label: label.into(), help: help.into() };
    let unreadable =
        |at: Range<usize>| fault(at, "cannot be read", "a range has numbers of one kind, such as 10ms..200ms*2");
    let behind = dots + 2;
    let operator = operator(&text[behind..at.end]).map(|place| behind + place);
    let to_at = behind..operator.unwrap_or(at.end);
    let (_, unit) = parts(&text[at.start..dots]).ok_or_else(|| unreadable(at.start..dots))?;
    let scale = Scale::of(unit);
    let number = |at: Range<usize>| scale.read(&text[at.clone()]).ok_or_else(|| unreadable(at));
    let (from, to) = (number(at.start..dots)?, number(to_at)?);
    let step = match operator {
        None if unit.is_empty() => Step::Plus(1.0),
        None => Step::Parts(11),
        Some(operator) => {
            let operand = operator + 1..at.end;
            let plain = || text[operand.clone()].trim().parse::<f64>().map_err(|_| unreadable(operand.clone()));
            match &text[operator..operator + 1] {
                "*" => Step::Times(plain()?),
                "/" => Step::Parts(plain()? as usize),
                _ => Step::Plus(number(operand.clone())?),
            }
        }
    };
    let no_range = |help: &str| fault(at.clone(), "is no range", help);
    let next = match step {
        _ if from > to => return Err(no_range("the first value is at most the second")),
        Step::Times(factor) if !(factor > 1.0 && from > 0.0) => {
            return Err(no_range("in A..B*F, A is above 0 and F above 1"));
        }
        Step::Parts(_) if from == to => return Err(no_range("in A..B/N, A is below B")),
        Step::Parts(0 | 1) => return Err(no_range("in A..B/N, N is a number of values, at least 2")),
        Step::Plus(step) if step.is_nan() || step <= 0.0 => return Err(no_range("in A..B:STEP, STEP is above 0")),
        step => move |value: f64, k: usize| match step {
            Step::Times(factor) => value * factor,
            Step::Parts(parts) => from + (to - from) * k as f64 / (parts - 1) as f64,
            Step::Plus(step) => from + step * k as f64,
        },
    };
    // The last value may be a rounding beyond its end.
    let end = to + 1e-9 * (to - from);
    let mut values = Vec::new();
    let mut value = from;
    while value <= end {
        if values.len() == MOST {
            return Err(too_many(at.clone()));
        }
        let text = scale.write(value);
        if values.last() == Some(&text) {
            return Err(no_range(&format!("its steps are too small: {text} comes twice")));
        }
        values.push(text);
        value = next(value, values.len());
    }
    Ok(values)
}

/// Where a range's operator stands behind its dots. A price, as in `1/GB..5/GB/3`, has strokes of its own.
fn operator(rest: &str) -> Option<usize> {
    let stroke = || rest.rfind('/').filter(|place| rest[place + 1..].trim().bytes().all(|b| b.is_ascii_digit()));
    rest.rfind(['*', ':']).or_else(stroke)
}

fn too_many(at: Range<usize>) -> ListFault {
    ListFault { at, label: format!("has more than {MOST} values"), help: "give fewer values, or larger steps".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        listed(text).unwrap().into_iter().map(|(_, value)| value).collect()
    }

    fn fault(text: &str) -> (String, String) {
        let fault = listed(text).unwrap_err();
        (text[fault.at].to_owned(), fault.label)
    }

    #[test]
    fn commas_separate_outside_of_brackets() {
        assert_eq!(values("1%,2%, 5%"), ["1%", "2%", "5%"]);
        assert_eq!(values("blest,blest(delta=0.01,lambda=2)"), ["blest", "blest(delta=0.01,lambda=2)"]);
        assert_eq!(values("{ kind = 'red', min = '5p' }"), ["{ kind = 'red', min = '5p' }"]);
        assert_eq!(values("a,,b"), ["a", "", "b"]);
        assert_eq!(listed("1, 22").unwrap()[1], (3..5, "22".to_owned()));
        assert_eq!(values("a)b,c(d,e"), ["a)b", "c(d,e"]);
    }

    #[test]
    fn ranges_multiply_divide_and_add() {
        assert_eq!(values("10ms..100ms*2"), ["10ms", "20ms", "40ms", "80ms"]);
        assert_eq!(values("64KiB..1MiB*4"), ["64KiB", "256KiB", "1024KiB"]);
        assert_eq!(values("10ms..100ms/4"), ["10ms", "40ms", "70ms", "100ms"]);
        assert_eq!(values("0.1..0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(values("1..4"), ["1", "2", "3", "4"]);
        assert_eq!(values("0%..1%").len(), 11);
        assert_eq!(values("0%..1%")[3], "0.3%");
        assert_eq!(values("10p..40p*1.5"), ["10p", "15p", "23p", "34p"]);
        assert_eq!(values("1/GB..5/GB/3"), ["1/GB", "3/GB", "5/GB"]);
        assert_eq!(values("1,4..6,9"), ["1", "4", "5", "6", "9"]);
        assert_eq!(values("5ms..5ms*2"), ["5ms"]);
    }

    #[test]
    fn every_value_is_one_that_scenario_files_take() {
        // A third of 10 ms is no whole number of nanoseconds.
        assert_eq!(values("0ms..10ms/4"), ["0ms", "3.333333ms", "6.666667ms", "10ms"]);
        assert_eq!(values("1GiB..2GiB/4")[1], "1431655765B");
    }

    #[test]
    fn a_range_that_is_none_is_refused_where_it_stands() {
        assert_eq!(fault("1ms,9ms..2ms*2"), ("9ms..2ms*2".into(), "is no range".into()));
        assert_eq!(fault("1ms..2mbit*2").0, "2mbit");
        assert_eq!(fault("1ms..2ms*x").0, "x");
        for text in
            ["0..8*2", "1..8*1", "1..8/1", "1..8:0", "1..8/0", "3..3/4", "1p..3p*1.2", "10000000000001..10000000000003"]
        {
            assert_eq!(fault(text), (text.to_owned(), "is no range".into()), "{text}");
        }
        assert_eq!(fault("1..1000000").1, "has more than 10000 values");
        assert_eq!(fault("1..9999,1..9999").1, "has more than 10000 values");
        assert_eq!(fault("1ns..1tbit").0, "1tbit");
    }
}
