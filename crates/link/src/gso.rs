//! Datagrams of one size for one destination, in IP packets with the same ECN field, leave with one system call.

use crate::Socket;
use anabranch_wire::Ecn;
use std::net::SocketAddr;

/// UDP's limit for what one call sends.
const MAX_BURST: usize = 65_000;

/// Datagrams that wait for one more like them.
#[derive(Debug, Default)]
pub(crate) struct GsoBatch {
    waiting: Vec<u8>,
    to: Option<SocketAddr>,
    ecn: Ecn,
    /// Size of all datagrams but the last.
    size: usize,
    count: usize,
}

impl GsoBatch {
    /// Puts a datagram behind those that wait, which leave first if it does not fit.
    pub fn push(&mut self, socket: &mut Socket, to: SocketAddr, ecn: Ecn, datagram: &[u8]) {
        let even = self.waiting.len() == self.size * self.count;
        let fits = self.to == Some(to)
            && self.ecn == ecn
            && even
            && datagram.len() <= self.size
            && self.count < socket.burst()
            && self.waiting.len() + datagram.len() <= MAX_BURST;
        if !fits {
            self.flush(socket);
            (self.to, self.ecn, self.size) = (Some(to), ecn, datagram.len());
        }
        self.waiting.extend_from_slice(datagram);
        self.count += 1;
    }

    /// Sends what waits.
    pub fn flush(&mut self, socket: &mut Socket) {
        if let Some(to) = self.to.take() {
            socket.send(to, self.ecn, self.size, &self.waiting);
        }
        self.waiting.clear();
        self.count = 0;
    }
}
