//! The state of a server, for those who look: through a UNIX socket that its owner alone may use.

use crate::LinkError;
use nix::sys::stat::{Mode, umask};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a reader may let us wait, and we a server.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a reader may keep the server from its clients.
const BRIEF: Duration = Duration::from_millis(50);
/// Bytes of the longest state.
const LONGEST: u64 = 16 << 20;

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub anabranch: String,
    /// Where it listens.
    pub listening: String,
    /// How long it has run.
    pub up_s: f64,
    /// Those with a session.
    pub clients: Vec<ClientStatus>,
    /// Counts of all that came and was refused, since it began.
    pub counters: BTreeMap<String, u64>,
}

/// A client with a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// As in the list of authorised keys.
    pub name: String,
    /// The scheduler of the run under way; absent without a run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scheduler: Option<String>,
    /// Connections of the run that have sent data.
    pub connections: usize,
    /// Paths of the client.
    pub paths: Vec<PathState>,
}

/// A path of a client. All connections of the run together; zero without a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathState {
    /// Number of the path.
    pub path: u8,
    /// The client's address on it, as the server sees it.
    pub address: String,
    /// Smoothed round-trip time, the least of a proxy's connections; absent before the first sample.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub srtt_s: Option<f64>,
    /// Payload sent in the last whole second.
    pub rate_bps: u64,
    /// Payload sent.
    pub sent_bytes: u64,
    /// The path's part of all payload sent.
    pub share: f64,
    /// Retransmitted ÷ sent data packets.
    pub loss_ratio: f64,
    /// Congestion windows.
    pub cwnd_packets: u64,
    /// Packets in flight.
    pub in_flight_packets: u64,
    /// Payload received by a proxy.
    #[serde(default)]
    pub received_bytes: u64,
    /// Payload received by a proxy in the last whole second.
    #[serde(default)]
    pub received_bps: u64,
}

/// The socket that gives the state.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
    file: PathBuf,
}

impl StatusSocket {
    /// Makes the socket `file`, in the place of one that a server left behind.
    ///
    /// # Errors
    /// Another server uses it, or it cannot be made.
    pub fn open(file: &Path) -> Result<Self, LinkError> {
        let failed = || LinkError::system(format!("making the socket {}", file.display()));
        match connect(file) {
            Ok(_) => return Err(failed()(ErrorKind::AddrInUse.into())),
            // A socket without a server. Any other file is not ours.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && is_socket(file) => {
                fs::remove_file(file).map_err(failed())?;
            }
            Err(_) => {}
        }
        // No moment in which others could use it.
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(file);
        umask(before);
        let listener = bound.map_err(failed())?;
        listener.set_nonblocking(true).map_err(failed())?;
        Ok(Self { listener, file: file.to_owned() })
    }

    /// Answers all who ask now. A reader that does not read gets a part: clients wait meanwhile.
    pub fn answer(&self, status: impl Fn() -> Status) {
        while let Ok((mut reader, _)) = self.listener.accept() {
            // Strings and finite numbers only: this cannot fail.
            let text = serde_json::to_vec(&status()).unwrap_or_default();
            let _ = put(&mut reader, &text);
        }
    }
}

/// Writes all of it, if the reader takes it within [`BRIEF`].
fn put(reader: &mut UnixStream, mut text: &[u8]) -> std::io::Result<()> {
    let until = Instant::now() + BRIEF;
    while !text.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        // Zero is refused, which ends it.
        reader.set_write_timeout(Some(left))?;
        let taken = reader.write(text)?;
        text = &text[taken..];
    }
    Ok(())
}

/// Connects, or fails if the server does not accept within [`PATIENCE`].
fn connect(file: &Path) -> std::io::Result<UnixStream> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    // On Linux it holds for connecting too: unix(7).
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect(&socket2::SockAddr::unix(file)?)?;
    Ok(UnixStream::from(socket))
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

fn is_socket(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|found| found.file_type().is_socket())
}

/// The state of the server behind the socket `file`.
///
/// # Errors
/// There is none, or it is another's.
pub fn read_status(file: &Path) -> Result<Status, LinkError> {
    let failed = || LinkError::system(format!("asking at {}", file.display()));
    let stream = connect(file).map_err(failed())?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
    let mut text = Vec::new();
    stream.take(LONGEST).read_to_end(&mut text).map_err(failed())?;
    serde_json::from_slice(&text).map_err(|error| LinkError::Malformed { what: format!("{}: {error}", file.display()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn its_owner_alone_may_ask_and_gets_the_state() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("status.sock");
        let status_socket = StatusSocket::open(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let client = ClientStatus { name: "laptop".into(), ..ClientStatus::default() };
        let status = Status { clients: vec![client], up_s: 1.5, ..Status::default() };
        let given = status.clone();
        let asked = file.clone();
        let asking = std::thread::spawn(move || read_status(&asked));
        while !asking.is_finished() {
            status_socket.answer(|| given.clone());
        }
        assert_eq!(asking.join().unwrap().unwrap(), status);

        assert!(StatusSocket::open(&file).unwrap_err().to_string().contains("in use"), "one server per socket");
        drop(status_socket);
        assert!(!file.exists(), "nothing is left behind");
        let said = read_status(&file).unwrap_err().to_string();
        assert!(said.starts_with("asking at ") && said.contains("No such file"), "{said}");
    }

    /// More than a socket's buffer holds.
    #[test]
    fn a_long_state_arrives_whole_and_who_does_not_read_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("status.sock");
        let status_socket = StatusSocket::open(&file).unwrap();
        let client = ClientStatus { name: "x".repeat(1_000), ..ClientStatus::default() };
        let status = Status { clients: vec![client; 500], ..Status::default() };
        let asked = file.clone();
        // A busy machine may run the reader too late.
        let asking = std::thread::spawn(move || (0..20).find_map(|_| read_status(&asked).ok()));
        while !asking.is_finished() {
            status_socket.answer(|| status.clone());
        }
        assert_eq!(asking.join().unwrap().unwrap(), status);
        let silent = UnixStream::connect(&file).unwrap();
        status_socket.answer(|| status.clone());
        drop(silent);
    }

    #[test]
    fn a_socket_that_was_left_behind_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("status.sock");
        drop(UnixListener::bind(&file).unwrap());
        assert!(StatusSocket::open(&file).is_ok());
        let other = folder.path().join("text");
        fs::write(&other, "mine").unwrap();
        assert!(StatusSocket::open(&other).is_err(), "a file that is no socket stays");
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    }
}
