//! Notations: how a value of a type is read from a scenario file and written to one.

use crate::keys::{Form, Key};
use crate::quantity::QueueLimit;
use crate::scenario::PlugIn;
use crate::sections::{self, value};
use crate::tree::{Node, Report, quoted};
use crate::vocabulary::Word;
use crate::written;
use anabranch_network::Threshold;
use anabranch_units::{Duration, Instant, Rate};
use std::fmt::Display;

/// Reads a value, or reports why it cannot be read.
pub(crate) type Read<T> = fn(&mut Report, &'static Key, &Node) -> Option<T>;

/// The form of values of one type, with the way to read and to write them.
pub(crate) struct Notation<T> {
    pub form: Form,
    pub read: Read<T>,
    /// The inverse of `read`, in TOML.
    pub write: fn(&T) -> String,
}

// Derived, both would demand the same of `T`.
impl<T> Clone for Notation<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Notation<T> {}

pub(crate) const FLAG: Notation<bool> = Notation { form: Form::Flag, read: value::flag, write: bool::to_string };
pub(crate) const TITLE: Notation<String> =
    Notation { form: Form::Text, read: value::title, write: |title| quoted(title) };
pub(crate) const NAME: Notation<String> = Notation { form: Form::Name, read: value::name, write: |name| quoted(name) };
pub(crate) const TIME: Notation<Duration> = time(false);
pub(crate) const POSITIVE_TIME: Notation<Duration> = time(true);
/// A time from the beginning of the run.
pub(crate) const INSTANT: Notation<Instant> = Notation {
    form: TIME.form,
    read: |report, key, node| value::duration(report, key, node).map(|time| Instant::ZERO + time),
    write: |at| written::instant(*at),
};
pub(crate) const RATE: Notation<Rate> =
    Notation { form: Form::Rate, read: value::rate, write: |rate| quoted(&rate.to_string()) };
pub(crate) const PROBABILITY: Notation<f64> =
    Notation { form: Form::Probability, read: value::probability, write: |p| written::probability(*p) };
pub(crate) const PRICE: Notation<f64> =
    Notation { form: Form::Price, read: value::price, write: |price| written::price(*price) };
pub(crate) const LIMIT: Notation<QueueLimit> =
    Notation { form: Form::Limit, read: value::limit, write: |limit| written::limit(*limit) };
pub(crate) const THRESHOLD: Notation<Threshold> =
    Notation { form: Form::Threshold, read: value::threshold, write: |threshold| written::threshold(*threshold) };
pub(crate) const SCHEDULER: Notation<PlugIn> =
    Notation { form: Form::Scheduler, read: sections::scheduler, write: written::plug_in };
pub(crate) const CONGESTION: Notation<PlugIn> =
    Notation { form: Form::Congestion, read: sections::congestion, write: written::plug_in };
pub(crate) const ABR: Notation<PlugIn> = Notation { form: Form::Abr, read: sections::abr, write: written::plug_in };
/// Bytes of an IP packet.
pub(crate) const PACKET: Notation<u32> = size(20, 65_535);

const fn time(positive: bool) -> Notation<Duration> {
    Notation { form: Form::Duration { positive }, read: value::duration, write: |time| written::duration(*time) }
}

/// Bytes from `min` to `max`, which fit into a `T`.
pub(crate) const fn size<T: TryFrom<u64> + Into<u64> + Copy>(min: u64, max: u64) -> Notation<T> {
    Notation {
        form: Form::Size { min, max },
        read: |report, key, node| value::size(report, key, node).and_then(|bytes| T::try_from(bytes).ok()),
        write: |bytes| written::bytes((*bytes).into()),
    }
}

/// A whole number from `min` to `max`, which fits into a `T`.
pub(crate) const fn integer<T: TryFrom<i64> + Display>(min: i64, max: i64) -> Notation<T> {
    Notation { form: Form::Integer { min, max }, read: whole, write: T::to_string }
}

/// One of `numbers`, which fit into a `T`.
pub(crate) const fn integers<T: TryFrom<i64> + Display>(numbers: &'static [i64]) -> Notation<T> {
    Notation { form: Form::Integers(numbers), read: whole, write: T::to_string }
}

fn whole<T: TryFrom<i64>>(report: &mut Report, key: &'static Key, node: &Node) -> Option<T> {
    value::integer(report, key, node).and_then(|number| T::try_from(number).ok())
}

/// A real number above `above`.
pub(crate) const fn real(above: f64) -> Notation<f64> {
    Notation { form: Form::Real { above }, read: value::real, write: |number| format!("{number:?}") }
}

/// One of the words of a `T`.
pub(crate) const fn word<T: Word>() -> Notation<T> {
    Notation {
        form: Form::Words(T::NAMES),
        read: |report, key, node| value::word(report, key, node).and_then(T::of),
        write: |word| quoted(word.name()),
    }
}
