//! Exchanges: packets and acknowledgments at stated times, then the state.

mod kernel_timer;
mod oracle;
mod rack;
mod reno;
mod sack;
mod signals;
mod timeout;
mod world;

use super::*;
use bytes::Bytes;

const MSS: u64 = 1000;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// The offsets of packets `from` to `to`, both included, counted from 1.
const fn p(from: u64, to: u64) -> Range {
    Range::new(1 + (from - 1) * MSS, 1 + to * MSS)
}

/// The packet that begins at `start`.
const fn packet_at(start: u64) -> Range {
    Range::new(start, start.saturating_add(MSS))
}

/// The acknowledgment of everything up to packet `n`.
const fn upto(n: u64) -> u64 {
    1 + n * MSS
}

fn segment(start: u64) -> Sent {
    Sent::new(start, Bytes::from_static(&[0; MSS as usize]), start - 1, false)
}

/// A sender with 40 ms of RTT, whose packets are named by numbers from 1.
struct Bench {
    sender: Sender,
    now: Instant,
}

impl Bench {
    fn new(settings: TcpSettings, sack: bool) -> Self {
        let mut sender = Sender::new(&settings, sack);
        sender.sample_handshake(ms(40));
        Self { sender, now: Instant::ZERO }
    }

    fn rack() -> Self {
        Self::new(TcpSettings::default(), true)
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = at(ms);
        self
    }

    /// Sends `n` new packets.
    fn send(&mut self, n: u64) -> &mut Self {
        for _ in 0..n {
            self.sender.on_sent(self.now, segment(self.sender.nxt()));
        }
        self
    }

    fn input<'a>(&self, n: u64, sack: &'a [Range]) -> AckInput<'a> {
        AckInput { now: self.now, ack: upto(n), sack, dsack: None, echo: None, bare: true }
    }

    fn ack(&mut self, n: u64, sack: &[Range]) -> AckOutcome {
        self.sender.on_ack(&self.input(n, sack))
    }

    fn dsack(&mut self, n: u64, dsack: Range) -> AckOutcome {
        self.sender.on_ack(&AckInput { dsack: Some(dsack), ..self.input(n, &[]) })
    }

    /// An acknowledgment that echoes what was sent at `sent` milliseconds.
    fn echo(&mut self, n: u64, sack: &[Range], sent: u64) -> AckOutcome {
        let echo = Some((self.now.since(at(sent)), at(sent)));
        self.sender.on_ack(&AckInput { echo, ..self.input(n, sack) })
    }

    /// The packet that is to be retransmitted, for there is nothing new; sends it.
    fn resend(&mut self) -> Option<u64> {
        if self.sender.wants_new() {
            self.sender.no_new();
        }
        let start = self.sender.next_lost()?.seq().start;
        self.sender.on_retransmitted(self.now, packet_at(start));
        Some((start - 1) / MSS + 1)
    }

    /// Everything that is to be retransmitted, sent.
    fn resend_all(&mut self) -> Vec<u64> {
        core::iter::from_fn(|| self.resend()).collect()
    }

    /// Waits for the next timer, which must be due at `ms`.
    fn fire(&mut self, ms: u64) -> Fired {
        assert_eq!(self.sender.deadline(), at(ms));
        self.now = at(ms);
        self.sender.on_timer(self.now)
    }

    /// The retransmission timeout with back-off.
    fn rto(&self) -> Duration {
        self.sender.timers.backed_off(self.sender.rtt.rto())
    }

    #[track_caller]
    fn expect(&self, phase: RecoveryPhase, in_flight: u32) {
        assert_eq!((self.sender.phase(), self.sender.in_flight()), (phase, in_flight));
    }
}
