//! One number of a run, requested by name.

use crate::curves::Curve;
use crate::record::RunRecord;
use anabranch_metrics::{METRICS, MetricRef};
use anabranch_scenario::{nearest, parse_duration};
use anabranch_units::Duration;
use std::fmt;
use std::str::FromStr;

/// A question: `goodput_bps`, `path.wlan.share`, the mean of a curve within a time, `lambda[20s..40s]`, or the share of a
/// distribution from one number of packets to another, `rd[-2..2]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A metric of the connection.
    Metric(String),
    /// A metric of a path.
    Path {
        /// The path's name.
        path: String,
        /// The metric's name.
        metric: String,
    },
    /// The mean of the bins of a curve that lie wholly within a time, counted from the run's beginning.
    Window {
        /// The curve's name, as in [`crate::Curves`].
        curve: String,
        /// From here.
        from: Duration,
        /// To here; later than `from`.
        to: Duration,
    },
    /// The share of a distribution, `rbd` or `rd`, in a range. Where its step is wider than one packet, only whole steps
    /// count.
    Share {
        /// The distribution's name.
        curve: String,
        /// The least number of packets.
        from: i64,
        /// The greatest number, inclusive; not below `from`.
        to: i64,
    },
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// Nothing has this name.
    Unknown {
        /// As written.
        name: String,
        /// The nearest valid name.
        nearest: Option<String>,
    },
    /// The text in brackets is no time from … to ….
    Window {
        /// As written, with the brackets.
        text: String,
    },
    /// The text in brackets after a distribution is no range of packets.
    Packets {
        /// As written, with the brackets.
        text: String,
    },
    /// The run does not have it: the metric does not apply, or the run was made without curves.
    Absent {
        /// Name of the curve or metric.
        name: String,
    },
    /// No bin with a value lies within the time.
    Empty {
        /// As written.
        name: String,
    },
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, nearest: None } => write!(f, "nothing is called `{name}`"),
            Self::Unknown { name, nearest: Some(near) } => write!(f, "nothing is called `{name}`; `{near}` is near"),
            Self::Window { text } => {
                write!(f, "`{text}` is no time: write it as [20s..40s], the earlier end first")
            }
            Self::Packets { text } => {
                write!(f, "`{text}` are no numbers of packets: write [-2..2], the lesser first; both ends count")
            }
            Self::Absent { name } => write!(f, "the run has no `{name}`"),
            Self::Empty { name } => write!(f, "no bin with a value lies within `{name}`"),
        }
    }
}

impl std::error::Error for AskError {}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metric(name) => f.write_str(name),
            Self::Path { path, metric } => MetricRef::of_path(path, metric).fmt(f),
            Self::Window { curve, from, to } => {
                write!(f, "{curve}[{}s..{}s]", from.as_secs_f64(), to.as_secs_f64())
            }
            Self::Share { curve, from, to } => write!(f, "{curve}[{from}..{to}]"),
        }
    }
}

impl FromStr for Ask {
    type Err = AskError;

    fn from_str(text: &str) -> Result<Self, AskError> {
        if let Some(at) = text.find('[') {
            return window(&text[..at], &text[at..]);
        }
        let metric = MetricRef::parse(text);
        if metric.info().is_none() {
            let known = METRICS.iter().filter(|info| info.per_path == metric.path.is_some()).map(|info| info.name);
            let near = nearest(metric.name, known).map(|name| MetricRef { name, ..metric }.to_string());
            return Err(AskError::Unknown { name: text.to_owned(), nearest: near });
        }
        let name = metric.name.to_owned();
        Ok(match metric.path {
            None => Self::Metric(name),
            Some(path) => Self::Path { path: path.to_owned(), metric: name },
        })
    }
}

fn window(curve: &str, brackets: &str) -> Result<Ask, AskError> {
    let curve = curve.to_owned();
    let ends = brackets.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.split_once(".."));
    let ends = ends.map(|(from, to)| (from.trim(), to.trim()));
    if ["rbd", "rd"].contains(&curve.as_str()) {
        let ends = ends.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        return match ends.filter(|(from, to)| from <= to) {
            Some((from, to)) => Ok(Ask::Share { curve, from, to }),
            None => Err(AskError::Packets { text: brackets.to_owned() }),
        };
    }
    let ends = ends.and_then(|(from, to)| Some((parse_duration(from)?, parse_duration(to)?)));
    match ends.filter(|(from, to)| from < to && !curve.is_empty()) {
        Some((from, to)) => Ok(Ask::Window { curve, from, to }),
        None => Err(AskError::Window { text: brackets.to_owned() }),
    }
}

impl RunRecord {
    /// The answer to a question.
    ///
    /// # Errors
    /// This run has none.
    pub fn ask(&self, ask: &Ask) -> Result<f64, AskError> {
        let absent = || AskError::Absent { name: ask.to_string() };
        match ask {
            Ask::Metric(name) => self.metrics.get(name).copied().ok_or_else(absent),
            Ask::Path { path, metric } => {
                self.paths.get(path).and_then(|values| values.get(metric)).copied().ok_or_else(absent)
            }
            Ask::Window { curve, from, to } => {
                let known = self.curves.get(curve).ok_or_else(|| match nearest(curve, self.curve_names()) {
                    None => AskError::Absent { name: curve.clone() },
                    Some(near) => AskError::Unknown { name: curve.clone(), nearest: Some(near.to_owned()) },
                })?;
                known.mean_within(*from, *to).ok_or_else(|| AskError::Empty { name: ask.to_string() })
            }
            Ask::Share { curve, from, to } => {
                let known = self.curves.get(curve).ok_or_else(absent)?;
                Ok(known.sum_within(*from as f64, *to as f64))
            }
        }
    }

    /// As [`Self::ask`]: the answer to a question as it is written; `None` if there is no answer, or the question is not valid.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.ask(&name.parse().ok()?).ok()
    }

    fn curve_names(&self) -> impl Iterator<Item = &str> {
        self.curves.keys().map(String::as_str)
    }
}

impl Curve {
    /// The mean of the values whose bins lie wholly between two times; `None` without any.
    pub fn mean_within(&self, from: Duration, to: Duration) -> Option<f64> {
        // Bins are whole nanoseconds long: what is off by less is meant to be equal.
        let slack = 0.5e-9;
        let within = |index: usize| {
            let begin = self.start + index as f64 * self.step;
            begin >= from.as_secs_f64() - slack && begin + self.step <= to.as_secs_f64() + slack
        };
        let inside = self.values.iter().enumerate().filter(|(index, _)| within(*index));
        let values: Vec<f64> = inside.filter_map(|(_, value)| *value).collect();
        anabranch_metrics::mean(&values)
    }

    /// The sum of the values whose steps lie wholly between two numbers, both inclusive.
    pub fn sum_within(&self, from: f64, to: f64) -> f64 {
        let within = |index: usize| {
            let begin = self.start + index as f64 * self.step;
            begin >= from && begin + self.step - 1.0 <= to
        };
        let inside = self.values.iter().enumerate().filter(|(index, _)| within(*index));
        inside.filter_map(|(_, value)| *value).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunOutcome;

    fn record() -> RunRecord {
        let curve =
            |values: &[f64]| Curve { start: 0.0, step: 0.1, values: values.iter().copied().map(Some).collect() };
        let mut gaps = curve(&[1.0, 2.0, 3.0, 5.0]);
        gaps.values[1] = None;
        let outcome = RunOutcome {
            metrics: [("goodput_bps".to_owned(), 7.0)].into(),
            paths: [("w.lan".to_owned(), [("share".to_owned(), 0.5)].into())].into(),
            curves: [
                ("lambda".to_owned(), gaps),
                ("path.w.lan.srtt_s".to_owned(), curve(&[5.0; 9])),
                ("rd".to_owned(), Curve { start: -3.0, step: 1.0, ..curve(&[0.125, 0.25, 0.0, 0.5, 0.125]) }),
                ("rbd".to_owned(), Curve { start: 0.0, step: 2.0, ..curve(&[0.5, 0.25, 0.25]) }),
            ]
            .into(),
            ..RunOutcome::default()
        };
        RunRecord::new("blest", "olia", 1, [].into(), outcome)
    }

    #[test]
    fn metrics_and_windows() {
        let run = record();
        assert_eq!(run.value("goodput_bps"), Some(7.0));
        assert_eq!(run.value("path.w.lan.share"), Some(0.5));
        assert_eq!(run.value("lambda[0s..400ms]"), Some(3.0));
        // Only whole bins: those from 200 and from 300 ms on, although 0.1 is no exact float.
        assert_eq!(run.value("lambda[150ms .. 400ms]"), Some(4.0));
        assert_eq!(run.value("lambda[0s..90ms]"), None);
        assert_eq!(run.value("path.w.lan.srtt_s[0.3s..1h]"), None, "no such unit");
        assert_eq!(run.value("path.w.lan.srtt_s[0.3s..60s]"), Some(5.0));
    }

    #[test]
    fn shares_of_distributions() {
        let run = record();
        assert_eq!(run.value("rd[-2..1]"), Some(0.875));
        assert_eq!(run.value("rd[0..0]"), Some(0.5));
        assert_eq!(run.value("rd[-100 .. 100]"), Some(1.0));
        assert_eq!(run.value("rd[5..9]"), Some(0.0));
        // 2 and 3 together are one value, 4 is half of one.
        assert_eq!(run.value("rbd[0..3]"), Some(0.75));
        assert_eq!(run.value("rbd[0..4]"), Some(0.75));
    }

    #[track_caller]
    fn refused(question: &str, why: &str) {
        let error = question.parse().and_then(|ask: Ask| record().ask(&ask)).unwrap_err();
        assert_eq!(error.to_string(), why);
        assert_eq!(record().value(question), None);
    }

    #[test]
    fn what_cannot_be_answered_says_why() {
        refused("godput_bps", "nothing is called `godput_bps`; `goodput_bps` is near");
        refused("colour", "nothing is called `colour`");
        refused("path.w.lan.shares", "nothing is called `path.w.lan.shares`; `path.w.lan.share` is near");
        refused("timeouts", "the run has no `timeouts`");
        refused("path.3g.share", "the run has no `path.3g.share`");
        for bad in ["[1s..2s]", "[2..1]", "[1]", "[0..0.5]"] {
            let why = format!("`{bad}` are no numbers of packets: write [-2..2], the lesser first; both ends count");
            refused(&format!("rbd{bad}"), &why);
        }
        for bad in ["[2s..1s]", "[1s..1s]", "[1s-2s]", "[1..2]", "[1s..2s", "[", "[..]", "[1s..2s]]"] {
            let why = format!("`{bad}` is no time: write it as [20s..40s], the earlier end first");
            refused(&format!("lambda{bad}"), &why);
        }
        refused("[1s..2s]", "`[1s..2s]` is no time: write it as [20s..40s], the earlier end first");
        refused("lamda[0s..1s]", "nothing is called `lamda`; `lambda` is near");
        refused("offset[0s..1s]", "the run has no `offset`");
        refused("lambda[5s..6s]", "no bin with a value lies within `lambda[5s..6s]`");
    }
}
