//! TOML as a tree whose every node knows its place: in the file or in an override's text.

use crate::diagnostic::{Code, Diagnostic, without_crowds};
use crate::text::Text;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue, Error};

/// A place in one of the sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Index of the source in its [`Report`].
    pub source: usize,
    /// First byte.
    pub start: usize,
    /// First byte after it.
    pub end: usize,
}

/// A value and its place. For a table with a header, the header's.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub value: Value,
    pub at: Span,
}

/// The types of TOML.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Real(f64),
    Flag(bool),
    Date,
    List(Vec<Node>),
    Table(Table),
}

/// Keys and values in the order of the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub Vec<(Key, Node)>);

/// A key and its place.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub name: String,
    pub at: Span,
}

impl Table {
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.0.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// Replaces `key`'s value or adds it.
    pub fn set(&mut self, key: Key, node: Node) {
        self.remove(&key.name);
        self.0.push((key, node));
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key.name != name);
    }
}

impl Node {
    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Type of the node, with an article.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Real(_) => "a number with a point",
            Value::Flag(_) => "true or false",
            Value::Date => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// Most mistakes reported; further ones are counted.
const MOST: usize = 50;

/// The sources that were read and the mistakes found in them.
#[derive(Debug, Default)]
pub(crate) struct Report {
    sources: Vec<Arc<Text>>,
    /// The first [`MOST`].
    found: Vec<(usize, Diagnostic)>,
    /// The place of each mistake and a hash of its message, because the same one may be found twice.
    known: BTreeSet<(usize, usize, usize, u64)>,
    /// The target of texts for a mistake that is not reported.
    untold: Option<Diagnostic>,
    /// Part of the source was not checked.
    partial: bool,
    /// Every call of [`Self::error`].
    calls: usize,
}

impl Report {
    /// Registers a source; spans refer to it by the index returned.
    pub fn add_source(&mut self, name: &str, text: String) -> usize {
        self.sources.push(Arc::new(Text::new(name, text)));
        self.sources.len() - 1
    }

    /// Records a mistake; the caller adds a label and help.
    pub fn error(&mut self, code: Code, at: Span, message: impl Into<String>) -> &mut Diagnostic {
        let message = message.into();
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        self.calls += 1;
        let is_new = self.known.insert((at.source, at.start, at.end, hasher.finish()));
        let diagnostic = Diagnostic::new(code, self.sources[at.source].clone(), at.start..at.end, message);
        if is_new && self.found.len() < MOST {
            self.found.push((at.source, diagnostic));
            let (_, last) = self.found.last_mut().expect("just pushed");
            return last;
        }
        self.untold.insert(diagnostic)
    }

    /// The limit is reached: further mistakes are only counted, and need no help text.
    pub fn is_full(&self) -> bool {
        self.found.len() >= MOST
    }

    /// Records that part of the source is not checked.
    pub fn set_partial(&mut self) {
        self.partial = true;
    }

    /// Grows with each recorded mistake, including a known one.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// True without a mistake that begins within `at`.
    pub fn is_clean_within(&self, at: Span) -> bool {
        let inside = (at.source, at.start, 0, 0)..(at.source, at.end, 0, 0);
        self.known.range(inside).next().is_none()
    }

    /// True without a mistake.
    pub fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    /// The text at a place.
    pub fn text(&self, at: Span) -> &str {
        self.sources[at.source].text().get(at.start..at.end).unwrap_or("")
    }

    /// Every mistake once, in the order of the file, then of the overrides, of very many alike the first; at the end the number of further
    /// ones.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|(source, d)| (*source, d.at.start, d.at.end));
        self.found = without_crowds(self.found, |(_, d)| d.code);
        let more = self.known.len() - self.found.len();
        let message = match (more, self.partial) {
            (0, false) => None,
            // Unchecked parts may have more.
            (_, true) => Some("there may be more mistakes".to_owned()),
            (1, false) => Some("1 more mistake".to_owned()),
            (_, false) => Some(format!("{more} more mistakes")),
        };
        if let Some(((source, last), message)) = self.found.last().zip(message) {
            let source = self.sources[*source].clone();
            let mut summary = Diagnostic::new(Code::MoreMistakes, source, last.at.clone(), message);
            summary.help("mend these first");
            self.found.push((usize::MAX, summary));
        }
        self.found.into_iter().map(|(_, diagnostic)| diagnostic).collect()
    }
}

/// Parses a whole document. Reports text that is not TOML, at most one mistake per line, and returns nothing then.
pub(crate) fn parse_document(report: &mut Report, source: usize, text: &str) -> Option<Table> {
    let (root, errors) = DeTable::parse_recoverable(text);
    syntax_errors(report, Span { source, start: 0, end: text.len() }, text, errors)?;
    let base = Span { source, ..Span::default() };
    Some(Reader { report, base }.table(root.get_ref()))
}

/// Parses the value of an override or a default at `at` in its source: a TOML number, `true`, `false`, list, table or
/// quoted string; anything else is a string without quotes.
pub(crate) fn parse_value(report: &mut Report, at: Span, text: &str) -> Option<Node> {
    let (value, errors) = DeValue::parse_recoverable(text);
    let toml = text.starts_with(['[', '{', '"', '\''])
        || (errors.is_empty()
            && matches!(value.get_ref(), DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_)));
    if !toml {
        return Some(Node { value: Value::Text(text.into()), at });
    }
    syntax_errors(report, at, text, errors)?;
    Some(Reader { report, base: at }.node(&value))
}

fn syntax_errors(report: &mut Report, within: Span, text: &str, mut errors: Vec<Error>) -> Option<()> {
    if errors.is_empty() {
        return Some(());
    }
    let start_of = |e: &Error| e.span().map_or(0, |span| span.start);
    errors.sort_by_key(start_of);
    let mut last_begin = None;
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        // After one mistake the parser fails on the rest of the line.
        let begin = text.get(..span.start).map_or(0, |before| before.rfind('\n').map_or(0, |end| end + 1));
        if last_begin.replace(begin) == Some(begin) {
            continue;
        }
        // At the end of a line there is nothing to underline, so the previous character is.
        let start = if span.is_empty() { text.floor_char_boundary(span.start.saturating_sub(1)) } else { span.start };
        let at = Span { source: within.source, start: within.start + start, end: within.start + span.end };
        report
            .error(Code::Syntax, at, format!("not TOML: {}", error.message()))
            .help("a scenario is a TOML file: `key = \"value\"` lines under [section] and [[path]] headers");
    }
    None
}

/// Reads TOML's tree; spans count from `base`.
struct Reader<'r> {
    report: &'r mut Report,
    base: Span,
}

impl Reader<'_> {
    fn place(&self, span: Range<usize>) -> Span {
        Span { source: self.base.source, start: self.base.start + span.start, end: self.base.start + span.end }
    }

    fn table(&mut self, from: &DeTable<'_>) -> Table {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key = Key { name: String::from(AsRef::<str>::as_ref(key.get_ref())), at: self.place(key.span()) };
            (key, self.node(value))
        };
        let mut entries: Vec<(Key, Node)> = from.iter().map(entry).collect();
        // The library sorts by name.
        entries.sort_by_key(|(key, _)| key.at.start);
        Table(entries)
    }

    fn node(&mut self, from: &Spanned<DeValue<'_>>) -> Node {
        let at = self.place(from.span());
        let value = match from.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => Value::Integer(self.integer(at, number)),
            DeValue::Float(number) => Value::Real(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(items) => Value::List(items.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(items) => Value::Table(self.table(items)),
        };
        Node { value, at }
    }

    fn integer(&mut self, at: Span, number: &DeInteger<'_>) -> i64 {
        i64::from_str_radix(number.as_str(), number.radix()).unwrap_or_else(|_| {
            self.report.error(Code::ImpossibleValue, at, "this integer needs more than 64 bits");
            0
        })
    }
}

/// `text` as a TOML string.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
