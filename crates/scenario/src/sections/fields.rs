//! The keys of one table: unknown ones are reported, absent ones get their defaults.

use super::value;
use crate::diagnostic::Code;
use crate::keys::{Directions, Fallback, Form, Key, Section};
use crate::row::Row;
use crate::suggest::nearest;
use crate::tree::{self, Node, Report, Span, Table, Value, parse_value};
use anabranch_units::Direction;
use std::borrow::Cow;

/// A value per direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pair<T> {
    /// Server → client.
    pub down: T,
    /// Client → server.
    pub up: T,
}

impl<T> Pair<T> {
    /// The value of one direction.
    pub fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}

impl<T> Pair<T> {
    /// The value of one direction, to change.
    pub fn get_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}

impl<T> Pair<Option<T>> {
    /// Takes out the value of one direction.
    pub fn take(&mut self, direction: Direction) -> Option<T> {
        match direction {
            Direction::Down => self.down.take(),
            Direction::Up => self.up.take(),
        }
    }
}

/// One table of a scenario.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'t> {
    section: Section,
    table: Option<&'t Table>,
    /// Defaults that precede those of the table of keys.
    defaults: &'static [(&'static str, &'static str)],
    /// The place of a missing key: the header.
    pub at: Span,
    /// The value is not a table, which has been reported; keys missing in it are not.
    broken: bool,
}

/// Number of unknown keys above which none is compared with known ones.
const MOST_MISSPELT: usize = 50;

impl<'t> Fields<'t> {
    /// The section's table at `node`; without one, every key has its default.
    pub fn open(report: &mut Report, section: Section, node: Option<&'t Node>) -> Self {
        let Some(node) = node else {
            return Self { section, table: None, defaults: &[], at: Span::default(), broken: false };
        };
        let Some(table) = node.as_table() else {
            let header = if section.is_list() { "[[…]]" } else { "[…]" }.replace('…', section.name());
            let message = format!("`{}` must be a table, not {}", section.name(), node.kind());
            report
                .error(Code::WrongType, node.at, message)
                .label(format!("this is {}", node.kind()))
                .help(format!("write its keys under a header {header}"));
            return Self { section, table: None, defaults: &[], at: node.at, broken: true };
        };
        for (key, _) in &table.0 {
            if section.key(&key.name).is_none() {
                unknown_key(report, key.at, &key.name, section.name(), section.keys().map(|key| key.name));
            }
        }
        Self { section, table: Some(table), defaults: &[], at: node.at, broken: false }
    }

    /// The same with other defaults.
    pub fn with_defaults(self, defaults: &'static [(&'static str, &'static str)]) -> Self {
        Self { defaults, ..self }
    }

    /// The value in the file.
    pub fn written(&self, name: &str) -> Option<&'t Node> {
        self.table.and_then(|table| table.get(name))
    }

    /// The keys and values in the file.
    pub fn entries(&self) -> &'t [(tree::Key, Node)] {
        self.table.map_or(&[], |table| &table.0)
    }

    /// Whether what is written for these keys, if anything, was read without a mistake: then they can be compared.
    pub fn are_sound(&self, report: &Report, names: &[&str]) -> bool {
        names.iter().filter_map(|name| self.written(name)).all(|node| report.is_clean_within(node.at))
    }

    /// The value, or its default, parsed by `read`. `None` if absent without a default, or unreadable.
    pub fn get<T>(
        &self,
        report: &mut Report,
        name: &str,
        read: impl FnOnce(&mut Report, &'static Key, &Node) -> Option<T>,
    ) -> Option<T> {
        let key = self.key(name);
        let node = match self.written(name) {
            Some(node) => Cow::Borrowed(node),
            None => Cow::Owned(self.fallback(report, key)?),
        };
        read(report, key, &node)
    }

    /// The same per direction.
    pub fn pair<T>(
        &self,
        report: &mut Report,
        name: &str,
        mut read: impl FnMut(&mut Report, &'static Key, &Node) -> Option<T>,
    ) -> Pair<Option<T>> {
        let key = self.key(name);
        let written = self.check_pair(report, key);
        let fallback = match (written.down, written.up) {
            (Some(_), Some(_)) => None,
            _ => self.fallback(report, key),
        };
        let mut side = |written: Option<&Node>| written.or(fallback.as_ref()).and_then(|node| read(report, key, node));
        Pair { down: side(written.down), up: side(written.up) }
    }

    /// Reads the keys of `rows` that are written, or have a default that is not the place's, into their places. The section
    /// reads keys without a place itself. False if one was missing or unreadable, which was reported.
    pub fn fill(&self, report: &mut Report, kind: Option<&str>, rows: Vec<Row<'_>>) -> bool {
        let before = report.calls();
        if let Some(kind) = kind {
            self.check_kind(report, kind);
        }
        for mut row in rows {
            let Some(key) = self.section.key_of(row.name, kind) else { continue };
            let other = || self.defaults.iter().find(|(name, _)| *name == row.name);
            if let Some(node) = self.written(row.name) {
                row.read(report, key, node);
            } else if let Some(node) = other().and_then(|(_, text)| parse_value(report, self.at, text)) {
                row.read(report, key, &node);
            } else if row.is_required() && row.has_place() {
                self.missing(report, key);
            }
        }
        report.calls() == before
    }

    /// The same per direction: `down` and `up` are the same rows with other places.
    pub fn fill_pair(&self, report: &mut Report, down: Vec<Row<'_>>, up: Vec<Row<'_>>) -> bool {
        let before = report.calls();
        for (mut down, mut up) in down.into_iter().zip(up) {
            let key = self.key(down.name);
            let written = self.check_pair(report, key);
            if written.down.is_none() && written.up.is_none() && down.is_required() {
                self.missing(report, key);
            }
            for (row, node) in [(&mut down, written.down), (&mut up, written.up)] {
                node.map(|node| row.read(report, key, node));
            }
        }
        report.calls() == before
    }

    /// The values per direction in the file. Reports directions that there are not, and a required one that is missing.
    fn check_pair(&self, report: &mut Report, key: &'static Key) -> Pair<Option<&'t Node>> {
        let written = self.places(key.name);
        let Some(node) = self.written(key.name) else { return written };
        check_directions(report, key, node);
        let missing = match (written.down, written.up) {
            (Some(_), Some(_)) => return written,
            (None, _) => Direction::Down,
            (_, None) => Direction::Up,
        };
        if key.fallback == Fallback::Required {
            missing_direction(report, key, node, missing);
        }
        written
    }

    /// Reports keys without a meaning for `kind`.
    fn check_kind(&self, report: &mut Report, kind: &str) {
        for (written, node) in self.table.map_or(&[][..], |table| &table.0) {
            let keys = || self.section.keys().filter(|key| key.name == written.name);
            if keys().next().is_none() || keys().any(|key| key.counts_for(kind)) {
                continue;
            }
            let (name, noun) = (&written.name, self.section.noun());
            let kinds: Vec<&str> = keys().flat_map(|key| key.kinds.iter().copied()).collect();
            report
                .error(Code::Conflict, node.at, format!("`{name}` means nothing for {noun} of kind \"{kind}\""))
                .label("does not apply")
                .help(format!("it applies to {}", kinds.join(" and ")));
        }
    }

    /// The values per direction in the file, unparsed.
    pub fn places(&self, name: &str) -> Pair<Option<&'t Node>> {
        self.written(name).map(|node| split(self.key(name), node)).unwrap_or_default()
    }

    /// Reports that a required key is missing.
    pub fn missing(&self, report: &mut Report, key: &Key) {
        if !self.broken && !self.is_misspelt(key) {
            let when = match key.fallback {
                Fallback::Nothing(words) => words,
                _ => key.about,
            };
            let help = format!("add `{} = …`, {} ({when})", key.name, key.form.expected());
            let place =
                if self.section == Section::Top { "the scenario".into() } else { self.section.name().to_string() };
            report
                .error(Code::MissingKey, self.at, format!("`{}` is missing in {place}", key.name))
                .label(format!("no `{}` here", key.name))
                .help(help);
        }
    }

    /// True if an unknown key resembles this one, and was reported with it.
    fn is_misspelt(&self, key: &Key) -> bool {
        let written = self.table.map_or(&[][..], |table| &table.0).iter().map(|(written, _)| written.name.as_str());
        let mut unknown = written.filter(|name| self.section.key(name).is_none()).take(MOST_MISSPELT);
        unknown.any(|name| nearest(name, self.section.keys().map(|key| key.name)) == Some(key.name))
    }

    /// The row of the table of keys. Every name that this crate uses is in it: a test reads every key.
    pub fn key(&self, name: &str) -> &'static Key {
        self.section.key(name).unwrap_or_else(|| panic!("no key `{name}` in `{}`", self.section.name()))
    }

    fn fallback(&self, report: &mut Report, key: &Key) -> Option<Node> {
        if let Some((_, text)) = self.defaults.iter().find(|(name, _)| *name == key.name) {
            return parse_value(report, self.at, text);
        }
        match &key.fallback {
            Fallback::Value(text) => parse_value(report, self.at, text),
            Fallback::Nothing(_) => None,
            Fallback::Required => {
                self.missing(report, key);
                None
            }
        }
    }
}

/// Reports a key that does not exist among `valid`.
pub(crate) fn unknown_key<'a>(
    report: &mut Report,
    at: Span,
    name: &str,
    section: &str,
    valid: impl Iterator<Item = &'a str> + Clone,
) {
    let place = if section.is_empty() { "at the top of a scenario".into() } else { format!("in `{section}`") };
    let message = format!("there is no key `{name}` {place}");
    if report.is_full() {
        report.error(Code::UnknownKey, at, message);
        return;
    }
    let help = match nearest(name, valid.clone()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("keys are: {}", valid.collect::<Vec<_>>().join(", ")),
    };
    report.error(Code::UnknownKey, at, message).label("unknown key").help(help);
}

/// Reports a value that is given for one direction only.
pub(crate) fn missing_direction(report: &mut Report, key: &Key, node: &Node, direction: Direction) {
    let word = direction.name();
    report
        .error(Code::MissingKey, node.at, format!("`{}` has no value for `{word}`", key.full_name()))
        .label(format!("no `{word}` here"))
        .help("a value without a direction applies to both");
}

/// The value of each direction in a file.
pub(crate) fn split<'n>(key: &Key, node: &'n Node) -> Pair<Option<&'n Node>> {
    match &node.value {
        Value::Table(table) if is_directed(key, table) => Pair { down: table.get("down"), up: table.get("up") },
        _ => Pair { down: Some(node), up: (key.directions == Directions::Both).then_some(node) },
    }
}

/// Whether a table holds a value per direction.
pub(crate) fn is_directed(key: &Key, table: &Table) -> bool {
    // These have their own table form.
    let has_table_form = matches!(key.form, Form::Loss | Form::Reorder | Form::Jitter | Form::Queue | Form::Table(..));
    !has_table_form || table.get("down").is_some() || table.get("up").is_some()
}

/// Reports keys other than `down` and `up` in a value per direction.
pub(crate) fn check_directions(report: &mut Report, key: &Key, node: &Node) {
    if let Some(table) = node.as_table().filter(|table| is_directed(key, table)) {
        // A box without its list, and not a direction that does not exist.
        if matches!(key.form, Form::Middleboxes) && table.get("kind").is_some() {
            return value::wrong_type(report, key, node);
        }
        for (name, _) in table.0.iter().filter(|(name, _)| !["down", "up"].contains(&name.name.as_str())) {
            unknown_key(report, name.at, &name.name, &key.full_name(), ["down", "up"].into_iter());
        }
    }
}
