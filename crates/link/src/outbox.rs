//! Datagrams of one size for one destination leave with one system call.

use crate::Socket;
use std::net::SocketAddr;

/// UDP's limit for what one call sends.
const MAX_BURST: usize = 65_000;

/// Datagrams that wait for one more like them.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: Vec<u8>,
    to: Option<SocketAddr>,
    /// Of all but the last.
    size: usize,
    count: usize,
}

impl Outbox {
    /// Puts a datagram behind those that wait, which leave first if it does not fit.
    pub fn push(&mut self, socket: &mut Socket, to: SocketAddr, datagram: &[u8]) {
        self.push_with(socket, |waiting| {
            waiting.extend_from_slice(datagram);
            Some(to)
        });
    }

    /// The same with what `write` appends, for the host that it returns; for none if it appends nothing.
    pub fn push_with(&mut self, socket: &mut Socket, write: impl FnOnce(&mut Vec<u8>) -> Option<SocketAddr>) {
        let before = self.waiting.len();
        let to = write(&mut self.waiting);
        let len = self.waiting.len() - before;
        let Some(to) = to.filter(|_| len > 0) else { return };
        let fits = self.to == Some(to)
            && before == self.size * self.count
            && len <= self.size
            && self.count < socket.burst()
            && self.waiting.len() <= MAX_BURST;
        if !fits {
            if let Some(earlier) = self.to {
                socket.send(earlier, self.size, &self.waiting[..before]);
            }
            self.waiting.drain(..before);
            (self.to, self.size, self.count) = (Some(to), len, 0);
        }
        self.count += 1;
    }

    /// Sends what waits.
    pub fn flush(&mut self, socket: &mut Socket) {
        if let Some(to) = self.to.take() {
            socket.send(to, self.size, &self.waiting);
        }
        self.waiting.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn loopback() -> Socket {
        Socket::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap()
    }

    #[test]
    fn every_datagram_arrives_in_order_at_the_host_that_it_is_for() {
        let (mut sender, mut hosts) = (loopback(), [loopback(), loopback()]);
        let places = [0, 1].map(|n: usize| hosts[n].local().unwrap());
        // Some of one size, shorter and longer ones, empty ones, and more than one call may send.
        let sizes = [(0, 90), (0, 90), (0, 40), (0, 90), (1, 90), (1, 200), (0, 0), (0, 200)];
        let rest = (0..150).map(|n| (usize::from(n % 100 == 0), 1_000));
        let sent: Vec<(usize, Vec<u8>)> =
            sizes.into_iter().chain(rest).zip(0..).map(|((to, len), n): (_, u16)| (to, vec![n as u8; len])).collect();
        let (mut outbox, mut got) = (Outbox::default(), [Vec::new(), Vec::new()]);
        for (to, datagram) in &sent {
            outbox.push(&mut sender, places[*to], datagram);
            // A datagram that is not sealed leaves nothing behind.
            outbox.push_with(&mut sender, |_| None);
        }
        outbox.flush(&mut sender);
        for (host, got) in hosts.iter_mut().zip(&mut got) {
            while host.receive(|_, datagram| got.push(datagram.to_vec())).unwrap() {}
        }
        for (n, got) in got.iter().enumerate() {
            let expected: Vec<_> =
                sent.iter().filter(|(to, bytes)| *to == n && !bytes.is_empty()).map(|(_, bytes)| bytes).collect();
            assert!(got.iter().eq(expected), "{} datagrams at {n}", got.len());
        }
        assert_eq!(sender.unsent, 0);
    }
}
