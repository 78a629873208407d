//! Errors of sockets and files.

use std::fmt;
use std::io;

/// A link that cannot be set up, or that failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum LinkError {
    /// The system refused something.
    System {
        /// The operation.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A file with a secret that others may read.
    Exposed {
        /// The file.
        file: String,
        /// Its permissions, in octal.
        mode: u32,
    },
    /// A file whose text is malformed. The message shows no secret.
    Malformed {
        /// The file, the line and the mistake.
        what: String,
    },
}

impl LinkError {
    /// The system's answer to `what`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what: what.into(), source }
    }

    /// Advice to the user.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Exposed { file, .. } => Some(format!("`chmod 600 {file}`; if others have read it, make a new key")),
            _ => None,
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { what, source } => write!(f, "{what}: {source}"),
            Self::Exposed { file, mode } => {
                write!(f, "{file} has a secret, and others than its owner may use it (mode {mode:04o})")
            }
            Self::Malformed { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for LinkError {}
