//! Where a scenario's text comes from.

/// A scenario file: its name, for messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As the user knows it, such as `scenarios/handover.toml`; a scenario without `name` is called after it.
    pub name: String,
    /// TOML.
    pub text: String,
}

/// One key set from outside of the file, such as `--set path.wlan.loss=2%`. Later ones win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// What the user wrote it after, for messages: `--set`, `--seed`.
    pub origin: String,
    /// Dotted key; paths and links are addressed by name: `path.wlan.loss`, `connection.scheduler`, `tcp.rto_min`. A key of
    /// `[connection]` may stand alone: `scheduler`, `scheduler.lambda`. `traffic`, `cross` and `timeline` entries are counted from 0
    /// (`cross.0.rate`); the number may be left out if there is one.
    pub key: String,
    /// Plain text (`2%`, `blest`, `true`) or a TOML list, table or quoted string.
    pub value: String,
    /// As the user typed it, for messages.
    typed: String,
}

impl Override {
    /// `value` for `key`, told in messages as coming from `origin`.
    pub fn new(origin: impl Into<String>, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        let typed = format!("{key}={value}");
        Self { origin: origin.into(), key, value, typed }
    }

    /// From `KEY=VALUE`; a text without `=` has an empty value, which reading refuses.
    pub fn parse(origin: impl Into<String>, text: &str) -> Self {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        Self { origin: origin.into(), key: key.trim().into(), value: value.trim().into(), typed: text.into() }
    }

    /// As messages show it: the key first, the value last.
    pub(crate) fn text(&self) -> &str {
        &self.typed
    }
}

/// Fetches the files that a scenario names. This crate opens none.
pub trait Resolver {
    /// The text of `file`, whose name is meant relative to the scenario's own place.
    ///
    /// # Errors
    /// Why it cannot be read, in a few words.
    fn read(&self, file: &str) -> Result<String, String>;
}

/// Has no files: for scenarios that name none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Resolver for NoFiles {
    fn read(&self, _file: &str) -> Result<String, String> {
        Err("no files are at hand here".into())
    }
}
