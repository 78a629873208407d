//! One value: text or number in, quantity out, or a diagnostic that points at it.

use crate::diagnostic::Code;
use crate::keys::{Form, Key};
use crate::quantity::{self, Fault, QueueLimit, Units};
use crate::scenario::TraceStart;
use crate::suggest::nearest;
use crate::tree::{Node, Report, Value};
use anabranch_network::Threshold;
use anabranch_units::{Duration, Rate};

/// Longer than any experiment, and far from overflow.
const LONGEST: Duration = Duration::from_secs(1000 * 3600);
/// Faster than any link, and far from overflow.
const FASTEST: Rate = Rate::from_bps(1_000_000_000_000_000);

/// Reports a value of the wrong type.
pub(crate) fn wrong_type(report: &mut Report, key: &Key, node: &Node) {
    let help = match (&node.value, key.form) {
        (Value::Integer(n), Form::Duration { .. } | Form::TraceStart) => {
            format!("write \"{n}s\" for seconds or \"{n}ms\" for milliseconds")
        }
        (Value::Integer(n), Form::Rate) => format!("write \"{n}mbit\" or \"{n}bit\" with the unit that is meant"),
        (Value::Integer(n), Form::Queue | Form::Limit) => {
            format!("write \"{n}p\" for packets or \"{n}B\" for bytes")
        }
        (Value::Text(text), Form::Integer { .. } | Form::Real { .. } | Form::Integers(_))
            if text.parse::<f64>().is_ok() =>
        {
            format!("write {text} without quotes")
        }
        _ => format!("expected {}", key.form.expected()),
    };
    report
        .error(Code::WrongType, node.at, format!("`{}` cannot be {}", key.full_name(), node.kind()))
        .label(format!("this is {}", node.kind()))
        .help(help);
}

/// Reports an impossible value.
pub(crate) fn impossible(report: &mut Report, key: &Key, node: &Node, why: &str) {
    let help = format!("expected {}", key.form.expected());
    report.error(Code::ImpossibleValue, node.at, format!("`{}` {why}", key.full_name())).label(why).help(help);
}

/// Reports a word that is not among `words`.
pub(crate) fn unknown_word<'a>(
    report: &mut Report,
    code: Code,
    node: &Node,
    message: String,
    words: impl Iterator<Item = &'a str> + Clone,
) {
    if report.is_full() {
        report.error(code, node.at, message);
        return;
    }
    let help = match nearest(node.as_text().unwrap_or_default(), words.clone()) {
        Some(word) => format!("did you mean \"{word}\"?"),
        None => {
            let words: Vec<_> = words.map(|word| format!("\"{word}\"")).collect();
            if words.is_empty() { "there is none".into() } else { format!("choose from {}", words.join(", ")) }
        }
    };
    report.error(code, node.at, message).label("unknown").help(help);
}

fn fault(report: &mut Report, key: &Key, node: &Node, units: Option<&Units>, fault: Fault) {
    let expected = format!("expected {}", key.form.expected());
    let name = key.full_name();
    let (message, label, help) = match fault {
        Fault::Negative => return impossible(report, key, node, "is negative"),
        Fault::TooLarge => return impossible(report, key, node, "is too large"),
        Fault::TooFine => {
            let why =
                units.map_or("has too many digits".into(), |u| format!("is not a whole number of {}", u.smallest));
            return impossible(report, key, node, &why);
        }
        Fault::NotANumber => {
            (format!("`{name}` does not begin with a number"), "not a number with a unit".into(), expected)
        }
        Fault::NoUnit => (format!("`{name}` has no unit"), "a number alone may mean several things".into(), expected),
        Fault::Unit { unit, hint } => {
            (format!("`{unit}` is not a unit of `{name}`"), format!("unit `{unit}`"), hint.unwrap_or(expected))
        }
    };
    report.error(Code::WrongUnit, node.at, message).label(label).help(help);
}

fn text<'n>(report: &mut Report, key: &Key, node: &'n Node) -> Option<&'n str> {
    let text = node.as_text();
    if text.is_none() {
        wrong_type(report, key, node);
    }
    text
}

/// A text that `parse` accepts.
fn quantity<T>(
    report: &mut Report,
    key: &Key,
    node: &Node,
    units: Option<&Units>,
    parse: impl Fn(&str) -> Result<T, Fault>,
) -> Option<T> {
    let text = text(report, key, node)?;
    parse(text).map_err(|f| fault(report, key, node, units, f)).ok()
}

/// A duration within the key's limits.
pub(crate) fn duration(report: &mut Report, key: &'static Key, node: &Node) -> Option<Duration> {
    let value = quantity(report, key, node, Some(&quantity::TIME), quantity::duration)?;
    let why = match key.form {
        Form::Duration { positive: true } if value.is_zero() => "is zero",
        _ if value > LONGEST => "is longer than 1000 hours",
        _ => return Some(value),
    };
    impossible(report, key, node, why);
    None
}

/// A rate above zero.
pub(crate) fn rate(report: &mut Report, key: &'static Key, node: &Node) -> Option<Rate> {
    let value = quantity(report, key, node, Some(&quantity::RATE), quantity::rate)?;
    let why = match value.as_bps() {
        0 => "is zero; for a time without delivery use `outage`",
        _ if value > FASTEST => "is too large",
        _ => return Some(value),
    };
    impossible(report, key, node, why);
    None
}

/// A size within the key's limits; a number is bytes.
pub(crate) fn size(report: &mut Report, key: &'static Key, node: &Node) -> Option<u64> {
    let value = match node.value {
        Value::Integer(bytes) => match u64::try_from(bytes) {
            Ok(bytes) => bytes,
            Err(_) => {
                impossible(report, key, node, "is negative");
                return None;
            }
        },
        _ => quantity(report, key, node, Some(&quantity::SIZE), quantity::size)?,
    };
    let Form::Size { min, max } = key.form else { return Some(value) };
    let why = match value {
        v if v < min => "is too small",
        v if v > max => "is too large",
        v => return Some(v),
    };
    impossible(report, key, node, why);
    None
}

/// A probability; a number with a point is a fraction.
pub(crate) fn probability(report: &mut Report, key: &'static Key, node: &Node) -> Option<f64> {
    match node.value {
        Value::Real(p) if (0.0..=1.0).contains(&p) => Some(p),
        Value::Integer(0) => Some(0.0),
        Value::Real(p) if p < 0.0 => {
            impossible(report, key, node, "is negative");
            None
        }
        Value::Integer(n) if n < 0 => {
            impossible(report, key, node, "is negative");
            None
        }
        Value::Real(_) => {
            impossible(report, key, node, "is not between 0 and 1");
            None
        }
        Value::Integer(n) => {
            // netem reads `loss 1` as one percent; mathematically it is a probability of one.
            report
                .error(Code::WrongUnit, node.at, format!("`{}` may mean {n} percent or a fraction", key.full_name()))
                .label("ambiguous")
                .help(format!("write \"{n}%\", or a fraction such as 0.01"));
            None
        }
        _ => match quantity::probability(text(report, key, node)?) {
            Ok(p) => Some(p),
            Err(Fault::TooLarge) => {
                impossible(report, key, node, "is above 100 %");
                None
            }
            Err(f) => {
                fault(report, key, node, None, f);
                None
            }
        },
    }
}

/// A whole number within the key's limits.
pub(crate) fn integer(report: &mut Report, key: &'static Key, node: &Node) -> Option<i64> {
    let Value::Integer(n) = node.value else {
        wrong_type(report, key, node);
        return None;
    };
    let fits = match key.form {
        Form::Integer { min, max } => (min..=max).contains(&n),
        Form::Integers(numbers) => numbers.contains(&n),
        _ => true,
    };
    if !fits {
        impossible(report, key, node, &format!("cannot be {n}"));
    }
    fits.then_some(n)
}

/// A finite real number.
pub(crate) fn real(report: &mut Report, key: &'static Key, node: &Node) -> Option<f64> {
    let value = match node.value {
        Value::Real(x) => x,
        Value::Integer(n) => n as f64,
        // A default is plain text; a file must omit the quotes.
        _ => {
            wrong_type(report, key, node);
            return None;
        }
    };
    let Form::Real { above } = key.form else { return Some(value) };
    let fits = value.is_finite() && value > above;
    if !fits {
        impossible(report, key, node, &format!("cannot be {value}"));
    }
    fits.then_some(value)
}

/// `true` or `false`.
pub(crate) fn flag(report: &mut Report, key: &'static Key, node: &Node) -> Option<bool> {
    let Value::Flag(flag) = node.value else {
        wrong_type(report, key, node);
        return None;
    };
    Some(flag)
}

/// One of the key's words.
pub(crate) fn word(report: &mut Report, key: &'static Key, node: &Node) -> Option<&'static str> {
    let text = text(report, key, node)?;
    let words = key.form.words();
    let found = words.iter().copied().find(|word| *word == text);
    if found.is_none() {
        let message = format!("`{}` cannot be \"{text}\"", key.full_name());
        unknown_word(report, Code::UnknownWord, node, message, words.iter().copied());
    }
    found
}

/// A word of the key, or a time in whole milliseconds.
pub(crate) fn trace_start(report: &mut Report, key: &'static Key, node: &Node) -> Option<TraceStart> {
    if !text(report, key, node)?.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        return word(report, key, node).map(|word| if word == "seed" { TraceStart::Seed } else { TraceStart::Begin });
    }
    let from = duration(report, key, node)?;
    if !from.as_nanos().is_multiple_of(1_000_000) {
        impossible(report, key, node, "is not a whole number of milliseconds");
        return None;
    }
    Some(if from.is_zero() { TraceStart::Begin } else { TraceStart::At(from) })
}

/// A title: not empty, one line.
pub(crate) fn title(report: &mut Report, key: &'static Key, node: &Node) -> Option<String> {
    let text = text(report, key, node)?;
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        impossible(report, key, node, "must be one line with something in it");
        return None;
    }
    Some(text.into())
}

/// The longest name of a path or link.
const LONGEST_NAME: usize = 64;

/// A name that is valid in a dotted key, in results and in file names.
pub(crate) fn name(report: &mut Report, key: &'static Key, node: &Node) -> Option<String> {
    let text = text(report, key, node)?;
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if text.is_empty() || !plain || text.len() > LONGEST_NAME {
        impossible(report, key, node, "is not a plain name");
        return None;
    }
    Some(text.into())
}

/// The text of a reference or a file name.
pub(crate) fn reference(report: &mut Report, key: &'static Key, node: &Node) -> Option<String> {
    text(report, key, node).map(String::from)
}

/// Money per byte.
pub(crate) fn price(report: &mut Report, key: &'static Key, node: &Node) -> Option<f64> {
    match node.value {
        Value::Real(x) if x.is_finite() && x >= 0.0 => Some(x),
        Value::Integer(n) if n >= 0 => Some(n as f64),
        Value::Real(_) | Value::Integer(_) => {
            impossible(report, key, node, "must be zero or more");
            None
        }
        _ => quantity(report, key, node, None, quantity::price),
    }
}

/// The limit of a queue.
pub(crate) fn limit(report: &mut Report, key: &'static Key, node: &Node) -> Option<QueueLimit> {
    let limit = quantity(report, key, node, Some(&quantity::SIZE), quantity::queue)?;
    if limit == QueueLimit::Bdp(0) {
        impossible(report, key, node, "is zero");
        return None;
    }
    Some(limit)
}

/// A threshold of an average queue; a number is packets.
pub(crate) fn threshold(report: &mut Report, key: &'static Key, node: &Node) -> Option<Threshold> {
    let packets = match node.value {
        Value::Integer(n) => n as f64,
        Value::Real(x) => x,
        _ => return quantity(report, key, node, Some(&quantity::SIZE), quantity::threshold),
    };
    let fits = packets.is_finite() && packets >= 0.0;
    if !fits {
        impossible(report, key, node, &format!("cannot be {packets}"));
    }
    fits.then_some(Threshold { amount: packets, in_bytes: false })
}
