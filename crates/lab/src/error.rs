//! Errors of hosts outside the world.

use crate::privilege;
use std::{fmt, io};

/// Why a host could not be set up, or a run failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabError {
    /// Neither root, nor a user namespace that may open TUN devices.
    Privilege {
        /// The operation, and the system's answer.
        what: String,
    },
    /// A program that host setup needs is not installed.
    Tool {
        /// Name of the program.
        program: String,
    },
    /// The kernel has no Multipath TCP.
    NoMptcp,
    /// More paths than a kernel's Multipath TCP uses.
    TooManyPaths {
        /// Paths of the network.
        paths: usize,
        /// Paths that the kernel uses at most.
        most: usize,
    },
    /// A signal ended the run.
    Interrupted,
    /// A system call failed.
    System {
        /// The operation.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A program of the host setup failed.
    Command {
        /// The command line.
        command: String,
        /// Output of the program.
        output: String,
    },
    /// The user's program cannot be started.
    Program {
        /// Command line of the program.
        command: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The application at one end of a connection failed.
    Application {
        /// End of the program, and the error.
        what: String,
    },
    /// The world cannot continue.
    World {
        /// The reason, and the time.
        what: String,
    },
}

impl LabError {
    /// The system's error during `what`.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        // The text is made only on failure, because this call precedes every packet.
        move |source| Self::System { what: what.into(), source }
    }

    /// Advice to the user.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Privilege { .. } => Some(privilege::advice()),
            Self::Tool { program } => {
                let package = if program == "nft" { "nftables" } else { "iproute2" };
                Some(format!("install {package}, and see that it is on the PATH or in /usr/sbin"))
            }
            Self::NoMptcp => Some(
                "boot a kernel with CONFIG_MPTCP, without `mptcp.enabled=0`; `--set mptcp=false` runs plain TCP".into(),
            ),
            Self::TooManyPaths { most, .. } => {
                Some(format!("leave paths out until {most} remain, or let engines be the hosts, which use 16"))
            }
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
            Self::TooManyPaths { paths, most } => {
                write!(f, "there are {paths} paths, and this kernel's Multipath TCP uses {most} at most")
            }
            Self::Interrupted => f.write_str("interrupted"),
            Self::System { what, source } => write!(f, "{what}: {source}"),
            Self::Command { command, output } => write!(f, "`{command}` failed: {}", output.trim()),
            Self::Program { command, source } => write!(f, "`{command}` cannot be started: {source}"),
            Self::Application { what } | Self::World { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for LabError {}
