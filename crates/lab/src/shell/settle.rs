//! After the program has ended: its data arrives before the network ends.

use crate::kernel::{Backlog, SockDiag, State};
use crate::{LabError, Namespace};
use anabranch_units::{Duration, Instant};
use std::collections::BTreeSet;

/// The longest wait without progress. A sender whose retransmissions back off gets through again after an outage of half
/// of that.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The time that a server has to read its data, and to answer the end of a stream by its own.
pub(super) const READING: Duration = Duration::from_secs(2);
/// The limit of the whole wait.
pub(super) const LONGEST: Duration = Duration::from_secs(600);

/// The data that has not arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Connections without a program whose data or end the server has not acknowledged.
    pub connections: usize,
    /// Their unacknowledged bytes; each end of a stream counts as one.
    pub bytes: u64,
    /// Packets on the emulated paths to the server.
    pub packets: usize,
}

impl Pending {
    /// All data has arrived.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The waiting data of the client's sockets.
    fn of(sockets: &[Backlog]) -> Self {
        // A subflow belongs to the kernel: its connection shows whether a program holds it.
        let fallen_back: BTreeSet<_> = sockets
            .iter()
            .filter(|socket| socket.mptcp && socket.orphaned && socket.fallen_back)
            .map(|socket| (socket.local, socket.remote))
            .collect();
        let counts = |socket: &&Backlog| {
            let own = socket.orphaned && !(socket.mptcp && socket.fallen_back);
            socket.state == State::Closing
                && (own || fallen_back.contains(&(socket.local, socket.remote)) && !socket.mptcp)
        };
        sockets.iter().filter(counts).fold(Self::default(), |all, socket| Self {
            connections: all.connections + 1,
            bytes: all.bytes + socket.unacknowledged.max(1),
            packets: 0,
        })
    }
}

/// The server's remaining work on ended streams: bytes to read, connections to accept and to close.
fn unread(sockets: &[Backlog]) -> u64 {
    let of = |socket: &Backlog| match socket.state {
        State::Listening => socket.unread,
        State::PeerClosed => 1 + socket.unread,
        State::Closing | State::Other => 0,
    };
    sockets.iter().map(of).sum()
}

/// Reads the sockets of both kernels.
#[derive(Debug)]
pub(super) struct Look {
    client: SockDiag,
    server: SockDiag,
}

impl Look {
    pub fn new(client: &Namespace, server: &Namespace) -> Result<Self, LabError> {
        let open = |namespace: &Namespace| namespace.enter(SockDiag::open)?.map_err(refused());
        Ok(Self { client: open(client)?, server: open(server)? })
    }

    /// The data that the client's sockets have not delivered.
    pub fn sent(&mut self) -> Result<Pending, LabError> {
        Ok(Pending::of(&self.client.backlogs().map_err(refused())?))
    }

    /// The data of ended streams that the server has not read.
    pub fn unread(&mut self) -> Result<u64, LabError> {
        Ok(unread(&self.server.backlogs().map_err(refused())?))
    }
}

fn refused() -> impl FnOnce(std::io::Error) -> LabError {
    LabError::system("asking the kernel for its sockets")
}

/// The time limit of a wait for an amount to shrink.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    limit: Duration,
    begun: Instant,
    /// When the amount last shrank.
    moved: Instant,
    least: u64,
}

impl Patience {
    /// Starts now, with `limit` without progress.
    pub fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, begun: now, moved: now, least: u64::MAX }
    }

    /// Updates the amount left. True if waiting is over.
    pub fn ends(&mut self, now: Instant, left: u64) -> bool {
        if left < self.least {
            (self.least, self.moved) = (left, now);
        }
        now.since(self.moved) >= self.limit || now.since(self.begun) >= LONGEST
    }

    /// The begin of the wait.
    pub fn begun(&self) -> Instant {
        self.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn socket(port: u16, state: State) -> Backlog {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let (local, remote) = (address(port), address(5001));
        let (unacknowledged, unread, mptcp, fallen_back) = (100, 7, false, false);
        Backlog { state, mptcp, local, remote, unacknowledged, unread, orphaned: true, fallen_back }
    }

    #[test]
    fn what_no_program_has_any_more_and_is_not_acknowledged_is_pending() {
        let closing = socket(1, State::Closing);
        let mptcp = Backlog { mptcp: true, ..closing };
        let subflow = Backlog { orphaned: false, ..closing };
        let bytes = |sockets: &[Backlog]| {
            let Pending { connections, bytes, .. } = Pending::of(sockets);
            (connections, bytes)
        };
        assert_eq!(bytes(&[closing]), (1, 100));
        // A socket whose program runs, and data that has arrived.
        assert_eq!(bytes(&[subflow, socket(2, State::Other), socket(3, State::PeerClosed)]), (0, 0));
        // The end of a stream alone.
        assert_eq!(bytes(&[Backlog { unacknowledged: 0, ..closing }]), (1, 1));
        // Over a path that is down, a subflow's own end may wait for ever.
        assert_eq!(bytes(&[mptcp, subflow]), (1, 100));
        assert_eq!(bytes(&[Backlog { state: State::Other, ..mptcp }, subflow]), (0, 0));
        // After fallback the data is in the subflow alone.
        let fallen_back = Backlog { fallen_back: true, unacknowledged: 0, state: State::Other, ..mptcp };
        assert_eq!(bytes(&[fallen_back, subflow]), (1, 100));
        assert_eq!(bytes(&[Backlog { state: State::Closing, ..fallen_back }, subflow]), (1, 100));
        assert_eq!(bytes(&[Backlog { orphaned: false, ..fallen_back }, subflow]), (0, 0));
        assert_eq!(bytes(&[fallen_back, Backlog { local: socket(9, State::Other).local, ..subflow }]), (0, 0));
    }

    #[test]
    fn a_server_has_to_read_accept_and_close() {
        let states = [State::Listening, State::PeerClosed, State::Closing, State::Other];
        assert_eq!(states.map(|state| unread(&[socket(1, state)])), [7, 8, 0, 0]);
    }

    #[test]
    fn patience_ends_when_nothing_becomes_less_and_at_last_in_any_case() {
        let at = |s: u64| Instant::ZERO + Duration::from_secs(s);
        let mut patience = Patience::new(Duration::from_secs(30), at(5));
        assert_eq!([(5, 900), (34, 900)].map(|(s, left)| patience.ends(at(s), left)), [false, false]);
        assert!(!patience.ends(at(34), 899) && !patience.ends(at(63), 1000) && patience.ends(at(64), 1000));
        let mut patience = Patience::new(Duration::from_secs(30), at(0));
        let ended = (0..).find(|s| patience.ends(at(*s), 1_000_000 - s));
        assert_eq!(ended, Some(600));
    }
}
