//! The texts of a scenario.

use std::fmt;

/// A scenario file: its name, for messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name for the user, such as `scenarios/handover.toml`; also the title of a scenario without `name`.
    pub name: String,
    /// TOML.
    pub text: String,
}

/// The effect of an override on its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sets it. The last one applies.
    Set,
    /// Varies it, in place of what the file's `[sweep]` says of it: see [`crate::listed`] for the notation.
    Sweep,
    /// Varies it together with all others of this role: the first values, the second values, and so on.
    Zip,
}

/// One key set or varied from outside the file, such as `--set path.wlan.loss=2%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The option before it, for messages: `--set`, `--seed`.
    pub origin: String,
    /// Dotted key; paths and links are addressed by name: `path.wlan.loss`, `connection.scheduler`, `tcp.rto_min`. A
    /// key of `[connection]` may be bare: `scheduler`, `scheduler.lambda`. `traffic`, `cross` and `timeline` entries
    /// are counted from 0 (`cross.0.rate`); the number may be omitted if there is one entry.
    pub key: String,
    /// Plain text (`2%`, `blest`, `true`) or a TOML list, table or quoted string; of a sweep, several.
    pub value: String,
    /// Effect on the key.
    pub role: Role,
    /// As the user typed it, for messages.
    typed: String,
}

impl Override {
    /// `value` for `key`; messages name `origin` as its source.
    pub fn new(origin: impl Into<String>, key: impl Into<String>, value: impl Into<String>) -> Self {
        let [key, value] = [key.into(), value.into()].map(|text: String| text.trim().to_owned());
        let typed = format!("{key}={value}");
        Self { origin: origin.into(), key, value, role: Role::Set, typed }
    }

    /// From `KEY=VALUE`; a text without `=` has an empty value, which reading refuses.
    pub fn parse(origin: impl Into<String>, text: &str) -> Self {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let (key, value) = (key.trim().into(), value.trim().into());
        Self { origin: origin.into(), key, value, role: Role::Set, typed: text.into() }
    }

    /// From `KEY=VALUES`.
    pub fn sweep(origin: impl Into<String>, text: &str, together: bool) -> Self {
        Self { role: if together { Role::Zip } else { Role::Sweep }, ..Self::parse(origin, text) }
    }

    /// The text in messages: the key first, the value last.
    pub(crate) fn text(&self) -> &str {
        &self.typed
    }
}

impl fmt::Display for Override {
    /// `KEY=VALUE`, as a scenario file would have it: a sweep's key stands under `sweep`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let under = if self.role == Role::Set { "" } else { "sweep." };
        write!(f, "{under}{}={}", self.key, self.value)
    }
}

/// Reads the files that a scenario names. This crate opens none.
pub trait Resolver {
    /// The text of `file`, whose name is relative to the scenario's own place.
    ///
    /// # Errors
    /// Why it cannot be read, in a few words.
    fn read(&self, file: &str) -> Result<String, String>;
}

/// A resolver without files, for scenarios that name none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Resolver for NoFiles {
    fn read(&self, _file: &str) -> Result<String, String> {
        Err("no files are available here".into())
    }
}
