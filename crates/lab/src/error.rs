//! What can go wrong outside the world.

use crate::privilege;
use std::fmt;
use std::io;

/// Why a host could not be set up, or a run not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabError {
    /// Neither root, nor a user namespace that may open TUN devices.
    Privilege {
        /// What was tried, and what the system answered.
        what: String,
    },
    /// A program that sets hosts up is not installed.
    Tool {
        /// Which.
        program: String,
    },
    /// The kernel does not speak Multipath TCP.
    NoMptcp,
    /// A signal asked to stop.
    Interrupted,
    /// The system refused something.
    System {
        /// What was tried.
        what: String,
        /// Its answer.
        source: io::Error,
    },
    /// A program that sets the host up failed.
    Command {
        /// The command line.
        command: String,
        /// What it wrote.
        output: String,
    },
    /// A program of the user's cannot be started.
    Program {
        /// Which.
        command: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The program at the end of a connection failed.
    Application {
        /// Which, and how.
        what: String,
    },
    /// The world cannot go on.
    World {
        /// Why, and when.
        what: String,
    },
}

impl LabError {
    /// The system's answer to `what`.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    /// What the user can do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Privilege { .. } => Some(privilege::advice()),
            Self::Tool { .. } => Some("install iproute2, and see that it is on the PATH or in /usr/sbin".into()),
            Self::NoMptcp => Some(
                "boot a kernel with CONFIG_MPTCP, without `mptcp.enabled=0`; `--set mptcp=false` runs plain TCP".into(),
            ),
            _ => None,
        }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Privilege { what } => write!(f, "a Linux host needs network namespaces and TUN devices: {what}"),
            Self::Tool { program } => write!(f, "the program `{program}` is not installed"),
            Self::NoMptcp => f.write_str("this kernel does not speak Multipath TCP"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::System { what, source } => write!(f, "{what}: {source}"),
            Self::Command { command, output } => write!(f, "`{command}` failed: {}", output.trim()),
            Self::Program { command, source } => write!(f, "`{command}` cannot be started: {source}"),
            Self::Application { what } | Self::World { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for LabError {}
