//! Errors of sockets and files.

use anabranch_lab::LabError;
use std::net::SocketAddr;
use std::{fmt, io};

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
        /// Permissions of the file, in octal.
        mode: u32,
    },
    /// A file or a message that is malformed. The text shows no secret.
    Malformed {
        /// The file, the line and the mistake.
        what: String,
    },
    /// The network under a command cannot be set up, followed or taken back.
    Network {
        /// The operation, and the system's answer.
        what: String,
        /// Advice to the user.
        help: Option<String>,
    },
    /// The other end does not do what is expected of it.
    Peer(PeerError),
    /// A signal came.
    Interrupted,
}

/// An expectation that the other end of a link does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerError {
    /// No handshake is answered.
    NoHandshake {
        /// The server.
        address: SocketAddr,
        /// All interfaces.
        interfaces: String,
    },
    /// A path of an established session carries nothing.
    SilentPath {
        /// The server.
        address: SocketAddr,
        /// The path's interface, or several.
        interface: String,
    },
    /// The server refuses what is asked of it.
    Refused {
        /// The server.
        address: SocketAddr,
        /// Reason of the failure.
        why: String,
    },
    /// The server does not answer any more.
    Lost {
        /// The server.
        address: SocketAddr,
    },
}

impl PeerError {
    fn help(&self) -> Option<String> {
        let text = match self {
            Self::NoHandshake { .. } => {
                "a server is silent to strangers: is `anabranch serve` running there, does UDP reach that port, is --server-key \
                 its public key (`anabranch key show` there), does its list of authorised keys have ours (`anabranch key show \
                 --authorize` here), and was it started after that? Has this host's clock gone back since its last session?"
            }
            Self::SilentPath { .. } => {
                "is the interface up and online, and does a route to the server lead through it (`ip route get`)? Without it the \
                 others can be measured"
            }
            Self::Lost { .. } => "was it stopped or started again? Is another client using the same key?",
            Self::Refused { .. } => return None,
        };
        Some(text.to_owned())
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHandshake { address, interfaces } => write!(f, "no answer from {address} through {interfaces}"),
            Self::SilentPath { address, interface } => {
                write!(f, "{address} answers, but not through {interface}")
            }
            Self::Refused { address, why } => write!(f, "{address} refuses: {why}"),
            Self::Lost { address } => write!(f, "{address} does not answer any more"),
        }
    }
}

impl LinkError {
    /// The system's answer to `what`.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what: what.into(), source }
    }

    /// Advice to the user.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Exposed { file, .. } => Some(format!("`chmod 600 {file}`; if others have read it, make a new key")),
            Self::Peer(error) => error.help(),
            Self::Network { help, .. } => help.clone(),
            Self::System { what, source } => {
                let advice = match source.kind() {
                    // ENODEV has no kind.
                    _ if source.raw_os_error() == Some(nix::libc::ENODEV) => "`ip link` lists the interfaces",
                    io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                        "the interface is down or has no route to the server: `ip route get ADDRESS oif INTERFACE` says why"
                    }
                    io::ErrorKind::AddrInUse if what.starts_with("listening") => {
                        "another program has this port: stop it, or give --listen another one"
                    }
                    io::ErrorKind::AddrInUse if what.starts_with("taking") => {
                        "another program has this port: stop it, or give --forward another one"
                    }
                    io::ErrorKind::AddrNotAvailable => "`ip addr` lists the addresses of this host",
                    _ => return None,
                };
                Some(advice.to_owned())
            }
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
            Self::Malformed { what } | Self::Network { what, .. } => f.write_str(what),
            Self::Peer(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for LinkError {}

impl From<LabError> for LinkError {
    /// The laboratory's devices and programs set a network up.
    fn from(error: LabError) -> Self {
        Self::Network { what: error.to_string(), help: error.help() }
    }
}
