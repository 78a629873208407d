//! Rows of the table of keys: a key with the place that it sets. Reading, writing and the table fold over them.

use crate::keys::{Directions, Fallback, Form, Key, Section};
use crate::notation::Notation;
use crate::tree::{Node, Report};

/// A key, and the place of its value in the struct that a section fills.
pub(crate) struct Row<'a> {
    pub name: &'static str,
    about: &'static str,
    form: Form,
    directions: Directions,
    changeable: bool,
    silence: Silence,
    /// None if the section reads and writes the key itself.
    place: Option<Box<dyn Place + 'a>>,
}

/// The meaning of an absent key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// The value that the place has.
    Default,
    /// This value, in the file's notation without quotes.
    Value(&'static str),
    /// The meaning that these words describe.
    Described(&'static str),
    /// A mistake.
    Mistake,
}

/// The place of a value.
trait Place {
    /// Reads `node` into it. False if that is impossible, which was reported.
    fn read(&mut self, report: &mut Report, key: &'static Key, node: &Node) -> bool;

    /// The value in a file's notation, if there is one.
    fn write(&self) -> Option<String>;
}

struct Always<'a, T>(Notation<T>, &'a mut T);

impl<T> Place for Always<'_, T> {
    fn read(&mut self, report: &mut Report, key: &'static Key, node: &Node) -> bool {
        (self.0.read)(report, key, node).map(|value| *self.1 = value).is_some()
    }

    fn write(&self) -> Option<String> {
        Some((self.0.write)(self.1))
    }
}

struct Perhaps<'a, T>(Notation<T>, &'a mut Option<T>);

impl<T> Place for Perhaps<'_, T> {
    fn read(&mut self, report: &mut Report, key: &'static Key, node: &Node) -> bool {
        *self.1 = (self.0.read)(report, key, node);
        self.1.is_some()
    }

    fn write(&self) -> Option<String> {
        self.1.as_ref().map(self.0.write)
    }
}

/// A value of which one means that there is none.
struct Unless<'a, T>(Notation<T>, &'a mut T, T);

impl<T: PartialEq> Place for Unless<'_, T> {
    fn read(&mut self, report: &mut Report, key: &'static Key, node: &Node) -> bool {
        Always(self.0, self.1).read(report, key, node)
    }

    fn write(&self) -> Option<String> {
        (*self.1 != self.2).then(|| (self.0.write)(self.1))
    }
}

impl<'a> Row<'a> {
    fn at<T>(name: &'static str, notation: Notation<T>, place: impl Place + 'a, about: &'static str) -> Self {
        let (form, directions, place) = (notation.form, Directions::None, Some(Box::new(place) as Box<dyn Place>));
        Self { name, about, form, directions, changeable: false, silence: Silence::Default, place }
    }

    /// A key whose default is the value that `place` has.
    pub fn new<T>(name: &'static str, notation: Notation<T>, place: &'a mut T, about: &'static str) -> Self {
        Self::at(name, notation, Always(notation, place), about)
    }

    /// A key that may have no value.
    pub fn optional<T>(
        name: &'static str,
        notation: Notation<T>,
        place: &'a mut Option<T>,
        about: &'static str,
    ) -> Self {
        Self::at(name, notation, Perhaps(notation, place), about)
    }

    /// A key without which the place has the value `none`, which no file can write.
    pub fn unless<T: PartialEq>(
        name: &'static str,
        notation: Notation<T>,
        place: &'a mut T,
        none: T,
        about: &'static str,
    ) -> Self {
        Self::at(name, notation, Unless(notation, place, none), about)
    }

    /// A key that its section reads and writes itself, because its value refers to other parts of the file.
    pub fn by_hand(name: &'static str, form: Form, about: &'static str) -> Self {
        let silence = Silence::Mistake;
        Self { name, about, form, directions: Directions::None, changeable: false, silence, place: None }
    }

    /// Required.
    pub fn required(self) -> Self {
        Self { silence: Silence::Mistake, ..self }
    }

    /// Without the key, the meaning that `words` describe; a value that the place has stays.
    pub fn silent(self, words: &'static str) -> Self {
        Self { silence: Silence::Described(words), ..self }
    }

    /// Without the key, `value` in the file's notation without quotes.
    pub fn or(self, value: &'static str) -> Self {
        Self { silence: Silence::Value(value), ..self }
    }

    /// Same row with a value per direction; one alone applies to both.
    pub fn both(self) -> Self {
        Self { directions: Directions::Both, ..self }
    }

    /// Same row with a value per direction; one alone applies to `down`.
    pub fn down(self) -> Self {
        Self { directions: Directions::Down, ..self }
    }

    /// A timeline may change it.
    pub fn changeable(self) -> Self {
        Self { changeable: true, ..self }
    }

    /// No timeline may change it.
    pub fn lasting(self) -> Self {
        Self { changeable: false, ..self }
    }

    /// Whether [`Self::read`] sets a value.
    pub fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Whether a file must have it.
    pub fn is_required(&self) -> bool {
        self.silence == Silence::Mistake
    }

    /// Reads `node` into its place. False if that is impossible, which was reported; true if the section reads it itself.
    pub fn read(&mut self, report: &mut Report, key: &'static Key, node: &Node) -> bool {
        self.place.as_mut().is_none_or(|place| place.read(report, key, node))
    }

    /// The value in a file's notation, if there is one and the row has its place.
    pub fn write(&self) -> Option<String> {
        self.place.as_ref()?.write()
    }

    /// The key in `section`, for these kinds.
    pub fn key(&self, section: Section, kinds: Vec<&'static str>) -> Key {
        let fallback = match self.silence {
            Silence::Mistake => Fallback::Required,
            Silence::Described(words) => Fallback::Nothing(words),
            Silence::Value(text) => Fallback::Value(text.into()),
            Silence::Default => Fallback::Value(unquoted(self.write().unwrap_or_default())),
        };
        let Self { name, form, directions, about, changeable, .. } = *self;
        Key { section, kinds, name, form, directions, fallback, about, changeable }
    }
}

/// A TOML string without its quotes, anything else unchanged. Defaults have nothing to escape.
fn unquoted(text: String) -> String {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).map(str::to_owned).unwrap_or(text)
}

/// Every key of a scenario that `rows` set, as lines of a section.
pub(crate) fn lines(rows: &[Row<'_>]) -> String {
    let line = |row: &Row<'_>| row.write().map(|value| format!("{} = {value}\n", row.name));
    rows.iter().filter_map(line).collect()
}

/// The same as a table within a line, behind the words in `before`.
pub(crate) fn inline(before: &[(&str, String)], rows: &[Row<'_>]) -> String {
    let before = before.iter().map(|(name, value)| format!("{name} = {value}"));
    let rows = rows.iter().filter_map(|row| Some(format!("{} = {}", row.name, row.write()?)));
    format!("{{ {} }}", before.chain(rows).collect::<Vec<_>>().join(", "))
}
