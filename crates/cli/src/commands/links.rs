//! Parts that the commands for real links share.

use crate::args::{NearArguments, PORT, default_socket};
use crate::terminal;
use anabranch_link::files::KeyFile;
use anabranch_link::{LinkError, PublicKey, SessionSettings, StatusSocket, secrets};
use anabranch_proxy::ConnectionSettings;
use anabranch_scenario::PlugIn;
use anabranch_workbench::failure::{Failure, Salvage};
use anabranch_workbench::load::unusable;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// The code of their diagnostics.
pub const CODE: &str = "anabranch::link";

/// A signal came before the first run.
pub fn interrupted() -> Failure {
    Failure::interrupted("interrupted before the first run", Salvage::Nothing)
}

/// A file that others may read, or a malformed one, is unusable input.
pub fn failed(error: LinkError) -> Failure {
    let (what, help) = (error.to_string(), error.help());
    match error {
        LinkError::Interrupted => interrupted(),
        LinkError::System { .. } | LinkError::Peer(_) | LinkError::Network { .. } => Failure::missing(CODE, what, help),
        _ => Failure::unusable(CODE, what, help),
    }
}

/// The key in a file.
pub fn read_key(file: &Path) -> Result<KeyFile, Failure> {
    secrets::read_key(file).map_err(|error| match absent(&error) {
        true => {
            let help =
                format!("`anabranch key new {}` makes one, and prints the part of it that others need", file.display());
            Failure::missing(CODE, format!("there is no key {}", file.display()), Some(help))
        }
        false => failed(error),
    })
}

/// The error of a file that does not exist.
pub fn absent(error: &LinkError) -> bool {
    matches!(error, LinkError::System { source, .. } if source.kind() == ErrorKind::NotFound)
}

/// The server and the interfaces that a command names.
pub fn session_settings(server: &str, server_key: &str, near: &NearArguments) -> Result<SessionSettings, Failure> {
    let NearArguments { via, key } = near;
    let Ok(server_key) = PublicKey::parse(server_key) else {
        let help = "it has 44 characters; `anabranch key show server.key` prints it on the server";
        return Err(Failure::unusable(CODE, "--server-key: this is no public key", Some(help.to_owned())));
    };
    interfaces(via)?;
    let key = read_key(key)?;
    Ok(SessionSettings { key, server: server_key, address: address(server)?, interfaces: via.clone() })
}

/// Each interface has one path.
pub fn interfaces(via: &[String]) -> Result<(), Failure> {
    match via.iter().enumerate().find(|(n, name)| via[..*n].contains(name)) {
        Some((_, twice)) => Err(Failure::unusable(CODE, format!("--via: {twice} stands there twice"), None)),
        None => Ok(()),
    }
}

/// The first address of a name.
fn address(server: &str) -> Result<SocketAddr, Failure> {
    let found = match server.to_socket_addrs() {
        // A number or a name without a port.
        Err(_) => (server, PORT).to_socket_addrs(),
        found => found,
    };
    let first = found.and_then(|mut all| all.next().ok_or_else(|| std::io::ErrorKind::NotFound.into()));
    first.map_err(|error| {
        let help = "write NAME, NAME:PORT, 192.0.2.1:PORT or [2001:db8::1]:PORT";
        Failure::unusable(CODE, format!("{server}: no address is known ({error})"), Some(help.to_owned()))
    })
}

/// The settings that proxied connections have in common, as both ends' options say.
pub fn connection_settings(congestion: &str, orphan_timeout: &str, ecn: bool) -> Result<ConnectionSettings, Failure> {
    let congestion = anabranch_scenario::congestion("--congestion", congestion).map_err(unusable)?;
    let timeout = anabranch_scenario::parse_duration(orphan_timeout).filter(|time| !time.is_zero());
    let orphan_timeout = timeout.ok_or_else(|| {
        let message = format!("--orphan-timeout: `{orphan_timeout}` is no time above zero");
        Failure::unusable(CODE, message, Some("write a number with its unit, such as 600s".to_owned()))
    })?;
    Ok(ConnectionSettings { congestion, orphan_timeout, ecn })
}

/// A scheduler that an option names.
pub fn scheduler(option: &str, text: &str) -> Result<PlugIn, Failure> {
    anabranch_scenario::scheduler(option, text).map_err(unusable)
}

/// Now, and wherever the output goes.
pub fn say(line: &str) {
    terminal::say(&format!("{line}\n"));
}

/// The usual socket of the user who called `sudo`, which removes XDG_RUNTIME_DIR. For a process that has become that user.
fn callers_socket() -> Option<PathBuf> {
    let user: u32 = std::env::var("SUDO_UID").ok()?.parse().ok()?;
    Some(PathBuf::from(format!("/run/user/{user}/anabranch.sock")))
}

/// That of a command with --native, made by the user that the process has become. That one cannot make a socket everywhere: the command runs
/// without, unless a place was given.
pub fn native_status_socket(given: Option<&Path>) -> Result<Option<StatusSocket>, Failure> {
    if let Some(file) = given {
        return StatusSocket::open(file).map(Some).map_err(failed);
    }
    let opened = default_socket().or_else(callers_socket).map(|file| (StatusSocket::open(&file), file));
    match opened {
        Some((Ok(status_socket), file)) => {
            say(&format!("status at {}", file.display()));
            Ok(Some(status_socket))
        }
        Some((Err(error), _)) => {
            say(&format!("no status: {error}; --socket names another place"));
            Ok(None)
        }
        None => {
            say("no status: there is no XDG_RUNTIME_DIR; --socket names a place");
            Ok(None)
        }
    }
}

/// Where `status` looks, the usual place first: the server may run as a service, or for another session of the same user.
pub fn likely_sockets() -> Vec<PathBuf> {
    let user = format!("/run/user/{}/anabranch.sock", rustix::process::getuid().as_raw());
    let others = [user, "/run/anabranch/status.sock".to_owned()].map(PathBuf::from);
    let mut all: Vec<PathBuf> = default_socket().into_iter().chain(callers_socket()).chain(others).collect();
    let mut seen = BTreeSet::new();
    all.retain(|file| seen.insert(file.clone()));
    all
}
